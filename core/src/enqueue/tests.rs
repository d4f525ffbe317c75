//! What is sent, and the sentence for everything that is not.

use super::*;
use serde_json::{Value, json};
use std::collections::HashSet;

fn sent(args: &str) -> Value {
    serde_json::from_str(&one(args).expect(args).text).expect("JSON")
}

fn refused(args: Value) -> (Kind, String, String) {
    refused_text(&args.to_string())
}

fn refused_text(args: &str) -> (Kind, String, String) {
    let error = one(args).expect_err(args);
    let field = error.details().get("field").or(error.details().get("path"));
    let field = field.and_then(Value::as_str).unwrap_or_default().to_owned();
    (error.kind(), error.message().to_owned(), field)
}

#[test]
fn a_job_is_sent_flat_with_an_id_and_an_untouched_payload() {
    let args = r#"{"type":"provider.sync","payload": {"b":1e2, "a":1970670598291982290,"b":[ ]},
        "options":{"maxAttempts":5.0,"tags":["x"],"queue":"a\"b"}}"#;
    let statement = one(args).unwrap();
    assert!(statement.text.contains(r#"{"b":1e2, "a":1970670598291982290,"b":[ ]}"#));
    let mut job = sent(args);
    let id: Uuid = job["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(id.get_version_num(), 7);
    job.as_object_mut().unwrap().retain(|key, _| !["id", "payload"].contains(&key.as_str()));
    assert_eq!(job.to_string(), r#"{"maxAttempts":5.0,"queue":"a\"b","tags":["x"],"type":"provider.sync"}"#);
    assert_eq!(statement.ids.len(), 1);
}

#[test]
fn missing_null_and_empty_payloads_stay_distinct() {
    assert!(sent(r#"{"type":"t"}"#).get("payload").is_none());
    assert_eq!(sent(r#"{"type":"t","payload":null}"#)["payload"], Value::Null);
    assert_eq!(sent(r#"{"type":"t","payload":""}"#)["payload"], "");
    assert_eq!(sent(r#"{"type":"t","options":{}}"#)["type"], "t");
}

#[test]
fn many_jobs_keep_their_order_and_have_ids_that_grow() {
    let jobs: Vec<Value> = (0..1_000).map(|n| json!({"type": "t", "payload": n})).collect();
    let statement = many(&json!({ "jobs": jobs }).to_string()).unwrap();
    let sent: Vec<Value> = serde_json::from_str(&statement.text).unwrap();
    assert!(sent.iter().enumerate().all(|(n, job)| job["payload"] == n && job["id"] == statement.ids[n].as_str()));
    assert_eq!(statement.ids.iter().collect::<HashSet<_>>().len(), 1_000);
    assert!(statement.ids.is_sorted());
    assert_eq!(many(r#"{"jobs":[]}"#).unwrap().text, "[]");
}

#[test]
fn a_statement_knows_what_contracts_are_about() {
    let args = r#"{"jobs":[{"payload":{"a" : 1},"type":"p\u0061y"},{"type":"b","options":{"version":"2"}},{"type":"c","payload":null}]}"#;
    let statement = many(args).unwrap();
    let jobs: Vec<_> =
        statement.jobs().map(|job| (job.kind.into_owned(), job.version.into_owned(), job.payload)).collect();
    assert_eq!(jobs[0], ("pay".into(), "1".into(), Some(r#"{"a" : 1}"#)));
    assert_eq!(jobs[1], ("b".into(), "2".into(), None));
    assert_eq!(jobs[2].2, Some("null"));
    assert_eq!((statement.path(2), one(r#"{"type":"t"}"#).unwrap().path(0)), ("jobs[2].".into(), String::new()));
    let sent: Value = serde_json::from_str(&statement.validated(7)).unwrap();
    assert_eq!((&sent["contracts"], sent["jobs"].as_array().unwrap().len()), (&json!(7), 3));
}

#[test]
fn refusals_name_the_field_and_the_bound() {
    use Kind::{InvalidArgument, PayloadInvalid, PolicyInvalid};
    let long = "ä".repeat(101);
    for (options, kind, message, field) in [
        (json!({"foo": 1}), InvalidArgument, "unknown option: foo", "foo"),
        (json!({"max_attempts": 1, "Zoo": 1}), InvalidArgument, "unknown option: Zoo", "Zoo"),
        (json!({"type": "t"}), InvalidArgument, "unknown option: type", "type"),
        (json!({"id": "x"}), InvalidArgument, "unknown option: id", "id"),
        (json!({"maxAttempts": 0}), InvalidArgument, "maxAttempts must be an integer from 1 to 100", "maxAttempts"),
        (json!({"maxAttempts": -1}), InvalidArgument, "maxAttempts must be an integer from 1 to 100", "maxAttempts"),
        (
            json!({"maxAttempts": 2_147_483_648_u64}),
            InvalidArgument,
            "maxAttempts must be an integer from 1 to 100",
            "maxAttempts",
        ),
        (json!({"maxAttempts": null}), InvalidArgument, "maxAttempts must be an integer from 1 to 100", "maxAttempts"),
        (json!({"maxAttempts": "5"}), InvalidArgument, "maxAttempts must be an integer from 1 to 100", "maxAttempts"),
        (json!({"maxAttempts": 1.5}), InvalidArgument, "maxAttempts must be an integer from 1 to 100", "maxAttempts"),
        (json!({"priority": 101}), InvalidArgument, "priority must be an integer from -100 to 100", "priority"),
        (json!({"delayMs": -1}), InvalidArgument, "delayMs must be an integer from 0 to 3153600000000", "delayMs"),
        (json!({"timeoutMs": 0}), InvalidArgument, "timeoutMs must be an integer from 1 to 31536000000", "timeoutMs"),
        (json!({"queue": ""}), InvalidArgument, "queue must be 1 to 200 bytes of UTF-8", "queue"),
        (json!({"queue": null}), InvalidArgument, "queue must be 1 to 200 bytes of UTF-8", "queue"),
        (json!({"endpoint": long}), InvalidArgument, "endpoint must be 1 to 200 bytes of UTF-8", "endpoint"),
        (json!({"version": 3}), InvalidArgument, "version must be 1 to 200 bytes of UTF-8", "version"),
        (
            json!({"endpoint": "a\0"}),
            InvalidArgument,
            "endpoint: U+0000 cannot be stored; remove it or encode it",
            "endpoint",
        ),
        (
            json!({"tags": ["a", "b\0"]}),
            InvalidArgument,
            "tags[1]: U+0000 cannot be stored; remove it or encode it",
            "tags[1]",
        ),
        (json!({"tags": "a"}), InvalidArgument, "tags must be at most 20 strings of 1 to 100 characters", "tags"),
        (json!({"tags": [""]}), InvalidArgument, "tags must be at most 20 strings of 1 to 100 characters", "tags"),
        (json!({"tags": [long]}), InvalidArgument, "tags must be at most 20 strings of 1 to 100 characters", "tags"),
        (
            json!({"tags": vec!["a"; 21]}),
            InvalidArgument,
            "tags must be at most 20 strings of 1 to 100 characters",
            "tags",
        ),
        (json!({"runAt": "tomorrow"}), InvalidArgument, "runAt must be an RFC 3339 time with its zone", "runAt"),
        (json!({"deadline": 5}), InvalidArgument, "deadline must be an RFC 3339 time with its zone", "deadline"),
        (
            json!({"runAt": "2026-01-01T00:00:00Z", "delayMs": 5}),
            InvalidArgument,
            "runAt and delayMs exclude each other",
            "runAt",
        ),
        (
            json!({"deadline": "2026-01-01T00:00:00Z", "deadlineMs": 5}),
            InvalidArgument,
            "deadline and deadlineMs exclude each other",
            "deadline",
        ),
        (
            json!({"idempotencyKey": "k"}),
            InvalidArgument,
            "idempotencyKey must be an object with key and, if wanted, ttlMs",
            "idempotencyKey",
        ),
        (
            json!({"idempotencyKey": {}}),
            InvalidArgument,
            "idempotencyKey must be an object with key and, if wanted, ttlMs",
            "idempotencyKey",
        ),
        (
            json!({"idempotencyKey": {"key": "k", "ttl": 1}}),
            InvalidArgument,
            "idempotencyKey must be an object with key and, if wanted, ttlMs",
            "idempotencyKey",
        ),
        (
            json!({"idempotencyKey": {"key": "k".repeat(513)}}),
            InvalidArgument,
            "idempotencyKey.key must be 1 to 512 bytes of UTF-8",
            "idempotencyKey.key",
        ),
        (
            json!({"idempotencyKey": {"key": "k", "ttlMs": 0}}),
            InvalidArgument,
            "idempotencyKey.ttlMs must be an integer from 1 to 31536000000",
            "idempotencyKey.ttlMs",
        ),
        (json!({"synthetic": 1}), InvalidArgument, "synthetic must be true or false", "synthetic"),
        (
            json!({"after": {"jobId": "\0"}}),
            InvalidArgument,
            "after.jobId: U+0000 cannot be stored; remove it or encode it",
            "after",
        ),
        (
            json!({"retryPolicy": {"type": "fixed"}}),
            PolicyInvalid,
            "retryPolicy.delayMs is missing",
            "retryPolicy.delayMs",
        ),
        (json!({"retryPolicy": null}), PolicyInvalid, "retryPolicy must be a JSON object", "retryPolicy"),
    ] {
        assert_eq!(
            refused(json!({"type": "t", "options": options})),
            (kind, message.to_owned(), field.to_owned()),
            "{options}"
        );
    }
    for (args, kind, message, field) in [
        (json!({}), InvalidArgument, "type is missing", "type"),
        (json!({"type": null}), InvalidArgument, "type must be 1 to 200 bytes of UTF-8", "type"),
        (json!({"type": "é".repeat(101)}), InvalidArgument, "type must be 1 to 200 bytes of UTF-8", "type"),
        (json!({"type": "t", "paylod": 1}), InvalidArgument, "unknown option: paylod", "paylod"),
        (json!({"type": "t", "queue": "q"}), InvalidArgument, "unknown option: queue", "queue"),
        (json!({"type": "t", "options": null}), InvalidArgument, "options must be a JSON object", "options"),
        (
            json!({"type": "t", "payload": {"items": [1, 2, 3, "a\0"]}}),
            PayloadInvalid,
            "payload.items[3]: U+0000 cannot be stored; remove it or encode it",
            "payload.items[3]",
        ),
        (json!(["t"]), InvalidArgument, "the job must be a JSON object", ""),
    ] {
        assert_eq!(refused(args.clone()), (kind, message.to_owned(), field.to_owned()), "{args}");
    }
    assert_eq!(
        refused_text(r#"{"type":"t","payload":{"x":NaN}}"#),
        (PayloadInvalid, "payload.x: NaN and infinities cannot be stored".into(), "payload.x".into())
    );
    assert_eq!(
        refused_text(r#"{"type":"\ud800"}"#).1,
        "type: a lone surrogate cannot be stored; remove it or encode it"
    );
    assert_eq!(refused_text(r#"{"type":"t","\ud800":1}"#).0, InvalidArgument);
}

#[test]
fn fields_of_many_jobs_say_which() {
    for (args, message, field) in [
        (
            json!({"jobs": [{"type": "a"}, {"type": ""}]}),
            "jobs[1].type must be 1 to 200 bytes of UTF-8",
            "jobs[1].type",
        ),
        (json!({"jobs": [{"type": "a", "options": {"foo": 1}}]}), "unknown option: jobs[0].foo", "jobs[0].foo"),
        (
            json!({"jobs": [{"type": "a", "options": {"tags": ["\0"]}}]}),
            "jobs[0].tags[0]: U+0000 cannot be stored; remove it or encode it",
            "jobs[0].tags[0]",
        ),
        (
            json!({"jobs": [{"type": "a", "options": {"retryPolicy": {"type": "x"}}}]}),
            "jobs[0].retryPolicy.type must be fixed, exponential or decorrelated-jitter",
            "jobs[0].retryPolicy.type",
        ),
        (
            json!({"jobs": [{"type": "a", "payload": ["\0"]}]}),
            "jobs[0].payload[0]: U+0000 cannot be stored; remove it or encode it",
            "jobs[0].payload[0]",
        ),
        (json!({"jobs": [{"type": "a"}, 5]}), "jobs[1] must be a JSON object", "jobs[1]"),
        (json!({"jobs": {}}), "jobs must be a JSON array", "jobs"),
        (json!({}), "jobs is missing", "jobs"),
        (json!({"jobs": [], "job": 1}), "unknown option: job", "job"),
        (json!({"jobs": vec![json!({"type": "t"}); 10_001]}), "jobs must be at most 10000 in one statement", "jobs"),
    ] {
        let error = many(&args.to_string()).unwrap_err();
        let told = error.details().get("field").or(error.details().get("path"));
        assert_eq!((error.message(), told), (message, Some(&Value::from(field))));
    }
}

#[test]
fn what_no_database_takes_is_refused_before_it_is_sent() {
    let payload = "x".repeat(17 << 20);
    let error = one(&json!({"type": "t", "payload": payload}).to_string()).unwrap_err();
    assert_eq!(error.kind(), Kind::PayloadTooLarge);
    assert_eq!(error.details()["path"], "payload");
    assert_eq!(error.details()["limit"], 16 << 20);
    let job = json!({"type": "t", "payload": "x".repeat(12 << 20)});
    let error = many(&json!({"jobs": [job, job, job]}).to_string()).unwrap_err();
    assert_eq!(error.kind(), Kind::PayloadTooLarge);
    assert_eq!(error.details()["path"], "jobs");
}
