//! Tool contracts: what a type in one version takes and gives. The database keeps them and resolves their defaults;
//! here their schemas are compiled and applied, by the one validator that every language shares. The client checks
//! payloads before an enqueue and schemas before a publication, the worker payloads before and results after a handler.

mod meter;
mod problem;
mod schema;
#[cfg(test)]
mod tests;

use crate::error::{Error, Kind, Result};
use crate::json;
use problem::{Problem, Report};
use schema::{Fault, Schema};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The largest schema, as SQL measures it.
const MAX_SCHEMA_BYTES: usize = 1 << 20;

/// One published contract, as far as it is applied here. Its schemas are compiled when they are first needed.
pub struct Contract {
    kind: String,
    version: String,
    input: Option<Part>,
    output: Option<Part>,
}

/// One of its schemas.
struct Part {
    name: &'static str,
    text: Box<RawValue>,
    schema: OnceLock<std::result::Result<Schema, Fault>>,
}

/// A value that a contract does not allow.
#[derive(Debug, PartialEq)]
pub struct Violation {
    sentence: String,
    report: Report,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    #[serde(rename = "type")]
    kind: String,
    version: String,
    input_schema: Option<Box<RawValue>>,
    output_schema: Option<Box<RawValue>>,
}

impl Contract {
    /// Reads what `contracts.get` answers, or an element of `contracts.list`.
    pub fn read(text: &str) -> Result<Contract> {
        let published: Published = serde_json::from_str(text)
            .map_err(|e| Error::new(Kind::Internal, format!("a contract cannot be read: {e}")))?;
        let part = |name, text: Option<Box<RawValue>>| {
            text.filter(|text| text.get() != "null").map(|text| Part { name, text, schema: OnceLock::new() })
        };
        Ok(Contract {
            kind: published.kind,
            version: published.version,
            input: part("inputSchema", published.input_schema),
            output: part("outputSchema", published.output_schema),
        })
    }

    /// Stands for a contract that a job was enqueued under and that is not there: nothing can be said to match it.
    pub fn missing(kind: &str, version: &str) -> Contract {
        let gone = Fault { path: String::new(), message: format!("contract {kind}@{version} is not there any more") };
        let schema = OnceLock::from(Err(gone));
        let input = Some(Part { name: "inputSchema", text: RawValue::TRUE.to_owned(), schema });
        Contract { kind: kind.to_owned(), version: version.to_owned(), input, output: None }
    }

    /// The type it is for.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The version it is for.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether results are checked.
    pub fn checks_results(&self) -> bool {
        self.output.is_some()
    }

    /// Checks a payload; a missing one counts as null. `root` is what the caller calls it, `jobs[3].payload` for example.
    pub fn check_payload(&self, payload: Option<&str>, root: &str) -> std::result::Result<(), Violation> {
        self.check(self.input.as_ref(), payload, root)
    }

    /// Checks a result; a missing one counts as null.
    pub fn check_result(&self, result: Option<&str>) -> std::result::Result<(), Violation> {
        self.check(self.output.as_ref(), result, "result")
    }

    fn check(&self, part: Option<&Part>, value: Option<&str>, root: &str) -> std::result::Result<(), Violation> {
        let Some(part) = part else { return Ok(()) };
        let report = match part.schema() {
            Ok(schema) => schema.check(value.unwrap_or("null"), root),
            // Only SQL takes such a schema: there it is data.
            Err(fault) => {
                Some(Report::of(Problem::new(root.to_owned(), format!("cannot be checked: {}", fault.message))))
            }
        };
        match report {
            None => Ok(()),
            Some(report) => {
                let sentence = format!("{root} does not match contract {}@{}: {report}", self.kind, self.version);
                Err(Violation { sentence, report })
            }
        }
    }
}

impl Part {
    fn schema(&self) -> &std::result::Result<Schema, Fault> {
        self.schema.get_or_init(|| Schema::compile(self.text.get(), self.name))
    }
}

impl Violation {
    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.sentence
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Error {
        let problems: Vec<Value> = violation.report.problems.iter().map(Problem::to_json).collect();
        Error::new(Kind::ContractViolation, violation.sentence)
            .with("path", violation.report.path())
            .with("problems", problems)
    }
}

/// Refuses a publication whose schemas are none, before anything is sent. `args` are those of `contracts.publish`.
pub fn check_publication(args: &str) -> Result<()> {
    // What is no object is refused by the verb itself.
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(args) else { return Ok(()) };
    for name in ["inputSchema", "outputSchema"] {
        let Some(schema) = members.get(name) else { continue };
        json::scan(schema.get(), name, usize::MAX).map_err(|e| Error::argument(name, e.message()))?;
        if schema.get().len() > MAX_SCHEMA_BYTES {
            let message = format!("{name} is {} bytes of JSON; the limit is {MAX_SCHEMA_BYTES}", schema.get().len());
            return Err(Error::argument(name, message).with("limit", MAX_SCHEMA_BYTES));
        }
        Schema::compile(schema.get(), name)
            .map_err(|fault| Error::argument(name, fault.message).with("path", fault.path))?;
    }
    Ok(())
}
