//! Behind PgBouncer in transaction mode: no refused parameter, no prepared statement, nothing left on a session (T30).

use crate::support::{Database, call, url};
use drayhorse_core::bridge::Client;
use serde_json::{Value, json};
use std::thread;

#[test]
fn twenty_clients_share_five_sessions() {
    let pooler = url("DRAYHORSE_PGBOUNCER_URL");
    let mut database = Database::empty("DRAYHORSE_PGBOUNCER_URL", "pooler");
    let options = json!({"schema": database.schema, "poolSize": 2, "statementTimeoutMs": 20000}).to_string();
    let client = Client::connect(&pooler, &options).unwrap();
    call(&client, "migrate", json!({}));
    let with_timeout = format!("{pooler}?options=-c%20statement_timeout%3D20s&application_name=pooled");
    thread::scope(|scope| {
        for n in 0..20 {
            let (options, with_timeout) = (&options, &with_timeout);
            scope.spawn(move || {
                let client = Client::connect(with_timeout, options).unwrap();
                for i in 0..10 {
                    let jobs: Vec<Value> = (0..5).map(|k| json!({"type": "t", "payload": [n, i, k]})).collect();
                    call(&client, "enqueueMany", json!({"jobs": jobs}));
                    let claims =
                        call(&client, "claim", json!({"handlers": [{"type": "t", "version": "1"}], "limit": 5}));
                    for claim in claims.as_array().unwrap() {
                        let claim = json!({"id": claim["id"], "fence": claim["fence"]});
                        call(&client, "complete", json!({"claim": claim}));
                    }
                }
                client.close();
            });
        }
        for _ in 0..3 {
            // Ends one of the pooler's sessions, whichever serves this statement.
            let mut own = database.store().connect().unwrap();
            own.query("select pg_terminate_backend(pg_backend_pid())", &[]).unwrap_err();
        }
    });
    loop {
        let claims = call(&client, "claim", json!({"handlers": [{"type": "t", "version": "1"}], "limit": 1000}));
        let claims = claims.as_array().unwrap().clone();
        if claims.is_empty() {
            break;
        }
        for claim in claims {
            call(&client, "complete", json!({"claim": {"id": claim["id"], "fence": claim["fence"]}}));
        }
    }
    assert_eq!(call(&client, "counts", json!({}))["succeeded"], 1000);
    client.close();
    for _ in 0..10 {
        let mut own = database.store().connect().unwrap();
        let row = own.query_one(
            "select (select count(*) from pg_prepared_statements),
                current_setting('search_path') = (select reset_val from pg_settings where name = 'search_path'),
                current_setting('statement_timeout') = (select reset_val from pg_settings where name = 'statement_timeout')",
            &[],
        );
        let row = row.unwrap();
        assert_eq!((row.get::<_, i64>(0), row.get::<_, bool>(1), row.get::<_, bool>(2)), (0, true, true));
    }
    let schema = database.schema.clone();
    assert_eq!(database.count(&format!("{schema}.job")), 1000);
}
