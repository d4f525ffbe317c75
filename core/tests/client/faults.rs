//! Failures by name, and what the pool does about those that pass.

use super::proxy::Proxy;
use crate::support::{Database, call, eventually, on_each_server, try_call};
use drayhorse_core::bridge::Client;
use drayhorse_core::store::{Options, Store};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

fn client_at(url: &str, database: &Database, mut options: Value) -> Client {
    options["schema"] = database.schema.clone().into();
    Client::connect(url, &options.to_string()).unwrap()
}

/// A role without any right, at the test's server.
fn role(database: &mut Database, name: &str, settings: &str) -> (String, String) {
    let role = format!("{}_{name}", database.schema);
    database.sql(&format!("create role {role} login {settings}"));
    let url = database.url.replace("postgres@", &format!("{role}@"));
    (role, url)
}

#[test]
fn a_missing_schema_is_named_with_the_version_it_needs() {
    for variable in ["DRAYHORSE_TEST_URL", "DRAYHORSE_TEST_URL_15"] {
        let mut database = Database::empty(variable, "missing");
        let client = database.client();
        for round in 0..2 {
            for (verb, args) in
                [("get", json!({"id": "x"})), ("enqueue", json!({"type": "t"})), ("assertCompatible", json!({}))]
            {
                let error = try_call(&client, verb, args).unwrap_err();
                assert_eq!(error.code(), "schema_missing", "{verb} {round}");
                assert_eq!(error.details()["expected"], json!(drayhorse_core::migrate::LATEST));
            }
            // The second time the schema exists and is empty.
            let schema = database.schema.clone();
            database.sql(&format!("create schema if not exists {schema}"));
        }
    }
}

#[test]
fn a_newer_and_an_older_schema_are_refused_with_both_numbers() {
    on_each_server("versions", |database| {
        let client = database.client();
        call(&client, "assertCompatible", json!({}));
        database.sql("insert into schema_version (version) values (999)");
        for verb in ["assertCompatible", "migrate"] {
            let error = try_call(&client, verb, json!({})).unwrap_err();
            assert_eq!(error.code(), "schema_too_new", "{verb}");
            assert_eq!(
                (&error.details()["version"], &error.details()["expected"]),
                (&json!(999), &json!(drayhorse_core::migrate::LATEST))
            );
        }
        database.sql("update schema_version set version = version - 1000");
        let error = try_call(&client, "assertCompatible", json!({})).unwrap_err();
        assert_eq!(error.code(), "schema_too_old");
        database.sql("drop function rpc_get");
        assert_eq!(try_call(&client, "get", json!({"id": "x"})).unwrap_err().code(), "schema_too_old");
    });
}

#[test]
fn a_missing_right_is_named() {
    on_each_server("rights", |database| {
        let (role, url) = role(database, "r", "");
        let client = client_at(&url, database, json!({}));
        let error = try_call(&client, "enqueue", json!({"type": "t"})).unwrap_err();
        assert_eq!(error.code(), "permission_denied");
        assert!(error.message().contains(&database.schema), "{error}");
        call(&database.client(), "grant", json!({"role": role, "access": "producer"}));
        call(&client, "enqueue", json!({"type": "t"}));
        call(&client, "assertCompatible", json!({}));
        let error = try_call(&client, "claim", json!({"handlers": [{"type": "t", "version": "1"}]})).unwrap_err();
        assert_eq!(error.code(), "permission_denied");
        assert!(error.message().contains("rpc_claim"), "{error}");
        assert_eq!(call(&client, "migrate", json!({}))["applied"], json!([]));
        client.close();
        database.sql(&format!("drop owned by {role}; drop role {role}"));
    });
}

#[test]
fn a_read_only_server_is_left_and_found_again() {
    on_each_server("read_only", |database| {
        let (role, url) = role(database, "r", "");
        call(&database.client(), "grant", json!({"role": role, "access": "producer"}));
        let client = client_at(&url, database, json!({"poolSize": 1}));
        call(&client, "enqueue", json!({"type": "t"}));
        database.sql(&format!("alter role {role} set default_transaction_read_only = on"));
        database.sql(&format!("select pg_terminate_backend(pid) from pg_stat_activity where usename = '{role}'"));
        let error = try_call(&client, "enqueue", json!({"type": "t"})).unwrap_err();
        assert_eq!(error.code(), "read_only");
        // The next call opens another connection, which finds the server writable again.
        database.sql(&format!("alter role {role} reset default_transaction_read_only"));
        call(&client, "enqueue", json!({"type": "t"}));
        client.close();
        database.sql(&format!("drop owned by {role}; drop role {role}"));
    });
}

#[test]
fn a_statement_is_cancelled_when_its_time_is_over() {
    on_each_server("slow", |database| {
        let client = client_at(&database.url, database, json!({"statementTimeoutMs": 300, "poolSize": 1}));
        let mut blocker = database.another_connection();
        blocker.batch("begin; lock table settings in access exclusive mode").unwrap();
        let started = Instant::now();
        let error = try_call(&client, "enqueue", json!({"type": "t"})).unwrap_err();
        assert_eq!(error.code(), "statement_timeout");
        assert!((300..5000).contains(&(started.elapsed().as_millis() as i32)));
        blocker.batch("commit").unwrap();
        call(&client, "enqueue", json!({"type": "t"}));
        assert_eq!(database.count("job"), 1);
    });
}

#[test]
fn a_role_with_its_own_statement_timeout() {
    on_each_server("role_slow", |database| {
        let (role, url) = role(database, "r", "");
        database.sql(&format!("alter role {role} set statement_timeout = '200ms'"));
        call(&database.client(), "grant", json!({"role": role, "access": "producer"}));
        let client = client_at(&url, database, json!({}));
        let mut blocker = database.another_connection();
        blocker.batch("begin; lock table settings in access exclusive mode").unwrap();
        assert_eq!(try_call(&client, "enqueue", json!({"type": "t"})).unwrap_err().code(), "statement_timeout");
        blocker.batch("commit").unwrap();
        client.close();
        database.sql(&format!("drop owned by {role}; drop role {role}"));
    });
}

#[test]
fn terminated_sessions_are_opened_again() {
    on_each_server("terminated", |database| {
        let name = format!("terminated{}", std::process::id());
        let client = client_at(&format!("{}?application_name={name}", database.url), database, json!({"poolSize": 2}));
        for i in 0..20 {
            call(&client, "enqueue", json!({"type": "t", "payload": i}));
            database.sql(&format!(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = '{name}'"
            ));
        }
        assert_eq!(database.count("job"), 20);
        // A wait outlives them, too.
        let job = call(&client, "enqueue", json!({"type": "w"}));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| call(&client, "wait", json!({"id": job["id"], "timeoutMs": 30000})));
            for _ in 0..5 {
                thread::sleep(Duration::from_millis(60));
                database.sql(&format!(
                    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = '{name}'"
                ));
            }
            call(&client, "cancel", json!({"id": job["id"], "reason": "test", "actor": "test"}));
            assert_eq!(waiting.join().unwrap()["state"], "canceled");
        });
    });
}

#[test]
fn a_lost_reply_makes_no_second_job() {
    on_each_server("lost_reply", |database| {
        let proxy = Proxy::start(&database.url);
        let client = client_at(&proxy.url(), database, json!({"poolSize": 1}));
        call(&client, "schemaVersion", json!({}));
        let filler = "x".repeat(3000);
        for i in 0..30 {
            proxy.lose_replies(3000);
            let before = proxy.lost.load(Ordering::SeqCst);
            let healer = thread::scope(|scope| {
                scope.spawn(|| {
                    eventually("a reply is lost", Duration::from_secs(10), || {
                        proxy.lost.load(Ordering::SeqCst) > before
                    });
                    proxy.heal();
                });
                match i % 3 {
                    0 => call(&client, "enqueue", json!({"type": "t", "payload": [i, filler]})),
                    1 => call(&client, "enqueueMany", json!({"jobs": [{"type": "t", "payload": [i, filler]}]})),
                    _ => {
                        let key = json!({"idempotencyKey": {"key": format!("k{i}")}});
                        call(&client, "enqueue", json!({"type": "t", "payload": [i, filler], "options": key}))
                    }
                }
            });
            assert!(healer.to_string().contains("\"id\""));
        }
        assert_eq!(database.count("job"), 30);
        assert_eq!(proxy.lost.load(Ordering::SeqCst), 30);
    });
}

/// The connection breaks while the first send is still at work: the second meets what it is about to commit.
#[test]
fn a_second_send_that_overtakes_the_first_makes_no_second_job() {
    on_each_server("overtaken", |database| {
        let proxy = Proxy::start(&database.url);
        let client = client_at(&proxy.url(), database, json!({"poolSize": 1}));
        call(&client, "schemaVersion", json!({}));
        database.sql(
            "create function linger() returns trigger language plpgsql as $$ begin perform pg_sleep(0.6); return null; end $$;
             create trigger linger after insert on runtime for each row execute function linger()",
        );
        proxy.break_off(3000);
        let made = thread::scope(|scope| {
            scope.spawn(|| {
                eventually("the connection breaks", Duration::from_secs(10), || proxy.lost.load(Ordering::SeqCst) > 0);
                proxy.heal();
            });
            call(&client, "enqueue", json!({"type": "t", "payload": "x".repeat(3000)}))
        });
        assert_eq!(made["replayed"], true, "the first send was not at work any more: {made}");
        assert_eq!(database.count("job"), 1);
    });
}

#[test]
fn a_claim_whose_reply_was_lost_gives_the_same_rows() {
    on_each_server("lost_claim", |database| {
        let proxy = Proxy::start(&database.url);
        let client = client_at(&proxy.url(), database, json!({"poolSize": 1}));
        let handlers: Vec<Value> = (0..100).map(|i| json!({"type": format!("{i:060}"), "version": "1"})).collect();
        let enqueued = call(&client, "enqueue", json!({"type": handlers[7]["type"]}));
        proxy.lose_replies(3000);
        let claims = thread::scope(|scope| {
            scope.spawn(|| {
                eventually("a reply is lost", Duration::from_secs(10), || proxy.lost.load(Ordering::SeqCst) > 0);
                proxy.heal();
            });
            call(&client, "claim", json!({"handlers": handlers, "limit": 5}))
        });
        assert_eq!(claims[0]["id"], enqueued["id"]);
        assert_eq!(claims[0]["attempt"], 1);
    });
}

#[test]
fn a_silent_server_is_given_up_and_used_again() {
    let database = Database::migrated("DRAYHORSE_TEST_URL", "silent");
    let proxy = Proxy::start(&database.url);
    let options = json!({"poolSize": 1, "statementTimeoutMs": 300, "connectTimeoutMs": 1000});
    let client = client_at(&proxy.url(), &database, options);
    call(&client, "enqueue", json!({"type": "t"}));
    proxy.swallow();
    let started = Instant::now();
    let error = try_call(&client, "enqueue", json!({"type": "t"})).unwrap_err();
    assert_eq!(error.code(), "connection_lost");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    proxy.heal();
    call(&client, "enqueue", json!({"type": "t"}));
}

#[test]
fn a_database_that_was_never_reached_is_told_at_once() {
    let client = Client::connect("postgresql://postgres@127.0.0.1:1/none", "{}").unwrap();
    let started = Instant::now();
    assert_eq!(try_call(&client, "enqueue", json!({"type": "t"})).unwrap_err().code(), "connection_lost");
    assert!(started.elapsed() < Duration::from_secs(2));
    let url = crate::support::url("DRAYHORSE_TEST_URL");
    let absent = format!("{}/no_such_database", url.rsplit_once('/').unwrap().0);
    let error = Client::connect(&absent, "{}").unwrap().call("schemaVersion", "{}").unwrap_err();
    assert_eq!((error.code(), &error.details()["sqlstate"]), ("invalid_argument", &json!("3D000")));
}

#[test]
fn conflicts_are_repeated_in_the_core() {
    on_each_server("conflict", |database| {
        database.sql(
            "create table tried (n int); insert into tried values (0); create sequence tries;
             create or replace function rpc_get(args jsonb) returns text language plpgsql as $$
             begin
               if nextval('tries') < 4 then raise exception using errcode = '40001', message = 'gave way'; end if;
               return '{}';
             end $$",
        );
        let schema = format!("alter function rpc_get set search_path = {}", database.schema);
        database.sql(&schema);
        call(&database.client(), "get", json!({"id": "x"}));
        assert_eq!(database.text("select last_value from tries").as_deref(), Some("4"));
    });
}

#[test]
fn the_error_table_of_sql_is_the_cores() {
    on_each_server("codes", |database| {
        let codes = database.text("select array_to_string(error_codes(), ',')").unwrap();
        let own: Vec<&str> = drayhorse_core::error::Kind::ALL.iter().map(|kind| kind.code()).collect();
        assert_eq!(codes, own.join(","));
    });
}

#[test]
fn notifications_arrive_and_a_dead_listener_is_noticed() {
    on_each_server("listen", |database| {
        let options = Options { schema: database.schema.clone(), ..Options::default() };
        let store = Store::open(&database.url, options).unwrap();
        let mut listener = store.connect().unwrap();
        listener.batch("listen \"a channel\"").unwrap();
        assert_eq!(listener.notifications(Duration::from_millis(20)).unwrap(), []);
        database.sql("select pg_notify('a channel', 'w')");
        let got = listener.notifications(Duration::from_secs(5)).unwrap();
        assert_eq!((got[0].channel.as_str(), got[0].payload.as_str()), ("a channel", "w"));
        let pid: i32 = listener.query_one("select pg_backend_pid()", &[]).unwrap().get(0);
        database.sql(&format!("select pg_terminate_backend({pid})"));
        let error = listener.notifications(Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.code(), "connection_lost");
        assert!(listener.is_broken());
        assert_eq!(listener.query("select 1", &[]).unwrap_err().code(), "connection_lost");
    });
}

#[test]
fn too_many_connections_come_with_advice() {
    on_each_server("crowded", |database| {
        let (role, url) = role(database, "r", "connection limit 0");
        let error = try_call(&client_at(&url, database, json!({})), "schemaVersion", json!({})).unwrap_err();
        assert_eq!((error.code(), &error.details()["sqlstate"]), ("connection_lost", &json!("53300")));
        assert!(error.message().contains("poolSize"), "{error}");
        database.sql(&format!("drop role {role}"));
    });
}
