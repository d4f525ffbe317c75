//! `drayhorse enqueue`: one job from the command line.

use crate::failure::Failure;
use crate::session::Session;
use crate::text;
use crate::time::parse_duration_ms;
use clap::{ArgAction, Args};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::io::Read;

/// Enqueue one job; its id goes to standard output.
#[derive(Args)]
pub struct Enqueue {
    /// The handler's name.
    #[arg(value_name = "TYPE")]
    job_type: String,
    /// The payload as JSON; `-` reads it from standard input. Without it the job has none.
    payload: Option<String>,
    #[arg(long)]
    queue: Option<String>,
    /// The handler's version.
    #[arg(long = "handler-version", value_name = "VERSION")]
    version: Option<String>,
    /// -100 to 100; higher first.
    #[arg(long, allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Not before this time.
    #[arg(long, value_name = "TIME", conflicts_with = "delay")]
    run_at: Option<String>,
    /// Not before this much time has passed.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms)]
    delay: Option<u64>,
    /// Not at or after this time.
    #[arg(long, value_name = "TIME", conflicts_with = "deadline_in")]
    deadline: Option<String>,
    /// The same, from now on.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms)]
    deadline_in: Option<u64>,
    /// Limit of one attempt.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms)]
    timeout: Option<u64>,
    /// 1 to 100, the first execution included.
    #[arg(long)]
    max_attempts: Option<u32>,
    /// A retry policy as JSON.
    #[arg(long, value_name = "JSON")]
    retry_policy: Option<String>,
    /// A tag; may be given more than once.
    #[arg(long, action = ArgAction::Append)]
    tag: Vec<String>,
    /// Makes repetitions of this command one job.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// How long the key names this job; 24 hours when absent.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms, requires = "idempotency_key")]
    key_ttl: Option<u64>,
    /// The destination the job talks to.
    #[arg(long)]
    endpoint: Option<String>,
    /// A test of the endpoint: one attempt, also through an open circuit, counted nowhere.
    #[arg(long)]
    synthetic: bool,
    /// Wait until that job has ended so; when it ends otherwise this one is skipped.
    #[arg(long, value_name = "ID:succeeded|failed", value_parser = parse_after)]
    after: Option<After>,
    /// The run it joins.
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

/// The job another one waits for, and how that has to end.
#[derive(Clone)]
struct After {
    job_id: String,
    on: String,
}

/// `ID:succeeded` or `ID:failed`.
fn parse_after(typed: &str) -> Result<After, String> {
    match typed.rsplit_once(':') {
        Some((job_id, on @ ("succeeded" | "failed"))) => Ok(After { job_id: job_id.to_owned(), on: on.to_owned() }),
        _ => Err("give the job's id and how it has to end, ID:succeeded or ID:failed".to_owned()),
    }
}

impl Enqueue {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let options = Value::from(self.options()?);
        // The payload goes through as it was typed: no number is read and written again on the way.
        let payload = match self.payload.as_deref() {
            None => String::new(),
            Some("-") => {
                let mut typed = String::new();
                std::io::stdin().read_to_string(&mut typed)?;
                format!("\"payload\":{},", checked_json("standard input", &typed)?)
            }
            Some(typed) => format!("\"payload\":{},", checked_json("the payload", typed)?),
        };
        let args = format!("{{\"type\":{},{payload}\"options\":{options}}}", Value::from(self.job_type));
        let made = session.call_text("enqueue", &args)?;
        if session.json {
            return session.say_json(&made);
        }
        if made["replayed"] == true {
            eprintln!("the key already names this job: nothing new was enqueued");
        }
        session.say(&text::value(&made["id"]))
    }

    fn options(&self) -> Result<Map<String, Value>, Failure> {
        let policy = match &self.retry_policy {
            None => Value::Null,
            Some(typed) => serde_json::from_str(checked_json("--retry-policy", typed)?.get()).unwrap_or(Value::Null),
        };
        let key = self.idempotency_key.as_ref().map_or(Value::Null, |key| match self.key_ttl {
            Some(ttl_ms) => json!({"key": key, "ttlMs": ttl_ms}),
            None => json!({"key": key}),
        });
        let all = json!({
            "queue": self.queue,
            "version": self.version,
            "priority": self.priority,
            "runAt": self.run_at,
            "delayMs": self.delay,
            "deadline": self.deadline,
            "deadlineMs": self.deadline_in,
            "timeoutMs": self.timeout,
            "maxAttempts": self.max_attempts,
            "retryPolicy": policy,
            "tags": if self.tag.is_empty() { Value::Null } else { json!(self.tag) },
            "idempotencyKey": key,
            "endpoint": self.endpoint,
            "after": self.after.as_ref().map(|after| json!({"jobId": after.job_id, "on": after.on})),
            "runId": self.run,
            "synthetic": if self.synthetic { json!(true) } else { Value::Null },
        });
        let Value::Object(all) = all else { unreachable!("json! of an object is an object") };
        Ok(all.into_iter().filter(|(_, value)| !value.is_null()).collect())
    }
}

/// The text itself if it is JSON. Without this check a payload could close the object it is put into.
pub fn checked_json<'a>(what: &str, typed: &'a str) -> Result<&'a RawValue, Failure> {
    serde_json::from_str(typed).map_err(|e| Failure::Usage(format!("{what} is not JSON: {e}")))
}
