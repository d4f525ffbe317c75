//! `drayhorse cancel`: ends jobs that wait, asks the ones that run.

use crate::failure::Failure;
use crate::session::{Session, default_actor};
use crate::text;
use clap::Args;
use serde_json::json;

/// Cancel jobs: one that waits ends at once, one that runs is asked to stop.
///
/// Exits with 3 if one of them does not exist and with 1 if one had ended before.
#[derive(Args)]
pub struct Cancel {
    /// The jobs' ids.
    #[arg(required = true)]
    ids: Vec<String>,
    /// Why; kept with the job.
    #[arg(long)]
    reason: Option<String>,
    /// Who; the account at the terminal when absent.
    #[arg(long)]
    actor: Option<String>,
}

impl Cancel {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let actor = self.actor.unwrap_or_else(default_actor);
        let mut answers: Vec<serde_json::Value> = Vec::new();
        for id in &self.ids {
            let mut args = json!({"id": id, "actor": actor});
            if let Some(reason) = &self.reason {
                args["reason"] = reason.clone().into();
            }
            let answer = session.call("cancel", &args)?;
            let result = answer["result"].as_str().unwrap_or_default().to_owned();
            if !session.json {
                session.say(&format!("{}  {}", text::line(id), text::line(&result)))?;
            }
            answers.push(json!({"id": id, "result": result}));
        }
        if session.json {
            session.say_json(&json!(answers))?;
        }
        let count = |result: &str| answers.iter().filter(|answer| answer["result"] == result).count();
        match (count("not_found"), count("already_terminal")) {
            (0, 0) => Ok(()),
            (0, ended) => Err(Failure::Refused(format!("{ended} had ended before and cannot be canceled"))),
            (missing, _) => Err(Failure::NotFound(format!("{missing} of the jobs do not exist"))),
        }
    }
}
