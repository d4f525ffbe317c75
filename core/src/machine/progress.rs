//! The last progress value of each running attempt, written at most once per 100 ms. Owned by the machine; pure.

use std::collections::HashMap;
use std::sync::Arc;

use super::event::{Handle, Millis};

/// Between two writes of one attempt.
const EVERY_MS: Millis = 100;
/// Values in one statement.
const BATCH: usize = 200;

#[derive(Default)]
struct Last {
    value: Option<Arc<str>>,
    next_ms: Millis,
}

/// Values that wait to be written.
#[derive(Default)]
pub struct Progress {
    by_handle: HashMap<Handle, Last>,
}

impl Progress {
    /// Replaces the value of the attempt.
    pub fn set(&mut self, handle: Handle, value: Arc<str>) {
        self.by_handle.entry(handle).or_default().value = Some(value);
    }

    /// The attempt has ended.
    pub fn forget(&mut self, handle: Handle) {
        self.by_handle.remove(&handle);
    }

    /// The values to write now.
    pub fn take_due(&mut self, now: Millis) -> Vec<(Handle, Arc<str>)> {
        let due = self.by_handle.iter_mut().filter(|(_, last)| last.value.is_some() && last.next_ms <= now).take(BATCH);
        due.filter_map(|(handle, last)| {
            last.next_ms = now + EVERY_MS;
            last.value.take().map(|value| (*handle, value))
        })
        .collect()
    }

    /// When the next value is due.
    pub fn due(&self) -> Option<Millis> {
        self.by_handle.values().filter(|last| last.value.is_some()).map(|last| last.next_ms).min()
    }
}
