//! The small language of these tests: one call per protocol verb on a raw session.

use drayhorse_core::error::{Error, Result};
use drayhorse_core::store::{Connection, Type};
use serde_json::{Value, json};

/// A size that `DRAYHORSE_SCALE` multiplies, up to the literal one: 1 in `make test`, 100 in `make soak`.
pub fn scaled(small: usize, literal: usize) -> usize {
    let scale: usize = std::env::var("DRAYHORSE_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1);
    (small * scale.max(1)).min(literal)
}

/// `select FUNCTION(ARGS)` with one JSON argument and one JSON answer.
pub fn try_rpc(connection: &mut Connection, function: &str, args: &Value) -> Result<Value> {
    let answer =
        connection.query_text(&format!("select {function}($1::text::jsonb)"), &[(&args.to_string(), Type::TEXT)])?;
    Ok(serde_json::from_str(&answer.expect("an answer")).expect("JSON"))
}

/// The same for calls that must succeed.
pub fn rpc(connection: &mut Connection, function: &str, args: Value) -> Value {
    try_rpc(connection, function, &args).unwrap_or_else(|e: Error| panic!("{function} {args}: {}", e.to_json()))
}

/// Enqueues one job of type `t` and returns its id.
pub fn enqueue(connection: &mut Connection, options: Value) -> String {
    let mut job = json!({"type": "t"});
    job.as_object_mut().expect("an object").extend(options.as_object().expect("an object").clone());
    rpc(connection, "enqueue", job)[0]["id"].as_str().expect("an id").to_owned()
}

/// Claims up to `limit` jobs of type `t`.
pub fn claim(connection: &mut Connection, limit: usize, lease_ms: u64) -> Vec<Value> {
    let args = json!({"handlers": [{"type": "t"}], "limit": limit, "leaseMs": lease_ms});
    rpc(connection, "rpc_claim", args).as_array().expect("an array").clone()
}

/// `{"id", "fence"}` of a claim.
pub fn token(claim: &Value) -> Value {
    json!({"id": claim["id"], "fence": claim["fence"]})
}

pub fn complete(connection: &mut Connection, claim: &Value) -> Result<Value> {
    try_rpc(connection, "rpc_complete", &json!({"claim": token(claim)}))
}

pub fn fail(connection: &mut Connection, claim: &Value, delay_ms: u64) -> Result<Value> {
    let args = json!({"claim": token(claim), "error": {"name": "E", "message": "boom"}, "delayMs": delay_ms});
    try_rpc(connection, "rpc_fail", &args)
}

pub fn snapshot(connection: &mut Connection, id: &str) -> Value {
    rpc(connection, "rpc_get", json!({"id": id}))
}

/// The kinds of a job's timeline, in order.
pub fn kinds(connection: &mut Connection, id: &str) -> Vec<String> {
    rpc(connection, "rpc_timeline", json!({"id": id}))
        .as_array()
        .expect("an array")
        .iter()
        .map(|e| e["kind"].as_str().expect("a kind").to_owned())
        .collect()
}
