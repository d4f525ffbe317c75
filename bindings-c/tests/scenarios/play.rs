//! Scenarios and their steps.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::caller::Caller;
use crate::support::{Schema, root};
use crate::values::{fill, mismatch, shown};

/// One scenario of one file.
pub struct Scenario {
    /// The file's name.
    pub file: String,
    /// The scenario's name, unique in its file.
    pub name: String,
    steps: Vec<Value>,
}

/// Every scenario of the files with `"protocol": true`.
pub fn protocol_scenarios() -> Vec<Scenario> {
    let folder = root().join("../tests/scenarios");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("a folder's entries are readable").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    files.iter().flat_map(|path| of_file(path)).collect()
}

fn of_file(path: &Path) -> Vec<Scenario> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let content: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    if content["protocol"] != true {
        return Vec::new();
    }
    let file = path.file_name().expect("it was listed").to_string_lossy().into_owned();
    let scenarios = content["scenarios"].as_array().unwrap_or_else(|| panic!("{file} has no scenarios"));
    scenarios
        .iter()
        .map(|scenario| Scenario {
            file: file.clone(),
            name: scenario["name"].as_str().unwrap_or_else(|| panic!("{file}: a scenario without a name")).to_owned(),
            steps: scenario["steps"].as_array().unwrap_or_else(|| panic!("{file}: no steps")).clone(),
        })
        .collect()
}

/// Executes a scenario in a schema of its own; the error says which step broke what.
pub fn play(program: &Path, number: usize, scenario: &Scenario) -> Result<(), String> {
    let schema = Schema::new(&format!("scenario{number}"));
    let mut caller = Caller::start(program, &schema)?;
    caller.call("migrate", &json!({}))?.map_err(|refusal| format!("migrate: {}", refusal.error))?;
    let mut kept = Map::new();
    for (index, step) in scenario.steps.iter().enumerate() {
        let told = |why| format!("step {}, {}: {why}", index + 1, step["call"].as_str().unwrap_or("advanceClock"));
        take(&mut caller, step, &mut kept).map_err(told)?;
    }
    caller.end()
}

fn take(caller: &mut Caller, step: &Value, kept: &mut Map<String, Value>) -> Result<(), String> {
    const KNOWN: [&str; 8] = ["note", "call", "args", "as", "expect", "error", "details", "advanceClock"];
    let step = step.as_object().ok_or("a step is an object")?;
    if let Some(key) = step.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("a protocol scenario has no `{key}`"));
    }
    let answer = if let Some(ms) = step.get("advanceClock") {
        caller.call("advanceClock", &json!({ "ms": ms }))?
    } else {
        let verb = step.get("call").and_then(Value::as_str).ok_or("a step without a verb")?;
        caller.call(verb, &fill(step.get("args").unwrap_or(&json!({})), kept)?)?
    };
    match (step.get("error"), answer) {
        (None, Err(refusal)) => Err(refusal.error.to_string()),
        (None, Ok(answer)) => {
            if let Some(name) = step.get("as").and_then(Value::as_str) {
                kept.insert(name.to_owned(), answer.clone());
            }
            compare(step.get("expect"), &answer, kept)
        }
        (Some(code), Ok(answer)) => Err(format!("answered {}, must fail with {code}", shown(&answer))),
        (Some(code), Err(refusal)) if *code != refusal.code => Err(format!("must fail with {code}: {}", refusal.error)),
        (Some(_), Err(refusal)) => compare(step.get("details"), &refusal.error["details"], kept)
            .map_err(|why| format!("details: {why}: {}", refusal.error)),
    }
}

fn compare(pattern: Option<&Value>, answer: &Value, kept: &Map<String, Value>) -> Result<(), String> {
    let Some(pattern) = pattern else { return Ok(()) };
    match mismatch(&fill(pattern, kept)?, Some(answer), "answer") {
        None => Ok(()),
        Some(why) => Err(format!("{why}, in {}", shown(answer))),
    }
}
