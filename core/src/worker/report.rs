//! Reports of the host: parsed, checked and bounded before the machine sees them. A result that cannot be stored
//! becomes an output failure, and the text of an error is repaired, so that every end can be recorded.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::json::{self, MAX_VALUE_BYTES};
use crate::machine::{Cause, Ending, Event, Failure, Handle, Report};
use crate::time::{Hint, MAX_DELAY_MS, retry_after_hint};

/// Bytes of a host's sentence about its own callback.
const MAX_NOTE_BYTES: usize = 500;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given<'a> {
    handle: Handle,
    #[serde(borrow)]
    verb: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    retryable: Option<bool>,
    #[serde(borrow, default)]
    retry_after_ms: Option<&'a RawValue>,
    #[serde(default)]
    uncertain: Option<bool>,
    #[serde(borrow, default)]
    worker_delay_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    override_refused: Option<&'a RawValue>,
    #[serde(default)]
    output_failure: Option<bool>,
    #[serde(default)]
    input_failure: Option<bool>,
    #[serde(default)]
    cancellation: Option<bool>,
    #[serde(default)]
    started: Option<bool>,
}

/// The events that an array of reports stands for.
pub fn parse(text: &str) -> Result<Vec<Event>> {
    let given: Vec<Given> =
        serde_json::from_str(text).map_err(|e| Error::argument("reports", format!("reports: {e}")))?;
    let mut events = Vec::new();
    let mut reports = Vec::new();
    for one in given {
        match &*one.verb {
            "complete" => reports.push(complete(&one)),
            "fail" => reports.push(fail(&one)),
            "release" => {
                // Who does not say leaves it open that the handler had begun.
                let ending = Ending::Release { started: one.started.unwrap_or(true) };
                reports.push(Report { handle: one.handle, ending, note: None });
            }
            "retryDelay" => {
                let (ms, _) = worker_delay(one.worker_delay_ms);
                events.push(Event::RetryDelay { handle: one.handle, ms });
            }
            other => {
                let shown = json::sanitize_text(other, 50);
                let message = format!("unknown report {shown}; the verbs are complete, fail, release and retryDelay");
                return Err(Error::argument("verb", message));
            }
        }
    }
    if !reports.is_empty() {
        events.push(Event::Reports(reports));
    }
    Ok(events)
}

fn complete(given: &Given) -> Report {
    let ending = match given.result.map(RawValue::get) {
        None | Some("null") => Ending::Complete(None),
        Some(result) => match json::scan(result, "result", MAX_VALUE_BYTES) {
            Ok(_) => Ending::Complete(Some(result.into())),
            Err(refused) => Ending::Fail(Failure {
                retryable: Some(false),
                uncertain: true,
                ..Failure::of(Cause::Output, "OutputError", refused.message())
            }),
        },
    };
    Report { handle: given.handle, ending, note: None }
}

fn fail(given: &Given) -> Report {
    let (worker_delay_ms, mut refused) = worker_delay(given.worker_delay_ms);
    let note = refused.as_ref().map(|text| Error::argument("retryDelayMs", text.clone()));
    if let Some(raw) = given.override_refused.filter(|raw| raw.get() != "null") {
        refused = Some(note_of(raw));
    }
    let (retry_after_ms, hint_ignored) = match given.retry_after_ms.map(RawValue::get) {
        None | Some("null") => (None, None),
        Some(raw) => match retry_after_hint(raw) {
            Hint::Ms(ms) => (Some(ms), None),
            Hint::Ignored(note) => (None, Some(note)),
        },
    };
    let cause = match (given.output_failure, given.input_failure) {
        (Some(true), _) => Cause::Output,
        (_, Some(true)) => Cause::Input,
        _ => Cause::Error,
    };
    let error = match given.error {
        Some(raw) => json::sanitize_error(raw.get()).to_string(),
        None => r#"{"name":"Error","message":""}"#.to_owned(),
    };
    let failure = Failure {
        cause,
        error: Arc::from(error),
        retryable: if cause == Cause::Error { given.retryable } else { Some(false) },
        worker_delay_ms,
        retry_after_ms,
        uncertain: given.uncertain == Some(true) || cause == Cause::Output,
        override_refused: refused,
        hint_ignored,
        cancellation: given.cancellation == Some(true),
    };
    Report { handle: given.handle, ending: Ending::Fail(failure), note }
}

/// The delay that the worker's own `retryDelayMs` gave, or why it does not count.
fn worker_delay(raw: Option<&RawValue>) -> (Option<i64>, Option<String>) {
    match raw.map(RawValue::get) {
        None | Some("null") => (None, None),
        Some(text) => match json::integer_within(text, "retryDelayMs", 0, MAX_DELAY_MS) {
            Ok(ms) => (Some(ms), None),
            Err(refused) => {
                let shown = json::repair(text);
                let shown = json::sanitize_text(&shown, 60);
                (None, Some(format!("{} and not {shown}: the job's own policy decides", refused.message())))
            }
        },
    }
}

fn note_of(raw: &RawValue) -> String {
    let repaired = json::repair(raw.get());
    let text = serde_json::from_str::<String>(&repaired).unwrap_or_else(|_| repaired.into_owned());
    json::sanitize_text(&text, MAX_NOTE_BYTES).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Report {
        match parse(&format!("[{text}]")).unwrap().pop() {
            Some(Event::Reports(mut reports)) => reports.pop().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn failure(text: &str) -> Failure {
        match one(text).ending {
            Ending::Fail(failure) => failure,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_result_is_passed_on_as_it_is() {
        let report = one(r#"{"handle":7,"verb":"complete","result":{"n":123456789012345678901234567890}}"#);
        assert_eq!(report.handle, 7);
        assert_eq!(report.ending, Ending::Complete(Some(r#"{"n":123456789012345678901234567890}"#.into())));
        assert_eq!(one(r#"{"handle":1,"verb":"complete"}"#).ending, Ending::Complete(None));
        assert_eq!(one(r#"{"handle":1,"verb":"complete","result":null}"#).ending, Ending::Complete(None));
    }

    #[test]
    fn a_result_that_cannot_be_stored_is_an_output_failure() {
        for result in [r#""POZ\u0000""#, r#"{"a":"\ud800"}"#, &format!("{}1{}", "[".repeat(101), "]".repeat(101))] {
            let failure = failure(&format!(r#"{{"handle":1,"verb":"complete","result":{result}}}"#));
            assert_eq!((failure.cause, failure.retryable, failure.uncertain), (Cause::Output, Some(false), true));
            assert!(failure.error.contains("result"), "{}", failure.error);
        }
    }

    #[test]
    fn the_text_of_an_error_is_repaired() {
        let failure = failure(
            r#"{"handle":1,"verb":"fail","error":{"name":"E","message":"bad \u0000 byte \udcff","stack":"s"}}"#,
        );
        let error: serde_json::Value = serde_json::from_str(&failure.error).unwrap();
        assert_eq!(error["message"], "bad \u{fffd} byte \u{fffd}");
        assert_eq!(error["stack"], "s");
        assert_eq!((failure.cause, failure.retryable), (Cause::Error, None));
    }

    #[test]
    fn a_bad_delay_leaves_the_decision_to_the_policy_and_is_said() {
        for (raw, ms) in [("0", Some(0)), ("1e3", Some(1000)), ("null", None)] {
            let report = one(&format!(r#"{{"handle":1,"verb":"fail","workerDelayMs":{raw}}}"#));
            assert_eq!(report.note, None);
            assert!(
                matches!(report.ending, Ending::Fail(f) if f.worker_delay_ms == ms && f.override_refused.is_none())
            );
        }
        for raw in ["-1", "1.5", "31536000001", "\"soon\"", "{}"] {
            let report = one(&format!(r#"{{"handle":1,"verb":"fail","workerDelayMs":{raw}}}"#));
            assert_eq!(report.note.unwrap().code(), "invalid_argument");
            assert!(
                matches!(report.ending, Ending::Fail(f) if f.worker_delay_ms.is_none() && f.override_refused.is_some())
            );
        }
        let thrown = failure(r#"{"handle":1,"verb":"fail","overrideRefused":"it threw \u0000"}"#);
        assert_eq!(thrown.override_refused.as_deref(), Some("it threw \u{fffd}"));
    }

    #[test]
    fn hints_are_bounded_or_ignored_with_a_note() {
        for (raw, ms) in
            [("1", Some(1_000)), ("1500.2", Some(1_501)), ("1e12", Some(86_400_000)), ("0", None), ("-3", None)]
        {
            let failure = failure(&format!(r#"{{"handle":1,"verb":"fail","retryAfterMs":{raw}}}"#));
            assert_eq!(failure.retry_after_ms, ms, "{raw}");
            assert_eq!(failure.hint_ignored.is_some(), ms.is_none(), "{raw}");
        }
    }

    #[test]
    fn the_causes_hosts_can_name() {
        let output = failure(r#"{"handle":1,"verb":"fail","outputFailure":true}"#);
        assert_eq!((output.cause, output.uncertain), (Cause::Output, true));
        let input = failure(r#"{"handle":1,"verb":"fail","inputFailure":true}"#);
        assert_eq!((input.cause, input.retryable, input.uncertain), (Cause::Input, Some(false), false));
    }

    #[test]
    fn a_list_that_cannot_be_read_is_refused_whole() {
        assert_eq!(parse("{}").unwrap_err().code(), "invalid_argument");
        assert_eq!(parse(r#"[{"handle":1,"verb":"explode"}]"#).unwrap_err().code(), "invalid_argument");
        assert_eq!(parse(r#"[{"verb":"complete"}]"#).unwrap_err().code(), "invalid_argument");
    }
}
