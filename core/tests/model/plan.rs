//! What a run does: a list of operations whose choices are numbers, resolved against what there is when they come. So a
//! shorter list is a run, too, and a failing one can be shrunk.

use crate::job::{Cause, Failure, Lane, Policy};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
pub enum Force {
    Open,
    Close,
    Reset,
}

/// Who hands out the rows.
#[derive(Clone, Copy, Debug)]
pub enum Door {
    /// The public claim: promotes and recovers first, and picks the lanes.
    Public,
    /// The worker's statements: it picks lanes itself, in any order.
    Lanes,
}

#[derive(Clone, Debug)]
pub struct NewJob {
    pub lane: Lane,
    pub budget: i64,
    pub policy: Policy,
    pub timeout_ms: Option<i64>,
    pub deadline_ms: Option<i64>,
    pub delay_ms: i64,
}

#[derive(Clone, Debug)]
pub enum Op {
    Enqueue(Vec<NewJob>),
    Claim {
        worker: usize,
        door: Door,
        queues: u8,
        kinds: u8,
        limit: usize,
        lease_ms: i64,
    },
    /// Workers that claim at the same moment.
    Race {
        limit: usize,
        lease_ms: i64,
    },
    Complete {
        picks: Vec<u16>,
    },
    Fail {
        picks: Vec<u16>,
        cause: Cause,
        failure: Failure,
    },
    Release {
        pick: u16,
    },
    /// A report on the probe of an endpoint, if one is out; with an offset around the moment at which it is overdue.
    Probe {
        n: usize,
        overdue_ms: Option<i64>,
        kind: u8,
    },
    /// A report of any kind on any claim, ended or not.
    Stale {
        pick: u16,
        kind: u8,
    },
    Heartbeat {
        picks: Vec<u16>,
        lease_ms: i64,
    },
    Cancel {
        pick: u16,
    },
    Wait {
        ms: i64,
    },
    /// To the n-th moment at which something changes by itself, or a millisecond beside it.
    Until {
        moment: u8,
        offset_ms: i64,
    },
    Tick,
    Pause {
        endpoint: bool,
        n: usize,
        pausing: bool,
    },
    Rate {
        endpoint: bool,
        n: usize,
        rate: Option<(i64, i64, i64)>,
    },
    Concurrency {
        endpoint: bool,
        n: usize,
        limit: Option<i64>,
    },
    Circuit {
        n: usize,
        threshold: u32,
        cooldown_ms: i64,
        probe_timeout_ms: i64,
    },
    Force {
        n: usize,
        force: Force,
    },
    /// A worker's connection ends, and another begins.
    Restart {
        worker: usize,
    },
}

/// A run of about `steps` operations.
pub fn run(steps: usize) -> impl Strategy<Value = Vec<Op>> {
    vec(op(), steps * 3 / 4..steps * 5 / 4)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        14 => vec(job(), 1..5).prop_map(Op::Enqueue),
        20 => (0..3usize, door(), 1..4u8, 1..4u8, 1..7usize, lease()).prop_map(
            |(worker, door, queues, kinds, limit, lease_ms)| Op::Claim { worker, door, queues, kinds, limit, lease_ms }),
        4 => (1..4usize, lease()).prop_map(|(limit, lease_ms)| Op::Race { limit, lease_ms }),
        8 => vec(any::<u16>(), 1..4).prop_map(|picks| Op::Complete { picks }),
        18 => (vec(any::<u16>(), 1..4), cause(), failure()).prop_map(|(picks, cause, failure)| Op::Fail { picks, cause, failure }),
        3 => any::<u16>().prop_map(|pick| Op::Release { pick }),
        4 => (any::<u16>(), 0..4u8).prop_map(|(pick, kind)| Op::Stale { pick, kind }),
        4 => (0..2usize, prop::option::of(-1..3i64), 0..3u8).prop_map(|(n, overdue_ms, kind)| Op::Probe { n, overdue_ms, kind }),
        2 => (vec(any::<u16>(), 1..4), lease()).prop_map(|(picks, lease_ms)| Op::Heartbeat { picks, lease_ms }),
        2 => any::<u16>().prop_map(|pick| Op::Cancel { pick }),
        4 => prop_oneof![3 => 1..400i64, 1 => 400..20_000i64].prop_map(|ms| Op::Wait { ms }),
        10 => (0..6u8, -1..2i64).prop_map(|(moment, offset_ms)| Op::Until { moment, offset_ms }),
        3 => Just(Op::Tick),
        3 => (any::<bool>(), 0..2usize, any::<bool>()).prop_map(|(endpoint, n, pausing)| Op::Pause { endpoint, n, pausing }),
        2 => (prop::bool::weighted(0.7), 0..2usize, rate()).prop_map(|(endpoint, n, rate)| Op::Rate { endpoint, n, rate }),
        2 => (prop::bool::weighted(0.7), 0..2usize, prop::option::of(1..5i64)).prop_map(
            |(endpoint, n, limit)| Op::Concurrency { endpoint, n, limit }),
        3 => (0..2usize, 1..4u32, 500..5000i64, 1000..6000i64).prop_map(|(n, threshold, cooldown_ms, probe_timeout_ms)|
            Op::Circuit { n, threshold, cooldown_ms, probe_timeout_ms }),
        1 => (0..2usize, prop_oneof![1 => Just(Force::Open), 1 => Just(Force::Close), 3 => Just(Force::Reset)]).prop_map(
            |(n, force)| Op::Force { n, force }),
        1 => (0..3usize).prop_map(|worker| Op::Restart { worker }),
    ]
}

fn job() -> impl Strategy<Value = NewJob> {
    let limits = (prop::option::weighted(0.15, 200..4000i64), prop::option::weighted(0.1, 500..8000i64));
    (lane(), 1..5i64, policy(), limits, prop_oneof![4 => Just(0i64), 1 => 1..3000i64]).prop_map(
        |(lane, budget, policy, (timeout_ms, deadline_ms), delay_ms)| {
            // The compatibility delay is random: where nobody reports it, it cannot be compared.
            let known = timeout_ms.is_some() || deadline_ms.is_some();
            let policy = if known && policy == Policy::None { Policy::Fixed { ms: 250 } } else { policy };
            NewJob { lane, budget: if lane.synthetic { 1 } else { budget }, policy, timeout_ms, deadline_ms, delay_ms }
        },
    )
}

fn lane() -> impl Strategy<Value = Lane> {
    let lane = |queue, kind, endpoint, priority, synthetic| Just(Lane { queue, kind, endpoint, priority, synthetic });
    prop_oneof![
        6 => lane(0, 0, Some(0), 0, false),
        2 => lane(0, 1, Some(0), 0, false),
        2 => lane(1, 0, Some(0), 0, false),
        2 => lane(0, 0, Some(0), 5, false),
        2 => lane(0, 0, Some(1), 0, false),
        1 => lane(1, 1, Some(1), 0, false),
        1 => lane(0, 0, None, 0, false),
        1 => lane(1, 1, None, 5, false),
        1 => lane(0, 0, Some(0), 0, true),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        2 => Just(Policy::None),
        3 => Just(Policy::Fixed { ms: 0 }),
        3 => (1..3000i64).prop_map(|ms| Policy::Fixed { ms }),
        1 => (1..500i64, 1..4i64, 500..2000i64).prop_map(
            |(initial_ms, multiplier, max_ms)| Policy::Exponential { initial_ms, multiplier, max_ms }),
    ]
}

fn door() -> impl Strategy<Value = Door> {
    prop_oneof![3 => Just(Door::Public), 2 => Just(Door::Lanes)]
}

fn lease() -> impl Strategy<Value = i64> {
    prop_oneof![1 => 200..2000i64, 1 => 2000..30_000i64]
}

fn rate() -> impl Strategy<Value = Option<(i64, i64, i64)>> {
    // Tokens of whole microseconds, and of lengths that divide one another.
    prop::option::weighted(
        0.8,
        prop_oneof![Just((1, 500, 1)), Just((2, 2000, 2)), Just((5, 1000, 1)), Just((4, 4000, 3))],
    )
}

fn cause() -> impl Strategy<Value = Cause> {
    prop_oneof![
        12 => Just(Cause::Error),
        2 => Just(Cause::Timeout),
        1 => Just(Cause::Deadline),
        1 => Just(Cause::Output),
        1 => Just(Cause::Input),
        1 => Just(Cause::Checkpoint),
    ]
}

fn failure() -> impl Strategy<Value = Failure> {
    let retryable = prop_oneof![3 => Just(None), 1 => Just(Some(true)), 1 => Just(Some(false))];
    let delay = |chance| prop::option::weighted(chance, prop_oneof![1 => Just(0i64), 2 => 1..2000i64]);
    let hint = prop::option::weighted(0.15, 1..4000i64);
    (retryable, delay(0.2), delay(0.2), hint, prop::bool::weighted(0.1), prop::bool::weighted(0.1)).prop_map(
        |(retryable, delay_ms, worker_delay_ms, hint_ms, uncertain, cancellation)| Failure {
            retryable,
            delay_ms,
            worker_delay_ms,
            hint_ms,
            uncertain,
            cancellation,
        },
    )
}
