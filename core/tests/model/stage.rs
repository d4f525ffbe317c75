//! The database's side of a run: sessions of three workers, a clock that stands still until it is moved, and one look
//! at everything that the reference world predicts.

use crate::claiming::{Ask, Got};
use crate::job::{ENDPOINTS, QUEUES, TYPES};
use crate::support::Database;
use drayhorse_core::store::{Connection, Type};
use serde_json::{Value, json};

pub const WORKERS: usize = 3;
const RUNS_PER_TRUNCATE: u64 = 10;

/// Everything the reference world predicts; as a function, so that it is planned once.
const LOOK: &str = "create function model_look(last_event bigint) returns text language plpgsql as $$ begin return jsonb_build_object(
    'live', (select coalesce(jsonb_object_agg(r.job_id, jsonb_build_array(r.state::text, r.attempt,
        case when r.state = 's' then epoch_us(r.wake_at) end, r.uncertain, r.cancel is not null)), '{}') from runtime r),
    'ended', (select coalesce(jsonb_object_agg(o.job_id, jsonb_build_array(o.state::text, o.attempt, o.reason, o.uncertain)), '{}') from outcome o),
    'endpoints', rpc_endpoints_list('{}')::jsonb,
    'queues', rpc_queues_list('{}')::jsonb,
    'events', (select coalesce(jsonb_agg(jsonb_build_array(e.name, e.event) order by e.id), '[]') from gate_event e
      where e.id > last_event and e.kind = 'e' and (e.event like 'circuit%' or e.event like 'probe%')),
    'lastEvent', (select coalesce(max(e.id), 0) from gate_event e))::text; end $$";

pub struct Stage {
    pub database: Database,
    main: Connection,
    workers: Vec<Connection>,
    made: u64,
    runs: u64,
    last_event: i64,
}

impl Stage {
    /// A migrated schema whose clock is a row of a table.
    pub fn open(variable: &str) -> Stage {
        let mut database = Database::migrated(variable, "model");
        database.sql(&format!(
            "create table model_clock (at timestamptz not null);
             insert into model_clock values (clock_timestamp());
             create or replace function clock_now() returns timestamptz language sql volatile parallel safe
               as 'select at from \"{}\".model_clock'",
            database.schema
        ));
        database.sql(LOOK);
        let main = database.another_connection();
        let workers = (0..WORKERS).map(|_| database.another_connection()).collect();
        Stage { database, main, workers, made: 0, runs: 0, last_event: 0 }
    }

    /// Empties the schema and makes what is random in the database the same in every run of the same seed.
    pub fn clear(&mut self) {
        // Dead rows make everything slow, and emptying tables takes a moment: so now and then.
        let empty = if self.runs.is_multiple_of(RUNS_PER_TRUNCATE) { "truncate %I cascade" } else { "delete from %I" };
        self.runs += 1;
        self.database.sql(&format!(
            "set session_replication_role = replica;
             do $$ declare name text; begin
               for name in select c.relname from pg_class c
                 where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
                   and c.relname not in ('settings', 'schema_version', 'model_clock')
               loop execute format('{empty}', name); end loop;
             end $$;
             alter sequence turn restart; alter sequence position restart;
             set session_replication_role = origin",
        ));
        self.made = 0;
        self.main.batch("select setseed(0.1)").expect("setseed");
        for worker in 0..WORKERS {
            self.restart(worker);
        }
        self.last_event =
            self.main.query("select coalesce(max(id), 0) from gate_event", &[]).expect("events")[0].get(0);
    }

    pub fn restart(&mut self, worker: usize) {
        self.workers[worker] = self.database.another_connection();
        self.workers[worker].batch("select setseed(0.1)").expect("setseed");
    }

    /// Microseconds since 1970, in whole seconds.
    pub fn start_time(&mut self) -> i64 {
        self.main
            .query("select extract(epoch from date_trunc('second', clock_timestamp()))::bigint * 1000000", &[])
            .expect("a time")[0]
            .get(0)
    }

    pub fn set_clock(&mut self, now: i64) {
        let sql = "update model_clock set at = 'epoch'::timestamptz + $1 * interval '1 microsecond'";
        self.main.execute(sql, &[(&now, Type::INT8)]).expect("the clock");
    }

    /// An id that is the same in every run of the same seed.
    pub fn uuid(&mut self) -> String {
        self.made += 1;
        // Spread, so that the order of ids is not the order of their making.
        let spread = self.made.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let text = format!("{spread:016x}{:016x}", self.made);
        format!("{}-{}-7{}-8{}-{}", &text[..8], &text[8..12], &text[13..16], &text[17..20], &text[20..])
    }

    /// One JSON argument, one JSON answer.
    pub fn rpc(&mut self, function: &str, args: &Value) -> Result<Value, String> {
        rpc(&mut self.main, function, args)
    }

    pub fn text(&mut self, sql: &str) -> String {
        self.main.query_text(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {}", e.to_json())).unwrap_or_default()
    }

    /// The public claim.
    pub fn claim(&mut self, worker: usize, ask: &Ask) -> Result<Vec<Got>, String> {
        let args = claim_args(ask, &self.uuid());
        claimed(rpc(&mut self.workers[worker], "rpc_claim", &args)?)
    }

    /// All workers claim at the same moment; each may get up to the limit.
    pub fn race(&mut self, ask: &Ask) -> Result<Vec<Got>, String> {
        let args: Vec<Value> = (0..WORKERS).map(|_| claim_args(ask, &self.uuid())).collect();
        let barrier = std::sync::Barrier::new(WORKERS);
        let answers: Vec<Result<Value, String>> = std::thread::scope(|scope| {
            let racers: Vec<_> = self
                .workers
                .iter_mut()
                .zip(&args)
                .map(|(session, args)| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        rpc(session, "rpc_claim", args)
                    })
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().expect("a racer")).collect()
        });
        let mut all = Vec::new();
        for answer in answers {
            let got = claimed(answer?)?;
            if got.len() > ask.limit {
                return Err(format!("{} rows were claimed, {} were asked for", got.len(), ask.limit));
            }
            all.extend(got);
        }
        Ok(all)
    }

    /// As a worker of the core does: it picks the lanes that are ready, here in any order.
    pub fn claim_lanes(&mut self, worker: usize, ask: &Ask) -> Result<Vec<Got>, String> {
        let claim = self.uuid();
        let names = |all: &[&str], chosen: &[usize]| chosen.iter().map(|n| all[*n]).collect::<Vec<_>>().join(",");
        let kinds = names(&TYPES, &ask.kinds);
        let versions = vec!["1"; ask.kinds.len()].join(",");
        let sql = format!(
            "with lanes as (select coalesce(array_agg(lane_id), '{{}}') as ids from worker_lanes('{{{}}}', '{{{kinds}}}', '{{{versions}}}')),
             ready as (select coalesce(array_agg(r.lane_id order by md5(r.lane_id::text || '{claim}')), '{{}}') as ids
               from lanes cross join lateral lanes_ready(lanes.ids, array_fill(0::bigint, array[cardinality(lanes.ids)])) r)
             select coalesce(jsonb_agg(jsonb_build_array(c.job_id, c.claim_no, c.attempt) order by c.claim_no), '[]')::text
             from ready cross join lateral claim_lanes(null, '{claim}', ready.ids, array_fill(0::bigint, array[cardinality(ready.ids)]),
               array_fill({limit}, array[cardinality(ready.ids)]), {limit}, {lease}, false) c",
            names(&QUEUES, &ask.queues),
            limit = ask.limit,
            lease = ask.lease / 1000,
        );
        let answer = self.workers[worker].query_text(&sql, &[]).map_err(|e| e.to_json())?.unwrap_or_default();
        let rows: Vec<(String, i64, i64)> = serde_json::from_str(&answer).map_err(|e| e.to_string())?;
        Ok(rows.into_iter().map(|(id, number, attempt)| Got { id, fence: (claim.clone(), number), attempt }).collect())
    }

    /// Everything the reference world predicts, in one look.
    pub fn look(&mut self) -> Value {
        let sql = format!("select model_look({})", self.last_event);
        let seen: Value = serde_json::from_str(&self.text(&sql)).expect("JSON");
        self.last_event = seen["lastEvent"].as_i64().expect("a number").max(self.last_event);
        seen
    }
}

/// The snapshot of an endpoint or queue in a look; null before its first use.
pub fn snapshot<'a>(seen: &'a Value, list: &str, name: &str) -> &'a Value {
    let found = seen[list].as_array().and_then(|all| all.iter().find(|one| one["name"] == name));
    found.unwrap_or(&Value::Null)
}

pub fn endpoint(seen: &Value, n: usize) -> &Value {
    snapshot(seen, "endpoints", ENDPOINTS[n])
}

fn rpc(session: &mut Connection, function: &str, args: &Value) -> Result<Value, String> {
    let sql = format!("select {function}($1::text::jsonb)");
    let answer = session.query_text(&sql, &[(&args.to_string(), Type::TEXT)]).map_err(|e| e.to_json())?;
    serde_json::from_str(&answer.unwrap_or_default()).map_err(|e| e.to_string())
}

fn claim_args(ask: &Ask, claim: &str) -> Value {
    let queues: Vec<&str> = ask.queues.iter().map(|n| QUEUES[*n]).collect();
    let handlers: Vec<Value> = ask.kinds.iter().map(|n| json!({"type": TYPES[*n]})).collect();
    json!({"queues": queues, "handlers": handlers, "limit": ask.limit, "leaseMs": ask.lease / 1000, "claimId": claim})
}

fn claimed(answer: Value) -> Result<Vec<Got>, String> {
    let rows = answer.as_array().ok_or("a claim answers an array")?;
    let got = rows.iter().map(|row| {
        let (claim, number) = row["fence"].as_str()?.split_once('/')?;
        let fence = (claim.to_owned(), number.parse().ok()?);
        Some(Got { id: row["id"].as_str()?.to_owned(), fence, attempt: row["attempt"].as_i64()? })
    });
    got.collect::<Option<_>>().ok_or_else(|| format!("not the rows of a claim: {answer}"))
}
