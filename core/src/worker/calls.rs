//! Calls of a running handler, by its handle: checkpoints go through the client's pool under the attempt's fence,
//! progress is kept and written at most ten times a second, the rest is answered from memory.

use std::sync::{Arc, Weak};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::shared::Shared;
use crate::bridge::{Client, Done};
use crate::error::{Error, Kind, Result};
use crate::json::{self, MAX_VALUE_BYTES};
use crate::machine::{Event, Handle};

/// Bytes of a progress value.
const MAX_PROGRESS_BYTES: usize = 65_536;

#[derive(Deserialize)]
struct Given<'a> {
    handle: Handle,
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
}

/// Runs one call; `done` gets its answer, at once when no database is needed.
pub fn submit(shared: &Arc<Shared>, client: &Client, verb: &str, args: &str, done: Done) {
    match prepare(shared, verb, args) {
        Ok(Call::Answered(text)) => done(Ok(text)),
        Ok(Call::Ask { verb, args, handle }) => {
            let shared = Arc::downgrade(shared);
            let put = verb == "checkpointPut";
            client.submit(
                verb,
                &args,
                Box::new(move |result| {
                    if put {
                        remember(&shared, handle, &result);
                    }
                    done(result);
                }),
            );
        }
        Err(error) => done(Err(error)),
    }
}

enum Call {
    Answered(String),
    Ask { verb: &'static str, args: String, handle: Handle },
}

fn prepare(shared: &Shared, verb: &str, args: &str) -> Result<Call> {
    let given: Given =
        serde_json::from_str(args).map_err(|e| Error::argument("args", format!("the arguments of {verb}: {e}")))?;
    let handle = given.handle;
    match verb {
        "checkpointGet" => {
            let name = name(&given)?;
            let (claim, known) = shared.look(|machine, _| (machine.claim_of(handle), machine.has_checkpoints(handle)));
            let claim = claim?;
            if !known {
                return Ok(Call::Answered(r#"{"found":false}"#.to_owned()));
            }
            let claim = serde_json::json!({"id": claim.job.to_string(), "fence": claim.fence()});
            let args = format!(r#"{{"claim":{claim},"name":{name}}}"#);
            Ok(Call::Ask { verb: "checkpointGet", args, handle })
        }
        "checkpointPut" => {
            let name = name(&given)?;
            let value = value(&given, MAX_VALUE_BYTES)?;
            let claim = shared.look(|machine, _| machine.claim_of(handle))?;
            let claim = serde_json::json!({"id": claim.job.to_string(), "fence": claim.fence()});
            let args = format!(r#"{{"claim":{claim},"name":{name},"value":{value}}}"#);
            Ok(Call::Ask { verb: "checkpointPut", args, handle })
        }
        "progress" => {
            let value = value(&given, MAX_PROGRESS_BYTES)?;
            shared.look(|machine, _| machine.claim_of(handle))?;
            shared.step(Event::Progress { handle, value: value.into() });
            Ok(Call::Answered("{}".to_owned()))
        }
        "leaseRemaining" => {
            let left = shared.look(|machine, now| machine.lease_remaining(now, handle)).unwrap_or(0);
            Ok(Call::Answered(format!(r#"{{"leaseRemainingMs":{left}}}"#)))
        }
        other => {
            let shown = json::sanitize_text(other, 50);
            let message = format!(
                "unknown call {shown}; handlers know checkpointGet, checkpointPut, progress and leaseRemaining"
            );
            Err(Error::argument("verb", message))
        }
    }
}

fn name(given: &Given) -> Result<String> {
    match given.name.as_deref() {
        Some(name) if !name.is_empty() && name.len() <= 200 && !name.contains('\0') => {
            Ok(serde_json::Value::from(name).to_string())
        }
        _ => Err(Error::argument("name", "name must be 1 to 200 bytes without U+0000").with("limit", 200)),
    }
}

fn value<'a>(given: &Given<'a>, limit: usize) -> Result<&'a str> {
    let value = given.value.map_or("null", RawValue::get);
    json::scan(value, "value", limit)?;
    Ok(value)
}

/// What the machine has to know about a checkpoint for later.
fn remember(shared: &Weak<Shared>, handle: Handle, result: &Result<String>) {
    let Some(shared) = shared.upgrade() else { return };
    match result {
        Ok(_) => shared.step(Event::CheckpointSaved(handle)),
        Err(error) if error.kind() == Kind::CheckpointConflict => shared.step(Event::CheckpointRefused(handle)),
        Err(_) => {}
    }
}
