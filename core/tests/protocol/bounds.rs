//! Everything has a bound: batches, messages, histories, payloads.

use crate::language::{claim, complete, enqueue, kinds, rpc, scaled, snapshot, try_rpc};
use crate::support;
use drayhorse_core::error::Kind;
use serde_json::json;

/// Names and batches of any size enqueue: the wake-up is one letter on a short channel.
#[test]
fn t26_no_name_or_batch_breaks_the_wake_up() {
    support::on_each_server("t26", |database| {
        let mut listener = database.another_connection();
        listener.batch("listen drayhorse_t26").expect("listen");
        let queue = "q".repeat(200);
        let emoji = "🚒".repeat(50);
        database.rows(
            "select sleep(1, 'drayhorse_t26', array[$1, 'default'], array[$2, 't'], 60000)",
            &[(&queue, drayhorse_core::store::Type::TEXT), (&emoji, drayhorse_core::store::Type::TEXT)],
        );
        enqueue(database.connection(), json!({"type": emoji, "queue": queue, "payload": "x".repeat(9 * 1024)}));
        let batch: Vec<_> = (0..5_000).map(|n| json!({"type": "t", "payload": n})).collect();
        rpc(database.connection(), "enqueue", json!(batch));
        let told = listener.notifications(std::time::Duration::from_secs(10)).expect("notifications");
        assert!(!told.is_empty());
        assert!(told.iter().all(|n| n.payload == "w"));
        let refused =
            try_rpc(database.connection(), "enqueue", &json!({"type": "🚒".repeat(2_000)})).expect_err("too long");
        assert_eq!(refused.kind(), Kind::InvalidArgument);
    });
}

/// Lists load no payloads, however large: the answer of a page stays small.
#[test]
fn t25_lists_do_not_load_payloads() {
    support::on_each_server("t25", |database| {
        assert!(database.try_sql("update settings set max_payload_bytes = 16777217").is_err(), "16 MiB is the most");
        database.sql("update settings set max_payload_bytes = 16777216");
        let large = "p".repeat(scaled(1 << 20, 10 << 20));
        for _ in 0..20 {
            enqueue(database.connection(), json!({"payload": large, "maxAttempts": 1}));
        }
        let page = rpc(database.connection(), "rpc_list", json!({"page": {"limit": 50}}));
        assert_eq!(page["jobs"].as_array().expect("jobs").len(), 20);
        assert!(page.to_string().len() < 100_000, "a page of 20 jobs is {} bytes", page.to_string().len());
        let one = rpc(database.connection(), "rpc_list", json!({"page": {"limit": 1}, "payload": true}));
        assert_eq!(one["jobs"][0]["payload"].as_str().expect("text").len(), large.len());
        let over = try_rpc(database.connection(), "enqueue", &json!({"type": "t", "payload": "p".repeat(16 << 20)}))
            .expect_err("too large");
        assert_eq!((over.kind(), over.details()["limit"].clone()), (Kind::PayloadTooLarge, json!(16_777_216)));
    });
}

/// Due jobs, ended leases and old outcomes are worked off in batches that each commit, under a short statement timeout.
#[test]
fn t33_maintenance_goes_in_bounded_batches() {
    support::on_each_server("t33", |database| {
        let many = scaled(3_000, 100_000);
        for _ in 0..many / 1000 {
            let delayed: Vec<_> = (0..1000).map(|n| json!({"type": "t", "payload": n, "delayMs": 1000})).collect();
            rpc(database.connection(), "enqueue", json!(delayed));
        }
        database.advance_clock(1_001);
        database.sql("set statement_timeout = '2s'");
        let mut ticks = 0;
        loop {
            let row = &database.rows("select promoted, more from tick(500)", &[])[0];
            let (promoted, more): (i32, bool) = (row.get(0), row.get(1));
            assert!(promoted <= 500);
            ticks += 1;
            if !more {
                break;
            }
        }
        assert!(ticks >= many / 500);
        assert_eq!(database.count("(select from runtime where state = 'r')"), many as i64);

        let mut claimed = 0;
        while claimed < many {
            claimed += claim(database.connection(), 1000, 200).len();
        }
        database.advance_clock(201);
        assert_eq!(database.text("recover(500)").as_deref(), Some("500"));
        while database.text("recover(500)").as_deref() != Some("0") {}
        // Without a policy an ended lease makes the job ready at once.
        assert_eq!(database.count("(select from runtime where state = 'r' and attempt = 1)"), many as i64);

        loop {
            let held = claim(database.connection(), 1000, 600_000);
            if held.is_empty() {
                break;
            }
            database.sql(
                "select complete(array_agg(job_id order by job_id), array_agg(claim_id order by job_id), array_agg(claim_no order by job_id), \
                 array_agg(null::text)) from runtime where state = 'a'",
            );
        }
        database.advance_clock(8 * 86_400_000);
        assert_eq!(database.text("prune(700)").as_deref(), Some("700"));
        while database.text("prune(700)").as_deref() != Some("0") {}
        for table in ["job", "outcome", "attempt", "event", "error_text"] {
            assert_eq!(database.count(table), 0, "{table}");
        }
    });
}

/// Two ages: successes go after 7 days, other ends after 30, evidence together with its outcome.
#[test]
fn retention_keeps_each_kind_its_time() {
    support::on_each_server("retention", |database| {
        let done = enqueue(database.connection(), json!({}));
        let held = claim(database.connection(), 1, 30_000).remove(0);
        complete(database.connection(), &held).expect("complete");
        let failed = enqueue(database.connection(), json!({"maxAttempts": 1}));
        let held = claim(database.connection(), 1, 30_000).remove(0);
        crate::language::fail(database.connection(), &held, 0).expect("fail");
        let waiting = enqueue(database.connection(), json!({}));
        database.advance_clock(7 * 86_400_000 - 60_000);
        assert_eq!(database.text("prune(10)").as_deref(), Some("0"));
        database.advance_clock(120_000);
        assert_eq!(database.text("prune(10)").as_deref(), Some("1"));
        assert!(snapshot(database.connection(), &done).is_null());
        assert_eq!(kinds(database.connection(), &failed), ["enqueued", "claimed", "failed"]);
        database.advance_clock(23 * 86_400_000);
        assert_eq!(database.text("prune(10)").as_deref(), Some("1"));
        assert!(snapshot(database.connection(), &failed).is_null());
        assert_eq!(snapshot(database.connection(), &waiting)["state"], "ready");
    });
}

/// A job that fails a hundred times with a large stack keeps the first and last ten texts within 1 MiB.
#[test]
fn t45_error_history_is_capped() {
    support::on_each_server("t45", |database| {
        let id =
            enqueue(database.connection(), json!({"maxAttempts": 100, "retryPolicy": {"type": "fixed", "delayMs": 0}}));
        for attempt in 1..=100 {
            let held = claim(database.connection(), 1, 30_000).remove(0);
            let error = json!({"name": "E", "message": format!("attempt {attempt}"), "stack": "s".repeat(50 * 1024)});
            rpc(database.connection(), "rpc_fail", json!({"claim": crate::language::token(&held), "error": error}));
        }
        assert_eq!(snapshot(database.connection(), &id)["state"], "failed");
        assert_eq!(database.count("attempt"), 100, "every attempt keeps its record");
        let kept: Vec<i16> =
            database.rows("select attempt from error_text order by attempt", &[]).iter().map(|r| r.get(0)).collect();
        assert!(kept.len() <= 20, "{kept:?}");
        assert!(kept.contains(&1) && kept.contains(&100), "{kept:?}");
        let bytes: i64 = database.rows("select sum(octet_length(error::text))::bigint from error_text", &[])[0].get(0);
        assert!(bytes <= 1 << 20, "{bytes} bytes");
    });
}

/// Duplicate keys, key order, and keys that look like numbers: one documented rule.
#[test]
fn t24_one_canonical_form() {
    support::on_each_server("t24", |database| {
        let session = database.connection();
        let raw = |session: &mut drayhorse_core::store::Connection, payload: &str, key: &str| {
            let text = format!(r#"{{"type":"t","payload":{payload},"idempotencyKey":{{"key":"{key}"}}}}"#);
            session.query_text("select enqueue($1::text::jsonb)", &[(&text, drayhorse_core::store::Type::TEXT)]).map(
                |answer| {
                    serde_json::from_str::<serde_json::Value>(&answer.expect("an answer")).expect("JSON")[0].clone()
                },
            )
        };
        let first = raw(session, r#"{"b":1,"a":2}"#, "k").expect("first");
        for same in [r#"{"a":2,"b":1}"#, r#"{"a":2.0,"b":1}"#, r#"{"a":9,"b":1,"a":2}"#] {
            let again = raw(session, same, "k").expect(same);
            assert_eq!((again["id"].clone(), again["replayed"].clone()), (first["id"].clone(), json!(true)), "{same}");
        }
        assert_eq!(raw(session, r#"{"a":3,"b":1}"#, "k").expect_err("another").kind(), Kind::IdempotencyConflict);
        let odd = raw(session, r#"{"1":"x","0":"y","":1}"#, "odd").expect("odd keys");
        let stored = snapshot(session, odd["id"].as_str().expect("an id"))["payload"].clone();
        assert_eq!(stored, json!({"1": "x", "0": "y", "": 1}));
        assert_eq!(raw(session, &stored.to_string(), "odd").expect("read back")["replayed"], true);
    });
}

/// `null` is a value of payloads only: an option that is null is refused by its name, and nothing is written.
#[test]
fn null_is_no_option() {
    support::on_each_server("nulloption", |database| {
        let options = [
            "id",
            "type",
            "queue",
            "version",
            "priority",
            "runAt",
            "delayMs",
            "deadline",
            "deadlineMs",
            "timeoutMs",
            "maxAttempts",
            "retryPolicy",
            "tags",
            "idempotencyKey",
            "endpoint",
            "after",
            "synthetic",
            "runId",
        ];
        for option in options {
            let refused =
                try_rpc(database.connection(), "enqueue", &json!({"type": "t", option: null})).expect_err(option);
            assert!([Kind::InvalidArgument, Kind::PolicyInvalid].contains(&refused.kind()), "{option}: {refused}");
            assert_eq!(refused.details()["field"], option);
        }
        assert_eq!(database.count("job"), 0);
    });
}
