//! `drayhorse endpoints`: every destination and what holds it back.

use super::jobs::error_line;
use crate::failure::Failure;
use crate::gate::{self, Kind, or_dash};
use crate::session::Session;
use crate::{table, text};
use clap::Args;
use serde_json::Value;

const ERROR_CHARACTERS: usize = 60;

/// List the endpoints: circuit, pause, rate, concurrency, and what runs and waits.
#[derive(Args)]
pub struct Endpoints {}

impl Endpoints {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let endpoints = Kind::Endpoint.list(session)?;
        if session.json {
            return session.say_json(&Value::from(endpoints));
        }
        if endpoints.is_empty() {
            return session.say("No endpoints yet.");
        }
        let heading = [
            "endpoint",
            "circuit",
            "since",
            "failures",
            "next probe",
            "probe job",
            "paused by",
            "rate",
            "slots",
            "running",
            "waiting",
            "last error",
        ];
        session.say(&table::render(&heading, &endpoints.iter().map(row).collect::<Vec<_>>()))
    }
}

fn row(endpoint: &Value) -> Vec<String> {
    let circuit = &endpoint["circuit"];
    vec![
        text::value(&endpoint["name"]),
        gate::circuit_state(circuit),
        or_dash(gate::circuit_since(circuit)),
        format!("{}/{}", circuit["failures"], circuit["failureThreshold"]),
        or_dash(gate::next_probe(circuit)),
        or_dash(gate::probe_job(circuit)),
        gate::paused_by(endpoint),
        gate::rate(endpoint),
        gate::concurrency(endpoint),
        endpoint["running"].to_string(),
        endpoint["waiting"].to_string(),
        or_dash(error_line(&circuit["lastError"]).map(|error| text::cut(&error, ERROR_CHARACTERS))),
    ]
}
