//! Redrive: one, many, and what stops it.

mod support;

use serde_json::json;
use support::Queue;

#[test]
fn one_by_id_and_the_same_request_twice() {
    let queue = Queue::new("redrive_one");
    let source = queue.failed_job(&["a", r#"{"n":1}"#], "boom");
    let args = ["redrive", &source, "--reason", "fixed the address", "--request-id", "r1"];
    let made = queue.run(&args).ok();
    assert_eq!(queue.run(&args).ok(), made);
    let job = &queue.json(&["job", made.trim(), "--payload"])["job"];
    assert_eq!(job["sourceId"], source.as_str());
    assert_eq!(job["payload"], json!({"n": 1}));
    assert!(queue.run(&["job", &source]).ok().contains(made.trim()));
    assert!(queue.run(&["redrive", made.trim(), "--reason", "x"]).failed(1).contains("wrong_state"));
}

#[test]
fn many_by_filter_with_a_look_first() {
    let queue = Queue::new("redrive_many");
    for _ in 0..3 {
        queue.failed_job(&["a"], "boom");
    }
    queue.failed_job(&["b"], "boom");
    let preview = queue.run(&["redrive", "--type", "a", "--reason", "x", "--preview"]).ok();
    assert!(preview.lines().next().unwrap().ends_with('3'), "{preview}");
    let said = queue.run(&["redrive", "--type", "a", "--reason", "x"]).failed(7);
    assert!(said.contains("add --yes"), "{said}");
    assert_eq!(queue.json(&["jobs", "--state", "ready"])["jobs"], json!([]));

    let some = queue.run(&["redrive", "--type", "a", "--reason", "x", "--yes", "--limit", "2"]);
    assert!(some.err.contains("--request-id"), "{}", some.err);
    assert_eq!(some.ok(), "2 jobs redriven.\n");
    assert_eq!(queue.run(&["redrive", "--type", "a", "--reason", "x", "--yes"]).ok(), "1 jobs redriven.\n");
    assert_eq!(queue.run(&["redrive", "--type", "a", "--reason", "x", "--yes"]).ok(), "Nothing to redrive.\n");
    assert_eq!(queue.run(&["redrive", "--every", "--reason", "x", "--yes"]).ok(), "1 jobs redriven.\n");
    assert_eq!(queue.json(&["jobs", "--state", "ready"])["jobs"].as_array().unwrap().len(), 4);
}

#[test]
fn an_interrupted_request_is_resumed_and_makes_nothing_twice() {
    let queue = Queue::new("redrive_resume");
    for _ in 0..3 {
        queue.failed_job(&["a"], "boom");
    }
    let args = |limit: &'static str| {
        ["redrive", "--type", "a", "--reason", "x", "--yes", "--request-id", "r", "--limit", limit]
    };
    let first = queue.json(&args("2"));
    let all = queue.json(&args("10"));
    assert_eq!(all.as_array().unwrap().len(), 3);
    assert_eq!(all[0], first[0]);
    assert_eq!(queue.json(&["jobs", "--state", "ready"])["jobs"].as_array().unwrap().len(), 3);
}

#[test]
fn an_endpoint_needs_somebody_who_has_looked() {
    let queue = Queue::new("redrive_risk");
    let source = queue.failed_job(&["a", "--endpoint", "payments"], "boom");
    let said = queue.run(&["redrive", &source, "--reason", "x"]).failed(2);
    assert!(said.contains("acknowledgeDuplicateRisk"), "{said}");
    let said = queue.run(&["redrive", "--endpoint", "payments", "--reason", "x", "--yes"]).failed(1);
    assert!(said.contains("--acknowledge-duplicate-risk"), "{said}");
    let args = ["redrive", "--endpoint", "payments", "--reason", "x", "--yes", "--acknowledge-duplicate-risk"];
    assert_eq!(queue.run(&args).ok(), "1 jobs redriven.\n");
}
