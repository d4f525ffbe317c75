//! The verbs: which function of the schema answers each, and the few that do more than call one.

use super::call::Call;
use super::contracts::{Answer, Contracts};
use super::report;
use crate::error::{Error, Kind, Result};
use crate::json::{self, MAX_VALUE_BYTES};
use crate::store::{Connection, Link, Type};
use crate::{contract, enqueue, http, migrate};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// The verbs that are one function of the schema: its argument is the verb's, its answer is the verb's.
const FUNCTIONS: &[(&str, &str)] = &[
    ("get", "rpc_get"),
    ("timeline", "rpc_timeline"),
    ("list", "rpc_list"),
    ("counts", "rpc_counts"),
    ("cancel", "rpc_cancel"),
    ("redrive", "rpc_redrive"),
    ("redrivePreview", "rpc_redrive_preview"),
    ("replay", "rpc_replay"),
    ("replayPreview", "rpc_replay_preview"),
    ("finishRun", "rpc_finish_run"),
    ("getRun", "rpc_get_run"),
    ("previewPolicy", "rpc_preview_policy"),
    ("release", "rpc_release"),
    ("heartbeat", "rpc_heartbeat"),
    ("checkpointGet", "rpc_checkpoint_get"),
    ("checkpointPut", "rpc_checkpoint_put"),
    ("workers.list", "rpc_workers_list"),
    ("endpoints.list", "rpc_endpoints_list"),
    ("endpoints.get", "rpc_endpoints_get"),
    ("endpoints.configure", "rpc_endpoints_configure"),
    ("endpoints.pause", "rpc_endpoints_pause"),
    ("endpoints.resume", "rpc_endpoints_resume"),
    ("endpoints.forceOpen", "rpc_endpoints_force_open"),
    ("endpoints.forceClose", "rpc_endpoints_force_close"),
    ("endpoints.reset", "rpc_endpoints_reset"),
    ("queues.list", "rpc_queues_list"),
    ("queues.get", "rpc_queues_get"),
    ("queues.configure", "rpc_queues_configure"),
    ("queues.pause", "rpc_queues_pause"),
    ("queues.resume", "rpc_queues_resume"),
    ("contracts.get", "rpc_contracts_get"),
    ("contracts.list", "rpc_contracts_list"),
    ("prune", "rpc_prune"),
    ("grant", "rpc_grant"),
    ("revoke", "rpc_revoke"),
    ("advanceClock", "rpc_advance_clock"),
];

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// One function of the schema.
    Function(&'static str),
    StartRun,
    Claim,
    Complete,
    Fail,
    Enqueue,
    EnqueueMany,
    Wait,
    Migrate,
    SchemaVersion,
    AssertCompatible,
    EnqueueStatement,
    EnqueueAnswer,
    Publish,
    ErrorTable,
    HttpDecision,
}

/// What one look at the database gave.
pub enum Outcome {
    /// The call has ended.
    Answer(String),
    /// Not yet; look again after this pause.
    AskAgain(Duration),
}

/// The pauses of `wait`.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LAST_LOOK: Duration = Duration::from_millis(250);

/// The longest `wait`: a year.
const MAX_WAIT_MS: u64 = 31_536_000_000;

impl Verb {
    /// The verb of this name.
    pub fn parse(name: &str) -> Result<Verb> {
        if let Some((_, function)) = FUNCTIONS.iter().find(|(verb, _)| *verb == name) {
            return Ok(Verb::Function(function));
        }
        match name {
            "startRun" => Ok(Verb::StartRun),
            "claim" => Ok(Verb::Claim),
            "complete" => Ok(Verb::Complete),
            "fail" => Ok(Verb::Fail),
            "enqueue" => Ok(Verb::Enqueue),
            "enqueueMany" => Ok(Verb::EnqueueMany),
            "wait" => Ok(Verb::Wait),
            "migrate" => Ok(Verb::Migrate),
            "schemaVersion" => Ok(Verb::SchemaVersion),
            "assertCompatible" => Ok(Verb::AssertCompatible),
            "enqueueStatement" => Ok(Verb::EnqueueStatement),
            "enqueueAnswer" => Ok(Verb::EnqueueAnswer),
            "contracts.publish" => Ok(Verb::Publish),
            "errorTable" => Ok(Verb::ErrorTable),
            "httpDecision" => Ok(Verb::HttpDecision),
            _ => {
                let name: String = name.chars().take(100).collect();
                Err(Error::argument("verb", format!("there is no verb {name}")))
            }
        }
    }

    /// Whether it needs neither a connection nor the schema's name.
    pub fn is_local(self) -> bool {
        matches!(self, Verb::ErrorTable | Verb::HttpDecision)
    }

    /// The answer of a local verb.
    pub fn run_locally(self, args: &str) -> Result<String> {
        match self {
            Verb::ErrorTable => Ok(Error::table_json()),
            Verb::HttpDecision => http::decide(args),
            _ => Err(Error::new(Kind::Internal, "this verb needs a connection")),
        }
    }

    /// One run of the call. `wanted` turns false when repeating it is no longer worth it.
    pub fn run(
        self,
        link: &mut Link,
        call: &mut Call,
        contracts: &Contracts,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Outcome> {
        let answer = match self {
            Verb::ErrorTable | Verb::HttpDecision => self.run_locally(&call.args)?,
            Verb::EnqueueStatement => statement(link, &call.args, contracts, wanted)?,
            Verb::EnqueueAnswer => answered(&call.args, contracts)?,
            Verb::Publish => {
                let args = checked(&call.args)?;
                contract::check_publication(args)?;
                ask(link, "rpc_contracts_publish", args, wanted)?
            }
            Verb::Function(function) => ask(link, function, checked(&call.args)?, wanted)?,
            Verb::StartRun => ask(link, "rpc_start_run", &with_id(&call.args, "id", Uuid::now_v7)?, wanted)?,
            Verb::Claim => ask(link, "rpc_claim", &with_id(&call.args, "claimId", Uuid::new_v4)?, wanted)?,
            Verb::Complete => report::complete(link, &call.args, wanted)?,
            Verb::Fail => report::fail(link, &call.args, wanted)?,
            Verb::Enqueue => enqueued(&contracts.send(link, call.prepare()?, wanted)?)?.swap_remove(0).get().to_owned(),
            Verb::EnqueueMany => contracts.send(link, call.prepare()?, wanted)?,
            Verb::Wait => return look(link, call),
            Verb::Migrate => migrated(link, wanted)?,
            Verb::SchemaVersion => {
                let schema = link.store().schema().clone();
                let version = link.run(wanted, |connection| schema.version(connection))?;
                json!({"version": version, "expected": migrate::LATEST}).to_string()
            }
            Verb::AssertCompatible => {
                let schema = link.store().schema().clone();
                link.run(wanted, |connection| schema.compatibility(connection))?.check(&schema)?;
                "{}".to_owned()
            }
        };
        Ok(Outcome::Answer(answer))
    }
}

impl Call {
    /// The statement for the function `enqueue`, made once: its ids name the same jobs however often it is sent.
    pub fn prepare(&mut self) -> Result<&enqueue::Statement> {
        let statement = match self.prepared.take() {
            Some(statement) => statement,
            None if self.verb == Verb::Enqueue => enqueue::one(&self.args)?,
            None => enqueue::many(&self.args)?,
        };
        Ok(self.prepared.insert(statement))
    }
}

/// `select "schema".function($1::text::jsonb)`: one text in, one text out.
pub fn ask(link: &mut Link, function: &str, args: &str, wanted: impl Fn() -> bool) -> Result<String> {
    let sql = format!("select {}($1::text::jsonb)", link.store().schema().object(function));
    let answer = link.run(wanted, |connection: &mut Connection| connection.query_text(&sql, &[(&args, Type::TEXT)]))?;
    answer.ok_or_else(|| Error::new(Kind::Internal, format!("{function} answered null")))
}

/// The answers of the function `enqueue`, one per job.
pub fn enqueued(answer: &str) -> Result<Vec<Box<RawValue>>> {
    let answers: Vec<Box<RawValue>> = serde_json::from_str(answer)
        .map_err(|_| Error::new(Kind::Internal, "enqueue answered something that is not a list"))?;
    match answers.is_empty() {
        true => Err(Error::new(Kind::Internal, "enqueue answered an empty list")),
        false => Ok(answers),
    }
}

/// The arguments as they are, when PostgreSQL can read them as jsonb. An empty text is `{}`.
pub fn checked(args: &str) -> Result<&str> {
    if args.trim().is_empty() {
        return Ok("{}");
    }
    // The largest value of any verb, and room for the names around it.
    json::scan_arguments(args, MAX_VALUE_BYTES + 65_536)?;
    match args.trim_start().starts_with('{') {
        true => Ok(args),
        false => Err(Error::argument("args", "the arguments must be one JSON object")),
    }
}

fn object(args: &str) -> Result<Map<String, Value>> {
    serde_json::from_str(checked(args)?).map_err(|_| Error::argument("args", "the arguments must be one JSON object"))
}

/// The arguments with an id made before the first send, so that a call sent again after a lost reply does nothing new.
fn with_id(args: &str, field: &str, make: fn() -> Uuid) -> Result<String> {
    let mut map = object(args)?;
    map.entry(field).or_insert_with(|| make().to_string().into());
    Ok(Value::Object(map).to_string())
}

/// The statement for the caller's own connection. With `contracts`, the version that an earlier one was answered.
fn statement(link: &mut Link, args: &str, contracts: &Contracts, wanted: &dyn Fn() -> bool) -> Result<String> {
    let (args, seen) = split_seen(args)?;
    let statement = enqueue::many(&args)?;
    let version = contracts.check(link, &statement, wanted)?;
    // The caller's transaction decides which version it sees: an older one by its snapshot, a newer one by a
    // publication of its own, whose contracts only the worker can check.
    let text = statement.validated(seen.unwrap_or(version));
    let sql = format!("select {}($1::text::jsonb)", link.store().schema().object("enqueue"));
    Ok(json!({"sql": sql, "params": [text], "ids": statement.ids}).to_string())
}

/// Takes `contracts` out of the arguments of `enqueueStatement`.
fn split_seen(args: &str) -> Result<(Cow<'_, str>, Option<i32>)> {
    let Ok(mut members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(args) else {
        return Ok((Cow::Borrowed(args), None));
    };
    let Some(seen) = members.remove("contracts") else { return Ok((Cow::Borrowed(args), None)) };
    let seen = json::integer_within(seen.get(), "contracts", 0, i32::MAX.into())?;
    let rest = serde_json::to_string(&members).map_err(|e| Error::new(Kind::Internal, e.to_string()))?;
    Ok((Cow::Owned(rest), i32::try_from(seen).ok()))
}

/// What the answer to such a statement means.
fn answered(args: &str, contracts: &Contracts) -> Result<String> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Given {
        answer: String,
    }
    let refused = || Error::argument("answer", "answer must be the text that the statement returned");
    let given: Given = serde_json::from_str(args).map_err(|_| refused())?;
    match Answer::read(given.answer).map_err(|_| refused())? {
        Answer::Enqueued(answers) => match serde_json::from_str::<Vec<&RawValue>>(&answers) {
            Ok(_) => Ok(answers),
            Err(_) => Err(refused()),
        },
        Answer::Stale(version) => {
            contracts.heard(version);
            Ok(json!({"stale": true, "contracts": version}).to_string())
        }
    }
}

/// One look at the outcome of a job.
fn look(link: &mut Link, call: &mut Call) -> Result<Outcome> {
    let map = object(&call.args)?;
    if let Some(unknown) = map.keys().find(|key| !["id", "timeoutMs"].contains(&key.as_str())) {
        let unknown: String = unknown.chars().take(100).collect();
        return Err(Error::argument(&unknown, format!("unknown option {unknown}")));
    }
    let timeout = match map.get("timeoutMs") {
        Some(value) => {
            let ms = json::integer_within(&value.to_string(), "timeoutMs", 0, MAX_WAIT_MS as i64)?;
            Duration::from_millis(ms.unsigned_abs())
        }
        None => Duration::from_millis(MAX_WAIT_MS),
    };
    let id = BTreeMap::from([("id", map.get("id").cloned().unwrap_or(Value::Null))]);
    let args = serde_json::to_string(&id).map_err(|e| Error::new(Kind::Internal, e.to_string()))?;
    let left = timeout.saturating_sub(call.since.elapsed());
    // One try: the next look is the repetition, and between the two no thread is held.
    match ask(link, "rpc_outcome", &args, || false) {
        Ok(answer) if answer == "null" => {}
        Ok(answer) => return Ok(Outcome::Answer(answer)),
        Err(error) if error.kind() == Kind::ConnectionLost && link.store().reached() && !left.is_zero() => {
            return Ok(Outcome::AskAgain(LAST_LOOK.min(left)));
        }
        Err(error) => return Err(error),
    }
    if left.is_zero() {
        let ms = timeout.as_millis() as u64;
        return Err(Error::new(Kind::WaitTimeout, format!("the job had not ended after {ms} ms; it is untouched"))
            .with("timeoutMs", ms));
    }
    call.pause = (call.pause * 3 / 2).clamp(FIRST_LOOK, LAST_LOOK);
    Ok(Outcome::AskAgain(call.pause.min(left)))
}

fn migrated(link: &mut Link, wanted: &dyn Fn() -> bool) -> Result<String> {
    let store = link.store().clone();
    let migrated =
        link.run(wanted, |connection| migrate::migrate(connection, store.schema(), store.statement_timeout()))?;
    Ok(json!({"version": migrated.version, "applied": migrated.applied}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_found_by_name() {
        assert_eq!(Verb::parse("workers.list").unwrap(), Verb::Function("rpc_workers_list"));
        assert_eq!(Verb::parse("enqueue").unwrap(), Verb::Enqueue);
        assert_eq!(Verb::parse("drop").unwrap_err().code(), "invalid_argument");
    }

    #[test]
    fn a_function_is_named_after_its_verb() {
        for (verb, function) in FUNCTIONS {
            let mut name = String::from("rpc_");
            for c in verb.chars() {
                match c {
                    '.' => name.push('_'),
                    c if c.is_ascii_uppercase() => {
                        name.push('_');
                        name.push(c.to_ascii_lowercase());
                    }
                    c => name.push(c),
                }
            }
            assert_eq!(&name, function);
        }
    }

    #[test]
    fn a_claim_keeps_the_id_it_was_given() {
        let given: Value =
            serde_json::from_str(&with_id(r#"{"claimId":"x"}"#, "claimId", Uuid::new_v4).unwrap()).unwrap();
        assert_eq!(given["claimId"], "x");
        let made: Value = serde_json::from_str(&with_id("{}", "claimId", Uuid::new_v4).unwrap()).unwrap();
        assert_eq!(made["claimId"].as_str().unwrap().len(), 36);
    }

    #[test]
    fn arguments_are_checked_before_anything_is_sent() {
        assert_eq!(checked("").unwrap(), "{}");
        assert_eq!(checked("[]").unwrap_err().code(), "invalid_argument");
        let error = checked(r#"{"result":{"a":["x\u0000"]}}"#).unwrap_err();
        assert_eq!(error.code(), "payload_invalid");
        assert_eq!(error.details()["path"], "result.a[0]");
    }
}
