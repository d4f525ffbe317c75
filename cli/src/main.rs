//! The command line of Drayhorse: what an operator sees and does, on the core's bridge alone.
//!
//! `args` is what may be typed, `commands` holds one file per command, `session` talks to the core, `failure`
//! turns what went wrong into a sentence and an exit code, `text` makes data safe for a terminal.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod failure;
mod filter;
mod gate;
mod repeat;
mod session;
mod table;
mod text;
mod time;

use args::{Arguments, Command};
use clap::Parser;
use failure::Failure;
use session::Session;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(refusal) => return refuse_usage(&refusal),
    };
    let json = arguments.connection.json;
    match run(arguments) {
        // Whoever reads has gone, as `head` does: there is nobody left to tell.
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", if json { failure.to_json() } else { format!("drayhorse: {failure}") });
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    // What needs no database must not start a private one.
    if let Command::Errors(command) = arguments.command {
        return command.run(&arguments.connection);
    }
    let session = Session::open(&arguments.connection)?;
    let result = match arguments.command {
        Command::Dev(command) => command.run(&session),
        Command::Migrate(command) => command.run(&session),
        Command::Status(command) => command.run(&session),
        Command::Jobs(command) => command.run(&session),
        Command::Job(command) => command.run(&session),
        Command::Enqueue(command) => command.run(&session),
        Command::Cancel(command) => command.run(&session),
        Command::Redrive(command) => command.run(&session),
        Command::Replay(command) => command.run(&session),
        Command::Run(command) => command.run(&session),
        Command::Endpoints(command) => command.run(&session),
        Command::Endpoint(command) => command.run(&session),
        Command::Queues(command) => command.run(&session),
        Command::Queue(command) => command.run(&session),
        Command::Contracts(command) => command.run(&session),
        Command::PreviewPolicy(command) => command.run(&session),
        Command::Prune(command) => command.run(&session),
        Command::Grant(command) => command.run(&session, "grant"),
        Command::Revoke(command) => command.run(&session, "revoke"),
        Command::Workers(command) => command.run(&session),
        Command::Errors(command) => command.run(&arguments.connection),
    };
    session.close();
    result
}

/// Help and version go to standard output. A refusal quotes what was typed, and somebody may have typed a URL with
/// its password where a command belongs.
fn refuse_usage(refusal: &clap::Error) -> ExitCode {
    if !refusal.use_stderr() {
        // A reader that is gone does not need the help text.
        let _ = refusal.print();
        return ExitCode::SUCCESS;
    }
    eprint!("{}", text::block(&text::without_passwords(&refusal.to_string())));
    ExitCode::from(failure::USAGE)
}
