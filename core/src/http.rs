//! From an HTTP response to a retry decision, for handlers that call a service: whether another attempt makes sense,
//! whether the request may have had its effect, and how long the service asks to wait. Pure and table driven; every
//! language calls [`decide`], so that the answer is the same everywhere.

mod date;
mod hint;
#[cfg(test)]
mod tests;

use crate::error::{Error, Kind, Result};
use crate::{json, time};
use hint::Headers;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// An answer with this status, 100 to 999.
    Status(u16),
    /// None: the request never left (refused, no such host, reset before it was sent).
    NotSent,
    /// None: the request was sent, then a timeout or a reset.
    AfterSend,
}

/// What the caller knows about the request and the answer.
#[derive(Clone, Debug)]
pub struct Options {
    headers: Headers,
    /// Whether sending the request twice has the effect of sending it once (RFC 9110 9.2.2). True unless told.
    idempotent: bool,
    /// Whether this service says 409 while an earlier request is still in progress. False unless told.
    conflict_means_in_progress: bool,
    now: Timestamp,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether another attempt makes sense.
    pub retryable: bool,
    /// The request may have been applied although it is not sent again.
    pub uncertain: bool,
    /// How long the service asks to wait, at most a day; none on 2xx.
    pub retry_after_ms: Option<i64>,
    /// Why, for people.
    pub reason: &'static str,
}

enum Rule {
    Retry,
    RetryIfIdempotent,
    RetryWithRetryAfter,
    RetryIfInProgress,
    Final,
}

/// The table. Statuses it does not name are judged by their class; those above 599, which HTTP does not know, as 5xx
/// (RFC 9110 15).
fn rule(status: u16) -> (Rule, &'static str) {
    use Rule::*;
    match status {
        ..400 => (Final, "not an error"),
        408 => (Retry, "the server waited too long for the request"),
        421 => (Retry, "the request reached a server that cannot answer it"),
        423 => (Retry, "the resource is locked, usually for a short time"),
        425 => (Retry, "the server does not take the risk of early data"),
        429 => (Retry, "too many requests"),
        413 => (RetryWithRetryAfter, "the content is too large, for now"),
        409 => (RetryIfInProgress, "an earlier request is still in progress"),
        401 | 402 | 403 | 407 | 511 => (Final, "the credentials or rights must change"),
        404 | 410 => (Final, "the resource is not there"),
        400..500 => (Final, "the request must change"),
        503 => (Retry, "the service is unavailable"),
        500 | 502 | 504 | 507 | 520..530 => (RetryIfIdempotent, "the server failed and may have applied the request"),
        _ => (Final, "the server cannot do what is asked"),
    }
}

/// The decision for one response.
pub fn decision(response: Response, options: &Options) -> Decision {
    let status = match response {
        Response::Status(status) => status,
        Response::NotSent => {
            return Decision {
                retryable: true,
                uncertain: false,
                retry_after_ms: None,
                reason: "the request was not sent",
            };
        }
        Response::AfterSend => {
            let reason = "no answer came, and the request may have been applied";
            return if_idempotent(options, None, reason);
        }
    };
    let wait = match status {
        200..300 => hint::Wait::default(),
        _ => hint::wait(&options.headers, options.now),
    };
    let (rule, reason) = rule(status);
    let (retryable, reason) = match rule {
        Rule::Retry => (true, reason),
        Rule::RetryIfIdempotent => return if_idempotent(options, wait.ms, reason),
        Rule::RetryWithRetryAfter if wait.by_retry_after => (true, reason),
        Rule::RetryWithRetryAfter => (false, "the content is too large"),
        Rule::RetryIfInProgress if options.conflict_means_in_progress => (true, reason),
        Rule::RetryIfInProgress => (false, "the request conflicts with the state of the resource"),
        Rule::Final => (false, reason),
    };
    Decision { retryable, uncertain: false, retry_after_ms: wait.ms, reason }
}

fn if_idempotent(options: &Options, retry_after_ms: Option<i64>, reason: &'static str) -> Decision {
    Decision { retryable: options.idempotent, uncertain: !options.idempotent, retry_after_ms, reason }
}

/// The bridge's form: `{"response":{"status":503}|{"failure":"not_sent"|"after_send"},"options":{"headers":{name: value
/// or [values]},"idempotent","conflictMeansInProgress","now"}}` to `{"retryable","uncertain","retryAfterMs"?,"reason"}`.
/// A header that makes no sense is ignored: this runs in somebody's error path.
pub fn decide(args_json: &str) -> Result<String> {
    let args_json = json::repair(args_json);
    let args: Args = serde_json::from_str(&args_json)
        .map_err(|e| Error::new(Kind::InvalidArgument, format!("httpDecision: {e}")))?;
    let now = match &args.options.now {
        None => Timestamp::now(),
        Some(now) => time::timestamp(now.as_str(), "options.now")?,
    };
    let options = Options {
        headers: Headers::new(&args.options.headers),
        idempotent: args.options.idempotent,
        conflict_means_in_progress: args.options.conflict_means_in_progress,
        now,
    };
    let answer = decision(args.response.read()?, &options);
    let mut answer_json =
        json!({ "retryable": answer.retryable, "uncertain": answer.uncertain, "reason": answer.reason });
    if let Some(ms) = answer.retry_after_ms {
        answer_json["retryAfterMs"] = ms.into();
    }
    Ok(answer_json.to_string())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args<'a> {
    #[serde(borrow)]
    response: ResponseArgs<'a>,
    #[serde(default)]
    options: OptionArgs,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResponseArgs<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    failure: Option<String>,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct OptionArgs {
    headers: Map<String, Value>,
    idempotent: bool,
    conflict_means_in_progress: bool,
    now: Option<Value>,
}

impl Default for OptionArgs {
    fn default() -> OptionArgs {
        OptionArgs { headers: Map::new(), idempotent: true, conflict_means_in_progress: false, now: None }
    }
}

impl ResponseArgs<'_> {
    fn read(&self) -> Result<Response> {
        match (self.status, self.failure.as_deref()) {
            (Some(raw), None) => {
                let status = json::integer_within(raw.get(), "response.status", 100, 999)?;
                Ok(Response::Status(status as u16))
            }
            (None, Some("not_sent")) => Ok(Response::NotSent),
            (None, Some("after_send")) => Ok(Response::AfterSend),
            (None, Some(_)) => {
                let message = "response.failure must be not_sent or after_send";
                Err(Error::argument("response.failure", message))
            }
            _ => Err(Error::argument("response", "response must have either status or failure")),
        }
    }
}
