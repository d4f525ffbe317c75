//! Evidence cannot be changed, and the error table in SQL is the core's.

use crate::language::{claim, complete, enqueue, fail, rpc, token};
use crate::support;
use drayhorse_core::error::Kind;
use serde_json::json;

#[test]
fn definitions_outcomes_and_attempts_are_immutable_for_every_role() {
    support::on_each_server("immutable", |database| {
        enqueue(database.connection(), json!({"retryPolicy": {"type": "fixed", "delayMs": 0}}));
        let held = claim(database.connection(), 1, 30_000).remove(0);
        fail(database.connection(), &held, 0).expect("fail");
        let held = claim(database.connection(), 1, 30_000).remove(0);
        complete(database.connection(), &held).expect("complete");
        for table in ["job", "outcome", "attempt"] {
            for change in [
                format!("delete from {table}"),
                format!("truncate {table}"),
                format!("update {table} set lane_id = 0"),
                format!("update {table} set attempt = 0"),
            ] {
                let Err(error) = database.try_sql(&change) else { panic!("{change} was allowed") };
                // A column that a table lacks is refused by the parser; every other change by the guard.
                assert!([Kind::WrongState, Kind::Internal].contains(&error.kind()), "{change}: {error}");
            }
            assert_eq!(
                database.try_sql(&format!("delete from {table}")).expect_err("guarded").kind(),
                Kind::WrongState,
                "{table}"
            );
            assert_eq!(database.count(table), 1, "{table}");
        }
    });
}

#[test]
fn the_error_table_in_sql_is_the_cores() {
    support::on_each_server("errors", |database| {
        let codes: Vec<String> = database.rows("select unnest(error_codes())", &[]).iter().map(|r| r.get(0)).collect();
        let core: Vec<String> = Kind::ALL.iter().map(|k| k.code().to_owned()).collect();
        assert_eq!(codes, core);
    });
}

/// Every attempt that did not succeed keeps its record, whatever ended it.
#[test]
fn each_attempt_keeps_its_record() {
    support::on_each_server("record", |database| {
        let worker = database
            .text(r#"worker_start('{"name":"ada","host":"h","pid":1,"language":"rust","queues":["default"],"handlers":[{"type":"t"}],"slots":1}')"#)
            .expect("a worker");
        let policy = json!({"type": "fixed", "delayMs": 5});
        let options = json!({"maxAttempts": 3, "timeoutMs": 60_000, "retryPolicy": policy});
        let id = enqueue(database.connection(), options);
        let claiming = format!(
            "select claim_lanes({worker}, gen_random_uuid(), array[id], array[0::bigint], array[1], 1, 1000, false) from lane"
        );
        database.sql(&claiming);
        let held = database.rows("select claim_id::text || '/' || claim_no from runtime where state = 'a'", &[]);
        let fence: String = held[0].get(0);
        let error = json!({"name": "E", "message": "é".repeat(2_000), "stack": "at line 1", "causes": [{"name": "C"}]});
        rpc(
            database.connection(),
            "rpc_fail",
            json!({"claim": {"id": id, "fence": fence}, "error": error, "retryAfterMs": 2_000}),
        );
        database.advance_clock(2_001);
        assert_eq!(database.text("promote(10)").as_deref(), Some("1"));
        database.sql(&claiming);
        database.advance_clock(1_001);
        assert_eq!(database.text("recover(10)").as_deref(), Some("1"));
        database.advance_clock(6);
        assert_eq!(database.text("promote(10)").as_deref(), Some("1"));
        let last = claim(database.connection(), 1, 30_000).remove(0);
        let args = json!({"claim": token(&last), "retryable": false, "uncertain": true, "error": {"name": "Last", "message": "no"}});
        assert_eq!(rpc(database.connection(), "rpc_fail", args)["reason"], "non_retryable");

        let records: Vec<serde_json::Value> = database
            .rows(
                "select jsonb_build_object('n', attempt, 'cause', cause, 'delay', delay_ms, 'source', source, 'name', error_name, \
                 'length', char_length(error_message), 'uncertain', uncertain, 'reported', reported, 'worker', worker_id is not null, \
                 'waited', run_at - ended_at = delay_ms * interval '1 millisecond', 'lasted', ended_at >= claimed_at, 'detail', detail) \
                 from attempt order by attempt",
                &[],
            )
            .iter()
            .map(|row| row.get(0))
            .collect();
        let chosen = json!({"chosenMs": 5, "chosenSource": "policy:fixed"});
        let expected = [
            json!({"n": 1, "cause": "error", "delay": 2000, "source": "retry_after", "name": "E", "length": 500, "uncertain": false,
                "reported": true, "worker": true, "waited": true, "lasted": true, "detail": chosen}),
            json!({"n": 2, "cause": "lease", "delay": 5, "source": "policy:fixed", "name": "lease", "length": 32, "uncertain": true,
                "reported": false, "worker": true, "waited": true, "lasted": true, "detail": null}),
            json!({"n": 3, "cause": "error", "delay": null, "source": null, "name": "Last", "length": 2, "uncertain": true,
                "reported": true, "worker": false, "waited": null, "lasted": true, "detail": null}),
        ];
        assert_eq!(records, expected);
        assert_eq!(
            database.count("(select distinct claim_id, claim_no from attempt)"),
            3,
            "each claim has a fence of its own"
        );
        let whole: serde_json::Value = database.rows("select error from error_text where attempt = 1", &[])[0].get(0);
        assert_eq!(
            whole,
            json!({"name": "E", "message": "é".repeat(2_000), "stack": "at line 1", "causes": [{"name": "C"}]})
        );
    });
}

/// Every time in SQL goes through one function, so that a test moves all of them. An id is no time: only it is made from
/// the server's own clock.
#[test]
fn every_time_goes_through_one_function() {
    support::on_each_server("oneclock", |database| {
        let others: Vec<String> = database
            .rows(
                r"select proname::text from pg_proc p where pronamespace = current_schema::regnamespace
                  and proname not in ('clock_now', 'advance_clock', 'uuid7')
                  and prosrc ~* '\m(now\(\)|(clock|statement|transaction)_timestamp|current_timestamp|localtimestamp|current_time|current_date|timeofday)'",
                &[],
            )
            .iter()
            .map(|row| row.get(0))
            .collect();
        assert!(others.is_empty(), "{others:?}");
        database.advance_clock(86_400_000);
        let id = enqueue(database.connection(), json!({"deadlineMs": 60_000, "delayMs": 1_000}));
        let late = database.rows(
            "select enqueued_at - clock_timestamp() between '23:59:00' and '24:00:00', run_at - enqueued_at = '1 s', \
            deadline - enqueued_at = '60 s' from job where id = $1::text::uuid",
            &[(&id, drayhorse_core::store::Type::TEXT)],
        );
        assert_eq!((late[0].get(0), late[0].get(1), late[0].get(2)), (true, true, true));
        // The clock of the statement, not of the transaction.
        database.sql("begin; select pg_sleep(0.02)");
        let second = enqueue(database.connection(), json!({}));
        let waited = database.rows(
            "select enqueued_at - now() - interval '1 day' >= '20 ms' from job where id = $1::text::uuid",
            &[(&second, drayhorse_core::store::Type::TEXT)],
        );
        database.sql("commit");
        assert!(waited[0].get::<_, bool>(0));
    });
}
