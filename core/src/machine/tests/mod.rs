//! The machine's tests: traces that read like a protocol, and a model of the database that checks any order of
//! events.

mod model;
mod traces;

use super::*;

/// Settings of a small worker: lease 30 s, grace 10 s, poll 1 s.
pub(super) fn settings(slots: usize) -> Settings {
    Settings {
        slots,
        prefetch: 0,
        lease_ms: 30_000,
        grace_ms: 10_000,
        poll_ms: 1_000,
        retry_delay_ms: None,
        async_commit: true,
        new_claim_id: Uuid::new_v4,
    }
}

pub(super) fn lane(id: i64, priority: i16, endpoint: Option<&str>) -> LaneRow {
    LaneRow {
        id,
        queue: "default".into(),
        kind: "t".into(),
        version: "1".into(),
        endpoint: endpoint.map(str::to_owned),
        priority,
    }
}

pub(super) fn row(job: u128, claim: Uuid, number: i16, lane: i64, seq: i64) -> ClaimRow {
    ClaimRow {
        claim: Claim { job: Uuid::from_u128(job), claim, number },
        lane,
        seq,
        attempt: 1,
        ends_ms: None,
        payload: None,
        big_numbers: false,
        extra: Extra::default(),
    }
}
