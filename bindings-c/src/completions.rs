//! The results of submitted calls, from the core's threads to the caller's one thread that waits for them.
//!
//! The caller chooses the *tickets*, so it can register its waiter before it submits and no completion can arrive
//! before its ticket is known. One per client and one per worker; a worker's doorbell rings here too, so that one
//! blocked call delivers both its events and its completions.

use drayhorse_core::bridge::Done;
use drayhorse_core::error::{Error, Kind, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Submitted calls in flight and their results.
pub(crate) struct Completions {
    /// What each completion's JSON object begins with.
    head: &'static str,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Tickets in flight, with the core's own ticket once that is known.
    pending: HashMap<u64, Option<u64>>,
    /// Completions as JSON objects, not delivered yet.
    ready: VecDeque<String>,
    /// The doorbell rang since the last look.
    rung: bool,
    closed: bool,
}

/// Why [`Completions::wait`] returned.
pub(crate) enum Woken {
    /// Something may have arrived.
    Changed,
    /// The waiting time is over.
    TimedOut,
    /// Closed, and nothing more will arrive.
    Closed,
}

impl Completions {
    /// `head` is what each completion begins with, `{` or `{"event":"completion",`.
    pub(crate) fn new(head: &'static str) -> Arc<Completions> {
        Arc::new(Completions { head, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Each critical section leaves the state whole, so a poisoned lock is still good.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a ticket into use; what it returns delivers the result, also when it is dropped without one.
    pub(crate) fn begin(self: &Arc<Self>, ticket: u64) -> Result<Done> {
        let mut state = self.lock();
        if state.closed {
            return Err(Error::new(Kind::Closed, "the handle was closed"));
        }
        if state.pending.contains_key(&ticket) {
            return Err(Error::argument("ticket", format!("ticket: {ticket} is in use by a call that has not ended")));
        }
        state.pending.insert(ticket, None);
        drop(state);
        let promise = Promise { completions: self.clone(), ticket, kept: false };
        Ok(Box::new(move |result| promise.keep(result)))
    }

    /// Remembers the core's ticket for [`Completions::core_ticket`], unless the call has ended already.
    pub(crate) fn submitted(&self, ticket: u64, core_ticket: u64) {
        if let Some(slot) = self.lock().pending.get_mut(&ticket) {
            *slot = Some(core_ticket);
        }
    }

    /// The core's ticket of a call in flight.
    pub(crate) fn core_ticket(&self, ticket: u64) -> Option<u64> {
        self.lock().pending.get(&ticket).copied().flatten()
    }

    /// The doorbell: the core has events.
    pub(crate) fn ring(&self) {
        self.lock().rung = true;
        self.changed.notify_all();
    }

    /// Lets waiters return once they have taken what is left.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Up to `max` completions as comma-separated JSON objects with their number, and silences the bell.
    pub(crate) fn take(&self, max: usize) -> (String, usize) {
        let mut state = self.lock();
        state.rung = false;
        let count = max.min(state.ready.len());
        let mut text = String::new();
        for completion in state.ready.drain(..count) {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&completion);
        }
        (text, count)
    }

    /// Waits until something arrives, all is over, or `until` has passed.
    pub(crate) fn wait(&self, until: Instant) -> Woken {
        let mut state = self.lock();
        loop {
            if state.rung || !state.ready.is_empty() {
                return Woken::Changed;
            }
            if state.closed {
                return Woken::Closed;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Woken::TimedOut;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn deliver(&self, ticket: u64, result: Result<String>) {
        let text = match result {
            Ok(answer) => format!("{}\"ticket\":{ticket},\"ok\":{answer}}}", self.head),
            Err(error) => format!("{}\"ticket\":{ticket},\"error\":{}}}", self.head, error.to_json()),
        };
        let mut state = self.lock();
        state.pending.remove(&ticket);
        state.ready.push_back(text);
        drop(state);
        self.changed.notify_all();
    }
}

/// The moment `wait_ms` from now; a wait beyond a year is a year.
pub(crate) fn deadline(wait_ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(wait_ms.min(31_536_000_000))
}

/// The right to deliver one result. Dropped without one, it delivers a fault, so no caller waits for ever.
struct Promise {
    completions: Arc<Completions>,
    ticket: u64,
    kept: bool,
}

impl Promise {
    fn keep(mut self, result: Result<String>) {
        self.kept = true;
        self.completions.deliver(self.ticket, result);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if !self.kept {
            let error = Error::new(Kind::Internal, "the call ended without a result");
            self.completions.deliver(self.ticket, Err(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_delivered_in_order_and_bounded() {
        let completions = Completions::new("{");
        for ticket in 1..=3 {
            let done = completions.begin(ticket).unwrap();
            completions.submitted(ticket, ticket + 100);
            assert_eq!(completions.core_ticket(ticket), Some(ticket + 100));
            done(Ok(format!("[{ticket}]")));
            assert_eq!(completions.core_ticket(ticket), None);
        }
        assert_eq!(completions.take(2), (r#"{"ticket":1,"ok":[1]},{"ticket":2,"ok":[2]}"#.to_owned(), 2));
        assert_eq!(completions.take(2).1, 1);
        assert!(matches!(completions.wait(deadline(0)), Woken::TimedOut));
    }

    #[test]
    fn a_ticket_in_use_is_refused_and_free_again_afterwards() {
        let completions = Completions::new("{");
        let done = completions.begin(9).unwrap();
        assert_eq!(completions.begin(9).err().unwrap().kind(), Kind::InvalidArgument);
        done(Err(Error::new(Kind::NotFound, "no such job")));
        assert!(completions.begin(9).is_ok());
    }

    #[test]
    fn a_dropped_promise_is_an_error_not_silence() {
        let completions = Completions::new(r#"{"event":"completion","#);
        drop(completions.begin(4).unwrap());
        let (text, count) = completions.take(10);
        assert_eq!(count, 1);
        assert!(text.starts_with(r#"{"event":"completion","ticket":4,"error":{"#), "{text}");
    }

    #[test]
    fn closing_wakes_a_waiter_after_what_is_left() {
        let completions = Completions::new("{");
        let done = completions.begin(1).unwrap();
        let waiter = std::thread::spawn({
            let completions = completions.clone();
            move || matches!(completions.wait(deadline(60_000)), Woken::Changed)
        });
        done(Ok("1".to_owned()));
        completions.close();
        assert!(waiter.join().unwrap());
        assert_eq!(completions.take(1).1, 1);
        assert!(matches!(completions.wait(deadline(60_000)), Woken::Closed));
        assert_eq!(completions.begin(2).err().unwrap().kind(), Kind::Closed);
    }

    #[test]
    fn the_bell_wakes_once() {
        let completions = Completions::new("{");
        completions.ring();
        assert!(matches!(completions.wait(deadline(0)), Woken::Changed));
        completions.take(1);
        assert!(matches!(completions.wait(deadline(0)), Woken::TimedOut));
    }
}
