//! File locks (`flock`) that say who uses a folder: clients share `users.lock` for as long as they live, one opener
//! at a time holds `start.lock`, and the server's own processes hold `run/server.lock`. The kernel releases a lock
//! with its last descriptor, so a killed process never leaves one behind.

use super::failed;
use crate::error::Result;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// A held lock. Its descriptor is closed on exec, but a fork without exec shares it: such a child keeps the lock
/// alive if its parent is killed (the server then outlives the parent until the child ends), and must not end it for
/// the parent. So only the process that took the lock unlocks it; a child's drop merely closes its descriptor.
pub(super) struct Lock {
    file: File,
    pid: u32,
}

impl Lock {
    /// Waits up to `limit` for a place among the lock's sharers.
    pub fn shared(path: &Path, limit: Duration) -> Result<Lock> {
        Lock::take(path, limit, File::try_lock_shared)
    }

    /// Waits up to `limit` for the lock alone.
    pub fn exclusive(path: &Path, limit: Duration) -> Result<Lock> {
        Lock::take(path, limit, File::try_lock)
    }

    /// Whether no process holds the lock exclusively now.
    pub fn is_free(path: &Path) -> io::Result<bool> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(e) => return Err(e),
        };
        match file.try_lock_shared() {
            Ok(()) => file.unlock().map(|()| true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    /// Another descriptor of the same lock, for a child that must hold it to its own end.
    pub fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Polls instead of blocking: a wait in the kernel could not be bounded.
    fn take(path: &Path, limit: Duration, attempt: fn(&File) -> std::result::Result<(), TryLockError>) -> Result<Lock> {
        let file = open(path).map_err(|e| failed(format!("cannot open {}: {e}", path.display())))?;
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match attempt(&file) {
                Ok(()) => {
                    return Ok(Lock { file, pid: std::process::id() });
                }
                Err(TryLockError::WouldBlock) if start.elapsed() < limit => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock) => {
                    let seconds = limit.as_secs();
                    return Err(failed(format!(
                        "{} is still held after {seconds} s: another process is starting or stopping the server; \
                         try again, or end that process",
                        path.display()
                    )));
                }
                Err(TryLockError::Error(e)) => {
                    return Err(failed(format!("cannot lock {}: {e}", path.display())));
                }
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if std::process::id() == self.pid {
            // Explicitly, because a child forked by the host may still share the descriptor. If it fails, the close
            // that follows does the same for every other case.
            let _ = self.file.unlock();
        }
    }
}

/// Opens a lock file that every later opener and the server's user can read, whatever the umask.
fn open(path: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o644).open(path)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ONCE: Duration = Duration::ZERO;

    #[test]
    fn sharers_exclude_the_exclusive_one_and_a_dropped_lock_is_free() {
        let folder = std::env::temp_dir().join(format!("drayhorse-lock-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("users.lock");
        assert!(Lock::is_free(&path).unwrap());
        let one = Lock::shared(&path, AT_ONCE).unwrap();
        let two = Lock::shared(&path, AT_ONCE).unwrap();
        assert!(Lock::exclusive(&path, AT_ONCE).is_err());
        drop(one);
        drop(two);
        let alone = Lock::exclusive(&path, AT_ONCE).unwrap();
        assert!(!Lock::is_free(&path).unwrap());
        assert!(Lock::shared(&path, AT_ONCE).err().unwrap().message().contains("still held"));
        let copy = alone.share().unwrap();
        drop(alone);
        assert!(Lock::is_free(&path).unwrap(), "a shared descriptor must not outlive an explicit release");
        drop(copy);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
