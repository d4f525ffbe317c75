//! Where results wait for Python: a queue filled by threads of the core, and a socket pair whose reading end becomes
//! readable when something arrived. Calls put their results in, a worker only rings.

use crate::failure::guarded;
use drayhorse_core::error::{Error, Kind, Result};
use pyo3::prelude::*;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The part that the core's threads share with Python.
pub struct Letters {
    /// Written to by threads of the core; never blocks.
    bell: UnixStream,
    /// Read by Python's thread; kept here so that the writing end never meets a closed peer.
    heard: UnixStream,
    /// Results by the token of their call, in the order of arrival.
    arrived: Mutex<Vec<(u64, Result<String>)>>,
    /// The next token.
    next: AtomicU64,
}

impl Letters {
    /// A name for one call, unique in this mailbox.
    pub fn token(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Wakes whoever waits for the descriptor.
    pub fn ring(&self) {
        // A full socket is the only failure there is, and then unread rings are waiting already.
        let _ = (&self.bell).write(&[1]);
    }

    /// Puts in the result of the call `token`.
    pub fn deliver(&self, token: u64, result: Result<String>) {
        let first = {
            let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
            arrived.push((token, result));
            arrived.len() == 1
        };
        // The one who found the box empty rings: everyone else's letter is taken with that one.
        if first {
            self.ring();
        }
    }

    /// Runs `work`, which may take its time, on a thread of its own and delivers what it returns.
    pub fn deliver_from_thread(
        self: &Arc<Self>,
        name: &str,
        work: impl FnOnce() -> Result<String> + Send + 'static,
    ) -> Result<u64> {
        let token = self.token();
        let letters = Arc::clone(self);
        std::thread::Builder::new()
            .name(format!("drayhorse-{name}"))
            .spawn(move || letters.deliver(token, guarded(work)))
            .map_err(|e| Error::new(Kind::Internal, format!("no thread could be started to {name}: {e}")))?;
        Ok(token)
    }

    /// Empties the socket. Done before the queue is read: a letter that comes in between rings again.
    fn listen(&self) -> Result<()> {
        let mut rings = [0; 64];
        loop {
            match (&self.heard).read(&mut rings) {
                Ok(n) if n == rings.len() => {}
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    return Err(Error::new(Kind::Internal, format!("the mailbox cannot be read: {e}")));
                }
            }
        }
    }
}

/// Results for one waiting thread, one event loop or one worker.
#[pyclass(frozen, module = "drayhorse._native")]
pub struct Mailbox {
    /// Shared with the calls under way.
    pub letters: Arc<Letters>,
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> PyResult<Mailbox> {
        let (bell, heard) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        let letters = Letters { bell, heard, arrived: Mutex::default(), next: AtomicU64::new(1) };
        Ok(Mailbox { letters: Arc::new(letters) })
    }

    /// The descriptor that is readable while something waits to be taken.
    fn fileno(&self) -> i32 {
        self.letters.heard.as_raw_fd()
    }

    /// Everything that arrived: `(token, failed, text)`, the text being the result or the error as JSON.
    fn take(&self) -> PyResult<Vec<(u64, bool, String)>> {
        crate::failure::raising(|| {
            self.letters.listen()?;
            let arrived = std::mem::take(&mut *self.letters.arrived.lock().unwrap_or_else(PoisonError::into_inner));
            Ok(arrived
                .into_iter()
                .map(|(token, result)| match result {
                    Ok(text) => (token, false, text),
                    Err(error) => (token, true, error.to_json()),
                })
                .collect())
        })
    }
}
