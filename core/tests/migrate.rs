//! Migrations that meet: many processes on an empty database, killed ones, limited roles, other people's schemas (T48,
//! T49), also through PgBouncer.

mod support;

use drayhorse_core::bridge::Client;
use drayhorse_core::migrate::LATEST;
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use support::{Database, call, try_call};

/// Rounds of the races; the soak runs more.
fn rounds() -> usize {
    std::env::var("DRAYHORSE_SCALE")
        .ok()
        .and_then(|scale| scale.parse().ok())
        .map_or(20, |scale: f64| (20.0 * scale).ceil() as usize)
}

/// This test binary again, as a process that migrates `schema` at `url` and ends with 0 when that went well.
fn migrating_process(url: &str, schema: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_migrates", "--quiet"])
        .env("MIGRATE_URL", url)
        .env("MIGRATE_SCHEMA", schema)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn the_process_that_migrates() {
    // Does something only in a process that another test has started.
    let Ok(url) = std::env::var("MIGRATE_URL") else {
        return;
    };
    let client =
        Client::connect(&url, &json!({"schema": std::env::var("MIGRATE_SCHEMA").unwrap()}).to_string()).unwrap();
    assert_eq!(call(&client, "migrate", json!({}))["version"], LATEST);
    client.close();
}

fn race(variable: &str, url: &str, rounds: usize) {
    for _ in 0..rounds {
        let mut database = Database::empty(variable, "race");
        let processes: Vec<Child> = (0..6).map(|_| migrating_process(url, &database.schema)).collect();
        for mut process in processes {
            assert!(process.wait().unwrap().success());
        }
        let schema = database.schema.clone();
        assert_eq!(database.count(&format!("{schema}.schema_version")), i64::from(LATEST));
        let client = database.client();
        call(&client, "assertCompatible", json!({}));
        assert_eq!(call(&client, "migrate", json!({}))["applied"], json!([]));
    }
}

#[test]
fn six_processes_migrate_an_empty_database_at_once() {
    race("DRAYHORSE_TEST_URL", &support::url("DRAYHORSE_TEST_URL"), rounds());
}

#[test]
fn six_processes_migrate_an_empty_database_at_once_on_15() {
    race("DRAYHORSE_TEST_URL_15", &support::url("DRAYHORSE_TEST_URL_15"), rounds() / 4 + 1);
}

#[test]
fn six_processes_migrate_an_empty_database_at_once_through_pgbouncer() {
    // It stands before PostgreSQL 18 or 15; the schema is looked at through it, too.
    race("DRAYHORSE_PGBOUNCER_URL", &support::url("DRAYHORSE_PGBOUNCER_URL"), rounds() / 4 + 1);
}

#[test]
fn a_killed_migration_leaves_nothing_behind() {
    for variable in ["DRAYHORSE_TEST_URL", "DRAYHORSE_PGBOUNCER_URL"] {
        let url = support::url(variable);
        let mut killed_early = 0;
        for round in 0..rounds() {
            let mut database = Database::empty(variable, "killed");
            let mut victim = migrating_process(&url, &database.schema);
            let mut others: Vec<Child> = (0..2).map(|_| migrating_process(&url, &database.schema)).collect();
            thread::sleep(Duration::from_millis(8 * round as u64 % 160));
            victim.kill().unwrap();
            killed_early += usize::from(!victim.wait().unwrap().success());
            for other in &mut others {
                assert!(other.wait().unwrap().success());
            }
            let client = database.client();
            call(&client, "migrate", json!({}));
            call(&client, "assertCompatible", json!({}));
            let schema = database.schema.clone();
            assert_eq!(database.count(&format!("{schema}.schema_version")), i64::from(LATEST));
        }
        assert!(killed_early > 0, "no process was killed before its end");
    }
}

#[test]
fn a_role_with_create_on_the_schema_only() {
    support::on_each_server("limited", |outer| {
        let role = format!("{}_migrator", outer.schema);
        let schema = format!("{}_made", outer.schema);
        outer.sql(&format!(
            "create role {role} login; create schema {schema}; grant create, usage on schema {schema} to {role}"
        ));
        let url = outer.url.replace("postgres@", &format!("{role}@"));
        let connect = |schema: &str| Client::connect(&url, &json!({"schema": schema}).to_string()).unwrap();
        let client = connect(&schema);
        assert_eq!(call(&client, "migrate", json!({}))["applied"], json!([1]));
        assert_eq!(call(&client, "migrate", json!({}))["applied"], json!([]));
        let job = call(&client, "enqueue", json!({"type": "t"}));
        assert_eq!(call(&client, "get", json!({"id": job["id"]}))["state"], "ready");
        // And without the schema, the error says which right is missing.
        let error = try_call(&connect("not_there"), "migrate", json!({})).unwrap_err();
        assert_eq!(error.code(), "permission_denied");
        assert!(error.message().contains("CREATE"), "{error}");
        client.close();
        outer.sql(&format!("drop schema {schema} cascade; drop owned by {role}; drop role {role}"));
    });
}

#[test]
fn functions_are_not_for_everybody() {
    support::on_each_server("public", |database| {
        let open = database.count(
            "(select from pg_proc p where p.pronamespace = (select oid from pg_namespace where nspname = current_schema)
              and has_function_privilege('pg_monitor', p.oid, 'execute'))",
        );
        assert_eq!(open, 0);
    });
}

#[test]
fn somebody_elses_schema_is_left_alone() {
    for variable in ["DRAYHORSE_TEST_URL", "DRAYHORSE_TEST_URL_15"] {
        let mut database = Database::empty(variable, "inhabited");
        let schema = database.schema.clone();
        database.sql(&format!("create schema {schema}; create table {schema}.job (id int)"));
        let error = try_call(&database.client(), "migrate", json!({})).unwrap_err();
        assert_eq!(error.code(), "wrong_state");
        assert_eq!(database.count(&format!("(select from pg_class where relnamespace = '{schema}'::regnamespace)")), 1);
    }
}

#[test]
fn older_functions_are_replaced_and_access_is_kept() {
    support::on_each_server("replace", |database| {
        let role = format!("{}_worker", database.schema);
        database.sql(&format!("create role {role}"));
        let client = database.client();
        call(&client, "grant", json!({"role": role, "access": "worker"}));
        // As if an earlier build had left other functions: one gone since, one with another body, one not there yet.
        database.sql(
            "create function left_over(a int) returns int language sql as 'select 1';
             create or replace function rpc_get(args jsonb) returns text language sql as 'select ''old''';
             drop function rpc_counts;
             comment on table schema_version is 'functions of another build'",
        );
        assert_eq!(call(&client, "migrate", json!({}))["applied"], json!([]));
        assert_eq!(database.text("select to_regprocedure('left_over(int)')"), None);
        let answer: Value = call(&client, "counts", json!({}));
        assert_eq!(answer["ready"], 0);
        let may = |database: &mut Database, function: &str| {
            database.text(&format!("select has_function_privilege('{role}', '{function}', 'execute')"))
        };
        for function in ["rpc_get(jsonb)", "rpc_counts(jsonb)", "release(uuid[],uuid[],int2[],text,boolean)"] {
            assert_eq!(may(database, function).as_deref(), Some("true"), "{function}");
        }
        assert_eq!(may(database, "rpc_grant(jsonb)").as_deref(), Some("false"));
        database.sql(&format!("drop owned by {role}; drop role {role}"));
    });
}
