//! The worker as a state machine without input or output: slots, lanes, leases, outcomes and the phases of its end.
//! `step(now, event)` returns what is to be done; the threads of [`crate::worker`] do it and come back with the
//! answers. Nothing here reads a clock, so a test is a protocol trace.
//!
//! Two statements at most are in flight: one of the *pump* (claims and reports) and one of the *keeper* (heartbeats,
//! ticks), each on its own connection, so that a slow claim never holds up a heartbeat.

mod attempts;
mod care;
mod contracts;
mod event;
mod keeper;
mod lanes;
mod leases;
mod look;
mod progress;
mod pump;
mod settle;
mod stop;
#[cfg(test)]
mod tests;
mod wakeups;

use std::collections::VecDeque;

use uuid::Uuid;

use crate::error::{Error, Kind};
use attempts::Attempts;
use care::Timetable;
use keeper::Keeper;
use lanes::Lanes;
use look::Look;
use progress::Progress;
use pump::Pump;
use settle::Settlements;
use stop::Ending as End;
use wakeups::{Wakeups, Wanted};

pub use attempts::Stuck;
pub use event::*;
pub use stop::Phase;

/// What a worker was started with, as far as its decisions depend on it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Handlers at once.
    pub slots: usize,
    /// Jobs claimed ahead of a free slot.
    pub prefetch: usize,
    pub lease_ms: Millis,
    pub grace_ms: Millis,
    pub poll_ms: Millis,
    /// The worker's `retryDelayMs` where it is a number: for timeouts, which no handler reports.
    pub retry_delay_ms: Option<i64>,
    /// Claims without a gate, and heartbeats, may commit asynchronously.
    pub async_commit: bool,
    /// Makes the ids of claims; a test makes them predictable.
    pub new_claim_id: fn() -> Uuid,
}

/// What `health()` tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    pub phase: Phase,
    pub connected: bool,
    pub listening: bool,
    pub slots: usize,
    pub running: usize,
    pub stuck: Vec<Stuck>,
    /// When rows were last claimed.
    pub last_claim_ms: Option<Millis>,
}

/// One worker.
pub struct Machine {
    settings: Settings,
    registered: bool,
    end: End,
    lanes: Lanes,
    attempts: Attempts,
    settlements: Settlements,
    progress: Progress,
    look: Look,
    pump: Pump,
    keeper: Keeper,
    timetable: Timetable,
    wakeups: Wakeups,
    /// What was complained about lately, so that an outage is said once.
    complaints: VecDeque<(String, Millis)>,
    last_claim_ms: Option<Millis>,
}

/// An equal complaint is not repeated within this time.
const COMPLAIN_AGAIN_MS: Millis = 60_000;
/// Different complaints remembered.
const COMPLAINTS: usize = 20;

impl Machine {
    /// A worker that has done nothing yet.
    pub fn new(settings: Settings) -> Machine {
        Machine {
            registered: false,
            end: End::default(),
            lanes: Lanes::default(),
            attempts: Attempts::new(settings.slots, settings.lease_ms, settings.retry_delay_ms),
            settlements: Settlements::default(),
            progress: Progress::default(),
            look: Look::new(settings.poll_ms),
            pump: Pump::default(),
            keeper: Keeper::default(),
            timetable: Timetable::new(settings.lease_ms),
            wakeups: Wakeups::default(),
            complaints: VecDeque::new(),
            last_claim_ms: None,
            settings,
        }
    }

    /// Takes one event and says what is to be done.
    pub fn step(&mut self, now: Millis, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        if self.end.phase() == Phase::Stopped {
            return out;
        }
        self.take(now, event, &mut out);
        self.expire(now, &mut out);
        self.advance_end(now, &mut out);
        self.start_waiting(&mut out);
        self.pump_next(now, &mut out);
        self.keeper_next(now, &mut out);
        self.finish(now, &mut out);
        out
    }

    /// When [`Event::Clock`] is wanted, if nothing happens before.
    pub fn due(&self) -> Option<Millis> {
        if self.end.phase() == Phase::Stopped {
            return None;
        }
        let running = self.end.phase() == Phase::Running;
        let mut due =
            [self.attempts.expires_at(), self.wakeups.expires_at(), self.end.due()].into_iter().flatten().min();
        let mut also = |at: Option<Millis>| due = due.into_iter().chain(at).min();
        if self.keeper.ready() && self.registered {
            also(Some(self.timetable.due(running && !self.attempts.limits_pending())));
            also(self.wakeups.ping_at());
        }
        if self.pump.ready() && self.registered {
            match self.pump.not_before() {
                Some(until) => also(Some(until)),
                None => {
                    also(self.progress.due());
                    let (room, gated_room) = if running { self.room() } else { (0, 0) };
                    if room > 0 {
                        also(self.look.at());
                    }
                    // What is held back has a gate, and no gate is passed ahead of a free slot.
                    if gated_room > 0 {
                        also(self.lanes.next_hold());
                    }
                }
            }
        }
        due
    }

    /// For probes.
    pub fn health(&self) -> Health {
        Health {
            phase: self.end.phase(),
            connected: self.pump.up || self.keeper.up,
            listening: self.look.listening(),
            slots: self.settings.slots,
            running: self.attempts.running(),
            stuck: self.attempts.stuck(),
            last_claim_ms: self.last_claim_ms,
        }
    }

    /// The claim behind a running handler's handle; `lease_lost` once its end is decided.
    pub fn claim_of(&self, handle: Handle) -> Result<Claim, Error> {
        self.attempts.current(handle).ok_or_else(|| Error::new(Kind::LeaseLost, "the attempt is no longer current"))
    }

    /// Whether a checkpoint may exist for the job of this attempt.
    pub fn has_checkpoints(&self, handle: Handle) -> bool {
        self.attempts.has_checkpoints(handle)
    }

    /// How long the lease lasts without another renewal.
    pub fn lease_remaining(&self, now: Millis, handle: Handle) -> Option<Millis> {
        self.attempts.lease_remaining(now, handle)
    }

    /// Fills free slots with what was claimed.
    fn start_waiting(&mut self, out: &mut Vec<Action>) {
        if self.end.phase() != Phase::Running {
            return;
        }
        while let Some((handle, row)) = self.attempts.start_next() {
            match self.lanes.row(row.lane) {
                Some(lane) => out.push(Action::Start { handle, row, lane }),
                // Only a row of a lost claim can name a lane that is not known, and lanes are never forgotten.
                None => {
                    let back = self.attempts.returned(handle, Ending::Release { started: false });
                    self.settlements.extend(back);
                }
            }
        }
    }

    fn take(&mut self, now: Millis, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::PumpUp => self.pump.up = true,
            Event::PumpAnswered { result, up } => self.pump_answered(now, result, up, out),
            Event::KeeperUp => self.keeper.up = true,
            Event::KeeperAnswered { result, up } => self.keeper_answered(now, result, up, out),
            Event::Unreachable(error) => self.complain(now, error, None, None, out),
            Event::Fatal(error) => self.end.fatal(now, self.settings.grace_ms, error),
            Event::ListenerUp => self.wakeups.up(now),
            Event::ListenerDown => {
                self.wakeups.down();
                self.look.set_listening(now, false);
            }
            Event::Woken => self.look.wake(now),
            Event::CancelHinted => self.timetable.beat_soon(now),
            Event::PingHeard(number) => {
                self.wakeups.heard(now, number);
                if self.wakeups.arriving() {
                    self.look.set_listening(now, true);
                }
            }
            Event::Reports(reports) => {
                for report in reports {
                    self.progress.forget(report.handle);
                    if let Some(error) = report.note {
                        let job = self.attempts.job(report.handle);
                        out.push(Action::Complain { error, handle: Some(report.handle), job });
                    }
                    let settling = self.attempts.returned(report.handle, report.ending);
                    self.settlements.extend(settling);
                }
            }
            Event::Progress { handle, value } => {
                if self.attempts.current(handle).is_some() {
                    self.progress.set(handle, value);
                }
            }
            Event::RetryDelay { handle, ms } => self.attempts.set_retry_delay(handle, ms),
            Event::CheckpointSaved(handle) => self.attempts.checkpoint_saved(handle),
            Event::CheckpointRefused(handle) => self.attempts.checkpoint_refused(handle),
            Event::Stop => self.end.drain(now, self.settings.grace_ms),
            Event::Close => self.end.close(now),
            Event::Clock => {}
        }
    }

    /// Ends what is past its time: attempts, and the wait for a ping.
    fn expire(&mut self, now: Millis, out: &mut Vec<Action>) {
        let expired = self.attempts.expire(now);
        out.extend(expired.aborts.into_iter().map(|(handle, reason)| Action::Abort { handle, reason }));
        self.settlements.extend(expired.settle);
        if let Wanted::Relisten { after_ms, say } = self.wakeups.expire(now) {
            self.look.set_listening(now, false);
            out.push(Action::Relisten { after_ms });
            if say {
                let error = Error::new(
                    Kind::ConnectionLost,
                    "wake-ups do not arrive: a transaction pooler stands between, or the listening connection is \
                     silent; polling takes over",
                );
                out.push(Action::Complain { error, handle: None, job: None });
            }
        }
    }

    /// An error that is nobody's report: fatal ones end the worker, the others are said and lived with.
    fn failed(&mut self, now: Millis, error: Error, out: &mut Vec<Action>) {
        if is_fatal(&error) {
            self.end.fatal(now, self.settings.grace_ms, error);
        } else {
            self.complain(now, error, None, None, out);
        }
    }

    fn complain(
        &mut self,
        now: Millis,
        error: Error,
        handle: Option<Handle>,
        job: Option<Uuid>,
        out: &mut Vec<Action>,
    ) {
        if job.is_none() {
            let known =
                self.complaints.iter().any(|(text, at)| text == error.message() && now < at + COMPLAIN_AGAIN_MS);
            if known {
                return;
            }
            self.complaints.retain(|(text, _)| text != error.message());
            if self.complaints.len() == COMPLAINTS {
                self.complaints.pop_front();
            }
            self.complaints.push_back((error.message().to_owned(), now));
        }
        out.push(Action::Complain { error, handle, job });
    }

    /// Free places: for any claim, and for one that touches a gate, which never claims ahead.
    fn room(&self) -> (usize, usize) {
        let waiting = self.attempts.waiting();
        let free = self.attempts.free();
        ((free + self.settings.prefetch).saturating_sub(waiting), free.saturating_sub(waiting))
    }
}

/// Errors that no waiting cures.
pub(crate) fn is_fatal(error: &Error) -> bool {
    matches!(
        error.kind(),
        Kind::PermissionDenied
            | Kind::SchemaMissing
            | Kind::SchemaTooOld
            | Kind::SchemaTooNew
            | Kind::UsedAfterFork
            | Kind::EmbeddedFailed
            | Kind::Closed
    )
}
