//! `drayhorse job`: everything about one job, and what happened to it.

use super::jobs::{error_line, state};
use crate::failure::Failure;
use crate::session::Session;
use crate::{table, text, time};
use clap::Args;
use serde_json::{Map, Value, json};

/// Show one job and its timeline.
#[derive(Args)]
pub struct Job {
    /// The job's id.
    id: String,
    /// With payload and result.
    #[arg(long)]
    payload: bool,
    /// With the last error's stack and causes.
    #[arg(long)]
    stack: bool,
}

impl Job {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let mut job = session.call("get", &json!({"id": self.id}))?;
        let Value::Object(snapshot) = &mut job else {
            return Err(Failure::NotFound(format!("there is no job {}", self.id)));
        };
        if !self.payload {
            snapshot.remove("payload");
            snapshot.remove("result");
        }
        let timeline = session.call("timeline", &json!({"id": self.id}))?;
        if session.json {
            return session.say_json(&json!({"job": job, "timeline": timeline}));
        }
        let mut out = table::facts(&facts(&job));
        if self.payload {
            out.push_str(&table::facts(&data(&job)));
        }
        if self.stack {
            out.push_str(&stack(&job["lastError"]));
        }
        out.push_str("\nTimeline\n");
        out.push_str(&events(&timeline));
        session.say(&out)
    }
}

/// What is known, in the order in which one asks; what has no value is left out.
fn facts(job: &Value) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("job", text::value(&job["id"])),
        ("state", state(job)),
        ("type", format!("{}@{}", text::value(&job["type"]), text::value(&job["version"]))),
        ("queue", format!("{}, priority {}", text::value(&job["queue"]), job["priority"])),
        ("attempt", format!("{} of {}", job["attempt"], job["maxAttempts"])),
    ];
    for reason in job["waiting"].as_array().into_iter().flatten() {
        rows.push(("waits", text::value(&reason["message"])));
        rows.extend(given("  helps", &reason["action"]));
    }
    rows.extend(given("ended", &job["reason"]));
    rows.extend(helps_ended(job).map(|action| ("  helps", action)));
    rows.extend(error_line(&job["lastError"]).map(|error| ("last error", error)));
    rows.extend(given("endpoint", &job["endpoint"]));
    rows.extend(given("worker", &job["worker"]));
    let times = [
        ("enqueued", "enqueuedAt"),
        ("not before", "runAt"),
        ("next run", "nextRunAt"),
        ("claimed", "claimedAt"),
        ("lease until", "leaseUntil"),
        ("deadline", "deadline"),
        ("finished", "finishedAt"),
    ];
    rows.extend(times.iter().filter_map(|(name, key)| Some((*name, time::shown(job[key].as_str()?)))));
    rows.extend(duration(&job["timeoutMs"]).map(|timeout| ("timeout", timeout)));
    let policy = &job["retryPolicy"];
    rows.push((
        "policy",
        if policy.is_null() { "none (compatibility delays)".to_owned() } else { text::value(policy) },
    ));
    if job["tags"].as_array().is_some_and(|tags| !tags.is_empty()) {
        rows.push(("tags", text::value(&job["tags"])));
    }
    if job["idempotencyKey"] != job["id"] {
        rows.extend(given("effect key", &job["idempotencyKey"]));
    }
    rows.extend(given("progress", &job["progress"]));
    rows.extend(given("made from", &job["sourceId"]));
    for repeated in job["redrivenTo"].as_array().into_iter().flatten() {
        rows.push(("redriven to", text::value(repeated)));
    }
    rows.extend(given("run", &job["runId"]));
    rows.extend(given("after job", &job["afterId"]));
    rows.extend(given("detail", &job["detail"]));
    rows
}

fn given(name: &'static str, value: &Value) -> Option<(&'static str, String)> {
    (!value.is_null()).then(|| (name, text::value(value)))
}

/// What an operator does about a job that ended badly, unless somebody has repeated it.
fn helps_ended(job: &Value) -> Option<String> {
    let repeated = job["redrivenTo"].as_array().is_some_and(|made| !made.is_empty());
    let (failed, uncertain) = (job["state"] == "failed", job["uncertain"] == true);
    if repeated || job["synthetic"] == true || !(failed || uncertain && job["state"] == "canceled") {
        return None;
    }
    let id = text::value(&job["id"]);
    let action = match job["reason"].as_str() {
        Some("exhausted") => format!("when the destination works again, drayhorse redrive {id}"),
        Some("deadline") => format!("if it is still wanted, drayhorse replay {id}"),
        _ if failed => format!("fix the cause, then drayhorse replay {id}"),
        _ => format!("nothing; to repeat it, drayhorse replay {id}"),
    };
    let reconcile = if uncertain { "its effect may have happened, reconcile with the destination first; " } else { "" };
    Some(format!("{reconcile}{action}"))
}

fn duration(ms: &Value) -> Option<String> {
    Some(time::shown_ms(ms.as_i64()?.into()))
}

fn data(job: &Value) -> Vec<(&'static str, String)> {
    let payload = job.get("payload").map_or_else(|| "(none given)".to_owned(), |payload| text::json(payload, true));
    let mut rows = vec![("payload", payload)];
    rows.extend(job.get("result").map(|result| ("result", text::json(result, true))));
    rows
}

fn stack(error: &Value) -> String {
    let mut out = String::new();
    let causes = error["causes"].as_array().into_iter().flatten();
    for cause in std::iter::once(error).chain(causes) {
        let Some(said) = error_line(cause) else {
            continue;
        };
        out.push_str(&format!("\n{said}\n"));
        for line in text::block(cause["stack"].as_str().unwrap_or_default()).lines() {
            out.push_str(&format!("    {line}\n"));
        }
    }
    out
}

fn events(timeline: &Value) -> String {
    let rows: Vec<Vec<String>> = timeline
        .as_array()
        .into_iter()
        .flatten()
        .map(|event| {
            vec![
                format!("  {}", time::shown(event["at"].as_str().unwrap_or_default())),
                text::value(&event["kind"]),
                event["attempt"].as_i64().map(|attempt| format!("#{attempt}")).unwrap_or_default(),
                event.as_object().map(explanation).unwrap_or_default(),
            ]
        })
        .collect();
    table::render(&["  at", "event", "", "details"], &rows)
}

/// Members of events that are told in words of their own, or that the row's other cells tell.
const TOLD: [&str; 10] =
    ["at", "kind", "attempt", "nextAttempt", "delayMs", "source", "runAt", "error", "worker", "fence"];

/// The event's own fields as one line: the delay it selected first. A worker is told by its name, a fence, short, by
/// the claim that set it; `--json` has all of it.
fn explanation(event: &Map<String, Value>) -> String {
    let mut parts = Vec::new();
    if let Some(delay) = event.get("delayMs").and_then(duration) {
        let source = event.get("source").map(text::value).unwrap_or_default();
        parts.push(format!("next in {delay} by {source}"));
    }
    parts.extend(event.get("runAt").and_then(Value::as_str).map(|at| format!("at {}", time::shown(at))));
    parts.extend(event.get("error").and_then(error_line));
    parts.extend(event.get("worker").map(|worker| format!("worker {}", text::value(worker))));
    let is_repeated = |key: &str, value: &Value| {
        TOLD.contains(&key)
            || key == "workerId" && event.contains_key("worker")
            || key == "cause" && value == "error" && event.contains_key("error")
    };
    for (key, value) in event.iter().filter(|(key, value)| !is_repeated(key, value) && !value.is_null()) {
        parts.push(format!("{} {}", text::line(key), text::value(value)));
    }
    let fence = event.get("fence").filter(|_| event["kind"] == "claimed");
    parts.extend(fence.map(|fence| format!("fence {}", text::cut(&text::value(fence), 8))));
    parts.join(" · ")
}
