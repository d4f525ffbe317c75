//! What goes into the machine and what comes out: events and actions, the statements it wants run and their
//! answers. Plain data; nothing here touches a socket, a clock or a thread.

use std::sync::Arc;

use uuid::Uuid;

use crate::error::{Error, Result};

/// Milliseconds of a monotonic clock that starts with the worker.
pub type Millis = u64;

/// Names one started attempt towards the host; never used twice by a worker.
pub type Handle = u64;

/// One claim of one job. `(claim, number)` is the fence that every report carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// The job, first, so that sorted claims are locked in the order of their jobs.
    pub job: Uuid,
    /// The claim call that took it.
    pub claim: Uuid,
    /// Its number within that call.
    pub number: i16,
}

impl Claim {
    /// The text callers see.
    pub fn fence(&self) -> String {
        format!("{}/{}", self.claim, self.number)
    }
}

/// One row of a claim, as the database returned it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimRow {
    pub claim: Claim,
    pub lane: i64,
    /// Its place in the lane: later claims look from here on.
    pub seq: i64,
    pub attempt: i16,
    /// Until timeout or deadline, whichever is first.
    pub ends_ms: Option<i64>,
    /// JSON text, passed through as it is.
    pub payload: Option<String>,
    /// The payload holds an integer that a double cannot.
    pub big_numbers: bool,
    pub extra: Extra,
}

/// What a claim says beyond the usual.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra {
    pub tags: Vec<String>,
    pub max_attempts: Option<i64>,
    pub deadline: Option<String>,
    pub run_id: Option<String>,
    pub idempotency_key: Option<String>,
    pub synthetic: bool,
    /// `ends_ms` is the deadline's, not the timeout's.
    pub ends_by_deadline: bool,
    /// The job has checkpoints of earlier attempts.
    pub checkpoints: bool,
    /// Its type had a contract when it was enqueued.
    pub contract: bool,
}

/// A lane as the database knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRow {
    pub id: i64,
    pub queue: String,
    pub kind: String,
    pub version: String,
    pub endpoint: Option<String>,
    pub priority: i16,
}

/// Why a failed attempt failed, as `fail` wants it named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Error,
    Timeout,
    Deadline,
    Output,
    Input,
    Checkpoint,
}

impl Cause {
    /// The word the SQL functions know.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Error => "error",
            Cause::Timeout => "timeout",
            Cause::Deadline => "deadline",
            Cause::Output => "output",
            Cause::Input => "input",
            Cause::Checkpoint => "checkpoint",
        }
    }
}

/// A failure ready to be sent: everything in it is checked and bounded.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub cause: Cause,
    /// A JSON object `{"name","message",…}`.
    pub error: Arc<str>,
    pub retryable: Option<bool>,
    pub worker_delay_ms: Option<i64>,
    pub retry_after_ms: Option<i64>,
    pub uncertain: bool,
    pub override_refused: Option<String>,
    pub hint_ignored: Option<String>,
    pub cancellation: bool,
}

impl Failure {
    /// A failure the core itself reports.
    pub fn of(cause: Cause, name: &str, message: &str) -> Failure {
        Failure {
            cause,
            error: serde_json::json!({"name": name, "message": message}).to_string().into(),
            retryable: None,
            worker_delay_ms: None,
            retry_after_ms: None,
            uncertain: false,
            override_refused: None,
            hint_ignored: None,
            cancellation: false,
        }
    }
}

/// How a handler ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// With a result as JSON text; absent is null.
    Complete(Option<Arc<str>>),
    Fail(Failure),
    /// The job goes back: its handler did not run, or may have.
    Release {
        started: bool,
    },
}

/// One report of the host, already checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub handle: Handle,
    pub ending: Ending,
    /// For the host's `onError`: something in the report was not as it should be.
    pub note: Option<Error>,
}

/// Why a running handler is asked to stop. The first reason recorded decides what its end means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    Cancel,
    Timeout,
    Deadline,
    LeaseLost,
    Shutdown,
}

impl Abort {
    /// The word hosts know.
    pub fn as_str(self) -> &'static str {
        match self {
            Abort::Cancel => "cancel",
            Abort::Timeout => "timeout",
            Abort::Deadline => "deadline",
            Abort::LeaseLost => "lease_lost",
            Abort::Shutdown => "shutdown",
        }
    }
}

/// What one attempt's end asks of the database.
#[derive(Clone, Debug, PartialEq)]
pub enum Settlement {
    Complete(Option<Arc<str>>),
    Fail(Failure),
    Release(Release),
}

/// A claim given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// For the timeline.
    pub reason: &'static str,
    /// A handler may have begun: then its effect may have happened.
    pub started: bool,
}

/// A settlement with the attempt it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Settling {
    pub handle: Handle,
    pub claim: Claim,
    pub settlement: Settlement,
    /// It has been refused once in its full form.
    pub reduced: bool,
}

/// A payload that is to be checked against its contract.
#[derive(Clone, Debug, PartialEq)]
pub struct Checking {
    pub handle: Handle,
    pub lane: Arc<LaneRow>,
    pub payload: Option<Arc<str>>,
}

/// A statement of the pump. One is in flight at a time; after a lost connection the same one is sent again.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    Register,
    Lanes,
    Survey {
        lanes: Vec<i64>,
        hints: Vec<i64>,
    },
    Claim {
        claim: Uuid,
        lanes: Vec<i64>,
        hints: Vec<i64>,
        quotas: Vec<i32>,
        max_jobs: i32,
        async_commit: bool,
    },
    /// The rows of a claim whose answer was lost.
    Claimed {
        claim: Uuid,
    },
    /// Payloads under contract. Asks the database only for contracts that are not known yet.
    Check(Vec<Checking>),
    /// All of one kind, in the order of their jobs.
    Settle(Vec<Settling>),
    Progress(Vec<(Claim, Arc<str>)>),
    Sleep {
        for_ms: i64,
    },
    Wake,
    Unregister,
}

/// What the database answered to the pump.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Registered,
    Lanes(Vec<LaneRow>),
    /// Lanes with work, and where it starts.
    Ready(Vec<(i64, i64)>),
    Rows(Vec<ClaimRow>),
    /// Per payload: how its job fails, if it does.
    Checked(Vec<Option<Failure>>),
    /// One verdict per settlement, or none when all were accepted.
    Settled(Vec<Verdict>),
    Done,
}

impl Query {
    /// For messages.
    pub fn name(&self) -> &'static str {
        match self {
            Query::Register => "register",
            Query::Lanes => "lanes",
            Query::Survey { .. } => "survey",
            Query::Claim { .. } => "claim",
            Query::Claimed { .. } => "claimed",
            Query::Check(_) => "check",
            Query::Settle(_) => "settle",
            Query::Progress(_) => "progress",
            Query::Sleep { .. } => "sleep",
            Query::Wake => "wake",
            Query::Unregister => "unregister",
        }
    }
}

impl Answer {
    /// For messages.
    pub fn name(&self) -> &'static str {
        match self {
            Answer::Registered => "registered",
            Answer::Lanes(_) => "lanes",
            Answer::Ready(_) => "ready",
            Answer::Rows(_) => "rows",
            Answer::Checked(_) => "checked",
            Answer::Settled(_) => "settled",
            Answer::Done => "done",
        }
    }
}

/// What became of one settlement.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Accepted,
    LeaseLost,
    /// The result was too large: the job is `failed`.
    ResultRefused,
}

/// A statement of the keeper.
#[derive(Clone, Debug, PartialEq)]
pub enum Care {
    Heartbeat(Vec<(Handle, Claim)>),
    /// `full`: look at all that may be due, not only at what became due lately.
    Tick {
        max_rows: i32,
        full: bool,
    },
    /// Removes what retention no longer keeps.
    Prune {
        max_rows: i32,
    },
    Seen {
        running: i32,
    },
    /// A notification to ourselves, to learn whether wake-ups arrive.
    Ping(u64),
}

/// What the database answered to the keeper.
#[derive(Clone, Debug, PartialEq)]
pub enum Cared {
    /// Per claim: 0 accepted, 1 cancel requested, 2 lease lost.
    Beaten(Vec<i16>),
    Ticked {
        moved: i32,
        more: bool,
        next_ms: Option<i64>,
    },
    Pruned {
        jobs: i32,
    },
    Done,
}

/// What can happen to a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The pump has a connection.
    PumpUp,
    /// `up`: the connection may be used again.
    PumpAnswered {
        result: Result<Answer>,
        up: bool,
    },
    KeeperUp,
    KeeperAnswered {
        result: Result<Cared>,
        up: bool,
    },
    /// A thread could not connect, for a reason that may pass.
    Unreachable(Error),
    /// The worker cannot go on.
    Fatal(Error),
    ListenerUp,
    ListenerDown,
    /// Work may have come.
    Woken,
    /// A cancel may have been requested.
    CancelHinted,
    PingHeard(u64),
    Reports(Vec<Report>),
    Progress {
        handle: Handle,
        value: Arc<str>,
    },
    /// What the worker's `retryDelayMs` says, should the attempt end by its timeout.
    RetryDelay {
        handle: Handle,
        ms: Option<i64>,
    },
    CheckpointSaved(Handle),
    CheckpointRefused(Handle),
    /// Drain: no new claims, running handlers may end within the grace time.
    Stop,
    /// End now: what still runs is released.
    Close,
    /// Time has passed.
    Clock,
}

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Pump(Arc<Query>),
    Keep(Arc<Care>),
    /// Hand the job to the host.
    Start {
        handle: Handle,
        row: Box<ClaimRow>,
        lane: Arc<LaneRow>,
    },
    Abort {
        handle: Handle,
        reason: Abort,
    },
    /// Tell the host's `onError`.
    Complain {
        error: Error,
        handle: Option<Handle>,
        job: Option<Uuid>,
    },
    /// Drop the listening connection and try again after the pause.
    Relisten {
        after_ms: Millis,
    },
    /// The end; nothing follows.
    Stopped(Option<Error>),
}
