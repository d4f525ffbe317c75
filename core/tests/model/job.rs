//! Jobs and claims of the reference world, how their attempts end, and the wait before the next one.

use crate::circuit::ClaimKey;

pub const ENDPOINTS: [&str; 2] = ["a", "b"];
pub const QUEUES: [&str; 2] = ["q0", "q1"];
pub const TYPES: [&str; 2] = ["t", "u"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    pub queue: usize,
    pub kind: usize,
    pub endpoint: Option<usize>,
    pub priority: i64,
    pub synthetic: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    None,
    Fixed { ms: i64 },
    Exponential { initial_ms: i64, multiplier: i64, max_ms: i64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Scheduled { wake: i64 },
    Ready,
    Active { claim: ClaimKey },
    Ended { state: &'static str, reason: Option<&'static str> },
}

/// When a job became ready: what is equal here may be claimed in any order.
pub type Rank = (usize, u8, i64);

#[derive(Clone, Debug)]
pub struct Job {
    pub id: String,
    pub lane: Lane,
    pub budget: i64,
    pub policy: Policy,
    pub timeout: Option<i64>,
    pub deadline: Option<i64>,
    pub phase: Phase,
    pub attempt: i64,
    pub rank: Rank,
    pub cancel: bool,
    pub uncertain: bool,
}

/// How a claim ended, if it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    Not,
    Complete,
    Release,
    Fail {
        cause: Cause,
        answer: Answer,
    },
    /// By recovery: no report is welcome any more.
    Recovered,
}

#[derive(Clone, Debug)]
pub struct Claim {
    /// The claim's id and number.
    pub fence: (String, i64),
    pub job: usize,
    pub generation: u32,
    pub probe: bool,
    pub claimed_at: i64,
    pub lease_end: i64,
    pub settled: Settled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Error,
    Timeout,
    Deadline,
    Output,
    Input,
    Checkpoint,
    Lease,
    Cancel,
}

impl Cause {
    pub fn name(self) -> &'static str {
        match self {
            Cause::Error => "error",
            Cause::Timeout => "timeout",
            Cause::Deadline => "deadline",
            Cause::Output => "output",
            Cause::Input => "input",
            Cause::Checkpoint => "checkpoint",
            Cause::Lease => "lease",
            Cause::Cancel => "cancel",
        }
    }
}

/// What a failure report carries besides its cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    pub retryable: Option<bool>,
    pub delay_ms: Option<i64>,
    pub worker_delay_ms: Option<i64>,
    pub hint_ms: Option<i64>,
    pub uncertain: bool,
    pub cancellation: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    LeaseLost,
    Ended { state: &'static str, reason: &'static str },
    Retry { delay_ms: i64, source: &'static str },
}

/// Explicit > the worker's > the policy's > the compatibility default; all but the first are raised to a hint.
pub fn chosen_delay(job: &Job, cause: Cause, failure: &Failure, told: Option<i64>) -> (i64, &'static str) {
    if let Some(ms) = failure.delay_ms {
        return (ms, "override");
    }
    let chosen = match (failure.worker_delay_ms, job.policy) {
        (Some(ms), _) if matches!(cause, Cause::Error | Cause::Timeout) => (ms, "worker_override"),
        (_, Policy::Fixed { ms }) => (ms, "policy:fixed"),
        (_, Policy::Exponential { initial_ms, multiplier, max_ms }) => {
            let grown = initial_ms * multiplier.pow(job.attempt as u32 - 1);
            (grown.min(max_ms), "policy:exponential")
        }
        (_, Policy::None) if cause == Cause::Lease => (0, "legacy:lease"),
        (_, Policy::None) => (told.unwrap_or_else(|| compatibility_bounds(job.attempt).0), "legacy:error"),
    };
    match failure.hint_ms {
        Some(hint) if hint.clamp(1000, 86_400_000) > chosen.0 => (hint.clamp(1000, 86_400_000), "retry_after"),
        _ => chosen,
    }
}

/// The smallest and the largest delay of a job without a policy, in milliseconds.
pub fn compatibility_bounds(attempt: i64) -> (i64, i64) {
    let base = (attempt - 1).pow(4) + 15;
    (base * 1000, (base + 9 * attempt) * 1000)
}
