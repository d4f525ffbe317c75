//! Publishing, and enqueues that are checked before they are sent.

use crate::support::{call, on_each_server, try_call};
use serde_json::{Value, json};
use std::sync::mpsc;
use std::time::Duration;

fn amount() -> Value {
    json!({"type": "object", "properties": {"amount": {"type": "integer", "minimum": 1}}, "required": ["amount"]})
}

#[test]
fn what_is_no_schema_is_refused_before_anything_is_written() {
    on_each_server("no_schema", |database| {
        let client = database.client();
        for (part, schema) in [
            ("inputSchema", json!({"type": "no such type"})),
            ("outputSchema", json!({"$ref": "#/$defs/missing"})),
            ("outputSchema", json!({"$ref": "https://example.com/a.json"})),
            ("inputSchema", json!(7)),
            ("outputSchema", Value::Null),
        ] {
            let error = try_call(&client, "contracts.publish", json!({"type": "t", part: schema})).unwrap_err();
            assert_eq!((error.code(), &error.details()["field"]), ("invalid_argument", &json!(part)), "{schema}");
        }
        assert_eq!(database.count("contract"), 0);
        assert_eq!(call(&client, "contracts.list", json!({}))["contractsVersion"], 0);
        // SQL keeps what it is given, as long as it is a schema by its kind.
        let raw = database.try_sql(r#"select rpc_contracts_publish('{"type":"t","outputSchema":7}')"#).unwrap_err();
        assert_eq!(raw.details()["field"], "outputSchema");
    });
}

#[test]
fn a_client_that_knew_of_none_learns_of_the_first_publication() {
    on_each_server("learns", |database| {
        let (knows_none, publisher) = (database.client(), database.client());
        let charge = |payload: Value| json!({"type": "charge", "payload": payload});
        call(&knows_none, "enqueue", charge(json!("free")));
        call(&publisher, "contracts.publish", json!({"type": "charge", "inputSchema": amount()}));
        let before = database.count("job");
        let error = try_call(&knows_none, "enqueue", charge(json!({"amount": 0}))).unwrap_err();
        assert_eq!(error.code(), "contract_violation");
        assert_eq!(error.message(), "payload does not match contract charge@1: payload.amount must be at least 1");
        assert_eq!(error.details()["path"], "payload.amount");
        assert_eq!(error.details()["problems"], json!([{"path": "payload.amount", "message": "must be at least 1"}]));
        let jobs = json!({"jobs": [charge(json!({"amount": 1})), {"type": "other"}, {"type": "charge"}]});
        let error = try_call(&knows_none, "enqueueMany", jobs).unwrap_err();
        assert_eq!(error.details()["path"], "jobs[2].payload", "a missing payload counts as null");
        assert_eq!(database.count("job"), before, "nothing was written");
        let sound = call(&knows_none, "enqueue", charge(json!({"amount": 12345678901234567890_u64})));
        let job = format!("(select from job where id = '{}' and contracted)", sound["id"].as_str().unwrap());
        assert_eq!(database.count(&job), 1);
        // Another version of the type is another contract: none here.
        let other = json!({"type": "charge", "payload": "free", "options": {"version": "2"}});
        call(&knows_none, "enqueue", other.clone());
        call(&publisher, "contracts.publish", json!({"type": "charge", "version": "2", "inputSchema": amount()}));
        assert_eq!(try_call(&knows_none, "enqueue", other).unwrap_err().code(), "contract_violation");
    });
}

#[test]
fn of_enqueues_that_share_a_statement_only_the_violating_ones_fail() {
    on_each_server("shared", |database| {
        let client = database.client_with(json!({"poolSize": 1}));
        call(&database.client(), "contracts.publish", json!({"type": "charge", "inputSchema": amount()}));
        let (send, receive) = mpsc::channel();
        for n in 0..60 {
            let args = json!({"type": "charge", "payload": {"amount": n % 3}}).to_string();
            let send = send.clone();
            client.submit("enqueue", &args, Box::new(move |result| send.send((n, result)).unwrap()));
        }
        for _ in 0..60 {
            let (n, result) = receive.recv_timeout(Duration::from_secs(30)).unwrap();
            match result {
                Ok(_) => assert_ne!(n % 3, 0),
                Err(error) => assert_eq!((n % 3, error.code()), (0, "contract_violation")),
            }
        }
        assert_eq!(database.count("job"), 40);
    });
}

#[test]
fn publications_that_never_cease_lose_no_enqueue() {
    on_each_server("storm", |database| {
        let (client, publisher) = (database.client(), database.client());
        let storm = std::thread::spawn(move || {
            for n in 0..60 {
                call(&publisher, "contracts.publish", json!({"type": format!("other{n}"), "inputSchema": false}));
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let mut sent = 0;
        while !storm.is_finished() {
            call(&client, "enqueue", json!({"type": "t", "payload": sent}));
            sent += 1;
        }
        storm.join().unwrap();
        assert_eq!(database.count("job"), sent);
        assert_eq!(try_call(&client, "enqueue", json!({"type": "other59"})).unwrap_err().code(), "contract_violation");
    });
}

#[test]
fn a_schema_that_was_made_anew_is_noticed() {
    on_each_server("anew", |database| {
        let client = database.client();
        call(&client, "contracts.publish", json!({"type": "t", "inputSchema": false}));
        call(&client, "contracts.publish", json!({"type": "u", "inputSchema": false}));
        assert_eq!(try_call(&client, "enqueue", json!({"type": "t"})).unwrap_err().code(), "contract_violation");
        let schema = database.store().schema().quoted().to_owned();
        database.sql(&format!("set client_min_messages = warning; drop schema {schema} cascade"));
        database.migrate();
        call(&client, "enqueue", json!({"type": "t"}));
        call(&client, "enqueue", json!({"type": "u"}));
        // The same number of publications, of other contents.
        call(&database.client(), "contracts.publish", json!({"type": "t", "inputSchema": {"type": "string"}}));
        call(&client, "enqueue", json!({"type": "t", "payload": "x"}));
        let error = try_call(&client, "enqueue", json!({"type": "t", "payload": 1})).unwrap_err();
        assert_eq!(error.details()["problems"][0]["message"], "must be a string");
        assert_eq!(database.count("job"), 3);
    });
}
