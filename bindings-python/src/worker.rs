//! A running worker as Python sees it: events out, reports in, a mailbox that rings when there is something to take.

use crate::client::Client;
use crate::failure::raising;
use crate::held::Held;
use crate::mailbox::Mailbox;
use drayhorse_core::bridge;
use pyo3::prelude::*;
use std::sync::Arc;

/// The threads of one worker.
#[pyclass(frozen, module = "drayhorse._native")]
pub struct WorkerHandle {
    /// Shared with the thread that starts or closes.
    held: Arc<Held<bridge::WorkerHandle>>,
}

#[pymethods]
impl WorkerHandle {
    /// Starts a worker that rings `bell`: it is usable when the token has arrived in `mailbox` without a failure.
    #[staticmethod]
    fn start(client: &Client, options: String, bell: &Mailbox, mailbox: &Mailbox) -> PyResult<(WorkerHandle, u64)> {
        raising(|| {
            client.held.get()?;
            let held = Arc::new(Held::new());
            let place = Arc::clone(&held);
            let client = Arc::clone(&client.held);
            let bell = Arc::clone(&bell.letters);
            let token = mailbox.letters.deliver_from_thread("start", move || {
                let doorbell = Box::new(move || bell.ring());
                place.set(bridge::WorkerHandle::start(client.get()?, &options, doorbell)?)?;
                Ok("null".to_owned())
            })?;
            Ok((WorkerHandle { held }, token))
        })
    }

    /// Up to `max` events as a JSON array; `[]` when there are none.
    fn take(&self, max: usize) -> PyResult<String> {
        raising(|| Ok(self.held.get()?.take(max, 0)))
    }

    /// Hands over a JSON array of reports.
    fn report(&self, reports: &str) -> PyResult<()> {
        raising(|| self.held.get()?.report(reports))
    }

    /// Starts a call of a running handler; the result arrives in `mailbox` under the token.
    fn submit(&self, verb: &str, args: &str, mailbox: &Mailbox) -> PyResult<u64> {
        raising(|| {
            let worker = self.held.get()?;
            let letters = Arc::clone(&mailbox.letters);
            let token = letters.token();
            worker.submit(verb, args, Box::new(move |result| letters.deliver(token, result)));
            Ok(token)
        })
    }

    /// Starts the drain; its end is the event `stopped`.
    fn stop(&self) -> PyResult<()> {
        raising(|| {
            self.held.get()?.stop();
            Ok(())
        })
    }

    /// How the worker is, as JSON.
    fn health(&self) -> PyResult<String> {
        raising(|| Ok(self.held.get()?.health()))
    }

    /// Starts to end the worker without grace: the token arrives when its threads have ended.
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
}
