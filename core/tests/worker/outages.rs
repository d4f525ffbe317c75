//! The network and the server in bad moods. What was accepted is never lost and ends once.

use super::host::{Host, complete};
use crate::proxy::Proxy;
use crate::support::{Database, call, eventually, on_each_server};
use drayhorse_core::bridge::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, condition: impl FnMut() -> bool) {
    eventually(what, PATIENCE, condition);
}

fn many(database: &Database, count: usize) {
    let jobs: Vec<Value> = (0..count).map(|n| json!({"type": "t", "payload": n})).collect();
    call(&database.client(), "enqueueMany", json!({"jobs": jobs}));
}

/// A client whose sessions can be told from all others.
fn named_client(database: &Database, url: &str, extra: Value) -> Client {
    let mut options = json!({"schema": database.schema});
    for (key, value) in extra.as_object().unwrap() {
        options[key] = value.clone();
    }
    let mark = if url.contains('?') { "&" } else { "?" };
    Client::connect(&format!("{url}{mark}application_name={}", database.schema), &options.to_string()).unwrap()
}

fn starts_per_job(host: &Host) -> BTreeMap<String, usize> {
    let mut starts = BTreeMap::new();
    for event in host.events("job") {
        *starts.entry(event["id"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    starts
}

#[test]
fn sessions_that_are_ended_again_and_again_lose_nothing() {
    on_each_server("terminated", |database| {
        let client = named_client(database, &database.url, json!({}));
        let host = Host::start_on(client, json!({"concurrency": 10, "leaseMs": 3000}), |job| {
            thread::sleep(Duration::from_millis(20));
            complete(job.get("payload").clone())
        });
        many(database, 300);
        let end = format!(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = '{}'",
            database.schema
        );
        for _ in 0..12 {
            thread::sleep(Duration::from_millis(60));
            database.rows(&end, &[]);
        }
        until("all have succeeded", || database.count("(select from outcome where state = 's')") == 300);
        assert_eq!(
            database.count("(select from outcome where result <> (select payload from job where id = job_id))"),
            0
        );
        let starts = starts_per_job(&host);
        assert_eq!(starts.len(), 300);
        // A claim whose session was killed between its commit and its answer is asked for again; only one that commits
        // after that question has to wait for recovery.
        let again = starts.values().filter(|count| **count > 1).count();
        assert!(again <= 20, "{again} jobs were started twice");
        until("it is connected", || host.health()["connected"] == true);
    });
}

#[test]
fn a_claim_whose_answer_is_lost_is_asked_for_again() {
    on_each_server("lost_answers", |database| {
        let proxy = Proxy::start(&database.url);
        let client = named_client(database, &proxy.url(), json!({}));
        let host = Host::start_on(client, json!({"concurrency": 5, "leaseMs": 20000, "pollMs": 200}), |job| {
            complete(job.get("payload").clone())
        });
        until("it works", || host.health()["connected"] == true);
        // Each connection loses the answer to its first statement of this size: claims and reports among them.
        proxy.lose_replies(250);
        many(database, 40);
        thread::sleep(Duration::from_secs(2));
        proxy.heal();
        let lost = proxy.lost.load(Ordering::SeqCst);
        assert!(lost >= 2, "{lost} answers were lost");
        // Well before the lease would end.
        let started = Instant::now();
        until("all have succeeded", || database.count("(select from outcome where state = 's')") == 40);
        assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
        assert!(starts_per_job(&host).values().all(|count| *count == 1));
    });
}

#[test]
fn results_finished_in_an_outage_are_sent_when_it_is_over() {
    on_each_server("outage", |database| {
        let proxy = Proxy::start(&database.url);
        let client =
            named_client(database, &proxy.url(), json!({"statementTimeoutMs": 1000, "connectTimeoutMs": 1000}));
        let host = Host::start_on(client, json!({"concurrency": 3, "leaseMs": 60000}), |_| {
            thread::sleep(Duration::from_millis(700));
            complete(json!("kept"))
        });
        many(database, 3);
        until("all run", || host.starts() == 3);
        proxy.swallow();
        until("the handlers are back", || host.health()["running"] == 0);
        thread::sleep(Duration::from_secs(1));
        proxy.heal();
        until("all have succeeded", || database.count("(select from outcome where state = 's')") == 3);
        assert_eq!(host.starts(), 3);
        assert!(host.events("abort").is_empty());
    });
}

#[test]
fn a_handler_is_stopped_when_no_renewal_was_accepted_by_the_lease_s_end() {
    on_each_server("no_renewal", |database| {
        let proxy = Proxy::start(&database.url);
        let client =
            named_client(database, &proxy.url(), json!({"statementTimeoutMs": 1000, "connectTimeoutMs": 1000}));
        let host = Host::start_on(client, json!({"leaseMs": 3000}), |job| {
            let patience = if job.get("attempt") == 1 { PATIENCE } else { Duration::ZERO };
            complete(json!(job.wait_for_abort(patience)))
        });
        many(database, 1);
        until("it runs", || host.starts() == 1);
        let claimed = host.time_of("job").unwrap();
        proxy.swallow();
        until("it was told", || host.events("abort").len() == 1);
        let told = host.time_of("abort").unwrap() - claimed;
        assert_eq!(host.events("abort")[0]["reason"], "lease_lost");
        assert!(told >= Duration::from_millis(2_500) && told < Duration::from_secs(5), "{told:?}");
        until("it says so", || host.health()["connected"] == false);
        proxy.heal();
        until("the job has ended", || database.count("(select from outcome where state = 's')") == 1);
    });
}

#[test]
fn a_server_that_turns_read_only_is_ridden_out() {
    on_each_server("read_only", |database| {
        let role = format!("{}_role", database.schema);
        database.sql(&format!("create role {role} login superuser"));
        let url = database.url.replace("postgres@", &format!("{role}@"));
        let host = Host::start_on(named_client(database, &url, json!({})), json!({"concurrency": 2}), |_| {
            thread::sleep(Duration::from_millis(300));
            complete(json!(1))
        });
        many(database, 2);
        until("both run", || host.starts() == 2);
        let end = format!(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = '{}'",
            database.schema
        );
        database.sql(&format!("alter role {role} set default_transaction_read_only = on"));
        database.rows(&end, &[]);
        many(database, 3);
        thread::sleep(Duration::from_millis(1_500));
        assert_eq!(database.count("outcome"), 0);
        // New sessions can write again; nobody restarts the worker.
        database.sql(&format!("alter role {role} reset default_transaction_read_only"));
        until("all have succeeded", || database.count("(select from outcome where state = 's')") == 5);
        assert_eq!(host.starts(), 5);
        drop(host);
        database.sql(&format!("drop role {role}"));
    });
}

#[test]
fn a_worker_that_never_reaches_its_database_says_so_once_and_stops_when_asked() {
    let client = Client::connect("postgresql://nobody@127.0.0.1:9/none?sslmode=disable", "{}").unwrap();
    let mut host = Host::start_on(client, json!({}), |_| complete(json!(1)));
    until("it says so", || !host.events("error").is_empty());
    thread::sleep(Duration::from_millis(700));
    assert_eq!(host.events("error").len(), 1);
    assert_eq!(host.events("error")[0]["code"], "connection_lost");
    assert_eq!(host.health()["connected"], false);
    let (took, last) = host.stop();
    assert_eq!(last, json!({"event": "stopped"}));
    assert!(took < Duration::from_secs(2), "{took:?}");
}
