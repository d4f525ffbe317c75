//! A new cluster: made beside its final place and renamed when it is whole, so that an opener killed on the way leaves
//! nothing that looks like one.

use super::binaries::Binaries;
use super::failed;
use super::home::Home;
use super::lock::Lock;
use crate::error::Result;
use std::ffi::OsStr;
use std::fs;
use std::io;

/// `$1` binaries, `$2` the new cluster, `$3` the marker that it is not on the disk yet, `$4` settings. The C locale
/// is everywhere and never changes its order under an index. Standard input is the start lock: while an initdb whose
/// opener was killed still writes, nobody starts another.
const CREATE: &str = r#"umask 077
"$1/initdb" -D "$2" -U postgres -A trust -E UTF8 --locale=C --no-sync --no-instructions &&
printf '%s\n' "$4" >>"$2/postgresql.conf" &&
printf 'local all all trust\n' >"$2/pg_hba.conf" &&
: >"$3""#;

/// What a cluster is made with; its owner may change it there. What must hold is on the server's command line.
/// Statements are not logged: an error would bring a payload into the log.
const SETTINGS: &str = "\
max_connections = 200
timezone = 'UTC'
log_timezone = 'UTC'
jit = off
log_min_messages = log
log_min_error_statement = panic
log_checkpoints = off
cluster_name = 'drayhorse'";

/// The major version of the cluster, or `None` when there is none yet.
pub(super) fn major(home: &Home) -> Result<Option<u32>> {
    let data = home.data();
    match fs::read_to_string(data.join("PG_VERSION")) {
        Ok(text) => match text.trim().parse() {
            Ok(major) => Ok(Some(major)),
            Err(_) => Err(failed(format!("{} is not a cluster of PostgreSQL 10 or newer", data.display()))),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound && !data.exists() => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Err(failed(format!("{} exists and is not a PostgreSQL cluster: choose another folder", data.display())))
        }
        Err(e) => Err(failed(format!("cannot read {}: {e}", data.join("PG_VERSION").display()))),
    }
}

/// Makes the cluster. The caller holds the start lock.
pub(super) fn create(home: &Home, binaries: &Binaries, start: &Lock) -> Result<()> {
    let fresh = home.place.join("data.new");
    let cannot = |e: io::Error| failed(format!("cannot make the cluster {}: {e}", home.data().display()));
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(cannot)?;
    }
    home.private_dir(&fresh)?;
    let marker = home.run().join("unsynced");
    // A number of its own for every cluster: a server whose folder was deleted and made again removes its own
    // socket when it ends, not that of its successor.
    let settings = format!("port = {}\n{SETTINGS}", 10_000 + uuid::Uuid::now_v7().as_u128() as u16 % 50_000);
    let args: [&OsStr; 8] = [
        "sh".as_ref(),
        "-c".as_ref(),
        CREATE.as_ref(),
        "drayhorse".as_ref(),
        binaries.bin.as_os_str(),
        fresh.as_os_str(),
        marker.as_os_str(),
        settings.as_ref(),
    ];
    let ended = home.account.run(&args, Some(start.share().map_err(cannot)?))?;
    if ended.status != 0 {
        // Containers are often run under a number that has no name.
        let nameless = home.account.name == home.account.uid.to_string();
        return Err(failed(format!(
            "initdb of PostgreSQL {} failed in {}: {}{}",
            binaries.version,
            home.place.display(),
            last_lines(&ended.output),
            if nameless {
                format!("; PostgreSQL needs a line for user {} in /etc/passwd", home.account.uid)
            } else {
                String::new()
            }
        )));
    }
    fs::rename(&fresh, home.data()).map_err(cannot)
}

/// The end of a program's output, short enough for a message.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let tail = lines[lines.len().saturating_sub(6)..].join("; ");
    let cut = tail.char_indices().rev().nth(1_500).map_or(0, |(i, _)| i);
    if tail.is_empty() { "it said nothing".to_owned() } else { tail[cut..].to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_the_last_lines() {
        assert_eq!(last_lines(""), "it said nothing");
        assert_eq!(last_lines("1\n2\n3\n\n4\n5\n6\n7\n"), "2; 3; 4; 5; 6; 7");
        assert!(last_lines(&"é".repeat(5_000)).chars().count() <= 1_501);
    }
}
