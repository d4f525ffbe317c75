//! A model of the database and of a host, and any order of events: enqueues that commit late, lost answers, cut
//! statements, cancels, recovery by others, stops. Whatever comes, the promises of the machine hold.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::error::Result;

#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered,
    /// The connection breaks before the statement is done.
    LostBefore,
    /// It is done, and the answer is lost.
    LostAfter,
    Cut,
    ReadOnly,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Enqueue {
        lane: usize,
        late: bool,
    },
    /// The enqueues that were still uncommitted commit.
    Commit,
    Pump(Fate),
    Keeper(Fate),
    Connect,
    Finish {
        which: usize,
        how: u8,
    },
    Pass(Millis),
    Wake,
    Cancel {
        which: usize,
    },
    /// Another worker's tick takes the job as if its lease had ended.
    Steal {
        which: usize,
    },
    Progress {
        which: usize,
    },
    Stop,
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Uncommitted { seq: i64 },
    Ready { seq: i64 },
    Active { claim: Claim, seq: i64, lease_until: Millis, cancel: bool },
    Ended,
}

struct World {
    machine: Machine,
    settings: Settings,
    now: Millis,
    lanes: Vec<LaneRow>,
    jobs: BTreeMap<u128, (usize, State)>,
    seq: i64,
    /// Rows a claim has taken, as `claimed` would tell.
    settled: HashMap<Claim, u8>,
    sent: HashMap<Claim, u8>,
    pump_up: bool,
    keeper_up: bool,
    query: Option<Arc<Query>>,
    care: Option<Arc<Care>>,
    running: BTreeMap<Handle, Claim>,
    started: HashSet<Claim>,
    /// Handles whose payloads were checked and are sound.
    sound: HashSet<Handle>,
    stopping: bool,
    stopped: usize,
    aborted: HashSet<Handle>,
    /// Some lease was given up: what becomes of the job is recovery's business.
    lost: bool,
}

impl World {
    fn new(slots: usize, prefetch: usize) -> World {
        let settings = Settings { prefetch, lease_ms: 3_000, grace_ms: 2_000, ..settings(slots) };
        let lanes = vec![lane(10, 0, None), lane(20, 5, None), lane(30, 5, None), lane(40, -1, Some("api"))];
        let mut world = World {
            machine: Machine::new(settings.clone()),
            settings,
            now: 0,
            lanes,
            jobs: BTreeMap::new(),
            seq: 0,
            settled: HashMap::new(),
            sent: HashMap::new(),
            pump_up: false,
            keeper_up: false,
            query: None,
            care: None,
            running: BTreeMap::new(),
            started: HashSet::new(),
            sound: HashSet::new(),
            stopping: false,
            stopped: 0,
            aborted: HashSet::new(),
            lost: false,
        };
        world.connect();
        world
    }

    fn step(&mut self, event: Event) {
        let clock = event == Event::Clock;
        let actions = self.machine.step(self.now, event);
        for action in actions {
            assert_eq!(self.stopped, 0, "nothing follows the end: {action:?}");
            match action {
                Action::Pump(query) => {
                    assert!(self.pump_up && self.query.is_none(), "one statement at a time, on a connection");
                    self.check_query(&query);
                    self.query = Some(query);
                }
                Action::Keep(care) => {
                    assert!(self.keeper_up && self.care.is_none());
                    self.care = Some(care);
                }
                Action::Start { handle, row, .. } => {
                    assert!(!self.stopping, "no start after the stop");
                    assert!(self.started.insert(row.claim), "a claim starts once");
                    assert!(!row.extra.contract || self.sound.contains(&handle), "no handler before the check");
                    assert!(self.running.insert(handle, row.claim).is_none(), "a handle is used once");
                    assert!(self.running.len() <= self.settings.slots, "never more than the slots");
                }
                Action::Abort { handle, reason } => {
                    self.lost |= reason == Abort::LeaseLost;
                    assert!(self.running.contains_key(&handle), "only what runs is aborted");
                    assert!(self.aborted.insert(handle), "and once");
                }
                Action::Stopped(error) => {
                    assert_eq!(error, None);
                    self.stopped += 1;
                }
                Action::Complain { .. } | Action::Relisten { .. } => {}
            }
        }
        if clock && let Some(due) = self.machine.due() {
            assert!(due > self.now, "the clock must not spin: due {due} at {}", self.now);
        }
    }

    fn check_query(&mut self, query: &Query) {
        match query {
            Query::Claim { max_jobs, .. } => {
                assert!(!self.stopping, "no claim after the stop");
                let room = self.settings.slots - self.running.len() + self.settings.prefetch;
                assert!((1..=room).contains(&(*max_jobs as usize)), "{max_jobs} with room for {room}");
            }
            Query::Settle(batch) => {
                assert!(
                    batch.windows(2).all(|pair| pair[0].claim.job <= pair[1].claim.job),
                    "in the order of the jobs"
                );
                for settling in batch {
                    let kind = kind(&settling.settlement);
                    let before = self.sent.insert(settling.claim, kind);
                    assert!(before.is_none_or(|before| before == kind), "a claim is settled in one way");
                }
            }
            _ => {}
        }
    }

    fn connect(&mut self) {
        if !self.pump_up {
            self.pump_up = true;
            self.step(Event::PumpUp);
        }
        if !self.keeper_up {
            self.keeper_up = true;
            self.step(Event::KeeperUp);
        }
    }

    fn pump(&mut self, fate: Fate) {
        let Some(query) = self.query.take() else { return };
        let done = matches!(fate, Fate::Answered | Fate::LostAfter).then(|| self.run(&query));
        let (result, up) = outcome(fate, done);
        self.pump_up = up;
        self.step(Event::PumpAnswered { result, up });
    }

    fn keeper(&mut self, fate: Fate) {
        let Some(care) = self.care.take() else { return };
        let done = matches!(fate, Fate::Answered | Fate::LostAfter).then(|| self.attend(&care));
        let (result, up) = outcome(fate, done);
        self.keeper_up = up;
        self.step(Event::KeeperAnswered { result, up });
    }

    fn run(&mut self, query: &Query) -> Answer {
        match query {
            Query::Register => Answer::Registered,
            Query::Lanes => Answer::Lanes(self.lanes.clone()),
            Query::Survey { lanes, hints } => {
                let heads = lanes.iter().zip(hints).filter_map(|(id, hint)| {
                    let head = self.ready(*id, *hint).into_iter().map(|(seq, _)| seq).next()?;
                    Some((*id, head))
                });
                Answer::Ready(heads.collect())
            }
            Query::Claim { claim, lanes, hints, quotas, max_jobs, .. } => {
                let mut rows = Vec::new();
                for ((id, hint), quota) in lanes.iter().zip(hints).zip(quotas) {
                    for (seq, job) in self.ready(*id, *hint).into_iter().take(*quota as usize) {
                        if rows.len() < *max_jobs as usize {
                            let number = rows.len() as i16 + 1;
                            let row = claimed(job, *claim, number, *id, seq);
                            let lease_until = self.now + self.settings.lease_ms;
                            let state = State::Active { claim: row.claim, seq, lease_until, cancel: false };
                            self.jobs.get_mut(&job).unwrap().1 = state;
                            rows.push(row);
                        }
                    }
                }
                Answer::Rows(rows)
            }
            Query::Claimed { claim: asked } => {
                let held = self.jobs.iter().filter_map(|(job, (lane, state))| match state {
                    State::Active { claim, seq, .. } if claim.claim == *asked => {
                        Some(claimed(*job, *asked, claim.number, self.lanes[*lane].id, *seq))
                    }
                    _ => None,
                });
                Answer::Rows(held.collect())
            }
            Query::Check(batch) => Answer::Checked(batch.iter().map(|one| self.check(one)).collect()),
            Query::Settle(batch) => Answer::Settled(batch.iter().map(|one| self.settle(one)).collect()),
            Query::Progress(_) | Query::Sleep { .. } | Query::Wake | Query::Unregister => Answer::Done,
        }
    }

    /// The payload of a model job is its number: every third job has a contract, and it refuses every ninth.
    fn check(&mut self, checking: &Checking) -> Option<Failure> {
        let job: u128 = checking.payload.as_deref().unwrap().parse().unwrap();
        assert!(job.is_multiple_of(3), "only what has a contract is checked");
        if job.is_multiple_of(9) {
            return Some(Failure::of(Cause::Input, "ContractViolation", "m"));
        }
        self.sound.insert(checking.handle);
        None
    }

    fn settle(&mut self, settling: &Settling) -> Verdict {
        let kind = kind(&settling.settlement);
        let job = self.jobs.get_mut(&settling.claim.job.as_u128()).unwrap();
        match job.1 {
            State::Active { claim, seq, .. } if claim == settling.claim => {
                job.1 = if kind == 2 { State::Ready { seq } } else { State::Ended };
                self.settled.insert(claim, kind);
                Verdict::Accepted
            }
            _ if self.settled.get(&settling.claim) == Some(&kind) => Verdict::Accepted,
            _ => Verdict::LeaseLost,
        }
    }

    fn attend(&mut self, care: &Care) -> Cared {
        match care {
            Care::Heartbeat(claims) => Cared::Beaten(
                claims
                    .iter()
                    .map(|(_, ours)| match &mut self.jobs.get_mut(&ours.job.as_u128()).unwrap().1 {
                        State::Active { claim, lease_until, cancel, .. }
                            if claim == ours && *lease_until > self.now =>
                        {
                            *lease_until = self.now + self.settings.lease_ms;
                            i16::from(*cancel)
                        }
                        _ => 2,
                    })
                    .collect(),
            ),
            Care::Tick { .. } => {
                let now = self.now;
                let over = |state: &State| matches!(state, State::Active { lease_until, .. } if *lease_until <= now);
                let jobs: Vec<u128> =
                    self.jobs.iter().filter(|(_, (_, state))| over(state)).map(|(job, _)| *job).collect();
                for job in &jobs {
                    self.make_ready(*job);
                }
                Cared::Ticked { moved: jobs.len() as i32, more: false, next_ms: None }
            }
            Care::Prune { .. } => Cared::Pruned { jobs: 0 },
            Care::Seen { .. } | Care::Ping(_) => Cared::Done,
        }
    }

    fn ready(&self, lane: i64, hint: i64) -> Vec<(i64, u128)> {
        let mut found: Vec<(i64, u128)> = self
            .jobs
            .iter()
            .filter_map(|(job, (own, state))| match state {
                State::Ready { seq } if self.lanes[*own].id == lane && *seq >= hint => Some((*seq, *job)),
                _ => None,
            })
            .collect();
        found.sort_unstable();
        found
    }

    fn make_ready(&mut self, job: u128) {
        self.seq += 1;
        self.jobs.get_mut(&job).unwrap().1 = State::Ready { seq: self.seq };
    }

    fn nth_active(&self, which: usize) -> Option<u128> {
        let active: Vec<u128> = self
            .jobs
            .iter()
            .filter(|(_, (_, state))| matches!(state, State::Active { .. }))
            .map(|(job, _)| *job)
            .collect();
        active.get(which % active.len().max(1)).copied()
    }

    fn nth_running(&self, which: usize) -> Option<Handle> {
        self.running.keys().nth(which % self.running.len().max(1)).copied()
    }

    fn finish(&mut self, handle: Handle, how: u8) {
        self.running.remove(&handle);
        let ending = match how {
            0 => Ending::Complete(None),
            1 => Ending::Fail(Failure::of(Cause::Error, "E", "m")),
            _ => Ending::Release { started: true },
        };
        self.step(Event::Reports(vec![Report { handle, ending, note: None }]));
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Enqueue { lane, late } => {
                self.seq += 1;
                let state = if late { State::Uncommitted { seq: self.seq } } else { State::Ready { seq: self.seq } };
                let id = self.jobs.len() as u128 + 1;
                self.jobs.insert(id, (lane % self.lanes.len(), state));
            }
            Op::Commit => {
                for (_, state) in self.jobs.values_mut() {
                    if let State::Uncommitted { seq } = *state {
                        *state = State::Ready { seq };
                    }
                }
            }
            Op::Pump(fate) => self.pump(fate),
            Op::Keeper(fate) => self.keeper(fate),
            Op::Connect => self.connect(),
            Op::Finish { which, how } => {
                if let Some(handle) = self.nth_running(which) {
                    self.finish(handle, how);
                }
            }
            Op::Pass(ms) => {
                self.now += ms;
                self.step(Event::Clock);
            }
            Op::Wake => self.step(Event::Woken),
            Op::Cancel { which } => {
                if let Some(job) = self.nth_active(which) {
                    if let State::Active { cancel, .. } = &mut self.jobs.get_mut(&job).unwrap().1 {
                        *cancel = true;
                    }
                    self.step(Event::CancelHinted);
                }
            }
            Op::Steal { which } => {
                if let Some(job) = self.nth_active(which) {
                    self.make_ready(job);
                }
            }
            Op::Progress { which } => {
                if let Some(handle) = self.nth_running(which) {
                    self.step(Event::Progress { handle, value: "1".into() });
                }
            }
            Op::Stop => {
                self.stopping = true;
                self.step(Event::Stop);
            }
            Op::Close => {
                self.stopping = true;
                self.step(Event::Close);
            }
        }
    }

    /// No more trouble: everything is answered and handlers succeed, for so long.
    fn calm(&mut self, ms: Millis) {
        let until = self.now + ms;
        for _ in 0..200_000 {
            if self.stopped > 0 {
                return;
            }
            self.connect();
            if self.query.is_some() {
                self.pump(Fate::Answered);
            } else if self.care.is_some() {
                self.keeper(Fate::Answered);
            } else if let Some(handle) = self.nth_running(0) {
                self.finish(handle, 0);
            } else if self.now >= until {
                return;
            } else {
                let due = self.machine.due().unwrap_or(until);
                self.now = due.clamp(self.now + 1, until.max(self.now + 1));
                self.step(Event::Clock);
            }
        }
        panic!("it does not come to rest");
    }
}

fn claimed(job: u128, claim: Uuid, number: i16, lane: i64, seq: i64) -> ClaimRow {
    let extra = Extra { contract: job.is_multiple_of(3), ..Extra::default() };
    ClaimRow { payload: Some(job.to_string()), extra, ..row(job, claim, number, lane, seq) }
}

fn kind(settlement: &Settlement) -> u8 {
    match settlement {
        Settlement::Complete(_) => 0,
        Settlement::Fail(_) => 1,
        Settlement::Release(_) => 2,
    }
}

fn outcome<T>(fate: Fate, done: Option<T>) -> (Result<T>, bool) {
    let error = |kind: Kind| Err(Error::new(kind, kind.code()));
    match (fate, done) {
        (Fate::Answered, Some(answer)) => (Ok(answer), true),
        (Fate::Cut, _) => (error(Kind::StatementTimeout), true),
        (Fate::ReadOnly, _) => (error(Kind::ReadOnly), false),
        _ => (error(Kind::ConnectionLost), false),
    }
}

fn fates() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Answered),
        1 => Just(Fate::LostBefore),
        1 => Just(Fate::LostAfter),
        1 => Just(Fate::Cut),
        1 => Just(Fate::ReadOnly),
    ]
}

fn ops(stops: bool) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (0..4usize, prop::bool::weighted(0.2)).prop_map(|(lane, late)| Op::Enqueue { lane, late }),
        1 => Just(Op::Commit),
        12 => fates().prop_map(Op::Pump),
        6 => fates().prop_map(Op::Keeper),
        4 => Just(Op::Connect),
        5 => (0..8usize, 0..3u8).prop_map(|(which, how)| Op::Finish { which, how }),
        6 => (0..1_500u64).prop_map(Op::Pass),
        2 => Just(Op::Wake),
        1 => (0..8usize).prop_map(|which| Op::Cancel { which }),
        1 => (0..8usize).prop_map(|which| Op::Steal { which }),
        1 => (0..8usize).prop_map(|which| Op::Progress { which }),
        1 => if stops { prop_oneof![Just(Op::Stop), Just(Op::Close)].boxed() } else { Just(Op::Wake).boxed() },
    ];
    prop::collection::vec(op, 0..150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Once the trouble is over every committed job ends, however wrong the hints were; and a drain leaves nothing.
    #[test]
    fn nothing_is_lost(slots in 1..5usize, prefetch in 0..3usize, ops in ops(false)) {
        let mut world = World::new(slots, prefetch);
        for op in ops {
            world.apply(op);
        }
        world.apply(Op::Commit);
        // A lease that nobody renews, and a full scan after it.
        world.calm(20_000);
        for (job, (lane, state)) in &world.jobs {
            prop_assert_eq!(*state, State::Ended, "job {} of lane {}", job, lane);
        }
        world.apply(Op::Enqueue { lane: 0, late: false });
        world.apply(Op::Stop);
        world.calm(5_000);
        prop_assert_eq!(world.stopped, 1);
        let left = world.jobs.values().filter(|(_, state)| matches!(state, State::Active { .. })).count();
        prop_assert_eq!(left, 0);
    }

    /// A stop at any moment: nothing starts, the end comes in time, and only a claim whose connection was gone when the
    /// time was over can be left to recovery.
    #[test]
    fn a_stop_ends_in_time(slots in 1..5usize, prefetch in 0..3usize, before in ops(false), after in ops(true)) {
        let mut world = World::new(slots, prefetch);
        for op in before {
            world.apply(op);
        }
        world.connect();
        let stopped_at = world.now;
        world.apply(Op::Stop);
        let mut troubled = false;
        for op in after {
            troubled |= !matches!(op, Op::Finish { .. } | Op::Enqueue { .. } | Op::Wake | Op::Commit | Op::Pump(Fate::Answered));
            world.apply(op);
        }
        world.calm(10_000);
        prop_assert_eq!(world.stopped, 1);
        if !troubled && !world.lost {
            let left = world.jobs.values().filter(|(_, state)| matches!(state, State::Active { .. })).count();
            prop_assert_eq!(left, 0);
        }
        let latest = stopped_at + world.settings.grace_ms + 1_000;
        prop_assert!(troubled || world.now <= latest, "stopped at {} of {}", world.now, latest);
    }
}
