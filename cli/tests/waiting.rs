//! "Why is this job still waiting?": every reason there is, and what helps, as `drayhorse job` answers.

mod support;

use support::Queue;

/// The reasons of `drayhorse job`, each with its action.
fn answers(queue: &Queue, id: &str) -> Vec<(String, String)> {
    let shown = queue.run(&["job", id]).ok();
    let lines: Vec<&str> = shown.lines().collect();
    let value = |line: &str, name: &str| line.strip_prefix(name).map(|rest| rest.trim().to_owned());
    let reasons = lines.iter().enumerate().filter_map(|(n, line)| Some((n, value(line, "waits ")?)));
    reasons
        .map(|(n, reason)| (reason, value(lines[n + 1], "  helps ").unwrap_or_else(|| panic!("no action: {shown}"))))
        .collect()
}

/// The job waits for this and nothing else, and this is what helps.
fn only(queue: &Queue, id: &str, reason: &str, action: &str) -> String {
    let all = answers(queue, id);
    let [(said, helps)] = all.as_slice() else { panic!("one reason expected: {all:?}") };
    assert!(said.contains(reason), "{said}");
    assert!(helps.contains(action), "{helps}");
    // A list has no room for actions; the reason is there, too.
    let listed = queue.run(&["jobs"]).ok();
    let row = listed.lines().find(|line| line.starts_with(id)).expect("the job is listed");
    assert!(row.contains(reason.split(" in ").next().unwrap_or(reason)), "{row}");
    said.clone()
}

#[test]
fn it_is_not_due_yet() {
    let queue = Queue::new("why_due");
    queue.register_worker("w", &["default"], &["a"]);
    let id = queue.enqueued(&["a", "--delay", "1h"]);
    only(&queue, &id, "due in 3", "it becomes ready by itself");
    assert!(queue.run(&["job", &id]).ok().contains("next run"));
}

#[test]
fn its_circuit_is_open() {
    let queue = Queue::new("why_circuit");
    queue.register_worker("w", &["default"], &["a"]);
    queue.run(&["endpoint", "payments", "configure", "--failure-threshold", "1", "--cooldown-ms", "3600000"]).ok();
    queue.failed_job(&["a", "--endpoint", "payments"], "503");
    let id = queue.enqueued(&["a", "--endpoint", "payments"]);
    let said = only(&queue, &id, "circuit of endpoint payments open since", "none while the destination is down: wait");
    assert!(said.contains("probe possible in 3"), "{said}");
    queue.run(&["endpoint", "payments", "force-open"]).ok();
    only(&queue, &id, "circuit of endpoint payments forced open", "reset the circuit");
}

#[test]
fn its_endpoint_is_paused() {
    let queue = Queue::new("why_endpoint");
    queue.register_worker("w", &["default"], &["a"]);
    let id = queue.enqueued(&["a", "--endpoint", "payments"]);
    queue.run(&["endpoint", "payments", "pause", "--actor", "ada", "--reason", "maintenance"]).ok();
    let said = only(&queue, &id, "endpoint payments paused by ada since", "resume the endpoint");
    assert!(said.ends_with("maintenance"), "{said}");
}

#[test]
fn its_queue_is_paused() {
    let queue = Queue::new("why_queue");
    queue.register_worker("w", &["mail"], &["a"]);
    let id = queue.enqueued(&["a", "--queue", "mail"]);
    queue.run(&["queue", "mail", "pause", "--actor", "ada"]).ok();
    only(&queue, &id, "queue mail paused by ada since", "resume the queue");
}

#[test]
fn the_rate_is_used_up() {
    let queue = Queue::new("why_rate");
    queue.register_worker("w", &["default"], &["a"]);
    queue.run(&["endpoint", "payments", "configure", "--rate", "1/1h"]).ok();
    queue.enqueued(&["a", "--endpoint", "payments"]);
    queue.claim("a").expect("the first has a token");
    let id = queue.enqueued(&["a", "--endpoint", "payments"]);
    only(&queue, &id, "no token left", "the next token comes by itself");
}

#[test]
fn all_slots_are_in_use() {
    let queue = Queue::new("why_slots");
    queue.register_worker("w", &["default"], &["a"]);
    queue.run(&["endpoint", "payments", "configure", "--concurrency", "1"]).ok();
    queue.enqueued(&["a", "--endpoint", "payments"]);
    queue.claim("a").expect("the first has a slot");
    let id = queue.enqueued(&["a", "--endpoint", "payments"]);
    only(&queue, &id, "concurrency of endpoint payments: 1/1", "a slot is free when an attempt or its lease ends");
}

#[test]
fn no_worker_handles_it() {
    let queue = Queue::new("why_worker");
    queue.register_worker("w", &["default"], &["a"]);
    let id = queue.enqueued(&["a", "--handler-version", "3"]);
    only(&queue, &id, "no worker handles a@3 in queue default", "deploy a worker that handles exactly this type");
}

#[test]
fn another_job_has_to_end_first() {
    let queue = Queue::new("why_after");
    queue.register_worker("w", &["default"], &["a"]);
    let first = queue.enqueued(&["a"]);
    let id = queue.enqueued(&["a", "--after", &format!("{first}:succeeded")]);
    let reason = format!("waits for job {first} to be succeeded");
    only(&queue, &id, &reason, "it is decided when that job ends");
    assert!(queue.run(&["job", &id]).ok().contains("blocked"));
}

#[test]
fn it_may_run_and_others_come_first() {
    let queue = Queue::new("why_eligible");
    queue.register_worker("w", &["default"], &["a"]);
    let first = queue.enqueued(&["a"]);
    let second = queue.enqueued(&["a"]);
    only(&queue, &first, "eligible, 0 ahead in its lane", "more worker slots");
    only(&queue, &second, "eligible, 1 ahead in its lane", "more worker slots");
}

#[test]
fn several_things_hold_it_back() {
    let queue = Queue::new("why_all");
    let id = queue.enqueued(&["a", "--endpoint", "payments", "--queue", "mail", "--delay", "1h"]);
    queue.run(&["endpoint", "payments", "pause"]).ok();
    queue.run(&["queue", "mail", "pause"]).ok();
    let reasons: Vec<String> = answers(&queue, &id).into_iter().map(|(reason, _)| reason).collect();
    for expected in ["due in", "queue mail paused", "endpoint payments paused", "no worker handles a@1"] {
        assert!(reasons.iter().any(|reason| reason.contains(expected)), "{expected}: {reasons:?}");
    }
    assert_eq!(reasons.len(), 4);
}

#[test]
fn a_job_that_ended_badly_says_what_helps() {
    let queue = Queue::new("why_ended");
    let id = queue.failed_job(&["a"], "503");
    let helps = |id: &str| {
        let shown = queue.run(&["job", id]).ok();
        shown.lines().find_map(|line| Some(line.strip_prefix("  helps ")?.trim().to_owned()))
    };
    assert_eq!(helps(&id).unwrap(), format!("when the destination works again, drayhorse redrive {id}"));
    let claim = {
        queue.enqueued(&["b"]);
        queue.claim("b").unwrap()
    };
    let client = queue.client();
    let error = serde_json::json!({"name": "Refused", "message": "card"});
    support::call(
        &client,
        "fail",
        serde_json::json!({"claim": claim, "error": error, "retryable": false, "uncertain": true}),
    );
    let uncertain = claim["id"].as_str().unwrap().to_owned();
    let said = helps(&uncertain).unwrap();
    assert!(said.contains("reconcile with the destination first"), "{said}");
    assert!(said.contains("fix the cause"), "{said}");
    // What somebody has repeated needs nothing more.
    queue.run(&["redrive", &id, "--reason", "it is back"]).ok();
    assert_eq!(helps(&id), None);
}
