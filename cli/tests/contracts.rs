//! Contracts: published from a file, listed, shown, and never changed.

mod support;

use serde_json::json;
use std::path::PathBuf;
use support::Queue;

/// A file of the test's own, removed at its end.
struct File(PathBuf);

impl File {
    fn new(name: &str, content: &str) -> File {
        let path = std::env::temp_dir().join(format!("drayhorse-cli-{name}-{}.json", std::process::id()));
        std::fs::write(&path, content).expect("a temporary file can be written");
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a plain path")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).expect("the file is still there");
    }
}

const CHARGE: &str = r#"{"type": "charge", "version": "2", "endpoint": "payments", "maxAttempts": 4, "timeoutMs": 30000,
    "inputSchema": {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer"}}},
    "retryPolicy": {"type": "fixed", "delayMs": 5}}"#;

#[test]
fn published_listed_shown_and_kept() {
    let queue = Queue::new("contracts");
    assert_eq!(queue.run(&["contracts", "list"]).ok(), "No contracts yet.\n");
    let file = File::new("charge", CHARGE);
    let said = queue.run(&["contracts", "publish", file.path(), "--actor", "ada"]).ok();
    assert!(said.starts_with("charge@2 is published, digest "), "{said}");
    let again = queue.run(&["contracts", "publish", file.path()]).ok();
    assert!(again.starts_with("charge@2 was published before, digest "), "{again}");
    let changed = CHARGE.replace("30000", "31000");
    let refused = queue.run_with(&["contracts", "publish", "-"], &changed).failed(1);
    assert!(refused.contains("contract_conflict") && refused.contains("timeoutMs"), "{refused}");

    let listed = queue.run(&["contracts", "list"]).ok();
    let row = listed.lines().nth(1).expect("one row");
    for cell in ["charge@2", "payments", "4", "30 s", "schema", "ada", r#"{"delayMs":5,"type":"fixed"}"#] {
        assert!(row.contains(cell), "{cell}: {row}");
    }
    let shown = queue.run(&["contracts", "get", "charge", "--handler-version", "2"]).ok();
    assert!(shown.contains(r#""required": ["#) && shown.contains("output     any JSON value"), "{shown}");
    assert_eq!(queue.json(&["contracts", "get", "charge", "--handler-version", "2"])["actor"], "ada");
    assert!(queue.run(&["contracts", "get", "charge"]).failed(3).contains("there is no contract charge@1"));

    // It decides for jobs that are enqueued from now on.
    let job = ["enqueue", "charge", "--handler-version", "2"];
    let said = queue.run(&[&job[..], &["{}"]].concat()).failed(1);
    assert!(said.contains("contract_violation"), "{said}");
    let id = queue.run(&[&job[..], &[r#"{"amount": 7}"#]].concat()).ok();
    let made = &queue.json(&["job", id.trim()])["job"];
    assert_eq!((&made["endpoint"], &made["maxAttempts"]), (&json!("payments"), &json!(4)));
}

#[test]
fn many_in_one_file() {
    let queue = Queue::new("contracts_many");
    let both = r#"[{"type": "a"}, {"type": "b", "actor": "bob"}]"#;
    let published = queue.run_with(&["contracts", "publish", "-", "--json"], both).json();
    assert_eq!((&published[0]["actor"], &published[1]["actor"]), (&json!("cli:tester"), &json!("bob")));
    assert_eq!(queue.json(&["contracts", "list"])["contracts"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_no_contract_is_refused() {
    let queue = Queue::new("contracts_refused");
    for bad in ["", "[]", "7", "[7]", "{", r#"{"version": "1"}"#, r#"{"type": "a", "retryPolicy": {"type": "fixed"}}"#]
    {
        queue.run_with(&["contracts", "publish", "-"], bad).failed(2);
    }
    assert!(queue.run(&["contracts", "publish", "/no/such/file"]).failed(2).contains("cannot read the file"));
    assert_eq!(queue.run(&["contracts", "list"]).ok(), "No contracts yet.\n");
}
