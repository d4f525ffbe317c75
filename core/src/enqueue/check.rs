//! The bounds of a job's type, payload and options: those of `check_job` in `core/sql/enqueue.sql`, in its order and
//! its sentences. SQL has the last word; a refusal here only saves the way there.

use super::Fields;
use super::members::{Members, element};
use crate::error::{Error, Result};
use crate::json::{self, MAX_VALUE_BYTES};
use crate::policy::{Policy, Scope};
use crate::time::{self, MAX_AHEAD_MS, MAX_DELAY_MS};
use serde_json::value::RawValue;
use std::borrow::Cow;

const MAX_NAME_BYTES: usize = 200;
const MAX_KEY_BYTES: usize = 512;
const MAX_TAGS: usize = 20;
const MAX_TAG_CHARS: usize = 100;
/// Integers with their bounds.
const INTEGERS: [(&str, i64, i64); 5] = [
    ("priority", -100, 100),
    ("maxAttempts", 1, 100),
    ("delayMs", 0, MAX_AHEAD_MS),
    ("deadlineMs", 0, MAX_AHEAD_MS),
    ("timeoutMs", 1, MAX_DELAY_MS),
];

/// Refuses the first fault of one job, naming field and bound. `path` is empty or `jobs[3].`.
pub(super) fn check(fields: &Fields, path: &str) -> Result<()> {
    let given = |key: &str| fields.get(key).map(|raw| (raw.get(), format!("{path}{key}")));
    if !fields.contains_key("type") {
        let field = format!("{path}type");
        return Err(Error::argument(&field, format!("{field} is missing")));
    }
    for key in ["type", "queue", "version", "endpoint"] {
        if let Some((raw, field)) = given(key) {
            name(raw, &field, MAX_NAME_BYTES)?;
        }
    }
    for (key, low, high) in INTEGERS {
        if let Some((raw, field)) = given(key) {
            json::integer_within(raw, &field, low, high)?;
        }
    }
    for key in ["runAt", "deadline"] {
        if let Some((raw, field)) = given(key) {
            time::timestamp(string(raw, &field)?.as_deref(), &field)?;
        }
    }
    for (key, other) in [("runAt", "delayMs"), ("deadline", "deadlineMs")] {
        if let (Some((_, field)), true) = (given(key), fields.contains_key(other)) {
            let message = format!("{field} and {other} exclude each other");
            return Err(Error::argument(&field, message));
        }
    }
    if let Some((raw, field)) = given("retryPolicy") {
        Policy::parse(raw, &field, Scope::Job)?;
    }
    if let Some((raw, field)) = given("tags") {
        tags(raw, &field)?;
    }
    if let Some(raw) = fields.get("idempotencyKey") {
        idempotency_key(raw, &format!("{path}idempotencyKey"))?;
    }
    if let Some((raw, field)) = given("synthetic")
        && !["true", "false"].contains(&raw)
    {
        return Err(Error::argument(&field, format!("{field} must be true or false")));
    }
    for key in ["after", "runId"] {
        if let Some((raw, field)) = given(key) {
            storable(raw, &field)?;
        }
    }
    if let Some((raw, field)) = given("payload") {
        json::scan(raw, &field, MAX_VALUE_BYTES)?;
    }
    Ok(())
}

fn name(raw: &str, field: &str, max_bytes: usize) -> Result<()> {
    match string(raw, field)? {
        Some(text) if (1..=max_bytes).contains(&text.len()) => Ok(()),
        _ => {
            let message = format!("{field} must be 1 to {max_bytes} bytes of UTF-8");
            Err(Error::argument(field, message).with("limit", max_bytes))
        }
    }
}

fn tags(raw: &str, field: &str) -> Result<()> {
    let refused = || {
        let message = format!("{field} must be at most {MAX_TAGS} strings of 1 to {MAX_TAG_CHARS} characters");
        Error::argument(field, message)
    };
    let tags: Vec<&RawValue> = serde_json::from_str(raw).map_err(|_| refused())?;
    if tags.len() > MAX_TAGS {
        return Err(refused());
    }
    for (n, tag) in tags.iter().enumerate() {
        match string(tag.get(), &element(field, n))? {
            Some(text) if (1..=MAX_TAG_CHARS).contains(&text.chars().count()) => {}
            _ => return Err(refused()),
        }
    }
    Ok(())
}

fn idempotency_key(raw: &RawValue, field: &str) -> Result<()> {
    let refused = || {
        let message = format!("{field} must be an object with key and, if wanted, ttlMs");
        Error::argument(field, message)
    };
    let fields =
        Members::read(raw).and_then(|members| members.fields(&["key", "ttlMs"], "").ok()).ok_or_else(refused)?;
    let key = fields.get("key").ok_or_else(refused)?;
    name(key.get(), &format!("{field}.key"), MAX_KEY_BYTES)?;
    if let Some(ttl) = fields.get("ttlMs") {
        json::integer_within(ttl.get(), &format!("{field}.ttlMs"), 1, MAX_DELAY_MS)?;
    }
    Ok(())
}

/// The text of a JSON string; none if the value is something else.
fn string<'a>(raw: &'a str, field: &str) -> Result<Option<Cow<'a, str>>> {
    let Some(inner) = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Ok(None);
    };
    if !inner.contains('\\') {
        return Ok(Some(Cow::Borrowed(inner)));
    }
    storable(raw, field)?;
    Ok(serde_json::from_str(raw).ok().map(Cow::Owned))
}

/// A value of an option that PostgreSQL could not keep is a wrong argument, not a wrong payload.
fn storable(raw: &str, field: &str) -> Result<()> {
    json::scan(raw, field, MAX_VALUE_BYTES).map(|_| ()).map_err(|e| Error::argument(field, e.message()))
}
