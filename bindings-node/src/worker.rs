//! `NativeWorker`: one running worker. The facade's `Worker` owns it from `run()` until the drain has ended.

use crate::boundary::{contain, detach, guard};
use crate::client::{Connection, NativeClient};
use crate::mailbox::{Bell, Completion, Mailbox};
use drayhorse_core::bridge::WorkerHandle;
use drayhorse_core::error::{Error, Kind, Result};
use napi_derive::napi;
use std::sync::{Arc, OnceLock};

/// The running threads, and the connection they use: it is closed after them.
struct Running {
    handle: OnceLock<WorkerHandle>,
    connection: Arc<Connection>,
}

impl Running {
    fn handle(&self) -> Result<&WorkerHandle> {
        self.handle.get().ok_or_else(|| Error::new(Kind::Closed, "the worker does not run"))
    }
}

impl Drop for Running {
    /// Reached without `close` when a `worker_threads` thread is terminated: what still runs is released, by a
    /// thread of its own because joining the core's threads takes time.
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else {
            return;
        };
        let (handle, connection) = (Arc::new(handle), self.connection.clone());
        let spare = handle.clone();
        let close = move || {
            hang_up(&handle);
            drop(connection);
        };
        if detach("drayhorse-close", close).is_err() {
            hang_up(&spare);
        }
    }
}

/// Closes when nobody is left who could be told of a panic.
fn hang_up(handle: &WorkerHandle) {
    drop(contain(|| {
        handle.close();
        Ok(())
    }));
}

/// One worker: job batches out, report batches in.
#[napi]
pub struct NativeWorker {
    mailbox: Arc<Mailbox>,
    running: Arc<Running>,
}

#[napi]
impl NativeWorker {
    /// Nothing runs yet; `bell` is called when there are events or completions to take.
    #[napi(constructor)]
    pub fn new(client: &NativeClient, bell: Bell) -> napi::Result<NativeWorker> {
        guard(|| {
            Ok(NativeWorker {
                mailbox: Arc::new(Mailbox::new(bell)),
                running: Arc::new(Running { handle: OnceLock::new(), connection: client.connection() }),
            })
        })
    }

    /// Starts the core's threads; the end of the start is the completion `ticket`.
    #[napi]
    pub fn start(&self, ticket: u32, options_json: String) -> napi::Result<()> {
        guard(|| {
            let (mailbox, running) = (self.mailbox.clone(), self.running.clone());
            detach("drayhorse-start", move || {
                let result = contain(|| {
                    let bell = mailbox.clone();
                    let client = running.connection.client()?;
                    let handle = WorkerHandle::start(client, &options_json, Box::new(move || bell.ring()))?;
                    match running.handle.set(handle) {
                        Ok(()) => Ok("null".to_owned()),
                        Err(second) => {
                            second.close();
                            Err(Error::new(Kind::Internal, "start was called twice"))
                        }
                    }
                });
                mailbox.put(ticket, result);
            })
        })
    }

    /// Up to `max` events as a JSON array, `[]` when there are none.
    #[napi]
    pub fn take_events(&self, max: u32) -> napi::Result<String> {
        guard(|| {
            self.mailbox.answer();
            Ok(self.running.handle()?.take(max as usize, 0))
        })
    }

    /// The handler calls that have ended since the last look.
    #[napi]
    pub fn take_completions(&self) -> napi::Result<Vec<Completion>> {
        guard(|| {
            self.mailbox.answer();
            Ok(self.mailbox.take())
        })
    }

    /// Hands over a JSON array of reports.
    #[napi]
    pub fn report(&self, reports_json: String) -> napi::Result<()> {
        guard(|| self.running.handle()?.report(&reports_json))
    }

    /// Starts a call of a running handler; its end is the completion `ticket`.
    #[napi]
    pub fn submit(&self, ticket: u32, verb: String, args_json: String) -> napi::Result<()> {
        guard(|| {
            let mailbox = self.mailbox.clone();
            self.running.handle()?.submit(&verb, &args_json, Box::new(move |result| mailbox.put(ticket, result)));
            Ok(())
        })
    }

    /// How long the lease of a running handler still holds, as `{"leaseRemainingMs"}`; answered from memory.
    #[napi]
    pub fn lease_remaining(&self, handle: f64) -> napi::Result<String> {
        // Handles count up from 1 and stay far below 2^53, so the double is exact.
        guard(|| self.running.handle()?.call("leaseRemaining", &format!("{{\"handle\":{handle:.0}}}")))
    }

    /// Starts the drain; its end is the event `stopped`.
    #[napi]
    pub fn stop(&self) -> napi::Result<()> {
        guard(|| {
            self.running.handle()?.stop();
            Ok(())
        })
    }

    /// `{"phase","connected","listening","slots","running","stuck"}`.
    #[napi]
    pub fn health(&self) -> napi::Result<String> {
        guard(|| Ok(self.running.handle()?.health()))
    }

    /// Ends the worker without grace; the end is the completion `ticket`.
    #[napi]
    pub fn close(&self, ticket: u32) -> napi::Result<()> {
        guard(|| {
            let (mailbox, running) = (self.mailbox.clone(), self.running.clone());
            detach("drayhorse-close", move || {
                let result = contain(|| {
                    running.handle()?.close();
                    Ok("null".to_owned())
                });
                mailbox.put(ticket, result);
            })
        })
    }
}
