//! `drayhorse endpoint`: one destination, what happened to it, and what an operator does about it.

use super::enqueue::checked_json;
use crate::failure::Failure;
use crate::gate::{self, Kind, Limits, SETTING, Said};
use crate::session::Session;
use crate::table;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Map, Value};

/// Show one endpoint with its last events, or act on it.
///
/// Without an act nothing changes. Every act is kept with the endpoint's events: who, when and why.
#[derive(Args)]
#[command(
    override_usage = "drayhorse endpoint [OPTIONS] NAME [ACT]",
    disable_help_subcommand = true,
    subcommand_help_heading = "Acts"
)]
pub struct Endpoint {
    /// The endpoint's name.
    #[arg(required_unless_present = "named")]
    name: Option<String>,
    /// The same, for an endpoint that is called as an act is.
    #[arg(long = "name", value_name = "NAME", conflicts_with = "name")]
    named: Option<String>,
    /// How many of the last 100 events to show.
    #[arg(long, value_name = "N", default_value_t = gate::EVENTS)]
    events: usize,
    #[command(subcommand)]
    act: Option<Act>,
}

#[derive(Subcommand)]
enum Act {
    /// Start nothing until it is resumed; running jobs finish.
    Pause(Said),
    /// End the pause.
    Resume(Said),
    /// Open the circuit until it is reset: only synthetic tests run.
    ForceOpen(Said),
    /// Close the circuit until it is reset, whatever fails.
    ForceClose(Said),
    /// Close the circuit and begin anew: no force, no failures counted.
    Reset(Said),
    /// Set limits, the default retry policy and the circuit; what is not named stays as it is.
    Configure(Configure),
}

#[derive(Args)]
#[command(override_usage = "drayhorse endpoint NAME configure [OPTIONS] SETTING...")]
#[command(group = ArgGroup::new(SETTING).required(true).multiple(true))]
struct Configure {
    #[command(flatten)]
    said: Said,
    #[command(flatten)]
    limits: Limits,
    /// The policy of jobs enqueued from now on without one of their own, as JSON.
    #[arg(long, value_name = "JSON", group = SETTING)]
    retry_policy: Option<String>,
    /// Remove the policy.
    #[arg(long, conflicts_with = "retry_policy", group = SETTING)]
    no_retry_policy: bool,
    /// Consecutive failures that open the circuit.
    #[arg(long, value_name = "N", group = SETTING)]
    failure_threshold: Option<u64>,
    /// How long an open circuit waits before a probe may start.
    #[arg(long, value_name = "MS", group = SETTING)]
    cooldown_ms: Option<u64>,
    /// How long a probe of a job without a timeout may take.
    #[arg(long, value_name = "MS", group = SETTING)]
    probe_timeout_ms: Option<u64>,
}

impl Endpoint {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = Kind::Endpoint;
        let name = self.name.or(self.named).unwrap_or_default();
        let (verb, act) = match &self.act {
            None => return show(kind, session, &name, self.events),
            Some(Act::Pause(said)) => ("pause", said.to_json()),
            Some(Act::Resume(said)) => ("resume", said.to_json()),
            Some(Act::ForceOpen(said)) => ("forceOpen", said.to_json()),
            Some(Act::ForceClose(said)) => ("forceClose", said.to_json()),
            Some(Act::Reset(said)) => ("reset", said.to_json()),
            Some(Act::Configure(settings)) => ("configure", settings.to_json()?),
        };
        kind.act(session, &name, verb, act)
    }
}

impl Configure {
    fn to_json(&self) -> Result<Map<String, Value>, Failure> {
        let mut settings = self.said.to_json();
        settings.extend(self.limits.to_json());
        if let Some(typed) = &self.retry_policy {
            let policy = serde_json::from_str(checked_json("--retry-policy", typed)?.get())
                .map_err(|e| Failure::Usage(format!("--retry-policy is not JSON: {e}")))?;
            settings.insert("retryPolicy".to_owned(), policy);
        } else if self.no_retry_policy {
            settings.insert("retryPolicy".to_owned(), Value::Null);
        }
        let circuit: Map<String, Value> = [
            ("failureThreshold", self.failure_threshold),
            ("cooldownMs", self.cooldown_ms),
            ("probeTimeoutMs", self.probe_timeout_ms),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?.into())))
        .collect();
        if !circuit.is_empty() {
            settings.insert("circuit".to_owned(), Value::from(circuit));
        }
        Ok(settings)
    }
}

/// One endpoint or queue with its last events.
pub fn show(kind: Kind, session: &Session, name: &str, events: usize) -> Result<(), Failure> {
    let snapshot = kind.get(session, name)?;
    if session.json {
        return session.say_json(&snapshot);
    }
    session.say(&(table::facts(&gate::facts(kind, &snapshot)) + &gate::events(&snapshot, events)))
}
