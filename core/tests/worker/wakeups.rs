//! How soon a worker hears of work: wake-ups, polling without them, due times, and what a sleeping worker costs.

use super::host::{Host, complete, fail};
use crate::support::{Database, call, eventually, on_each_server};
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

fn until(what: &str, condition: impl FnMut() -> bool) {
    eventually(what, PATIENCE, condition);
}

fn enqueue(database: &Database, kind: &str, options: Value) -> Value {
    call(&database.client(), "enqueue", json!({"type": kind, "options": options}))["id"].clone()
}

/// The worker has announced that it sleeps.
fn until_asleep(database: &mut Database, host: &Host) {
    until("it listens", || host.health()["listening"] == true);
    until("it sleeps", || database.count("sleeper") == 1);
}

#[test]
fn a_sleeping_worker_is_woken_also_by_the_first_job_of_a_new_lane() {
    on_each_server("woken", |database| {
        let options =
            json!({"pollMs": 60000, "queues": ["default", "other"], "handlers": [{"type": "t"}, {"type": "u"}]});
        let host = Host::start(database, options, |_| complete(json!(1)));
        let mut slowest = Duration::ZERO;
        for (round, (kind, options)) in [
            ("t", json!({})),
            ("t", json!({})),
            ("u", json!({"priority": 7})),
            ("u", json!({"queue": "other"})),
            ("t", json!({"endpoint": "api"})),
            ("t", json!({"endpoint": "api"})),
        ]
        .into_iter()
        .enumerate()
        {
            until_asleep(database, &host);
            let started = Instant::now();
            enqueue(database, kind, options);
            until("it has started", || host.starts() == round + 1);
            slowest = slowest.max(started.elapsed());
        }
        // Polling would take a minute.
        assert!(slowest < Duration::from_secs(3), "{slowest:?}");
    });
}

#[test]
fn nothing_enqueued_around_the_moment_of_falling_asleep_is_missed() {
    on_each_server("asleep", |database| {
        let host = Host::start(database, json!({"pollMs": 60000, "concurrency": 4}), |_| complete(json!(1)));
        until("it listens", || host.health()["listening"] == true);
        let client = database.client();
        let started = Instant::now();
        for round in 0..150_u64 {
            call(&client, "enqueue", json!({"type": "t"}));
            thread::sleep(Duration::from_micros(200 * (round % 60)));
        }
        until("all have started", || host.starts() == 150);
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    });
}

#[test]
fn an_idle_worker_asks_little() {
    on_each_server("idle", |database| {
        let host = Host::start(database, json!({"pollMs": 60000}), |_| complete(json!(1)));
        until_asleep(database, &host);
        thread::sleep(Duration::from_millis(300));
        let calls = |database: &mut Database| {
            let text = "select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::text from pg_stat_all_tables where schemaname = current_schema";
            database.text(text)
        };
        let before = calls(database);
        thread::sleep(Duration::from_millis(2_500));
        assert_eq!(calls(database), before, "an idle worker writes nothing");
        drop(host);
        assert_eq!(database.count("sleeper"), 0);
    });
}

#[test]
fn a_busy_worker_takes_its_announcement_back() {
    on_each_server("busy", |database| {
        let host = Host::start(database, json!({"pollMs": 60000, "concurrency": 2}), |_| {
            thread::sleep(Duration::from_millis(800));
            complete(json!(1))
        });
        until_asleep(database, &host);
        for _ in 0..2 {
            enqueue(database, "t", json!({}));
        }
        until("both run", || host.starts() == 2);
        until("it is awake", || database.count("sleeper") == 0);
        until("they have ended", || host.health()["running"] == 0);
        until_asleep(database, &host);
    });
}

#[test]
fn due_jobs_start_soon_after_their_time_and_never_before() {
    on_each_server("due", |database| {
        let host = Host::start(database, json!({"pollMs": 60000}), |job| {
            if job.get("attempt") == 1 { fail("again") } else { complete(json!(1)) }
        });
        until_asleep(database, &host);
        for delay in [150, 700, 1_300] {
            enqueue(database, "t", json!({"delayMs": delay, "retryPolicy": {"type": "fixed", "delayMs": 400}}));
        }
        until("all have succeeded", || database.count("outcome") == 3);
        // When each became ready, against when it was due: the first attempts by run_at, the retries by their delay.
        let late = database.rows(
            "select extract(epoch from o.claimed_at - a.run_at)::float8 * 1000 from outcome o join attempt a using (job_id)
             union all select extract(epoch from a.claimed_at - j.run_at)::float8 * 1000 from attempt a join job j on j.id = a.job_id",
            &[],
        );
        assert_eq!(late.len(), 6);
        for row in late {
            let ms: f64 = row.get(0);
            assert!((0.0..2_000.0).contains(&ms), "{ms}");
        }
    });
}

#[test]
fn a_listener_that_is_ended_comes_back() {
    on_each_server("listener", |database| {
        let host = Host::start(database, json!({"pollMs": 60000}), |_| complete(json!(1)));
        until_asleep(database, &host);
        let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity a
            where a.query like 'listen %' and a.query like '%' || (select channel from worker limit 1) || '%'";
        assert_eq!(database.rows(end, &[])[0].get::<_, i64>(0), 1);
        until("it was noticed", || host.health()["listening"] == false);
        // Without wake-ups it polls, a tenth of a second at first.
        let started = Instant::now();
        enqueue(database, "t", json!({}));
        until("it has started", || host.starts() == 1);
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        until("it listens again", || host.health()["listening"] == true);
        until_asleep(database, &host);
        enqueue(database, "t", json!({}));
        until("the second has started", || host.starts() == 2);
    });
}
