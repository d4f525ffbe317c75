//! `drayhorse queue`: one queue, what happened to it, and what an operator does about it.

use super::endpoint::show;
use crate::failure::Failure;
use crate::gate::{self, Kind, Limits, SETTING, Said};
use crate::session::Session;
use clap::{ArgGroup, Args, Subcommand};

/// Show one queue with its last events, or act on it.
///
/// Without an act nothing changes. Every act is kept with the queue's events: who, when and why.
#[derive(Args)]
#[command(
    override_usage = "drayhorse queue [OPTIONS] NAME [ACT]",
    disable_help_subcommand = true,
    subcommand_help_heading = "Acts"
)]
pub struct Queue {
    /// The queue's name.
    #[arg(required_unless_present = "named")]
    name: Option<String>,
    /// The same, for a queue that is called as an act is.
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
    /// Set limits; what is not named stays as it is.
    Configure(Configure),
}

#[derive(Args)]
#[command(override_usage = "drayhorse queue NAME configure [OPTIONS] SETTING...")]
#[command(group = ArgGroup::new(SETTING).required(true).multiple(true))]
struct Configure {
    #[command(flatten)]
    said: Said,
    #[command(flatten)]
    limits: Limits,
}

impl Queue {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = Kind::Queue;
        let name = self.name.or(self.named).unwrap_or_default();
        match self.act {
            None => show(kind, session, &name, self.events),
            Some(Act::Pause(said)) => kind.act(session, &name, "pause", said.to_json()),
            Some(Act::Resume(said)) => kind.act(session, &name, "resume", said.to_json()),
            Some(Act::Configure(settings)) => {
                let mut act = settings.said.to_json();
                act.extend(settings.limits.to_json());
                kind.act(session, &name, "configure", act)
            }
        }
    }
}
