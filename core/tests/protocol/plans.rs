//! Plans are pinned: lying statistics, switched-off joins and a million dead rows change neither what a claim takes
//! nor how it finds it.

use crate::language::{claim, enqueue, rpc, scaled};
use crate::support::{self, Database};
use serde_json::json;

fn enqueue_many(database: &mut Database, count: usize) {
    for from in (0..count).step_by(1000) {
        let batch: Vec<_> = (from..count.min(from + 1000)).map(|n| json!({"type": "t", "payload": n})).collect();
        rpc(database.connection(), "enqueue", json!(batch));
    }
}

/// The statistics say one row, the session forbids the usual joins: five asked, five taken.
#[test]
fn t09_lying_statistics_take_no_more_than_asked() {
    support::on_each_server("t09", |database| {
        enqueue(database.connection(), json!({}));
        database.sql("analyze runtime; analyze job; alter table runtime set (autovacuum_enabled = off)");
        enqueue_many(database, 49);
        database.sql("set enable_hashjoin = off; set enable_mergejoin = off; set enable_material = off");
        assert_eq!(claim(database.connection(), 5, 30_000).len(), 5);
        assert_eq!(database.count("(select from runtime where state = 'a')"), 5);
        assert_eq!(database.count("(select from runtime where state = 'r')"), 45);

        // A limit holds under the same plan.
        rpc(
            database.connection(),
            "rpc_endpoints_configure",
            json!({"name": "pay", "maxConcurrency": 5, "actor": "test"}),
        );
        enqueue(database.connection(), json!({"type": "gated", "endpoint": "pay"}));
        database.sql("analyze runtime; analyze job; analyze gate");
        let batch: Vec<_> = (0..49).map(|_| json!({"type": "gated", "endpoint": "pay"})).collect();
        rpc(database.connection(), "enqueue", json!(batch));
        for expected in [5, 0] {
            let args = json!({"handlers": [{"type": "gated"}], "limit": 50});
            assert_eq!(rpc(database.connection(), "rpc_claim", args).as_array().map(Vec::len), Some(expected));
        }
        assert_eq!(database.count("(select from runtime where state = 'a')"), 10);
    });
}

/// What the hot statements inside the functions are planned as, on a fresh schema and with its functions' settings.
#[test]
fn hot_statements_use_their_index() {
    support::on_each_server("plans", |database| {
        let pins = "set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set enable_bitmapscan = off; \
            set enable_hashjoin = off; set enable_mergejoin = off; set enable_material = off; set jit = off";
        database.sql(pins);
        let statements = [
            (
                "claim",
                "select r.job_id from unnest(array[1::bigint], array[0::bigint]) l (id, hint) cross join lateral (select r.job_id from runtime r \
                 where r.lane_id = l.id and r.state = 'r' and r.seq >= l.hint order by r.lane_id, r.seq limit 5 for update skip locked) r",
                "runtime_ready",
            ),
            (
                "promote",
                "select r.job_id from runtime r where r.state = 's' and r.wake_at <= now() order by r.wake_at limit 5 for update skip locked",
                "runtime_due",
            ),
            (
                "recover",
                "select * from runtime w where w.state = 'a' and w.wake_at <= now() order by w.wake_at limit 5 for update skip locked",
                "runtime_lease",
            ),
            (
                "expire",
                "select * from runtime w where w.deadline is not null and w.state <> 'a' and w.deadline <= now() order by w.deadline limit 5 for update skip locked",
                "runtime_deadline",
            ),
            (
                "complete",
                "delete from runtime r using (select * from unnest(array[gen_random_uuid()]) u (id) order by 1) g where r.job_id = g.id and r.claim_id = g.id and r.claim_no = 1",
                "runtime_pkey",
            ),
        ];
        for (name, statement, index) in statements {
            let plan: String = database
                .rows(&format!("explain (costs off) {statement}"), &[])
                .iter()
                .map(|row| row.get::<_, String>(0) + "\n")
                .collect();
            assert!(plan.contains(index), "{name} does not use {index}:\n{plan}");
            assert!(!plan.contains("Seq Scan on runtime") && !plan.contains("JIT"), "{name}:\n{plan}");
            // Only the caller's list is sorted there, into the one order in which rows are locked.
            if name != "complete" {
                assert!(!plan.contains("Sort"), "{name} sorts:\n{plan}");
            }
        }
    });
}

fn buffers_of_a_claim(database: &mut Database) -> i64 {
    // Measured on the statement the function runs, since a function's own buffers hide inside its caller's plan.
    let lane: i64 = database.rows("select id from lane where type = 't' limit 1", &[])[0].get(0);
    let hint: i64 = database.rows("select coalesce(min(seq), 0) from runtime where state = 'r'", &[])[0].get(0);
    buffers_of(
        database,
        &format!(
            "select * from claim_lanes(null, gen_random_uuid(), array[{lane}]::bigint[], array[{hint}]::bigint[], array[10], 10, 30000, false)"
        ),
    )
}

/// The least of a few runs: what other sessions do to the catalogs is read again by whoever comes next.
fn buffers_of(database: &mut Database, statement: &str) -> i64 {
    (0..4).map(|_| buffers_once(database, statement)).min().expect("a run")
}

fn buffers_once(database: &mut Database, statement: &str) -> i64 {
    database.sql("begin");
    let rows = database
        .rows(&format!("explain (analyze, buffers, costs off, timing off, summary off, format json) {statement}"), &[]);
    let plan: serde_json::Value = rows[0].get(0);
    database.sql("rollback");
    let top = &plan[0]["Plan"];
    top["Shared Hit Blocks"].as_i64().expect("hits") + top["Shared Read Blocks"].as_i64().expect("reads")
}

/// A report finds its rows by the primary key, however many other attempts are active.
#[test]
fn a_report_touches_no_more_with_many_active_attempts() {
    support::on_each_server("active", |database| {
        enqueue_many(database, 10);
        let mine = claim(database.connection(), 10, 600_000);
        let one = mine[0]["fence"].as_str().expect("a fence").split('/').next().expect("a claim").to_owned();
        let completing = format!(
            "select complete(array_agg(job_id order by job_id), array_agg(claim_id order by job_id), array_agg(claim_no order by job_id), \
             array_agg(null::text)) from (select * from runtime where claim_id = '{one}') r"
        );
        let beating = completing.replace("complete(", "heartbeat(").replace("array_agg(null::text)", "30000");
        let before = (buffers_of(database, &completing), buffers_of(database, &beating));
        enqueue_many(database, 3_000);
        for _ in 0..3 {
            assert_eq!(claim(database.connection(), 1_000, 600_000).len(), 1_000);
        }
        let scanned =
            buffers_of(database, &format!("select count(*) from (select * from runtime where claim_id = '{one}') r"));
        let after = (buffers_of(database, &completing) - scanned, buffers_of(database, &beating) - scanned);
        assert!(after.0 <= before.0 * 2 + 60, "complete of 10: {} buffers alone, {} among 3000", before.0, after.0);
        assert!(after.1 <= before.1 * 2 + 60, "heartbeat of 10: {} buffers alone, {} among 3000", before.1, after.1);
    });
}

/// The cost of a claim, counted in buffers, does not grow with delayed, dead or other lanes' rows.
#[test]
fn a_claim_touches_no_more_with_many_delayed_dead_or_foreign_rows() {
    support::on_each_server("buffers", |database| {
        let many = scaled(5_000, 200_000);
        enqueue_many(database, 50);
        let alone = buffers_of_a_claim(database);
        for from in (0..many).step_by(1000) {
            let delayed: Vec<_> = (0..1000).map(|n| json!({"type": "t", "delayMs": 3_600_000 + n + from})).collect();
            rpc(database.connection(), "enqueue", json!(delayed));
        }
        let foreign: Vec<_> = (0..1000).map(|n| json!({"type": format!("other{n}")})).collect();
        rpc(database.connection(), "enqueue", json!(foreign));
        // An idle transaction pins the horizon, so that the rows drained now stay behind as dead ones.
        let mut pin = database.another_connection();
        pin.batch("begin isolation level repeatable read; select count(*) from runtime").expect("pin");
        enqueue_many(database, 2_000);
        let lane: i64 = database.rows("select id from lane where type = 't' limit 1", &[])[0].get(0);
        for _ in 0..20 {
            let claim = database.text("gen_random_uuid()").expect("an id");
            database.sql(&format!("select claim_lanes(null, '{claim}', array[{lane}]::bigint[], array[0::bigint], array[100], 100, 30000, false)"));
            database.sql(&format!(
                "select complete(array_agg(job_id order by job_id), array_agg(claim_id order by job_id), array_agg(claim_no order by job_id), \
                 array_agg(null::text)) from runtime where state = 'a' and claim_id = '{claim}'"
            ));
        }
        let crowded = buffers_of_a_claim(database);
        pin.batch("rollback").expect("unpin");
        assert!(
            crowded <= alone * 2 + 60,
            "a claim of 10 touched {alone} buffers alone and {crowded} with {many} delayed, 2000 dead and 1000 foreign rows"
        );
    });
}
