//! A run: every operation is done in the database and in the reference world, and the two are compared after each.

use crate::circuit::{Forced, State};
use crate::claiming::Ask;
use crate::compare::same;
use crate::gate::Gate;
use crate::job::{ENDPOINTS, Job, Phase, Policy, QUEUES, TYPES};
use crate::plan::{Door, Force, NewJob, Op};
use crate::stage::{Stage, WORKERS};
use crate::world::World;
use serde_json::{Value, json};

/// More live jobs than this are not enqueued: recovery works in batches of a hundred.
const MOST_JOBS: usize = 60;
/// Rounds of claims until everything has ended, at the end of a run.
const DRAIN_ROUNDS: usize = 400;

pub struct Run<'a> {
    pub stage: &'a mut Stage,
    pub world: World,
    /// By endpoint, as the last look has shown it.
    pub last_failed: [Option<String>; 2],
}

/// Does all operations, and then works off what is left: nothing may be stuck.
pub fn perform(stage: &mut Stage, ops: &[Op]) -> Result<(), String> {
    stage.clear();
    let now = stage.start_time();
    stage.set_clock(now);
    let mut run = Run { stage, world: World { now, ..World::default() }, last_failed: [None, None] };
    for (n, op) in ops.iter().enumerate() {
        run.step(op).map_err(|why| format!("operation {}, {op:?}: {why}", n + 1))?;
    }
    run.drain().map_err(|why| format!("working off the rest: {why}"))
}

impl Run<'_> {
    fn step(&mut self, op: &Op) -> Result<(), String> {
        self.world.step += 1;
        self.wait(1000);
        self.act(op)?;
        self.compare()
    }

    fn wait(&mut self, us: i64) {
        self.world.now += us;
        self.stage.set_clock(self.world.now);
    }

    fn act(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Enqueue(jobs) if self.world.unended() + jobs.len() <= MOST_JOBS => self.enqueue(jobs),
            Op::Enqueue(_) => Ok(()),
            Op::Claim { worker, door, queues, kinds, limit, lease_ms } => {
                let chosen = |mask: u8| (0..2).filter(|n| mask & (1 << n) != 0).collect();
                let by_priority = matches!(door, Door::Public);
                let ask = Ask {
                    queues: chosen(*queues),
                    kinds: chosen(*kinds),
                    limit: *limit,
                    lease: lease_ms * 1000,
                    by_priority,
                    alone: true,
                };
                let got = match door {
                    Door::Public => self.stage.claim(*worker, &ask)?,
                    Door::Lanes => self.stage.claim_lanes(*worker, &ask)?,
                };
                if by_priority {
                    self.world.tick();
                }
                self.world.claimed(&ask, &got, &self.last_failed)
            }
            Op::Race { limit, lease_ms } => self.race(*limit, *lease_ms),
            Op::Complete { picks } => self.complete(&self.live_picks(picks)),
            Op::Fail { picks, cause, failure } => {
                let keys = self.live_picks(picks);
                self.fail(&keys.into_iter().map(|key| (key, *cause, failure.clone())).collect::<Vec<_>>())
            }
            Op::Release { pick } => self.live_picks(&[*pick]).first().map_or(Ok(()), |key| self.release(*key)),
            Op::Probe { n, overdue_ms, kind } => {
                let State::HalfOpen { probe, overdue_at } = self.world.circuits[*n].state else {
                    return Ok(());
                };
                if let Some(offset) = overdue_ms {
                    self.wait((overdue_at + offset * 1000 - self.world.now).max(0));
                }
                self.report(probe, *kind)
            }
            Op::Stale { .. } if self.world.claims.is_empty() => Ok(()),
            Op::Stale { pick, kind } => self.report(*pick as usize % self.world.claims.len(), *kind),
            Op::Heartbeat { picks, lease_ms } => self.heartbeat(picks, *lease_ms),
            Op::Cancel { pick } => self.cancel(*pick),
            Op::Wait { ms } => {
                self.wait(ms * 1000);
                Ok(())
            }
            Op::Until { moment, offset_ms } => {
                let moments = self.world.moments();
                if let Some(at) = moments.get(*moment as usize % moments.len().max(1)) {
                    // The next operation comes a millisecond later.
                    self.wait((at + (offset_ms - 1) * 1000 - self.world.now).max(0));
                }
                Ok(())
            }
            Op::Tick => {
                self.stage.text("select tick(100)::text");
                self.world.tick();
                Ok(())
            }
            Op::Pause { endpoint, n, pausing } => {
                self.gate(*endpoint, *n, if *pausing { "pause" } else { "resume" }, json!({}))?;
                self.gate_of(*endpoint, *n).paused = *pausing;
                Ok(())
            }
            Op::Rate { endpoint, n, rate } => {
                let told = rate.map(|(limit, ms, burst)| json!({"limit": limit, "intervalMs": ms, "burst": burst}));
                self.gate(*endpoint, *n, "configure", json!({"rateLimit": told}))?;
                let now = self.world.now;
                self.gate_of(*endpoint, *n).set_rate(rate.map(|(limit, ms, burst)| (limit, ms * 1000, burst)), now);
                Ok(())
            }
            Op::Concurrency { endpoint, n, limit } => {
                self.gate(*endpoint, *n, "configure", json!({"maxConcurrency": limit}))?;
                self.gate_of(*endpoint, *n).max_concurrency = *limit;
                Ok(())
            }
            Op::Circuit { n, threshold, cooldown_ms, probe_timeout_ms } => {
                let set = json!({"failureThreshold": threshold, "cooldownMs": cooldown_ms, "probeTimeoutMs": probe_timeout_ms});
                self.gate(true, *n, "configure", json!({"circuit": set}))?;
                let circuit = &mut self.world.circuits[*n];
                (circuit.threshold, circuit.cooldown) = (*threshold, cooldown_ms * 1000);
                circuit.probe_timeout = probe_timeout_ms * 1000;
                Ok(())
            }
            Op::Force { n, force } => {
                let (verb, forced) = match force {
                    Force::Open => ("force_open", Some(Forced::Open)),
                    Force::Close => ("force_close", Some(Forced::Closed)),
                    Force::Reset => ("reset", None),
                };
                self.gate(true, *n, verb, json!({}))?;
                self.world.circuits[*n].force(forced);
                Ok(())
            }
            Op::Restart { worker } => {
                self.stage.restart(*worker);
                Ok(())
            }
        }
    }

    fn enqueue(&mut self, jobs: &[NewJob]) -> Result<(), String> {
        let mut given = Vec::new();
        for (n, new) in jobs.iter().enumerate() {
            let id = self.stage.uuid();
            given.push(job_json(&id, new));
            let now = self.world.now;
            let phase = match new.delay_ms {
                0 => Phase::Ready,
                ms => Phase::Scheduled { wake: now + ms * 1000 },
            };
            self.world.jobs.push(Job {
                id,
                lane: new.lane,
                budget: new.budget,
                policy: new.policy,
                timeout: new.timeout_ms.map(|ms| ms * 1000),
                deadline: new.deadline_ms.map(|ms| now + ms * 1000),
                phase,
                attempt: 0,
                rank: (self.world.step, 2, n as i64),
                cancel: false,
                uncertain: false,
            });
        }
        self.stage.rpc("enqueue", &json!(given)).map(drop)
    }

    /// Time has already done its work when the workers start, so that the moments of becoming ready are known.
    fn race(&mut self, limit: usize, lease_ms: i64) -> Result<(), String> {
        self.stage.text("select tick(100)::text");
        self.world.tick();
        let each = Ask {
            queues: vec![0, 1],
            kinds: vec![0, 1],
            limit,
            lease: lease_ms * 1000,
            by_priority: false,
            alone: false,
        };
        let got = self.stage.race(&each)?;
        self.world.claimed(&Ask { limit: limit * WORKERS, ..each }, &got, &self.last_failed)
    }

    fn cancel(&mut self, pick: u16) -> Result<(), String> {
        if self.world.jobs.is_empty() {
            return Ok(());
        }
        let job = pick as usize % self.world.jobs.len();
        let answer = self.stage.rpc("rpc_cancel", &json!({"id": self.world.jobs[job].id, "actor": "model"}))?;
        same("result", &answer["result"], &self.world.cancel(job).into())
    }

    /// Different claims that still hold their job.
    fn live_picks(&self, picks: &[u16]) -> Vec<usize> {
        let live = self.world.live();
        if live.is_empty() {
            return Vec::new();
        }
        let mut keys: Vec<usize> = picks.iter().map(|pick| live[*pick as usize % live.len()]).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn gate(&mut self, endpoint: bool, n: usize, verb: &str, mut args: Value) -> Result<(), String> {
        let (kind, name) = if endpoint { ("endpoints", ENDPOINTS[n]) } else { ("queues", QUEUES[n]) };
        args["name"] = name.into();
        args["actor"] = "model".into();
        self.stage.rpc(&format!("rpc_{kind}_{verb}"), &args).map(drop)
    }

    fn gate_of(&mut self, endpoint: bool, n: usize) -> &mut Gate {
        if endpoint { &mut self.world.endpoint_gates[n] } else { &mut self.world.queue_gates[n] }
    }

    /// Ends all pauses and forces, and then lets time pass and workers succeed until every job has ended.
    fn drain(&mut self) -> Result<(), String> {
        for n in 0..2 {
            for endpoint in [true, false] {
                self.step(&Op::Pause { endpoint, n, pausing: false })?;
            }
            if self.world.circuits[n].forced.is_some() {
                self.step(&Op::Force { n, force: Force::Reset })?;
            }
        }
        for round in 0..DRAIN_ROUNDS {
            if self.world.unended() == 0 {
                return Ok(());
            }
            let door = if round % 2 == 0 { Door::Public } else { Door::Lanes };
            self.step(&Op::Claim { worker: round % WORKERS, door, queues: 3, kinds: 3, limit: 6, lease_ms: 30_000 })?;
            // Every other round the workers die instead.
            if round % 4 != 3 {
                self.step(&Op::Complete { picks: (0..6).collect() })?;
            }
            self.step(&Op::Until { moment: 0, offset_ms: 0 })?;
            self.step(&Op::Tick)?;
        }
        let stuck: Vec<&Job> =
            self.world.jobs.iter().filter(|job| !matches!(job.phase, Phase::Ended { .. })).take(3).collect();
        Err(format!("after {DRAIN_ROUNDS} rounds there are still {stuck:?}; circuits {:?}", self.world.circuits))
    }
}

fn job_json(id: &str, new: &NewJob) -> Value {
    let lane = new.lane;
    let mut job = json!({
        "id": id, "type": TYPES[lane.kind], "queue": QUEUES[lane.queue], "priority": lane.priority,
        "maxAttempts": new.budget, "synthetic": lane.synthetic, "delayMs": new.delay_ms,
    });
    let policy = match new.policy {
        Policy::None => None,
        Policy::Fixed { ms } => Some(json!({"type": "fixed", "delayMs": ms})),
        Policy::Exponential { initial_ms, multiplier, max_ms } => Some(json!({
            "type": "exponential", "initialDelayMs": initial_ms, "multiplier": multiplier, "maxDelayMs": max_ms,
        })),
    };
    let optional = [
        ("endpoint", lane.endpoint.map(|n| ENDPOINTS[n].into())),
        ("retryPolicy", policy),
        ("timeoutMs", new.timeout_ms.map(Value::from)),
        ("deadlineMs", new.deadline_ms.map(Value::from)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            job[name] = value;
        }
    }
    job
}
