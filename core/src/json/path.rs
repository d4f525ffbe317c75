//! Where in a JSON text a byte is: `payload.items[3]`. Worked out by a second pass, and only for a refusal.

/// A path is cut here: it must stay readable.
const MAX_PATH_CHARS: usize = 200;
const MAX_KEY_CHARS: usize = 60;

enum Level<'a> {
    /// The literal of the key whose value is being read; none while the key itself is.
    Object(Option<&'a str>),
    Array(usize),
}

/// The path of the value that byte `at` belongs to, and whether the byte is in a key of it.
/// The text must be valid JSON up to `at`.
pub(super) fn of(json: &str, root: &str, at: usize) -> (String, bool) {
    let bytes = json.as_bytes();
    let mut levels: Vec<Level> = Vec::new();
    let mut in_key = false;
    let mut pos = 0;
    while pos < at.min(bytes.len()) {
        match bytes[pos] {
            b'{' => levels.push(Level::Object(None)),
            b'[' => levels.push(Level::Array(0)),
            b'}' | b']' => {
                levels.pop();
            }
            b',' => match levels.last_mut() {
                Some(Level::Object(key)) => *key = None,
                Some(Level::Array(index)) => *index += 1,
                None => {}
            },
            b'"' => {
                let end = string_end(bytes, pos);
                let key = levels.last_mut().and_then(|level| match level {
                    Level::Object(key @ None) => Some(key),
                    _ => None,
                });
                if end > at {
                    in_key = key.is_some();
                    break;
                }
                if let Some(key) = key {
                    *key = Some(&json[pos..end]);
                }
                pos = end;
                continue;
            }
            _ => {}
        }
        pos += 1;
    }
    let mut path = root.to_owned();
    for level in &levels {
        match level {
            Level::Object(Some(literal)) => push_key(&mut path, literal),
            Level::Object(None) => {}
            Level::Array(index) => path.push_str(&format!("[{index}]")),
        }
        if cut(&mut path) {
            break;
        }
    }
    (path, in_key)
}

/// One step of a path within a value that is at hand.
pub(crate) enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Adds steps to the path `root`.
pub(crate) fn along<'a>(root: &str, steps: impl Iterator<Item = Step<'a>>) -> String {
    let mut path = root.to_owned();
    for step in steps {
        match step {
            Step::Key(key) => push_key(&mut path, &serde_json::Value::from(key).to_string()),
            Step::Index(index) => path.push_str(&format!("[{index}]")),
        }
        if cut(&mut path) {
            break;
        }
    }
    path
}

/// Cuts a path that has become unreadable.
fn cut(path: &mut String) -> bool {
    match path.char_indices().nth(MAX_PATH_CHARS) {
        Some((end, _)) => {
            path.truncate(end);
            path.push('…');
            true
        }
        None => false,
    }
}

/// The offset after the string that starts at `start`, or the length of the text and one if it has no end.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len() + 1
}

fn push_key(path: &mut String, literal: &str) {
    let inner = &literal[1..literal.len() - 1];
    let mut chars = inner.chars();
    let is_word = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    let shown: String = inner.chars().take(MAX_KEY_CHARS).collect();
    let cut = if shown.len() < inner.len() { "…" } else { "" };
    match is_word {
        true if path.is_empty() => path.push_str(&format!("{shown}{cut}")),
        true => path.push_str(&format!(".{shown}{cut}")),
        false => path.push_str(&format!("[\"{shown}{cut}\"]")),
    }
}
