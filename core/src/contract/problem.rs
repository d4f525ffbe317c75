//! What is wrong with a value, in our own sentences: where, and what the schema asks for there. They hold nothing of
//! the value but the names of its members, and all of them are bounded, so that an error never carries a payload.

use crate::json::{self, Step};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::Location;
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;
use std::fmt;

/// How many problems are named.
const MOST: usize = 5;
/// Bytes of the schema's own text in a sentence.
const MAX_QUOTED_BYTES: usize = 120;
/// Members that are named when several are at fault.
const MAX_NAMES: usize = 3;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where, in the order in which problems are named.
    place: Vec<Place>,
    /// `payload.items[3]`.
    pub path: String,
    /// What follows the path in a sentence: `must be an integer`.
    pub message: String,
}

/// A step on the way to a problem. Items come in their order, members in that of their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Index(usize),
    Member(String),
}

/// Everything that is said of one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// At least one.
    pub problems: Vec<Problem>,
    /// There are others.
    pub more: bool,
}

impl Problem {
    pub(super) fn new(path: String, message: String) -> Problem {
        Problem { place: Vec::new(), path, message }
    }

    /// `{"path","message"}`.
    pub fn to_json(&self) -> Value {
        serde_json::json!({"path": self.path, "message": self.message})
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.message)
    }
}

impl Report {
    pub(super) fn of(problem: Problem) -> Report {
        Report { problems: vec![problem], more: false }
    }

    /// The first few in the order of their paths; none when there is none.
    pub(super) fn gather<'a>(
        root: &str,
        value: &Value,
        errors: impl Iterator<Item = ValidationError<'a>>,
    ) -> Option<Report> {
        let mut problems: Vec<Problem> = errors.map(|error| of(root, value, &error)).collect();
        problems.sort();
        problems.dedup();
        let more = problems.len() > MOST;
        problems.truncate(MOST);
        (!problems.is_empty()).then_some(Report { problems, more })
    }

    /// The first problem's path.
    pub fn path(&self) -> &str {
        self.problems.first().map_or("", |problem| problem.path.as_str())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            let between = if n > 0 { "; " } else { "" };
            write!(f, "{between}{problem}")?;
        }
        f.write_str(if self.more { "; and more" } else { "" })
    }
}

/// The problem behind an error of the validator.
pub(super) fn of(root: &str, value: &Value, error: &ValidationError<'_>) -> Problem {
    use ValidationErrorKind as K;
    let mut member = None;
    let message = match error.kind() {
        K::Type { kind: TypeKind::Single(one) } => format!("must be {}", a(*one)),
        K::Type { kind: TypeKind::Multiple(several) } => must_be(several.iter()),
        K::AnyOf { context } | K::OneOfNotValid { context } => match choice(error, context) {
            Choice::Types(types) => must_be(types.into_iter()),
            Choice::One(problem) => return of(root, value, problem),
            Choice::Open => format!("must match an alternative of {}", error.kind().keyword()),
        },
        K::Required { property } => {
            member = property.as_str();
            "is missing".to_owned()
        }
        K::AdditionalProperties { unexpected } | K::UnevaluatedProperties { unexpected } => {
            format!("must not have {}", members(unexpected))
        }
        K::PropertyNames { error } => {
            let name = error.instance().as_str().unwrap_or_default();
            format!("must not have {}", members(&[name.to_owned()]))
        }
        K::FalseSchema => "is not allowed".to_owned(),
        K::Enum { options } => format!("must be one of {}", quoted(options)),
        K::Constant { expected_value } => format!("must be {}", quoted(expected_value)),
        K::Minimum { limit } => format!("must be at least {}", quoted(limit)),
        K::Maximum { limit } => format!("must be at most {}", quoted(limit)),
        K::ExclusiveMinimum { limit } => format!("must be more than {}", quoted(limit)),
        K::ExclusiveMaximum { limit } => format!("must be less than {}", quoted(limit)),
        K::MultipleOf { multiple_of } => format!("must be a multiple of {}", quoted(multiple_of)),
        K::MinLength { limit } => format!("must have at least {}", counted(*limit, "character")),
        K::MaxLength { limit } => format!("must have at most {}", counted(*limit, "character")),
        K::Pattern { pattern } => format!("must match the pattern {}", bounded(pattern)),
        K::MinItems { limit } => format!("must have at least {}", counted(*limit, "item")),
        K::MaxItems { limit } => format!("must have at most {}", counted(*limit, "item")),
        K::AdditionalItems { limit } => format!("must have at most {}", counted(*limit as u64, "item")),
        K::UniqueItems => "must not have equal items".to_owned(),
        K::Contains => "must have the items that contains asks for, as many as it asks for".to_owned(),
        K::UnevaluatedItems { .. } => "must not have items beyond those its schema describes".to_owned(),
        K::MinProperties { limit } => format!("must have at least {}", counted(*limit, "member")),
        K::MaxProperties { limit } => format!("must have at most {}", counted(*limit, "member")),
        K::OneOfMultipleValid { .. } => "must match one alternative of oneOf and no other".to_owned(),
        K::Not { .. } => "must not match the schema under not".to_owned(),
        other => format!("does not satisfy {}", bounded(other.keyword())),
    };
    let place = place_of(value, error.instance_path(), member);
    Problem { path: path_of(root, &place), place, message }
}

/// What can be said of alternatives that all fail.
enum Choice<'a> {
    /// They only ask for other types.
    Types(Vec<JsonType>),
    /// One alternative is for a value of this type, and this is what it misses.
    One(&'a ValidationError<'static>),
    Open,
}

fn choice<'a>(error: &ValidationError<'_>, alternatives: &'a [Vec<ValidationError<'static>>]) -> Choice<'a> {
    let here = error.instance_path();
    let wrong_type = |alternative: &[ValidationError<'_>]| {
        alternative.iter().find_map(|problem| match problem.kind() {
            ValidationErrorKind::Type { kind } if problem.instance_path() == here => Some(match kind {
                TypeKind::Single(one) => vec![*one],
                TypeKind::Multiple(several) => several.iter().collect(),
            }),
            _ => None,
        })
    };
    let mut types = Vec::new();
    let mut fitting = Vec::new();
    for alternative in alternatives {
        match wrong_type(alternative) {
            Some(asked) => types.extend(asked),
            None => fitting.push(alternative),
        }
    }
    match fitting.as_slice() {
        [] => Choice::Types(types),
        [one] => one.first().map_or(Choice::Open, Choice::One),
        _ => Choice::Open,
    }
}

/// Where in `value` a JSON Pointer leads, and to a member beyond that.
fn place_of(value: &Value, location: &Location, member: Option<&str>) -> Vec<Place> {
    let mut at = Some(value);
    let names = location.as_str().split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"));
    let steps = names.map(|name| match (at, name.parse::<usize>()) {
        (Some(Value::Array(items)), Ok(index)) => {
            at = items.get(index);
            Place::Index(index)
        }
        _ => {
            at = at.and_then(|value| value.get(&name));
            Place::Member(name)
        }
    });
    let mut place: Vec<Place> = steps.collect();
    place.extend(member.map(|name| Place::Member(name.to_owned())));
    place
}

/// `payload.items[3]`.
fn path_of(root: &str, place: &[Place]) -> String {
    let steps = place.iter().map(|step| match step {
        Place::Index(index) => Step::Index(*index),
        Place::Member(name) => Step::Key(name),
    });
    json::along(root, steps)
}

/// The same for a place in a schema.
pub(super) fn path_in(root: &str, schema: &Value, location: &Location) -> String {
    path_of(root, &place_of(schema, location, None))
}

fn must_be(types: impl Iterator<Item = JsonType>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in types.map(a) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    format!("must be {}", names.join(" or "))
}

fn a(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "an array",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

fn members(names: &[String]) -> String {
    let mut text = String::from(if names.len() == 1 { "the member " } else { "the members " });
    for (n, name) in names.iter().take(MAX_NAMES).enumerate() {
        text.push_str(if n > 0 { ", " } else { "" });
        text.push_str(&bounded(&Value::from(name.as_str()).to_string()));
    }
    if names.len() > MAX_NAMES {
        text.push_str(&format!(" and {} more", names.len() - MAX_NAMES));
    }
    text
}

fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn quoted(value: &Value) -> String {
    bounded(&value.to_string())
}

fn bounded(text: &str) -> String {
    json::sanitize_text(text, MAX_QUOTED_BYTES).into_owned()
}
