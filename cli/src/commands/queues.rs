//! `drayhorse queues`: every queue and what holds it back.

use crate::failure::Failure;
use crate::gate::{self, Kind};
use crate::session::Session;
use crate::{table, text};
use clap::Args;
use serde_json::Value;

/// List the queues: pause, rate, concurrency, and what runs and waits.
#[derive(Args)]
pub struct Queues {}

impl Queues {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let queues = Kind::Queue.list(session)?;
        if session.json {
            return session.say_json(&Value::from(queues));
        }
        if queues.is_empty() {
            return session.say("No queues yet.");
        }
        let heading = ["queue", "paused by", "rate", "slots", "running", "waiting"];
        session.say(&table::render(&heading, &queues.iter().map(row).collect::<Vec<_>>()))
    }
}

fn row(queue: &Value) -> Vec<String> {
    vec![
        text::value(&queue["name"]),
        gate::paused_by(queue),
        gate::rate(queue),
        gate::concurrency(queue),
        queue["running"].to_string(),
        queue["waiting"].to_string(),
    ]
}
