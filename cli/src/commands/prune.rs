//! `drayhorse prune`: what retention does by itself in workers, for a database that has none.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

/// Remove ended jobs that are older than the retention times, with their evidence.
#[derive(Args)]
pub struct Prune {
    /// Jobs removed in one transaction.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Only one batch.
    #[arg(long)]
    once: bool,
}

impl Prune {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let spinner = ProgressBar::new_spinner()
            .with_style(ProgressStyle::with_template("{spinner} {pos} jobs removed").expect("a constant template"));
        let mut removed = 0;
        loop {
            let answer = session.call("prune", &json!({"limit": self.limit}))?;
            let batch = answer["jobs"].as_u64().unwrap_or(0);
            removed += batch;
            spinner.inc(batch);
            if batch == 0 || self.once {
                break;
            }
        }
        spinner.finish_and_clear();
        if session.json {
            return session.say_json(&json!({"jobs": removed}));
        }
        session.say(&format!("{removed} jobs removed."))
    }
}
