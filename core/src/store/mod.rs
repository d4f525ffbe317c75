//! The way to the database: a [`Store`] knows where it is and how to reach it, a [`Connection`] is one session.
//!
//! A store is made once per client and shared by its executor threads and by the threads of its workers. It owns the
//! parsed URL, the TLS set-up, the quoted schema name and, for `embedded:PATH`, the private server, which lives as
//! long as the store. It holds no connection itself: whoever opens one owns it and uses it on one thread.

mod connection;
mod dsn;
mod fault;
mod options;
mod retry;
mod schema;
mod tls;

pub use connection::{Connection, Notification, Param};
pub use options::Options;
pub use postgres::Row;
pub use postgres::types::Type;
pub use retry::{Backoff, Link};
pub use schema::{Compatibility, Schema};

use crate::embedded;
use crate::error::{Error, Kind, Result};
use dsn::Dsn;
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tls::Tls;

/// One database and one schema in it: everything that is needed to open a connection.
pub struct Store {
    dsn: Dsn,
    tls: Tls,
    schema: Schema,
    options: Options,
    pid: u32,
    reached: AtomicBool,
    /// Keeps the private server of `embedded:PATH` running. Leaked in a forked child, whose parent still uses it.
    server: ManuallyDrop<Option<Private>>,
}

/// The private server and what it was opened with, to start it again should it have died.
struct Private {
    path: PathBuf,
    settings: embedded::Options,
    server: Mutex<embedded::Server>,
}

impl Private {
    fn open(path: &str, options: &Options) -> Result<Private> {
        if path.is_empty() {
            return Err(Error::argument("url", "embedded: must be followed by the path of a folder"));
        }
        let path = std::path::absolute(path).map_err(|_| {
            Error::new(Kind::EmbeddedFailed, "the working directory cannot be read: give an absolute path")
        })?;
        let settings = embedded::Options { postgres_bin: options.postgres_bin.clone() };
        let server = Mutex::new(embedded::open(&path, &settings)?);
        Ok(Private { path, settings, server })
    }

    fn url(&self) -> String {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).url().to_owned()
    }

    /// Starts the server again if it has died; its URL stays the same.
    fn revive(&self) -> Result<()> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        *server = embedded::open(&self.path, &self.settings)?;
        Ok(())
    }
}

impl Store {
    /// Checks the URL and the options, and starts the private server if the URL asks for one. Opens no connection.
    pub fn open(url: &str, options: Options) -> Result<Store> {
        let schema = Schema::new(&options.schema)?;
        let server = match url.strip_prefix("embedded:") {
            Some(path) => Some(Private::open(path, &options)?),
            None => None,
        };
        let mut dsn = match &server {
            Some(server) => Dsn::parse(&server.url())?,
            None => Dsn::parse(url)?,
        };
        dsn.apply(&options)?;
        let tls = Tls::build(&dsn.tls)?;
        Ok(Store {
            dsn,
            tls,
            schema,
            options,
            pid: std::process::id(),
            reached: AtomicBool::new(false),
            server: ManuallyDrop::new(server),
        })
    }

    /// A new session, ready for use, within `connectTimeoutMs` over all hosts of the URL.
    pub fn connect(&self) -> Result<Connection> {
        self.refuse_fork()?;
        let connection = match (self.dial(), self.server.as_ref()) {
            (Err(error), Some(server)) if error.kind() == Kind::ConnectionLost => {
                tracing::warn!("the embedded server does not answer: it is started again");
                server.revive()?;
                self.dial()?
            }
            (outcome, _) => outcome?,
        };
        self.reached.store(true, Ordering::Relaxed);
        Ok(connection)
    }

    fn dial(&self) -> Result<Connection> {
        Connection::open(&self.dsn, &self.tls, self.connect_timeout(), self.statement_timeout())
            .map_err(|error| self.dsn.without_secrets(error))
    }

    /// Whether some connection has worked: then a failing one is worth a second try, before that it is a mistake.
    pub fn reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    /// The schema, for quoting and for its version.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether this is the private server of `embedded:PATH`, which commits everything synchronously.
    pub fn is_embedded(&self) -> bool {
        self.server.is_some()
    }

    /// How long opening a connection may take.
    pub fn connect_timeout(&self) -> Duration {
        Duration::from_millis(self.options.connect_timeout_ms.or(self.dsn.connect_timeout_ms).unwrap_or(10_000))
    }

    /// How long one statement may take before it is cancelled.
    pub fn statement_timeout(&self) -> Duration {
        Duration::from_millis(self.options.statement_timeout_ms.or(self.dsn.statement_timeout_ms).unwrap_or(60_000))
    }

    /// True in a child process made by fork after the store was opened.
    pub fn forked(&self) -> bool {
        std::process::id() != self.pid
    }

    /// `used_after_fork` in a child process.
    pub fn refuse_fork(&self) -> Result<()> {
        if self.forked() {
            return Err(Error::new(
                Kind::UsedAfterFork,
                "this handle belongs to the parent process: connect again after the fork",
            ));
        }
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let server = std::mem::replace(&mut self.server, ManuallyDrop::new(None));
        if !self.forked() {
            drop(ManuallyDrop::into_inner(server));
        }
    }
}

impl fmt::Debug for Store {
    /// Nothing of the URL: it may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("schema", &self.schema.name()).finish_non_exhaustive()
    }
}
