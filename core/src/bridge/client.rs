//! Control calls: one JSON text in, one JSON text out, by a bounded pool of connections.
//!
//! A [`Client`] is a handle; behind it are a [`Pool`] of executor threads and the [`Store`] they connect to. `verbs`
//! knows what each call means, `pool` when and by whom it is run, `batch` how lone enqueues share a statement.

mod batch;
mod call;
mod contracts;
mod pool;
mod report;
mod verbs;

use super::Done;
use crate::error::{Error, Kind, Result};
use crate::store::{Options, Store};
use call::Call;
use pool::Pool;
use std::fmt;
use std::sync::{Arc, mpsc};
use verbs::Verb;

/// A connection to one queue database: a bounded pool behind which calls wait their turn.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

/// What the clones of a client share, until the last of them is gone.
struct Handle {
    pid: u32,
    /// None only while the handle is dropped. Leaked in a forked child: the locks may be held by threads that exist
    /// only in the parent.
    pool: Option<Arc<Pool>>,
}

impl Client {
    /// Checks the URL and options and starts the embedded server if asked; connections open on first use.
    pub fn connect(url: &str, options_json: &str) -> Result<Client> {
        let store = Store::open(url, Options::parse(options_json)?)?;
        let pool = Pool::new(Arc::new(store));
        Ok(Client { handle: Arc::new(Handle { pid: std::process::id(), pool: Some(pool) }) })
    }

    /// One control call; blocks until it has ended. Not for a completion callback, which runs on a thread of the pool.
    pub fn call(&self, verb: &str, args_json: &str) -> Result<String> {
        let pool = self.pool()?;
        let verb = Verb::parse(verb)?;
        if verb.is_local() {
            pool.store()?;
            return verb.run_locally(args_json);
        }
        if pool.is_this_thread() {
            return Err(Error::new(
                Kind::Internal,
                "a completion callback must not call the client: it would wait for itself",
            ));
        }
        let (send, receive) = mpsc::sync_channel(1);
        let done: Done = Box::new(move |result| {
            // Nobody listens any more only when the caller's thread has gone.
            send.send(result).ok();
        });
        pool.submit(Call::new(verb, args_json), done);
        receive.recv().unwrap_or_else(|_| Err(Error::new(Kind::Internal, "the call ended without an answer")))
    }

    /// One control call that never blocks the caller; returns a ticket for [`Client::cancel`].
    pub fn submit(&self, verb: &str, args_json: &str, done: Done) -> u64 {
        match self.pool().and_then(|pool| Ok((pool, Verb::parse(verb)?))) {
            Ok((pool, verb)) => pool.submit(Call::new(verb, args_json), done),
            Err(error) => {
                done(Err(error));
                0
            }
        }
    }

    /// Takes a submitted call out of the queue; false when it already runs or has ended. Its callback then gets
    /// `wait_timeout` with the detail `canceled`.
    pub fn cancel(&self, ticket: u64) -> bool {
        self.pool().is_ok_and(|pool| pool.cancel(ticket))
    }

    /// Ends the pool after the running calls; waiting and later calls are `closed`.
    pub fn close(&self) {
        if let Ok(pool) = self.pool() {
            pool.close();
        }
    }

    /// What a worker connects with.
    pub(crate) fn store(&self) -> Result<Arc<Store>> {
        self.pool()?.store()
    }

    fn pool(&self) -> Result<&Arc<Pool>> {
        if std::process::id() != self.handle.pid {
            return Err(Error::new(
                Kind::UsedAfterFork,
                "this client belongs to the parent process: connect again after the fork",
            ));
        }
        self.handle.pool.as_ref().ok_or_else(|| Error::new(Kind::Closed, "the client is closed"))
    }
}

impl Drop for Handle {
    /// Calls that were submitted are still run; nothing is waited for.
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        match std::process::id() == self.pid {
            true => pool.abandon(),
            false => std::mem::forget(pool),
        }
    }
}

impl fmt::Debug for Client {
    /// Nothing of the URL: it may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
