//! Settlements on their way to the database: gathered while a statement is in flight, sent together, one kind at a
//! time, in the order of their jobs. Owned by the machine; pure.

use std::collections::VecDeque;

use super::event::{Cause, Failure, Release, Settlement, Settling};

/// Settlements in one statement.
const BATCH: usize = 1_000;
/// Bytes of results and errors in one statement; one larger report still goes alone.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

/// The queue of what is to be settled.
pub struct Settlements {
    queue: VecDeque<Settling>,
    /// Refused as a batch for a reason that may lie in one of them: sent one by one.
    alone: VecDeque<Settling>,
    batch: usize,
}

impl Default for Settlements {
    fn default() -> Self {
        Settlements { queue: VecDeque::new(), alone: VecDeque::new(), batch: BATCH }
    }
}

/// What to do about a settlement that the database refused for good.
#[derive(Debug, PartialEq)]
pub enum Refused {
    /// It goes again in another form, or one by one.
    Again,
    /// It was given up; its lease will end.
    GivenUp(Settling),
}

impl Settlements {
    /// Adds some.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Settling>) {
        self.queue.extend(more);
    }

    /// Nothing is left to send.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.alone.is_empty()
    }

    /// The next statement's settlements: those of the oldest one's kind, sorted by job.
    pub fn next_batch(&mut self) -> Option<Vec<Settling>> {
        if let Some(single) = self.alone.pop_front() {
            return Some(vec![single]);
        }
        let kind = self.queue.front()?.settlement.kind();
        let mut batch = Vec::new();
        let mut left = VecDeque::new();
        let mut bytes = 0;
        while let Some(settling) = self.queue.pop_front() {
            let fits = batch.is_empty() || bytes + settling.settlement.bytes() <= BATCH_BYTES;
            if settling.settlement.kind() == kind && fits && batch.len() < self.batch {
                bytes += settling.settlement.bytes();
                batch.push(settling);
            } else {
                left.push_back(settling);
            }
        }
        self.queue = left;
        batch.sort_unstable_by_key(|settling| settling.claim);
        Some(batch)
    }

    /// A statement went through: larger ones may be tried again.
    pub fn accepted(&mut self) {
        self.batch = (self.batch * 2).min(BATCH);
    }

    /// The database cancelled the statement for its time: the same settlements go again in smaller statements.
    pub fn took_too_long(&mut self, batch: Vec<Settling>) {
        self.batch = (batch.len() / 2).max(1);
        for settling in batch.into_iter().rev() {
            self.queue.push_front(settling);
        }
    }

    /// The database refused the statement. One of the batch is at fault, so each goes alone; one that is refused
    /// alone goes once more in a form that can always be stored.
    pub fn refused(&mut self, mut batch: Vec<Settling>, why: &str) -> Refused {
        if batch.len() > 1 {
            self.alone.extend(batch);
            return Refused::Again;
        }
        let Some(single) = batch.pop() else { return Refused::Again };
        match single.reduced_for(why) {
            Some(failure) => {
                self.alone.push_back(Settling { settlement: Settlement::Fail(failure), reduced: true, ..single });
                Refused::Again
            }
            None => Refused::GivenUp(single),
        }
    }
}

impl Settlement {
    /// What may share a statement.
    fn kind(&self) -> (u8, Option<Release>) {
        match self {
            Settlement::Complete(_) => (0, None),
            Settlement::Fail(_) => (1, None),
            Settlement::Release(release) => (2, Some(*release)),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Settlement::Complete(result) => result.as_ref().map_or(0, |text| text.len()),
            Settlement::Fail(failure) => failure.error.len(),
            Settlement::Release(_) => 0,
        }
    }
}

impl Settling {
    /// A result the database cannot keep becomes an output failure; a failure it cannot keep loses its text. Once.
    fn reduced_for(&self, why: &str) -> Option<Failure> {
        match &self.settlement {
            _ if self.reduced => None,
            Settlement::Complete(_) => Some(Failure {
                retryable: Some(false),
                uncertain: true,
                ..Failure::of(Cause::Output, "OutputError", &format!("the result could not be stored: {why}"))
            }),
            Settlement::Fail(failure) => Some(Failure {
                retryable: failure.retryable,
                uncertain: failure.uncertain,
                ..Failure::of(failure.cause, "Error", &format!("the error could not be stored: {why}"))
            }),
            Settlement::Release(_) => None,
        }
    }
}
