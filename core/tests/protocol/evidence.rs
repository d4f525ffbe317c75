//! Evidence cannot be changed, and the error table in SQL is the core's.

use crate::language::{claim, complete, enqueue, fail};
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
