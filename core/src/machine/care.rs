//! The keeper's timetable: heartbeats at a third of the lease, a tick every 200 ms, a sign of life every ten
//! seconds, retention every minute, a notification to ourselves when one is due. Owned by the machine; pure.

use super::event::Millis;

/// Between two ticks, and the least pause when something is due sooner.
const TICK_MS: (Millis, Millis) = (10, 200);
/// So long after the next known time: a worker reports the limits of its own attempts, and may be first.
const AFTER_MS: Millis = 10;
/// Between two ticks that look at everything: the others pass over what was due long ago, which is mostly dead rows
/// that an open transaction keeps.
const FULL_MS: Millis = 5_000;
/// Between two rounds of retention.
const PRUNE_MS: Millis = 60_000;
/// Rows of one tick.
const TICK_ROWS: (i32, i32) = (10, 1_000);
/// So many ticks must pass before larger ones are tried again.
const CALM: u32 = 20;
/// Between two signs of life.
const SEEN_MS: Millis = 10_000;

/// When the keeper has to do what.
pub struct Timetable {
    lease_ms: Millis,
    beat_at_ms: Option<Millis>,
    tick_at_ms: Millis,
    tick_rows: i32,
    calm: u32,
    full_at_ms: Millis,
    prune_at_ms: Millis,
    seen_at_ms: Millis,
}

impl Timetable {
    /// Starts with a tick.
    pub fn new(lease_ms: Millis) -> Timetable {
        Timetable {
            lease_ms,
            beat_at_ms: None,
            tick_at_ms: 0,
            tick_rows: TICK_ROWS.1,
            calm: 0,
            full_at_ms: 0,
            prune_at_ms: PRUNE_MS,
            seen_at_ms: SEEN_MS,
        }
    }

    /// A lease began at `sent`.
    pub fn lease_began(&mut self, sent: Millis) {
        let at = sent + self.lease_ms / 3;
        self.beat_at_ms = Some(self.beat_at_ms.map_or(at, |known| known.min(at)));
    }

    /// A heartbeat is wanted now.
    pub fn beat_soon(&mut self, now: Millis) {
        self.beat_at_ms = Some(now);
    }

    /// Whether a heartbeat is due.
    pub fn beat_due(&self, now: Millis) -> bool {
        self.beat_at_ms.is_some_and(|at| at <= now)
    }

    /// It was sent, or there is nothing to renew.
    pub fn beat_sent(&mut self, now: Millis, any: bool) {
        self.beat_at_ms = any.then_some(now + self.lease_ms / 3);
    }

    /// It failed: soon again.
    pub fn beat_failed(&mut self, now: Millis) {
        self.beat_at_ms = Some(now + (self.lease_ms / 20).clamp(20, 500));
    }

    /// The rows of a tick, if one is due, and whether it looks at everything.
    pub fn tick_due(&self, now: Millis) -> Option<(i32, bool)> {
        (now >= self.tick_at_ms).then_some((self.tick_rows, now >= self.full_at_ms))
    }

    /// It was sent; the next one follows its answer.
    pub fn tick_sent(&mut self, now: Millis, full: bool) {
        self.tick_at_ms = now + TICK_MS.1;
        if full {
            self.full_at_ms = now + FULL_MS;
        }
    }

    /// The rows of a round of retention, if one is due; counts as sent.
    pub fn take_prune(&mut self, now: Millis) -> Option<i32> {
        let due = now >= self.prune_at_ms;
        if due {
            self.prune_at_ms = now + PRUNE_MS;
        }
        due.then_some(TICK_ROWS.1)
    }

    /// It removed so many: a full round is followed by the next at once.
    pub fn pruned(&mut self, now: Millis, jobs: i32) {
        if jobs >= TICK_ROWS.1 {
            self.prune_at_ms = now;
        }
    }

    /// It was answered: at once again when more is due, else when the next thing is due.
    pub fn ticked(&mut self, now: Millis, more: bool, next_ms: Option<i64>) {
        let pause = if more {
            0
        } else {
            next_ms.map_or(TICK_MS.1, |ms| (ms.max(0) as Millis + AFTER_MS).clamp(TICK_MS.0, TICK_MS.1))
        };
        self.tick_at_ms = now + pause;
        if more {
            self.full_at_ms = now;
        }
        self.calm += 1;
        if self.calm >= CALM && self.tick_rows < TICK_ROWS.1 {
            self.calm = 0;
            self.tick_rows = (self.tick_rows * 2).min(TICK_ROWS.1);
        }
    }

    /// It took longer than it may: the next one is smaller.
    pub fn tick_too_long(&mut self, now: Millis) {
        self.calm = 0;
        self.tick_rows = (self.tick_rows / 2).max(TICK_ROWS.0);
        self.tick_at_ms = now;
        self.full_at_ms = now;
    }

    /// It failed for another reason.
    pub fn tick_failed(&mut self, now: Millis) {
        self.tick_at_ms = now + 1_000;
        self.full_at_ms = now;
    }

    /// Whether a sign of life is due; counts as sent.
    pub fn take_seen(&mut self, now: Millis) -> bool {
        let due = now >= self.seen_at_ms;
        if due {
            self.seen_at_ms = now + SEEN_MS;
        }
        due
    }

    /// The next thing to do; ticks and retention only count while the worker runs.
    pub fn due(&self, ticking: bool) -> Millis {
        let tick = if ticking { self.tick_at_ms.min(self.prune_at_ms) } else { Millis::MAX };
        self.beat_at_ms.unwrap_or(Millis::MAX).min(tick).min(self.seen_at_ms)
    }
}
