//! Looks whether the folder's server runs, and starts it or its supervisor when it does not. Whether a server lives is
//! told by the lock its processes inherit, not by a process number: that also holds across containers and after a
//! number was used again.

use super::binaries;
use super::cluster::{self, last_lines};
use super::home::Home;
use super::lock::Lock;
use super::{Options, failed};
use crate::error::Result;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Recovery after a crash may take a while; this is only there to end at all.
const READY_LIMIT: Duration = Duration::from_secs(120);

/// How long a ready server may take to answer at all; it is asked again after that.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Statuses of the supervisor's answer.
const STARTED: i32 = 0;
const ANOTHER_WAS_FASTER: i32 = 75;
const TOOLS_MISSING: i32 = 127;

const SUPERVISOR: &str = include_str!("supervisor.sh");

/// Puts the supervisor into the background and a session of its own: a Ctrl-C in the opener's terminal must not reach
/// it, and the opener must not be its parent, who would have to reap it. The script goes through the environment to
/// keep the list of processes readable. Descriptors a shell may have opened for the opener (a lock script's 9, make's
/// 3 and 4) are not to live as long as the server.
const DETACH: &str = r#"exec 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
if command -v setsid && command -v flock; then
  SUPERVISOR=$0 setsid sh -c 'eval "$SUPERVISOR"' drayhorse "$@" &
else
  printf '\nended 127\n'
fi"#;

/// Where a ready server listens.
pub(super) struct Running {
    pub socket_dir: PathBuf,
    pub port: u16,
}

enum State {
    Down,
    /// Its processes live, but it does not answer yet or any more.
    Changing,
    Ready(Running),
}

/// Returns when the server is ready. The caller holds the start lock and is one of the users.
pub(super) fn ensure(home: &Home, options: &Options, start: &Lock) -> Result<Running> {
    let begin = Instant::now();
    let mut started_from: Option<(binaries::Version, u64)> = None;
    let mut pause = Duration::from_millis(2);
    loop {
        match state(home)? {
            State::Ready(running) => {
                if started_from.is_none() && watched(home)? {
                    return Ok(running);
                }
                if started_from.is_none() {
                    supervise(home, "adopt", Path::new(""), &running.socket_dir)?;
                }
                return Ok(running);
            }
            State::Down => {
                if let Some((version, log_start)) = &started_from {
                    return Err(not_started(home, version, *log_start));
                }
                let wanted = cluster::major(home)?;
                let binaries = binaries::find(wanted, options, home)?;
                if wanted.is_none() {
                    cluster::create(home, &binaries, start)?;
                }
                let log_start = std::fs::metadata(log(home)).map_or(0, |m| m.len());
                if supervise(home, "start", &binaries.bin, &home.socket_dir()?)? {
                    started_from = Some((binaries.version, log_start));
                }
            }
            State::Changing => {
                if begin.elapsed() > READY_LIMIT {
                    return Err(failed(format!(
                        "the server of {} is neither ready nor ended after {} s; its log is {}",
                        home.folder.display(),
                        READY_LIMIT.as_secs(),
                        log(home).display()
                    )));
                }
                std::thread::sleep(pause);
                pause = (pause * 3 / 2).min(Duration::from_millis(20));
            }
        }
    }
}

fn state(home: &Home) -> Result<State> {
    let lock = home.run().join("server.lock");
    if Lock::is_free(&lock).map_err(|e| failed(format!("cannot read {}: {e}", lock.display())))? {
        return Ok(State::Down);
    }
    let text = match std::fs::read_to_string(home.data().join("postmaster.pid")) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(State::Changing),
        Err(e) => {
            return Err(failed(format!("cannot read {}: {e}", home.data().join("postmaster.pid").display())));
        }
    };
    // The file may be a dead server's.
    Ok(match parse_ready(&text) {
        Some(running) if answers(&socket(&running)) => State::Ready(running),
        _ => State::Changing,
    })
}

/// Asks for TLS, which any server that can take a session answers with one letter. An accepted connection would not
/// do: the kernel accepts for a server that is being killed.
fn answers(socket: &Path) -> bool {
    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
    let ask = || -> io::Result<()> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        stream.write_all(&SSL_REQUEST)?;
        stream.read_exact(&mut [0])
    };
    ask().is_ok()
}

/// postmaster.pid: number, data, start time, port, socket folder, TCP address, shared memory, status.
fn parse_ready(text: &str) -> Option<Running> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.get(7)?.trim() != "ready" {
        return None;
    }
    Some(Running { socket_dir: PathBuf::from(lines[4]), port: lines[3].trim().parse().ok()? })
}

fn socket(running: &Running) -> PathBuf {
    running.socket_dir.join(format!(".s.PGSQL.{}", running.port))
}

fn watched(home: &Home) -> Result<bool> {
    let lock = home.run().join("watch.lock");
    Lock::is_free(&lock).map(|free| !free).map_err(|e| failed(format!("cannot read {}: {e}", lock.display())))
}

/// Starts a supervisor; false when another one was faster.
fn supervise(home: &Home, mode: &str, bin: &Path, socket_dir: &Path) -> Result<bool> {
    let args: [&OsStr; 4] = [mode.as_ref(), bin.as_os_str(), home.place.as_os_str(), socket_dir.as_os_str()];
    let answer = home.account.shell(DETACH, SUPERVISOR, &args, None)?;
    match answer.status {
        STARTED => Ok(true),
        ANOTHER_WAS_FASTER => {
            std::thread::sleep(Duration::from_millis(5));
            Ok(false)
        }
        TOOLS_MISSING => Err(failed(
            "embedded PostgreSQL needs the programs setsid and flock: install util-linux, or give the URL of a server",
        )),
        _ => Err(failed(format!(
            "the server of {} was not started: {}",
            home.folder.display(),
            last_lines(&answer.output)
        ))),
    }
}

fn not_started(home: &Home, version: &binaries::Version, log_start: u64) -> crate::error::Error {
    let said = tail(&log(home), log_start).unwrap_or_else(|e| format!("its log cannot be read: {e}"));
    failed(format!(
        "PostgreSQL {version} ended instead of starting in {}: {}; its log is {}",
        home.folder.display(),
        last_lines(&said),
        log(home).display()
    ))
    .with("log", said)
}

fn log(home: &Home) -> PathBuf {
    home.run().join("server.log")
}

/// What was written to the log after `start`, at most its last 4 KiB. Root reads here what another user may have
/// replaced by a link: links are not followed.
fn tail(path: &Path, start: u64) -> io::Result<String> {
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let length = file.metadata()?.len();
    // Shorter than before: it was moved away when this start began.
    let from = if length < start { 0 } else { start }.max(length.saturating_sub(4096));
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(4096).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_file_that_says_ready_is_ready() {
        let text = "71\n/q/data\n1700000000\n5431\n/q/run\n\n  1234 5678\nready   \n";
        let running = parse_ready(text).unwrap();
        assert_eq!((running.port, running.socket_dir.as_path()), (5431, Path::new("/q/run")));
        assert_eq!(socket(&running), Path::new("/q/run/.s.PGSQL.5431"));
        assert!(parse_ready(&text.replace("ready   ", "starting")).is_none());
        assert!(parse_ready("71\n/q/data\n").is_none());
        assert!(parse_ready("").is_none());
    }
}
