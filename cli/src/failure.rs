//! What went wrong, as the person at the terminal gets it: one sentence that begins with a code, and an exit code.

use crate::text;
use drayhorse_core::error::{Error, Kind};
use serde_json::json;
use std::fmt;

/// Exit code for a command line that cannot be understood.
pub const USAGE: u8 = 2;

/// Why a command ended without having done what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// The core or the database refused, or could not be reached.
    Core(Error),
    /// An argument cannot be what it says it is.
    Usage(String),
    /// Nothing has this id.
    NotFound(String),
    /// The command did its work and some of it was refused.
    Refused(String),
    /// The question was not answered with yes.
    NotConfirmed(String),
    /// Standard output was closed by whoever read it.
    ReaderGone,
    /// The terminal or a file could not be read or written.
    Io(std::io::Error),
}

impl Failure {
    /// The word for programs: the core's code where there is one.
    pub fn code(&self) -> &'static str {
        match self {
            Failure::Core(error) => error.code(),
            Failure::Usage(_) => "usage",
            Failure::NotFound(_) => Kind::NotFound.code(),
            Failure::Refused(_) => "refused",
            Failure::NotConfirmed(_) => "not_confirmed",
            Failure::ReaderGone | Failure::Io(_) => "io",
        }
    }

    /// The process's exit code; `--help` lists them.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Core(error) => match error.kind() {
                Kind::InvalidArgument | Kind::PayloadInvalid | Kind::PayloadTooLarge | Kind::PolicyInvalid => USAGE,
                Kind::NotFound => 3,
                Kind::ConnectionLost | Kind::ReadOnly | Kind::StatementTimeout | Kind::EmbeddedFailed => 4,
                Kind::SchemaMissing | Kind::SchemaTooOld | Kind::SchemaTooNew => 5,
                Kind::PermissionDenied => 6,
                _ => 1,
            },
            Failure::Usage(_) => USAGE,
            Failure::NotFound(_) => 3,
            Failure::NotConfirmed(_) => 7,
            Failure::Refused(_) | Failure::Io(_) | Failure::ReaderGone => 1,
        }
    }

    /// The same for `--json`.
    pub fn to_json(&self) -> String {
        let details = match self {
            Failure::Core(error) => error.details().clone(),
            _ => serde_json::Map::new(),
        };
        text::json(&json!({"code": self.code(), "message": self.sentence(), "details": details}), false)
    }

    fn sentence(&self) -> String {
        match self {
            Failure::Core(error) => error.message().to_owned(),
            Failure::Usage(said) | Failure::NotFound(said) | Failure::Refused(said) | Failure::NotConfirmed(said) => {
                said.clone()
            }
            Failure::ReaderGone => "standard output was closed".to_owned(),
            Failure::Io(error) => error.to_string(),
        }
    }

    /// What to do next, where that is known from here.
    fn advice(&self) -> &'static str {
        match self {
            Failure::Core(error) if matches!(error.kind(), Kind::SchemaMissing | Kind::SchemaTooOld) => {
                "\nRun `drayhorse migrate` with a role that owns the schema."
            }
            _ => "",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.code(), text::line(&self.sentence()), self.advice())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Core(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        if error.kind() == std::io::ErrorKind::BrokenPipe { Failure::ReaderGone } else { Failure::Io(error) }
    }
}
