//! Reports under every claim, current or not: what is answered, what is recorded, and that it is kept for good.

use crate::language::{claim, complete, enqueue, fail, kinds, rpc, snapshot, token, try_rpc};
use crate::support;
use drayhorse_core::error::Kind;
use serde_json::{Value, json};

/// A result over the default limit.
fn large() -> String {
    "x".repeat(1_100_000)
}

fn complete_with(database: &mut support::Database, held: &Value, result: &str) -> Result<Value, Kind> {
    try_rpc(database.connection(), "rpc_complete", &json!({"claim": token(held), "result": result}))
        .map_err(|e| e.kind())
}

/// The size of a result says nothing about whose claim it is.
#[test]
fn a_result_too_large_under_an_old_fence_is_lost() {
    support::on_each_server("largestale", |database| {
        let id = enqueue(database.connection(), json!({"retryPolicy": {"type": "fixed", "delayMs": 0}}));
        let old = claim(database.connection(), 1, 100).remove(0);
        database.advance_clock(101);
        let new = claim(database.connection(), 1, 30_000).remove(0);
        assert_eq!(complete_with(database, &old, &large()), Err(Kind::LeaseLost));
        assert_eq!(snapshot(database.connection(), &id)["state"], "active");
        let refused = json!({"state": "failed", "reason": "output"});
        assert_eq!(complete_with(database, &new, &large()), Ok(refused.clone()));
        assert_eq!(complete_with(database, &new, &large()), Ok(refused), "the same report again");
        assert_eq!(complete_with(database, &new, "small"), Err(Kind::LeaseLost));
        let shown = snapshot(database.connection(), &id);
        assert_eq!((&shown["reason"], &shown["uncertain"]), (&json!("output"), &json!(true)));
    });
}

/// After a cancel request an output failure is a failure like any other, and is answered as what it came to.
#[test]
fn a_result_too_large_after_a_cancel_request_is_canceled() {
    support::on_each_server("largecancel", |database| {
        let id = enqueue(database.connection(), json!({}));
        let held = claim(database.connection(), 1, 30_000).remove(0);
        rpc(database.connection(), "rpc_cancel", json!({"id": id}));
        let canceled = json!({"state": "canceled", "reason": "canceled"});
        assert_eq!(complete_with(database, &held, &large()), Ok(canceled));
        assert_eq!(snapshot(database.connection(), &id)["state"], "canceled");
    });
}

/// Some callers write every option: null is what was not said.
#[test]
fn a_failure_that_leaves_retryable_open_is_retried() {
    support::on_each_server("nulls", |database| {
        enqueue(database.connection(), json!({}));
        let held = claim(database.connection(), 1, 30_000).remove(0);
        let args = json!({"claim": token(&held), "retryable": null, "uncertain": null});
        assert_eq!(rpc(database.connection(), "rpc_fail", args)["state"], "scheduled");
    });
}

/// A claim that was handed back before any handler saw it has started nothing, also where a cancel ends the job then.
#[test]
fn what_was_released_before_it_started_did_not_start() {
    support::on_each_server("unstarted", |database| {
        for (started, count) in [(false, 1), (true, 2)] {
            let id = enqueue(database.connection(), json!({}));
            let held = claim(database.connection(), 1, 30_000).remove(0);
            rpc(database.connection(), "rpc_cancel", json!({"id": id}));
            let cancel_at = rpc(database.connection(), "rpc_timeline", json!({"id": id}))[2]["at"].clone();
            database.advance_clock(1_000);
            database.sql(&format!(
                "select release(array[job_id], array[claim_id], array[claim_no], 'test', {started}) from runtime where state = 'a'"
            ));
            assert_eq!(complete(database.connection(), &held).expect_err("lost").kind(), Kind::LeaseLost);
            let shown = snapshot(database.connection(), &id);
            assert_eq!(
                (&shown["state"], &shown["attempt"], &shown["uncertain"]),
                (&json!("canceled"), &json!(0), &json!(started))
            );
            let timeline = rpc(database.connection(), "rpc_timeline", json!({"id": id}));
            let kinds: Vec<&str> =
                timeline.as_array().expect("entries").iter().filter_map(|e| e["kind"].as_str()).collect();
            assert_eq!(kinds, ["enqueued", "claimed", "cancel_requested", "released", "canceled"]);
            assert_eq!(timeline[4]["started"], started);
            // The end has a time of its own, a second after the request.
            assert!(
                timeline[4]["at"].as_str() > cancel_at.as_str() && timeline[4]["at"] == shown["finishedAt"],
                "{timeline:#}"
            );
            assert_eq!(rpc(database.connection(), "rpc_outcome", json!({"id": id}))["started"], started);
            assert_eq!(database.count("outcome"), count);
        }
    });
}

/// Several limits at one moment: deadline before timeout before lease.
#[test]
fn ties_are_decided_in_one_order() {
    support::on_each_server("ties", |database| {
        for (change, cause) in [
            ("deadline = claimed_at + interval '1 second', timeout_ms = 1000", "deadline"),
            ("deadline = claimed_at + interval '1 second'", "deadline"),
            ("timeout_ms = 1000", "timeout"),
            ("timeout_ms = 1001", "lease"),
        ] {
            let id = enqueue(database.connection(), json!({}));
            claim(database.connection(), 1, 1_000);
            database.sql(&format!("update runtime set {change} where state = 'a'"));
            database.advance_clock(2_001);
            assert_eq!(database.text("recover(10)").as_deref(), Some("1"));
            assert_eq!(snapshot(database.connection(), &id)["lastError"]["cause"], cause, "{change}");
            database.sql("select cancel(job_id) from runtime");
        }
    });
}

/// Enqueue and settlement survive a crash of the database even where a role has given that up; only a claim may not.
#[test]
fn enqueue_and_settlement_commit_synchronously() {
    support::on_each_server("synchronous", |database| {
        database.sql("set synchronous_commit = off");
        let commits = |database: &mut support::Database, what: &str, statement: &str| {
            database.sql("begin");
            database.sql(statement);
            let setting = database.text("current_setting('synchronous_commit')");
            database.sql("commit");
            assert_eq!(database.text("current_setting('synchronous_commit')").as_deref(), Some("off"), "{what}");
            setting.expect("a setting")
        };
        let claiming =
            "select claim_lanes(null, gen_random_uuid(), array[id], array[0::bigint], array[1], 1, 30000, true) \
            from lane where type = 't' limit 1"
                .to_owned();
        let held = "array[job_id], array[claim_id], array[claim_no]";
        let failing = "select fail(jsonb_build_array(jsonb_build_object('id', job_id, 'claim', claim_id, 'number', claim_no, 'delayMs', 0)))";
        for (what, statement, setting) in [
            ("enqueue", r#"select enqueue('[{"type":"t"},{"type":"t"}]')"#.to_owned(), "on"),
            ("claim", claiming.clone(), "off"),
            ("heartbeat", format!("select heartbeat({held}, 30000, true) from runtime where state = 'a'"), "off"),
            ("fail", format!("{failing} from runtime where state = 'a'"), "on"),
            ("claim", claiming.clone(), "off"),
            ("release", format!("select release({held}, 'test') from runtime where state = 'a'"), "on"),
            ("claim", claiming, "off"),
            ("complete", format!("select complete({held}, array[null]) from runtime where state = 'a'"), "on"),
            ("cancel", "select cancel(job_id) from runtime".to_owned(), "on"),
        ] {
            assert_eq!(commits(database, what, &statement), setting, "{what}");
        }
        assert_eq!(database.count("outcome"), 2);
        // One transaction that claims and settles is kept, too.
        let both = r#"select enqueue('{"type":"t","maxAttempts":1}'); "#.to_owned()
            + &format!(
                "select set_config('synchronous_commit', 'off', true); select * from claim(array['default'], '[{{\"type\":\"t\"}}]'); \
               {failing} from runtime where state = 'a'"
            );
        assert_eq!(commits(database, "all in one", &both), "on");
    });
}

/// A second send of the same job, by whoever makes the id: one job, whatever became of it.
#[test]
fn an_id_names_one_job() {
    support::on_each_server("ids", |database| {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let job = json!({"id": id, "type": "t", "payload": {"a": [1, 2]}});
        let first = rpc(database.connection(), "enqueue", job.clone());
        assert_eq!(first, json!([{"id": id, "replayed": false}]));
        let again = json!([{"id": id, "replayed": true}]);
        assert_eq!(rpc(database.connection(), "enqueue", job.clone()), again);
        let held = claim(database.connection(), 1, 30_000).remove(0);
        assert_eq!(rpc(database.connection(), "enqueue", job.clone()), again);
        complete(database.connection(), &held).expect("complete");
        assert_eq!(rpc(database.connection(), "enqueue", job), again);
        let other = json!({"id": id, "type": "t", "payload": {"a": [2, 1]}});
        assert_eq!(
            try_rpc(database.connection(), "enqueue", &other).expect_err("another").kind(),
            Kind::InvalidArgument
        );
        assert_eq!(database.count("job"), 1);
    });
}

/// The key stands for its whole time, also when retention has removed its job.
#[test]
fn a_key_outlives_its_job() {
    support::on_each_server("outlives", |database| {
        let keyed = |payload: Value| json!({"type": "t", "payload": payload, "idempotencyKey": {"key": "k", "ttlMs": 31_536_000_000_u64}});
        let first = rpc(database.connection(), "enqueue", keyed(json!({"a": 1, "b": 2})))[0]["id"].clone();
        let held = claim(database.connection(), 1, 30_000).remove(0);
        complete(database.connection(), &held).expect("complete");
        database.advance_clock(8 * 86_400_000);
        assert_eq!(database.text("prune(10)").as_deref(), Some("1"));
        let again = rpc(database.connection(), "enqueue", keyed(json!({"b": 2.0, "a": 1})));
        assert_eq!(again, json!([{"id": first, "replayed": true}]));
        for other in [json!({"a": 1}), json!(null), json!({"a": 1, "b": 3})] {
            let refused = try_rpc(database.connection(), "enqueue", &keyed(other)).expect_err("another payload");
            assert_eq!(refused.details()["conflictingFields"], json!(["payload"]));
        }
        assert_eq!(database.count("job"), 0);
    });
}

/// A zone can carry the first and the last day of the calendar out of it: what is kept can be read by every SDK.
#[test]
fn times_stay_within_the_years_that_everyone_can_read() {
    support::on_each_server("calendar", |database| {
        for (given, shown) in [
            ("9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59.999999Z"),
            ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.999999Z"),
            ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00.000000Z"),
            ("2026-01-31T12:00:00+01:00", "2026-01-31T11:00:00.000000Z"),
        ] {
            let id = enqueue(database.connection(), json!({"runAt": given}));
            assert_eq!(snapshot(database.connection(), &id)["runAt"], shown, "{given}");
        }
    });
}

/// Under a job's whole life nothing is told but by the names of the closed list.
#[test]
fn the_timeline_says_nothing_but_its_list() {
    support::on_each_server("closed", |database| {
        let id = enqueue(database.connection(), json!({"maxAttempts": 2, "delayMs": 10, "timeoutMs": 1000}));
        database.advance_clock(11);
        let first = claim(database.connection(), 1, 30_000).remove(0);
        let put = json!({"claim": token(&first), "name": "a", "value": 1});
        rpc(database.connection(), "rpc_checkpoint_put", put);
        rpc(database.connection(), "rpc_release", json!({"claim": token(&first)}));
        claim(database.connection(), 1, 30_000);
        database.advance_clock(2_001);
        assert_eq!(database.text("recover(10)").as_deref(), Some("1"));
        database.advance_clock(60_000);
        let last = claim(database.connection(), 1, 30_000).remove(0);
        fail(database.connection(), &last, 0).expect("fail");
        let request = json!({"id": id, "actor": "a", "reason": "r", "requestId": "q"});
        rpc(database.connection(), "rpc_redrive", request);
        assert_eq!(
            kinds(database.connection(), &id),
            [
                "enqueued",
                "promoted",
                "claimed",
                "checkpointed",
                "released",
                "claimed",
                "timed_out",
                "promoted",
                "claimed",
                "failed",
                "redriven"
            ]
        );
    });
}

/// What happened in one moment is told in the order in which it led to one another, and once.
#[test]
fn the_timeline_is_in_the_order_of_what_happened() {
    support::on_each_server("order", |database| {
        let zero = json!({"type": "fixed", "delayMs": 0});
        let first = enqueue(database.connection(), json!({"retryPolicy": zero, "maxAttempts": 3}));
        let after = |on: &str| json!({"type": "u", "after": {"jobId": first, "on": on}});
        let follower = enqueue(database.connection(), after("succeeded"));
        let fallback = enqueue(database.connection(), after("failed"));
        let held = claim(database.connection(), 1, 30_000).remove(0);
        let args = json!({"claim": token(&held), "error": {"name": "E", "message": "x"}});
        assert_eq!(rpc(database.connection(), "rpc_fail", args)["state"], "ready");
        claim(database.connection(), 1, 1_000);
        database.advance_clock(1_001);
        assert_eq!(database.text("recover(10)").as_deref(), Some("1"));
        let held = claim(database.connection(), 1, 30_000).remove(0);
        complete(database.connection(), &held).expect("complete");
        let told = [
            "enqueued",
            "claimed",
            "retry_scheduled",
            "promoted",
            "claimed",
            "lease_expired",
            "promoted",
            "claimed",
            "succeeded",
        ];
        assert_eq!(kinds(database.connection(), &first), told);
        assert_eq!(kinds(database.connection(), &fallback), ["enqueued", "skipped"]);
        let skipped = rpc(database.connection(), "rpc_timeline", json!({"id": fallback}))[1].clone();
        assert_eq!((&skipped["afterId"], &skipped["state"]), (&json!(first), &json!("succeeded")));
        assert_eq!(kinds(database.connection(), &follower), ["enqueued", "unblocked", "promoted"]);
        let late = enqueue(database.connection(), after("succeeded"));
        for id in [&follower, &late] {
            rpc(database.connection(), "rpc_cancel", json!({"id": id}));
            let told = ["enqueued", "unblocked", "promoted", "cancel_requested", "canceled"];
            assert_eq!(kinds(database.connection(), id), told);
        }
    });
}
