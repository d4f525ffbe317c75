//! The attempts this worker holds: which wait for a slot, which run, how long their leases and limits last, and
//! what a handler's report means after something else ended the attempt first. Owned by the machine; pure.

use std::collections::{BTreeMap, VecDeque};

use super::event::{Abort, Cause, Claim, ClaimRow, Ending, Failure, Handle, Millis, Settlement, Settling};

/// Where an attempt is on this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Claimed ahead; no handler yet.
    Waiting,
    /// The host has it.
    Running,
    /// The handler came back, or never ran.
    Returned,
}

/// Where it is on the database's side, as far as we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// Ours; no settlement yet.
    Open,
    /// A settlement waits or is on its way.
    Settling,
    /// Settled, or no longer ours.
    Over,
}

struct Attempt {
    claim: Claim,
    lane: i64,
    stage: Stage,
    hold: Hold,
    lease_until_ms: Millis,
    ends: Option<(Millis, Cause)>,
    abort: Option<(Abort, Millis)>,
    /// Our own clock says the lease is over; a success may still be accepted.
    lapsed: bool,
    checkpoints: bool,
    /// A checkpoint was refused for holding another value: that is why it will fail.
    conflict: bool,
    /// Its own limit ended it.
    limited: bool,
    retry_delay_ms: Option<i64>,
    row: Option<Box<ClaimRow>>,
}

/// A handler that was asked to stop and has not.
#[derive(Clone, Debug, PartialEq)]
pub struct Stuck {
    pub handle: Handle,
    pub job: uuid::Uuid,
    pub reason: Abort,
    pub since_ms: Millis,
}

/// What a clock step found.
#[derive(Default)]
pub struct Expired {
    pub aborts: Vec<(Handle, Abort)>,
    pub settle: Vec<Settling>,
}

/// What a cancel request leads to.
pub enum Canceling {
    Nothing,
    /// The handler is to be told.
    Tell,
    /// It had not started.
    Settle(Settling),
}

/// A claim that is lost so shortly before its own limit was lost by that limit.
const AHEAD_MS: Millis = 1_000;

/// All attempts of one worker.
pub struct Attempts {
    by_handle: BTreeMap<Handle, Attempt>,
    waiting: VecDeque<Handle>,
    running: usize,
    slots: usize,
    lease_ms: Millis,
    retry_delay_ms: Option<i64>,
    next_handle: Handle,
    limits_pending: usize,
    /// Nothing expires before this.
    quiet_until_ms: Option<Millis>,
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
        let handle = self.waiting.pop_front()?;
        let attempt = self.by_handle.get_mut(&handle)?;
        attempt.stage = Stage::Running;
        self.running += 1;
        attempt.row.take().map(|row| (handle, row))
    }

    /// Gives everything back that has not started.
    pub fn release_waiting(&mut self, reason: &'static str) -> Vec<Settling> {
        let handles = std::mem::take(&mut self.waiting);
        handles.into_iter().filter_map(|handle| self.settle_unstarted(handle, Settlement::Release(reason))).collect()
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
                found.settle.push(settling(*handle, a, Settlement::Release(reason)));
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
                cause: if attempt.conflict && failure.cause == Cause::Error { Cause::Checkpoint } else { failure.cause },
                ..failure
            })),
            (Hold::Open, Ending::Release) => Some(Settlement::Release("handed back by the worker")),
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

    /// All that a heartbeat renews: what is ours and not settled.
    pub fn to_renew(&self) -> Vec<(Handle, Claim)> {
        let ours = self.by_handle.iter().filter(|(_, a)| a.hold == Hold::Settling || (a.hold == Hold::Open && !a.lapsed));
        let mut claims: Vec<(Handle, Claim)> = ours.map(|(handle, a)| (*handle, a.claim)).collect();
        claims.sort_unstable_by_key(|(_, claim)| *claim);
        claims
    }

    /// A heartbeat that was sent at `sent` renewed this one.
    pub fn renewed(&mut self, handle: Handle, sent: Millis) {
        if let Some(attempt) = self.by_handle.get_mut(&handle) {
            attempt.lease_until_ms = attempt.lease_until_ms.max(sent + self.lease_ms);
        }
    }

    /// Somebody asked to cancel the job.
    pub fn cancel(&mut self, now: Millis, handle: Handle) -> Canceling {
        let Some(attempt) = self.by_handle.get_mut(&handle) else { return Canceling::Nothing };
        match (attempt.hold, attempt.stage) {
            (Hold::Open, Stage::Running) if attempt.abort.is_none() => {
                attempt.abort = Some((Abort::Cancel, now));
                Canceling::Tell
            }
            (Hold::Open, Stage::Waiting) => {
                self.waiting.retain(|other| *other != handle);
                let settling = self.settle_unstarted(handle, Settlement::Release("canceled before it started"));
                settling.map_or(Canceling::Nothing, Canceling::Settle)
            }
            _ => Canceling::Nothing,
        }
    }

    /// The database says the claim is no longer current. Returns what the handler is to be told.
    pub fn lost(&mut self, now: Millis, handle: Handle) -> Option<Abort> {
        let attempt = self.by_handle.get_mut(&handle)?;
        if attempt.hold != Hold::Open {
            // A settlement decides; the heartbeat crossed it.
            return None;
        }
        attempt.hold = Hold::Over;
        let mut tell = None;
        match attempt.stage {
            Stage::Running if attempt.abort.is_none() => {
                // Recovery, in some worker, may have been a moment ahead of us with the attempt's own limit.
                let reason = match attempt.ends {
                    Some((at, cause)) if at <= now + AHEAD_MS => abort_of(cause),
                    _ => Abort::LeaseLost,
                };
                attempt.abort = Some((reason, now));
                tell = Some(reason);
            }
            Stage::Waiting => {
                attempt.stage = Stage::Returned;
                self.waiting.retain(|other| *other != handle);
            }
            Stage::Running | Stage::Returned => {}
        }
        self.forget_if_over(handle);
        tell
    }

    /// What the worker's `retryDelayMs` says about this attempt, for its timeout.
    pub fn set_retry_delay(&mut self, handle: Handle, ms: Option<i64>) {
        if let Some(attempt) = self.by_handle.get_mut(&handle) {
            attempt.retry_delay_ms = ms;
        }
    }

    /// Ends what is past its timeout, deadline or lease.
    pub fn expire(&mut self, now: Millis) -> Expired {
        let mut found = Expired::default();
        if self.quiet_until_ms.is_none_or(|at| now < at) {
            return found;
        }
        let mut unstarted = Vec::new();
        for (handle, a) in self.by_handle.iter_mut().filter(|(_, a)| a.hold == Hold::Open) {
            let ended = a.ends.filter(|(at, _)| *at <= now).map(|(_, cause)| cause);
            let lapsed = a.lease_until_ms <= now && !a.lapsed;
            if ended.is_none() && !lapsed {
                continue;
            }
            if a.stage == Stage::Waiting {
                unstarted.push((*handle, ended));
                continue;
            }
            let reason = ended.map_or(Abort::LeaseLost, abort_of);
            if a.abort.is_none() {
                a.abort = Some((reason, now));
                found.aborts.push((*handle, reason));
            }
            match ended {
                Some(cause) => {
                    a.hold = Hold::Settling;
                    a.limited = true;
                    self.limits_pending += 1;
                    let failure = Failure { worker_delay_ms: a.retry_delay_ms, ..limit_failure(cause) };
                    found.settle.push(settling(*handle, a, Settlement::Fail(failure)));
                }
                None => a.lapsed = true,
            }
        }
        for (handle, ended) in unstarted {
            self.waiting.retain(|other| *other != handle);
            match ended {
                Some(Cause::Deadline) => {
                    let failure = limit_failure(Cause::Deadline);
                    found.settle.extend(self.settle_unstarted(handle, Settlement::Fail(failure)));
                }
                _ => found.settle.extend(self.settle_unstarted(handle, Settlement::Release("it waited too long for a slot"))),
            }
        }
        self.quiet_until_ms = self.next_expiry();
        found
    }

    /// When [`Attempts::expire`] is wanted next.
    pub fn expires_at(&self) -> Option<Millis> {
        self.quiet_until_ms
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

    /// How long the lease still lasts if nothing renews it.
    pub fn lease_remaining(&self, now: Millis, handle: Handle) -> Option<Millis> {
        let attempt = self.by_handle.get(&handle)?;
        if attempt.hold == Hold::Over { Some(0) } else { Some(attempt.lease_until_ms.saturating_sub(now)) }
    }

    fn settle_unstarted(&mut self, handle: Handle, settlement: Settlement) -> Option<Settling> {
        let attempt = self.by_handle.get_mut(&handle)?;
        attempt.stage = Stage::Returned;
        attempt.row = None;
        attempt.hold = Hold::Settling;
        Some(settling(handle, attempt, settlement))
    }

    fn forget_if_over(&mut self, handle: Handle) {
        if self.by_handle.get(&handle).is_some_and(|a| a.hold == Hold::Over && a.stage == Stage::Returned) {
            self.by_handle.remove(&handle);
        }
    }

    fn expect(&mut self, at: Millis) {
        self.quiet_until_ms = Some(self.quiet_until_ms.map_or(at, |known| known.min(at)));
    }

    fn next_expiry(&self) -> Option<Millis> {
        self.by_handle
            .values()
            .filter(|a| a.hold == Hold::Open)
            .flat_map(|a| [(!a.lapsed).then_some(a.lease_until_ms), a.ends.map(|(at, _)| at)])
            .flatten()
            .min()
    }
}

fn settling(handle: Handle, attempt: &Attempt, settlement: Settlement) -> Settling {
    Settling { handle, claim: attempt.claim, settlement, reduced: false }
}

fn abort_of(cause: Cause) -> Abort {
    if cause == Cause::Deadline { Abort::Deadline } else { Abort::Timeout }
}

fn limit_failure(cause: Cause) -> Failure {
    match cause {
        Cause::Deadline => Failure::of(cause, "Deadline", "the job's deadline came while the handler ran"),
        _ => Failure::of(cause, "Timeout", "the handler ran longer than the job's timeout"),
    }
}
