//! `drayhorse grant` and `drayhorse revoke`: rights by what somebody does.

use crate::failure::Failure;
use crate::session::Session;
use crate::text;
use clap::{Args, ValueEnum};
use serde_json::json;

/// Give a database role the rights of one kind of user.
#[derive(Args)]
pub struct Grant {
    /// The database role; it has to exist.
    role: String,
    /// What it may do.
    access: Access,
}

#[derive(Clone, Copy, ValueEnum)]
enum Access {
    /// Everything a worker process and an operator's redrive need.
    Worker,
    /// Enqueue only.
    Producer,
    /// Snapshots, timelines, lists and counts.
    Reader,
}

impl Access {
    fn name(self) -> &'static str {
        match self {
            Access::Worker => "worker",
            Access::Producer => "producer",
            Access::Reader => "reader",
        }
    }
}

impl Grant {
    /// `verb` is `grant` or `revoke`.
    pub fn run(self, session: &Session, verb: &str) -> Result<(), Failure> {
        session.call(verb, &json!({"role": self.role, "access": self.access.name()}))?;
        if session.json {
            return session.say_json(&json!({"role": self.role, "access": self.access.name(), "done": verb}));
        }
        let (role, schema, access) = (text::line(&self.role), text::line(&session.schema), self.access.name());
        session.say(&match verb {
            "grant" => format!("{role} is a {access} in schema {schema}."),
            _ => format!("{role} is no {access} in schema {schema} any more."),
        })
    }
}
