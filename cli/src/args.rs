//! What may be typed: the commands and the options they share.

use crate::commands::{
    cancel::Cancel, contracts::Contracts, dev::Dev, endpoint::Endpoint, endpoints::Endpoints, enqueue::Enqueue,
    errors::Errors, grant::Grant, job::Job, jobs::Jobs, migrate::Migrate, preview_policy::PreviewPolicy, prune::Prune,
    queue::Queue, queues::Queues, redrive::Redrive, replay::Replay, run::Run, status::Status, workers::Workers,
};
use clap::{Args, Parser, Subcommand};

const EXIT_CODES: &str = "Exit codes:
  0    done
  1    refused or failed; the error's code is the first word of the message
  2    usage: an argument is missing, unknown or outside its bounds
  3    not found: no such job, run, endpoint, queue, contract or role
  4    the database cannot be reached, is read-only or did not answer in time
  5    the schema is missing, too old or too new for this program: see `drayhorse migrate`
  6    the database role lacks a right
  7    not confirmed: answer the question or add --yes
  130  interrupted

Durations: a number and a unit, 500ms, 30s, 10m, 2h or 7d. Times: RFC 3339, 2030-01-31T18:00:00Z.
Give a URL that holds a password in DRAYHORSE_URL: arguments are visible to every user of the machine.";

/// Drayhorse, a durable job queue that lives in PostgreSQL.
#[derive(Parser)]
#[command(name = "drayhorse", version, about, after_help = EXIT_CODES, max_term_width = 110)]
pub struct Arguments {
    #[command(flatten)]
    pub connection: Connection,
    #[command(subcommand)]
    pub command: Command,
}

/// Which database, and how answers look.
#[derive(Args)]
#[command(next_help_heading = "Connection and output")]
pub struct Connection {
    /// The database: `postgresql://…`, or `embedded:FOLDER` for a private server.
    #[arg(long, global = true, env = "DRAYHORSE_URL", hide_env_values = true, default_value = "embedded:./.drayhorse")]
    pub url: String,
    /// The schema Drayhorse lives in.
    #[arg(long, global = true, env = "DRAYHORSE_SCHEMA", default_value = "drayhorse")]
    pub schema: String,
    /// Give up on connecting after this long.
    #[arg(long, global = true, value_parser = crate::time::parse_duration_ms, value_name = "DURATION", default_value = "10s")]
    pub connect_timeout: u64,
    /// Answer in JSON, for programs; failures too, on standard error.
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Subcommand)]
pub enum Command {
    Dev(Dev),
    Migrate(Migrate),
    Status(Status),
    Jobs(Jobs),
    Job(Job),
    Enqueue(Enqueue),
    Cancel(Cancel),
    Redrive(Redrive),
    Replay(Replay),
    Run(Run),
    Endpoints(Endpoints),
    Endpoint(Endpoint),
    Queues(Queues),
    Queue(Queue),
    Contracts(Contracts),
    PreviewPolicy(PreviewPolicy),
    Prune(Prune),
    Grant(Grant),
    /// Take the rights of one kind of user from a database role.
    Revoke(Grant),
    Workers(Workers),
    Errors(Errors),
}
