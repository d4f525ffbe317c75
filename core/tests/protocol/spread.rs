//! Jobs that fail together under decorrelated jitter wake spread over the window.

use crate::language::{claim, rpc};
use crate::support;
use serde_json::json;
use std::collections::HashSet;

#[test]
fn a_thousand_failures_spread_over_the_window() {
    support::on_each_server("spread", |database| {
        let policy = json!({"type": "decorrelated-jitter", "baseDelayMs": 1_000, "maxDelayMs": 60_000});
        let batch: Vec<_> = (0..1000).map(|n| json!({"type": "t", "payload": n, "retryPolicy": policy})).collect();
        rpc(database.connection(), "enqueue", json!(batch));
        for round in 1..=6 {
            let held = claim(database.connection(), 1000, 600_000);
            assert_eq!(held.len(), 1000, "round {round}");
            database.sql(
                "select fail(jsonb_agg(jsonb_build_object('id', job_id, 'claim', claim_id, 'number', claim_no, \
                 'error', '{\"name\":\"E\",\"message\":\"down\"}'::jsonb))) from runtime where state = 'a'",
            );
            if round < 6 {
                database.advance_clock(60_001);
            }
        }
        let delays: Vec<i64> =
            database.rows("select delay_ms from attempt where attempt = 6", &[]).iter().map(|r| r.get(0)).collect();
        assert_eq!(delays.len(), 1000);
        assert!(delays.iter().all(|d| (1_000..=60_000).contains(d)));
        let seconds: HashSet<i64> = delays.iter().map(|d| d / 1000).collect();
        assert!(seconds.len() > 40, "only {} different seconds", seconds.len());
        let busiest = seconds.iter().map(|s| delays.iter().filter(|d| *d / 1000 == *s).count()).max().expect("some");
        assert!(busiest < 250, "{busiest} of 1000 wake in one second");
        assert!(delays.iter().filter(|d| **d == 60_000).count() < 20, "the wave collapses on the cap");
    });
}
