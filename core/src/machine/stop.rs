//! The phases of a worker's end. *Running*, then *draining*: no claims, a claim in flight is given back, handlers may
//! finish. When the grace time is over the rest is released and the handlers hear `shutdown`. *Stopped* once nothing
//! is left to settle, at the latest a second after the grace time.

use uuid::Uuid;

use super::event::{Action, Millis};
use super::{Machine, pump::Gone};
use crate::error::Error;

/// Where a worker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Running,
    Draining,
    Stopped,
}

impl Phase {
    /// The word of `health()`.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Running => "running",
            Phase::Draining => "draining",
            Phase::Stopped => "stopped",
        }
    }
}

/// So long the releases at the end of the grace time may take.
const LAST_WORDS_MS: Millis = 1_000;

#[derive(Default)]
pub(super) struct Ending {
    drain: Option<Drain>,
    stopped: bool,
    fatal: Option<Error>,
}

struct Drain {
    /// When the grace time is over.
    grace_until_ms: Millis,
    /// When nothing is waited for any more.
    latest_ms: Millis,
    /// The rest has been released.
    released: bool,
    /// The worker has said goodbye to the database.
    unregistered: bool,
}

impl Ending {
    pub fn phase(&self) -> Phase {
        match (self.stopped, &self.drain) {
            (true, _) => Phase::Stopped,
            (false, Some(_)) => Phase::Draining,
            (false, None) => Phase::Running,
        }
    }

    /// Starts the drain; a second call changes nothing.
    pub fn drain(&mut self, now: Millis, grace_ms: Millis) {
        self.drain.get_or_insert(Drain {
            grace_until_ms: now + grace_ms,
            latest_ms: now + grace_ms + LAST_WORDS_MS,
            released: false,
            unregistered: false,
        });
    }

    /// No grace from now on.
    pub fn close(&mut self, now: Millis) {
        self.drain(now, 0);
        if let Some(drain) = &mut self.drain {
            drain.grace_until_ms = drain.grace_until_ms.min(now);
            drain.latest_ms = drain.latest_ms.min(now + LAST_WORDS_MS);
        }
    }

    /// The worker cannot go on: it drains, but never longer than the grace time. The first reason stays.
    pub fn fatal(&mut self, now: Millis, grace_ms: Millis, error: Error) {
        self.drain(now, grace_ms);
        if let Some(drain) = &mut self.drain {
            drain.latest_ms = drain.latest_ms.min(drain.grace_until_ms.max(now));
        }
        self.fatal.get_or_insert(error);
    }

    pub fn is_fatal(&self) -> bool {
        self.fatal.is_some()
    }

    pub fn due(&self) -> Option<Millis> {
        self.drain.as_ref().map(|drain| if drain.released { drain.latest_ms } else { drain.grace_until_ms })
    }

    pub fn unregistered(&mut self) {
        if let Some(drain) = &mut self.drain {
            drain.unregistered = true;
        }
    }
}

impl Machine {
    /// Gives back what is not to start, and at the end of the grace time what still runs.
    pub(super) fn advance_end(&mut self, now: Millis, out: &mut Vec<Action>) {
        let Some(drain) = &mut self.end.drain else { return };
        self.settlements.extend(self.attempts.release_waiting("the worker is shutting down"));
        if now >= drain.grace_until_ms && !drain.released {
            drain.released = true;
            let rest = self.attempts.release_running(now, "the worker's grace time is over");
            out.extend(rest.aborts.into_iter().map(|(handle, reason)| Action::Abort { handle, reason }));
            self.settlements.extend(rest.settle);
        }
    }

    /// Whether the goodbye is the next statement: nothing runs or waits, and nothing is left to settle.
    pub(super) fn may_unregister(&self) -> bool {
        let Some(drain) = &self.end.drain else { return false };
        let quiet = if drain.released { !self.attempts.settling() } else { self.attempts.is_empty() };
        quiet && self.registered && !drain.unregistered && !self.end.is_fatal()
    }

    /// Ends the worker when nothing is left to do, or when its time is over.
    pub(super) fn finish(&mut self, now: Millis, out: &mut Vec<Action>) {
        let Some(drain) = &self.end.drain else { return };
        let quiet = if drain.released { !self.attempts.settling() } else { self.attempts.is_empty() };
        let said = drain.unregistered || !self.registered || self.end.is_fatal() || !self.pump.up;
        let idle = self.pump.idle() || self.pump.only_goodbye();
        let done = quiet && idle && said && self.settlements.is_empty();
        if !done && now < drain.latest_ms {
            return;
        }
        self.end.stopped = true;
        out.retain(|action| !matches!(action, Action::Pump(_) | Action::Keep(_)));
        out.push(Action::Stopped(self.end.fatal.clone()));
    }

    /// Settlements that the database will never take: a fatal error stands between.
    pub(super) fn give_up(&mut self, gone: Vec<Gone>, error: &Error, out: &mut Vec<Action>) {
        for (handle, job) in gone {
            self.attempts.settled(handle);
            out.push(Action::Complain { error: unsettled(error, job), handle: Some(handle), job: Some(job) });
        }
    }
}

/// What a host is told about a job whose end could not be recorded.
pub(super) fn unsettled(error: &Error, job: Uuid) -> Error {
    Error::new(error.kind(), format!("the end of job {job} could not be recorded: {}", error.message()))
        .with_all(error.details().clone())
}
