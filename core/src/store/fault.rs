//! From what the driver and the server say to the one error table.
//!
//! Nothing of the connection text can get into a message: the server's primary message is used, its DETAIL only for
//! the refusals of the protocol functions, whose DETAIL is ours.

use crate::error::{Error, Kind};
use postgres::error::DbError;
use serde_json::{Map, Value};
use std::error::Error as _;
use std::io;

/// The typed error behind a failure of the driver.
pub fn from_driver(error: &postgres::Error) -> Error {
    if let Some(refusal) = error.as_db_error() {
        return from_server(refusal);
    }
    let cause = error.source().map(ToString::to_string);
    let said = |cause: Option<String>| cause.map(|text| format!(": {text}")).unwrap_or_default();
    // The driver tells its kinds apart by their sentence only.
    match error.to_string().as_str() {
        "error performing TLS handshake" => match error.source().and_then(|e| e.downcast_ref::<io::Error>()) {
            Some(broken) if broken.kind() != io::ErrorKind::InvalidData => {
                lost("the connection broke in the TLS handshake")
            }
            _ => Error::argument("tls", format!("the TLS handshake failed{}", said(cause))),
        },
        "authentication error" => Error::new(Kind::PermissionDenied, format!("the login failed{}", said(cause))),
        "invalid configuration" if cause.as_deref() == Some("password missing") => {
            Error::argument("url", "the server asks for a password and the URL has none")
        }
        "invalid configuration" => Error::argument("url", format!("the URL cannot be used{}", said(cause))),
        "error connecting to server" => match error.source().and_then(|e| e.downcast_ref::<io::Error>()) {
            // The driver's answer to target_session_attrs=read-write.
            Some(refused) if refused.to_string() == "database does not allow writes" => {
                Error::new(Kind::ReadOnly, "every server of the URL is read-only, a replica for example")
            }
            _ => lost(format!("cannot connect to the database{}", said(cause))),
        },
        "error communicating with the server" => lost(format!("the connection broke{}", said(cause))),
        "connection closed" => lost("the database closed the connection"),
        "timeout waiting for server" => lost("the database did not answer"),
        "unexpected message from server" | "error parsing response from server" => {
            lost("the server sent something that is not PostgreSQL's protocol")
        }
        other => Error::new(Kind::Internal, format!("{other}{}", said(cause))),
    }
}

/// `connection_lost`.
pub fn lost(message: impl Into<String>) -> Error {
    Error::new(Kind::ConnectionLost, message)
}

/// The typed error behind a SQLSTATE.
fn from_server(refusal: &DbError) -> Error {
    let state = refusal.code().code();
    let message = refusal.message();
    if let Some(kind) = Kind::from_sqlstate(state) {
        let mut details: Map<String, Value> =
            refusal.detail().and_then(|detail| serde_json::from_str(detail).ok()).unwrap_or_default();
        details.remove("code");
        return Error::new(kind, message).with_all(details);
    }
    let error = match state {
        "57014" | "55P03" => {
            Error::new(Kind::StatementTimeout, format!("the database gave up the statement: {message}"))
        }
        "25006" => Error::new(Kind::ReadOnly, format!("the server is read-only: {message}")),
        "42501" => Error::new(Kind::PermissionDenied, format!("{message}{}", missing_right(message))),
        "3F000" => Error::new(Kind::SchemaMissing, format!("{message}: call migrate")),
        "3D000" => Error::argument("url", "the database that the URL names does not exist"),
        "53300" => lost(format!("{message}: raise max_connections, lower poolSize, or put a pooler in between")),
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => lost(format!("the server ended the connection: {message}")),
        "22P05" | "22021" | "54001" => Error::new(Kind::PayloadInvalid, format!("a value cannot be stored: {message}")),
        "54000" => Error::new(Kind::PayloadTooLarge, format!("a value is too large for PostgreSQL: {message}")),
        _ if state.starts_with("08") => lost(format!("the connection broke: {message}")),
        _ if state.starts_with("28") => Error::new(Kind::PermissionDenied, message),
        _ => Error::new(Kind::Internal, format!("PostgreSQL refused a statement: {message}")),
    };
    error.with("sqlstate", state)
}

/// What to do about a missing right, by the words of PostgreSQL's message.
fn missing_right(message: &str) -> &'static str {
    if message.contains("for database") {
        ": the role needs CREATE on the database, or a schema made by its owner on which it has CREATE"
    } else if message.contains("for schema") {
        ": the role needs USAGE on the schema (the verb grant gives it), or CREATE to migrate"
    } else if message.contains("for function") || message.contains("for table") {
        ": the role lacks the access for this call; the schema's owner gives it with the verb grant"
    } else if message.contains("must be owner") {
        ": only the role that migrated the schema may do this"
    } else {
        ""
    }
}

/// Whether the transaction was chosen to give way and the same statement may simply be sent again. A key that is taken
/// means the same: only the first send of this very statement, still at work when its connection broke, can have made it,
/// and what it made is recognized as soon as it has committed.
pub fn gave_way(error: &Error) -> bool {
    matches!(sqlstate(error), Some("40001" | "40P01" | "23505"))
}

/// Whether an object was not found, which may mean that the schema has not been migrated.
pub fn lacks_object(error: &Error) -> bool {
    matches!(sqlstate(error), Some("42P01" | "42883" | "42703" | "3F000"))
}

fn sqlstate(error: &Error) -> Option<&str> {
    error.details().get("sqlstate").and_then(Value::as_str)
}
