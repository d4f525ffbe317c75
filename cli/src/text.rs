//! Data made safe for a terminal: job names, errors and payloads come from strangers and may hold escape sequences
//! that clear the screen, write the clipboard or turn the direction of writing round.

use serde_json::Value;
use std::fmt::Write;

/// Whether a terminal may do something else with it than show it.
fn is_dangerous(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn escape_into(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if (c as u32) < 0x100 => write!(out, "\\x{:02x}", c as u32).expect("a String takes everything"),
        c => write!(out, "\\u{{{:x}}}", c as u32).expect("a String takes everything"),
    }
}

/// One line: everything that is not plain text is written as an escape, line ends too.
pub fn line(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        if is_dangerous(c) { escape_into(&mut out, c) } else { out.push(c) }
    }
    out
}

/// Several lines, a stack trace for example: line ends stay, everything else is as in [`line`].
pub fn block(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        if is_dangerous(c) && c != '\n' { escape_into(&mut out, c) } else { out.push(c) }
    }
    out
}

/// Cut to so many characters, visibly.
pub fn cut(raw: &str, characters: usize) -> String {
    match raw.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &raw[..end]),
        None => raw.to_owned(),
    }
}

/// A JSON document that is still the same value, with what JSON leaves alone but a terminal may not, escaped.
pub fn json(value: &Value, pretty: bool) -> String {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    let mut out = String::new();
    for c in text.expect("a JSON value is always written").chars() {
        if is_dangerous(c) && c != '\n' {
            write!(out, "\\u{:04x}", c as u32).expect("a String takes everything");
        } else {
            out.push(c);
        }
    }
    out
}

/// A JSON value as a person reads it: text without quotes, the rest compact.
pub fn value(value: &Value) -> String {
    match value {
        Value::String(text) => line(text),
        other => json(other, false),
    }
}

/// Replaces what stands for a password in anything that looks like a connection URL or string.
pub fn without_passwords(raw: &str) -> String {
    raw.split_inclusive(char::is_whitespace).map(hide_in_word).collect()
}

fn hide_in_word(word: &str) -> String {
    let mut shown = word.to_owned();
    if let (Some(start), Some(at)) = (shown.find("://"), shown.rfind('@'))
        && start + 3 <= at
    {
        shown.replace_range(start + 3..at, "***");
    }
    if let Some(start) = shown.to_lowercase().find("password=") {
        let end = shown.trim_end().len();
        shown.replace_range(start + "password=".len()..end, "***");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_become_text() {
        assert_eq!(line("a\x1b[2Jb"), "a\\x1b[2Jb");
        assert_eq!(line("\x1b]52;c;AAAA\x07"), "\\x1b]52;c;AAAA\\x07");
        assert_eq!(line("c1 \u{9b}2J del \x7f"), "c1 \\x9b2J del \\x7f");
        assert_eq!(line("one\ntwo"), "one\\ntwo");
        assert_eq!(line("\u{202e}txt.exe"), "\\u{202e}txt.exe");
        assert_eq!(line("größe 🐎"), "größe 🐎");
        assert_eq!(block("at a\n\x1b[31mat b"), "at a\n\\x1b[31mat b");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({"a": "\u{1b}\u{9b}\u{202e}\n", "n": 1});
        for pretty in [true, false] {
            let shown = json(&value, pretty);
            assert!(!shown.chars().any(|c| is_dangerous(c) && c != '\n'));
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
        }
    }

    #[test]
    fn digits_survive() {
        let value: Value = serde_json::from_str("123456789012345678901234567890").unwrap();
        assert_eq!(json(&value, false), "123456789012345678901234567890");
    }

    #[test]
    fn passwords_are_hidden() {
        let said = "unrecognized subcommand 'postgresql://u:S3cr3t!@h/db'\nhost=x password=S3cr3t!\n";
        assert_eq!(without_passwords(said), "unrecognized subcommand 'postgresql://***@h/db'\nhost=x password=***\n");
        assert_eq!(without_passwords("postgresql://u:p@ss@h"), "postgresql://***@h");
        assert_eq!(without_passwords("see https://example.org"), "see https://example.org");
    }

    #[test]
    fn cutting_respects_characters() {
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("äö", 2), "äö");
    }
}
