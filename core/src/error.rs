//! The one table of errors. Every language's classes, the C codes and the SQLSTATEs `YD001`… are checked
//! against it in a test, so that a failure has the same name wherever it is met.

use serde_json::{Map, Value, json};
use std::fmt;

macro_rules! kinds {
    ($($variant:ident = $number:literal, $code:literal, $retryable:literal, $cause:literal;)*) => {
        /// What went wrong, as callers tell failures apart.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $(#[doc = $cause] $variant = $number,)*
        }

        impl Kind {
            /// Every kind, in the order of its number.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant,)*];

            /// The name used in every language, `policy_invalid` for example.
            pub fn code(self) -> &'static str {
                match self { $(Kind::$variant => $code,)* }
            }

            /// Whether the same call may succeed later without a change by the caller.
            pub fn retryable(self) -> bool {
                match self { $(Kind::$variant => $retryable,)* }
            }

            /// One sentence on what causes it.
            pub fn cause(self) -> &'static str {
                match self { $(Kind::$variant => $cause,)* }
            }
        }
    };
}

kinds! {
    InvalidArgument = 1, "invalid_argument", false, "An argument is missing, unknown, of another type or outside its bounds.";
    PayloadInvalid = 2, "payload_invalid", false, "A JSON value holds something PostgreSQL cannot keep: U+0000, a lone surrogate, NaN, an infinity, or nesting over 100.";
    PayloadTooLarge = 3, "payload_too_large", false, "A JSON value is larger than the database's limit.";
    PolicyInvalid = 4, "policy_invalid", false, "A retry policy has an unknown shape, key or bound.";
    IdempotencyConflict = 5, "idempotency_conflict", false, "The idempotency key already names another enqueue.";
    NotFound = 6, "not_found", false, "There is no such job, run, endpoint or queue.";
    WrongState = 7, "wrong_state", false, "The job or run is not in a state that allows this.";
    LeaseLost = 8, "lease_lost", false, "The claim is no longer current: its lease ended and recovery or another claim replaced its fence, or the attempt was settled.";
    CheckpointConflict = 9, "checkpoint_conflict", false, "The checkpoint already holds another value.";
    ContractConflict = 10, "contract_conflict", false, "This contract version is already published with another content.";
    ContractViolation = 11, "contract_violation", false, "A value does not match the contract's schema.";
    WaitTimeout = 12, "wait_timeout", true, "The job had not ended when the waiting time was over; the job is untouched.";
    StatementTimeout = 13, "statement_timeout", true, "The database cancelled the statement: it took longer than it may.";
    ConnectionLost = 14, "connection_lost", true, "The database cannot be reached, or the connection broke.";
    ReadOnly = 15, "read_only", true, "The server is read-only, a replica for example.";
    PermissionDenied = 16, "permission_denied", false, "The database role lacks a right this call needs.";
    SchemaMissing = 17, "schema_missing", false, "The schema has not been migrated yet.";
    SchemaTooOld = 18, "schema_too_old", false, "The schema is older than this library needs: migrate it.";
    SchemaTooNew = 19, "schema_too_new", false, "The schema is newer than this library knows: update the library.";
    Closed = 20, "closed", false, "The handle was closed.";
    UsedAfterFork = 21, "used_after_fork", false, "The handle was made by the parent process; connect again after the fork.";
    EmbeddedFailed = 22, "embedded_failed", false, "The private PostgreSQL server could not be started.";
    Internal = 23, "internal", false, "A fault of Drayhorse itself: please report it.";
}

impl Kind {
    /// The SQLSTATE the protocol functions raise for it, `YD004` for example.
    pub fn sqlstate(self) -> String {
        format!("YD{:03}", self as i32)
    }

    /// The kind behind a SQLSTATE of class `YD`.
    pub fn from_sqlstate(state: &str) -> Option<Kind> {
        let number: i32 = state.strip_prefix("YD")?.parse().ok()?;
        Kind::ALL.iter().copied().find(|k| *k as i32 == number)
    }

    /// The kind with this code.
    pub fn from_code(code: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|k| k.code() == code)
    }
}

/// A failure with its kind, a sentence for the person who reads it, and machine-readable details
/// (`field`, `path`, `limit`, `conflictingFields`, `existingId`, …). It never holds a secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    kind: Kind,
    message: String,
    details: Map<String, Value>,
}

/// The result of everything that can fail here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind` that says `message`.
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), details: Map::new() }
    }

    /// `invalid_argument` that names the field.
    pub fn argument(field: &str, message: impl Into<String>) -> Error {
        Error::new(Kind::InvalidArgument, message).with("field", field)
    }

    /// Adds one detail.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Error {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Adds all of `details`.
    pub fn with_all(mut self, details: Map<String, Value>) -> Error {
        self.details.extend(details);
        self
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The code, `lease_lost` for example.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The machine-readable details.
    pub fn details(&self) -> &Map<String, Value> {
        &self.details
    }

    /// `{"code","number","message","retryable","details"}`, the form that crosses every boundary.
    pub fn to_json(&self) -> String {
        json!({
            "code": self.code(),
            "number": self.kind as i32,
            "message": self.message,
            "retryable": self.kind.retryable(),
            "details": self.details,
        })
        .to_string()
    }

    /// The whole table as JSON: `[{"number","code","retryable","cause"}]`.
    pub fn table_json() -> String {
        let rows: Vec<Value> = Kind::ALL
            .iter()
            .map(|k| json!({"number": *k as i32, "code": k.code(), "retryable": k.retryable(), "cause": k.cause()}))
            .collect();
        Value::from(rows).to_string()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_codes_are_unique_and_round_trip() {
        for (i, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, i + 1);
            assert_eq!(Kind::from_sqlstate(&kind.sqlstate()), Some(*kind));
            assert_eq!(Kind::from_code(kind.code()), Some(*kind));
            assert!(kind.cause().ends_with('.'));
        }
        assert_eq!(Kind::from_sqlstate("YD999"), None);
        assert_eq!(Kind::from_sqlstate("40001"), None);
    }

    #[test]
    fn json_form_has_every_field() {
        let e = Error::argument("maxAttempts", "maxAttempts must be 1 to 100").with("limit", 100);
        let v: Value = serde_json::from_str(&e.to_json()).unwrap();
        assert_eq!(v["code"], "invalid_argument");
        assert_eq!(v["number"], 1);
        assert_eq!(v["details"]["field"], "maxAttempts");
    }
}
