//! `drayhorse jobs`: lists, newest first, page by page.

use crate::failure::Failure;
use crate::filter::{Filter, STATES};
use crate::session::Session;
use crate::{table, text, time};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

/// List jobs, newest first.
#[derive(Args)]
pub struct Jobs {
    #[command(flatten)]
    filter: Filter,
    /// Jobs in this state.
    #[arg(long, value_parser = PossibleValuesParser::new(STATES))]
    state: Option<String>,
    /// Jobs on a page.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// The page after this one, as the page before says.
    #[arg(long, value_name = "CURSOR", conflicts_with = "all")]
    after: Option<String>,
    /// All pages.
    #[arg(long)]
    all: bool,
    /// With payloads and results; only with --json.
    #[arg(long, requires = "json")]
    payload: bool,
}

impl Jobs {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let mut filter = self.filter.to_json();
        if let Some(state) = &self.state {
            filter.insert("state".to_owned(), state.clone().into());
        }
        let mut cursor = self.after.clone().map_or(Value::Null, Value::from);
        let mut collected = Vec::new();
        loop {
            let mut page = session.call(
                "list",
                &json!({"filter": filter, "page": {"limit": self.limit, "after": cursor}, "payload": self.payload}),
            )?;
            cursor = page["next"].take();
            let Value::Array(jobs) = page["jobs"].take() else {
                break;
            };
            if session.json {
                collected.extend(jobs);
            } else if jobs.is_empty() {
                session.say("No jobs.")?;
            } else {
                session.say(&listing(&jobs))?;
            }
            if !self.all || cursor.is_null() {
                break;
            }
        }
        if session.json {
            return session.say_json(&json!({"jobs": collected, "next": cursor}));
        }
        match cursor.as_str() {
            Some(next) => session.say(&format!("\nThere are more: add --after {}", text::line(next))),
            None => Ok(()),
        }
    }
}

fn listing(jobs: &[Value]) -> String {
    let rows: Vec<Vec<String>> = jobs
        .iter()
        .map(|job| {
            vec![
                text::value(&job["id"]),
                state(job),
                text::value(&job["queue"]),
                format!("{}@{}", text::value(&job["type"]), text::value(&job["version"])),
                format!("{}/{}", job["attempt"], job["maxAttempts"]),
                when(job),
                text::cut(&why(job), 100),
            ]
        })
        .collect();
    table::render(&["id", "state", "queue", "type", "attempt", "since", "why"], &rows)
}

/// The state, marked where an operator has to look twice.
pub fn state(job: &Value) -> String {
    let mut shown = text::value(&job["state"]);
    if job["cancelRequested"] == true && job["state"] == "active" {
        shown.push_str(", cancel requested");
    }
    if job["uncertain"] == true {
        shown.push_str(", uncertain");
    }
    if job["synthetic"] == true {
        shown.push_str(", synthetic");
    }
    shown
}

fn when(job: &Value) -> String {
    let time = ["finishedAt", "claimedAt", "enqueuedAt"].iter().find_map(|key| job[key].as_str());
    time.map(time::shown).unwrap_or_default()
}

/// The shortest answer to "why is it like this": what it waits for, else how it ended, else its last error.
fn why(job: &Value) -> String {
    let waits: Vec<String> = job["waiting"]
        .as_array()
        .map(|reasons| reasons.iter().filter_map(|reason| Some(text::line(reason["message"].as_str()?))).collect())
        .unwrap_or_default();
    let ended = job["reason"].as_str().map(text::line);
    waits.into_iter().chain(ended).chain(error_line(&job["lastError"])).collect::<Vec<_>>().join("; ")
}

/// `Name: message` of a stored error.
pub fn error_line(error: &Value) -> Option<String> {
    let message = text::line(error["message"].as_str().unwrap_or_default());
    match error["name"].as_str().map(text::line) {
        Some(name) => Some(format!("{name}: {message}")),
        None if error["message"].is_string() => Some(message),
        None => None,
    }
}
