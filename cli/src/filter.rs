//! Which jobs: the options that `jobs`, `redrive` and `replay` share.

use clap::Args;
use serde_json::{Map, Value};

/// A job's state, as it is typed.
pub const STATES: [&str; 8] = ["blocked", "scheduled", "ready", "active", "succeeded", "failed", "canceled", "skipped"];

/// All that are given must hold.
#[derive(Args)]
pub struct Filter {
    /// Jobs of this queue.
    #[arg(long)]
    pub queue: Option<String>,
    /// Jobs of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: Option<String>,
    /// Jobs for this endpoint.
    #[arg(long)]
    pub endpoint: Option<String>,
    /// Jobs with this tag.
    #[arg(long)]
    pub tag: Option<String>,
    /// Only jobs whose effect may have happened although they did not succeed.
    #[arg(long)]
    pub uncertain: bool,
}

impl Filter {
    /// The bridge's filter.
    pub fn to_json(&self) -> Map<String, Value> {
        let texts =
            [("queue", &self.queue), ("type", &self.job_type), ("endpoint", &self.endpoint), ("tag", &self.tag)];
        let mut filter: Map<String, Value> =
            texts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?.into()))).collect();
        if self.uncertain {
            filter.insert("uncertain".to_owned(), true.into());
        }
        filter
    }
}
