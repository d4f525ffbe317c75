//! Runs `tests/scenarios`, the behaviour that every language shares; its README says what a step means. A test per
//! file, each scenario in a schema of its own: all of them on the newest PostgreSQL, the protocol's on the oldest, too.

#[allow(dead_code)]
#[path = "../worker/host.rs"]
mod host;
mod play;
#[path = "../support/mod.rs"]
mod support;
mod values;
mod work;

use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use support::Database;

/// Scenarios of a file that run at once: most of their time is spent waiting for the database.
const AT_ONCE: usize = 3;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/scenarios")
}

fn read(file: &str) -> Value {
    let text = fs::read_to_string(folder().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// Runs all scenarios of a file on one server; fails with every scenario that did.
fn run(file: &str, variable: &str, told: bool) {
    let content = read(file);
    let scenarios = content["scenarios"].as_array().expect("scenarios");
    let rest = Mutex::new(scenarios.iter());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = rest.lock().unwrap().next() else {
                        return;
                    };
                    let name = scenario["name"].as_str().expect("a name");
                    let result = perform(variable, scenario);
                    if told {
                        report(file, name, result.is_ok());
                    }
                    if let Err(why) = result {
                        failures.lock().unwrap().push(format!("{file}: {name}: {why}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {} scenarios failed\n{}", failures.len(), scenarios.len(), failures.join("\n"));
}

fn perform(variable: &str, scenario: &Value) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| {
        let database = Database::migrated(variable, "scenario");
        play::perform(&database, scenario)
    }))
    .unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("with a value that is no text")))
    })
}

/// A line for `tests/scenarios/report.py`, if this run wants one.
fn report(file: &str, name: &str, passed: bool) {
    static WRITING: Mutex<()> = Mutex::new(());
    let Some(folder) = std::env::var_os("DRAYHORSE_SCENARIO_RESULTS") else {
        return;
    };
    let path = Path::new(&folder).join("rust.jsonl");
    let _held = WRITING.lock().unwrap();
    let opened = OpenOptions::new().create(true).append(true).open(&path);
    let line = format!("{}\n", json!({"file": file, "name": name, "passed": passed}));
    opened.and_then(|mut f| f.write_all(line.as_bytes())).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// A test for each file on the newest server, and one on the oldest where the file is the protocol's.
macro_rules! files {
    ($($name:ident: $file:literal $($oldest:ident)?,)*) => {
        const FILES: &[&str] = &[$($file),*];
        $(
            mod $name {
                #[test]
                fn newest() {
                    super::run($file, "DRAYHORSE_TEST_URL", true);
                }
                $(
                    #[test]
                    fn $oldest() {
                        super::run($file, "DRAYHORSE_TEST_URL_15", false);
                    }
                )?
            }
        )*
    };
}

files! {
    bad_input: "bad-input.json" oldest,
    circuits: "circuits.json" oldest,
    claims: "claims.json" oldest,
    contracts_worker: "contracts-worker.json",
    contracts: "contracts.json" oldest,
    endings: "endings.json" oldest,
    gates: "gates.json" oldest,
    idempotency: "idempotency.json" oldest,
    payloads: "payloads.json" oldest,
    reading: "reading.json" oldest,
    redrive: "redrive.json" oldest,
    retries: "retries.json" oldest,
    runs: "runs.json" oldest,
    worker: "worker.json",
}

#[test]
fn every_file_has_its_test() {
    let mut found: Vec<String> = fs::read_dir(folder())
        .expect("the folder of the scenarios")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".json"))
        .collect();
    found.sort();
    assert_eq!(found, FILES);
}

/// The runner itself: what a scenario got wrong is found, and the step is named.
#[test]
fn a_wrong_scenario_fails() {
    let enqueue = json!({"call": "enqueue", "args": {"type": "t"}, "as": "job"});
    let wrong = [
        (json!({"call": "get", "args": {"id": "$job.id"}, "expect": {"state": "active"}}), "step 2, get: answer.state"),
        (json!({"call": "get", "args": {"id": "$job.id"}, "error": "not_found"}), "must fail with \"not_found\""),
        (json!({"call": "cancel", "args": {"id": 7}, "error": "not_found"}), "not invalid_argument"),
        (json!({"call": "cancel", "args": {"id": 7}}), "step 2, cancel: invalid_argument"),
        (json!({"call": "get", "args": {"id": "$nobody.id"}}), "no answer is kept"),
        (json!({"call": "get", "args": {"id": "$job.id"}, "expected": {}}), "a step has no expected"),
        (
            json!({"work": {"handlers": {"t": [{"dance": 1}]}, "until": {"job": "failed"}}}),
            "there is no behaviour dance",
        ),
    ];
    let database = Database::migrated("DRAYHORSE_TEST_URL", "scenario");
    for (step, why) in wrong {
        let found = play::perform(&database, &json!({"name": "wrong", "steps": [enqueue, step]})).expect_err(why);
        assert!(found.contains(why), "{found}");
    }
}
