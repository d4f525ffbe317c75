//! A worker as the bindings see it: events out, reports in, a doorbell between.

use super::{Client, Done, Doorbell};
use crate::error::{Error, Kind, Result};

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
