//! `NativeClient`: the control calls of one queue. The facade's `Queue` owns it.

use crate::boundary::{contain, detach, guard};
use crate::mailbox::{Bell, Completion, Mailbox};
use drayhorse_core::bridge::Client;
use drayhorse_core::error::{Error, Kind, Result};
use napi_derive::napi;
use std::sync::{Arc, OnceLock};

/// The core's client, from `connect` until the last user is gone. Dropping it, which the garbage collector or the
/// teardown of a `worker_threads` thread may do, waits for nothing: what was submitted is still run.
pub struct Connection {
    client: OnceLock<Client>,
}

impl Connection {
    /// The core's client; an error before `connect` has ended well.
    pub fn client(&self) -> Result<&Client> {
        self.client.get().ok_or_else(|| Error::new(Kind::Closed, "the queue is not connected"))
    }
}

/// One queue database.
#[napi]
pub struct NativeClient {
    mailbox: Arc<Mailbox>,
    connection: Arc<Connection>,
}

impl NativeClient {
    /// Shared with the workers of this queue, so that the client outlives them.
    pub fn connection(&self) -> Arc<Connection> {
        self.connection.clone()
    }
}

#[napi]
impl NativeClient {
    /// Nothing is opened yet; `bell` is called when [`NativeClient::take_completions`] has something.
    #[napi(constructor)]
    pub fn new(bell: Bell) -> napi::Result<NativeClient> {
        guard(|| {
            Ok(NativeClient {
                mailbox: Arc::new(Mailbox::new(bell)),
                connection: Arc::new(Connection { client: OnceLock::new() }),
            })
        })
    }

    /// Checks the URL and the options, and starts the embedded server if asked.
    #[napi]
    pub fn connect(&self, ticket: u32, url: String, options_json: String) -> napi::Result<()> {
        guard(|| {
            let (mailbox, connection) = (self.mailbox.clone(), self.connection.clone());
            detach("drayhorse-connect", move || {
                let result = contain(|| {
                    let client = Client::connect(&url, &options_json)?;
                    match connection.client.set(client) {
                        Ok(()) => Ok("null".to_owned()),
                        Err(second) => {
                            second.close();
                            Err(Error::new(Kind::Internal, "connect was called twice"))
                        }
                    }
                });
                mailbox.put(ticket, result);
            })
        })
    }

    /// Starts a control call; its end is the completion `ticket`.
    #[napi]
    pub fn submit(&self, ticket: u32, verb: String, args_json: String) -> napi::Result<()> {
        guard(|| {
            let mailbox = self.mailbox.clone();
            self.connection.client()?.submit(&verb, &args_json, Box::new(move |result| mailbox.put(ticket, result)));
            Ok(())
        })
    }

    /// Ends the client after its running calls; the end is the completion `ticket`.
    #[napi]
    pub fn close(&self, ticket: u32) -> napi::Result<()> {
        guard(|| {
            let (mailbox, client) = (self.mailbox.clone(), self.connection.client()?.clone());
            detach("drayhorse-close", move || {
                let result = contain(|| {
                    client.close();
                    Ok("null".to_owned())
                });
                mailbox.put(ticket, result);
            })
        })
    }

    /// The calls that have ended since the last look.
    #[napi]
    pub fn take_completions(&self) -> napi::Result<Vec<Completion>> {
        guard(|| {
            self.mailbox.answer();
            Ok(self.mailbox.take())
        })
    }
}
