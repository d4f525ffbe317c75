//! `drayhorse migrate`: brings the schema to this program's version.

use crate::failure::Failure;
use crate::session::Session;
use crate::text;
use clap::Args;
use serde_json::json;

/// Create the schema or bring it to this program's version.
///
/// Needs a role that owns the schema or may create it. Safe to run from several machines at once.
#[derive(Args)]
pub struct Migrate {
    /// Say what would be done, and exit with 5 when something would.
    #[arg(long)]
    check: bool,
}

impl Migrate {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        if self.check {
            session.call("assertCompatible", &json!({}))?;
        } else {
            let done = session.call("migrate", &json!({}))?;
            if session.json {
                return session.say_json(&done);
            }
            let applied = done["applied"].as_array().map_or(0, Vec::len);
            if applied > 0 {
                let list = text::value(&done["applied"]);
                return session.say(&format!(
                    "Schema {} is at version {}; applied {list}.",
                    text::line(&session.schema),
                    done["version"]
                ));
            }
        }
        let found = session.call("schemaVersion", &json!({}))?;
        if session.json {
            return session.say_json(&found);
        }
        session.say(&format!(
            "Schema {} is at version {}; nothing to do.",
            text::line(&session.schema),
            found["version"]
        ))
    }
}
