//! A job's way through a worker.

use super::host::{Host, complete, fail};
use crate::support::{Database, call, eventually, on_each_server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

fn counts(database: &Database) -> Value {
    call(&database.client(), "counts", json!({}))
}

fn until(what: &str, condition: impl FnMut() -> bool) {
    eventually(what, PATIENCE, condition);
}

#[test]
fn jobs_come_with_their_payload_and_leave_with_their_result() {
    on_each_server("basics", |database| {
        let client = database.client();
        let given = json!([
            {"type": "t", "payload": {"a": [1, "x"]}},
            {"type": "t", "payload": null},
            {"type": "t"},
            {"type": "t", "payload": "", "options": {"tags": ["b", "a"], "maxAttempts": 3, "idempotencyKey": {"key": "k"}}},
        ]);
        let ids = call(&client, "enqueueMany", json!({"jobs": given}));
        let big = client.call("enqueue", r#"{"type":"t","payload":{"n":18446744073709551615}}"#).unwrap();
        let big: Value = serde_json::from_str(&big).unwrap();
        let mut host = Host::start(
            database,
            json!({"concurrency": 3}),
            |job| json!({"verb": "complete", "result": {"got": job.get("payload"), "text": job.get("payloadText")}}),
        );
        until("all have succeeded", || counts(database)["succeeded"] == 5);
        let by_id: BTreeMap<String, Value> =
            host.events("job").into_iter().map(|event| (event["id"].as_str().unwrap().to_owned(), event)).collect();
        let event = |at: usize| &by_id[ids[at]["id"].as_str().unwrap()];
        assert_eq!(event(0)["payload"], json!({"a": [1, "x"]}));
        assert_eq!((&event(1)["payload"], &event(1)["hasPayload"]), (&Value::Null, &json!(true)));
        assert_eq!((event(2).get("payload"), &event(2)["hasPayload"]), (None, &json!(false)));
        assert_eq!((&event(3)["payload"], &event(3)["tags"]), (&json!(""), &json!(["b", "a"])));
        assert_eq!((&event(3)["maxAttempts"], &event(3)["idempotencyKey"]), (&json!(3), &json!("k")));
        assert_eq!((&event(0)["maxAttempts"], &event(0)["attempt"]), (&json!(25), &json!(1)));
        let big = &by_id[big["id"].as_str().unwrap()];
        assert_eq!((&big["bigNumbers"], &big["payloadText"]), (&json!(true), &json!("{\"n\": 18446744073709551615}")));
        let snapshot = call(&client, "get", json!({"id": ids[0]["id"]}));
        assert_eq!(snapshot["result"]["got"], json!({"a": [1, "x"]}));
        assert_eq!(host.stop().1, json!({"event": "stopped"}));
    });
}

#[test]
fn a_failing_job_is_tried_until_its_budget_is_spent() {
    on_each_server("budget", |database| {
        let client = database.client();
        for max_attempts in [1, 2, 3] {
            call(
                &client,
                "enqueue",
                json!({"type": "t", "payload": max_attempts,
                "options": {"maxAttempts": max_attempts, "retryPolicy": {"type": "fixed", "delayMs": 0}}}),
            );
        }
        let host = Host::start(database, json!({}), |_| fail("no"));
        until("all have failed", || counts(database)["failed"] == 3);
        let mut starts: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for event in host.events("job") {
            starts.entry(event["payload"].as_i64().unwrap()).or_default().push(event["attempt"].as_i64().unwrap());
        }
        assert_eq!(starts[&1], [1]);
        assert_eq!(starts[&2], [1, 2]);
        assert_eq!(starts[&3], [1, 2, 3]);
    });
}

#[test]
fn delays_and_hints_reach_the_database() {
    on_each_server("delays", |database| {
        let client = database.client();
        let job = |payload: Value| {
            let id = call(
                &client,
                "enqueue",
                json!({"type": "t", "payload": payload,
                "options": {"retryPolicy": {"type": "fixed", "delayMs": 3600000}}}),
            );
            id["id"].as_str().unwrap().to_owned()
        };
        let worker_delay = job(json!({"workerDelayMs": 7200000}));
        let bad_delay = job(json!({"workerDelayMs": -5}));
        let hint = job(json!({"retryAfterMs": 7200000}));
        let bad_hint = job(json!({"retryAfterMs": "soon"}));
        let final_one = job(json!({"retryable": false}));
        let input = job(json!({"inputFailure": true}));
        let host = Host::start(database, json!({}), |job| {
            let mut report = fail("bad \u{0} byte");
            for (key, value) in job.get("payload").as_object().unwrap() {
                report[key] = value.clone();
            }
            report
        });
        until("all are reported", || {
            let counts = counts(database);
            counts["scheduled"] == 4 && counts["failed"] == 2
        });
        let retry = |id: &str| {
            let timeline = call(&client, "timeline", json!({"id": id}));
            let found = timeline.as_array().unwrap().iter().find(|e| e["kind"] == "retry_scheduled").cloned();
            found.unwrap_or_default()
        };
        assert_eq!(
            (&retry(&worker_delay)["delayMs"], &retry(&worker_delay)["source"]),
            (&json!(7200000), &json!("worker_override"))
        );
        assert_eq!(
            (&retry(&bad_delay)["delayMs"], &retry(&bad_delay)["source"]),
            (&json!(3600000), &json!("policy:fixed"))
        );
        assert!(retry(&bad_delay).to_string().contains("retryDelayMs must be an integer"), "{}", retry(&bad_delay));
        assert_eq!((&retry(&hint)["delayMs"], &retry(&hint)["source"]), (&json!(7200000), &json!("retry_after")));
        assert_eq!(retry(&bad_hint)["source"], "policy:fixed");
        assert!(retry(&bad_hint).to_string().contains("not a positive number"));
        assert_eq!(call(&client, "get", json!({"id": final_one}))["state"], "failed");
        assert_eq!(call(&client, "get", json!({"id": input}))["state"], "failed");
        let said = host.events("error");
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!((&said[0]["code"], &said[0]["jobId"]), (&json!("invalid_argument"), &json!(bad_delay)));
    });
}

#[test]
fn a_result_that_cannot_be_stored_ends_the_job() {
    on_each_server("output", |database| {
        let client = database.client();
        for kind in ["nul", "large", "host"] {
            call(&client, "enqueue", json!({"type": "t", "payload": kind}));
        }
        let host = Host::start(database, json!({}), |job| match job.get("payload").as_str().unwrap() {
            "nul" => complete(json!("POZ\u{0}")),
            "large" => complete(json!("x".repeat(2_000_000))),
            _ => json!({"verb": "fail", "outputFailure": true, "error": {"name": "TypeError", "message": "not JSON"}}),
        });
        until("all have failed", || counts(database)["failed"] == 3);
        let jobs = call(&client, "list", json!({"filter": {"state": "failed"}}));
        for job in jobs["jobs"].as_array().unwrap() {
            assert_eq!(job["uncertain"], true, "{job}");
        }
        assert_eq!(host.starts(), 3);
    });
}

#[test]
fn checkpoints_survive_and_progress_is_shown() {
    on_each_server("checkpoints", |database| {
        let client = database.client();
        let id =
            call(&client, "enqueue", json!({"type": "t", "options": {"retryPolicy": {"type": "fixed", "delayMs": 0}}}));
        let looking = client.clone();
        let id = id["id"].clone();
        let own = id.clone();
        let host = Host::start(database, json!({}), move |job| {
            let before = job.call("checkpointGet", json!({"name": "rows"})).unwrap();
            if job.get("attempt") == 1 {
                assert_eq!(before, json!({"found": false}));
                assert_eq!(job.call("checkpointPut", json!({"name": "rows", "value": {"n": 7}})).unwrap(), json!({}));
                assert_eq!(job.call("checkpointPut", json!({"name": "rows", "value": {"n": 7.0}})).unwrap(), json!({}));
                let nul = job.call("checkpointPut", json!({"name": "bad", "value": "\u{0}"})).unwrap_err();
                assert_eq!(nul.code(), "payload_invalid");
                job.call("progress", json!({"value": {"step": 1}})).unwrap();
                job.call("progress", json!({"value": {"step": 2}})).unwrap();
                eventually("the progress is shown", PATIENCE, || {
                    call(&looking, "get", json!({"id": own}))["progress"]["step"] == 2
                });
                let left = job.call("leaseRemaining", json!({})).unwrap();
                assert!((1..=30_000).contains(&left["leaseRemainingMs"].as_i64().unwrap()));
                return fail("again");
            }
            assert_eq!(before, json!({"found": true, "value": {"n": 7}}));
            let conflict = job.call("checkpointPut", json!({"name": "rows", "value": 8})).unwrap_err();
            assert_eq!(conflict.code(), "checkpoint_conflict");
            fail("conflict")
        });
        until("it has failed", || counts(database)["failed"] == 1);
        let snapshot = call(&client, "get", json!({"id": id}));
        assert_eq!(snapshot["attempt"], 2);
        // A conflict is not worth another attempt, and says nothing about the destination.
        assert_eq!(database.text("select cause from attempt where attempt = 2"), Some("checkpoint".into()));
        assert!(host.events("error").is_empty(), "{:?}", host.events("error"));
    });
}

#[test]
fn a_worker_has_three_connections_and_is_listed() {
    on_each_server("connections", |database| {
        let id = "drayhorse connections test";
        let url = format!(
            "{}{}application_name={}",
            database.url,
            if database.url.contains('?') { "&" } else { "?" },
            id.replace(' ', "%20")
        );
        let options = json!({"schema": database.schema});
        let client = drayhorse_core::bridge::Client::connect(&url, &options.to_string()).unwrap();
        let host = Host::start_on(client, json!({"name": "w-1", "concurrency": 4, "language": "rust"}), |_| {
            complete(json!(1))
        });
        let mine = format!("(select 1 from pg_stat_activity where application_name = '{id}')");
        until("it listens", || host.health()["listening"] == true);
        for _ in 0..50 {
            call(&database.client(), "enqueue", json!({"type": "t"}));
        }
        until("all have succeeded", || counts(database)["succeeded"] == 50);
        assert_eq!(database.count(&mine), 3);
        let list = call(&database.client(), "workers.list", json!({}));
        assert_eq!(
            (&list[0]["name"], &list[0]["slots"], &list[0]["language"]),
            (&json!("w-1"), &json!(4), &json!("rust"))
        );
        let health = host.health();
        assert_eq!(
            (&health["phase"], &health["connected"], &health["slots"]),
            (&json!("running"), &json!(true), &json!(4))
        );
        drop(host);
        until("the connections are closed", || database.count(&mine) == 0);
        assert_eq!(call(&database.client(), "workers.list", json!({})), json!([]));
    });
}
