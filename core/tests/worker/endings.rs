//! How attempts and workers end: cancel, timeout, deadline, a lost lease, drains, and what cannot go on.

use super::host::{Host, complete, fail};
use crate::support::{Database, call, eventually, on_each_server};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

fn until(what: &str, condition: impl FnMut() -> bool) {
    eventually(what, PATIENCE, condition);
}

fn state(database: &Database, id: &Value) -> Value {
    call(&database.client(), "get", json!({"id": id}))["state"].clone()
}

fn enqueue(database: &Database, payload: Value, options: Value) -> Value {
    call(&database.client(), "enqueue", json!({"type": "t", "payload": payload, "options": options}))["id"].clone()
}

#[test]
fn a_cancel_reaches_the_handler_at_once_and_its_report_decides() {
    on_each_server("cancel", |database| {
        let gives_up = enqueue(database, json!("fails"), json!({}));
        let finishes = enqueue(database, json!("finishes"), json!({}));
        let host = Host::start(database, json!({}), |job| {
            assert_eq!(job.wait_for_abort(PATIENCE).as_deref(), Some("cancel"));
            if job.get("payload") == "fails" { fail("interrupted") } else { complete(json!(1)) }
        });
        until("both run", || host.starts() == 2);
        // The notification needs a worker that listens and has announced itself.
        until("it listens", || host.health()["listening"] == true);
        until("it has a channel", || database.count("(select from worker where channel is not null)") == 1);
        let asked = Instant::now();
        for id in [&gives_up, &finishes] {
            assert_eq!(call(&database.client(), "cancel", json!({"id": id}))["result"], "cancel_requested");
        }
        until("they have ended", || {
            state(database, &gives_up) == "canceled" && state(database, &finishes) == "succeeded"
        });
        assert!(asked.elapsed() < Duration::from_secs(5), "a third of the lease is ten seconds");
        assert_eq!(host.events("abort").len(), 2);
    });
}

#[test]
fn a_timeout_settles_at_once_and_the_handler_keeps_only_its_slot() {
    on_each_server("timeout", |database| {
        let id = enqueue(
            database,
            json!(null),
            json!({"timeoutMs": 300, "retryPolicy": {"type": "fixed", "delayMs": 3600000}}),
        );
        let release: Arc<AtomicBool> = Arc::default();
        let released = release.clone();
        let mut host = Host::start(database, json!({"concurrency": 1}), move |_| {
            while !released.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(5));
            }
            complete(json!("too late"))
        });
        until("it is settled", || state(database, &id) == "scheduled");
        until("the handler was told", || host.events("abort").len() == 1);
        assert_eq!(host.events("abort")[0]["reason"], "timeout");
        until("it is called stuck", || host.health()["stuck"][0]["jobId"] == id);
        assert_eq!(host.health()["running"], 1);
        // Its slot is taken, so another job waits.
        let next = enqueue(database, json!(2), json!({}));
        thread::sleep(Duration::from_millis(300));
        assert_eq!(state(database, &next), "ready");
        release.store(true, Ordering::SeqCst);
        until("the next one runs", || state(database, &next) == "succeeded");
        assert_eq!(state(database, &id), "scheduled");
        assert_eq!(host.health()["stuck"], json!([]));
        assert!(host.events("error").is_empty(), "{:?}", host.events("error"));
        host.stop();
    });
}

#[test]
fn the_worker_s_own_delay_counts_for_timeouts_too() {
    on_each_server("timeout_delay", |database| {
        let policy = json!({"timeoutMs": 200, "retryPolicy": {"type": "fixed", "delayMs": 3600000}});
        let by_number = enqueue(database, json!(null), policy.clone());
        let host = Host::start(database, json!({"retryDelayMs": 7200000}), |job| {
            job.wait_for_abort(PATIENCE);
            fail("late")
        });
        let source = |id: &Value| {
            let timeline = call(&database.client(), "timeline", json!({"id": id}));
            let found = timeline.as_array().unwrap().iter().find(|e| e["source"].is_string()).cloned();
            found.map(|event| (event["source"].clone(), event["delayMs"].clone()))
        };
        until("it is settled", || source(&by_number).is_some());
        assert_eq!(source(&by_number), Some((json!("worker_override"), json!(7200000))));
        drop(host);
        let by_function = enqueue(database, json!(null), policy);
        let host = Host::start(database, json!({}), |job| {
            assert_eq!(job.get("timed"), true);
            let said = json!([{"handle": job.handle(), "verb": "retryDelay", "workerDelayMs": 5000000}]);
            job.worker().report(&said.to_string()).unwrap();
            job.wait_for_abort(PATIENCE);
            fail("late")
        });
        until("it is settled", || source(&by_function).is_some());
        assert_eq!(source(&by_function), Some((json!("worker_override"), json!(5000000))));
        drop(host);
    });
}

#[test]
fn a_deadline_ends_the_attempt_for_good() {
    on_each_server("deadline", |database| {
        let id = enqueue(database, json!(null), json!({"deadlineMs": 700}));
        let host = Host::start(database, json!({}), |job| {
            job.wait_for_abort(PATIENCE);
            fail("late")
        });
        until("it has failed", || state(database, &id) == "failed");
        assert_eq!(database.text("select reason from outcome"), Some("deadline".into()));
        until("the handler was told", || host.events("abort").len() == 1);
        assert_eq!(host.starts(), 1);
    });
}

#[test]
fn a_claim_that_another_took_is_told_and_its_report_changes_nothing() {
    on_each_server("lost", |database| {
        let id = enqueue(database, json!(null), json!({}));
        let host = Host::start(database, json!({"leaseMs": 600}), |job| {
            if job.get("attempt") == 1 {
                assert_eq!(job.wait_for_abort(PATIENCE).as_deref(), Some("lease_lost"));
            }
            complete(job.get("attempt").clone())
        });
        until("it runs", || host.starts() == 1);
        // As recovery does it, while the heartbeats go on.
        let taken = "update runtime set claim_id = gen_random_uuid(), wake_at = clock_timestamp(), lease_until = null where state = 'a'";
        database.sql(taken);
        until("the second attempt has ended", || state(database, &id) == "succeeded");
        assert_eq!(call(&database.client(), "get", json!({"id": id}))["result"], 2);
        until("both are back", || host.health()["running"] == 0);
        assert_eq!(host.starts(), 2);
    });
}

#[test]
fn heartbeats_outlast_the_lease_and_recovery_leaves_the_job_alone() {
    on_each_server("heartbeats", |database| {
        let id = enqueue(database, json!(null), json!({}));
        let host = Host::start(database, json!({"leaseMs": 500}), |_| {
            thread::sleep(Duration::from_millis(2_500));
            complete(json!(1))
        });
        until("it has succeeded", || state(database, &id) == "succeeded");
        assert_eq!(host.starts(), 1);
        assert!(host.events("abort").is_empty());
    });
}

#[test]
fn a_drain_lets_handlers_finish_and_starts_none() {
    on_each_server("drain", |database| {
        for i in 0..20 {
            enqueue(database, json!(i), json!({}));
        }
        let mut host = Host::start(database, json!({"concurrency": 4, "prefetch": 4}), |_| {
            thread::sleep(Duration::from_millis(400));
            complete(json!(1))
        });
        until("four run", || host.starts() == 4);
        let (took, last) = host.stop();
        assert_eq!(last, json!({"event": "stopped"}));
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert_eq!(host.starts(), 4);
        let counts = call(&database.client(), "counts", json!({}));
        assert_eq!((&counts["succeeded"], &counts["ready"], &counts["active"]), (&json!(4), &json!(16), &json!(0)));
        // What had been claimed ahead has its attempt back.
        assert_eq!(database.count("(select from runtime where attempt <> 0)"), 0);
        assert_eq!(call(&database.client(), "workers.list", json!({})), json!([]));
    });
}

#[test]
fn no_handler_starts_after_the_stop_wherever_it_falls_in_a_claim() {
    on_each_server("stop_race", |database| {
        for i in 0..400 {
            enqueue(database, json!(i), json!({}));
        }
        for round in 0..20 {
            let mut host = Host::start(database, json!({"concurrency": 5, "graceMs": 50, "name": "racing"}), |_| {
                thread::sleep(Duration::from_secs(3));
                complete(json!(1))
            });
            thread::sleep(Duration::from_millis(2 * round + 5));
            host.worker.stop();
            let stopped_at = Instant::now();
            host.wait_for_end(PATIENCE);
            assert!(stopped_at.elapsed() < Duration::from_secs(3), "round {round}: {:?}", stopped_at.elapsed());
            assert_eq!(database.count("(select from runtime where state = 'a')"), 0, "round {round}");
            assert_eq!(database.count("(select from runtime where attempt > 0)"), 0, "round {round}");
        }
    });
}

#[test]
fn a_handler_that_ignores_everything_does_not_hold_up_the_end() {
    on_each_server("grace", |database| {
        let id = enqueue(database, json!(null), json!({}));
        let mut host = Host::start(database, json!({"graceMs": 500}), |_| {
            thread::sleep(Duration::from_secs(5));
            complete(json!("ignored"))
        });
        until("it runs", || host.starts() == 1);
        let (took, _) = host.stop();
        assert!(took >= Duration::from_millis(500) && took < Duration::from_secs(3), "{took:?}");
        assert_eq!(host.events("abort")[0]["reason"], "shutdown");
        let snapshot = call(&database.client(), "get", json!({"id": id}));
        assert_eq!((&snapshot["state"], &snapshot["attempt"]), (&json!("ready"), &json!(0)));
        let other = Host::start(database, json!({}), |job| complete(job.get("attempt").clone()));
        until("another worker has it", || state(database, &id) == "succeeded");
        assert_eq!(other.events("job")[0]["attempt"], 1);
    });
}

#[test]
fn close_releases_at_once() {
    on_each_server("close", |database| {
        let id = enqueue(database, json!(null), json!({}));
        let host = Host::start(database, json!({}), |_| {
            thread::sleep(Duration::from_secs(5));
            complete(json!("ignored"))
        });
        until("it runs", || host.starts() == 1);
        let started = Instant::now();
        host.worker.close();
        assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
        assert_eq!(state(database, &id), "ready");
    });
}

#[test]
fn a_worker_without_a_schema_says_so() {
    for variable in ["DRAYHORSE_TEST_URL", "DRAYHORSE_TEST_URL_15"] {
        let mut database = Database::empty(variable, "no_schema");
        let mut host = Host::start(&database, json!({}), |_| complete(json!(1)));
        assert_eq!(host.wait_for_end(PATIENCE)["error"]["code"], "schema_missing");
        drop(host);
        database.migrate();
        database.sql("insert into schema_version (version) values (999)");
        let mut host = Host::start(&database, json!({}), |_| complete(json!(1)));
        let last = host.wait_for_end(PATIENCE);
        assert_eq!(last["error"]["code"], "schema_too_new");
        assert_eq!(last["error"]["details"]["version"], 999);
    }
}

#[test]
fn a_schema_that_goes_away_ends_the_worker_within_its_grace_time() {
    on_each_server("dropped", |database| {
        let mut host = Host::start(database, json!({"graceMs": 3000}), |_| complete(json!(1)));
        until("it listens", || host.health()["listening"] == true);
        let schema = database.schema.clone();
        database.sql(&format!("drop schema {schema} cascade"));
        let gone = Instant::now();
        assert_eq!(host.wait_for_end(PATIENCE)["error"]["code"], "schema_missing");
        assert!(gone.elapsed() < Duration::from_secs(4), "{:?}", gone.elapsed());
    });
}

#[test]
fn revoked_rights_end_the_worker_and_are_named() {
    on_each_server("revoked", |database| {
        let role = format!("{}_worker", database.schema);
        database.sql(&format!("create role {role} login"));
        call(&database.client(), "grant", json!({"role": role, "access": "worker"}));
        let url = database.url.replace("postgres@", &format!("{role}@"));
        let client =
            drayhorse_core::bridge::Client::connect(&url, &json!({"schema": database.schema}).to_string()).unwrap();
        let id = enqueue(database, json!(null), json!({}));
        let mut host = Host::start_on(client, json!({"graceMs": 3000}), |_| complete(json!(1)));
        until("it works", || state(database, &id) == "succeeded");
        call(&database.client(), "revoke", json!({"role": role, "access": "worker"}));
        let gone = Instant::now();
        let last = host.wait_for_end(PATIENCE);
        assert_eq!(last["error"]["code"], "permission_denied");
        assert!(last["error"]["message"].as_str().unwrap().contains("grant"), "{last}");
        assert!(gone.elapsed() < Duration::from_secs(4), "{:?}", gone.elapsed());
        drop(host);
        database.sql(&format!("drop role {role}"));
    });
}
