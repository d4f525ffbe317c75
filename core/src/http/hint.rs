//! How long a response asks to wait: `Retry-After` (RFC 9110 10.2.3), else the `RateLimit` header of the IETF draft.
//! What is no valid value is ignored, digits are never read as a date, and everything ends at a day.

use super::date;
use crate::time::MAX_HINT_MS;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// The values of the headers that matter here, one for each line.
#[derive(Clone, Debug, Default)]
pub(super) struct Headers {
    retry_after: Vec<String>,
    rate_limit: Vec<String>,
    date: Vec<String>,
}

impl Headers {
    /// Takes `{name: value or [values]}`; names compare without case, a number is the text it is written as.
    pub(super) fn new(given: &Map<String, Value>) -> Headers {
        let mut headers = Headers::default();
        for (name, value) in given {
            let lines = match name.to_ascii_lowercase().as_str() {
                "retry-after" => &mut headers.retry_after,
                "ratelimit" => &mut headers.rate_limit,
                "date" => &mut headers.date,
                _ => continue,
            };
            let values = match value {
                Value::Array(values) => values.as_slice(),
                single => std::slice::from_ref(single),
            };
            lines.extend(values.iter().filter_map(|value| match value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            }));
        }
        headers
    }
}

/// What the headers say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wait {
    /// None if nothing is said, or no wait is asked for.
    pub ms: Option<i64>,
    /// A valid `Retry-After` is there, be it 0 or in the past.
    pub by_retry_after: bool,
}

/// Reads the headers. The response's own `Date` is the base of a date, so that a wrong local clock changes nothing.
pub(super) fn wait(headers: &Headers, now: Timestamp) -> Wait {
    let base = headers.date.iter().find_map(|line| date::parse(line, now)).unwrap_or(now);
    let asked = headers.retry_after.iter().filter_map(|line| retry_after_line(line, base)).max();
    let ms = match asked {
        Some(ms) => Some(ms),
        None => headers.rate_limit.iter().filter_map(|line| rate_limit_line(line)).max(),
    };
    Wait { ms: ms.filter(|ms| *ms > 0), by_retry_after: asked.is_some() }
}

/// The largest valid value of one line. Some clients join repeated lines by a comma and a blank; a comma is also part
/// of two of the date forms, so the pieces are tried alone and with their successor.
fn retry_after_line(line: &str, base: Timestamp) -> Option<i64> {
    if let Some(ms) = retry_after(line, base) {
        return Some(ms);
    }
    let pieces: Vec<&str> = line.split(", ").collect();
    if pieces.len() < 2 {
        return None;
    }
    let alone = pieces.iter().filter_map(|piece| retry_after(piece, base));
    let pairs = pieces.windows(2).filter_map(|pair| retry_after(&pair.join(", "), base));
    alone.chain(pairs).max()
}

/// One value in ms, from 0 to a day: digits, or a date.
fn retry_after(value: &str, base: Timestamp) -> Option<i64> {
    let value = value.trim_matches([' ', '\t']);
    if let Some(ms) = seconds(value) {
        return Some(ms);
    }
    let until = date::parse(value, base)?.duration_since(base).as_nanos();
    let rounded_up = (until + 999_999).div_euclid(1_000_000);
    Some(rounded_up.clamp(0, i128::from(MAX_HINT_MS)) as i64)
}

/// Digits and nothing else, in ms and at most a day, however many they are.
fn seconds(digits: &str) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let longest = MAX_HINT_MS / 1_000;
    let seconds = digits.bytes().fold(0, |n: i64, b| (n * 10 + i64::from(b - b'0')).min(longest));
    Some(seconds * 1_000)
}

/// The longest wait of a `RateLimit` list, `"burst";r=0;t=30, "day";r=500;t=3600`: the seconds `t` until the quota is
/// there again, of the policies with nothing remaining. A policy that has some left asks nobody to wait.
fn rate_limit_line(line: &str) -> Option<i64> {
    split_unquoted(line, b',')
        .into_iter()
        .filter_map(|member| {
            let parameters = split_unquoted(member, b';');
            let parameter = |name: &str| {
                parameters[1..].iter().rev().find_map(|parameter| {
                    let (key, value) = parameter.split_once('=')?;
                    (key.trim_matches([' ', '\t']) == name).then(|| value.trim_matches([' ', '\t']))
                })
            };
            match parameter("r") {
                Some(remaining) if seconds(remaining) != Some(0) => None,
                _ => seconds(parameter("t")?),
            }
        })
        .max()
}

/// Splits a structured field (RFC 9651) at a separator outside its strings.
fn split_unquoted(text: &str, separator: u8) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut quoted = false;
    let mut escaped = false;
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if byte == separator && !quoted => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}
