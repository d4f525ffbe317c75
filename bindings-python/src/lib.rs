//! The native half of the Python package `drayhorse`: the module `drayhorse._native`.
//!
//! It carries JSON text between Python and `drayhorse_core::bridge` and decides nothing. No function here waits and
//! none releases the interpreter's lock: whatever may take time runs on a thread of the core (or on one started here),
//! and its result is put in a [`mailbox::Mailbox`], whose file descriptor becomes readable. Python waits for that
//! descriptor by its own means. So Ctrl-C works at once, no Rust thread ever enters the interpreter, and no Rust
//! frame is on a thread's stack when a finalizing interpreter ends that thread (CPython up to 3.13 does so by
//! unwinding the stack, which aborts the process if it meets a Rust frame).

mod client;
mod failure;
mod held;
mod mailbox;
mod worker;

use pyo3::prelude::*;

/// `drayhorse._native`; the typed package around it is the public surface.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::failure::Failure;
    #[pymodule_export]
    use crate::mailbox::Mailbox;
    #[pymodule_export]
    use crate::worker::WorkerHandle;
}
