//! The core as the commands see it: JSON values in and out, standard output, and a question to the person.

use crate::args::Connection;
use crate::failure::Failure;
use crate::text;
use drayhorse_core::bridge::Client;
use drayhorse_core::error::{Error, Kind};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};

/// One client and the way answers are wanted.
pub struct Session {
    client: Client,
    /// Answers are JSON documents.
    pub json: bool,
    /// The URL as given: never shown, it may hold a password.
    pub url: String,
    /// The schema as given.
    pub schema: String,
}

impl Session {
    /// Checks the URL and opens the client; an embedded server starts here.
    pub fn open(connection: &Connection) -> Result<Session, Failure> {
        let options = json!({
            "schema": connection.schema,
            "connectTimeoutMs": connection.connect_timeout,
            "poolSize": 1,
            "language": "cli",
        });
        let client = Client::connect(&connection.url, &options.to_string())?;
        Ok(Session { client, json: connection.json, url: connection.url.clone(), schema: connection.schema.clone() })
    }

    /// One control call.
    pub fn call(&self, verb: &str, args: &Value) -> Result<Value, Failure> {
        self.call_text(verb, &args.to_string())
    }

    /// One control call whose arguments are already JSON text.
    pub fn call_text(&self, verb: &str, args_json: &str) -> Result<Value, Failure> {
        let answer = self.client.call(verb, args_json)?;
        serde_json::from_str(&answer)
            .map_err(|e| Error::new(Kind::Internal, format!("the answer of {verb} is not JSON: {e}")).into())
    }

    /// Writes lines that are already safe for a terminal.
    pub fn say(&self, lines: &str) -> Result<(), Failure> {
        say(lines)
    }

    /// Writes a JSON document.
    pub fn say_json(&self, value: &Value) -> Result<(), Failure> {
        say_json(value)
    }

    /// Asks on the terminal. Without one, somebody has to have said yes beforehand.
    pub fn confirm(&self, question: &str, yes: bool) -> Result<(), Failure> {
        if yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            return Err(Failure::NotConfirmed(format!("{question} Nothing was done: add --yes")));
        }
        eprint!("{question} [y/N] ");
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            Ok(())
        } else {
            Err(Failure::NotConfirmed("nothing was done".to_owned()))
        }
    }

    /// Ends the client.
    pub fn close(&self) {
        self.client.close();
    }
}

/// Writes lines that are already safe for a terminal to standard output.
pub fn say(lines: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(lines.as_bytes())?;
    if !lines.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Writes a JSON document to standard output.
pub fn say_json(value: &Value) -> Result<(), Failure> {
    say(&text::json(value, true))
}

/// Who acts, when `--actor` does not say so: the account at the terminal. In containers no variable names it.
pub fn default_actor() -> String {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    format!("cli:{}", user.or_else(account).as_deref().unwrap_or("unknown"))
}

/// The name of the account this process runs as, else its number.
#[cfg(unix)]
fn account() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let uid = std::fs::metadata("/proc/self").ok()?.uid().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = accounts.lines().find_map(|account| {
        let mut fields = account.split(':');
        let name = fields.next()?;
        (fields.nth(1) == Some(uid.as_str())).then(|| name.to_owned())
    });
    Some(named.unwrap_or(uid))
}

#[cfg(not(unix))]
fn account() -> Option<String> {
    std::env::var("USERNAME").ok()
}
