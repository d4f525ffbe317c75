//! `drayhorse run`: a group of jobs, begun, looked at and closed.

use crate::failure::Failure;
use crate::filter::STATES;
use crate::session::Session;
use crate::{table, text, time};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// Start, show or finish a run: a group of jobs with follow-ups and fallbacks.
#[derive(Args)]
pub struct Run {
    #[command(subcommand)]
    act: Act,
}

#[derive(Subcommand)]
enum Act {
    /// Start a run; its id goes to standard output. Jobs join it with `enqueue --run ID`.
    Start {
        /// What the run is called; it need not be unique.
        name: String,
    },
    /// Show a run: its state, its jobs by state and their ids.
    Get {
        /// The run's id.
        id: String,
    },
    /// Close a run for new jobs: it ends when its jobs have.
    Finish {
        /// The run's id.
        id: String,
    },
}

impl Run {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let (id, run) = match self.act {
            Act::Start { name } => {
                let started = session.call("startRun", &json!({"name": name}))?;
                return if session.json {
                    session.say_json(&started)
                } else {
                    session.say(&text::value(&started["id"]))
                };
            }
            Act::Get { id } => {
                let run = session.call("getRun", &json!({"id": id}))?;
                (id, run)
            }
            Act::Finish { id } => {
                let run = session.call("finishRun", &json!({"id": id}))?;
                (id, run)
            }
        };
        if run.is_null() {
            return Err(Failure::NotFound(format!("there is no run {id}")));
        }
        if session.json {
            return session.say_json(&run);
        }
        session.say(&shown(&run))
    }
}

fn shown(run: &Value) -> String {
    let mut rows = vec![("run", text::value(&run["id"])), ("name", text::value(&run["name"]))];
    rows.push(("state", text::value(&run["state"])));
    let times = [("started", "startedAt"), ("finished", "finishedAt")];
    rows.extend(times.iter().filter_map(|(name, key)| Some((*name, time::shown(run[key].as_str()?)))));
    if run["finishedAt"].is_null() {
        rows.push(("finished", "no: jobs may still join".to_owned()));
    }
    let counts: Vec<(&str, u64)> =
        STATES.iter().filter_map(|state| Some((*state, run["jobs"][*state].as_u64()?))).collect();
    let by_state: Vec<String> = counts.iter().map(|(state, n)| format!("{n} {state}")).collect();
    rows.push(("jobs", if by_state.is_empty() { "none".to_owned() } else { by_state.join(", ") }));
    let ids: Vec<String> = run["jobIds"].as_array().into_iter().flatten().map(text::value).collect();
    let all: u64 = counts.iter().map(|(_, n)| n).sum();
    if !ids.is_empty() {
        let more = all.saturating_sub(ids.len() as u64);
        let rest = if more > 0 { format!("\nand {more} more") } else { String::new() };
        rows.push(("ids", ids.join("\n") + &rest));
    }
    table::facts(&rows)
}
