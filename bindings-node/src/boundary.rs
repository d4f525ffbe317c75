//! The wall between Rust and Node: panics stop here, errors cross as the JSON of the one error table, and work
//! that blocks moves to a thread of its own. Every export and every thread of this crate goes through it.

use drayhorse_core::error::{Error, Kind, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// Runs an export's body. The JavaScript exception's message is [`Error::to_json`].
pub fn guard<T>(body: impl FnOnce() -> Result<T>) -> napi::Result<T> {
    contain(body).map_err(|error| napi::Error::from_reason(error.to_json()))
}

/// Runs `body`; a panic becomes an `internal` error.
pub fn contain<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // Unwind safety: the core guards its own state, and nothing of this crate is half-written over a panic.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic_text(panic.as_ref()).to_owned();
        // A payload may panic again when it is dropped; leaking it is the lesser harm.
        std::mem::forget(panic);
        Err(Error::new(Kind::Internal, format!("the native library panicked: {text}")))
    })
}

/// Runs `body` on a thread of its own, so that neither the event loop nor Node's small thread pool ever waits.
pub fn detach(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map(drop)
        .map_err(|error| Error::new(Kind::Internal, format!("no thread could be started: {error}")))
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
