//! A worker: three threads with a connection each, a clock, and the machine that decides between them. Started by
//! [`crate::bridge::WorkerHandle`], which is all that bindings see of it.

mod calls;
mod contracts;
mod options;
mod outbox;
mod report;
mod rows;
mod shared;
mod statements;
mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::bridge::{Client, Done, Doorbell};
use crate::error::{Error, Kind, Result};
use crate::machine::Event;
use options::Options;
use shared::Shared;

/// A thread's name and what it does until the end.
type Part = (&'static str, fn(&Shared));

/// The longest a blocking `take` waits in one piece.
const LONGEST_TAKE_MS: u64 = 3_600_000;

/// A running worker.
pub struct Worker {
    shared: Arc<Shared>,
    client: Client,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Worker {
    /// Checks the options and starts the threads; whether the database can be reached is told by events.
    pub fn start(client: &Client, options: &str, doorbell: Doorbell) -> Result<Worker> {
        let options = Options::parse(options)?;
        let store = client.store()?;
        store.refuse_fork()?;
        let shared = Arc::new(Shared::new(store, options, doorbell));
        let parts: [Part; 4] = [
            ("pump", threads::pump),
            ("keeper", threads::keeper),
            ("listener", threads::listener),
            ("clock", Shared::run_clock),
        ];
        let mut running = Vec::new();
        for (name, run) in parts {
            let own = shared.clone();
            let spawned = std::thread::Builder::new().name(format!("drayhorse-{name}")).spawn(move || {
                if catch_unwind(AssertUnwindSafe(|| run(&own))).is_err() {
                    own.abandon(Error::new(Kind::Internal, format!("the worker's {name} failed unexpectedly")));
                }
            });
            match spawned {
                Ok(thread) => running.push(thread),
                Err(e) => {
                    let error = Error::new(Kind::Internal, format!("no thread for the worker's {name}: {e}"));
                    shared.abandon(error.clone());
                    return Err(error);
                }
            }
        }
        Ok(Worker { shared, client: client.clone(), threads: Mutex::new(running) })
    }

    /// Up to `max` events, waiting at most `wait_ms` for the first.
    pub fn take(&self, max: usize, wait_ms: u64) -> String {
        self.shared.take(max, Duration::from_millis(wait_ms.min(LONGEST_TAKE_MS)))
    }

    /// Hands reports to the machine.
    pub fn report(&self, reports: &str) -> Result<()> {
        for event in report::parse(reports)? {
            self.shared.step(contracts::check_results(&self.shared, event));
        }
        Ok(())
    }

    /// A call of a running handler.
    pub fn submit(&self, verb: &str, args: &str, done: Done) {
        calls::submit(&self.shared, &self.client, verb, args, done);
    }

    /// Starts the drain.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// For probes, as JSON.
    pub fn health(&self) -> String {
        self.shared.look(|machine, now| {
            let health = machine.health();
            let stuck: Vec<_> = health
                .stuck
                .iter()
                .map(|stuck| {
                    serde_json::json!({
                        "handle": stuck.handle,
                        "jobId": stuck.job.to_string(),
                        "reason": stuck.reason.as_str(),
                        "sinceMs": now.saturating_sub(stuck.since_ms),
                    })
                })
                .collect();
            serde_json::json!({
                "phase": health.phase.as_str(),
                "connected": health.connected,
                "listening": health.listening,
                "slots": health.slots,
                "running": health.running,
                "stuck": stuck,
                "lastClaimMsAgo": health.last_claim_ms.map(|at| now.saturating_sub(at)),
            })
            .to_string()
        })
    }

    /// Ends without grace and joins the threads.
    pub fn close(&self) {
        self.shared.step(Event::Close);
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A doorbell that closes the worker runs on one of its threads.
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!("a thread of a worker panicked");
            }
        }
    }
}

impl Drop for Worker {
    /// Like `close`, but nothing is waited for: handles are dropped by garbage collectors.
    fn drop(&mut self) {
        self.shared.step(Event::Close);
    }
}
