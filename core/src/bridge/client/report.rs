//! `complete` and `fail` of hand-written loops: nothing a handler returned or threw keeps its attempt from ending.
//!
//! A result that cannot be stored is sent as an output failure, and the text of an error is repaired, as the worker
//! does with its reports.

use super::verbs::{ask, checked};
use crate::error::{Error, Kind, Result};
use crate::json::{self, MAX_VALUE_BYTES};
use crate::store::Link;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

type Members<'a> = BTreeMap<String, &'a RawValue>;

/// Completes the claim, or fails it at once when its result cannot be stored.
pub fn complete(link: &mut Link, args: &str, wanted: &dyn Fn() -> bool) -> Result<String> {
    let unstorable = members(args).and_then(|members| {
        let result = members.get("result")?;
        let reason = json::scan(result.get(), "result", MAX_VALUE_BYTES).err()?;
        Some((members.get("claim").map(|claim| claim.get().to_owned()), reason))
    });
    match unstorable {
        None => ask(link, "rpc_complete", checked(args)?, wanted),
        Some((claim, reason)) => {
            let report = output_failure(claim.as_deref(), &reason)?;
            let answer = ask(link, "fail", &report, wanted)?;
            settled_as(&answer)
        }
    }
}

/// Fails the claim, whatever bytes its error holds.
pub fn fail(link: &mut Link, args: &str, wanted: &dyn Fn() -> bool) -> Result<String> {
    match repaired(args) {
        Some(repaired) => ask(link, "rpc_fail", checked(&repaired)?, wanted),
        None => ask(link, "rpc_fail", checked(args)?, wanted),
    }
}

/// The members as they are written; none when `args` is not an object, which the check refuses.
fn members(args: &str) -> Option<Members<'_>> {
    serde_json::from_str(args).ok()
}

/// The arguments with an error that can be stored; none when there is nothing to repair.
fn repaired(args: &str) -> Option<String> {
    let members = members(args)?;
    let error = members.get("error").filter(|error| error.get().starts_with('{'))?;
    let error = json::sanitize_error(error.get()).to_string();
    let mut text = String::with_capacity(args.len());
    for (key, value) in &members {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        text.push_str(if key == "error" { &error } else { value.get() });
    }
    text.push('}');
    Some(text)
}

fn output_failure(claim: Option<&str>, reason: &Error) -> Result<String> {
    let claim: Value = claim.and_then(|claim| serde_json::from_str(claim).ok()).unwrap_or_default();
    let id = claim["id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
    let fence = claim["fence"].as_str().and_then(|fence| fence.split_once('/'));
    let fence = fence.and_then(|(claim, number)| Some((Uuid::parse_str(claim).ok()?, number.parse::<u16>().ok()?)));
    let (Some(id), Some((claim, number))) = (id, fence) else {
        return Err(Error::argument("claim", "claim must be an object with the id and the fence of a claim"));
    };
    let name = match reason.kind() {
        Kind::PayloadTooLarge => "PayloadTooLarge",
        _ => "PayloadInvalid",
    };
    let error = json!({"name": name, "message": reason.message()});
    let report =
        json!({"id": id, "claim": claim, "number": number, "cause": "output", "retryable": false, "error": error});
    Ok(Value::from(vec![report]).to_string())
}

/// The end that one report led to: `failed`, or `canceled` after a cancel request.
fn settled_as(answer: &str) -> Result<String> {
    let answers: Value = serde_json::from_str(answer)
        .map_err(|_| Error::new(Kind::Internal, "fail answered something that is not JSON"))?;
    match answers[0]["error"].as_str() {
        Some(_) => Err(Error::new(
            Kind::LeaseLost,
            "the claim is no longer current: its attempt was settled, recovered or claimed again",
        )),
        None => Ok(answers[0].to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_repaired_and_the_rest_left_alone() {
        let text = repaired(r#"{"claim":{"id":"x"},"error":{"name":"E","message":"a\u0000b"},"delayMs":1e3}"#).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(text.contains(r#""delayMs":1e3"#));
        assert!(!text.contains("\\u0000"));
        assert_eq!(value["claim"]["id"], "x");
        assert!(value["error"]["message"].as_str().unwrap().starts_with('a'));
        assert_eq!(repaired(r#"{"error":"text"}"#), None);
        assert_eq!(repaired("[]"), None);
    }

    #[test]
    fn an_output_failure_names_its_claim() {
        let reason = Error::new(Kind::PayloadInvalid, "result: NaN");
        let claim = r#"{"id":"01890a5d-ac96-774b-bcce-b302099a8057","fence":"01890a5d-ac96-474b-bcce-b302099a8057/3"}"#;
        let report: Value = serde_json::from_str(&output_failure(Some(claim), &reason).unwrap()).unwrap();
        assert_eq!((&report[0]["number"], &report[0]["cause"]), (&json!(3), &json!("output")));
        for bad in [None, Some("7"), Some(r#"{"id":"x","fence":"y/1"}"#)] {
            assert_eq!(output_failure(bad, &reason).unwrap_err().details()["field"], "claim");
        }
    }
}
