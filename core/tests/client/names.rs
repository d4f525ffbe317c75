//! Any name works as a schema through its whole life, or is refused before anything is sent (T27).

use crate::support::{Database, call, try_call};
use drayhorse_core::bridge::Client;
use serde_json::json;

const NAMES: [&str; 13] = [
    "o'brien",
    "a\"b",
    "a$$b",
    "x.job",
    "a\\b",
    "user",
    "1q",
    "my-schema",
    "Größe",
    "UPPER lower",
    "new\nline; select 1",
    "q'); drop table jobs;--",
    "sixty_three_bytes_is_the_longest_name_that_postgresql_keeps_who",
];

fn life_cycle(variable: &str) {
    let role = format!("names_reader_{}", std::process::id());
    for name in NAMES {
        assert!(name.len() <= 63, "{name}");
        let mut database = Database::named(variable, name);
        let client = database.client();
        assert_eq!(call(&client, "schemaVersion", json!({}))["version"], json!(null), "{name}");
        assert_eq!(call(&client, "migrate", json!({}))["applied"], json!([1]), "{name}");
        assert_eq!(call(&client, "migrate", json!({}))["applied"], json!([]), "{name}");
        call(&client, "assertCompatible", json!({}));
        // The same awkward text as data.
        let options = json!({"queue": name, "idempotencyKey": {"key": name}, "tags": [name], "maxAttempts": 2});
        let job = call(&client, "enqueue", json!({"type": name, "payload": {name: name}, "options": options}));
        let claims = call(&client, "claim", json!({"queues": [name], "handlers": [{"type": name, "version": "1"}]}));
        assert_eq!(claims[0]["id"], job["id"], "{name}");
        assert_eq!(claims[0]["payload"], json!({name: name}), "{name}");
        let claim = json!({"id": claims[0]["id"], "fence": claims[0]["fence"]});
        assert_eq!(call(&client, "heartbeat", json!({"claims": [claim]})), json!(["accepted"]), "{name}");
        call(&client, "complete", json!({"claim": claim, "result": name}));
        let outcome = call(&client, "wait", json!({"id": job["id"], "timeoutMs": 1000}));
        assert_eq!((&outcome["state"], &outcome["result"]), (&json!("succeeded"), &json!(name)), "{name}");
        assert_eq!(call(&client, "list", json!({"filter": {"queue": name}}))["jobs"].as_array().map(Vec::len), Some(1));
        call(&client, "advanceClock", json!({"ms": 1}));
        database.sql(&format!("create role {role}"));
        call(&client, "grant", json!({"role": role, "access": "reader"}));
        call(&client, "revoke", json!({"role": role, "access": "reader"}));
        database.sql(&format!("drop role {role}"));
        client.close();
    }
}

#[test]
fn awkward_schema_names_work_on_18() {
    life_cycle("DRAYHORSE_TEST_URL");
}

#[test]
fn awkward_schema_names_work_on_15() {
    life_cycle("DRAYHORSE_TEST_URL_15");
}

#[test]
fn longer_names_are_refused_before_any_statement() {
    // Nobody listens there: a statement could not even be tried.
    for name in ["x".repeat(64), "ü".repeat(32), String::new()] {
        let options = json!({"schema": name}).to_string();
        let error = Client::connect("postgresql://postgres@127.0.0.1:1/none", &options).unwrap_err();
        assert_eq!(error.code(), "invalid_argument");
        assert_eq!(error.details()["field"], "schema");
    }
}

#[test]
fn unknown_verbs_are_refused() {
    let client = Client::connect("postgresql://postgres@127.0.0.1:1/none", "{}").unwrap();
    for verb in ["drop", "", "rpc_get", "get; drop table job"] {
        assert_eq!(try_call(&client, verb, json!({})).unwrap_err().code(), "invalid_argument", "{verb}");
    }
    assert!(call(&client, "errorTable", json!({})).as_array().is_some_and(|table| table.len() == 23));
    assert_eq!(call(&client, "httpDecision", json!({"response": {"status": 503}}))["retryable"], json!(true));
}
