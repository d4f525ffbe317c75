//! What ends an attempt from outside: its lease, its timeout or deadline, a cancel, another claim. The second half of
//! [`Attempts`].

use super::attempts::{Attempts, Hold, Stage, settling};
use super::event::{Abort, Cause, Claim, Failure, Handle, Millis, Release, Settlement, Settling};

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

impl Attempts {
    /// All that a heartbeat renews: what is ours and not settled.
    pub fn to_renew(&self) -> Vec<(Handle, Claim)> {
        let ours =
            self.by_handle.iter().filter(|(_, a)| a.hold == Hold::Settling || (a.hold == Hold::Open && !a.lapsed));
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
                let settling =
                    self.settle_unstarted(handle, Settlement::Release(before_start("canceled before it started")));
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

    /// Ends what is past its timeout, deadline or lease.
    pub fn expire(&mut self, now: Millis) -> Expired {
        let mut found = Expired::default();
        if self.quiet_until_ms.is_none_or(|at| now < at) {
            return found;
        }
        let mut waiting = Vec::new();
        for (handle, a) in self.by_handle.iter_mut().filter(|(_, a)| a.hold == Hold::Open) {
            let ended = a.ends.filter(|(at, _)| *at <= now).map(|(_, cause)| cause);
            let lapsed = a.lease_until_ms <= now && !a.lapsed;
            if ended.is_none() && !lapsed {
                continue;
            }
            if a.stage == Stage::Waiting {
                waiting.push((*handle, ended));
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
        for (handle, ended) in waiting {
            self.waiting.retain(|other| *other != handle);
            match ended {
                Some(Cause::Deadline) => {
                    let failure = limit_failure(Cause::Deadline);
                    found.settle.extend(self.settle_unstarted(handle, Settlement::Fail(failure)));
                }
                _ => found.settle.extend(
                    self.settle_unstarted(handle, Settlement::Release(before_start("it waited too long for a slot"))),
                ),
            }
        }
        self.quiet_until_ms = self.next_expiry();
        found
    }

    /// When [`Attempts::expire`] is wanted next.
    pub fn expires_at(&self) -> Option<Millis> {
        self.quiet_until_ms
    }

    /// How long the lease still lasts if nothing renews it.
    pub fn lease_remaining(&self, now: Millis, handle: Handle) -> Option<Millis> {
        let attempt = self.by_handle.get(&handle)?;
        if attempt.hold == Hold::Over { Some(0) } else { Some(attempt.lease_until_ms.saturating_sub(now)) }
    }

    pub(super) fn expect(&mut self, at: Millis) {
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

fn before_start(reason: &'static str) -> Release {
    Release { reason, started: false }
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
