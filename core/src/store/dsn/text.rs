//! The two spellings of a connection text, as pairs of a known parameter and its value.
//!
//! A refusal says which parameter by its position, never by its text: that may be a part of a password.

use super::refuse;
use crate::error::Result;
use percent_encoding::percent_decode_str;

/// libpq's parameters that mean something here, or that may be given without an effect.
const PARAMETERS: [&str; 27] = [
    "user",
    "password",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "application_name",
    "fallback_application_name",
    "options",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslnegotiation",
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
    "client_encoding",
    "gssencmode",
    "sslsni",
    "sslcompression",
];

fn known(key: &str, position: usize) -> Result<()> {
    if PARAMETERS.contains(&key) {
        return Ok(());
    }
    Err(refuse(
        "url",
        format!(
            "parameter {position} of the connection text is unknown; if it is a part of the password, \
             encode the password with %XX. Known are {}",
            PARAMETERS.join(", ")
        ),
    ))
}

/// `[user[:password]@][host[:port],..][/dbname][?key=value&..]`
pub(super) fn url_pairs(rest: &str) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = before.split_once('/').unwrap_or((before, ""));
    let hosts = match authority.rsplit_once('@') {
        Some((user, hosts)) => {
            let (user, password) = user.split_once(':').map_or((user, None), |(u, p)| (u, Some(p)));
            if !user.is_empty() {
                pairs.push(("user".to_owned(), decode(user)?));
            }
            if let Some(password) = password {
                pairs.push(("password".to_owned(), decode(password)?));
            }
            hosts
        }
        None => authority,
    };
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for host in hosts.split(',').filter(|host| !host.is_empty()) {
        let (name, port) = match host.strip_prefix('[') {
            Some(bracket) => {
                let (name, after) =
                    bracket.split_once(']').ok_or_else(|| refuse("host", "an IPv6 address lacks its ]"))?;
                (name, after.strip_prefix(':').unwrap_or(after))
            }
            None => host.split_once(':').unwrap_or((host, "")),
        };
        names.push(decode(name)?);
        ports.push(decode(port)?);
    }
    if !names.is_empty() {
        pairs.push(("host".to_owned(), names.join(",")));
        if ports.iter().any(|port| !port.is_empty()) {
            pairs.push(("port".to_owned(), ports.join(",")));
        }
    }
    if !database.is_empty() {
        pairs.push(("dbname".to_owned(), decode(database)?));
    }
    for (i, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let key = decode(key)?;
        known(&key, i + 1)?;
        pairs.push((key, decode(value)?));
    }
    Ok(pairs)
}

fn decode(text: &str) -> Result<String> {
    let bytes = text.as_bytes();
    let broken = bytes
        .iter()
        .enumerate()
        .any(|(i, b)| *b == b'%' && !bytes.get(i + 1..i + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)));
    if broken {
        return Err(refuse("url", "the URL holds a % that is not followed by two hexadecimal digits; write it as %25"));
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(refuse("url", "a part of the URL is not UTF-8 after decoding")),
    }
}

/// `key = value key='quoted \' value' ..`
pub(super) fn keyword_pairs(text: &str) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(pairs);
        }
        let mut key = String::new();
        while let Some(c) = chars.next_if(|c| !c.is_whitespace() && *c != '=') {
            key.push(c);
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.next_if_eq(&'=').is_none() {
            return Err(refuse("url", format!("parameter {} of the connection text lacks its =", pairs.len() + 1)));
        }
        known(&key, pairs.len() + 1)?;
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let quoted = chars.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        loop {
            match chars.next() {
                None if quoted => {
                    return Err(refuse(&key, format!("the value of {key} lacks its closing quote")));
                }
                None => break,
                Some('\'') if quoted => break,
                Some(c) if !quoted && c.is_whitespace() => break,
                Some('\\') => value.extend(chars.next()),
                Some(c) => value.push(c),
            }
        }
        pairs.push((key, value));
    }
}
