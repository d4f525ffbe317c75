//! Where the database is: a `postgresql://` URL or libpq's `key=value` text, read without ever repeating a part of it.
//!
//! The parser is our own for three reasons: the driver knows only three of libpq's `sslmode`s and none of its
//! certificate files, its refusals can quote the text, and a parameter that PgBouncer refuses must not reach the
//! start-up packet. Refusals name a parameter only by a name from the list below; anything else may be part of a
//! password that was not encoded.

#[cfg(test)]
mod tests;
mod text;

use super::options::Options;
use crate::error::{Error, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::config::{ChannelBinding, Host, LoadBalanceHosts, SslMode, SslNegotiation, TargetSessionAttrs};

/// A parsed URL.
pub struct Dsn {
    /// For the driver; its TLS part is decided in `tls`.
    pub config: tokio_postgres::Config,
    /// How the connection is secured.
    pub tls: TlsSettings,
    /// The URL's `connect_timeout`.
    pub connect_timeout_ms: Option<u64>,
    /// From `options=-c statement_timeout=..`, which PgBouncer would refuse in the start-up packet.
    pub statement_timeout_ms: Option<u64>,
}

/// libpq's `ssl*` parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TlsSettings {
    /// What the connection must prove.
    pub mode: TlsMode,
    /// PEM file of the authorities to trust.
    pub root_file: Option<PathBuf>,
    /// PEM file of the client's own certificate, and its key.
    pub certificate_file: Option<PathBuf>,
    /// PEM file of the client's key.
    pub key_file: Option<PathBuf>,
}

/// libpq's `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum TlsMode {
    /// Plain text.
    Disable,
    /// TLS if the server offers it, unverified.
    #[default]
    Prefer,
    /// TLS, unverified unless an authority file is given.
    Require,
    /// TLS with a certificate of a trusted authority.
    VerifyCa,
    /// And for this host name.
    VerifyFull,
}

impl TlsMode {
    fn parse(value: &str, field: &str) -> Result<TlsMode> {
        match value {
            "disable" => Ok(TlsMode::Disable),
            "prefer" => Ok(TlsMode::Prefer),
            "require" => Ok(TlsMode::Require),
            "verify-ca" => Ok(TlsMode::VerifyCa),
            "verify-full" => Ok(TlsMode::VerifyFull),
            _ => Err(refuse(field, "sslmode must be disable, prefer, require, verify-ca or verify-full")),
        }
    }
}

impl Dsn {
    /// Reads either form.
    pub fn parse(text: &str) -> Result<Dsn> {
        let pairs = match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
            Some(rest) => text::url_pairs(rest)?,
            None if text.contains("://") || !text.contains('=') => {
                return Err(refuse(
                    "url",
                    "the URL must start with postgresql://, postgres:// or embedded:, or be libpq's key=value text",
                ));
            }
            None => text::keyword_pairs(text)?,
        };
        Dsn::build(pairs)
    }

    /// Lets the options go before the URL.
    pub fn apply(&mut self, options: &Options) -> Result<()> {
        if let Some(mode) = &options.tls_mode {
            self.tls.mode = TlsMode::parse(mode, "tls.mode")?;
        }
        if let Some(file) = &options.tls_ca_file {
            self.tls.root_file = Some(file.clone());
        }
        self.config.ssl_mode(match self.tls.mode {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        let is_unix = |host: &Host| matches!(host, Host::Unix(_));
        let hosts = self.config.get_hosts();
        if !hosts.is_empty() && hosts.iter().all(is_unix) {
            // A unix socket has no TLS and needs none; libpq ignores sslmode there too.
            self.config.ssl_mode(SslMode::Disable);
        } else if hosts.iter().any(is_unix) && self.tls.mode != TlsMode::Disable {
            return Err(refuse("url", "unix sockets and TCP hosts in one URL need sslmode=disable"));
        }
        Ok(())
    }

    /// The error with the password taken out, should a server or a library have repeated it.
    pub fn without_secrets(&self, error: Error) -> Error {
        let Some(password) = self.config.get_password().and_then(|p| std::str::from_utf8(p).ok()) else {
            return error;
        };
        let encoded = utf8_percent_encode(password, ENCODED).to_string();
        let forms = [password, encoded.as_str()];
        // A shorter one would also be found inside ordinary words.
        if password.len() < 4 || !forms.iter().any(|form| error.message().contains(form)) {
            return error;
        }
        let message = forms.iter().fold(error.message().to_owned(), |text, form| text.replace(form, "***"));
        Error::new(error.kind(), message).with_all(error.details().clone())
    }

    fn build(pairs: Vec<(String, String)>) -> Result<Dsn> {
        let mut dsn = Dsn {
            config: tokio_postgres::Config::new(),
            tls: TlsSettings::default(),
            connect_timeout_ms: None,
            statement_timeout_ms: None,
        };
        for (key, value) in &pairs {
            if value.contains('\0') {
                return Err(refuse(key, format!("{key} holds U+0000")));
            }
            dsn.set(key, value)?;
        }
        let config = &mut dsn.config;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host("localhost");
        }
        if config.get_hosts().is_empty() {
            // TLS needs a name to ask for; an address is one.
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        let hosts = config.get_hosts().len();
        if !config.get_hostaddrs().is_empty() && config.get_hostaddrs().len() != hosts {
            return Err(refuse("hostaddr", "host and hostaddr must name as many servers"));
        }
        if config.get_ports().len() > 1 && config.get_ports().len() != hosts {
            return Err(refuse("port", "port must be one number, or one per host"));
        }
        if config.get_application_name().is_none() {
            config.application_name("drayhorse");
        }
        let asked = |name: &str| pairs.iter().any(|(key, _)| key == name);
        if hosts > 1 && !asked("target_session_attrs") {
            // Several hosts mean a primary and its standbys, and a queue is written to.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if config.get_keepalives() {
            // A peer that vanished is found in about 40 s instead of the kernel's two hours.
            if !asked("keepalives_idle") {
                config.keepalives_idle(Duration::from_secs(15));
            }
            if !asked("keepalives_interval") {
                config.keepalives_interval(Duration::from_secs(5));
            }
            if !asked("keepalives_count") {
                config.keepalives_retries(5);
            }
        }
        if !asked("tcp_user_timeout") {
            config.tcp_user_timeout(Duration::from_secs(30));
        }
        Ok(dsn)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let config = &mut self.config;
        match key {
            "user" => {
                config.user(value);
            }
            "password" => {
                config.password(value);
            }
            "dbname" => {
                config.dbname(value);
            }
            "application_name" => {
                config.application_name(value);
            }
            "fallback_application_name" => {
                if config.get_application_name().is_none() {
                    config.application_name(value);
                }
            }
            "host" => {
                for host in value.split(',').filter(|host| !host.is_empty()) {
                    config.host(host);
                }
            }
            "hostaddr" => {
                for address in value.split(',').filter(|address| !address.is_empty()) {
                    let address: IpAddr =
                        address.parse().map_err(|_| refuse("hostaddr", "hostaddr must be an IP address"))?;
                    config.hostaddr(address);
                }
            }
            "port" => {
                for port in value.split(',') {
                    let port = if port.is_empty() { Ok(5432) } else { port.parse() };
                    match port {
                        Ok(port) if port > 0 => config.port(port),
                        _ => return Err(refuse("port", "port must be a number from 1 to 65535")),
                    };
                }
            }
            "options" => self.set_options(value)?,
            "sslmode" => self.tls.mode = TlsMode::parse(value, "sslmode")?,
            "sslrootcert" => self.tls.root_file = (value != "system").then(|| PathBuf::from(value)),
            "sslcert" => self.tls.certificate_file = Some(PathBuf::from(value)),
            "sslkey" => self.tls.key_file = Some(PathBuf::from(value)),
            "sslnegotiation" => {
                config.ssl_negotiation(choose(
                    key,
                    value,
                    &[("postgres", SslNegotiation::Postgres), ("direct", SslNegotiation::Direct)],
                )?);
            }
            "connect_timeout" => {
                let seconds = number(key, value)?;
                self.connect_timeout_ms = (seconds > 0).then_some(seconds * 1000);
            }
            "keepalives" => {
                config.keepalives(number(key, value)? != 0);
            }
            "keepalives_idle" => {
                config.keepalives_idle(Duration::from_secs(number(key, value)?.max(1)));
            }
            "keepalives_interval" => {
                config.keepalives_interval(Duration::from_secs(number(key, value)?.max(1)));
            }
            "keepalives_count" => {
                config.keepalives_retries(number(key, value)?.max(1) as u32);
            }
            "tcp_user_timeout" => {
                // Milliseconds, as libpq has it; 0 is the system's default.
                let milliseconds = number(key, value)?;
                if milliseconds > 0 {
                    config.tcp_user_timeout(Duration::from_millis(milliseconds));
                }
            }
            "target_session_attrs" => {
                config.target_session_attrs(choose(
                    key,
                    value,
                    &[
                        ("any", TargetSessionAttrs::Any),
                        ("read-write", TargetSessionAttrs::ReadWrite),
                        ("primary", TargetSessionAttrs::ReadWrite),
                        ("read-only", TargetSessionAttrs::ReadOnly),
                    ],
                )?);
            }
            "channel_binding" => {
                config.channel_binding(choose(
                    key,
                    value,
                    &[
                        ("disable", ChannelBinding::Disable),
                        ("prefer", ChannelBinding::Prefer),
                        ("require", ChannelBinding::Require),
                    ],
                )?);
            }
            "load_balance_hosts" => {
                config.load_balance_hosts(choose(
                    key,
                    value,
                    &[("disable", LoadBalanceHosts::Disable), ("random", LoadBalanceHosts::Random)],
                )?);
            }
            "client_encoding" => choose(key, value, &[("auto", ()), ("UTF8", ()), ("utf8", ()), ("UTF-8", ())])?,
            "gssencmode" => choose(key, value, &[("disable", ()), ("prefer", ())])?,
            "sslsni" | "sslcompression" => {}
            // The two readers let no other name through.
            _ => return Err(refuse("url", "a parameter is unknown")),
        }
        Ok(())
    }

    /// `-c name=value` pairs. `statement_timeout` becomes the client's own; the rest goes to the server, which a
    /// direct PostgreSQL accepts and PgBouncer refuses unless it is told to ignore them.
    fn set_options(&mut self, value: &str) -> Result<()> {
        let mut rest = Vec::new();
        let mut words = value.split_whitespace();
        while let Some(word) = words.next() {
            let setting = match word {
                "-c" => words.next().unwrap_or(""),
                _ => word.strip_prefix("-c").or_else(|| word.strip_prefix("--")).unwrap_or(""),
            };
            match setting.strip_prefix("statement_timeout=") {
                Some(limit) => self.statement_timeout_ms = milliseconds(limit)?,
                None if word == "-c" => rest.extend([word, setting]),
                None => rest.push(word),
            }
        }
        if !rest.is_empty() {
            self.config.options(rest.join(" "));
        }
        Ok(())
    }
}

/// What a URL leaves as it is; everything else of a password is written as `%XX`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn refuse(field: &str, message: impl Into<String>) -> Error {
    Error::argument(field, message)
}

fn number(key: &str, value: &str) -> Result<u64> {
    let number: Option<i64> = value.parse().ok();
    match number {
        // Negative values mean "the default" to libpq.
        Some(n) if n <= 3_600_000 => Ok(n.max(0) as u64),
        _ => Err(refuse(key, format!("{key} must be a whole number"))),
    }
}

/// PostgreSQL's spelling of a time: `2000`, `2s`, `2min`. 0 means none.
fn milliseconds(value: &str) -> Result<Option<u64>> {
    let value = value.trim_matches('\'');
    let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let unit = match &value[digits..] {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    match value[..digits].parse::<u32>() {
        Ok(amount) if unit > 0 => Ok((amount > 0).then_some(u64::from(amount) * unit)),
        _ => Err(refuse("options", "statement_timeout must be a number with ms, s, min or h")),
    }
}

fn choose<T: Copy>(key: &str, value: &str, choices: &[(&str, T)]) -> Result<T> {
    match choices.iter().find(|(name, _)| *name == value) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            Err(refuse(key, format!("{key} must be one of {}", names.join(", "))))
        }
    }
}
