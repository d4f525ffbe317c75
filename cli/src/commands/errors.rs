//! `drayhorse errors`: the one table of errors, as every language has it. Needs no database.

use crate::args::Connection;
use crate::failure::Failure;
use crate::session;
use crate::table;
use clap::Args;
use drayhorse_core::error::{Error, Kind};
use serde_json::Value;

/// List every error: number, code, whether the same call may succeed later, and what causes it.
#[derive(Args)]
pub struct Errors {}

impl Errors {
    pub fn run(self, connection: &Connection) -> Result<(), Failure> {
        if connection.json {
            let listed: Value = serde_json::from_str(&Error::table_json())
                .map_err(|e| Error::new(Kind::Internal, format!("the table of errors is not JSON: {e}")))?;
            return session::say_json(&listed);
        }
        let rows: Vec<Vec<String>> = Kind::ALL
            .iter()
            .map(|kind| {
                let retryable = if kind.retryable() { "yes" } else { "no" };
                vec![kind.sqlstate(), kind.code().to_owned(), retryable.to_owned(), kind.cause().to_owned()]
            })
            .collect();
        session::say(&table::render(&["sqlstate", "code", "retryable", "cause"], &rows))
    }
}
