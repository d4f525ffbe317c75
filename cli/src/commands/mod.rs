//! One file per command: its options, what it asks the core, and how the answer is shown.

pub mod cancel;
pub mod contracts;
pub mod dev;
pub mod endpoint;
pub mod endpoints;
pub mod enqueue;
pub mod errors;
pub mod grant;
pub mod job;
pub mod jobs;
pub mod migrate;
pub mod preview_policy;
pub mod prune;
pub mod queue;
pub mod queues;
pub mod redrive;
pub mod replay;
pub mod run;
pub mod status;
pub mod workers;
