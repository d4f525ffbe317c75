//! Enqueues on the caller's own connection: how a stale answer leads to another statement, whatever that transaction
//! sees.

use crate::support::{call, on_each_server, try_call};
use drayhorse_core::bridge::Client;
use drayhorse_core::store::{Connection, Type};
use serde_json::{Value, json};

/// What every binding does: run the statement, let the core read the answer, and build it again while it is stale.
fn enqueue(client: &Client, own: &mut Connection, jobs: &Value) -> Result<(Value, usize), String> {
    let mut args = json!({ "jobs": jobs });
    for sends in 1..=4 {
        let statement = try_call(client, "enqueueStatement", args.clone()).map_err(|e| e.code().to_owned())?;
        let (sql, text) = (statement["sql"].as_str().unwrap(), statement["params"][0].as_str().unwrap());
        let answer = own.query_text(sql, &[(&text, Type::TEXT)]).unwrap().unwrap();
        let answer = call(client, "enqueueAnswer", json!({ "answer": answer }));
        match answer.get("stale") {
            Some(_) => args["contracts"] = answer["contracts"].clone(),
            None => {
                assert_eq!(answer[0]["id"], statement["ids"][0]);
                return Ok((answer, sends));
            }
        }
    }
    panic!("stale for ever");
}

fn positive() -> Value {
    json!({"type": "integer", "minimum": 1})
}

#[test]
fn a_stale_statement_is_built_again_and_checked_before_it_is_sent() {
    on_each_server("stale", |database| {
        let (client, other) = (database.client(), database.client());
        call(&other, "contracts.publish", json!({"type": "charge", "inputSchema": positive()}));
        let mut own = database.another_connection();
        own.batch("begin").unwrap();
        let good = json!([{"type": "charge", "payload": 7}, {"type": "free", "payload": "x"}]);
        let bad = json!([{"type": "charge", "payload": 0}]);
        assert_eq!(enqueue(&client, &mut own, &good).unwrap().1, 2);
        assert_eq!(enqueue(&client, &mut own, &good).unwrap().1, 1, "now it is known");
        assert_eq!(enqueue(&client, &mut own, &bad).unwrap_err(), "contract_violation");
        own.batch("commit").unwrap();
        assert_eq!(database.count("job"), 4);
    });
}

#[test]
fn a_snapshot_from_before_a_publication_takes_the_older_version() {
    on_each_server("snapshot", |database| {
        let (client, other) = (database.client(), database.client());
        call(&other, "contracts.publish", json!({"type": "a", "inputSchema": positive()}));
        let mut own = database.another_connection();
        own.batch("begin isolation level repeatable read; select 1 from settings").unwrap();
        call(&other, "contracts.publish", json!({"type": "b", "inputSchema": positive()}));
        // The client knows version 2, the transaction will see 1 as long as it lives.
        call(&client, "enqueue", json!({"type": "b", "payload": 1}));
        let jobs = json!([{"type": "a", "payload": 1}]);
        assert_eq!(enqueue(&client, &mut own, &jobs).unwrap().1, 2);
        own.batch("commit").unwrap();
        // And the client's own enqueues are none the worse for it.
        assert_eq!(
            try_call(&client, "enqueue", json!({"type": "b", "payload": 0})).unwrap_err().code(),
            "contract_violation"
        );
        assert_eq!(database.count("job"), 2);
    });
}

#[test]
fn a_publication_in_the_same_transaction_is_left_to_the_worker() {
    on_each_server("own_publication", |database| {
        let client = database.client();
        call(&client, "contracts.publish", json!({"type": "a", "inputSchema": positive()}));
        let mut own = database.another_connection();
        own.batch(r#"begin; select rpc_contracts_publish('{"type":"b","inputSchema":false}')"#).unwrap();
        let jobs = json!([{"type": "b", "payload": 1}]);
        assert_eq!(enqueue(&client, &mut own, &jobs).unwrap().1, 2, "none known, then its own");
        own.batch("rollback").unwrap();
        let sound = call(&client, "enqueue", json!({"type": "b", "payload": 1}));
        assert_eq!(sound["replayed"], false);
        assert_eq!(database.count("(select from job where contracted)"), 0);
    });
}

#[test]
fn what_is_no_answer_is_refused() {
    on_each_server("answers", |database| {
        let client = database.client();
        for answer in [json!(null), json!("{}"), json!("x"), json!(7), json!("[")] {
            let error = try_call(&client, "enqueueAnswer", json!({ "answer": answer })).unwrap_err();
            assert_eq!((error.code(), &error.details()["field"]), ("invalid_argument", &json!("answer")));
        }
        let jobs = json!({"jobs": [{"type": "t"}], "contracts": -1});
        let error = try_call(&client, "enqueueStatement", jobs).unwrap_err();
        assert_eq!(error.details()["field"], "contracts");
    });
}
