//! Values of scenarios: kept answers and generated values put into arguments, and patterns compared with answers.

use serde_json::{Map, Value};
use std::cmp::Ordering;

/// Longest piece of a value in a message.
const SHOWN_BYTES: usize = 2000;

/// The value with references to kept answers resolved, and long and deep values made.
pub fn fill(value: &Value, kept: &Map<String, Value>) -> Result<Value, String> {
    match value {
        Value::String(text) => match text.strip_prefix('$') {
            None => Ok(value.clone()),
            Some(literal) if literal.starts_with('$') => Ok(literal.into()),
            Some(path) => lookup(path, kept),
        },
        Value::Array(items) => items.iter().map(|item| fill(item, kept)).collect(),
        Value::Object(members) => {
            if let Some(repeat) = members.get("$repeat") {
                return repeated(repeat);
            }
            if let Some(depth) = members.get("$nest") {
                let depth = depth.as_u64().ok_or_else(|| format!("$nest takes a number, not {depth}"))?;
                return Ok((1..depth).fold(Value::Array(Vec::new()), |inner, _| Value::Array(vec![inner])));
            }
            let filled = members.iter().map(|(key, item)| {
                // The text of an expression may begin with a dollar sign.
                let item = if key == "$match" { item.clone() } else { fill(item, kept)? };
                Ok((key.clone(), item))
            });
            filled.collect::<Result<_, String>>().map(Value::Object)
        }
        _ => Ok(value.clone()),
    }
}

fn repeated(arguments: &Value) -> Result<Value, String> {
    match (arguments[0].as_str(), arguments[1].as_u64()) {
        (Some(unit), Some(times)) => Ok(unit.repeat(times as usize).into()),
        _ => Err(format!("$repeat takes a string and a number, not {arguments}")),
    }
}

fn lookup(path: &str, kept: &Map<String, Value>) -> Result<Value, String> {
    let mut parts = path.split('.');
    let name = parts.next().unwrap_or_default();
    let mut found = kept.get(name).ok_or_else(|| format!("no answer is kept as {name:?}"))?;
    for part in parts {
        let next = match (found, part.parse::<usize>()) {
            (Value::Array(items), Ok(n)) => items.get(n),
            (other, _) => other.get(part),
        };
        found = next.ok_or_else(|| format!("${path}: there is no {part:?} in {}", shown(found)))?;
    }
    Ok(found.clone())
}

/// The first difference between a pattern and a value at `path`; none when it matches. No value means a missing key.
pub fn mismatch(pattern: &Value, value: Option<&Value>, path: &str) -> Option<String> {
    match pattern {
        Value::Object(members) if !members.is_empty() && members.keys().all(|key| key.starts_with('$')) => {
            members.iter().find_map(|(name, operand)| operate(name, operand, value, path))
        }
        Value::Object(members) => match value {
            Some(Value::Object(found)) => {
                members.iter().find_map(|(key, wanted)| mismatch(wanted, found.get(key), &format!("{path}.{key}")))
            }
            _ => differs(pattern, value, path),
        },
        Value::Array(items) => match value {
            Some(Value::Array(found)) if found.len() == items.len() => items
                .iter()
                .zip(found)
                .enumerate()
                .find_map(|(n, (wanted, item))| mismatch(wanted, Some(item), &format!("{path}[{n}]"))),
            _ => differs(pattern, value, path),
        },
        Value::Number(_) if matches!(value, Some(Value::Number(_))) => {
            let same = value.is_some_and(|value| compare(pattern, value) == Some(Ordering::Equal));
            if same { None } else { differs(pattern, value, path) }
        }
        _ if value == Some(pattern) => None,
        _ => differs(pattern, value, path),
    }
}

fn operate(name: &str, operand: &Value, value: Option<&Value>, path: &str) -> Option<String> {
    let present = value.filter(|value| !value.is_null());
    let fits = match name {
        "$any" => present.is_some(),
        "$absent" => present.is_none(),
        "$not" => mismatch(operand, value, path).is_some(),
        "$between" => present.is_some_and(|value| {
            matches!(compare(&operand[0], value), Some(Ordering::Less | Ordering::Equal))
                && matches!(compare(value, &operand[1]), Some(Ordering::Less | Ordering::Equal))
        }),
        "$contains" => match (operand, present) {
            (Value::Array(patterns), Some(Value::Array(items))) => {
                let mut rest = items.iter();
                patterns.iter().all(|pattern| rest.any(|item| mismatch(pattern, Some(item), "").is_none()))
            }
            _ => false,
        },
        "$length" => {
            let length = match present {
                Some(Value::Array(items)) => Some(items.len()),
                Some(Value::Object(members)) => Some(members.len()),
                Some(Value::String(text)) => Some(text.chars().count()),
                _ => None,
            };
            length.is_some() && length == operand.as_u64().map(|wanted| wanted as usize)
        }
        "$match" => {
            let expression = match regex::Regex::new(operand.as_str().unwrap_or_default()) {
                Ok(expression) => expression,
                Err(error) => return Some(format!("{path}: {error}")),
            };
            present.and_then(Value::as_str).is_some_and(|text| expression.is_match(text))
        }
        _ => return Some(format!("{path}: there is no operator {name}")),
    };
    if fits { None } else { Some(format!("{path} is {}, which is not {name} {}", told(value), shown(operand))) }
}

/// Numbers by value: whole ones exactly, others as binary floating point.
fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    let (Value::Number(one), Value::Number(other)) = (one, other) else {
        return None;
    };
    let (one, other) = (one.to_string(), other.to_string());
    match (one.parse::<i128>(), other.parse::<i128>()) {
        (Ok(one), Ok(other)) => Some(one.cmp(&other)),
        _ if one == other => Some(Ordering::Equal),
        _ => one.parse::<f64>().ok()?.partial_cmp(&other.parse::<f64>().ok()?),
    }
}

fn differs(pattern: &Value, value: Option<&Value>, path: &str) -> Option<String> {
    Some(format!("{path} is {}, not {}", told(value), shown(pattern)))
}

fn told(value: Option<&Value>) -> String {
    value.map_or_else(|| "missing".to_owned(), shown)
}

/// A value for a person, cut where it is long.
pub fn shown(value: &Value) -> String {
    let mut text = value.to_string();
    if text.len() > SHOWN_BYTES {
        let end = (0..=SHOWN_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn matches(pattern: Value, value: Value) -> bool {
        mismatch(&pattern, Some(&value), "answer").is_none()
    }

    #[test]
    fn patterns_say_what_they_mean() {
        assert!(matches(json!({"a": 1}), json!({"a": 1, "b": 2})));
        assert!(!matches(json!({"a": 1}), json!({"b": 2})));
        assert!(!matches(json!({"a": null}), json!({})));
        assert!(matches(json!([1, {}]), json!([1, {"b": 2}])));
        assert!(!matches(json!([1]), json!([1, 2])));
        assert!(!matches(json!(true), json!(1)));
        assert!(matches(json!({"$contains": [1, 3]}), json!([1, 2, 3])));
        assert!(!matches(json!({"$contains": [3, 1]}), json!([1, 2, 3])));
        assert!(matches(json!({"$between": [1, 2]}), json!(1.5)));
        assert!(!matches(json!({"$between": [1, 2]}), json!("1")));
        assert!(matches(json!({"a": {"$absent": true}}), json!({"a": null})));
        assert!(!matches(json!({"a": {"$any": true}}), json!({"a": null})));
        assert!(matches(json!({"$match": "^a.$"}), json!("ab")));
        assert!(matches(json!({"$length": 2}), json!("é🚒")));
        assert!(matches(json!({"$not": {"$contains": [1]}}), json!([2])));
        assert!(!matches(json!({"$unheard": 1}), json!(1)));
    }

    #[test]
    fn numbers_compare_by_value() {
        let number = |text: &str| serde_json::from_str::<Value>(text).expect("a number");
        assert!(matches(number("1000"), number("1e3")));
        assert!(matches(number("2"), number("2.0")));
        assert!(!matches(number("9007199254740993"), number("9007199254740992")));
    }

    #[test]
    fn references_and_generators_are_filled() {
        let kept = json!({"job": {"ids": ["x", {"y": 7}]}}).as_object().expect("an object").clone();
        let filled = |value: Value| fill(&value, &kept);
        assert_eq!(filled(json!({"a": ["$job.ids.1.y", "$$job"]})), Ok(json!({"a": [7, "$job"]})));
        assert_eq!(filled(json!({"$repeat": ["ab", 2]})), Ok(json!("abab")));
        assert_eq!(filled(json!({"$nest": 3})), Ok(json!([[[]]])));
        assert_eq!(filled(json!({"$match": "$"})), Ok(json!({"$match": "$"})));
        assert!(filled(json!("$job.ids.9")).is_err());
        assert!(filled(json!("$nobody")).is_err());
    }
}
