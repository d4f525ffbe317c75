//! `drayhorse workers`: who is alive, what it handles, what it runs.

use crate::failure::Failure;
use crate::session::Session;
use crate::{table, text, time};
use clap::Args;
use serde_json::{Value, json};

/// List the workers seen within the last minute.
#[derive(Args)]
pub struct Workers {}

impl Workers {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let workers = session.call("workers.list", &json!({}))?;
        if session.json {
            return session.say_json(&workers);
        }
        let workers = workers.as_array().map(Vec::as_slice).unwrap_or_default();
        if workers.is_empty() {
            return session.say("No worker is alive.");
        }
        let rows: Vec<Vec<String>> = workers
            .iter()
            .map(|worker| {
                vec![
                    worker["id"].to_string(),
                    text::value(&worker["name"]),
                    [&worker["host"], &worker["pid"], &worker["language"]].map(text::value).join(" "),
                    format!("{}/{}", worker["running"], worker["slots"]),
                    list(&worker["queues"], text::value),
                    list(&worker["handlers"], |h| {
                        format!("{}@{}", text::value(&h["type"]), text::value(&h["version"]))
                    }),
                    time::shown(worker["seenAt"].as_str().unwrap_or_default()),
                ]
            })
            .collect();
        session.say(&table::render(&["id", "name", "process", "running", "queues", "handlers", "seen"], &rows))
    }
}

fn list(values: &Value, shown: impl Fn(&Value) -> String) -> String {
    values.as_array().into_iter().flatten().map(shown).collect::<Vec<_>>().join(" ")
}
