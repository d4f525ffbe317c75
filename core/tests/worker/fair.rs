//! Who comes first: priorities, turns between lanes, and nobody starves. One slot, so that starts are ordered.

use super::host::{Host, complete};
use crate::support::{Database, call, eventually, on_each_server};
use serde_json::{Value, json};
use std::time::Duration;

fn many(database: &Database, count: usize, options: Value) {
    let jobs: Vec<Value> = (0..count).map(|n| json!({"type": "t", "payload": n, "options": options})).collect();
    call(&database.client(), "enqueueMany", json!({"jobs": jobs}));
}

fn run(database: &mut Database, concurrency: usize, queues: Value, total: i64) -> Vec<Value> {
    let host = Host::start(database, json!({"concurrency": concurrency, "queues": queues}), |_| complete(json!(1)));
    eventually("all have ended", Duration::from_secs(60), || database.count("outcome") == total);
    host.events("job")
}

#[test]
fn a_lane_is_first_in_first_out() {
    on_each_server("fifo", |database| {
        many(database, 60, json!({}));
        let order: Vec<i64> =
            run(database, 1, json!(["default"]), 60).iter().map(|e| e["payload"].as_i64().unwrap()).collect();
        assert_eq!(order, (0..60).collect::<Vec<i64>>());
    });
}

#[test]
fn a_million_of_one_tenant_does_not_hold_up_ten_of_another() {
    on_each_server("turns", |database| {
        many(database, 300, json!({"queue": "large"}));
        many(database, 10, json!({"queue": "small"}));
        let order = run(database, 1, json!(["large", "small"]), 310);
        let last_small = order.iter().rposition(|event| event["queue"] == "small").unwrap();
        assert!(last_small <= 30, "the small tenant's last job came at place {last_small}");
    });
}

#[test]
fn the_higher_priority_goes_first_but_the_lowest_is_not_starved() {
    on_each_server("priority", |database| {
        many(database, 30, json!({"priority": -5}));
        many(database, 400, json!({"priority": 5}));
        let order = run(database, 1, json!(["default"]), 430);
        let low: Vec<usize> = order
            .iter()
            .enumerate()
            .filter(|(_, event)| event["payload"].as_i64().unwrap() < 30)
            .map(|(place, _)| place)
            .collect();
        assert_eq!(low.len(), 60, "both priorities have payloads below 30");
        // The first forty: one in twenty comes from the lane whose head has waited longest.
        let lanes = database.rows(
            "select l.priority from outcome o join lane l on l.id = o.lane_id order by o.claimed_at, o.claim_id limit 100",
            &[],
        );
        let low = lanes.iter().filter(|row| row.get::<_, i16>(0) == -5).count();
        assert!((3..=8).contains(&low), "{low} of the first hundred");
    });
}

#[test]
fn fifty_lanes_with_and_without_endpoints_are_all_served() {
    on_each_server("lanes", |database| {
        for lane in 0..50 {
            let endpoint =
                if lane % 2 == 0 { json!({"endpoint": format!("e{lane}")}) } else { json!({"priority": lane % 7}) };
            many(database, 4, endpoint);
        }
        let order = run(database, 8, json!(["default"]), 200);
        assert_eq!(order.len(), 200);
        // Later jobs of the same lanes and of a new one.
        let host = Host::start(database, json!({"concurrency": 8}), |_| complete(json!(1)));
        for endpoint in ["e0", "e48", "new"] {
            many(database, 3, json!({"endpoint": endpoint}));
        }
        eventually("the later ones too", Duration::from_secs(30), || database.count("outcome") == 209);
        drop(host);
    });
}

#[test]
fn claims_of_two_workers_share_the_work_without_overlap() {
    on_each_server("two", |database| {
        many(database, 400, json!({}));
        let one = Host::start(database, json!({"concurrency": 7, "name": "one"}), |_| complete(json!(1)));
        let two =
            Host::start(database, json!({"concurrency": 7, "prefetch": 5, "name": "two"}), |_| complete(json!(1)));
        eventually("all have ended", Duration::from_secs(60), || database.count("outcome") == 400);
        assert_eq!(one.starts() + two.starts(), 400);
        assert_eq!(database.count("attempt"), 0, "no attempt failed");
    });
}
