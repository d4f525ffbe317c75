//! The core of Drayhorse, a durable job queue that lives in PostgreSQL.
//!
//! SQL owns every transition of a job (`core/sql/`); this crate owns everything else, once for all languages:
//! connections, the worker's state machine, validation before anything is sent, and the one table of errors.
//! Bindings call [`bridge`] and nothing else. `docs/architecture.md` walks one job through it.
#![forbid(unsafe_code)]

pub mod bridge;
mod contract;
pub mod embedded;
pub mod enqueue;
pub mod error;
pub mod http;
pub mod json;
mod machine;
pub mod migrate;
pub mod policy;
pub mod store;
pub mod time;
mod worker;
