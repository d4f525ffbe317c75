//! The only module a binding calls: control calls as JSON text, jobs and reports in batches, a doorbell.
//! `docs/architecture.md` lists the verbs, the events and the reports.

use crate::error::{Error, Kind, Result};

/// Runs when a submitted call has ended, on a thread of the core: it must only hand the result over.
pub type Done = Box<dyn FnOnce(Result<String>) + Send + 'static>;

/// Rings when a worker has events to take, on a thread of the core: it must only wake the host.
pub type Doorbell = Box<dyn Fn() + Send + Sync + 'static>;

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

/// A running worker: its three threads, its outbox of events and its inbox of reports.
pub struct WorkerHandle {}

impl WorkerHandle {
    /// Starts the threads; the first claim follows at once.
    pub fn start(_client: &Client, _options_json: &str, _doorbell: Doorbell) -> Result<WorkerHandle> {
        Err(Error::new(Kind::Internal, "not built yet"))
    }

    /// Up to `max` events as a JSON array, waiting at most `wait_ms` for the first; `0` never blocks.
    pub fn take(&self, _max: usize, _wait_ms: u64) -> String {
        "[]".to_owned()
    }

    /// Hands over a JSON array of reports; never waits for the database.
    pub fn report(&self, _reports_json: &str) -> Result<()> {
        Ok(())
    }

    /// A call of a running handler (`checkpointGet`, `checkpointPut`, `progress`), by its handle; blocks.
    pub fn call(&self, _verb: &str, _args_json: &str) -> Result<String> {
        Err(Error::new(Kind::Internal, "not built yet"))
    }

    /// The same without blocking.
    pub fn submit(&self, _verb: &str, _args_json: &str, done: Done) {
        done(Err(Error::new(Kind::Internal, "not built yet")));
    }

    /// Starts the drain; the end is the event `stopped`.
    pub fn stop(&self) {}

    /// `{"phase","connected","slots","running","stuck","lastClaimAt"}`.
    pub fn health(&self) -> String {
        "{}".to_owned()
    }

    /// Ends the worker without grace: releases what still runs and joins the threads.
    pub fn close(&self) {}
}
