//! JSON text that PostgreSQL must be able to keep. A payload, a result or a checkpoint is scanned once, without
//! building a tree and without allocating unless it is refused, and then passed on as the text it is, so that
//! integers keep their digits. `enqueue` and the worker call it before anything is sent; SQL repeats what it can for
//! raw callers. The text of errors is never refused but repaired ([`repair`], [`sanitize_text`], [`sanitize_error`]).

mod decimal;
mod path;
mod repair;
#[cfg(test)]
mod tests;

pub(crate) use decimal::Decimal;
pub(crate) use path::{Step, along};
pub use repair::{repair, sanitize_error, sanitize_text};

use crate::error::{Error, Kind, Result};

/// How deep arrays and objects may be nested.
pub const MAX_NESTING: usize = 100;

/// The levels that a verb's arguments put around a value: `claims[0].payload` has three.
const ARGUMENT_LEVELS: usize = 3;

/// What no setting of a database can raise: 16 MiB of JSON text in one value.
pub const MAX_VALUE_BYTES: usize = 16 << 20;

/// What a scan found in a value that may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// An integer beyond 2^53-1 in magnitude occurs: a double would lose digits of it.
    pub big_numbers: bool,
}

/// Why a text was refused, and the byte at which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fault {
    at: usize,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Syntax(&'static str),
    NotFinite,
    Nul,
    LoneSurrogate,
    Nesting,
    Number,
}

/// Checks that `json` is one JSON value of at most `limit` bytes that PostgreSQL can keep. `root` is what the caller
/// calls the value, `payload` for example; errors name the path from there.
pub fn scan(json: &str, root: &str, limit: usize) -> Result<Scan> {
    scan_within(json, root, limit, MAX_NESTING)
}

/// The same for the arguments of a verb, in which a value that may be nested as deep as any other stands. SQL checks
/// the values that it keeps by themselves.
pub fn scan_arguments(json: &str, limit: usize) -> Result<Scan> {
    scan_within(json, "", limit, MAX_NESTING + ARGUMENT_LEVELS)
}

fn scan_within(json: &str, root: &str, limit: usize, nesting: usize) -> Result<Scan> {
    if json.len() > limit {
        let message = format!("{root} is {} bytes of JSON; the limit is {limit}", json.len());
        return Err(Error::new(Kind::PayloadTooLarge, message).with("path", root).with("limit", limit));
    }
    walk(json.as_bytes(), nesting).map_err(|fault| explain(json, root, fault))
}

/// Builds the sentence for a fault; only now is the path worked out.
fn explain(json: &str, root: &str, fault: Fault) -> Error {
    let (path, in_key) = path::of(json, root, fault.at);
    let unstorable = |what: &str| match in_key {
        true => format!("a key holds {what}, which cannot be stored; remove it or encode it"),
        false => format!("{what} cannot be stored; remove it or encode it"),
    };
    let reason = match fault.what {
        What::Syntax(expected) => {
            format!("not valid JSON: {expected} expected at byte {}", fault.at)
        }
        What::NotFinite => "NaN and infinities cannot be stored".to_owned(),
        What::Nul => unstorable("U+0000"),
        What::LoneSurrogate => unstorable("a lone surrogate"),
        What::Nesting => format!("nesting over {MAX_NESTING}"),
        What::Number => {
            "a number with more than 131072 digits before or 16383 after the point cannot be stored".to_owned()
        }
    };
    let message = match path.is_empty() {
        true => reason,
        false => format!("{path}: {reason}"),
    };
    let error = Error::new(Kind::PayloadInvalid, message).with("path", path);
    match fault.what {
        What::Nesting => error.with("limit", MAX_NESTING),
        _ => error,
    }
}

/// The integer that the JSON text `raw` is, in any spelling (`1000`, `1e3`, `1000.0`), within its bounds; else
/// `invalid_argument` in the sentence SQL uses.
pub fn integer_within(raw: &str, field: &str, low: i64, high: i64) -> Result<i64> {
    Decimal::parse(raw).and_then(|number| number.as_i64()).filter(|value| (low..=high).contains(value)).ok_or_else(
        || {
            let message = format!("{field} must be an integer from {low} to {high}");
            Error::argument(field, message).with("low", low).with("high", high)
        },
    )
}

/// The open arrays and objects: one bit for each level, set for an object.
struct Levels {
    objects: u128,
    depth: usize,
    limit: usize,
}

impl Levels {
    fn open(&mut self, object: bool, at: usize) -> std::result::Result<(), Fault> {
        if self.depth == self.limit {
            return Err(Fault { at, what: What::Nesting });
        }
        self.objects = self.objects << 1 | u128::from(object);
        self.depth += 1;
        Ok(())
    }

    fn close(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

fn walk(bytes: &[u8], nesting: usize) -> std::result::Result<Scan, Fault> {
    let mut levels = Levels { objects: 0, depth: 0, limit: nesting };
    let mut found = Scan { big_numbers: false };
    let mut at = 0;
    'value: loop {
        at = skip_blanks(bytes, at);
        match bytes.get(at) {
            Some(b'{') => {
                levels.open(true, at)?;
                at = skip_blanks(bytes, at + 1);
                if bytes.get(at) != Some(&b'}') {
                    at = read_key(bytes, at)?;
                    continue 'value;
                }
                levels.close();
                at += 1;
            }
            Some(b'[') => {
                levels.open(false, at)?;
                at = skip_blanks(bytes, at + 1);
                if bytes.get(at) != Some(&b']') {
                    continue 'value;
                }
                levels.close();
                at += 1;
            }
            Some(b'"') => at = read_string(bytes, at)?,
            Some(b'-') if bytes.get(at + 1) == Some(&b'I') => return fault(at, What::NotFinite),
            Some(b'-' | b'0'..=b'9') => {
                let (number, end) = Decimal::read(bytes, at).or_else(|at| syntax(at, "a digit"))?;
                if !number.fits_numeric() {
                    return fault(at, What::Number);
                }
                found.big_numbers = found.big_numbers || number.is_big_integer();
                at = end;
            }
            Some(b't') => at = read_word(bytes, at, b"true")?,
            Some(b'f') => at = read_word(bytes, at, b"false")?,
            Some(b'n') => at = read_word(bytes, at, b"null")?,
            Some(b'N' | b'I') => return fault(at, What::NotFinite),
            _ => return syntax(at, "a value"),
        }
        loop {
            at = skip_blanks(bytes, at);
            if levels.depth == 0 {
                return match at == bytes.len() {
                    true => Ok(found),
                    false => syntax(at, "the end"),
                };
            }
            match (bytes.get(at), levels.in_object()) {
                (Some(b','), true) => {
                    at = read_key(bytes, skip_blanks(bytes, at + 1))?;
                    continue 'value;
                }
                (Some(b','), false) => {
                    at += 1;
                    continue 'value;
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    levels.close();
                    at += 1;
                }
                (_, true) => return syntax(at, "a comma or }"),
                (_, false) => return syntax(at, "a comma or ]"),
            }
        }
    }
}

fn fault<T>(at: usize, what: What) -> std::result::Result<T, Fault> {
    Err(Fault { at, what })
}

fn syntax<T>(at: usize, expected: &'static str) -> std::result::Result<T, Fault> {
    fault(at, What::Syntax(expected))
}

fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

fn read_word(bytes: &[u8], at: usize, word: &'static [u8]) -> std::result::Result<usize, Fault> {
    match bytes[at..].starts_with(word) {
        true => Ok(at + word.len()),
        false => syntax(at, "a value"),
    }
}

/// A key and its colon.
fn read_key(bytes: &[u8], at: usize) -> std::result::Result<usize, Fault> {
    if bytes.get(at) != Some(&b'"') {
        return syntax(at, "a key");
    }
    let at = skip_blanks(bytes, read_string(bytes, at)?);
    match bytes.get(at) {
        Some(b':') => Ok(at + 1),
        _ => syntax(at, "a colon"),
    }
}

/// Bytes that end the run of plain text in a string: the quote, the backslash and the control characters.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

fn read_string(bytes: &[u8], start: usize) -> std::result::Result<usize, Fault> {
    let mut at = start + 1;
    loop {
        while at < bytes.len() && !SPECIAL[bytes[at] as usize] {
            at += 1;
        }
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = read_escape(bytes, at)?,
            Some(_) => return syntax(at, "an escape instead of a control character"),
            None => return syntax(at, "the end of a string"),
        }
    }
}

fn read_escape(bytes: &[u8], at: usize) -> std::result::Result<usize, Fault> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => match code_unit(bytes, at) {
            None => syntax(at, "four hexadecimal digits"),
            Some(0) => fault(at, What::Nul),
            Some(0xD800..=0xDBFF) => match code_unit(bytes, at + 6) {
                Some(0xDC00..=0xDFFF) => Ok(at + 12),
                _ => fault(at, What::LoneSurrogate),
            },
            Some(0xDC00..=0xDFFF) => fault(at, What::LoneSurrogate),
            Some(_) => Ok(at + 6),
        },
        _ => syntax(at, "an escape"),
    }
}

/// The UTF-16 code unit that the escape `\uXXXX` at `at` stands for, if there is one.
fn code_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    escape.iter().try_fold(0, |unit, byte| Some(unit << 4 | (*byte as char).to_digit(16)? as u16))
}
