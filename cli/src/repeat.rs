//! New jobs from jobs that have ended: what `redrive` and `replay` share. By filter they show how many there are and
//! what speaks against it, ask, and work page by page under one request id, by which an interruption is made up for.

use crate::failure::Failure;
use crate::session::{Session, default_actor};
use crate::{table, text};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const PAGE: u64 = 100;

/// Who repeats what in which way.
#[derive(Args)]
pub struct Request {
    /// Why; kept with the jobs.
    #[arg(long, required_unless_present = "preview")]
    reason: Option<String>,
    /// Who; the account at the terminal when absent.
    #[arg(long)]
    actor: Option<String>,
    /// Names this request; made and shown when absent.
    #[arg(long)]
    pub request_id: Option<String>,
    /// Somebody has checked that a repeated effect does no harm, or did not happen.
    #[arg(long)]
    pub acknowledge_duplicate_risk: bool,
    /// Keep the work that the job had saved.
    #[arg(long)]
    copy_checkpoints: bool,
    /// Let destinations see the new job as another one than its source.
    #[arg(long)]
    new_effect_key: bool,
    /// At most so many jobs.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Show what would be done and stop.
    #[arg(long)]
    pub preview: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

impl Request {
    /// As the verbs take it, under a request id in any case.
    pub fn to_json(&self) -> Map<String, Value> {
        let request_id = self.request_id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        let request = json!({
            "actor": self.actor.clone().unwrap_or_else(default_actor),
            "reason": self.reason,
            "requestId": request_id,
            "acknowledgeDuplicateRisk": self.acknowledge_duplicate_risk,
            "copyCheckpoints": self.copy_checkpoints,
            "newEffectKey": self.new_effect_key,
        });
        let Value::Object(request) = request else { unreachable!("json! of an object is an object") };
        request
    }
}

/// What is done to the jobs of a filter, in the words of its command.
pub struct Many<'a> {
    /// `redrive` or `replay`.
    pub verb: &'a str,
    /// What was done to the jobs afterwards.
    pub done: &'a str,
    /// What the jobs are before.
    pub source: &'a str,
    pub filter: Map<String, Value>,
    /// More members of the verb's arguments.
    pub more: Map<String, Value>,
    pub request: &'a Request,
}

impl Many<'_> {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let request = self.request;
        let preview = session.call(&format!("{}Preview", self.verb), &json!({"filter": self.filter}))?;
        if request.preview {
            return if session.json { session.say_json(&preview) } else { session.say(&self.risks(&preview)) };
        }
        if !session.json {
            eprint!("{}", self.risks(&preview));
        }
        let number = |key: &str| preview[key].as_u64().unwrap_or(0);
        if number("withEndpoint") > 0 && !request.acknowledge_duplicate_risk {
            return Err(Failure::Refused(format!(
                "{} of the jobs may have reached their endpoint: check that a repetition does no harm, then add \
                 --acknowledge-duplicate-risk",
                number("withEndpoint")
            )));
        }
        let count = number("count").min(request.limit.unwrap_or(u64::MAX));
        // A resumed request finds its jobs repeated already; asking for them again returns the same ids.
        if count == 0 && request.request_id.is_none() {
            return if session.json {
                session.say_json(&json!([]))
            } else {
                session.say(&format!("Nothing to {}.", self.verb))
            };
        }
        let question = match count {
            0 => format!("Resume this {}?", self.verb),
            _ => format!("{} {count} jobs?", capitalized(self.verb)),
        };
        session.confirm(&question, request.yes)?;
        let mut args = request.to_json();
        let request_id = text::value(&args["requestId"]);
        eprintln!("Request {request_id}: to resume after an interruption add --request-id {request_id}");
        args.insert("filter".to_owned(), Value::from(self.filter.clone()));
        args.extend(self.more.clone());
        let made = self.pages(session, args, count)?;
        if session.json {
            return session.say_json(&Value::from(made));
        }
        session.say(&format!("{} jobs {}.", made.len(), self.done))
    }

    /// Page after page in the order of the sources' ids, the new jobs' being the last. Those may have ended meanwhile,
    /// in a way that the filter matches: so a new request ends with the number that was shown. Of one that is resumed
    /// that number is not known; it ends with the page in which its own jobs turn up.
    fn pages(&self, session: &Session, mut args: Map<String, Value>, count: u64) -> Result<Vec<Value>, Failure> {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {per_sec} {eta}").expect("a constant template");
        let bar = ProgressBar::new(count).with_style(style);
        let most = if self.request.request_id.is_none() { Some(count) } else { self.request.limit };
        let mut made: Vec<Value> = Vec::new();
        let mut own: BTreeSet<String> = BTreeSet::new();
        loop {
            let left = most.map_or(PAGE, |most| PAGE.min(most - made.len() as u64));
            if left == 0 {
                break;
            }
            args.insert("limit".to_owned(), left.into());
            let Value::Array(page) = session.call(self.verb, &Value::from(args.clone()))? else {
                break;
            };
            let Some(last) = page.last() else { break };
            args.insert("after".to_owned(), last["sourceId"].clone());
            bar.inc(page.len() as u64);
            own.extend(page.iter().filter_map(|job| job["id"].as_str().map(str::to_owned)));
            let reached_own = last["sourceId"].as_str().is_some_and(|source| own.contains(source));
            made.extend(page);
            if reached_own {
                break;
            }
        }
        bar.finish_and_clear();
        Ok(made)
    }

    fn risks(&self, preview: &Value) -> String {
        table::facts(&[
            (self.source, text::value(&preview["count"])),
            ("may have reached an endpoint", text::value(&preview["withEndpoint"])),
            ("uncertain", text::value(&preview["uncertain"])),
        ])
    }
}

fn capitalized(word: &str) -> String {
    let mut characters = word.chars();
    characters.next().map(|first| first.to_uppercase().to_string() + characters.as_str()).unwrap_or_default()
}
