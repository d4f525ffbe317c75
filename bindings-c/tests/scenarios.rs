//! Runs the scenarios of `tests/scenarios` that need no worker through a C program: a C caller gets the same answers
//! and the same codes as every other language. `tests/scenarios/README.md` says what a step means.

mod scenarios {
    mod caller;
    mod play;

    pub use caller::program;
    pub use play::{Scenario, play, protocol_scenarios};
}
mod support;
#[path = "../../core/tests/scenarios/values.rs"]
mod values;

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::{env, thread};

use scenarios::{Scenario, play, program, protocol_scenarios};
use serde_json::json;

/// Scenarios that run at once: most of their time is spent waiting for the database.
const LANES: usize = 4;

#[test]
fn c_callers_get_the_answers_of_every_protocol_scenario() {
    let program = program();
    let waiting: Mutex<VecDeque<(usize, Scenario)>> =
        Mutex::new(protocol_scenarios().into_iter().enumerate().collect());
    let total = waiting.lock().unwrap_or_else(PoisonError::into_inner).len();
    assert!(total > 0, "there are no protocol scenarios");
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some((number, scenario)) =
                    { waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front() }
                {
                    let ended = play(&program, number, &scenario);
                    record(&scenario, ended.is_ok());
                    if let Err(why) = ended {
                        let line = format!("{}: {}: {why}", scenario.file, scenario.name);
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{} of {total} scenarios passed", total - failures.len());
    assert!(failures.is_empty(), "{} of {total} scenarios failed:\n{}", failures.len(), failures.join("\n"));
}

/// Notes a result for `tests/scenarios/report.py`, if a run wants it.
fn record(scenario: &Scenario, passed: bool) {
    let Some(folder) = env::var_os("DRAYHORSE_SCENARIO_RESULTS") else { return };
    let file = PathBuf::from(folder).join("c.jsonl");
    let line = json!({"file": scenario.file, "name": scenario.name, "passed": passed});
    // One write, so that lines of several threads do not mix.
    let written = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&file)
        .and_then(|mut results| results.write_all(format!("{line}\n").as_bytes()));
    written.unwrap_or_else(|e| panic!("{}: {e}", file.display()));
}
