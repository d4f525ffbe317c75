//! `drayhorse replay`: a new job from any that has ended, after a look at what would run and what speaks against it.

use crate::failure::Failure;
use crate::filter::Filter;
use crate::repeat::{Many, Request};
use crate::session::Session;
use crate::{table, text};
use clap::Args;
use clap::builder::PossibleValuesParser;
use drayhorse_core::error::{Error, Kind};
use serde_json::{Map, Value, json};

const ENDED: [&str; 4] = ["succeeded", "failed", "canceled", "skipped"];

/// Make a new job from one that has ended, however it ended.
///
/// Shows what would run and what speaks against it, then asks. The new job has one attempt unless told otherwise,
/// obeys every gate and joins the source's run. By filter, with --state, after showing how many there are. Repeating a
/// call with the same request id makes no job twice: that is how an interrupted replay is resumed.
#[derive(Args)]
pub struct Replay {
    /// The job.
    #[arg(
        required_unless_present = "state",
        conflicts_with_all = ["queue", "job_type", "endpoint", "tag", "uncertain", "state", "limit"],
    )]
    id: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Jobs that ended like this; needed for many, so that nobody repeats what went well by mistake.
    #[arg(long, value_parser = PossibleValuesParser::new(ENDED))]
    state: Option<String>,
    /// The new job's budget, 1 to 100; 1 when absent.
    #[arg(long, value_name = "N")]
    max_attempts: Option<u64>,
    /// With the payload that would run.
    #[arg(long, requires = "id")]
    payload: bool,
    #[command(flatten)]
    request: Request,
}

impl Replay {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        if let Some(id) = &self.id {
            return self.one(session, id);
        }
        let mut filter = self.filter.to_json();
        filter.extend(self.state.clone().map(|state| ("state".to_owned(), state.into())));
        let source = format!("{} jobs", self.state.as_deref().unwrap_or("ended"));
        Many { verb: "replay", done: "replayed", source: &source, filter, more: self.budget(), request: &self.request }
            .run(session)
    }

    fn budget(&self) -> Map<String, Value> {
        self.max_attempts.iter().map(|n| ("maxAttempts".to_owned(), (*n).into())).collect()
    }

    fn one(&self, session: &Session, id: &str) -> Result<(), Failure> {
        let mut preview = session.call("replayPreview", &json!({"id": id}))?;
        if let (false, Some(members)) = (self.payload, preview.as_object_mut()) {
            members.remove("payload");
        }
        let shown = || table::facts(&facts(&preview, self.max_attempts.unwrap_or(1)));
        if self.request.preview {
            return if session.json { session.say_json(&preview) } else { session.say(&shown()) };
        }
        if !session.json {
            eprint!("{}", shown());
        }
        if preview["replayable"] != true {
            let said = format!("job {id} has not ended, or is a synthetic test: neither can be replayed");
            return Err(Error::new(Kind::WrongState, said).into());
        }
        if preview["risks"]["acknowledgementNeeded"] == true && !self.request.acknowledge_duplicate_risk {
            return Err(Failure::Refused(
                "an attempt of this job may have reached its endpoint: check that a repetition does no harm, then add \
                 --acknowledge-duplicate-risk"
                    .to_owned(),
            ));
        }
        session.confirm("Replay this job?", self.request.yes)?;
        let mut args = self.request.to_json();
        args.insert("id".to_owned(), id.into());
        args.extend(self.budget());
        let made = session.call("replay", &Value::from(args))?;
        if session.json {
            return session.say_json(&made);
        }
        session.say(&text::value(&made[0]["id"]))
    }
}

/// What would run first, then what speaks against it.
fn facts(preview: &Value, max_attempts: u64) -> Vec<(&'static str, String)> {
    let would = &preview["wouldRun"];
    let risks = &preview["risks"];
    let mut rows = vec![
        ("job", text::value(&preview["id"])),
        ("ended", text::value(&preview["state"])),
        ("would run", format!("{}@{}", text::value(&would["type"]), text::value(&would["version"]))),
        ("queue", text::value(&would["queue"])),
        ("attempts", max_attempts.to_string()),
    ];
    if !would["endpoint"].is_null() {
        rows.push(("endpoint", text::value(&would["endpoint"])));
        rows.push(("circuit", circuit(&risks["circuit"])));
    }
    rows.push(("effect key", text::value(&would["idempotencyKey"])));
    rows.extend(preview.get("payload").map(|payload| ("payload", text::json(payload, true))));
    rows.push(("started", yes_or_no(&risks["started"], "an attempt ran: its effect may have happened")));
    rows.push(("uncertain", yes_or_no(&risks["uncertain"], "reconcile with the destination first")));
    rows.push(("checkpoints", names(&risks["checkpoints"])));
    rows.push(("repeated before", names(&risks["repeatedBefore"])));
    rows
}

fn circuit(state: &Value) -> String {
    let shown = text::value(state);
    if state == "closed" { shown } else { format!("{shown}: the new job waits for it, and may be the probe") }
}

fn yes_or_no(risk: &Value, meaning: &str) -> String {
    if risk == true { format!("yes: {meaning}") } else { "no".to_owned() }
}

fn names(list: &Value) -> String {
    let names: Vec<String> = list.as_array().into_iter().flatten().map(text::value).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}
