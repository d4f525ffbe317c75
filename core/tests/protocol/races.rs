//! Two sessions at one row: recovery against reports, one key from fifty connections, one slot at a time.

use crate::language::{claim, complete, enqueue, fail, kinds, rpc, scaled, snapshot, try_rpc};
use crate::support::{self, Database};
use drayhorse_core::error::Kind;
use serde_json::json;
use std::sync::{Arc, Barrier};

/// A recovery that read its list before, and a report: whoever commits second changes nothing.
#[test]
fn t01_stale_recovery_overwrites_nothing() {
    support::on_each_server("t01", |database| {
        let rounds = scaled(60, 1000);
        let mut reporter = database.another_connection();
        let mut recoverer = database.another_connection();
        for round in 0..rounds {
            let id = enqueue(&mut reporter, json!({"retryPolicy": {"type": "fixed", "delayMs": 3_600_000}}));
            let held = claim(&mut reporter, 1, 100).remove(0);
            database.advance_clock(101);
            let barrier = Barrier::new(2);
            let answer = std::thread::scope(|scope| {
                scope.spawn(|| {
                    barrier.wait();
                    recoverer.query_text("select recover(10)::text", &[]).expect("recover");
                });
                barrier.wait();
                complete(&mut reporter, &held)
            });
            let state = snapshot(&mut reporter, &id)["state"].clone();
            match answer {
                Ok(_) => assert_eq!(state, "succeeded", "round {round}"),
                Err(e) => {
                    assert_eq!(e.kind(), Kind::LeaseLost, "round {round}");
                    assert_eq!(state, "scheduled", "round {round}");
                }
            }
            let timeline = kinds(&mut reporter, &id);
            let ends =
                timeline.iter().filter(|k| ["succeeded", "failed", "lease_expired"].contains(&k.as_str())).count();
            assert_eq!(ends, 1, "round {round}: {timeline:?}");
        }
    });
}

/// The list is old when it is used: the lock waits for a new claim, and the row's own columns are tested again.
#[test]
fn t01_recovery_retests_a_row_that_was_claimed_again() {
    support::on_each_server("t01b", |database| {
        let mut first = database.another_connection();
        let mut second = database.another_connection();
        let id = enqueue(&mut first, json!({}));
        let old = claim(&mut first, 1, 100).remove(0);
        database.advance_clock(101);
        // The new claim is made in a transaction that is still open while recovery looks.
        second.batch("begin").expect("begin");
        rpc(&mut second, "rpc_release", json!({"claim": {"id": old["id"], "fence": old["fence"]}}));
        let again = claim(&mut second, 1, 30_000).remove(0);
        assert_eq!(first.query_text("select recover(10)::text", &[]).expect("recover").as_deref(), Some("0"));
        second.batch("commit").expect("commit");
        assert_eq!(first.query_text("select recover(10)::text", &[]).expect("recover").as_deref(), Some("0"));
        let shown = snapshot(&mut first, &id);
        assert_eq!((shown["state"].clone(), shown["attempt"].clone()), (json!("active"), json!(1)));
        complete(&mut second, &again).expect("the new claim is current");
        assert_eq!(complete(&mut first, &old).expect_err("lost").kind(), Kind::LeaseLost);
    });
}

/// An old attempt that reports after the last one failed cannot make the job claimable again.
#[test]
fn t05_a_late_failure_revives_nothing() {
    support::on_each_server("t05", |database| {
        let mut session = database.another_connection();
        let id = enqueue(&mut session, json!({"maxAttempts": 3, "retryPolicy": {"type": "fixed", "delayMs": 0}}));
        let one = claim(&mut session, 1, 30_000).remove(0);
        fail(&mut session, &one, 0).expect("fail");
        let two = claim(&mut session, 1, 100).remove(0);
        database.advance_clock(101);
        let three = claim(&mut session, 1, 30_000).remove(0);
        assert_eq!(three["attempt"], 3);
        assert_eq!(fail(&mut session, &three, 0).expect("fail")["state"], "failed");
        database.advance_clock(1_000);
        assert_eq!(fail(&mut session, &two, 0).expect_err("lost").kind(), Kind::LeaseLost);
        let shown = snapshot(&mut session, &id);
        assert_eq!((shown["state"].clone(), shown["attempt"].clone()), (json!("failed"), json!(3)));
        assert!(claim(&mut session, 1, 30_000).is_empty());
    });
}

/// A hundred jobs of two attempts through one slot: two hundred starts, and each job's attempts are its claims.
#[test]
fn t10_attempts_are_the_starts() {
    support::on_each_server("t10", |database| {
        let mut session = database.another_connection();
        for _ in 0..100 {
            enqueue(&mut session, json!({"maxAttempts": 2, "retryPolicy": {"type": "fixed", "delayMs": 0}}));
        }
        let mut starts = 0;
        while let Some(held) = claim(&mut session, 1, 30_000).pop() {
            starts += 1;
            fail(&mut session, &held, 0).expect("fail");
        }
        assert_eq!(starts, 200);
        let uneven =
            database.count("(select job_id from attempt group by job_id having count(*) <> 2 or max(attempt) <> 2)");
        assert_eq!(uneven, 0);
        assert_eq!(database.count("(select from outcome where state = 'f' and attempt = 2)"), 100);
    });
}

/// A claim that is sent again while its first send is still at work gets the same rows, and no more than were asked for.
#[test]
fn a_claim_sent_twice_takes_its_rows_once() {
    support::on_each_server("twice", |database| {
        let mut first = database.another_connection();
        let mut second = database.another_connection();
        rpc(&mut first, "enqueue", json!(vec![json!({"type": "t"}); 5]));
        let asked = json!({"handlers": [{"type": "t"}], "limit": 2, "claimId": "01890a5d-ac96-474b-bcce-b302099a8057"});
        first.batch("begin").expect("begin");
        let rows = rpc(&mut first, "rpc_claim", asked.clone());
        let again = std::thread::scope(|scope| {
            let again = scope.spawn(|| rpc(&mut second, "rpc_claim", asked.clone()));
            std::thread::sleep(std::time::Duration::from_millis(300));
            first.batch("commit").expect("commit");
            again.join().expect("the second send")
        });
        assert_eq!(rows.as_array().map(Vec::len), Some(2));
        assert_eq!(again, rows);
        assert_eq!(database.count("(select from runtime where state = 'a')"), 2);
    });
}

/// Fifty connections race for one key, half of them roll back: one live job per round if anyone committed.
#[test]
fn t28_a_key_names_one_job_however_many_race() {
    support::on_each_server("t28", |database| {
        let racers = scaled(16, 50);
        let rounds = scaled(12, 1000);
        let database: &Database = database;
        let barrier = Arc::new(Barrier::new(racers));
        let answers: Vec<Vec<Option<String>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..racers)
                .map(|racer| {
                    let barrier = Arc::clone(&barrier);
                    let mut session = database.another_connection();
                    scope.spawn(move || {
                        (0..rounds)
                            .map(|round| {
                                let rolls_back = racer % 2 == 1 && (racer + round) % 3 != 0;
                                barrier.wait();
                                session.batch("begin").expect("begin");
                                let job = json!({"type": "t", "payload": {"round": round}, "idempotencyKey": {"key": format!("k{round}")}});
                                let id = try_rpc(&mut session, "enqueue", &job).expect("no loser gets an error")[0]["id"].clone();
                                if racer % 2 == 1 {
                                    std::thread::sleep(std::time::Duration::from_millis(2));
                                }
                                session.batch(if rolls_back { "rollback" } else { "commit" }).expect("end");
                                (!rolls_back).then(|| id.as_str().expect("an id").to_owned())
                            })
                            .collect()
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().expect("a racer")).collect()
        });
        let mut session = database.another_connection();
        for round in 0..rounds {
            let committed: Vec<&String> = answers.iter().filter_map(|a| a[round].as_ref()).collect();
            assert!(!committed.is_empty());
            assert!(committed.iter().all(|id| *id == committed[0]), "round {round}: {committed:?}");
            assert_eq!(snapshot(&mut session, committed[0])["state"], "ready", "round {round}");
        }
        let jobs = session.query("select count(*) from job", &[]).expect("count")[0].get::<_, i64>(0);
        assert_eq!(jobs, rounds as i64);
    });
}

/// A hundred claimers at once: every job is claimed once, and no fence is given twice.
#[test]
fn concurrent_claims_share_nothing() {
    support::on_each_server("share", |database| {
        let jobs = 300;
        let mut session = database.another_connection();
        let batch: Vec<_> = (0..jobs).map(|n| json!({"type": "t", "payload": n})).collect();
        rpc(&mut session, "enqueue", json!(batch));
        let database: &Database = database;
        let mut seen: Vec<(String, String)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    let mut session = database.another_connection();
                    scope.spawn(move || {
                        let mut mine = Vec::new();
                        loop {
                            let got = claim(&mut session, 7, 30_000);
                            if got.is_empty() {
                                return mine;
                            }
                            assert!(got.len() <= 7);
                            for held in got {
                                mine.push((held["id"].to_string(), held["fence"].to_string()));
                                complete(&mut session, &held).expect("complete");
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().flat_map(|t| t.join().expect("a claimer")).collect()
        });
        assert_eq!(seen.len(), jobs);
        seen.sort();
        seen.dedup_by(|a, b| a.0 == b.0);
        assert_eq!(seen.len(), jobs);
        seen.sort_by(|a, b| a.1.cmp(&b.1));
        seen.dedup_by(|a, b| a.1 == b.1);
        assert_eq!(seen.len(), jobs);
    });
}

/// Every worker offers the tick; while one does it, the others find nothing to do and wait for nothing.
#[test]
fn one_tick_at_a_time() {
    support::on_each_server("tick", |database| {
        let mut first = database.another_connection();
        let mut second = database.another_connection();
        rpc(&mut first, "enqueue", json!([{"type": "t", "delayMs": 10}, {"type": "t", "delayMs": 10}]));
        database.advance_clock(11);
        let tick = "select promoted::text from tick(1)";
        first.batch("begin").expect("begin");
        assert_eq!(first.query_text(tick, &[]).expect("tick").as_deref(), Some("1"));
        assert_eq!(second.query_text(tick, &[]).expect("tick").as_deref(), Some("0"));
        first.batch("commit").expect("commit");
        assert_eq!(second.query_text(tick, &[]).expect("tick").as_deref(), Some("1"));
    });
}
