//! The worker's statements: every SQL function it calls, with the schema's quoted name. The pump and the keeper call
//! them; nothing else of the worker knows SQL.

use serde::Deserialize;
use uuid::Uuid;

use super::options::Options;
use super::rows::{Columns, claim_row, fail_report, get, verdicts};
use crate::contract::Contract;
use crate::error::{Error, Kind, Result};
use crate::machine::{Claim, ClaimRow, LaneRow, Release, Settlement, Settling, Verdict};
use crate::store::{Connection, Param, Schema, Type};

/// The texts, made once.
pub struct Statements {
    register: String,
    lanes: String,
    survey: String,
    claim: String,
    claimed: String,
    complete: String,
    fail: String,
    release: String,
    progress: String,
    sleep: String,
    wake: String,
    unregister: String,
    heartbeat: String,
    tick: String,
    prune: String,
    seen: String,
    contract: String,
}

const CLAIM_COLUMNS: &str = "job_id, claim_no, lane_id, seq, attempt, ends_ms, payload, extra";

impl Statements {
    /// For one schema.
    pub fn new(schema: &Schema) -> Statements {
        let f = |name: &str| schema.object(name);
        Statements {
            register: format!("select {}($1::text::jsonb)", f("worker_start")),
            lanes: format!(
                "select lane_id, queue, type, version, endpoint, priority from {}($1, $2, $3)",
                f("worker_lanes")
            ),
            survey: format!("select lane_id, head_seq from {}($1, $2)", f("lanes_ready")),
            claim: format!("select {CLAIM_COLUMNS} from {}($1, $2, $3, $4, $5, $6, $7, $8)", f("claim_lanes")),
            claimed: format!("select {CLAIM_COLUMNS} from {}($1)", f("claimed")),
            complete: format!("select {}($1, $2, $3, $4)", f("complete")),
            fail: format!("select {}($1::text::jsonb)", f("fail")),
            release: format!("select {}($1, $2, $3, $4, $5)", f("release")),
            progress: format!(
                "select {}(p.job, p.claim, p.number, p.value) \
                 from unnest($1::uuid[], $2::uuid[], $3::int2[], $4::text[]) p (job, claim, number, value)",
                f("progress")
            ),
            sleep: format!("select {}($1, $2, $3, $4, $5)", f("sleep")),
            wake: format!("select {}($1)", f("wake")),
            unregister: format!("select {}($1)", f("worker_stop")),
            heartbeat: format!("select {}($1, $2, $3, $4, $5)", f("heartbeat")),
            tick: format!("select promoted, recovered, expired, more, next_ms from {}($1, $2)", f("tick")),
            prune: format!("select {}($1)", f("prune")),
            seen: format!("select {}($1, $2)", f("worker_seen")),
            contract: format!("select {}($1::text::jsonb)", f("rpc_contracts_get")),
        }
    }

    /// A new worker; its id.
    pub fn register(&self, connection: &mut Connection, options: &Options) -> Result<i32> {
        let handlers: Vec<_> = options
            .types
            .iter()
            .zip(&options.versions)
            .map(|(kind, version)| serde_json::json!({"type": kind, "version": version}))
            .collect();
        let info = serde_json::json!({
            "name": options.name,
            "host": options.host,
            "pid": std::process::id(),
            "language": options.language,
            "queues": options.queues,
            "handlers": handlers,
            "slots": options.concurrency,
        })
        .to_string();
        let row = connection.query_one(&self.register, &[(&info, Type::TEXT)])?;
        get(connection, &row, 0)
    }

    /// The lanes it may claim from.
    pub fn lanes(&self, connection: &mut Connection, options: &Options) -> Result<Vec<LaneRow>> {
        let params: [Param<'_>; 3] = [
            (&options.queues, Type::TEXT_ARRAY),
            (&options.types, Type::TEXT_ARRAY),
            (&options.versions, Type::TEXT_ARRAY),
        ];
        let rows = connection.query(&self.lanes, &params)?;
        rows.iter()
            .map(|row| {
                Ok(LaneRow {
                    id: get(connection, row, 0)?,
                    queue: get(connection, row, 1)?,
                    kind: get(connection, row, 2)?,
                    version: get(connection, row, 3)?,
                    endpoint: get(connection, row, 4)?,
                    priority: get(connection, row, 5)?,
                })
            })
            .collect()
    }

    /// Which lanes have work, and from where.
    pub fn survey(&self, connection: &mut Connection, lanes: &[i64], hints: &[i64]) -> Result<Vec<(i64, i64)>> {
        let rows = connection.query(&self.survey, &[(&lanes, Type::INT8_ARRAY), (&hints, Type::INT8_ARRAY)])?;
        rows.iter().map(|row| Ok((get(connection, row, 0)?, get(connection, row, 1)?))).collect()
    }

    /// A claim.
    #[allow(clippy::too_many_arguments)] // The columns of one SQL function, in its order.
    pub fn claim(
        &self,
        connection: &mut Connection,
        worker: i32,
        claim: Uuid,
        lanes: &[i64],
        hints: &[i64],
        quotas: &[i32],
        max_jobs: i32,
        lease_ms: i64,
        async_commit: bool,
    ) -> Result<Vec<ClaimRow>> {
        let params: [Param<'_>; 8] = [
            (&worker, Type::INT4),
            (&claim, Type::UUID),
            (&lanes, Type::INT8_ARRAY),
            (&hints, Type::INT8_ARRAY),
            (&quotas, Type::INT4_ARRAY),
            (&max_jobs, Type::INT4),
            (&lease_ms, Type::INT8),
            (&async_commit, Type::BOOL),
        ];
        let rows = connection.query(&self.claim, &params)?;
        rows.iter().map(|row| claim_row(connection, claim, row)).collect()
    }

    /// The rows of a claim whose answer was lost.
    pub fn claimed(&self, connection: &mut Connection, claim: Uuid) -> Result<Vec<ClaimRow>> {
        let rows = connection.query(&self.claimed, &[(&claim, Type::UUID)])?;
        rows.iter().map(|row| claim_row(connection, claim, row)).collect()
    }

    /// A batch of settlements of one kind.
    pub fn settle(&self, connection: &mut Connection, batch: &[Settling]) -> Result<Vec<Verdict>> {
        match batch.first().map(|settling| &settling.settlement) {
            None => Ok(Vec::new()),
            Some(Settlement::Complete(_)) => self.complete(connection, batch),
            Some(Settlement::Fail(_)) => self.fail(connection, batch),
            Some(Settlement::Release(Release { reason, started })) => {
                let columns = Columns::of(batch.iter().map(|settling| settling.claim));
                let [jobs, claims, numbers] = columns.params();
                let row = connection
                    .query_one(&self.release, &[jobs, claims, numbers, (reason, Type::TEXT), (started, Type::BOOL)])?;
                verdicts(connection, &row)
            }
        }
    }

    fn complete(&self, connection: &mut Connection, batch: &[Settling]) -> Result<Vec<Verdict>> {
        let columns = Columns::of(batch.iter().map(|settling| settling.claim));
        let results: Vec<Option<&str>> = batch
            .iter()
            .map(|settling| match &settling.settlement {
                Settlement::Complete(result) => result.as_deref(),
                Settlement::Fail(_) | Settlement::Release(_) => None,
            })
            .collect();
        let [jobs, claims, numbers] = columns.params();
        let row = connection.query_one(&self.complete, &[jobs, claims, numbers, (&results, Type::TEXT_ARRAY)])?;
        verdicts(connection, &row)
    }

    fn fail(&self, connection: &mut Connection, batch: &[Settling]) -> Result<Vec<Verdict>> {
        let mut reports = String::from("[");
        for settling in batch {
            if let Settlement::Fail(failure) = &settling.settlement {
                if reports.len() > 1 {
                    reports.push(',');
                }
                reports.push_str(&fail_report(&settling.claim, failure));
            }
        }
        reports.push(']');
        #[derive(Deserialize)]
        struct Answer {
            error: Option<String>,
        }
        let text = connection.query_text(&self.fail, &[(&reports, Type::TEXT)])?.unwrap_or_default();
        let answers: Vec<Answer> = serde_json::from_str(&text)
            .map_err(|e| Error::new(Kind::Internal, format!("the answer of fail cannot be read: {e}")))?;
        Ok(answers
            .into_iter()
            .map(|answer| if answer.error.is_some() { Verdict::LeaseLost } else { Verdict::Accepted })
            .collect())
    }

    /// The last progress values. A lost lease is no news here.
    pub fn progress<'a>(
        &self,
        connection: &mut Connection,
        values: impl Iterator<Item = (Claim, &'a str)> + Clone,
    ) -> Result<()> {
        let columns = Columns::of(values.clone().map(|(claim, _)| claim));
        let texts: Vec<&str> = values.map(|(_, value)| value).collect();
        let [jobs, claims, numbers] = columns.params();
        connection.query(&self.progress, &[jobs, claims, numbers, (&texts, Type::TEXT_ARRAY)]).map(|_| ())
    }

    /// Announces that a notification is wanted.
    pub fn sleep(
        &self,
        connection: &mut Connection,
        worker: i32,
        channel: &str,
        options: &Options,
        ms: i64,
    ) -> Result<()> {
        let params: [Param<'_>; 5] = [
            (&worker, Type::INT4),
            (&channel, Type::TEXT),
            (&options.queues, Type::TEXT_ARRAY),
            (&options.types, Type::TEXT_ARRAY),
            (&ms, Type::INT8),
        ];
        connection.query(&self.sleep, &params).map(|_| ())
    }

    /// Takes the announcement back.
    pub fn wake(&self, connection: &mut Connection, worker: i32) -> Result<()> {
        connection.query(&self.wake, &[(&worker, Type::INT4)]).map(|_| ())
    }

    /// The worker ends.
    pub fn unregister(&self, connection: &mut Connection, worker: i32) -> Result<()> {
        connection.query(&self.unregister, &[(&worker, Type::INT4)]).map(|_| ())
    }

    /// Renews leases; one code per claim.
    pub fn heartbeat(
        &self,
        connection: &mut Connection,
        claims: impl Iterator<Item = Claim>,
        lease_ms: i64,
        async_commit: bool,
    ) -> Result<Vec<i16>> {
        let columns = Columns::of(claims);
        let [jobs, ids, numbers] = columns.params();
        let params = [jobs, ids, numbers, (&lease_ms as _, Type::INT8), (&async_commit as _, Type::BOOL)];
        let row = connection.query_one(&self.heartbeat, &params)?;
        get::<Option<Vec<i16>>>(connection, &row, 0).map(Option::unwrap_or_default)
    }

    /// Promotes, recovers and expires: (rows moved, more is due, until the next known time).
    pub fn tick(&self, connection: &mut Connection, max_rows: i32, full: bool) -> Result<(i32, bool, Option<i64>)> {
        let row = connection.query_one(&self.tick, &[(&max_rows, Type::INT4), (&full, Type::BOOL)])?;
        let promoted: i32 = get(connection, &row, 0)?;
        let recovered: i32 = get(connection, &row, 1)?;
        Ok((promoted + recovered, get(connection, &row, 3)?, get(connection, &row, 4)?))
    }

    /// Removes what retention no longer keeps: how many jobs.
    pub fn prune(&self, connection: &mut Connection, max_rows: i32) -> Result<i32> {
        let row = connection.query_one(&self.prune, &[(&max_rows, Type::INT4)])?;
        get(connection, &row, 0)
    }

    /// A sign of life.
    pub fn seen(&self, connection: &mut Connection, worker: i32, running: i32) -> Result<()> {
        connection.query(&self.seen, &[(&worker, Type::INT4), (&running, Type::INT4)]).map(|_| ())
    }

    /// The contract of a type in one version; none when there is none.
    pub fn contract(&self, connection: &mut Connection, kind: &str, version: &str) -> Result<Option<Contract>> {
        let args = serde_json::json!({"type": kind, "version": version}).to_string();
        let text = connection.query_text(&self.contract, &[(&args, Type::TEXT)])?;
        text.filter(|text| text != "null").map(|text| Contract::read(&text)).transpose()
    }

    /// A notification to ourselves.
    pub fn ping(&self, connection: &mut Connection, channel: &str, number: u64) -> Result<()> {
        let payload = format!("p{number}");
        connection
            .query("select pg_catalog.pg_notify($1, $2)", &[(&channel, Type::TEXT), (&payload, Type::TEXT)])
            .map(|_| ())
    }
}
