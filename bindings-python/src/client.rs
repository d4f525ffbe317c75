//! The connection as Python sees it: calls go in with a mailbox, results come out of it.

use crate::failure::raising;
use crate::held::Held;
use crate::mailbox::Mailbox;
use drayhorse_core::bridge;
use drayhorse_core::error::Error;
use drayhorse_core::http;
use pyo3::prelude::*;
use std::sync::Arc;

/// A connection to a queue database.
#[pyclass(frozen, module = "drayhorse._native")]
pub struct Client {
    /// Shared with the thread that connects or closes.
    pub held: Arc<Held<bridge::Client>>,
}

#[pymethods]
impl Client {
    /// Starts to connect: the client is usable when its token has arrived in the mailbox without a failure.
    #[staticmethod]
    fn connect(url: String, options: String, mailbox: &Mailbox) -> PyResult<(Client, u64)> {
        raising(|| {
            let held = Arc::new(Held::new());
            let place = Arc::clone(&held);
            let token = mailbox.letters.deliver_from_thread("connect", move || {
                place.set(bridge::Client::connect(&url, &options)?)?;
                Ok("null".to_owned())
            })?;
            Ok((Client { held }, token))
        })
    }

    /// Starts a call: its token, under which the result arrives, and the ticket to cancel it with.
    fn submit(&self, verb: &str, args: &str, mailbox: &Mailbox) -> PyResult<(u64, u64)> {
        raising(|| {
            let client = self.held.get()?;
            let letters = Arc::clone(&mailbox.letters);
            let token = letters.token();
            let ticket = client.submit(verb, args, Box::new(move |result| letters.deliver(token, result)));
            Ok((token, ticket))
        })
    }

    /// Takes a call back that has not begun; false when it has.
    fn cancel(&self, ticket: u64) -> PyResult<bool> {
        raising(|| Ok(self.held.get()?.cancel(ticket)))
    }

    /// Starts to close: the token arrives when the running calls have ended.
    fn close(&self, mailbox: &Mailbox) -> PyResult<u64> {
        raising(|| {
            self.held.get()?;
            let held = Arc::clone(&self.held);
            mailbox.letters.deliver_from_thread("close", move || {
                held.get()?.close();
                Ok("null".to_owned())
            })
        })
    }

    /// The decision on an HTTP response; needs no connection.
    #[staticmethod]
    fn http_decision(args: &str) -> PyResult<String> {
        raising(|| http::decide(args))
    }

    /// The table of errors, `[{"number","code","retryable","cause"}]`.
    #[staticmethod]
    fn error_table() -> String {
        Error::table_json()
    }
}
