//! Many processes at the end of one cooldown: however many poll in the same instant, one of them gets one job. The
//! processes are this test binary, started again; advisory locks of the database are the barrier that lets all of them
//! go at once.

use crate::scaled;
use crate::support::{self, Database, call};
use drayhorse_core::bridge::Client;
use drayhorse_core::store::{Connection, Options, Store, Type};
use serde_json::{Value, json};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Tells a started process that it is one of the fleet: JSON with `url`, `schema`, `barrier` and `rounds`.
const ORDERS: &str = "DRAYHORSE_MODEL_FLEET";
const ROUNDS: i32 = 4;
/// The line that a member of the fleet ends with, among the lines of the test harness.
const MARK: &str = "fleet: ";

/// Each round: the barrier holds everyone back, the cooldown ends, the barrier opens, everyone claims ten jobs.
#[test]
fn one_probe_for_a_fleet_of_processes() {
    let size = scaled(20, 50) as usize;
    let mut database = Database::migrated("DRAYHORSE_TEST_URL", "fleet");
    let client = database.client();
    let set = json!({"failureThreshold": 1, "cooldownMs": 60_000});
    call(&client, "endpoints.configure", json!({"name": "pay", "actor": "test", "circuit": set}));
    let jobs: Vec<Value> = (0..200).map(|_| json!({"type": "t", "options": {"endpoint": "pay"}})).collect();
    call(&client, "enqueueMany", json!({"jobs": jobs}));
    let first = call(&client, "claim", json!({"handlers": [{"type": "t"}]}));
    fail(&client, &first[0]);

    let barrier = std::process::id() as i32;
    let mut gatekeeper = database.another_connection();
    for round in 0..ROUNDS {
        lock(&mut gatekeeper, "pg_advisory_lock", barrier, round);
    }
    let mut fleet = Fleet::start(size, &database, barrier);
    for round in 0..ROUNDS {
        support::eventually("the whole fleet waits at the barrier", Duration::from_secs(120), || {
            fleet.none_ended();
            database.count(&format!(
                "(select from pg_locks where locktype = 'advisory' and classid = {barrier}::oid and objid = {round} and not granted)"
            )) == size as i64
        });
        database.advance_clock(60_001);
        lock(&mut gatekeeper, "pg_advisory_unlock", barrier, round);
        // The last of them has claimed when all stand before the next barrier; after the last round they have ended.
        if round + 1 == ROUNDS {
            break;
        }
        support::eventually("everyone has claimed", Duration::from_secs(120), || {
            database.count(&format!(
                "(select from pg_locks where locktype = 'advisory' and classid = {barrier}::oid and objid = {} and not granted)",
                round + 1
            )) == size as i64
        });
        let held = active(&mut database);
        assert_eq!(held.len(), 1, "round {round}: {held:?}");
        assert_eq!(circuit(&client), "half_open");
        fail(&client, &held[0]);
        assert_eq!(circuit(&client), "open");
    }
    let claimed = fleet.end();
    for round in 0..ROUNDS as usize {
        let counts: Vec<usize> = claimed.iter().map(|member| member[round]).collect();
        assert_eq!(counts.iter().sum::<usize>(), 1, "round {round}: {counts:?}");
    }
    // The last probe is the proof of health: then everyone is welcome.
    let held = active(&mut database);
    assert_eq!(held.len(), 1, "{held:?}");
    call(&client, "complete", json!({"claim": held[0]}));
    let rest = call(&client, "claim", json!({"handlers": [{"type": "t"}], "limit": 100}));
    assert_eq!(rest.as_array().map(Vec::len), Some(100));
    let events = call(&client, "endpoints.get", json!({"name": "pay"}))["events"].clone();
    let count = |name: &str| events.as_array().expect("events").iter().filter(|event| event["event"] == name).count();
    let counts = ["circuit_opened", "probe_started", "circuit_reopened", "circuit_closed"].map(count);
    assert_eq!(counts, [1, ROUNDS as usize, ROUNDS as usize - 1, 1]);
}

/// A member of the fleet; nothing where this is the test binary itself.
#[test]
fn member_of_the_fleet() {
    let Ok(orders) = std::env::var(ORDERS) else {
        return;
    };
    let orders: Value = serde_json::from_str(&orders).expect("orders");
    let text = |key: &str| orders[key].as_str().expect("a text").to_owned();
    let number = |key: &str| orders[key].as_i64().expect("a number") as i32;
    let options = json!({"schema": text("schema"), "poolSize": 1}).to_string();
    let client = Client::connect(&text("url"), &options).expect("a client");
    let store = Store::open(&text("url"), Options::default()).expect("a store");
    let mut session = store.connect().expect("a session");
    // So that the first claim is not late by a handshake.
    call(&client, "endpoints.get", json!({"name": "pay"}));
    let claimed: Vec<usize> = (0..number("rounds"))
        .map(|round| {
            lock(&mut session, "pg_advisory_lock_shared", number("barrier"), round);
            let got = call(&client, "claim", json!({"handlers": [{"type": "t"}], "limit": 10, "leaseMs": 600_000}));
            got.as_array().expect("claims").len()
        })
        .collect();
    println!("\n{MARK}{}", json!(claimed));
}

/// The started processes; whatever happens to the test, none outlives it.
struct Fleet(Vec<Child>);

impl Fleet {
    fn start(size: usize, database: &Database, barrier: i32) -> Fleet {
        let program = std::env::current_exe().expect("this binary");
        let orders = json!({"url": database.url, "schema": database.schema, "barrier": barrier, "rounds": ROUNDS});
        let start = |_| {
            Command::new(&program)
                .args(["--exact", "fleet::member_of_the_fleet", "--nocapture"])
                .env(ORDERS, orders.to_string())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a process")
        };
        Fleet((0..size).map(start).collect())
    }

    fn none_ended(&mut self) {
        for member in &mut self.0 {
            let ended = member.try_wait().expect("a status");
            assert!(ended.is_none(), "a member of the fleet ended early: {ended:?}");
        }
    }

    /// How many jobs each has claimed in each round.
    fn end(mut self) -> Vec<Vec<usize>> {
        let told = self.0.iter_mut().map(|member| {
            let mut said = String::new();
            member.stdout.take().expect("its output").read_to_string(&mut said).expect("text");
            assert!(member.wait().expect("a status").success(), "a member of the fleet failed: {said}");
            let line = said.lines().find_map(|line| line.strip_prefix(MARK)).expect("its counts");
            serde_json::from_str(line).expect("counts")
        });
        told.collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for member in &mut self.0 {
            // One that has ended by itself cannot be killed, and need not.
            member.kill().ok();
            member.wait().ok();
        }
    }
}

fn lock(session: &mut Connection, function: &str, barrier: i32, round: i32) {
    let sql = format!("select {function}($1, $2)::text");
    session.query(&sql, &[(&barrier, Type::INT4), (&round, Type::INT4)]).expect("the barrier");
}

/// `{"id", "fence"}` of everything that is claimed now.
fn active(database: &mut Database) -> Vec<Value> {
    let sql = "select coalesce(jsonb_agg(jsonb_build_object('id', r.job_id, 'fence', fence_text(r.claim_id, r.claim_no))), '[]')
      from runtime r where r.state = 'a'";
    let text = database.text(sql).expect("a list");
    serde_json::from_str(&text).expect("JSON")
}

fn circuit(client: &Client) -> Value {
    call(client, "endpoints.get", json!({"name": "pay"}))["circuit"]["state"].clone()
}

fn fail(client: &Client, claim: &Value) {
    let token = json!({"id": claim["id"], "fence": claim["fence"]});
    call(client, "fail", json!({"claim": token, "error": {"name": "E", "message": "down"}, "delayMs": 0}));
}
