//! When to look for work, and the wake-up protocol: a worker that finds nothing announces that it sleeps, looks once
//! more, so that nothing enqueued before the announcement is missed, and only then waits. Without wake-ups it polls.
//! Owned by the machine; pure.

use super::event::Millis;

/// After work ran out, so long nothing is announced: in a busy moment the next job is already on its way, and an
/// announcement makes every producer notify.
const LINGER_MS: Millis = 5;
/// The longest such pause, reached when wake-up after wake-up brings nothing.
const LINGER_MOST_MS: Millis = 160;
/// So many wake-ups in a row may bring nothing before the pause grows.
const VAIN: u32 = 4;
/// The first pause between looks without wake-ups.
const FIRST_POLL_MS: Millis = 100;
/// How long an announcement holds; it is renewed at half of it.
const ANNOUNCE_MS: Millis = 60_000;
/// Up to so many lanes the list of lanes is read again before every sleep.
const FEW_LANES: usize = 100;
/// A wake-up that finds nothing reads the list again, but not more often than this; longer lists less often.
const LANES_AGAIN_MS: Millis = 20;

/// What is to be done besides looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Wait,
    /// Read the list of lanes.
    Lanes,
    /// Announce the sleep.
    Sleep,
}

/// How to look.
pub struct Manner {
    /// From the beginning, without hints.
    pub full: bool,
    /// A wake-up asked for it: the shortest way to its job counts.
    pub woken: bool,
    /// Waiting follows if it finds nothing, so it had better be right.
    pub sure: bool,
}

/// The look-out for work.
pub struct Look {
    at_ms: Millis,
    full: bool,
    woken: bool,
    /// Waiting follows if it finds nothing.
    sure: bool,
    running: bool,
    step: Step,
    lanes_read_ms: Option<Millis>,
    lanes_good_for_ms: Millis,
    lanes_again_ms: Millis,
    listening: bool,
    announced_until_ms: Option<Millis>,
    announce_at_ms: Millis,
    /// The database does not know our channel yet: an announcement tells it, also for cancels.
    introduce: bool,
    withdraw: bool,
    vain: u32,
    woken_ms: Millis,
    poll_ms: Millis,
    poll_most_ms: Millis,
}

impl Look {
    /// Looks at once, after reading the list of lanes.
    pub fn new(poll_ms: Millis) -> Look {
        Look {
            at_ms: 0,
            full: true,
            woken: false,
            sure: false,
            running: false,
            step: Step::Lanes,
            lanes_read_ms: None,
            lanes_good_for_ms: 0,
            lanes_again_ms: LANES_AGAIN_MS,
            listening: false,
            announced_until_ms: None,
            announce_at_ms: 0,
            introduce: false,
            withdraw: false,
            vain: 0,
            woken_ms: 0,
            poll_ms: FIRST_POLL_MS.min(poll_ms),
            poll_most_ms: poll_ms,
        }
    }

    /// How long an announcement holds.
    pub fn announce_ms(&self) -> i64 {
        ANNOUNCE_MS as i64
    }

    /// Whether wake-ups arrive.
    pub fn listening(&self) -> bool {
        self.listening
    }

    /// Wake-ups were seen to arrive, or no longer do.
    pub fn set_listening(&mut self, now: Millis, listening: bool) {
        if self.listening != listening {
            self.listening = listening;
            self.introduce = listening;
            self.announced_until_ms = None;
            self.poll_ms = FIRST_POLL_MS.min(self.poll_most_ms);
            self.soon(now);
        }
    }

    /// Look now: something may have become claimable.
    pub fn soon(&mut self, now: Millis) {
        self.at_ms = self.at_ms.min(now);
    }

    /// A notification came: the shortest way to its job counts.
    pub fn wake(&mut self, now: Millis) {
        if now > self.woken_ms + 1_000 {
            self.vain = 0;
        }
        self.woken_ms = now;
        self.woken = true;
        self.soon(now);
    }

    /// Whether a look is due, and when otherwise.
    pub fn due(&self, now: Millis) -> bool {
        now >= self.at_ms
    }

    /// When the next look is due; `None` while one runs.
    pub fn at(&self) -> Option<Millis> {
        (self.at_ms != Millis::MAX).then_some(self.at_ms)
    }

    /// A look begins.
    pub fn begin(&mut self) -> Manner {
        self.running = true;
        self.at_ms = Millis::MAX;
        Manner { full: std::mem::take(&mut self.full), woken: self.woken, sure: std::mem::take(&mut self.sure) }
    }

    /// Rows were claimed.
    pub fn found(&mut self, now: Millis) {
        self.withdraw = self.announced_until_ms.is_some();
        self.vain = 0;
        self.poll_ms = FIRST_POLL_MS.min(self.poll_most_ms);
        self.woken = false;
        self.step = Step::Wait;
        self.announce_at_ms = now + LINGER_MS;
        self.at_ms = self.at_ms.min(self.announce_at_ms);
    }

    /// No lane has anything left. If this ends a look that found nothing, decides what follows.
    pub fn exhausted(&mut self, now: Millis) {
        if !std::mem::take(&mut self.running) || self.at_ms != Millis::MAX {
            return;
        }
        let woken = std::mem::take(&mut self.woken);
        self.nothing(now, woken);
    }

    fn nothing(&mut self, now: Millis, woken: bool) {
        let lanes_age = self.lanes_read_ms.map_or(Millis::MAX, |at| now - at);
        if lanes_age >= self.lanes_good_for_ms || (woken && lanes_age >= self.lanes_again_ms) {
            self.vain += u32::from(woken);
            self.at_ms = Millis::MAX;
            self.step = Step::Lanes;
            return;
        }
        self.step = Step::Wait;
        if woken {
            // The job may be the first of its lane: not forgotten, only a moment later.
            self.woken = true;
            self.full = true;
            self.at_ms = now + self.lanes_again_ms - lanes_age;
            return;
        }
        if self.announced_until_ms.is_some() && self.vain > VAIN {
            // Others are faster, time and again: stop asking for notifications for a while.
            self.withdraw = true;
            self.announce_at_ms = now + (LINGER_MS << (self.vain - VAIN).min(5)).min(LINGER_MOST_MS);
        }
        if self.announced_until_ms.is_some_and(|until| now < until) && !self.withdraw {
            (self.full, self.sure) = (true, true);
            self.at_ms = now + self.poll_most_ms;
        } else if !self.listening {
            (self.full, self.sure) = (true, true);
            self.at_ms = now + self.poll_ms;
            self.poll_ms = (self.poll_ms * 3 / 2).min(self.poll_most_ms);
        } else if now >= self.announce_at_ms {
            self.at_ms = Millis::MAX;
            self.step = Step::Sleep;
        } else {
            self.at_ms = self.announce_at_ms;
        }
    }

    /// Whether the database is to be told our channel although there may be work.
    pub fn introduce_wanted(&self) -> bool {
        self.introduce
    }

    /// Whether the list of lanes is old while there is work in the known ones. A wake-up's look is not held up by it.
    pub fn lanes_stale(&self, now: Millis) -> bool {
        !self.woken && self.lanes_read_ms.is_some_and(|at| now >= at + self.lanes_good_for_ms)
    }

    /// What is to be done when there is nothing to claim.
    pub fn step(&self) -> Step {
        self.step
    }

    /// The list of lanes was read. The more there are, the longer it is good.
    pub fn lanes_read(&mut self, now: Millis, count: usize, new: bool) {
        self.lanes_read_ms = Some(now);
        self.lanes_good_for_ms = 1_000 + (count as Millis / 3).min(4_000);
        self.lanes_again_ms = LANES_AGAIN_MS + (count as Millis / 10).min(1_000);
        let asked_by_look = std::mem::replace(&mut self.step, Step::Wait) == Step::Lanes;
        if new {
            self.full = true;
            self.soon(now);
        } else if asked_by_look && self.at_ms == Millis::MAX {
            self.nothing(now, false);
        }
    }

    /// The sleep is announced: one more look, from the beginning.
    pub fn announced(&mut self, now: Millis, lanes: usize) {
        self.introduce = false;
        self.sure = std::mem::replace(&mut self.step, Step::Wait) == Step::Sleep;
        self.announced_until_ms = Some(now + ANNOUNCE_MS / 2);
        self.full = true;
        self.at_ms = now;
        if lanes <= FEW_LANES {
            self.lanes_good_for_ms = 0;
        }
    }

    /// Whether the announcement is to be taken back: a busy worker needs no notifications.
    pub fn withdraw_wanted(&self) -> bool {
        self.withdraw
    }

    /// It was taken back.
    pub fn withdrawn(&mut self) {
        self.withdraw = false;
        self.announced_until_ms = None;
    }

    /// A statement of the look failed: the look begins anew after the pause.
    pub fn failed(&mut self, now: Millis, pause_ms: Millis) {
        self.running = false;
        self.full = true;
        self.step = if self.lanes_read_ms.is_none() { Step::Lanes } else { Step::Wait };
        self.at_ms = now + pause_ms;
    }
}
