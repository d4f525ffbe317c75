//! Between the machine's values and SQL's columns: the arrays the functions take, the rows they return, and the JSON
//! of a failure.

use serde::Deserialize;
use uuid::Uuid;

use crate::error::{Error, Kind, Result};
use crate::json::{self, MAX_VALUE_BYTES};
use crate::machine::{Claim, ClaimRow, Extra, Failure, Verdict};
use crate::store::{Connection, Param, Row, Type};

/// Claims as the parallel arrays the functions take.
pub(super) struct Columns {
    jobs: Vec<Uuid>,
    claims: Vec<Uuid>,
    numbers: Vec<i16>,
}

impl Columns {
    pub(super) fn of(claims: impl Iterator<Item = Claim>) -> Columns {
        let mut columns = Columns { jobs: Vec::new(), claims: Vec::new(), numbers: Vec::new() };
        for claim in claims {
            columns.jobs.push(claim.job);
            columns.claims.push(claim.claim);
            columns.numbers.push(claim.number);
        }
        columns
    }

    pub(super) fn params(&self) -> [Param<'_>; 3] {
        [(&self.jobs, Type::UUID_ARRAY), (&self.claims, Type::UUID_ARRAY), (&self.numbers, Type::INT2_ARRAY)]
    }
}

pub(super) fn get<'a, T: postgres::types::FromSql<'a>>(
    connection: &Connection,
    row: &'a Row,
    column: usize,
) -> Result<T> {
    row.try_get(column).map_err(|e| connection.refuse_row(e))
}

pub(super) fn verdicts(connection: &Connection, row: &Row) -> Result<Vec<Verdict>> {
    let codes: Option<Vec<i16>> = get(connection, row, 0)?;
    Ok(codes
        .unwrap_or_default()
        .into_iter()
        .map(|code| match code {
            0 | 1 => Verdict::Accepted,
            3 => Verdict::ResultRefused,
            _ => Verdict::LeaseLost,
        })
        .collect())
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct GivenExtra {
    tags: Vec<String>,
    max_attempts: Option<i64>,
    deadline: Option<String>,
    run_id: Option<String>,
    idempotency_key: Option<String>,
    synthetic: bool,
    checkpoints: bool,
    contract: bool,
    ends_by: Option<String>,
}

pub(super) fn claim_row(connection: &Connection, claim: Uuid, row: &Row) -> Result<ClaimRow> {
    let payload: Option<String> = get(connection, row, 6)?;
    // What the database keeps is valid; the scan only tells whether doubles can hold its integers.
    let big_numbers = payload
        .as_deref()
        .is_some_and(|text| json::scan(text, "payload", 2 * MAX_VALUE_BYTES).is_ok_and(|found| found.big_numbers));
    let extra: Option<String> = get(connection, row, 7)?;
    let extra: GivenExtra = match extra {
        Some(text) => serde_json::from_str(&text)
            .map_err(|e| Error::new(Kind::Internal, format!("a claim's extra cannot be read: {e}")))?,
        None => GivenExtra::default(),
    };
    Ok(ClaimRow {
        claim: Claim { job: get(connection, row, 0)?, claim, number: get(connection, row, 1)? },
        lane: get(connection, row, 2)?,
        seq: get(connection, row, 3)?,
        attempt: get(connection, row, 4)?,
        ends_ms: get(connection, row, 5)?,
        payload,
        big_numbers,
        extra: Extra {
            tags: extra.tags,
            max_attempts: extra.max_attempts,
            deadline: extra.deadline,
            run_id: extra.run_id,
            idempotency_key: extra.idempotency_key,
            synthetic: extra.synthetic,
            ends_by_deadline: extra.ends_by.as_deref() == Some("deadline"),
            checkpoints: extra.checkpoints,
            contract: extra.contract,
        },
    })
}

/// One element of `fail`'s argument; the error goes in as the text it is.
pub(super) fn fail_report(claim: &Claim, failure: &Failure) -> String {
    let mut rest = serde_json::Map::new();
    if let Some(retryable) = failure.retryable {
        rest.insert("retryable".into(), retryable.into());
    }
    if let Some(ms) = failure.worker_delay_ms {
        rest.insert("workerDelayMs".into(), ms.into());
    }
    if let Some(ms) = failure.retry_after_ms {
        rest.insert("retryAfterMs".into(), ms.into());
    }
    if let Some(text) = &failure.override_refused {
        rest.insert("overrideRefused".into(), text.as_str().into());
    }
    if let Some(text) = &failure.hint_ignored {
        rest.insert("hintIgnored".into(), text.as_str().into());
    }
    if failure.uncertain {
        rest.insert("uncertain".into(), true.into());
    }
    if failure.cancellation {
        rest.insert("cancellation".into(), true.into());
    }
    let rest = serde_json::Value::Object(rest).to_string();
    let more = rest.trim_start_matches('{');
    let comma = if more == "}" { "" } else { "," };
    format!(
        r#"{{"id":"{}","claim":"{}","number":{},"cause":"{}","error":{}{comma}{more}"#,
        claim.job,
        claim.claim,
        claim.number,
        failure.cause.as_str(),
        failure.error,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Cause;

    #[test]
    fn a_failure_report_is_one_json_object() {
        let claim = Claim { job: Uuid::from_u128(1), claim: Uuid::from_u128(2), number: 3 };
        let plain = fail_report(&claim, &Failure::of(Cause::Timeout, "Timeout", "too long"));
        let value: serde_json::Value = serde_json::from_str(&plain).unwrap();
        assert_eq!((&value["cause"], &value["error"]["name"]), (&"timeout".into(), &"Timeout".into()));
        assert_eq!(value.as_object().unwrap().len(), 5);
        let full = Failure {
            retryable: Some(false),
            worker_delay_ms: Some(5),
            retry_after_ms: Some(1_000),
            uncertain: true,
            override_refused: Some("a \"b\"".into()),
            hint_ignored: Some("n".into()),
            cancellation: true,
            ..Failure::of(Cause::Error, "E", "m")
        };
        let value: serde_json::Value = serde_json::from_str(&fail_report(&claim, &full)).unwrap();
        assert_eq!((&value["retryable"], &value["overrideRefused"]), (&false.into(), &"a \"b\"".into()));
        assert_eq!(value.as_object().unwrap().len(), 12);
    }
}
