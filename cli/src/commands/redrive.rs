//! `drayhorse redrive`: new jobs from failed ones, one or many, with a look at the risk first.

use crate::failure::Failure;
use crate::filter::Filter;
use crate::repeat::{Many, Request};
use crate::session::Session;
use crate::text;
use clap::Args;
use serde_json::{Map, Value};

/// Make new jobs from failed ones.
///
/// By id, or by filter after showing how many there are. Repeating a call with the same request id makes no job
/// twice: that is how an interrupted redrive is resumed.
#[derive(Args)]
pub struct Redrive {
    /// The failed job.
    #[arg(
        required_unless_present_any = ["queue", "job_type", "endpoint", "tag", "uncertain", "every"],
        conflicts_with_all = ["queue", "job_type", "endpoint", "tag", "uncertain", "every", "preview", "limit"],
    )]
    id: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Every failed job of the schema.
    #[arg(long)]
    every: bool,
    #[command(flatten)]
    request: Request,
}

impl Redrive {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        if let Some(id) = &self.id {
            return self.one(session, id);
        }
        Many {
            verb: "redrive",
            done: "redriven",
            source: "failed jobs",
            filter: self.filter.to_json(),
            more: Map::new(),
            request: &self.request,
        }
        .run(session)
    }

    fn one(&self, session: &Session, id: &str) -> Result<(), Failure> {
        let mut args = self.request.to_json();
        args.insert("id".to_owned(), id.into());
        let made = session.call("redrive", &Value::from(args))?;
        if session.json {
            return session.say_json(&made);
        }
        session.say(&text::value(&made[0]["id"]))
    }
}
