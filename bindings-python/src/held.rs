//! A handle of the core as a Python object holds it: bound to the process that made it, and let go of without waiting.

use drayhorse_core::error::{Error, Kind, Result};
use std::sync::OnceLock;

/// A core handle, set once the thread that makes it is done.
pub struct Held<T: Send + 'static> {
    /// The process that made it.
    pid: u32,
    /// Empty while connecting or after a failure to.
    handle: OnceLock<T>,
}

impl<T: Send + 'static> Held<T> {
    /// An empty place, owned by this process.
    pub fn new() -> Held<T> {
        Held { pid: std::process::id(), handle: OnceLock::new() }
    }

    /// Fills the place.
    pub fn set(&self, handle: T) -> Result<()> {
        self.handle.set(handle).map_err(|_| Error::new(Kind::Internal, "a handle was made twice"))
    }

    /// The handle, for use in the process that made it. Asked before anything that takes a lock: in a forked child a
    /// lock may have been copied while a thread that no longer exists held it.
    pub fn get(&self) -> Result<&T> {
        if self.pid != std::process::id() {
            let cause = Kind::UsedAfterFork.cause();
            return Err(Error::new(Kind::UsedAfterFork, cause));
        }
        self.handle.get().ok_or_else(|| Error::new(Kind::Closed, "The handle is not connected."))
    }
}

impl<T: Send + 'static> Drop for Held<T> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else {
            return;
        };
        if self.pid != std::process::id() {
            // The parent goes on using the sockets, and the threads to be joined do not exist here.
            std::mem::forget(handle);
            return;
        }
        // Python lets go of objects at any moment, with the interpreter's lock held and at its exit: the waiting that
        // a drop may involve is done elsewhere. If no thread can be had the drop happens here.
        let _ = std::thread::Builder::new().name("drayhorse-drop".to_owned()).spawn(move || drop(handle));
    }
}
