//! A worker as the bindings see it: events out, reports in, a doorbell between.

use std::fmt;
use std::sync::mpsc;

use super::{Client, Done, Doorbell};
use crate::error::{Error, Kind, Result};
use crate::worker::Worker;

/// A running worker: its threads, its outbox of events and its inbox of reports.
pub struct WorkerHandle {
    /// None only while the handle is dropped. Leaked in a forked child: its locks may be held by threads that exist
    /// only in the parent.
    worker: Option<Worker>,
    pid: u32,
}

impl WorkerHandle {
    /// Starts the threads; the first claim follows at once.
    pub fn start(client: &Client, options_json: &str, doorbell: Doorbell) -> Result<WorkerHandle> {
        let worker = Worker::start(client, options_json, doorbell)?;
        Ok(WorkerHandle { worker: Some(worker), pid: std::process::id() })
    }

    /// Up to `max` events as a JSON array, waiting at most `wait_ms` for the first; `0` never blocks.
    pub fn take(&self, max: usize, wait_ms: u64) -> String {
        match self.worker() {
            Ok(worker) => worker.take(max, wait_ms),
            Err(error) => format!(r#"[{{"event":"stopped","error":{}}}]"#, error.to_json()),
        }
    }

    /// Hands over a JSON array of reports; never waits for the database.
    pub fn report(&self, reports_json: &str) -> Result<()> {
        self.worker()?.report(reports_json)
    }

    /// A call of a running handler (`checkpointGet`, `checkpointPut`, `progress`), by its handle; blocks.
    pub fn call(&self, verb: &str, args_json: &str) -> Result<String> {
        let (send, receive) = mpsc::sync_channel(1);
        let done: Done = Box::new(move |result| {
            // Nobody listens any more only when the caller's thread has gone.
            send.send(result).ok();
        });
        self.worker()?.submit(verb, args_json, done);
        receive.recv().unwrap_or_else(|_| Err(Error::new(Kind::Internal, "the call ended without an answer")))
    }

    /// The same without blocking.
    pub fn submit(&self, verb: &str, args_json: &str, done: Done) {
        match self.worker() {
            Ok(worker) => worker.submit(verb, args_json, done),
            Err(error) => done(Err(error)),
        }
    }

    /// Starts the drain; the end is the event `stopped`.
    pub fn stop(&self) {
        if let Ok(worker) = self.worker() {
            worker.stop();
        }
    }

    /// `{"phase","connected","listening","slots","running","stuck","lastClaimMsAgo"}`.
    pub fn health(&self) -> String {
        match self.worker() {
            Ok(worker) => worker.health(),
            Err(_) => {
                r#"{"phase":"stopped","connected":false,"listening":false,"slots":0,"running":0,"stuck":[],"lastClaimMsAgo":null}"#
                    .to_owned()
            }
        }
    }

    /// Ends the worker without grace: releases what still runs and joins the threads.
    pub fn close(&self) {
        if let Ok(worker) = self.worker() {
            worker.close();
        }
    }

    fn worker(&self) -> Result<&Worker> {
        if std::process::id() != self.pid {
            return Err(Error::new(
                Kind::UsedAfterFork,
                "this worker belongs to the parent process: start another after the fork",
            ));
        }
        self.worker.as_ref().ok_or_else(|| Error::new(Kind::Closed, "the worker is closed"))
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        let worker = self.worker.take();
        if std::process::id() != self.pid {
            std::mem::forget(worker);
        }
    }
}

impl fmt::Debug for WorkerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerHandle").finish_non_exhaustive()
    }
}
