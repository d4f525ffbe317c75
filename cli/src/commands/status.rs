//! `drayhorse status`: is it alive, how much waits, who works.

use crate::failure::Failure;
use crate::filter::STATES;
use crate::session::Session;
use crate::{table, text};
use clap::Args;
use serde_json::{Value, json};

/// Show the schema's version, jobs by queue and state, and living workers.
#[derive(Args)]
pub struct Status {}

impl Status {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let schema = session.call("schemaVersion", &json!({}))?;
        session.call("assertCompatible", &json!({}))?;
        let queues = session.call("counts", &json!({"filter": {}, "by": "queue"}))?;
        let workers = session.call("workers.list", &json!({}))?;
        if session.json {
            return session.say_json(&json!({"schema": schema, "queues": queues, "workers": workers}));
        }
        let rows = queues.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut out = format!("Schema {}, version {}\n\n", text::line(&session.schema), schema["version"]);
        out.push_str(&if rows.is_empty() { "No jobs yet.\n".to_owned() } else { jobs_by_state(rows) });
        out.push('\n');
        out.push_str(&workers_line(&workers));
        session.say(&out)
    }
}

fn jobs_by_state(queues: &[Value]) -> String {
    let heading: Vec<&str> = ["queue"].into_iter().chain(STATES).collect();
    let mut rows: Vec<Vec<String>> = queues
        .iter()
        .map(|queue| {
            std::iter::once(text::value(&queue["queue"])).chain(STATES.map(|s| queue[s].to_string())).collect()
        })
        .collect();
    if rows.len() > 1 {
        let total = |state| queues.iter().filter_map(|queue| queue[state].as_u64()).sum::<u64>().to_string();
        rows.push(std::iter::once("all queues".to_owned()).chain(STATES.map(total)).collect());
    }
    table::render(&heading, &rows)
}

fn workers_line(workers: &Value) -> String {
    let workers = workers.as_array().map(Vec::as_slice).unwrap_or_default();
    let sum = |key| workers.iter().filter_map(|worker| worker[key].as_u64()).sum::<u64>();
    match workers.len() {
        0 => "No worker is alive.\n".to_owned(),
        n => {
            let noun = if n == 1 { "worker" } else { "workers" };
            format!("{n} {noun} alive, {} of {} slots in use (drayhorse workers)\n", sum("running"), sum("slots"))
        }
    }
}
