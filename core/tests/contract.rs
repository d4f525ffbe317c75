//! Contracts against real servers: publications, what clients learn of them, and what workers do with them.

#[allow(dead_code)]
#[path = "worker/host.rs"]
mod host;
mod support;
mod contract {
    mod client;
    mod transaction;
    mod worker;
}
