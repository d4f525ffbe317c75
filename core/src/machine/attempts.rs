//! The attempts this worker holds: which wait for a slot, which run, how long their leases and limits last, and
//! what a handler's report means after something else ended the attempt first. Owned by the machine; pure.

use std::collections::{BTreeMap, VecDeque};

use super::event::{Abort, Cause, Claim, ClaimRow, Ending, Failure, Handle, Millis, Release, Settlement, Settling};
use super::leases::Expired;

/// Where an attempt is on this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Claimed ahead; no handler yet.
    Waiting,
    /// The host has it.
    Running,
    /// The handler came back, or never ran.
    Returned,
}

/// Where it is on the database's side, as far as we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Ours; no settlement yet.
    Open,
    /// A settlement waits or is on its way.
    Settling,
    /// Settled, or no longer ours.
    Over,
}

pub(super) struct Attempt {
    pub(super) claim: Claim,
    pub(super) lane: i64,
    pub(super) stage: Stage,
    pub(super) hold: Hold,
    pub(super) lease_until_ms: Millis,
    pub(super) ends: Option<(Millis, Cause)>,
    pub(super) abort: Option<(Abort, Millis)>,
    /// Our own clock says the lease is over; a success may still be accepted.
    pub(super) lapsed: bool,
    pub(super) checkpoints: bool,
    /// Its payload and its result must meet a contract.
    pub(super) contracted: bool,
    /// The payload has not been checked yet: no handler before that.
    pub(super) unchecked: bool,
    /// A checkpoint was refused for holding another value: that is why it will fail.
    pub(super) conflict: bool,
    /// Its own limit ended it.
    pub(super) limited: bool,
    pub(super) retry_delay_ms: Option<i64>,
    pub(super) row: Option<Box<ClaimRow>>,
}

/// A handler that was asked to stop and has not.
#[derive(Clone, Debug, PartialEq)]
pub struct Stuck {
    pub handle: Handle,
    pub job: uuid::Uuid,
    pub reason: Abort,
    pub since_ms: Millis,
}

/// All attempts of one worker.
pub struct Attempts {
    pub(super) by_handle: BTreeMap<Handle, Attempt>,
    pub(super) waiting: VecDeque<Handle>,
    pub(super) running: usize,
    pub(super) slots: usize,
    pub(super) lease_ms: Millis,
    pub(super) retry_delay_ms: Option<i64>,
    pub(super) next_handle: Handle,
    pub(super) limits_pending: usize,
    /// Nothing expires before this.
    pub(super) quiet_until_ms: Option<Millis>,
}

impl Attempts {
    /// None yet, with `slots` places for handlers.
    pub fn new(slots: usize, lease_ms: Millis, retry_delay_ms: Option<i64>) -> Attempts {
        Attempts {
            by_handle: BTreeMap::new(),
            waiting: VecDeque::new(),
            running: 0,
            slots,
            lease_ms,
            retry_delay_ms,
            next_handle: 1,
            limits_pending: 0,
            quiet_until_ms: None,
        }
    }

    /// Handlers that have not come back.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Slots without a handler.
    pub fn free(&self) -> usize {
        self.slots - self.running
    }

    /// Claimed ahead.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Nothing runs and nothing is left to settle.
    pub fn is_empty(&self) -> bool {
        self.by_handle.is_empty()
    }

    /// Whether any settlement has not been answered.
    pub fn settling(&self) -> bool {
        self.by_handle.values().any(|a| a.hold == Hold::Settling)
    }

    /// Whether an attempt's own limit has ended it and the database has not confirmed it yet.
    pub fn limits_pending(&self) -> bool {
        self.limits_pending > 0
    }

    /// Adds a claimed row. Its lease counts from the claim, its limits from when the row was asked for: so they end here
    /// a moment before they end in the database, where recovery would be first otherwise.
    pub fn add(&mut self, claimed: Millis, asked: Millis, row: ClaimRow) -> Handle {
        let handle = self.next_handle;
        self.next_handle += 1;
        let cause = if row.extra.ends_by_deadline { Cause::Deadline } else { Cause::Timeout };
        let attempt = Attempt {
            claim: row.claim,
            lane: row.lane,
            stage: Stage::Waiting,
            hold: Hold::Open,
            lease_until_ms: claimed + self.lease_ms,
            ends: row.ends_ms.map(|ms| (asked + ms.max(0) as Millis, cause)),
            abort: None,
            lapsed: false,
            checkpoints: row.extra.checkpoints,
            contracted: row.extra.contract,
            unchecked: row.extra.contract,
            conflict: false,
            limited: false,
            retry_delay_ms: self.retry_delay_ms,
            row: Some(Box::new(row)),
        };
        self.expect(attempt.lease_until_ms);
        if let Some((at, _)) = attempt.ends {
            self.expect(at);
        }
        self.by_handle.insert(handle, attempt);
        self.waiting.push_back(handle);
        handle
    }

    /// The next waiting attempt, if a slot is free: it runs from now on.
    pub fn start_next(&mut self) -> Option<(Handle, Box<ClaimRow>)> {
        if self.free() == 0 {
            return None;
        }
        let startable = |handle: &Handle| self.by_handle.get(handle).is_some_and(|attempt| !attempt.unchecked);
        let place = self.waiting.iter().position(startable)?;
        let handle = self.waiting.remove(place)?;
        let attempt = self.by_handle.get_mut(&handle)?;
        attempt.stage = Stage::Running;
        self.running += 1;
        attempt.row.take().map(|row| (handle, row))
    }

    /// Gives everything back that has not started.
    pub fn release_waiting(&mut self, reason: &'static str) -> Vec<Settling> {
        let handles = std::mem::take(&mut self.waiting);
        handles
            .into_iter()
            .filter_map(|handle| self.settle_unstarted(handle, Settlement::Release(Release { reason, started: false })))
            .collect()
    }

    /// Gives everything back that runs; the handlers are to be told `shutdown`.
    pub fn release_running(&mut self, now: Millis, reason: &'static str) -> Expired {
        let mut found = Expired::default();
        for (handle, a) in self.by_handle.iter_mut().filter(|(_, a)| a.stage == Stage::Running) {
            if a.abort.is_none() {
                a.abort = Some((Abort::Shutdown, now));
                found.aborts.push((*handle, Abort::Shutdown));
            }
            if a.hold == Hold::Open && !a.lapsed {
                a.hold = Hold::Settling;
                found.settle.push(settling(*handle, a, Settlement::Release(Release { reason, started: true })));
            }
        }
        found
    }

    /// The handler has come back. What that means depends on what was recorded before. `None`: nothing to send.
    pub fn returned(&mut self, handle: Handle, ending: Ending) -> Option<Settling> {
        let attempt = self.by_handle.get_mut(&handle)?;
        if attempt.stage != Stage::Running {
            return None;
        }
        attempt.stage = Stage::Returned;
        self.running -= 1;
        let settlement = match (attempt.hold, ending) {
            // Timeout, deadline, shutdown, or the database said it is no longer ours: decided before.
            (Hold::Settling | Hold::Over, _) => None,
            (Hold::Open, Ending::Complete(result)) => Some(Settlement::Complete(result)),
            (Hold::Open, _) if matches!(attempt.abort, Some((Abort::LeaseLost, _))) => None,
            (Hold::Open, Ending::Fail(failure)) => Some(Settlement::Fail(Failure {
                cause: if attempt.conflict && failure.cause == Cause::Error {
                    Cause::Checkpoint
                } else {
                    failure.cause
                },
                ..failure
            })),
            (Hold::Open, Ending::Release { started }) => {
                Some(Settlement::Release(Release { reason: "handed back by the worker", started }))
            }
        };
        match settlement {
            Some(settlement) => {
                attempt.hold = Hold::Settling;
                Some(settling(handle, attempt, settlement))
            }
            None => {
                if attempt.hold == Hold::Open {
                    attempt.hold = Hold::Over;
                }
                self.forget_if_over(handle);
                None
            }
        }
    }

    /// The database has answered the settlement, or it was given up. Returns the attempt's lane.
    pub fn settled(&mut self, handle: Handle) -> Option<i64> {
        let attempt = self.by_handle.get_mut(&handle)?;
        attempt.hold = Hold::Over;
        if std::mem::take(&mut attempt.limited) {
            self.limits_pending -= 1;
        }
        let lane = attempt.lane;
        self.forget_if_over(handle);
        Some(lane)
    }

    /// What the worker's `retryDelayMs` says about this attempt, for its timeout.
    pub fn set_retry_delay(&mut self, handle: Handle, ms: Option<i64>) {
        if let Some(attempt) = self.by_handle.get_mut(&handle) {
            attempt.retry_delay_ms = ms;
        }
    }

    /// Handlers that were asked to stop and still run.
    pub fn stuck(&self) -> Vec<Stuck> {
        self.by_handle
            .iter()
            .filter(|(_, a)| a.stage == Stage::Running)
            .filter_map(|(handle, a)| {
                let (reason, since_ms) = a.abort?;
                Some(Stuck { handle: *handle, job: a.claim.job, reason, since_ms })
            })
            .collect()
    }

    /// The claim behind a handle, while it is ours and no end is decided.
    pub fn current(&self, handle: Handle) -> Option<Claim> {
        self.by_handle.get(&handle).filter(|a| a.hold == Hold::Open && a.stage == Stage::Running).map(|a| a.claim)
    }

    /// The job behind a handle.
    pub fn job(&self, handle: Handle) -> Option<uuid::Uuid> {
        self.by_handle.get(&handle).map(|a| a.claim.job)
    }

    /// Whether the job has checkpoints; only with it is there something to read.
    pub fn has_checkpoints(&self, handle: Handle) -> bool {
        self.by_handle.get(&handle).is_some_and(|a| a.checkpoints)
    }

    /// A checkpoint was saved.
    pub fn checkpoint_saved(&mut self, handle: Handle) {
        if let Some(attempt) = self.by_handle.get_mut(&handle) {
            attempt.checkpoints = true;
        }
    }

    /// A checkpoint was refused because it holds another value.
    pub fn checkpoint_refused(&mut self, handle: Handle) {
        if let Some(attempt) = self.by_handle.get_mut(&handle) {
            attempt.conflict = true;
        }
    }

    pub(super) fn settle_unstarted(&mut self, handle: Handle, settlement: Settlement) -> Option<Settling> {
        let attempt = self.by_handle.get_mut(&handle)?;
        attempt.stage = Stage::Returned;
        attempt.row = None;
        attempt.hold = Hold::Settling;
        Some(settling(handle, attempt, settlement))
    }

    pub(super) fn forget_if_over(&mut self, handle: Handle) {
        if self.by_handle.get(&handle).is_some_and(|a| a.hold == Hold::Over && a.stage == Stage::Returned) {
            self.by_handle.remove(&handle);
        }
    }
}

pub(super) fn settling(handle: Handle, attempt: &Attempt, settlement: Settlement) -> Settling {
    Settling { handle, claim: attempt.claim, settlement, reduced: false }
}
