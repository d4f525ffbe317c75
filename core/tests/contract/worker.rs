//! Workers under contract: payloads before the handler, results after it.

use crate::host::{Host, complete};
use crate::support::{Database, call, eventually, on_each_server};
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

fn publish(database: &Database, contract: Value) {
    call(&database.client(), "contracts.publish", contract);
}

/// As a caller without a client does it; returns the id.
fn raw_enqueue(database: &mut Database, job: Value) -> String {
    let text = database.text(&format!("enqueue('{job}')::jsonb->0->>'id'"));
    text.expect("an id")
}

fn wait(database: &Database, id: &str) -> Value {
    call(&database.client(), "wait", json!({"id": id, "timeoutMs": 30_000}))
}

#[test]
fn a_raw_payload_that_violates_fails_without_its_handler() {
    on_each_server("input", |database| {
        let schema = json!({"type": "object", "required": ["amount"]});
        publish(database, json!({"type": "t", "endpoint": "pay", "inputSchema": schema, "maxAttempts": 5}));
        let sound = raw_enqueue(database, json!({"type": "t", "payload": {"amount": 1}}));
        let wrong = raw_enqueue(database, json!({"type": "t", "payload": {"sum": "secret"}}));
        let missing = raw_enqueue(database, json!({"type": "t"}));
        let host = Host::start(database, json!({}), |_| complete(json!({"done": true})));
        assert_eq!(wait(database, &sound)["state"], "succeeded");
        for (id, sentence) in [(&wrong, "payload.amount is missing"), (&missing, "payload must be an object")] {
            let outcome = wait(database, id);
            assert_eq!((&outcome["state"], &outcome["reason"]), (&json!("failed"), &json!("input")), "{outcome}");
            assert_eq!((&outcome["attempt"], &outcome["uncertain"]), (&json!(1), &json!(false)), "{outcome}");
            let message = outcome["error"]["message"].as_str().unwrap();
            assert_eq!(message, format!("payload does not match contract t@1: {sentence}"));
        }
        assert_eq!(host.starts(), 1, "the host saw one job");
        let circuit = call(&database.client(), "endpoints.get", json!({"name": "pay"}))["circuit"].clone();
        assert_eq!((&circuit["state"], &circuit["failures"]), (&json!("closed"), &json!(0)), "neutral");
    });
}

#[test]
fn a_result_that_violates_is_an_output_failure() {
    on_each_server("output", |database| {
        publish(database, json!({"type": "t", "outputSchema": {"type": "integer"}, "maxAttempts": 5}));
        let ids: Vec<String> = [json!(1), json!("no"), json!(null)]
            .into_iter()
            .map(|payload| raw_enqueue(database, json!({"type": "t", "payload": payload})))
            .collect();
        let _host = Host::start(database, json!({}), |job| match job.get("payload") {
            Value::Null => json!({"verb": "complete"}),
            payload => complete(payload.clone()),
        });
        assert_eq!(wait(database, &ids[0])["result"], 1);
        for id in &ids[1..] {
            let outcome = wait(database, id);
            assert_eq!((&outcome["state"], &outcome["reason"]), (&json!("failed"), &json!("output")), "{outcome}");
            assert_eq!((&outcome["attempt"], &outcome["uncertain"]), (&json!(1), &json!(true)), "{outcome}");
            assert_eq!(outcome["error"]["message"], "result does not match contract t@1: result must be an integer");
        }
    });
}

#[test]
fn a_later_publication_and_another_version_change_nothing_for_a_job() {
    on_each_server("later", |database| {
        let before = raw_enqueue(database, json!({"type": "t", "payload": 1}));
        publish(database, json!({"type": "t", "inputSchema": false, "outputSchema": false}));
        let other = raw_enqueue(database, json!({"type": "t", "payload": 1, "version": "2"}));
        let after = raw_enqueue(database, json!({"type": "t", "payload": 1}));
        let handlers = json!([{"type": "t"}, {"type": "t", "version": "2"}]);
        let _host = Host::start(database, json!({"handlers": handlers}), |_| complete(json!("x")));
        assert_eq!(wait(database, &before)["state"], "succeeded");
        assert_eq!(wait(database, &other)["state"], "succeeded");
        assert_eq!(wait(database, &after)["reason"], "input");
        // A redrive runs under the contract of its source.
        let again =
            call(&database.client(), "redrive", json!({"id": after, "reason": "r", "actor": "a", "requestId": "1"}));
        assert_eq!(wait(database, again[0]["id"].as_str().unwrap())["reason"], "input");
    });
}

#[test]
fn a_contract_is_asked_for_until_it_is_answered_and_then_never_again() {
    on_each_server("asked", |database| {
        publish(database, json!({"type": "t", "inputSchema": {"type": "integer"}}));
        // The first three questions fail; a sequence counts them whatever becomes of their transactions.
        database.sql(
            "create sequence questions; alter function rpc_contracts_get(jsonb) rename to real_contracts_get;
             create function rpc_contracts_get(args jsonb) returns text language plpgsql security definer
             set search_path from current as $$ begin
               if nextval('questions') <= 3 then raise exception 'not now'; end if;
               return real_contracts_get(args);
             end $$",
        );
        let ids: Vec<String> = (0..20).map(|n| raw_enqueue(database, json!({"type": "t", "payload": n}))).collect();
        let host = Host::start(database, json!({"concurrency": 4, "leaseMs": 600}), |_| complete(json!(1)));
        for id in &ids {
            let outcome = wait(database, id);
            assert_eq!((&outcome["state"], &outcome["attempt"]), (&json!("succeeded"), &json!(1)), "{outcome}");
        }
        assert_eq!(host.starts(), 20);
        assert_eq!(host.events("error").len(), 1, "said once: {:?}", host.events("error"));
        assert_eq!(database.text("select last_value from questions").as_deref(), Some("4"));
    });
}

#[test]
fn a_broken_schema_that_only_sql_took_fails_its_jobs_by_name() {
    on_each_server("broken", |database| {
        database.sql(r#"select rpc_contracts_publish('{"type":"t","inputSchema":{"type":"no such type"}}')"#);
        let id = raw_enqueue(database, json!({"type": "t", "payload": 1}));
        let host = Host::start(database, json!({}), |_| complete(json!(1)));
        let outcome = wait(database, &id);
        assert_eq!(outcome["reason"], "input");
        assert!(outcome["error"]["message"].as_str().unwrap().contains("inputSchema.type is no JSON Schema"));
        assert_eq!(host.starts(), 0);
    });
}

#[test]
fn claims_by_hand_are_their_loop_s_business() {
    on_each_server("by_hand", |database| {
        publish(database, json!({"type": "t", "inputSchema": false, "outputSchema": false}));
        raw_enqueue(database, json!({"type": "t", "payload": 1}));
        let client = database.client();
        let claims = call(&client, "claim", json!({"handlers": [{"type": "t"}]}));
        let claim = json!({"id": claims[0]["id"], "fence": claims[0]["fence"]});
        assert_eq!(call(&client, "complete", json!({"claim": claim, "result": 1}))["state"], "succeeded");
        eventually("it has ended", PATIENCE, || {
            call(&client, "get", json!({"id": claims[0]["id"]}))["state"] == "succeeded"
        });
    });
}
