//! What a worker is started with: the JSON of `WorkerHandle::start`, checked before any thread starts.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::json;
use crate::time::MAX_DELAY_MS;

/// A worker's options, with their defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub queues: Vec<String>,
    /// Parallel columns: what it handles.
    pub types: Vec<String>,
    pub versions: Vec<String>,
    pub concurrency: usize,
    pub prefetch: usize,
    pub lease_ms: u64,
    pub grace_ms: u64,
    pub poll_ms: u64,
    pub retry_delay_ms: Option<i64>,
    pub name: String,
    pub host: String,
    pub language: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Given<'a> {
    #[serde(default)]
    queues: Option<Vec<String>>,
    #[serde(default)]
    handlers: Vec<Handler>,
    #[serde(borrow, default)]
    concurrency: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prefetch: Option<&'a RawValue>,
    #[serde(borrow, default)]
    lease_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    grace_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    poll_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    retry_delay_ms: Option<&'a RawValue>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    language: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Handler {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    version: Option<String>,
}

impl Options {
    /// Reads and checks them.
    pub fn parse(text: &str) -> Result<Options> {
        let given: Given = serde_json::from_str(if text.trim().is_empty() { "{}" } else { text })
            .map_err(|e| Error::argument("options", format!("worker options: {e}")))?;
        let queues = given.queues.unwrap_or_else(|| vec!["default".to_owned()]);
        if queues.is_empty() {
            return Err(Error::argument("queues", "queues must name at least one queue"));
        }
        for queue in &queues {
            check_name("queues", queue)?;
        }
        if given.handlers.is_empty() {
            return Err(Error::argument("handlers", "a worker needs at least one handler"));
        }
        let (mut types, mut versions) = (Vec::new(), Vec::new());
        for handler in given.handlers {
            let version = handler.version.unwrap_or_else(|| "1".to_owned());
            check_name("handlers.type", &handler.kind)?;
            check_name("handlers.version", &version)?;
            if types.iter().zip(&versions).any(|(t, v)| *t == handler.kind && *v == version) {
                let message = format!("there are two handlers for {} version {version}", handler.kind);
                return Err(Error::argument("handlers", message));
            }
            types.push(handler.kind);
            versions.push(version);
        }
        let host = host_name();
        let name = match given.name {
            Some(name) => {
                check_name("name", &name)?;
                name
            }
            None => format!("{}:{}", json::sanitize_text(&host, 150), std::process::id()),
        };
        if let Some(language) = &given.language {
            check_name("language", language)?;
        }
        Ok(Options {
            queues,
            types,
            versions,
            concurrency: number(given.concurrency, "concurrency", 1, 10_000, 10)? as usize,
            prefetch: number(given.prefetch, "prefetch", 0, 10_000, 0)? as usize,
            lease_ms: number(given.lease_ms, "leaseMs", 100, 86_400_000, 30_000)? as u64,
            grace_ms: number(given.grace_ms, "graceMs", 0, 86_400_000, 25_000)? as u64,
            poll_ms: number(given.poll_ms, "pollMs", 10, 3_600_000, 1_000)? as u64,
            retry_delay_ms: given
                .retry_delay_ms
                .map(|raw| json::integer_within(raw.get(), "retryDelayMs", 0, MAX_DELAY_MS))
                .transpose()?,
            name,
            host,
            language: given.language,
        })
    }
}

fn number(raw: Option<&RawValue>, field: &str, low: i64, high: i64, default: i64) -> Result<i64> {
    raw.map_or(Ok(default), |raw| json::integer_within(raw.get(), field, low, high))
}

fn check_name(field: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > 200 || name.contains('\0') {
        return Err(Error::argument(field, format!("{field} must be 1 to 200 bytes without U+0000")).with("limit", 200));
    }
    Ok(())
}

/// For people who look at the list of workers.
fn host_name() -> String {
    let file =
        std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let name = file.ok().or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_options_have_their_defaults() {
        let options = Options::parse(r#"{"handlers":[{"type":"sync"}]}"#).unwrap();
        assert_eq!(options.queues, ["default"]);
        assert_eq!((options.types, options.versions), (vec!["sync".to_owned()], vec!["1".to_owned()]));
        assert_eq!((options.concurrency, options.prefetch), (10, 0));
        assert_eq!((options.lease_ms, options.grace_ms, options.poll_ms), (30_000, 25_000, 1_000));
        assert!(options.name.ends_with(&format!(":{}", std::process::id())));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (given, field) in [
            (r#"{}"#, "handlers"),
            (r#"{"handlers":[{"type":"a"}],"queues":[]}"#, "queues"),
            (r#"{"handlers":[{"type":""}]}"#, "handlers.type"),
            (r#"{"handlers":[{"type":"a"},{"type":"a","version":"1"}]}"#, "handlers"),
            (r#"{"handlers":[{"type":"a"}],"concurrency":0}"#, "concurrency"),
            (r#"{"handlers":[{"type":"a"}],"leaseMs":1.5}"#, "leaseMs"),
            (r#"{"handlers":[{"type":"a"}],"pollMs":null}"#, ""),
            (r#"{"handlers":[{"type":"a"}],"pol":1}"#, "options"),
            (r#"{"handlers":[{"type":"a"}],"retryDelayMs":-1}"#, "retryDelayMs"),
        ] {
            let outcome = Options::parse(given);
            if field.is_empty() {
                assert!(outcome.is_ok(), "{given}");
            } else {
                let error = outcome.unwrap_err();
                assert_eq!(
                    (error.code(), error.details()["field"].as_str()),
                    ("invalid_argument", Some(field)),
                    "{given}"
                );
            }
        }
    }
}
