//! Control calls: one JSON text in, one JSON text out, by a bounded pool of connections.

use super::Done;
use crate::error::{Error, Kind, Result};

/// A connection to one queue database: a bounded pool behind which calls wait their turn.
#[derive(Clone)]
pub struct Client {}

impl Client {
    /// Checks the URL and options and starts the embedded server if asked; connections open on first use.
    pub fn connect(_url: &str, _options_json: &str) -> Result<Client> {
        Err(Error::new(Kind::Internal, "not built yet"))
    }

    /// One control call; blocks until it has ended.
    pub fn call(&self, _verb: &str, _args_json: &str) -> Result<String> {
        Err(Error::new(Kind::Internal, "not built yet"))
    }

    /// One control call that never blocks the caller; returns a ticket for [`Client::cancel`].
    pub fn submit(&self, _verb: &str, _args_json: &str, done: Done) -> u64 {
        done(Err(Error::new(Kind::Internal, "not built yet")));
        0
    }

    /// Takes a submitted call out of the queue; false when it already runs or has ended.
    pub fn cancel(&self, _ticket: u64) -> bool {
        false
    }

    /// Ends the pool after the running calls; later calls are `closed`.
    pub fn close(&self) {}
}
