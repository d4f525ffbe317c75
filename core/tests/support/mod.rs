//! Databases for tests: each test gets a schema of its own on PostgreSQL 18 and 15, migrated, and dropped at its end.
//!
//! `DRAYHORSE_TEST_URL` names the newest server, `DRAYHORSE_TEST_URL_15` the oldest; a superuser's URL each.
//! ```ignore
//! mod support;
//! #[test]
//! fn a_job_is_kept() {
//!     support::on_each_server("kept", |database| { database.sql("select enqueue(..)"); });
//! }
//! ```
#![allow(dead_code)]

use drayhorse_core::bridge::Client;
use drayhorse_core::error::{Error, Result};
use drayhorse_core::store::{Connection, Options, Param, Row, Store, Type};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A schema that lives as long as this value.
pub struct Database {
    /// The server's URL.
    pub url: String,
    /// The schema's name.
    pub schema: String,
    store: Store,
    connection: Option<Connection>,
}

/// The URL in an environment variable; without it the test fails with this one line.
pub fn url(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: this test needs the URL of a PostgreSQL superuser"))
}

/// Runs `test` on PostgreSQL 18 and on 15, each in a fresh migrated schema.
pub fn on_each_server(name: &str, test: impl Fn(&mut Database)) {
    for variable in ["DRAYHORSE_TEST_URL", "DRAYHORSE_TEST_URL_15"] {
        let mut database = Database::migrated(variable, name);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(&mut database))) {
            eprintln!("failed with {variable}");
            drop(database);
            resume_unwind(panic);
        }
    }
}

impl Database {
    /// A fresh schema with the queue in it.
    pub fn migrated(variable: &str, name: &str) -> Database {
        let mut database = Database::empty(variable, name);
        database.migrate();
        database
    }

    /// The name of a fresh schema that does not exist yet.
    pub fn empty(variable: &str, name: &str) -> Database {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Database::named(variable, &format!("test_{name}_{}_{number}", std::process::id()))
    }

    /// The schema of this very name, removed first if a killed run left it.
    pub fn named(variable: &str, schema: &str) -> Database {
        let url = url(variable);
        let options = Options { schema: schema.to_owned(), ..Options::default() };
        let store = Store::open(&url, options).unwrap_or_else(|e| panic!("{variable}: {e}"));
        let connection = store.connect().unwrap_or_else(|e| panic!("{variable}: {e}"));
        let mut database = Database { url, schema: schema.to_owned(), store, connection: Some(connection) };
        database.drop_schema();
        database
    }

    /// Migrates through a client of its own.
    pub fn migrate(&mut self) {
        self.client().call("migrate", "{}").unwrap_or_else(|e| panic!("migrate: {e}"));
        let schema = self.store.schema().quoted().to_owned();
        self.sql(&format!("set search_path = {schema}, public"));
    }

    /// A client of this schema.
    pub fn client(&self) -> Client {
        self.client_with(json!({}))
    }

    /// A client of this schema with more options.
    pub fn client_with(&self, mut options: Value) -> Client {
        options["schema"] = self.schema.clone().into();
        Client::connect(&self.url, &options.to_string()).unwrap_or_else(|e| panic!("connect: {e}"))
    }

    /// The store behind [`Database::connection`].
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// A superuser's session whose search_path is the schema.
    pub fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("open until the end of the test")
    }

    /// Another such session.
    pub fn another_connection(&self) -> Connection {
        let mut connection = self.store.connect().unwrap_or_else(|e| panic!("connect: {e}"));
        connection
            .batch(&format!("set search_path = {}, public", self.store.schema().quoted()))
            .unwrap_or_else(|e| panic!("search_path: {e}"));
        connection
    }

    /// Runs statements without parameters.
    pub fn sql(&mut self, sql: &str) {
        self.try_sql(sql).unwrap_or_else(|e| panic!("{sql}: {}", e.to_json()));
    }

    /// The same, for statements that must fail.
    pub fn try_sql(&mut self, sql: &str) -> Result<()> {
        self.connection().batch(sql)
    }

    /// The rows of one statement.
    pub fn rows(&mut self, sql: &str, params: &[Param<'_>]) -> Vec<Row> {
        self.connection().query(sql, params).unwrap_or_else(|e| panic!("{sql}: {}", e.to_json()))
    }

    /// The one value of a statement as text; casts it there.
    pub fn text(&mut self, sql: &str) -> Option<String> {
        let cast = format!("select (({sql}))::text");
        self.connection().query_text(&cast, &[]).unwrap_or_else(|e| panic!("{sql}: {}", e.to_json()))
    }

    /// The number of rows in a table, or of a sub-select in parentheses.
    pub fn count(&mut self, from: &str) -> i64 {
        self.rows(&format!("select count(*) from {from} counted"), &[])[0].get(0)
    }

    /// Moves the schema's clock.
    pub fn advance_clock(&mut self, ms: i64) {
        self.rows("select advance_clock($1)", &[(&ms, Type::INT8)]);
    }

    fn drop_schema(&mut self) {
        let sql = format!(
            "set local lock_timeout = '10s'; set local client_min_messages = warning; drop schema if exists {} cascade",
            self.store.schema().quoted()
        );
        if let Err(error) = self.connection().batch(&sql) {
            eprintln!("the schema {} stays behind: {error}", self.schema);
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.drop_schema();
    }
}

/// Calls a verb and reads its answer.
pub fn call(client: &Client, verb: &str, args: Value) -> Value {
    try_call(client, verb, args.clone()).unwrap_or_else(|e| panic!("{verb} {args}: {}", e.to_json()))
}

/// The same for calls that must fail.
pub fn try_call(client: &Client, verb: &str, args: Value) -> std::result::Result<Value, Error> {
    let answer = client.call(verb, &args.to_string())?;
    Ok(serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{verb} answered no JSON: {e}: {answer}")))
}

/// Waits until `condition` holds; panics with `what` after `patience`.
pub fn eventually(what: &str, patience: Duration, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + patience;
    while !condition() {
        assert!(Instant::now() < until, "not within {patience:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
