//! Text that must be recorded whatever it holds: errors. What PostgreSQL cannot keep becomes U+FFFD, visibly, and
//! what is too long is cut on a character boundary, so that a failure can always be recorded.

use super::code_unit;
use serde_json::{Map, Value};
use std::borrow::Cow;

const MAX_NAME_BYTES: usize = 200;
const MAX_MESSAGE_BYTES: usize = 16 << 10;
const MAX_STACK_BYTES: usize = 32 << 10;
/// SDKs follow a chain of causes this far; each is kept shorter than the error itself.
const MAX_CAUSES: usize = 32;
const MAX_CAUSE_MESSAGE_BYTES: usize = 1 << 10;

/// Replaces the escapes of U+0000 and of lone surrogates in a JSON text by that of U+FFFD. Everything else stays as
/// it is, faults of syntax too.
pub fn repair(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut repaired = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|b| *b == b'\\') {
        at += found;
        let bad = match code_unit(bytes, at) {
            Some(0xD800..=0xDBFF) => match code_unit(bytes, at + 6) {
                Some(0xDC00..=0xDFFF) => {
                    at += 12;
                    continue;
                }
                _ => true,
            },
            Some(0 | 0xDC00..=0xDFFF) => true,
            _ => false,
        };
        if bad {
            repaired.push_str(&json[copied..at]);
            repaired.push_str("\\ufffd");
            at += 6;
            copied = at;
        } else {
            // The backslash and what it escapes, so that the second of two backslashes starts nothing.
            at = (at + 2).min(bytes.len());
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    repaired.push_str(&json[copied..]);
    Cow::Owned(repaired)
}

/// The text without U+0000 and with at most `max_bytes` bytes; a cut is marked by `…` where that fits.
pub fn sanitize_text(text: &str, max_bytes: usize) -> Cow<'_, str> {
    const MARK: &str = "…";
    // U+FFFD is two bytes longer than U+0000: replace first, then cut. What is far too long is not worth replacing.
    let near = cut(text, max_bytes.saturating_add(1));
    let clean: Cow<'_, str> = match near.contains('\0') {
        true => Cow::Owned(near.replace('\0', "\u{FFFD}")),
        false => Cow::Borrowed(near),
    };
    if near.len() == text.len() && clean.len() <= max_bytes {
        return clean;
    }
    let mark = if max_bytes > MARK.len() { MARK } else { "" };
    let kept = cut(&clean, max_bytes - mark.len());
    Cow::Owned(format!("{kept}{mark}"))
}

/// The longest prefix of at most `max_bytes` bytes that ends between two characters.
fn cut(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let mut end = max_bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Whatever a host sent as an error, as the `{"name","message","stack"?,"causes"?}` that is stored. It never fails:
/// an error that is no object, or no JSON, becomes the message.
pub fn sanitize_error(json: &str) -> Value {
    let text = repair(json);
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(error)) => {
            let mut kept = named_message(&error, MAX_MESSAGE_BYTES);
            if let Some(stack) = error.get("stack").filter(|stack| !stack.is_null()) {
                kept.insert("stack".into(), bounded(stack, MAX_STACK_BYTES));
            }
            if let Some(Value::Array(causes)) = error.get("causes") {
                let causes: Vec<Value> = causes.iter().take(MAX_CAUSES).map(cause).collect();
                kept.insert("causes".into(), causes.into());
            }
            Value::Object(kept)
        }
        Ok(other) => message_only(&other, MAX_MESSAGE_BYTES),
        Err(_) => message_only(&Value::from(&*text), MAX_MESSAGE_BYTES),
    }
}

fn cause(value: &Value) -> Value {
    match value {
        Value::Object(error) => Value::Object(named_message(error, MAX_CAUSE_MESSAGE_BYTES)),
        other => message_only(other, MAX_CAUSE_MESSAGE_BYTES),
    }
}

fn named_message(error: &Map<String, Value>, max_message_bytes: usize) -> Map<String, Value> {
    let name = match error.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        _ => "Error",
    };
    let message = error.get("message").cloned().unwrap_or_default();
    let mut kept = Map::new();
    kept.insert("name".into(), sanitize_text(name, MAX_NAME_BYTES).into());
    kept.insert("message".into(), bounded(&message, max_message_bytes));
    kept
}

fn message_only(value: &Value, max_bytes: usize) -> Value {
    serde_json::json!({ "name": "Error", "message": bounded(value, max_bytes) })
}

/// A value as text: itself if it is a string, nothing for null, else its JSON.
fn bounded(value: &Value, max_bytes: usize) -> Value {
    match value {
        Value::String(text) => sanitize_text(text, max_bytes).into(),
        Value::Null => "".into(),
        other => sanitize_text(&other.to_string(), max_bytes).into(),
    }
}
