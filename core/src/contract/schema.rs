//! One JSON Schema 2020-12, compiled once and applied to many values. Nothing outside the schema is ever read: a
//! reference must lead to a place in the schema itself or to a meta-schema. Patterns are matched in linear time, so
//! that no payload can hold a worker up. `format` is an annotation, as 2020-12 has it by default.

use super::meter::{self, At, Budget, Metered, Unfinished};
use super::problem::{self, Problem, Report};
use crate::json;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, Retrieve, Uri, Validator};
use serde_json::Value;
use std::error::Error as StdError;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The one dialect.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Looks at a value, and at each byte of it: far above what schemas for people need, and a second's work at most for a
/// value of usual size.
const LOOKS: u64 = 1_000_000;
const LOOKS_PER_BYTE: u64 = 100;
/// Problems that are gathered before the first few are named.
const PROBLEMS: u64 = 1_000;
/// How much a compiled pattern may take: what `x{1000}{1000}` stands for is refused when it is published.
const PATTERN_BYTES: usize = 10 << 20;
const MAX_FAULT_BYTES: usize = 400;

/// A compiled schema.
pub struct Schema {
    validator: Validator<Metered>,
}

/// Why a text is no schema: the place in it, with what it is called in front, and a sentence.
#[derive(Debug, PartialEq)]
pub struct Fault {
    pub path: String,
    pub message: String,
}

impl Schema {
    /// Compiles a schema. `root` is what the caller calls it, `inputSchema` for example.
    pub fn compile(text: &str, root: &str) -> Result<Schema, Fault> {
        let fault = |message: String| Fault { path: root.to_owned(), message };
        let schema: Value = serde_json::from_str(text).map_err(|e| fault(format!("{root} is not valid JSON: {e}")))?;
        match &schema {
            Value::Bool(_) => {}
            Value::Object(members) => {
                if let Some(dialect) = members.get("$schema")
                    && dialect.as_str().map(|uri| uri.trim_end_matches('#')) != Some(DIALECT)
                {
                    let message = format!("{root}.$schema must be {DIALECT}, or absent: there is one dialect");
                    return Err(Fault { path: format!("{root}.$schema"), message });
                }
            }
            _ => return Err(fault(format!("{root} must be a JSON Schema: an object, true or false"))),
        }
        let built = catch_unwind(AssertUnwindSafe(|| {
            jsonschema::options_for::<Metered>()
                .with_draft(Draft::Draft202012)
                .should_validate_formats(false)
                .with_retriever(Nothing)
                .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES))
                .build(&schema)
        }));
        match built {
            Ok(Ok(validator)) => Ok(Schema { validator }),
            Ok(Err(error)) => {
                let path = problem::path_in(root, &schema, error.instance_path());
                let message = match error.kind() {
                    ValidationErrorKind::Format { format } if format == "regex" => {
                        format!(
                            "{path} must be a regular expression of linear time: no look-around, no back-references"
                        )
                    }
                    _ => {
                        let said = error.to_string();
                        format!("{path} is no JSON Schema 2020-12: {}", json::sanitize_text(&said, MAX_FAULT_BYTES))
                    }
                };
                Err(Fault { path, message })
            }
            Err(_) => Err(fault(format!("{root} cannot be compiled"))),
        }
    }

    /// What is wrong with a value, given as the JSON text it is; none when it matches. `root` is what the caller calls
    /// the value, `payload` for example.
    pub fn check(&self, text: &str, root: &str) -> Option<Report> {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(e) => return Some(Report::of(Problem::new(root.to_owned(), format!("is not valid JSON: {e}")))),
        };
        let budget = Budget { looks: LOOKS + LOOKS_PER_BYTE * text.len() as u64, problems: PROBLEMS };
        match meter::run(budget, || self.validator.is_valid(At(&value))) {
            Ok(true) => None,
            Ok(false) => Some(self.explain(&value, root, budget)),
            Err(why) => {
                let message = match why {
                    Unfinished::OverBudget => "takes too much work to check against its schema",
                    Unfinished::Panicked => "cannot be checked against its schema",
                };
                Some(Report::of(Problem::new(root.to_owned(), message.to_owned())))
            }
        }
    }

    /// All problems if they are not too many, else the first, else only that there are some.
    fn explain(&self, value: &Value, root: &str, budget: Budget) -> Report {
        let all = meter::run(budget, || Report::gather(root, value, self.validator.iter_errors(At(value))));
        if let Ok(Some(report)) = all {
            return report;
        }
        let first = meter::run(budget, || {
            self.validator.validate(At(value)).err().map(|error| problem::of(root, value, &error))
        });
        match first {
            Ok(Some(problem)) => Report { more: true, ..Report::of(problem) },
            _ => Report::of(Problem::new(root.to_owned(), "must match its schema".to_owned())),
        }
    }
}

/// References lead nowhere else.
struct Nothing;

impl Retrieve for Nothing {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn StdError + Send + Sync>> {
        Err("a schema must be complete in itself: nothing is fetched".into())
    }
}
