//! Where the files of one embedded folder are. Usually all of them are in the folder itself; when root opens a folder
//! that the server's user cannot reach (a clone below a mode-700 folder), the cluster lives in `/var/lib/drayhorse`
//! and `PATH/data` is a link to it. The link decides: a folder that is moved keeps its cluster, and a folder that was
//! deleted and made again gets a new one.

use super::account::Account;
use super::failed;
use crate::error::{Error, Result};
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Clusters and copies of binaries that cannot stand where their folder is.
pub(super) const STATE_DIR: &str = "/var/lib/drayhorse";

/// `sun_path` less its final NUL; macOS has the smaller one.
const SOCKET_PATH_LIMIT_BYTES: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// `/.s.PGSQL.` and five digits.
const SOCKET_NAME_BYTES: usize = 15;

/// The places of one folder's server, and who it runs as.
pub(super) struct Home {
    /// The folder the user named, real path.
    pub folder: PathBuf,
    /// Holds `data`, `run` and `users.lock`; real path.
    pub place: PathBuf,
    pub account: Account,
}

/// Makes the folder unless it exists, and returns its real path.
pub(super) fn prepare(path: &Path) -> Result<PathBuf> {
    if path.as_os_str().is_empty() {
        return Err(Error::argument("url", "embedded: needs a folder, embedded:./.drayhorse for example"));
    }
    let cannot = |e: io::Error| failed(format!("cannot use the folder {}: {e}", path.display()));
    if !path.exists() {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(cannot)?;
        }
        // Root's folder must be passable for the server's user; what is private in it is private by itself.
        let mode = if rustix::process::geteuid().is_root() { 0o755 } else { 0o700 };
        match DirBuilder::new().mode(mode).create(path) {
            Ok(()) => {
                fs::set_permissions(path, Permissions::from_mode(mode)).map_err(cannot)?;
                fs::write(path.join(".gitignore"), "*\n").map_err(cannot)?;
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(cannot(e)),
        }
    }
    let real = path.canonicalize().map_err(cannot)?;
    if real.is_dir() { Ok(real) } else { Err(failed(format!("{} is not a folder", path.display()))) }
}

impl Home {
    /// Finds the home of `folder`, or decides on one. The caller holds `start.lock`.
    pub fn find_or_make(folder: &Path) -> Result<Home> {
        let data = folder.join("data");
        let home = match fs::symlink_metadata(&data) {
            Ok(meta) if meta.is_symlink() => Home::linked(folder, &data)?,
            Ok(_) => Home::existing(folder, folder.to_owned())?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Home::make(folder)?,
            Err(e) => return Err(failed(format!("cannot read {}: {e}", data.display()))),
        };
        home.private_dir(&home.run())?;
        Ok(home)
    }

    /// The cluster's files.
    pub fn data(&self) -> PathBuf {
        self.place.join("data")
    }

    /// The socket, the locks of server and supervisor, and the log.
    pub fn run(&self) -> PathBuf {
        self.place.join("run")
    }

    /// Held by every client; in `place`, because the supervisor must reach it.
    pub fn users_lock(&self) -> PathBuf {
        self.place.join("users.lock")
    }

    /// Where the socket goes: `run`, or a short private folder when its path is too long for a socket or holds
    /// characters that separate hosts or need quotes in a URL.
    pub fn socket_dir(&self) -> Result<PathBuf> {
        let run = self.run();
        let bytes = run.as_os_str().as_bytes();
        let plain = bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(b));
        if plain && bytes.len() + SOCKET_NAME_BYTES <= SOCKET_PATH_LIMIT_BYTES {
            return Ok(run);
        }
        let meta =
            fs::metadata(&self.place).map_err(|e| failed(format!("cannot read {}: {e}", self.place.display())))?;
        let name =
            short_hash(&[self.place.as_os_str().as_bytes(), &meta.dev().to_le_bytes(), &meta.ino().to_le_bytes()]);
        Ok(PathBuf::from(format!("/tmp/drayhorse-{}-{name}", self.account.uid)))
    }

    /// Makes `path` a folder of the server's user alone; it may exist already.
    pub fn private_dir(&self, path: &Path) -> Result<()> {
        private_dir(path, &self.account).map_err(|e| failed(format!("cannot make the folder {}: {e}", path.display())))
    }

    fn linked(folder: &Path, link: &Path) -> Result<Home> {
        let target = fs::read_link(link).map_err(|e| failed(format!("cannot read {}: {e}", link.display())))?;
        match target.parent() {
            Some(place) if target.starts_with(STATE_DIR) => {
                if !place.is_dir() {
                    return Err(failed(format!(
                        "{} points to {}, which does not exist any more: put it back, or remove the link to start with \
                         an empty database",
                        link.display(),
                        target.display()
                    )));
                }
                Home::existing(folder, place.to_owned())
            }
            // The user's own link, to another disk for example.
            _ => Home::existing(folder, folder.to_owned()),
        }
    }

    fn existing(folder: &Path, place: PathBuf) -> Result<Home> {
        let data = place.join("data");
        let account = match fs::metadata(&data) {
            Ok(meta) => Account::for_owner(&data, meta.uid(), meta.gid())?,
            // An opener was killed before it had made the cluster.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Account::for_new_cluster()?,
            Err(e) => return Err(failed(format!("cannot read {}: {e}", data.display()))),
        };
        let home = Home { folder: folder.to_owned(), place, account };
        if home.account.switched && !home.reachable()? {
            return Err(failed(format!(
                "the user {}, who runs the server of {}, cannot reach that folder any more: let others pass through its \
                 parent folders (chmod o+x)",
                home.account.name,
                home.folder.display()
            )));
        }
        Ok(home)
    }

    fn make(folder: &Path) -> Result<Home> {
        let home = Home { folder: folder.to_owned(), place: folder.to_owned(), account: Account::for_new_cluster()? };
        if !home.account.switched || home.reachable()? {
            return Ok(home);
        }
        let name = format!("{}-{}", short_hash(&[folder.as_os_str().as_bytes()]), random_suffix());
        let place = Path::new(STATE_DIR).join(name);
        let cannot = |e: io::Error| {
            failed(format!(
                "the user {} cannot reach {}, and {} cannot be made for it: {e}",
                home.account.name,
                folder.display(),
                place.display()
            ))
        };
        open_dir(Path::new(STATE_DIR)).map_err(cannot)?;
        open_dir(&place).map_err(cannot)?;
        symlink(place.join("data"), folder.join("data")).map_err(cannot)?;
        Ok(Home { place, ..home })
    }

    /// Whether the server's user can work in `place`: pass its parents and own files in it.
    fn reachable(&self) -> Result<bool> {
        let run = self.run();
        if private_dir(&run, &self.account).is_err() {
            return Ok(false);
        }
        let reached = self.account.run(&["test".as_ref(), "-w".as_ref(), run.as_os_str()], None)?.status == 0;
        if !reached {
            // Only if it is empty: it was made a moment ago.
            let _ = fs::remove_dir(&run);
        }
        Ok(reached)
    }
}

fn private_dir(path: &Path, account: &Account) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
            account.own(path)
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            if fs::symlink_metadata(path)?.uid() == account.uid {
                Ok(())
            } else {
                account.own(path)
            }
        }
        Err(e) => Err(e),
    }
}

/// A folder everybody may pass, whatever the umask; it may exist already.
pub(super) fn open_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}

pub(super) fn short_hash(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

pub(super) fn random_suffix() -> String {
    let text = Uuid::now_v7().simple().to_string();
    text[text.len() - 8..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(place: &str) -> Home {
        Home { folder: "/x".into(), place: place.into(), account: Account::current() }
    }

    #[test]
    fn a_short_plain_path_holds_its_own_socket() {
        assert_eq!(home("/srv/q/.drayhorse").socket_dir().unwrap(), Path::new("/srv/q/.drayhorse/run"));
        let longest = format!("/{}", "a".repeat(SOCKET_PATH_LIMIT_BYTES - SOCKET_NAME_BYTES - "//run".len()));
        assert_eq!(home(&longest).socket_dir().unwrap(), Path::new(&longest).join("run"));
    }

    #[test]
    fn other_paths_get_a_short_folder_of_their_own() {
        let base = std::env::temp_dir().join(format!("drayhorse-home-{}", Uuid::now_v7()));
        let places = [base.join("a".repeat(120)), base.join("with space"), base.join("with,comma")];
        let mut seen = std::collections::BTreeSet::new();
        for place in &places {
            fs::create_dir_all(place).unwrap();
            let dir = home(place.to_str().unwrap()).socket_dir().unwrap();
            assert!(dir.starts_with("/tmp") && dir.as_os_str().len() < 60, "{}", dir.display());
            assert!(seen.insert(dir));
        }
        fs::remove_dir_all(base).unwrap();
    }
}
