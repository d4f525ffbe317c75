//! A private PostgreSQL server behind `embedded:PATH`: nothing to install, no port, no root, for development, tests
//! and small deployments on one machine. [`open`] finds or makes the cluster of a folder, starts its server unless it
//! runs, and the server stops when its last user is gone, however that user ended. The bridge calls it at connect.
//!
//! Any number of processes, of any language, may open one folder at once. Each holds `users.lock` shared for the life
//! of its [`Server`]; `start.lock` lets one opener at a time look and start; the server belongs to a supervisor
//! (`supervisor.sh`) that waits for `users.lock` alone and then stops it. Nothing depends on a process number, so a
//! SIGKILL at any moment leaves nothing that the next opener cannot put right.
//!
//! | in `PATH` | |
//! |---|---|
//! | `start.lock`, `users.lock` | who uses the folder, who starts its server |
//! | `data` | the cluster; a link into `/var/lib/drayhorse` when the server's user cannot reach `PATH` (root only) |
//! | `run` | the socket, the server's lock and `server.log` |
//! | `postgres-*` | a repaired copy of a package whose install script did not run |
//!
//! Deleting `PATH` deletes the database, except for a cluster in `/var/lib/drayhorse`: `PATH/data` says which folder.
//! A folder made again under the same name starts empty either way.
//!
//! Who may connect is decided by the folder that holds the socket: mode 700, so the server's user and root.
//! Everything commits synchronously; a claim must not ask for less here.
//!
//! A child forked without exec shares its parent's lock: it cannot give it up for the parent, but if the parent is
//! killed the server stays until the child has ended too. A child that wants to use the folder opens it itself.

mod account;
mod binaries;
mod cluster;
mod copy;
mod home;
mod lock;
mod server;

use crate::error::{Error, Kind, Result};
use home::Home;
use lock::Lock;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an opener waits for others that start the server: eight first openers are served one after another.
const START_LOCK_LIMIT: Duration = Duration::from_secs(180);

/// How long an opener waits for a server that is just being stopped.
const STOP_LIMIT: Duration = Duration::from_secs(90);

/// What an SDK may add to the search for PostgreSQL.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A folder with `postgres` and `initdb`, from a package the SDK came with.
    pub postgres_bin: Option<PathBuf>,
}

/// A use of the folder's server: it runs at least until this is dropped. Dropping does not wait for the stop.
pub struct Server {
    url: String,
    data_dir: PathBuf,
    socket_dir: PathBuf,
    port: u16,
    _user: Lock,
}

impl Server {
    /// `host=… port=… user=postgres dbname=postgres`, for every client built on libpq's syntax.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where the cluster's files are.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The folder of the unix socket.
    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// The number in the socket's name; no TCP port is opened.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Uses the server of the folder `path`, which is made when it does not exist. A server that died while it was in use
/// is started again by the next `open`, under the same URL.
///
/// Fails with `embedded_failed` and a sentence on what to do: no PostgreSQL found, another major version in the
/// folder, a folder of another user, or what the server said when it did not start.
pub fn open(path: &Path, options: &Options) -> Result<Server> {
    let folder = home::prepare(path)?;
    let start = Lock::exclusive(&folder.join("start.lock"), START_LOCK_LIMIT)?;
    let home = Home::find_or_make(&folder)?;
    let user = Lock::shared(&home.users_lock(), STOP_LIMIT)?;
    let running = server::ensure(&home, options, &start)?;
    drop(start);
    Ok(Server {
        url: format!("host={} port={} user=postgres dbname=postgres", running.socket_dir.display(), running.port),
        data_dir: home.data(),
        socket_dir: running.socket_dir,
        port: running.port,
        _user: user,
    })
}

fn failed(message: impl Into<String>) -> Error {
    Error::new(Kind::EmbeddedFailed, message)
}
