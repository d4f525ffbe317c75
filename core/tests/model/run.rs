//! A run: every operation is done in the database and in the reference world, and the two are compared after each.

use crate::circuit::{Forced, State};
use crate::claiming::Ask;
use crate::plan::{Door, Force, NewJob, Op};
use crate::stage::{Stage, WORKERS, endpoint, snapshot};
use crate::world::{
    Answer, Cause, ENDPOINTS, Failure, Job, Phase, Policy, QUEUES, Settled, TYPES, World, compatibility_bounds,
};
use serde_json::{Map, Value, json};

/// More live jobs than this are not enqueued: recovery works in batches of a hundred.
const MOST_JOBS: usize = 60;
/// Rounds of claims until everything has ended, at the end of a run.
const DRAIN_ROUNDS: usize = 400;

pub struct Run<'a> {
    stage: &'a mut Stage,
    world: World,
    last_failed: [Option<String>; 2],
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

    fn complete(&mut self, keys: &[usize]) -> Result<(), String> {
        if keys.is_empty() {
            return Ok(());
        }
        let list = |part: &dyn Fn(usize) -> String| keys.iter().map(|key| part(*key)).collect::<Vec<_>>().join(",");
        let sql = format!(
            "select coalesce(to_jsonb(complete('{{{}}}', '{{{}}}', '{{{}}}', array_fill('1'::text, array[{}]))), '[]')::text",
            list(&|key| self.world.jobs[self.world.claims[key].job].id.clone()),
            list(&|key| self.world.claims[key].fence.0.clone()),
            list(&|key| self.world.claims[key].fence.1.to_string()),
            keys.len()
        );
        let codes: Vec<i64> = serde_json::from_str(&self.stage.text(&sql)).map_err(|e| e.to_string())?;
        for (n, key) in keys.iter().enumerate() {
            let accepted = codes.get(n).is_none_or(|code| *code < 2);
            same("accepted", &accepted, &self.world.complete(*key))?;
        }
        Ok(())
    }

    fn fail(&mut self, reports: &[(usize, Cause, Failure)]) -> Result<(), String> {
        if reports.is_empty() {
            return Ok(());
        }
        let given: Vec<Value> = reports.iter().map(|report| self.failure_json(report)).collect();
        let answers = self.stage.rpc("fail", &json!(given))?;
        let answers = answers.as_array().ok_or("no array")?;
        let mut told = Vec::new();
        for ((key, _, _), answer) in reports.iter().zip(answers) {
            let job = &self.world.jobs[self.world.claims[*key].job];
            let ms = answer["delayMs"].as_i64().filter(|_| answer["source"] == "legacy:error");
            if let (Settled::Not, Some(ms)) = (&self.world.claims[*key].settled, ms) {
                let (low, high) = compatibility_bounds(job.attempt);
                if !(low..=high).contains(&ms) {
                    return Err(format!("a compatibility delay of {ms} ms for {job:?}"));
                }
            }
            told.push(ms);
        }
        let expected = self.world.fail(reports, &told);
        for (expected, answer) in expected.iter().zip(answers) {
            let wanted = match expected {
                Answer::LeaseLost => json!({"error": "lease_lost"}),
                Answer::Ended { state, reason } => json!({"state": state, "reason": reason}),
                Answer::Retry { delay_ms, source } => {
                    let state = if *delay_ms == 0 { "ready" } else { "scheduled" };
                    json!({"state": state, "delayMs": delay_ms, "source": source})
                }
            };
            for (key, value) in wanted.as_object().expect("an object") {
                same(key, &answer[key], value)?;
            }
        }
        Ok(())
    }

    fn release(&mut self, key: usize) -> Result<(), String> {
        let args = json!({"claim": self.token(key)});
        let accepted = accepted(self.stage.rpc("rpc_release", &args))?;
        same("accepted", &accepted, &self.world.release(key))
    }

    /// A report on a claim that may have ended before.
    fn report(&mut self, key: usize, kind: u8) -> Result<(), String> {
        match kind {
            0 => self.complete(&[key]),
            1 => self.release(key),
            2 => self.fail(&[(key, Cause::Error, Failure { delay_ms: Some(0), ..Failure::default() })]),
            _ => {
                let again = match self.world.claims[key].settled {
                    Settled::Fail { cause, .. } if cause != Cause::Cancel => cause,
                    _ => Cause::Error,
                };
                self.fail(&[(key, again, Failure { delay_ms: Some(100), ..Failure::default() })])
            }
        }
    }

    fn heartbeat(&mut self, picks: &[u16], lease_ms: i64) -> Result<(), String> {
        if self.world.claims.is_empty() {
            return Ok(());
        }
        let mut keys: Vec<usize> = picks.iter().map(|pick| *pick as usize % self.world.claims.len()).collect();
        keys.sort_unstable();
        keys.dedup();
        let claims: Vec<Value> = keys.iter().map(|key| self.token(*key)).collect();
        let answers = self.stage.rpc("rpc_heartbeat", &json!({"claims": claims, "leaseMs": lease_ms}))?;
        for (n, key) in keys.iter().enumerate() {
            same("heartbeat", &answers[n], &self.world.heartbeat(*key, lease_ms * 1000).into())?;
        }
        Ok(())
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

    fn token(&self, key: usize) -> Value {
        let claim = &self.world.claims[key];
        json!({"id": self.world.jobs[claim.job].id, "fence": format!("{}/{}", claim.fence.0, claim.fence.1)})
    }

    fn failure_json(&self, (key, cause, failure): &(usize, Cause, Failure)) -> Value {
        let claim = &self.world.claims[*key];
        let mut report = json!({
            "id": self.world.jobs[claim.job].id, "claim": claim.fence.0, "number": claim.fence.1, "cause": cause.name(),
            "error": {"name": "ModelError", "message": "as planned"}, "uncertain": failure.uncertain,
            "cancellation": failure.cancellation,
        });
        let optional = [
            ("retryable", failure.retryable.map(Value::from)),
            ("delayMs", failure.delay_ms.map(Value::from)),
            ("workerDelayMs", failure.worker_delay_ms.map(Value::from)),
            ("retryAfterMs", failure.hint_ms.map(Value::from)),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                report[name] = value;
            }
        }
        report
    }

    fn gate(&mut self, endpoint: bool, n: usize, verb: &str, mut args: Value) -> Result<(), String> {
        let (kind, name) = if endpoint { ("endpoints", ENDPOINTS[n]) } else { ("queues", QUEUES[n]) };
        args["name"] = name.into();
        args["actor"] = "model".into();
        self.stage.rpc(&format!("rpc_{kind}_{verb}"), &args).map(drop)
    }

    fn gate_of(&mut self, endpoint: bool, n: usize) -> &mut crate::gate::Gate {
        if endpoint { &mut self.world.endpoint_gates[n] } else { &mut self.world.queue_gates[n] }
    }

    fn compare(&mut self) -> Result<(), String> {
        let seen = self.stage.look();
        let known: Map<String, Value> =
            ["live", "ended"].iter().flat_map(|part| seen[part].as_object().expect("an object").clone()).collect();
        same("jobs", &known.len(), &self.world.jobs.len())?;
        for job in &self.world.jobs {
            same(&format!("{job:?}"), known.get(&job.id).unwrap_or(&Value::Null), &expected_row(job))?;
        }
        for (n, name) in QUEUES.iter().enumerate() {
            self.compare_endpoint(n, endpoint(&seen, n))?;
            let queue = snapshot(&seen, "queues", name);
            if !queue.is_null() {
                let used = self.world.slots(|lane| lane.queue == n);
                compare_gate(queue, &self.world.queue_gates[n], used, self.world.now)?;
            }
        }
        self.compare_events(&seen["events"])
    }

    fn compare_endpoint(&mut self, n: usize, shown: &Value) -> Result<(), String> {
        if shown.is_null() {
            return Ok(());
        }
        let used = self.world.slots(|lane| lane.endpoint == Some(n));
        compare_gate(shown, &self.world.endpoint_gates[n], used, self.world.now)?;
        let (circuit, shown) = (&self.world.circuits[n], &shown["circuit"]);
        let name = ENDPOINTS[n];
        same(&format!("circuit of {name}"), &shown["state"], &circuit.name().into())?;
        if circuit.state == State::Closed {
            same(&format!("failures of {name}"), &shown["failures"], &circuit.failures.into())?;
        }
        if circuit.forced.is_none() {
            match &circuit.state {
                State::Closed => {}
                // One that had a neutral probe may be probed at any time.
                State::Open { probe_at } if *probe_at <= self.world.now => {
                    let at = micros(&shown["probeAt"])?;
                    if at > self.world.now {
                        return Err(format!("the circuit of {name} cools until {at}, and should not any more"));
                    }
                }
                State::Open { probe_at } => same(&format!("probeAt of {name}"), &micros(&shown["probeAt"])?, probe_at)?,
                State::HalfOpen { probe, overdue_at } => {
                    let id = &self.world.jobs[self.world.claims[*probe].job].id;
                    same(&format!("probe of {name}"), &shown["probeJob"], &id.as_str().into())?;
                    same(&format!("overdueAt of {name}"), &micros(&shown["overdueAt"])?, overdue_at)?;
                }
            }
        }
        self.last_failed[n] = shown["lastFailedJob"].as_str().map(str::to_owned);
        Ok(())
    }

    fn compare_events(&mut self, events: &Value) -> Result<(), String> {
        for (n, name) in ENDPOINTS.iter().enumerate() {
            let happened: Vec<&str> = events
                .as_array()
                .ok_or("events are an array")?
                .iter()
                .filter(|event| event[0] == *name)
                .filter_map(|event| event[1].as_str())
                .collect();
            let expected = std::mem::take(&mut self.world.circuits[n].events);
            let fits = happened.len() == expected.len() && happened.iter().zip(&expected).all(|(h, e)| e.contains(h));
            if !fits {
                return Err(format!("events of {name}: {happened:?}, not {expected:?}"));
            }
        }
        Ok(())
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

/// A job as a look shows it.
fn expected_row(job: &Job) -> Value {
    match job.phase {
        Phase::Scheduled { wake } => json!(["s", job.attempt, wake, job.uncertain, job.cancel]),
        Phase::Ready => json!(["r", job.attempt, null, job.uncertain, job.cancel]),
        Phase::Active { .. } => json!(["a", job.attempt, null, job.uncertain, job.cancel]),
        // A success leaves nothing to doubt.
        Phase::Ended { state: "succeeded", .. } => json!(["s", job.attempt, null, false]),
        Phase::Ended { state, reason } => json!([&state[..1], job.attempt, reason, job.uncertain]),
    }
}

fn compare_gate(shown: &Value, gate: &crate::gate::Gate, used: i64, now: i64) -> Result<(), String> {
    let name = &shown["name"];
    same(&format!("{name} paused"), &!shown["paused"].is_null(), &gate.paused)?;
    let tokens = gate.bucket.as_ref().map(|bucket| bucket.tokens(now));
    same(&format!("tokens of {name}"), &shown["tokensLeft"], &tokens.into())?;
    let slots = gate.max_concurrency.map(|_| used);
    same(&format!("slots of {name}"), &shown["slotsUsed"], &slots.into())
}

/// A time of a snapshot in microseconds.
fn micros(shown: &Value) -> Result<i64, String> {
    let text = shown.as_str().ok_or_else(|| format!("{shown} is no time"))?;
    text.parse::<jiff::Timestamp>().map(|at| at.as_microsecond()).map_err(|e| e.to_string())
}

/// Whether a report was taken; anything but `lease_lost` is a fault of the run.
fn accepted(answer: Result<Value, String>) -> Result<bool, String> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.contains("lease_lost") => Ok(false),
        Err(error) => Err(error),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, seen: &T, expected: &T) -> Result<(), String> {
    if seen == expected { Ok(()) } else { Err(format!("{what} is {seen:?}, and should be {expected:?}")) }
}
