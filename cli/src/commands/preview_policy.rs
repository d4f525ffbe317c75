//! `drayhorse preview-policy`: the delays SQL will choose, before anything fails.

use super::enqueue::checked_json;
use crate::failure::Failure;
use crate::session::Session;
use crate::{table, text, time};
use clap::Args;
use serde_json::{Value, json};

/// Show the delays a retry policy gives.
#[derive(Args)]
pub struct PreviewPolicy {
    /// The policy as JSON, {"type":"fixed","delayMs":5000} for example.
    policy: String,
    /// The job whose delays are wanted: jitter depends on it. Without it, a job's that does not exist.
    #[arg(long, value_name = "ID")]
    job_id: Option<String>,
    /// How many failed attempts to look ahead.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    attempts: u8,
}

impl PreviewPolicy {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let policy: Value = serde_json::from_str(checked_json("the policy", &self.policy)?.get())
            .map_err(|e| Failure::Usage(format!("the policy is not JSON: {e}")))?;
        let job_id = self.job_id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        let answer =
            session.call("previewPolicy", &json!({"policy": policy, "jobId": job_id, "attempts": self.attempts}))?;
        if session.json {
            return session.say_json(&answer);
        }
        let mut total: i128 = 0;
        let rows: Vec<Vec<String>> = answer["delaysMs"]
            .as_array()
            .into_iter()
            .flatten()
            .zip(1..)
            .map(|(delay, attempt)| {
                let ms = i128::from(delay.as_i64().unwrap_or_default());
                total += ms;
                vec![format!("{attempt}"), format!("{ms}"), time::shown_ms(ms), time::shown_ms(total)]
            })
            .collect();
        session.say(&format!(
            "{}\nJob {}\n\n{}",
            text::value(&answer["policy"]),
            text::line(&job_id),
            table::render(&["failed attempt", "delay in ms", "delay", "waited in all"], &rows)
        ))
    }
}
