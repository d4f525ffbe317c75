//! Events on their way to the host, each already the JSON text it is handed over as. A payload goes in as the text
//! the database keeps, so that integers keep their digits and nothing is parsed twice.

use std::collections::VecDeque;
use std::fmt::Write;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::Error;
use crate::machine::{Abort, ClaimRow, Handle, LaneRow};

/// The queue of events.
#[derive(Default)]
pub struct Outbox {
    events: VecDeque<Event>,
}

struct Event {
    text: String,
    /// Of a job that the host has not taken yet.
    job: Option<Handle>,
}

impl Outbox {
    /// Nothing is waiting.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// A job to run.
    pub fn job(&mut self, handle: Handle, row: &ClaimRow, lane: &LaneRow) {
        let extra = &row.extra;
        let id = row.claim.job.to_string();
        let mut text = String::with_capacity(400 + row.payload.as_ref().map_or(0, String::len));
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            r#"{{"event":"job","handle":{handle},"id":"{id}","queue":{},"type":{},"version":{},"attempt":{},"maxAttempts":{}"#,
            quoted(&lane.queue),
            quoted(&lane.kind),
            quoted(&lane.version),
            row.attempt,
            extra.max_attempts.unwrap_or(25),
        );
        match &row.payload {
            Some(payload) if row.big_numbers => {
                let _ = write!(text, r#","hasPayload":true,"bigNumbers":true,"payloadText":{}"#, quoted(payload));
            }
            Some(payload) => {
                let _ = write!(text, r#","hasPayload":true,"payload":{payload}"#);
            }
            None => text.push_str(r#","hasPayload":false"#),
        }
        let tags = Value::from(extra.tags.clone());
        let key = extra.idempotency_key.as_deref().unwrap_or(&id);
        let _ = write!(
            text,
            r#","tags":{tags},"endpoint":{},"deadline":{},"runId":{},"idempotencyKey":{},"synthetic":{}"#,
            maybe(&lane.endpoint),
            maybe(&extra.deadline),
            maybe(&extra.run_id),
            quoted(key),
            extra.synthetic,
        );
        if row.ends_ms.is_some() && !extra.ends_by_deadline {
            text.push_str(r#","timed":true"#);
        }
        text.push('}');
        self.events.push_back(Event { text, job: Some(handle) });
    }

    /// Takes back the jobs that the host has not taken: nobody has begun them.
    pub fn withdraw(&mut self) -> Vec<Handle> {
        let jobs = self.events.iter().filter_map(|event| event.job).collect();
        self.events.retain(|event| event.job.is_none());
        jobs
    }

    /// A handler is to stop.
    pub fn abort(&mut self, handle: Handle, reason: Abort) {
        self.push(format!(r#"{{"event":"abort","handle":{handle},"reason":"{}"}}"#, reason.as_str()));
    }

    /// For the host's `onError`.
    pub fn error(&mut self, error: &Error, handle: Option<Handle>, job: Option<Uuid>) {
        let mut event = json!({"event": "error", "code": error.code(), "message": error.message()});
        if let Some(handle) = handle {
            event["handle"] = handle.into();
        }
        if let Some(job) = job {
            event["jobId"] = job.to_string().into();
        }
        self.push(event.to_string());
    }

    /// The last event.
    pub fn stopped(&mut self, error: Option<&Error>) {
        self.push(match error {
            Some(error) => format!(r#"{{"event":"stopped","error":{}}}"#, error.to_json()),
            None => r#"{"event":"stopped"}"#.to_owned(),
        });
    }

    fn push(&mut self, text: String) {
        self.events.push_back(Event { text, job: None });
    }

    /// Up to `max` events as one JSON array.
    pub fn take(&mut self, max: usize) -> String {
        let count = max.min(self.events.len());
        let size = self.events.iter().take(count).map(|event| event.text.len() + 1).sum::<usize>();
        let mut text = String::with_capacity(size + 2);
        text.push('[');
        for (place, event) in self.events.drain(..count).enumerate() {
            if place > 0 {
                text.push(',');
            }
            text.push_str(&event.text);
        }
        text.push(']');
        text
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn maybe(text: &Option<String>) -> String {
    text.as_deref().map_or_else(|| "null".to_owned(), quoted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Claim, Extra};

    fn row(payload: Option<&str>, big_numbers: bool) -> ClaimRow {
        ClaimRow {
            claim: Claim { job: Uuid::from_u128(7), claim: Uuid::from_u128(9), number: 1 },
            lane: 1,
            seq: 1,
            attempt: 2,
            ends_ms: None,
            payload: payload.map(str::to_owned),
            big_numbers,
            extra: Extra::default(),
        }
    }

    fn lane() -> LaneRow {
        LaneRow { id: 1, queue: "q\"1".into(), kind: "sync".into(), version: "1".into(), endpoint: None, priority: 0 }
    }

    #[test]
    fn what_the_host_has_not_taken_can_be_withdrawn() {
        let mut outbox = Outbox::default();
        for handle in 1..=3 {
            outbox.job(handle, &row(None, false), &lane());
        }
        outbox.abort(1, Abort::Cancel);
        outbox.take(1);
        assert_eq!(outbox.withdraw(), [2, 3]);
        assert_eq!(outbox.take(9), r#"[{"event":"abort","handle":1,"reason":"cancel"}]"#);
        assert!(outbox.withdraw().is_empty());
    }

    #[test]
    fn events_are_one_json_array() {
        let mut outbox = Outbox::default();
        outbox.job(1, &row(Some(r#"{"a": 1}"#), false), &lane());
        outbox.job(2, &row(Some("18446744073709551615"), true), &lane());
        outbox.job(3, &row(None, false), &lane());
        outbox.abort(1, Abort::LeaseLost);
        outbox.stopped(None);
        let first: Vec<Value> = serde_json::from_str(&outbox.take(2)).unwrap();
        assert_eq!(first[0]["payload"]["a"], 1);
        assert_eq!(first[0]["queue"], "q\"1");
        assert_eq!((&first[0]["attempt"], &first[0]["maxAttempts"]), (&json!(2), &json!(25)));
        assert_eq!(first[0]["idempotencyKey"], first[0]["id"]);
        assert_eq!(first[1]["payloadText"], "18446744073709551615");
        assert_eq!(first[1].get("payload"), None);
        let rest: Vec<Value> = serde_json::from_str(&outbox.take(100)).unwrap();
        assert_eq!(rest[0]["hasPayload"], false);
        assert_eq!(rest[1], json!({"event": "abort", "handle": 1, "reason": "lease_lost"}));
        assert_eq!(rest[2], json!({"event": "stopped"}));
        assert_eq!(outbox.take(1), "[]");
    }
}
