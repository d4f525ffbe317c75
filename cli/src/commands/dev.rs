//! `drayhorse dev`: a migrated database to develop against, for as long as the command runs.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use serde_json::{Value, json};
use std::sync::mpsc;

/// Keep an embedded server running and migrated until Ctrl-C.
///
/// Other programs use the same `embedded:` URL; the server stops when the last of them is gone.
#[derive(Args)]
pub struct Dev {}

impl Dev {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        // A server address may hold a password, so it is not even quoted here.
        if !session.url.starts_with("embedded:") {
            return Err(Failure::Usage("dev is for a private server: give --url embedded:FOLDER".to_owned()));
        }
        let (stop, stopped) = mpsc::channel();
        ctrlc::set_handler(move || {
            // The receiver is gone only when the command ends anyway.
            let _ = stop.send(());
        })
        .map_err(std::io::Error::other)?;
        let migrated = session.call("migrate", &json!({}))?;
        let schema = session.call("schemaVersion", &json!({}))?;
        if session.json {
            session.say_json(&json!({"url": session.url, "schema": session.schema, "version": schema["version"]}))?;
        } else {
            session.say(&announcement(session, &migrated))?;
        }
        stopped.recv().map_err(std::io::Error::other)?;
        Ok(())
    }
}

fn announcement(session: &Session, migrated: &Value) -> String {
    let url = crate::text::line(&session.url);
    format!(
        "Drayhorse is ready.\n\n  URL     {url}\n  schema  {schema}, version {version}\n\n\
         Use it:   DRAYHORSE_URL={url} drayhorse status\nStop it:  Ctrl-C\n",
        schema = crate::text::line(&session.schema),
        version = migrated["version"],
    )
}
