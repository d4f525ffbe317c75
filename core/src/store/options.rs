//! The options of a client, as the JSON text every SDK passes down.

use crate::error::{Error, Result};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// What `Client::connect` takes beside the URL. An absent key means its default; an unknown one is refused.
#[derive(Clone, Debug)]
pub struct Options {
    /// The schema that holds the queue, `drayhorse` by default.
    pub schema: String,
    /// How long opening a connection may take; the URL's `connect_timeout`, else 10 s.
    pub connect_timeout_ms: Option<u64>,
    /// How long one statement may take; else 60 s.
    pub statement_timeout_ms: Option<u64>,
    /// The most connections for control calls, 4 by default. Opened on demand, closed after 60 s without use.
    pub pool_size: usize,
    /// A PEM file of the certificate authorities to trust instead of the system's.
    pub tls_ca_file: Option<PathBuf>,
    /// `disable`, `prefer`, `require`, `verify-ca` or `verify-full`; goes before the URL's `sslmode`.
    pub tls_mode: Option<String>,
    /// The language of the SDK, shown in `workers.list`.
    pub language: Option<String>,
    /// A folder with PostgreSQL's programs for `embedded:`.
    pub postgres_bin: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            schema: "drayhorse".to_owned(),
            connect_timeout_ms: None,
            statement_timeout_ms: None,
            pool_size: 4,
            tls_ca_file: None,
            tls_mode: None,
            language: None,
            postgres_bin: None,
        }
    }
}

const KEYS: [&str; 7] =
    ["schema", "connectTimeoutMs", "statementTimeoutMs", "poolSize", "tls", "language", "postgresBin"];

impl Options {
    /// Reads the JSON text; an empty text is `{}`.
    pub fn parse(json: &str) -> Result<Options> {
        if json.trim().is_empty() {
            return Ok(Options::default());
        }
        let map: Map<String, Value> = serde_json::from_str(json)
            .map_err(|_| Error::argument("options", "the options must be one JSON object"))?;
        known_keys(&map, &KEYS, "")?;
        let mut options = Options::default();
        if let Some(schema) = text(&map, "schema", "schema", 63)? {
            options.schema = schema;
        }
        options.connect_timeout_ms = integer(&map, "connectTimeoutMs", 1, 3_600_000)?;
        options.statement_timeout_ms = integer(&map, "statementTimeoutMs", 1, 86_400_000)?;
        if let Some(size) = integer(&map, "poolSize", 1, 100)? {
            options.pool_size = size as usize;
        }
        options.language = text(&map, "language", "language", 200)?;
        options.postgres_bin = text(&map, "postgresBin", "postgresBin", 4096)?.map(PathBuf::from);
        if let Some(tls) = map.get("tls") {
            let tls = tls.as_object().ok_or_else(|| Error::argument("tls", "tls must be an object"))?;
            known_keys(tls, &["caFile", "mode"], "tls.")?;
            options.tls_ca_file = text(tls, "caFile", "tls.caFile", 4096)?.map(PathBuf::from);
            options.tls_mode = text(tls, "mode", "tls.mode", 20)?;
        }
        Ok(options)
    }
}

fn known_keys(map: &Map<String, Value>, known: &[&str], path: &str) -> Result<()> {
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            let field = format!("{path}{}", key.chars().take(100).collect::<String>());
            Err(Error::argument(&field, format!("unknown option {field}; the known ones are {}", known.join(", "))))
        }
        None => Ok(()),
    }
}

fn text(map: &Map<String, Value>, key: &str, field: &str, max_bytes: usize) -> Result<Option<String>> {
    match map.get(key) {
        None => Ok(None),
        Some(Value::String(s)) if (1..=max_bytes).contains(&s.len()) && !s.contains('\0') => Ok(Some(s.clone())),
        Some(_) => {
            Err(Error::argument(field, format!("{field} must be a text of 1 to {max_bytes} bytes without U+0000"))
                .with("limit", max_bytes))
        }
    }
}

fn integer(map: &Map<String, Value>, key: &str, low: u64, high: u64) -> Result<Option<u64>> {
    let Some(value) = map.get(key) else {
        return Ok(None);
    };
    let whole = value.as_u64().or_else(|| value.as_f64().filter(|f| f.fract() == 0.0 && *f >= 0.0).map(|f| f as u64));
    match whole {
        Some(n) if (low..=high).contains(&n) => Ok(Some(n)),
        _ => Err(Error::argument(key, format!("{key} must be an integer from {low} to {high}"))
            .with("low", low)
            .with("high", high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_hold_when_nothing_is_said() {
        for json in ["", "{}", " { } "] {
            let options = Options::parse(json).unwrap();
            assert_eq!(options.schema, "drayhorse");
            assert_eq!(options.pool_size, 4);
            assert_eq!(options.connect_timeout_ms, None);
        }
    }

    #[test]
    fn every_key_is_read() {
        let options = Options::parse(
            r#"{"schema":"a\"b","connectTimeoutMs":5e3,"statementTimeoutMs":2000.0,"poolSize":9,
                "tls":{"caFile":"ca.pem","mode":"verify-full"},"language":"go","postgresBin":"bin"}"#,
        )
        .unwrap();
        assert_eq!(options.schema, "a\"b");
        assert_eq!(options.connect_timeout_ms, Some(5000));
        assert_eq!(options.statement_timeout_ms, Some(2000));
        assert_eq!(options.pool_size, 9);
        assert_eq!(options.tls_ca_file, Some(PathBuf::from("ca.pem")));
        assert_eq!(options.tls_mode.as_deref(), Some("verify-full"));
        assert_eq!(options.language.as_deref(), Some("go"));
    }

    #[test]
    fn refusals_name_the_field() {
        for (json, field) in [
            (r#"[]"#, "options"),
            (r#"{"shcema":"x"}"#, "shcema"),
            (r#"{"schema":""}"#, "schema"),
            (r#"{"schema":null}"#, "schema"),
            (r#"{"schema":"a\u0000"}"#, "schema"),
            (r#"{"poolSize":0}"#, "poolSize"),
            (r#"{"poolSize":101}"#, "poolSize"),
            (r#"{"poolSize":1.5}"#, "poolSize"),
            (r#"{"connectTimeoutMs":-1}"#, "connectTimeoutMs"),
            (r#"{"statementTimeoutMs":"5"}"#, "statementTimeoutMs"),
            (r#"{"tls":true}"#, "tls"),
            (r#"{"tls":{"ca":"x"}}"#, "tls.ca"),
            (r#"{"tls":{"mode":1}}"#, "tls.mode"),
        ] {
            let error = Options::parse(json).unwrap_err();
            assert_eq!(error.code(), "invalid_argument", "{json}");
            assert_eq!(error.details()["field"], field, "{json}");
        }
        let long = format!(r#"{{"schema":"{}"}}"#, "x".repeat(64));
        assert_eq!(Options::parse(&long).unwrap_err().details()["limit"], 63);
    }
}
