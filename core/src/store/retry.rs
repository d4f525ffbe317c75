//! When a statement is sent again: growing pauses, and a link that reconnects.
//!
//! Every statement that goes through a [`Link`] may be sent again after a lost reply: ids, request ids and fences are
//! made before the first send, and the protocol functions recognize them.

use super::fault;
use super::{Compatibility, Connection, Store};
use crate::error::{Error, Kind, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Pauses that double from `first` to `most`, each shortened at random by up to a half so that many do not come back
/// in one instant.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
    first: Duration,
    most: Duration,
}

impl Backoff {
    /// A fresh series.
    pub fn new(first: Duration, most: Duration) -> Backoff {
        Backoff { next: first, first, most }
    }

    /// The next pause.
    pub fn pause(&mut self) -> Duration {
        let full = self.next;
        self.next = (full * 2).min(self.most);
        full.mul_f64(0.5 + 0.5 * fraction())
    }

    /// Starts again after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

/// A number in 0..1, different everywhere. The uuid crate is the core's source of randomness.
fn fraction() -> f64 {
    (Uuid::new_v4().as_u128() >> 75) as f64 / (1_u64 << 53) as f64
}

/// How long a lost connection or a conflict is tried again before the caller hears of it.
const PERSISTENCE: Duration = Duration::from_secs(10);

/// One connection that is opened when needed and opened again when it broke. Its owner is one thread.
pub struct Link {
    store: Arc<Store>,
    connection: Option<Connection>,
}

impl Link {
    /// Opens nothing yet.
    pub fn new(store: Arc<Store>) -> Link {
        Link { store, connection: None }
    }

    /// The store it connects to.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Closes the connection; the next use opens another.
    pub fn hang_up(&mut self) {
        self.connection = None;
    }

    /// Whether a connection is open.
    pub fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// Runs `work`, again after a conflict or a lost connection, for at most 10 s and while `wanted` says so. A database
    /// that was never reached is not tried twice: then the URL is wrong, and the caller should hear it at once.
    pub fn run<T>(
        &mut self,
        wanted: impl Fn() -> bool,
        mut work: impl FnMut(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        let started = Instant::now();
        let mut pauses = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        loop {
            let error = match self.once(&mut work) {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let again = fault::gave_way(&error) || (error.kind() == Kind::ConnectionLost && self.store.reached());
            if !again || started.elapsed() > PERSISTENCE {
                return Err(error);
            }
            tracing::debug!(code = error.code(), "a statement is sent again");
            sleep(pauses.pause(), &wanted);
            if !wanted() {
                return Err(error);
            }
        }
    }

    fn once<T>(&mut self, work: &mut impl FnMut(&mut Connection) -> Result<T>) -> Result<T> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            empty => empty.insert(self.store.connect()?),
        };
        let outcome = match work(connection) {
            Err(error) if !connection.is_broken() => Err(explain(&self.store, connection, error)),
            outcome => outcome,
        };
        if connection.is_broken() {
            self.connection = None;
        }
        outcome
    }
}

/// An object that is not there means that the schema is missing or has another version; then the error says so.
fn explain(store: &Store, connection: &mut Connection, error: Error) -> Error {
    if !fault::lacks_object(&error) {
        return error;
    }
    match store.schema().compatibility(connection) {
        Ok(Compatibility::Fits) | Err(_) => error,
        Ok(other) => other.check(store.schema()).err().unwrap_or(error),
    }
}

/// Sleeps in slices, so that closing is not held up.
fn sleep(whole: Duration, wanted: &impl Fn() -> bool) {
    let until = Instant::now() + whole;
    while wanted() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_bound_and_start_again() {
        let mut pauses = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        for full in [20, 40, 80, 160, 320, 640, 1000, 1000] {
            let pause = pauses.pause().as_millis();
            assert!((full / 2..=full).contains(&pause), "{pause} of {full}");
        }
        pauses.reset();
        assert!(pauses.pause() <= Duration::from_millis(20));
    }
}
