//! The schema's files and how they get into a database: numbered migrations for tables, then the protocol functions.
//!
//! A migration is applied once and never edited after a release. The function files hold the present definition of
//! every function and are run again at every version change; a function whose result or argument names change is
//! dropped in the migration of that version. Everything happens in one transaction under one advisory lock, so any
//! number of processes may start on an empty database, and a killed one leaves nothing behind.
//! `Client` calls this for the verb `migrate`; nothing else ever sends DDL.

#[cfg(test)]
mod tests;

use crate::error::{Error, Kind, Result};
use crate::store::{Connection, Schema, Type};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// A file of `core/sql`: its path there and its text.
type File = (&'static str, &'static str);

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../sql/", $path)))),*]
    };
}

/// A step from one version to the next.
pub struct Migration {
    version: i32,
    files: &'static [File],
}

/// In ascending order without gaps. After the first release, a change of tables is a new entry
/// `migrations/NNNN_name.sql`, additive within a major version.
const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    files: files![
        "schema/version.sql",
        "schema/settings.sql",
        "schema/lane.sql",
        "schema/job.sql",
        "schema/evidence.sql",
        "schema/worker.sql",
        "schema/gate.sql",
        "schema/run.sql",
        "schema/contract.sql",
        "schema/guard.sql",
    ],
}];

/// Run in this order at every version change. Bodies are not checked while they are created, so a function may call
/// one of a later file.
const FUNCTIONS: &[File] = files![
    "errors.sql",
    "clock.sql",
    "arguments.sql",
    "lane.sql",
    "policy.sql",
    "gate.sql",
    "circuit.sql",
    "contract.sql",
    "enqueue.sql",
    "run.sql",
    "claim.sql",
    "report.sql",
    "recover.sql",
    "cancel.sql",
    "checkpoint.sql",
    "worker.sql",
    "protocol.sql",
    "read.sql",
    "endpoint.sql",
    "why.sql",
    "redrive.sql",
    "retention.sql",
    "roles.sql",
];

const SETTLE: File = ("install/settle.sql", include_str!("../sql/install/settle.sql"));

/// The version this library needs.
pub const LATEST: i32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// How long one statement of a migration may take, waiting for another process's migration included.
const PATIENCE: Duration = Duration::from_secs(900);

/// What a migration has done.
#[derive(Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version now.
    pub version: i32,
    /// The migrations this call applied, maybe none.
    pub applied: Vec<i32>,
}

/// Brings the schema to [`LATEST`], creating it if it does not exist.
pub fn migrate(connection: &mut Connection, schema: &Schema, limit: Duration) -> Result<Migrated> {
    connection.set_limit(Some(PATIENCE.max(limit)));
    let outcome = Plan { migrations: MIGRATIONS, functions: FUNCTIONS }.run(connection, schema);
    connection.set_limit(Some(limit));
    outcome
}

/// The files of one version of this library.
struct Plan<'a> {
    migrations: &'a [Migration],
    functions: &'a [File],
}

impl Plan<'_> {
    fn run(&self, connection: &mut Connection, schema: &Schema) -> Result<Migrated> {
        // Whatever the role's defaults are: the version is read after the lock, so it must not be of an older snapshot.
        connection.batch("begin isolation level read committed read write")?;
        match self.apply(connection, schema) {
            Ok(migrated) => connection.batch("commit").map(|()| migrated),
            Err(error) => {
                if !connection.is_broken() {
                    connection.batch("rollback")?;
                }
                Err(error)
            }
        }
    }

    fn apply(&self, connection: &mut Connection, schema: &Schema) -> Result<Migrated> {
        let latest = self.migrations.last().map_or(0, |migration| migration.version);
        // The role's own limits are meant for ordinary statements; waiting for the lock is not one.
        connection.batch(
            "set local statement_timeout = 0; set local lock_timeout = 0; \
             set local idle_in_transaction_session_timeout = 0; set local client_min_messages = warning",
        )?;
        connection.query("select pg_advisory_xact_lock($1)", &[(&lock_key(schema), Type::INT8)])?;
        let version = match self.namespace_exists(connection, schema)? {
            true => schema.version(connection)?,
            false => {
                // Asked first because `create schema if not exists` needs the right even when there is nothing to do.
                connection.batch(&format!("create schema {}", schema.quoted()))?;
                None
            }
        };
        if let Some(newer) = version.filter(|version| *version > latest) {
            return Err(Error::new(
                Kind::SchemaTooNew,
                format!(
                    "the schema {} has version {newer}, this library knows {latest}: update the library",
                    schema.name()
                ),
            )
            .with("version", newer)
            .with("expected", latest));
        }
        let fingerprint = fingerprint(self.functions);
        if version == Some(latest) && self.installed_functions(connection, schema)?.as_deref() == Some(&fingerprint) {
            return Ok(Migrated { version: latest, applied: Vec::new() });
        }
        if version.is_none() {
            refuse_inhabited(connection, schema)?;
        }
        connection.batch(&format!(
            "set local search_path = {}, pg_temp; set local check_function_bodies = off; \
             set local standard_conforming_strings = on",
            schema.quoted()
        ))?;
        let mut applied = Vec::new();
        for migration in self.migrations.iter().filter(|m| version.is_none_or(|version| m.version > version)) {
            for file in migration.files {
                run_file(connection, file)?;
            }
            connection
                .execute("insert into schema_version (version) values ($1)", &[(&migration.version, Type::INT4)])?;
            applied.push(migration.version);
        }
        for file in self.functions {
            run_file(connection, file)?;
        }
        run_file(connection, &SETTLE)?;
        connection.batch(&format!("comment on table schema_version is 'functions {fingerprint}'"))?;
        Ok(Migrated { version: latest, applied })
    }

    fn namespace_exists(&self, connection: &mut Connection, schema: &Schema) -> Result<bool> {
        let found = connection
            .query("select from pg_catalog.pg_namespace where nspname = $1", &[(&schema.name(), Type::NAME)])?;
        Ok(!found.is_empty())
    }

    /// The fingerprint of the function files that were run last.
    fn installed_functions(&self, connection: &mut Connection, schema: &Schema) -> Result<Option<String>> {
        let comment = connection.query_text(
            "select obj_description(to_regclass($1), 'pg_class')",
            &[(&schema.object("schema_version"), Type::TEXT)],
        )?;
        Ok(comment.and_then(|text| text.strip_prefix("functions ").map(str::to_owned)))
    }
}

/// A schema without our version table must be empty: everything in it is dropped, replaced or granted as ours.
fn refuse_inhabited(connection: &mut Connection, schema: &Schema) -> Result<()> {
    let inhabitants = connection.query(
        "select 1 from pg_catalog.pg_namespace n where n.nspname = $1 and (
           exists (select from pg_catalog.pg_class c where c.relnamespace = n.oid and not exists (
             select from pg_catalog.pg_depend d where d.objid = c.oid and d.deptype = 'e'))
           or exists (select from pg_catalog.pg_proc p where p.pronamespace = n.oid and not exists (
             select from pg_catalog.pg_depend d where d.objid = p.oid and d.deptype = 'e')))",
        &[(&schema.name(), Type::NAME)],
    )?;
    match inhabitants.is_empty() {
        true => Ok(()),
        false => Err(Error::new(
            Kind::WrongState,
            format!("the schema {} holds objects of somebody else; the queue needs a schema of its own", schema.name()),
        )
        .with("schema", schema.name())),
    }
}

fn run_file(connection: &mut Connection, (path, text): &File) -> Result<()> {
    connection.batch(text).map_err(|error| error.with("file", *path))
}

/// One lock per schema and database.
fn lock_key(schema: &Schema) -> i64 {
    let digest = Sha256::digest(format!("drayhorse migrate {}", schema.name()));
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(first)
}

fn fingerprint(files: &[File]) -> String {
    let mut hash = Sha256::new();
    for (path, text) in files.iter().chain([&SETTLE]) {
        hash.update(path);
        hash.update([0]);
        hash.update(text);
        hash.update([0]);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
