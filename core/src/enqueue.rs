//! From the arguments of `enqueue` and `enqueueMany` to the one text parameter of the SQL function of that name. Each
//! job gets its id here, once, so that a statement sent again after a lost reply makes no second job. What can be
//! refused without the database is refused here, in SQL's own sentences; payloads pass through as the text they are.
//! The bridge calls it, also for callers that run the statement on their own connection.

mod check;
mod members;
#[cfg(test)]
mod tests;

use crate::error::{Error, Kind, Result};
use check::check;
use members::{Members, element};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use uuid::Uuid;

/// How many jobs one statement takes.
const MAX_JOBS: usize = 10_000;
/// How much text one statement takes: PostgreSQL keeps no array of more than 256 MiB in its binary form, which may be
/// seven times its text.
const MAX_TEXT_BYTES: usize = 32 << 20;
/// What `options` may hold. SQL knows the same names and `id`, `type` and `payload`.
const OPTIONS: [&str; 16] = [
    "queue",
    "version",
    "priority",
    "runAt",
    "delayMs",
    "deadline",
    "deadlineMs",
    "timeoutMs",
    "maxAttempts",
    "retryPolicy",
    "tags",
    "idempotencyKey",
    "endpoint",
    "after",
    "synthetic",
    "runId",
];

/// What is sent: `select enqueue($1::text::jsonb)` with [`Statement::validated`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// One object, or an array of them.
    pub text: String,
    /// The ids in it, in order.
    pub ids: Vec<String>,
    places: Vec<Places>,
}

/// Where in the text the type, the version and the payload of a job stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Places {
    kind: Range<usize>,
    version: Option<Range<usize>>,
    payload: Option<Range<usize>>,
}

/// What contracts are about in one job of a statement.
pub struct Sent<'a> {
    /// Its type.
    pub kind: Cow<'a, str>,
    /// The version of its type.
    pub version: Cow<'a, str>,
    /// As it is sent; none when it is missing.
    pub payload: Option<&'a str>,
}

impl Statement {
    /// The parameter from a client that has checked the payloads against version `contracts` of the published ones.
    pub fn validated(&self, contracts: i32) -> String {
        format!(r#"{{"jobs":{},"contracts":{contracts}}}"#, self.text)
    }

    /// Its jobs, in order.
    pub fn jobs(&self) -> impl Iterator<Item = Sent<'_>> {
        self.places.iter().map(|places| Sent {
            kind: self.name(&places.kind),
            version: places.version.as_ref().map_or(Cow::Borrowed("1"), |range| self.name(range)),
            payload: places.payload.as_ref().and_then(|range| self.text.get(range.clone())),
        })
    }

    /// What refusals put before the field of its n-th job: nothing where there is but one.
    pub fn path(&self, n: usize) -> String {
        if self.text.starts_with('{') { String::new() } else { format!("{}.", element("jobs", n)) }
    }

    /// A name that was checked when it was written.
    fn name(&self, range: &Range<usize>) -> Cow<'_, str> {
        let raw = self.text.get(range.clone()).unwrap_or_default();
        match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
            _ => Cow::Owned(serde_json::from_str(raw).unwrap_or_default()),
        }
    }
}

/// The statement for `{"type","payload"?,"options"?}`.
pub fn one(args_json: &str) -> Result<Statement> {
    let args = read(args_json)?;
    let mut text = String::with_capacity(args_json.len() + 64);
    let (id, places) = write_job(&mut text, args, "")?;
    Ok(Statement { text, ids: vec![id], places: vec![places] })
}

/// The statement for `{"jobs":[{"type","payload"?,"options"?}]}`.
pub fn many(args_json: &str) -> Result<Statement> {
    let args = read(args_json)?;
    let fields = args.fields(&["jobs"], "")?;
    let jobs = fields.get("jobs").ok_or_else(|| Error::argument("jobs", "jobs is missing"))?;
    let Ok(jobs) = serde_json::from_str::<Vec<&RawValue>>(jobs.get()) else {
        return Err(Error::argument("jobs", "jobs must be a JSON array"));
    };
    if jobs.len() > MAX_JOBS {
        let message = format!("jobs must be at most {MAX_JOBS} in one statement");
        return Err(Error::argument("jobs", message).with("limit", MAX_JOBS));
    }
    let mut text = String::with_capacity(args_json.len() + 64 * jobs.len());
    let mut ids = Vec::with_capacity(jobs.len());
    let mut places = Vec::with_capacity(jobs.len());
    text.push('[');
    for (n, job) in jobs.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        let path = element("jobs", n);
        let members =
            Members::read(job).ok_or_else(|| Error::argument(&path, format!("{path} must be a JSON object")))?;
        let (id, its_places) = write_job(&mut text, members, &format!("{path}."))?;
        ids.push(id);
        places.push(its_places);
    }
    text.push(']');
    if text.len() > MAX_TEXT_BYTES {
        let message = format!("jobs is {} bytes of JSON; the limit is {MAX_TEXT_BYTES}", text.len());
        return Err(Error::new(Kind::PayloadTooLarge, message).with("path", "jobs").with("limit", MAX_TEXT_BYTES));
    }
    Ok(Statement { text, ids, places })
}

/// The members of the arguments, or where their JSON is broken.
fn read(args_json: &str) -> Result<Members<'_>> {
    match serde_json::from_str::<&RawValue>(args_json) {
        Ok(raw) => Members::read(raw).ok_or_else(|| Error::argument("", "the job must be a JSON object")),
        Err(fault) => {
            crate::json::scan(args_json, "", usize::MAX)?;
            let message = format!("the arguments are not valid JSON: {fault}");
            Err(Error::new(Kind::InvalidArgument, message))
        }
    }
}

/// Checks one job and appends it in the flat form that SQL takes; returns its id. `path` is empty or `jobs[3].`.
fn write_job(text: &mut String, members: Members, path: &str) -> Result<(String, Places)> {
    let mut fields = members.fields(&["type", "payload", "options"], path)?;
    if let Some(options) = fields.remove("options") {
        let field = format!("{path}options");
        let options =
            Members::read(options).ok_or_else(|| Error::argument(&field, format!("{field} must be a JSON object")))?;
        fields.append(&mut options.fields(&OPTIONS, path)?);
    }
    check(&fields, path)?;
    let id = Uuid::now_v7().to_string();
    text.push_str("{\"id\":\"");
    text.push_str(&id);
    text.push('"');
    let mut places = Places::default();
    for (key, value) in &fields {
        text.push_str(",\"");
        text.push_str(key);
        text.push_str("\":");
        let from = text.len();
        text.push_str(value.get());
        match *key {
            "type" => places.kind = from..text.len(),
            "version" => places.version = Some(from..text.len()),
            "payload" => places.payload = Some(from..text.len()),
            _ => {}
        }
    }
    text.push('}');
    Ok((id, places))
}

/// The known members of one job by name, as they are written.
type Fields<'a> = BTreeMap<&'static str, &'a RawValue>;
