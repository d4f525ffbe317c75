//! What the pool promises: waits that hold no thread, lone enqueues that share a statement, cancel and close.

use crate::support::{Database, call, eventually, on_each_server, try_call};
use drayhorse_core::bridge::Client;
use drayhorse_core::error::Result;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

fn submit(client: &Client, verb: &str, args: Value) -> (u64, Receiver<Result<String>>) {
    let (send, receive) = channel();
    let ticket = client.submit(verb, &args.to_string(), Box::new(move |result| send.send(result).unwrap_or(())));
    (ticket, receive)
}

fn answer(receive: &Receiver<Result<String>>) -> Result<Value> {
    let text = receive.recv_timeout(Duration::from_secs(30)).expect("the call ends")?;
    Ok(serde_json::from_str(&text).expect("JSON"))
}

/// Holds the one thread of a pool with a call that needs a lock, until the returned connection commits.
fn hold_the_thread(
    database: &Database,
    client: &Client,
) -> (drayhorse_core::store::Connection, Receiver<Result<String>>) {
    let mut blocker = database.another_connection();
    blocker.batch("begin; lock table settings in access exclusive mode").unwrap();
    let (_, busy) = submit(client, "enqueue", json!({"type": "busy"}));
    let mut look = database.another_connection();
    eventually("the thread is busy", Duration::from_secs(10), || {
        let waiting = "select count(*) from pg_locks l join pg_class c on c.oid = l.relation
          join pg_namespace n on n.oid = c.relnamespace where not l.granted and n.nspname = current_schema";
        look.query_one(waiting, &[]).unwrap().get::<_, i64>(0) == 1
    });
    (blocker, busy)
}

#[test]
fn many_waits_leave_the_only_thread_free() {
    on_each_server("waits", |database| {
        let client = database.client_with(json!({"poolSize": 1}));
        let job = call(&client, "enqueue", json!({"type": "t"}));
        let waits: Vec<_> =
            (0..50).map(|_| submit(&client, "wait", json!({"id": job["id"], "timeoutMs": 20000}))).collect();
        let asked = Instant::now();
        for _ in 0..10 {
            call(&client, "get", json!({"id": job["id"]}));
        }
        assert!(asked.elapsed() < Duration::from_secs(5));
        let claims = call(&client, "claim", json!({"handlers": [{"type": "t", "version": "1"}]}));
        let claim = json!({"id": claims[0]["id"], "fence": claims[0]["fence"]});
        call(&client, "complete", json!({"claim": claim, "result": 7}));
        for (_, receive) in &waits {
            assert_eq!(answer(receive).unwrap()["result"], 7);
        }
    });
}

#[test]
fn a_wait_ends_by_its_time_and_leaves_the_job() {
    on_each_server("wait_timeout", |database| {
        let client = database.client();
        let job = call(&client, "enqueue", json!({"type": "t"}));
        let started = Instant::now();
        let error = try_call(&client, "wait", json!({"id": job["id"], "timeoutMs": 300})).unwrap_err();
        assert_eq!(error.code(), "wait_timeout");
        assert!(started.elapsed() >= Duration::from_millis(300));
        assert_eq!(call(&client, "get", json!({"id": job["id"]}))["state"], "ready");
        let nothing = "01890a5d-ac96-774b-bcce-b302099a8057";
        assert_eq!(
            try_call(&client, "wait", json!({"id": nothing, "timeoutMs": 300})).unwrap_err().code(),
            "not_found"
        );
        for bad in [json!({"id": job["id"], "timeoutMs": -1}), json!({"id": job["id"], "timeout": 1}), json!({})] {
            assert_eq!(try_call(&client, "wait", bad).unwrap_err().code(), "invalid_argument");
        }
    });
}

#[test]
fn lone_enqueues_share_a_statement_and_errors_reach_only_their_caller() {
    on_each_server("batch", |database| {
        let client = database.client_with(json!({"poolSize": 1}));
        let (mut blocker, busy) = hold_the_thread(database, &client);
        let mut calls = Vec::new();
        for i in 0..90 {
            let args = match i {
                // Refused by the core, by SQL, and a conflict between two of the batch.
                10 => json!({"type": "t", "payload": "a\u{0}b"}),
                20 => {
                    json!({"type": "t", "options": {"retryPolicy": {"type": "fixed", "delayMs": -1}}})
                }
                30 => {
                    json!({"type": "t", "payload": 1, "options": {"idempotencyKey": {"key": "k"}}})
                }
                31 => {
                    json!({"type": "t", "payload": 2, "options": {"idempotencyKey": {"key": "k"}}})
                }
                _ => json!({"type": "t", "payload": i}),
            };
            calls.push(submit(&client, "enqueue", args).1);
        }
        blocker.batch("commit").unwrap();
        answer(&busy).unwrap();
        let mut ids = BTreeSet::new();
        for (i, receive) in calls.iter().enumerate() {
            match (i, answer(receive)) {
                (10, Err(error)) => assert_eq!(error.code(), "payload_invalid"),
                (20, Err(error)) => assert_eq!(error.code(), "policy_invalid"),
                (31, Err(error)) => assert_eq!(error.code(), "idempotency_conflict"),
                (_, Ok(enqueued)) => {
                    assert!(ids.insert(enqueued["id"].as_str().expect("an id").to_owned()))
                }
                (_, Err(error)) => panic!("{i}: {error}"),
            }
        }
        assert_eq!(ids.len(), 87);
        assert_eq!(database.count("job"), 88);
        let statements = |database: &mut Database| database.count("(select distinct xmin::text from job)");
        // One was refused, so each was sent alone; the next hundred go together.
        let before = statements(database);
        let (mut blocker, busy) = hold_the_thread(database, &client);
        let calls: Vec<_> =
            (0..100).map(|i| submit(&client, "enqueue", json!({"type": "t", "payload": i})).1).collect();
        blocker.batch("commit").unwrap();
        answer(&busy).unwrap();
        let ordered: Vec<String> =
            calls.iter().map(|receive| answer(receive).unwrap()["id"].as_str().expect("an id").to_owned()).collect();
        assert_eq!(statements(database) - before, 2);
        for (i, id) in ordered.iter().enumerate() {
            assert_eq!(database.text(&format!("select payload from job where id = '{id}'")), Some(i.to_string()));
        }
    });
}

#[test]
fn a_queued_call_can_be_taken_back() {
    on_each_server("cancel", |database| {
        let client = database.client_with(json!({"poolSize": 1}));
        let (mut blocker, busy) = hold_the_thread(database, &client);
        let (ticket, receive) = submit(&client, "enqueue", json!({"type": "never"}));
        assert!(client.cancel(ticket));
        assert!(!client.cancel(ticket));
        let error = answer(&receive).unwrap_err();
        assert_eq!((error.code(), &error.details()["canceled"]), ("wait_timeout", &json!(true)));
        blocker.batch("commit").unwrap();
        let job = answer(&busy).unwrap();
        let (ticket, receive) = submit(&client, "wait", json!({"id": job["id"], "timeoutMs": 60000}));
        thread::sleep(Duration::from_millis(100));
        eventually("the wait is between two looks", Duration::from_secs(5), || client.cancel(ticket));
        assert!(answer(&receive).is_err());
        assert_eq!(database.count("job"), 1);
    });
}

#[test]
fn close_lets_running_calls_end_and_refuses_the_others() {
    on_each_server("close", |database| {
        let name = format!("close{}", std::process::id());
        let client = Client::connect(
            &format!("{}?application_name={name}", database.url),
            &json!({"schema": database.schema, "poolSize": 1}).to_string(),
        )
        .unwrap();
        let (mut blocker, busy) = hold_the_thread(database, &client);
        let (_, queued) = submit(&client, "enqueue", json!({"type": "queued"}));
        let closing = thread::spawn({
            let client = client.clone();
            move || client.close()
        });
        assert_eq!(answer(&queued).unwrap_err().code(), "closed");
        thread::sleep(Duration::from_millis(100));
        assert!(!closing.is_finished());
        blocker.batch("commit").unwrap();
        answer(&busy).unwrap();
        closing.join().unwrap();
        client.close();
        assert_eq!(try_call(&client, "get", json!({})).unwrap_err().code(), "closed");
        assert_eq!(try_call(&client, "errorTable", json!({})).unwrap_err().code(), "closed");
        eventually("the connection is gone", Duration::from_secs(5), || {
            database.count(&format!("(select from pg_stat_activity where application_name = '{name}')")) == 0
        });
        assert_eq!(database.count("job"), 1);
    });
}

#[test]
fn what_was_submitted_is_run_although_the_client_is_dropped() {
    on_each_server("dropped", |database| {
        let client = database.client_with(json!({"poolSize": 2}));
        let calls: Vec<_> =
            (0..300).map(|i| submit(&client, "enqueue", json!({"type": "t", "payload": i})).1).collect();
        drop(client);
        for receive in &calls {
            answer(receive).unwrap();
        }
        assert_eq!(database.count("job"), 300);
    });
}

#[test]
fn a_callback_may_panic_or_close_but_not_call() {
    on_each_server("callback", |database| {
        let client = database.client_with(json!({"poolSize": 1}));
        client.submit("schemaVersion", "{}", Box::new(|_| panic!("a binding's fault")));
        let (send, receive) = channel();
        let inner = client.clone();
        client.submit(
            "schemaVersion",
            "{}",
            Box::new(move |_| {
                send.send(inner.call("schemaVersion", "{}").map(|_| ()).map_err(|e| e.code())).unwrap();
                inner.close();
                send.send(Ok(())).unwrap();
            }),
        );
        assert_eq!(receive.recv_timeout(Duration::from_secs(10)), Ok(Err("internal")));
        assert_eq!(receive.recv_timeout(Duration::from_secs(10)), Ok(Ok(())));
    });
}

#[test]
fn a_statement_for_another_connection() {
    on_each_server("statement", |database| {
        let client = database.client();
        let jobs = json!({"jobs": [{"type": "a", "payload": {"n": 12345678901234567890_u64}}, {"type": "b"}]});
        let statement = call(&client, "enqueueStatement", jobs);
        let (sql, text) = (statement["sql"].as_str().unwrap(), statement["params"][0].as_str().unwrap());
        let mut own = database.another_connection();
        own.batch("begin").unwrap();
        let told = own.query_text(sql, &[(&text, drayhorse_core::store::Type::TEXT)]).unwrap().unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told[0]["id"], statement["ids"][0]);
        assert_eq!(told[1]["id"], statement["ids"][1]);
        own.batch("rollback").unwrap();
        assert_eq!(database.count("job"), 0);
    });
}

#[test]
fn nothing_a_handler_returned_or_threw_keeps_its_attempt_from_ending() {
    on_each_server("unstorable", |database| {
        let client = database.client();
        let claim = |database: &mut Database| {
            call(&client, "enqueue", json!({"type": "t", "options": {"maxAttempts": 2}}));
            let claims = call(&client, "claim", json!({"handlers": [{"type": "t", "version": "1"}]}));
            database.sql("select 1");
            json!({"id": claims[0]["id"], "fence": claims[0]["fence"]})
        };
        let deep = "[".repeat(200) + &"]".repeat(200);
        for result in [r#""a\u0000b""#, r#""\ud800""#, &deep] {
            let held = claim(database);
            let args = format!(r#"{{"claim":{held},"result":{result}}}"#);
            for _ in 0..2 {
                let answer: Value = serde_json::from_str(&client.call("complete", &args).unwrap()).unwrap();
                assert_eq!(answer, json!({"state": "failed", "reason": "output"}));
            }
            let job = call(&client, "get", json!({"id": held["id"]}));
            assert_eq!((&job["state"], &job["uncertain"]), (&json!("failed"), &json!(true)));
            assert_eq!(try_call(&client, "release", json!({"claim": held})).unwrap_err().code(), "lease_lost");
        }
        let held = claim(database);
        let args =
            format!(r#"{{"claim":{held},"error":{{"name":"E","message":"bad \u0000 and \udc00"}},"delayMs":0}}"#);
        let answer: Value = serde_json::from_str(&client.call("fail", &args).unwrap()).unwrap();
        assert_eq!(answer["state"], "ready");
        let lost = format!(
            r#"{{"claim":{{"id":"{}","fence":"01890a5d-ac96-474b-bcce-b302099a8057/1"}},"result":{deep}}}"#,
            held["id"].as_str().unwrap()
        );
        assert_eq!(client.call("complete", &lost).unwrap_err().code(), "lease_lost");
    });
}

#[test]
fn every_verb_of_the_table_is_a_function_of_the_schema() {
    on_each_server("functions", |database| {
        let client = database.client();
        for verb in [
            "get",
            "timeline",
            "list",
            "counts",
            "cancel",
            "redrive",
            "redrivePreview",
            "previewPolicy",
            "claim",
            "complete",
            "fail",
            "release",
            "heartbeat",
            "checkpointGet",
            "checkpointPut",
            "workers.list",
            "prune",
            "grant",
            "revoke",
            "advanceClock",
            "wait",
            "endpoints.list",
            "endpoints.get",
            "endpoints.configure",
            "endpoints.pause",
            "endpoints.resume",
            "endpoints.forceOpen",
            "endpoints.forceClose",
            "endpoints.reset",
            "queues.list",
            "queues.get",
            "queues.configure",
            "queues.pause",
            "queues.resume",
        ] {
            if let Err(error) = client.call(verb, "{}") {
                assert_eq!(error.code(), "invalid_argument", "{verb}: {}", error.to_json());
                assert!(!error.message().contains("there is no verb"), "{verb}");
            }
        }
    });
}
