//! `drayhorse redrive`: new jobs from failed ones, one or many, with a look at the risk first.

use crate::failure::Failure;
use crate::filter::Filter;
use crate::session::{Session, default_actor};
use crate::{table, text};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};

const PAGE: u64 = 100;

/// Make new jobs from failed ones.
///
/// By id, or by filter after showing how many there are. Repeating a call with the same request id makes no job
/// twice: that is how an interrupted redrive is resumed.
#[derive(Args)]
pub struct Redrive {
    /// The failed job.
    #[arg(required_unless_present_any = ["queue", "job_type", "endpoint", "tag", "uncertain", "every"])]
    id: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Every failed job of the schema.
    #[arg(long, conflicts_with = "id")]
    every: bool,
    /// Why; kept with the jobs.
    #[arg(long)]
    reason: String,
    /// Who; the account at the terminal when absent.
    #[arg(long)]
    actor: Option<String>,
    /// Names this redrive; made and shown when absent.
    #[arg(long)]
    request_id: Option<String>,
    /// Somebody has checked that a repeated effect does no harm, or did not happen.
    #[arg(long)]
    acknowledge_duplicate_risk: bool,
    /// Keep the work that the failed job had saved.
    #[arg(long)]
    copy_checkpoints: bool,
    /// Let destinations see the new job as another one than the failed one.
    #[arg(long)]
    new_effect_key: bool,
    /// At most so many jobs.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Show what would be redriven and stop.
    #[arg(long)]
    preview: bool,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

impl Redrive {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        match &self.id {
            Some(_) if !self.filter.is_empty() => {
                Err(Failure::Usage("redrive takes an id or a filter, not both".to_owned()))
            }
            Some(id) => self.one(session, id),
            None => self.many(session),
        }
    }

    fn request(&self) -> Map<String, Value> {
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

    fn one(&self, session: &Session, id: &str) -> Result<(), Failure> {
        let mut request = self.request();
        request.insert("id".to_owned(), id.into());
        let made = session.call("redrive", &Value::from(request))?;
        if session.json {
            return session.say_json(&made);
        }
        session.say(&text::value(&made[0]["id"]))
    }

    fn many(&self, session: &Session) -> Result<(), Failure> {
        let filter = self.filter.to_json();
        let preview = session.call("redrivePreview", &json!({"filter": filter}))?;
        let number = |key: &str| preview[key].as_u64().unwrap_or(0);
        let count = number("count").min(self.limit.unwrap_or(u64::MAX));
        if self.preview && session.json {
            return session.say_json(&preview);
        }
        if self.preview {
            return session.say(&risks(&preview));
        }
        if !session.json {
            eprint!("{}", risks(&preview));
        }
        if number("withEndpoint") > 0 && !self.acknowledge_duplicate_risk {
            return Err(Failure::Refused(format!(
                "{} of the jobs may have reached their endpoint: check that a repetition does no harm, then add \
                 --acknowledge-duplicate-risk",
                number("withEndpoint")
            )));
        }
        // A resumed request finds its jobs redriven already; asking for them again returns the same ids.
        if count == 0 && self.request_id.is_none() {
            return if session.json { session.say_json(&json!([])) } else { session.say("Nothing to redrive.") };
        }
        session.confirm(&format!("Redrive {count} jobs?"), self.yes)?;
        let request = self.request();
        let request_id = text::value(&request["requestId"]);
        eprintln!("Request {request_id}: to resume after an interruption add --request-id {request_id}");
        let made = self.pages(session, request, &filter, count)?;
        if session.json {
            return session.say_json(&Value::from(made));
        }
        session.say(&format!("{} jobs redriven.", made.len()))
    }

    fn pages(
        &self,
        session: &Session,
        mut request: Map<String, Value>,
        filter: &Map<String, Value>,
        expected: u64,
    ) -> Result<Vec<Value>, Failure> {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {per_sec} {eta}").expect("a constant template");
        let bar = ProgressBar::new(expected).with_style(style);
        request.insert("filter".to_owned(), Value::from(filter.clone()));
        let mut made: Vec<Value> = Vec::new();
        loop {
            let left = self.limit.map_or(PAGE, |limit| PAGE.min(limit - made.len() as u64));
            if left == 0 {
                break;
            }
            request.insert("limit".to_owned(), left.into());
            let Value::Array(page) = session.call("redrive", &Value::from(request.clone()))? else {
                break;
            };
            let Some(last) = page.last() else { break };
            request.insert("after".to_owned(), last["sourceId"].clone());
            bar.inc(page.len() as u64);
            made.extend(page);
        }
        bar.finish_and_clear();
        Ok(made)
    }
}

fn risks(preview: &Value) -> String {
    table::facts(&[
        ("failed jobs", text::value(&preview["count"])),
        ("may have reached an endpoint", text::value(&preview["withEndpoint"])),
        ("uncertain", text::value(&preview["uncertain"])),
    ])
}
