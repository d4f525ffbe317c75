//! A control call on its way: what was asked, what is sent, and whom to tell.

use super::super::Done;
use super::verbs::Verb;
use crate::enqueue::Statement;
use crate::error::Result;
use std::cmp::Reverse;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// One control call on its way.
pub struct Call {
    pub verb: Verb,
    pub args: String,
    /// Of enqueues, set at the first run: what is sent, with the ids made in it, the same at every repetition.
    pub prepared: Option<Statement>,
    /// Of `wait`: when it was submitted, and the pause before the next look.
    pub since: Instant,
    pub pause: Duration,
}

impl Call {
    pub fn new(verb: Verb, args: &str) -> Call {
        Call { verb, args: args.to_owned(), prepared: None, since: Instant::now(), pause: Duration::ZERO }
    }
}

/// A call with its place in the queues.
pub struct Ticket {
    pub number: u64,
    pub call: Call,
    pub done: Done,
}

impl Ticket {
    /// Hands the result over. A panic in the callback is the binding's fault and must not end the thread.
    pub fn finish(self, result: Result<String>) {
        let done = self.done;
        if catch_unwind(AssertUnwindSafe(move || done(result))).is_err() {
            tracing::error!("a completion callback panicked");
        }
    }
}

/// A delayed call; the earliest is the greatest, so that the heap gives it first.
pub struct Delayed {
    pub due: Reverse<Instant>,
    pub ticket: Ticket,
}

impl PartialEq for Delayed {
    fn eq(&self, other: &Delayed) -> bool {
        self.due == other.due
    }
}
impl Eq for Delayed {}
impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Delayed) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Delayed {
    fn cmp(&self, other: &Delayed) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}
