//! What endpoints and queues have in common: the acts on their gates, the limits that may be set, and how a snapshot
//! and its events are shown.

use crate::commands::jobs::error_line;
use crate::failure::Failure;
use crate::session::{Session, default_actor};
use crate::{table, text, time};
use clap::Args;
use serde_json::{Map, Value, json};

/// The largest page the bridge gives.
const PAGE: u64 = 1000;

/// Events of one endpoint or queue that are shown unless asked otherwise; the bridge keeps the last 100 at hand.
pub const EVENTS: usize = 20;

/// Which of the two; they share their verbs' shapes, under different names.
#[derive(Clone, Copy)]
pub enum Kind {
    Endpoint,
    Queue,
}

impl Kind {
    /// As a sentence calls it.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Endpoint => "endpoint",
            Kind::Queue => "queue",
        }
    }

    fn verb(self, verb: &str) -> String {
        format!("{}s.{verb}", self.noun())
    }

    /// All of them, in the order of their names.
    pub fn list(self, session: &Session) -> Result<Vec<Value>, Failure> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let mut args = json!({"limit": PAGE});
            if let Some(last) = all.last() {
                args["after"] = last["name"].clone();
            }
            let Value::Array(page) = session.call(&self.verb("list"), &args)? else { break };
            let is_last = (page.len() as u64) < PAGE;
            all.extend(page);
            if is_last {
                break;
            }
        }
        Ok(all)
    }

    /// One with its events.
    pub fn get(self, session: &Session, name: &str) -> Result<Value, Failure> {
        match session.call(&self.verb("get"), &json!({"name": name}))? {
            Value::Null => Err(Failure::NotFound(format!("{} {name} was never used", self.noun()))),
            found => Ok(found),
        }
    }

    /// Does something to one and shows what it is like then. A name nobody used before comes into being by this, which
    /// is right for a new endpoint and a surprise for a misspelled one: it is said.
    pub fn act(self, session: &Session, name: &str, verb: &str, act: Map<String, Value>) -> Result<(), Failure> {
        let known = session.call(&self.verb("get"), &json!({"name": name}))?;
        let mut args = act;
        args.insert("name".to_owned(), name.into());
        let snapshot = session.call(&self.verb(verb), &Value::from(args))?;
        if known.is_null() {
            let (noun, name) = (self.noun(), text::line(name));
            eprintln!("drayhorse: note: {noun} {name} was never used before; it exists now");
        }
        if session.json {
            return session.say_json(&snapshot);
        }
        session.say(&table::facts(&facts(self, &snapshot)))
    }
}

/// Who acts and why; kept with the events.
#[derive(Args)]
pub struct Said {
    /// Who; the account at the terminal when absent.
    #[arg(long)]
    actor: Option<String>,
    /// Why; kept with the act.
    #[arg(long)]
    reason: Option<String>,
}

impl Said {
    /// As the verbs take it.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut said = Map::new();
        said.insert("actor".to_owned(), self.actor.clone().unwrap_or_else(default_actor).into());
        said.extend(self.reason.clone().map(|reason| ("reason".to_owned(), reason.into())));
        said
    }
}

/// A rate as it is typed: so many starts in so much time.
#[derive(Clone, Copy)]
pub struct Rate {
    limit: u64,
    interval_ms: u64,
}

/// `100/60s`.
fn parse_rate(typed: &str) -> Result<Rate, String> {
    let expected = || "a rate is a number of starts and a duration: 100/60s, 1/500ms".to_owned();
    let (limit, interval) = typed.split_once('/').ok_or_else(expected)?;
    Ok(Rate { limit: limit.parse().map_err(|_| expected())?, interval_ms: time::parse_duration_ms(interval)? })
}

/// Of a `configure` at least one has to be named.
pub const SETTING: &str = "setting";

/// The limits that both may have. What is not given stays as it is.
#[derive(Args)]
pub struct Limits {
    /// So many starts in so much time, 100/60s for example.
    #[arg(long, value_name = "N/DURATION", value_parser = parse_rate, group = SETTING)]
    rate: Option<Rate>,
    /// Starts that may come at once, up to the rate's number; that number when absent.
    #[arg(long, value_name = "N", requires = "rate")]
    burst: Option<u64>,
    /// Remove the rate limit.
    #[arg(long, conflicts_with_all = ["rate", "burst"], group = SETTING)]
    no_rate: bool,
    /// Attempts that may run at the same time.
    #[arg(long, value_name = "N", group = SETTING)]
    concurrency: Option<u64>,
    /// Remove the limit of attempts that run at the same time.
    #[arg(long, conflicts_with = "concurrency", group = SETTING)]
    no_concurrency: bool,
}

impl Limits {
    /// As `configure` takes them: null removes.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut settings = Map::new();
        if let Some(Rate { limit, interval_ms }) = self.rate {
            let mut rate = json!({"limit": limit, "intervalMs": interval_ms});
            if let Some(burst) = self.burst {
                rate["burst"] = burst.into();
            }
            settings.insert("rateLimit".to_owned(), rate);
        } else if self.no_rate {
            settings.insert("rateLimit".to_owned(), Value::Null);
        }
        if let Some(limit) = self.concurrency {
            settings.insert("maxConcurrency".to_owned(), limit.into());
        } else if self.no_concurrency {
            settings.insert("maxConcurrency".to_owned(), Value::Null);
        }
        settings
    }
}

/// Who paused it, in a list; `-` when nobody did.
pub fn paused_by(snapshot: &Value) -> String {
    or_dash(snapshot["paused"].get("actor").map(text::value))
}

/// `3 of 10 left, 100/60 s`; `-` without a limit.
pub fn rate(snapshot: &Value) -> String {
    let rate = &snapshot["rateLimit"];
    let interval = rate["intervalMs"].as_i64().map(|ms| time::shown_ms(ms.into()));
    or_dash(interval.map(|interval| {
        format!("{}/{}, {} of {} left", rate["limit"], interval, snapshot["tokensLeft"], rate["burst"])
    }))
}

/// `4/5`; `-` without a limit.
pub fn concurrency(snapshot: &Value) -> String {
    let limit = snapshot["maxConcurrency"].as_u64();
    or_dash(limit.map(|limit| format!("{}/{limit}", snapshot["slotsUsed"])))
}

/// A cell is never empty: columns are told apart by blanks.
pub fn or_dash(shown: Option<String>) -> String {
    shown.unwrap_or_else(|| "-".to_owned())
}

/// Everything about one, but for its events.
pub fn facts(kind: Kind, snapshot: &Value) -> Vec<(&'static str, String)> {
    let mut rows = vec![(kind.noun(), text::value(&snapshot["name"])), ("paused", paused(&snapshot["paused"]))];
    rows.push(("rate", rate(snapshot)));
    rows.push(("concurrency", concurrency(snapshot)));
    rows.push(("running", snapshot["running"].to_string()));
    rows.push(("waiting", snapshot["waiting"].to_string()));
    if matches!(kind, Kind::Endpoint) {
        let policy = &snapshot["retryPolicy"];
        rows.push(("retry policy", or_dash((!policy.is_null()).then(|| text::value(policy)))));
        rows.extend(circuit_facts(&snapshot["circuit"]));
    }
    rows
}

fn paused(paused: &Value) -> String {
    let Some(actor) = paused.get("actor") else { return "no".to_owned() };
    let since = time::shown(paused["at"].as_str().unwrap_or_default());
    let reason = paused["reason"].as_str().map(|reason| format!(": {}", text::line(reason)));
    format!("by {} since {since}{}", text::value(actor), reason.unwrap_or_default())
}

/// The circuit's state; a force is named, because no cooldown ends it.
pub fn circuit_state(circuit: &Value) -> String {
    let state = text::value(&circuit["state"]);
    if circuit["forced"].is_null() { state } else { format!("{state}, forced") }
}

/// Since when the state holds. An outage began with the opening, whatever probes failed since.
pub fn circuit_since(circuit: &Value) -> Option<String> {
    let is_outage = circuit["state"] == "open" && circuit["forced"].is_null();
    let since = if is_outage { circuit["openedAt"].as_str() } else { None };
    since.or(circuit["since"].as_str()).map(time::shown)
}

fn circuit_facts(circuit: &Value) -> Vec<(&'static str, String)> {
    let mut rows = vec![("circuit", circuit_state(circuit))];
    rows.extend(circuit_since(circuit).map(|since| ("  since", since)));
    rows.push(("  failures", format!("{} of {}", circuit["failures"], circuit["failureThreshold"])));
    rows.extend(next_probe(circuit).map(|probe| ("  next probe", probe)));
    rows.extend(probe_job(circuit).map(|job| ("  probe job", job)));
    rows.extend(circuit["overdueAt"].as_str().map(|at| ("  overdue at", time::shown(at))));
    rows.extend(error_line(&circuit["lastError"]).map(|error| ("  last error", error)));
    rows.extend(circuit["lastFailedJob"].as_str().map(|job| ("  of job", text::line(job))));
    let settings = [("  cooldown", "cooldownMs"), ("  probe timeout", "probeTimeoutMs")];
    rows.extend(settings.iter().filter_map(|(name, key)| Some((*name, time::shown_ms(circuit[key].as_i64()?.into())))));
    rows
}

/// When a probe becomes possible, of a circuit that waits for that.
pub fn next_probe(circuit: &Value) -> Option<String> {
    let waits_for_it = circuit["state"] == "open" && circuit["forced"].is_null();
    circuit["probeAt"].as_str().filter(|_| waits_for_it).map(time::shown)
}

/// The probe that is out.
pub fn probe_job(circuit: &Value) -> Option<String> {
    circuit["probeJob"].as_str().map(text::line)
}

/// The last events, the newest at the end.
pub fn events(snapshot: &Value, last: usize) -> String {
    let events = snapshot["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    if events.is_empty() {
        return "\nNo events yet.\n".to_owned();
    }
    let shown = &events[events.len().saturating_sub(last)..];
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|event| {
            vec![
                format!("  {}", time::shown(event["at"].as_str().unwrap_or_default())),
                text::value(&event["event"]),
                event.as_object().map(explanation).unwrap_or_default(),
            ]
        })
        .collect();
    let omitted = events.len() - shown.len();
    let heading = if omitted == 0 { "\nEvents\n".to_owned() } else { format!("\nThe last {} events\n", shown.len()) };
    heading + &table::render(&["  at", "event", "details"], &rows)
}

/// An event's own fields as one line: who and why first.
fn explanation(event: &Map<String, Value>) -> String {
    let mut parts = Vec::new();
    parts.extend(event.get("actor").map(|actor| format!("by {}", text::value(actor))));
    parts.extend(event.get("reason").map(text::value));
    parts.extend(event.get("jobId").filter(|job| !job.is_null()).map(|job| format!("job {}", text::value(job))));
    parts.extend(event.get("error").and_then(error_line));
    let told = ["at", "event", "actor", "reason", "jobId", "error"];
    for (key, value) in event.iter().filter(|(key, value)| !told.contains(&key.as_str()) && !value.is_null()) {
        let shown = match (key.strip_suffix("Ms"), value.as_i64(), value.as_str()) {
            (Some(name), Some(ms), _) => format!("{} {}", text::line(name), time::shown_ms(ms.into())),
            (_, _, Some(at)) if key.ends_with("At") => format!("{} {}", text::line(key), time::shown(at)),
            _ => format!("{} {}", text::line(key), text::value(value)),
        };
        parts.push(shown);
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_starts_and_time() {
        let rate = parse_rate("100/60s").unwrap();
        assert_eq!((rate.limit, rate.interval_ms), (100, 60_000));
        for bad in ["100", "/1s", "x/1s", "1/60", "-1/1s", "1/"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_outage_is_dated_from_the_opening() {
        let circuit =
            |state: &str, forced: Value| json!({"state": state, "forced": forced, "openedAt": "o", "since": "s"});
        assert_eq!(circuit_since(&circuit("open", Value::Null)).unwrap(), "o");
        assert_eq!(circuit_since(&circuit("open", "open".into())).unwrap(), "s");
        assert_eq!(circuit_since(&circuit("half_open", Value::Null)).unwrap(), "s");
    }
}
