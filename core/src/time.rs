//! Durations and times as they cross the boundaries: whole milliseconds, and RFC 3339 in UTC with microseconds.
//! It also decides what a retry-after hint is worth. `enqueue`, `policy`, `http` and the worker's reports call it;
//! the clock that counts is the database's.

use crate::error::{Error, Result};
use crate::json::{self, Decimal};
use jiff::Timestamp;
use jiff::civil::DateTime;

/// A year: the longest policy delay, timeout and life of an idempotency key.
pub const MAX_DELAY_MS: i64 = 31_536_000_000;
/// A hundred years: the farthest a job may be put off.
pub const MAX_AHEAD_MS: i64 = 3_153_600_000_000;
/// A retry-after hint counts as at least this much…
pub const MIN_HINT_MS: i64 = 1_000;
/// …and as at most a day.
pub const MAX_HINT_MS: i64 = 86_400_000;

/// A duration of whole milliseconds given as JSON, within its bounds.
pub fn duration_ms(raw: &str, field: &str, low: i64, high: i64) -> Result<i64> {
    json::integer_within(raw, field, low, high)
}

/// The time that an RFC 3339 text with its zone names, in the years 1 to 9999.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    if !is_rfc3339(text.as_bytes()) {
        return None;
    }
    match text.parse() {
        Ok(time) => Some(time),
        // The last day of the year 9999, which people write for "never", is beyond what a Timestamp holds.
        Err(_) => (text.starts_with("9999-12-3") && text[..19].parse::<DateTime>().is_ok()).then_some(Timestamp::MAX),
    }
}

/// A time given as an RFC 3339 text; else `invalid_argument` in the sentence SQL uses.
pub fn timestamp(text: Option<&str>, field: &str) -> Result<Timestamp> {
    text.and_then(parse_timestamp)
        .ok_or_else(|| Error::argument(field, format!("{field} must be an RFC 3339 time with its zone")))
}

/// `2026-01-31T12:00:00.000000Z`: the one text form of a time. What is finer than a microsecond is cut off.
pub fn format_timestamp(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// The shape `YYYY-MM-DDThh:mm:ss[.f]zone` that SQL tests too; jiff alone accepts much more.
fn is_rfc3339(text: &[u8]) -> bool {
    let matches = |from: usize, pattern: &[u8]| {
        text.len() >= from + pattern.len()
            && pattern.iter().zip(&text[from..]).all(|(expected, byte)| match expected {
                b'd' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b't'),
                b'+' => matches!(byte, b'+' | b'-'),
                other => byte == other,
            })
    };
    if !matches(0, b"dddd-dd-ddTdd:dd:dd") || text.starts_with(b"0000") {
        return false;
    }
    let mut at = 19;
    if text.get(at) == Some(&b'.') {
        let digits = text[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        if !(1..=9).contains(&digits) {
            return false;
        }
        at += 1 + digits;
    }
    match &text[at..] {
        [b'Z' | b'z'] => true,
        // PostgreSQL knows no zone at 16 hours or more from UTC.
        zone => zone.len() == 6 && matches(at, b"+dd:dd") && zone[1..3] < b"16"[..] && zone[4] < b'6',
    }
}

/// What a retry-after hint is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The job waits at least this long.
    Ms(i64),
    /// It says nothing; the note tells why, for the timeline.
    Ignored(String),
}

/// Judges the raw JSON that a handler gave as `retryAfterMs`, and never fails: fractions round up, 1 to 999 count as
/// 1,000, what is above a day counts as a day, and 0, negative numbers, NaN and non-numbers are ignored. Infinities
/// and NaN, which JSON cannot write, arrive as the strings `"Infinity"`, `"-Infinity"` and `"NaN"`.
pub fn retry_after_hint(raw: &str) -> Hint {
    let raw = raw.trim();
    if raw == r#""Infinity""# {
        return Hint::Ms(MAX_HINT_MS);
    }
    match Decimal::parse(raw) {
        Some(number) if !number.is_zero() && !number.is_negative() => {
            let whole = number.whole_part().min(i128::from(MAX_HINT_MS)) as i64;
            let rounded_up = whole + i64::from(!number.is_integer());
            Hint::Ms(rounded_up.clamp(MIN_HINT_MS, MAX_HINT_MS))
        }
        _ => {
            let shown = json::repair(raw);
            let shown = json::sanitize_text(&shown, 60);
            Hint::Ignored(format!("retryAfterMs ignored: {shown} is not a positive number"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn a_duration_is_an_integer_in_any_spelling() {
        for raw in ["1000", "1e3", "1000.0", "10.00E2"] {
            assert_eq!(duration_ms(raw, "delayMs", 0, MAX_DELAY_MS), Ok(1000), "{raw}");
        }
        for raw in ["-1", "1.5", "31536000001", "1e400", "null", "\"1000\"", "true", "[1]", ""] {
            let error = duration_ms(raw, "delayMs", 0, MAX_DELAY_MS).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument);
            assert_eq!(error.message(), "delayMs must be an integer from 0 to 31536000000", "{raw}");
            assert_eq!(error.details()["field"], "delayMs");
            assert_eq!(error.details()["high"], 31_536_000_000_i64);
        }
    }

    #[test]
    fn times_need_their_zone() {
        for (text, formatted) in [
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000000Z"),
            ("2026-01-31t13:30:00.123456789+01:30", "2026-01-31T12:00:00.123456Z"),
            ("9999-12-30T21:59:59-00:00", "9999-12-30T21:59:59.000000Z"),
            ("9999-12-31T23:59:59Z", "9999-12-30T22:00:00.999999Z"),
            ("0001-01-01T00:00:00z", "0001-01-01T00:00:00.000000Z"),
        ] {
            assert_eq!(format_timestamp(parse_timestamp(text).expect(text)), formatted);
        }
        for text in [
            "2026-01-31T12:00:00",
            "2026-01-31",
            "2026-01-31 12:00:00Z",
            "2026-02-30T12:00:00Z",
            "2026-01-31T25:00:00Z",
            "2026-01-31T12:00:00.Z",
            "2026-01-31T12:00:00.1234567890Z",
            "2026-01-31T12:00:00+16:00",
            "9999-12-31T12:00:00+01:60",
            "9999-12-32T12:00:00Z",
            "2026-01-31T12:00:00+0100",
            "2026-01-31T12:00:00Z[UTC]",
            "0000-01-31T12:00:00Z",
            "+002026-01-31T12:00:00Z",
            "1769860800",
            "",
            "now",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
        let error = timestamp(None, "jobs[3].runAt").unwrap_err();
        assert_eq!(error.message(), "jobs[3].runAt must be an RFC 3339 time with its zone");
    }

    #[test]
    fn a_hint_is_clamped_or_ignored_and_never_an_error() {
        for (raw, ms) in [
            ("1", 1000),
            ("0.001", 1000),
            ("1e-400", 1000),
            ("999", 1000),
            ("1000", 1000),
            ("1000.0", 1000),
            ("1000.0000000000000000000001", 1001),
            ("120000", 120_000),
            ("1.2e5", 120_000),
            ("86399999.5", 86_400_000),
            ("86400000", 86_400_000),
            ("86400000.5", 86_400_000),
            ("86400001", 86_400_000),
            ("99999999999999999999", 86_400_000),
            ("1e400", 86_400_000),
            ("\"Infinity\"", 86_400_000),
        ] {
            assert_eq!(retry_after_hint(raw), Hint::Ms(ms), "{raw}");
        }
        for raw in [
            "0",
            "-0.0",
            "0e9",
            "-1",
            "-1e400",
            "\"NaN\"",
            "\"-Infinity\"",
            "\"120\"",
            "null",
            "true",
            "[1]",
            "{\"ms\":1}",
            "",
            "\"\\u0000\"",
        ] {
            match retry_after_hint(raw) {
                Hint::Ignored(note) => assert!(note.ends_with("is not a positive number")),
                hint => panic!("{raw}: {hint:?}"),
            }
        }
        assert_eq!(retry_after_hint("-5"), Hint::Ignored("retryAfterMs ignored: -5 is not a positive number".into()));
    }
}
