//! The `work` steps: a worker behind the bridge whose host acts out behaviours, as an SDK would with handlers of its
//! language. The host classifies what a behaviour throws and says what the worker's `retryDelayMs` says.

use crate::host::{Host, Job};
use drayhorse_core::bridge::Client;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// For a busy machine: nothing here takes long by itself.
const PATIENCE: Duration = Duration::from_secs(60);
/// Characters of a result that no database takes with its default settings.
const LARGE: usize = 2 * 1024 * 1024;

/// Serves until every job of `until` has its state, drains, and tells what ran.
pub fn run(client: &Client, step: &Value, kept: &Map<String, Value>) -> Result<Value, String> {
    known(step, &["handlers", "options", "until"])?;
    let handlers = step["handlers"].as_object().ok_or("work needs handlers")?;
    let mut options = step.get("options").cloned().unwrap_or_else(|| json!({}));
    known(&options, &["concurrency", "leaseMs", "graceMs", "pollMs", "retryDelayMs", "queues"])?;
    options["handlers"] = handlers.keys().map(|key| named(key)).collect();
    let delay = options.get("retryDelayMs").cloned().unwrap_or_default();
    if !delay.is_number() {
        // The core knows numbers; a function is the host's to ask.
        options.as_object_mut().expect("an object").remove("retryDelayMs");
    }
    let wanted = wanted(step, kept)?;
    let log = Arc::new(Log::new(handlers));
    let mut host = {
        let (log, handlers) = (log.clone(), handlers.clone());
        Host::start_on(client.clone(), options, move |job| attend(job, &handlers, &delay, &log))
    };
    let until = Instant::now() + PATIENCE;
    for (id, state) in &wanted {
        loop {
            let now = state_of(client, id)?;
            if now == *state {
                break;
            }
            if Instant::now() > until {
                return Err(format!("job {id} is {now}, not {state}, after {PATIENCE:?}: {:?}", host.events("error")));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
    let (_, last) = host.stop();
    if let Some(error) = last.get("error").filter(|error| !error.is_null()) {
        return Err(format!("the worker ended with {error}"));
    }
    if let Some(fault) = log.faults.lock().unwrap().first() {
        return Err(fault.clone());
    }
    let (starts, runs) = (log.starts.lock().unwrap().clone(), log.runs.lock().unwrap().clone());
    Ok(json!({"starts": starts, "runs": runs}))
}

fn known(given: &Value, keys: &[&str]) -> Result<(), String> {
    let given = given.as_object().ok_or_else(|| format!("{given} is no object"))?;
    match given.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(unknown) => Err(format!("work has no {unknown}")),
        None => Ok(()),
    }
}

/// `type` or `type@version` as the core takes it.
fn named(key: &str) -> Value {
    let (name, version) = key.split_once('@').unwrap_or((key, "1"));
    json!({"type": name, "version": version})
}

/// The jobs to wait for, by id, with the state each must reach.
fn wanted(step: &Value, kept: &Map<String, Value>) -> Result<Vec<(String, Value)>, String> {
    let until = step["until"].as_object().ok_or("work needs until")?;
    let ids = until.iter().map(|(name, state)| {
        let path = if name.starts_with('$') { name.clone() } else { format!("${name}.id") };
        let id = crate::values::fill(&path.into(), kept)?;
        Ok((id.as_str().ok_or_else(|| format!("{name} is no job"))?.to_owned(), state.clone()))
    });
    ids.collect()
}

fn state_of(client: &Client, id: &str) -> Result<Value, String> {
    let answer = client.call("get", &json!({"id": id}).to_string()).map_err(|error| error.to_json())?;
    let shown: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
    Ok(shown["state"].clone())
}

/// What the handlers saw, in the order of their starts.
struct Log {
    starts: Mutex<Map<String, Value>>,
    runs: Mutex<Vec<Value>>,
    /// What the scenario itself got wrong.
    faults: Mutex<Vec<String>>,
}

impl Log {
    fn new(handlers: &Map<String, Value>) -> Log {
        let starts = handlers.keys().map(|key| (key.clone(), 0.into())).collect();
        Log { starts: Mutex::new(starts), runs: Mutex::default(), faults: Mutex::default() }
    }

    /// Notes a start; returns its place among the runs, and how many of its key came before.
    fn start(&self, key: &str, run: Value) -> (usize, usize) {
        let mut starts = self.starts.lock().unwrap();
        let before = starts[key].as_u64().unwrap_or(0) as usize;
        starts[key] = (before + 1).into();
        let mut runs = self.runs.lock().unwrap();
        runs.push(run);
        (runs.len() - 1, before)
    }

    fn note(&self, run: usize, change: impl FnOnce(&mut Value)) {
        change(&mut self.runs.lock().unwrap()[run]);
    }
}

/// One attempt, from the job event to its report.
fn attend(job: &Job, handlers: &Map<String, Value>, delay: &Value, log: &Log) -> Value {
    let (name, version) = (job.get("type").as_str().unwrap_or_default(), job.get("version").as_str().unwrap_or("1"));
    let exact = format!("{name}@{version}");
    let key = if handlers.contains_key(&exact) { exact.as_str() } else { name };
    // The text carries integers that not every host can hold; this one can.
    let payload = match job.event.get("payloadText").and_then(Value::as_str) {
        Some(text) => serde_json::from_str(text).unwrap_or_default(),
        None => job.get("payload").clone(),
    };
    let seen =
        json!({"type": name, "attempt": job.get("attempt"), "payload": payload, "hasPayload": job.get("hasPayload")});
    let (run, before) = log.start(key, seen);
    let worker_delay = worker_delay(delay, job.get("attempt").as_u64().unwrap_or(1));
    if *job.get("timed") == Value::Bool(true) && worker_delay.get("workerDelayMs").is_some() && !delay.is_number() {
        let mut said = worker_delay.clone();
        said["verb"] = "retryDelay".into();
        said["handle"] = job.handle().clone();
        job.worker().report(&json!([said]).to_string()).expect("reports are accepted");
    }
    let behaviours = handlers[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let report = behaviours
        .get(before.min(behaviours.len().saturating_sub(1)))
        .ok_or_else(|| format!("{key} has no behaviour"))
        .and_then(|behaviour| behave(job, behaviour, run, log));
    let mut report = report.unwrap_or_else(|fault| {
        log.faults.lock().unwrap().push(fault.clone());
        json!({"verb": "fail", "retryable": false, "error": {"name": "ScenarioFault", "message": fault}})
    });
    if report["verb"] == "fail" && report["retryable"] != false && report["outputFailure"] != true {
        report.as_object_mut().expect("an object").extend(worker_delay.as_object().expect("an object").clone());
    }
    report
}

/// What the worker's own `retryDelayMs` says about an attempt, as the keys of a report.
fn worker_delay(given: &Value, attempt: u64) -> Value {
    let said = match given {
        Value::Object(_) if given["throws"] == true => {
            return json!({"overrideRefused": "retryDelayMs threw: no delay today"});
        }
        Value::Object(_) => given["byAttempt"].get(attempt as usize - 1).cloned().unwrap_or_default(),
        other => other.clone(),
    };
    if said.is_null() { json!({}) } else { json!({"workerDelayMs": said}) }
}

/// Acts out a behaviour; the report it ends with, or what the scenario got wrong.
fn behave(job: &Job, behaviour: &Value, run: usize, log: &Log) -> Result<Value, String> {
    let then = || behave(job, behaviour.get("then").ok_or("the behaviour needs then")?, run, log);
    let act = behaviour.as_object().and_then(|members| members.iter().find(|(key, _)| *key != "then"));
    let (verb, given) = act.ok_or_else(|| format!("there is no behaviour {behaviour}"))?;
    match verb.as_str() {
        "return" => Ok(json!({"verb": "complete", "result": given})),
        "returnNothing" => Ok(json!({"verb": "complete"})),
        "returnUnstorable" => unstorable(given),
        "throw" => {
            let name = given["name"].as_str().unwrap_or("ScenarioError");
            Ok(json!({"verb": "fail", "error": {"name": name, "message": given["message"]}}))
        }
        "throwNonRetryable" => {
            let mut error = json!({"name": "NonRetryableError", "message": given["message"]});
            if given["wrapped"] == true {
                error = json!({"name": "ScenarioError", "message": "wrapped", "causes": [error]});
            }
            let uncertain = given["uncertain"] == true;
            Ok(json!({"verb": "fail", "error": error, "retryable": false, "uncertain": uncertain}))
        }
        "throwRetryable" => {
            let error = json!({"name": "RetryableError", "message": given["message"]});
            Ok(json!({"verb": "fail", "error": error, "retryable": true, "retryAfterMs": given["retryAfterMs"]}))
        }
        "waitForAbort" => {
            let reason = job.wait_for_abort(PATIENCE).ok_or("nothing aborted the attempt")?;
            log.note(run, |seen| seen["aborted"] = reason.into());
            then()
        }
        "sleepMs" => {
            thread::sleep(Duration::from_millis(given.as_u64().ok_or("sleepMs takes a number")?));
            then()
        }
        "progress" => {
            job.call("progress", json!({"value": given})).map_err(|error| error.to_json())?;
            then()
        }
        "checkpoint" => match checkpoint(job, given) {
            Ok((value, ran)) => {
                log.note(run, |seen| {
                    if seen.get("checkpoints").is_none() {
                        seen["checkpoints"] = json!([]);
                    }
                    let noted = json!({"name": given["name"], "value": value, "ran": ran});
                    seen["checkpoints"].as_array_mut().expect("an array").push(noted);
                });
                then()
            }
            Err(error) => Ok(
                json!({"verb": "fail", "retryable": false, "error": {"name": error.code(), "message": error.message()}}),
            ),
        },
        other => Err(format!("there is no behaviour {other}")),
    }
}

/// The saved value, or the given one saved now.
fn checkpoint(job: &Job, given: &Value) -> drayhorse_core::error::Result<(Value, bool)> {
    let held = job.call("checkpointGet", json!({"name": given["name"]}))?;
    if held["found"] == true {
        return Ok((held["value"].clone(), false));
    }
    job.call("checkpointPut", json!({"name": given["name"], "value": given["value"]}))?;
    Ok((given["value"].clone(), true))
}

/// A result that cannot be stored: what has no JSON form is the host's to refuse, the rest is the core's.
fn unstorable(what: &Value) -> Result<Value, String> {
    match what.as_str() {
        Some("nan") => {
            let error = json!({"name": "OutputError", "message": "result: NaN has no JSON form"});
            Ok(json!({"verb": "fail", "outputFailure": true, "error": error}))
        }
        Some("nul") => Ok(json!({"verb": "complete", "result": {"out": "a\u{0}b"}})),
        Some("large") => Ok(json!({"verb": "complete", "result": "x".repeat(LARGE)})),
        _ => Err(format!("nothing unstorable is called {what}")),
    }
}
