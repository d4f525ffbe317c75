//! A scenario on its way: its client and the answers it keeps.

use crate::support::Database;
use crate::values::{fill, mismatch, shown};
use crate::work;
use drayhorse_core::bridge::Client;
use serde_json::{Map, Value, json};

const STEP_KEYS: [&str; 9] = ["call", "args", "as", "expect", "error", "details", "advanceClock", "work", "note"];

/// Executes all steps of a scenario in a fresh schema; the error names the step.
pub fn perform(database: &Database, scenario: &Value) -> Result<(), String> {
    let mut play = Play { client: database.client_with(json!({"poolSize": 2})), kept: Map::new() };
    let steps = scenario["steps"].as_array().filter(|steps| !steps.is_empty()).ok_or("there are no steps")?;
    for (n, step) in steps.iter().enumerate() {
        let name = step["call"].as_str().unwrap_or(if step.get("work").is_some() { "work" } else { "advanceClock" });
        play.step(step).map_err(|why| format!("step {}, {name}: {why}", n + 1))?;
    }
    Ok(())
}

/// What a step comes to: an answer, or the code and details of the error.
type Answer = Result<Value, (String, Value, String)>;

struct Play {
    client: Client,
    kept: Map<String, Value>,
}

impl Play {
    fn step(&mut self, step: &Value) -> Result<(), String> {
        let keys = step.as_object().ok_or("a step is an object")?.keys();
        if let Some(unknown) = keys.into_iter().find(|key| !STEP_KEYS.contains(&key.as_str())) {
            return Err(format!("a step has no {unknown}"));
        }
        let answer = self.answer(step)?;
        if let Some(code) = step.get("error") {
            return match answer {
                Ok(answer) => Err(format!("answered {}, but must fail with {code}", shown(&answer))),
                Err((found, _, message)) if *code != found.as_str() => {
                    Err(format!("must fail with {code}, not {found}: {message}"))
                }
                Err((_, details, _)) => self.compare(step.get("details"), &details),
            };
        }
        let answer = answer.map_err(|(code, _, message)| format!("{code}: {message}"))?;
        if let Some(name) = step["as"].as_str() {
            self.kept.insert(name.to_owned(), answer.clone());
        }
        self.compare(step.get("expect"), &answer)
    }

    fn answer(&self, step: &Value) -> Result<Answer, String> {
        if let Some(given) = step.get("work") {
            return work::run(&self.client, &fill(given, &self.kept)?, &self.kept).map(Ok);
        }
        if let Some(ms) = step.get("advanceClock") {
            return Ok(self.call("advanceClock", &json!({"ms": ms})));
        }
        let verb = step["call"].as_str().ok_or("a step has call, advanceClock or work")?;
        let args = fill(step.get("args").unwrap_or(&json!({})), &self.kept)?;
        Ok(self.call(verb, &args))
    }

    fn call(&self, verb: &str, args: &Value) -> Answer {
        match self.client.call(verb, &args.to_string()) {
            Ok(text) => Ok(serde_json::from_str(&text).unwrap_or_else(|e| panic!("{verb} answered no JSON: {e}"))),
            Err(error) => {
                Err((error.code().to_owned(), Value::Object(error.details().clone()), error.message().to_owned()))
            }
        }
    }

    fn compare(&self, pattern: Option<&Value>, answer: &Value) -> Result<(), String> {
        let Some(pattern) = pattern else {
            return Ok(());
        };
        match mismatch(&fill(pattern, &self.kept)?, Some(answer), "answer") {
            None => Ok(()),
            Some(why) => Err(format!("{why}, in {}", shown(answer))),
        }
    }
}
