//! A schema of its own on a test server, dropped when the test is over. Tests of SQL that needs no tables load the
//! files they name into it.

use postgres::{Client, NoTls};
use std::ops::{Deref, DerefMut};

/// The variables that name the test servers.
pub const SERVERS: [&str; 2] = ["DRAYHORSE_TEST_URL", "DRAYHORSE_TEST_URL_15"];

pub struct Scratch {
    client: Client,
    schema: String,
}

impl Scratch {
    /// Opens the schema on the server that the variable `server` names and runs `files` in it.
    pub fn open(server: &str, purpose: &str, files: &[&str]) -> Scratch {
        let url = std::env::var(server)
            .unwrap_or_else(|_| panic!("{server} is not set: it must be the URL of a test database"));
        let mut client = Client::connect(&url, NoTls).expect("the test database answers");
        let schema = format!("scratch_{purpose}_{}", std::process::id());
        client
            .batch_execute(&format!(
                "set client_min_messages = warning; drop schema if exists {schema} cascade; create schema {schema}; \
                 set search_path = {schema}, pg_temp"
            ))
            .expect("a schema can be created");
        for file in files {
            client.batch_execute(file).expect("the SQL file loads");
        }
        Scratch { client, schema }
    }
}

impl Deref for Scratch {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let drop = format!("drop schema {} cascade", self.schema);
        if let Err(error) = self.client.batch_execute(&drop) {
            eprintln!("{} is left behind: {error}", self.schema);
        }
    }
}
