//! What the database shows against what the reference world expects, after every operation of a run.

use crate::circuit::State;
use crate::gate::Gate;
use crate::job::{ENDPOINTS, Job, Phase, QUEUES};
use crate::run::Run;
use crate::stage::{endpoint, snapshot};
use serde_json::{Map, Value, json};

impl Run<'_> {
    /// Everything the reference predicts, against one look at the database.
    pub fn compare(&mut self) -> Result<(), String> {
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

fn compare_gate(shown: &Value, gate: &Gate, used: i64, now: i64) -> Result<(), String> {
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

/// The two are equal, or what differs.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, seen: &T, expected: &T) -> Result<(), String> {
    if seen == expected { Ok(()) } else { Err(format!("{what} is {seen:?}, and should be {expected:?}")) }
}
