//! The only module a binding calls: control calls as JSON text, jobs and reports in batches, a doorbell.
//! `docs/architecture.md` lists the verbs, the events and the reports.

mod client;
mod worker;

pub use client::Client;
pub use worker::WorkerHandle;

use crate::error::Result;

/// Runs when a submitted call has ended, on a thread of the core: it must only hand the result over.
pub type Done = Box<dyn FnOnce(Result<String>) + Send + 'static>;

/// Rings when a worker has events to take, on a thread of the core: it must only wake the host.
pub type Doorbell = Box<dyn Fn() + Send + Sync + 'static>;
