//! Replay: what would run is shown first, somebody has to agree, and an interruption makes nothing twice.

mod support;

use drayhorse_core::bridge::Client;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{Queue, call};

#[test]
fn what_would_run_is_shown_before_anything_is_made() {
    let queue = Queue::new("replay_one");
    let source = queue.failed_job(&["a", r#"{"n":1}"#], "boom");
    let preview = queue.run(&["replay", &source, "--preview"]).ok();
    for part in
        ["ended            failed", "would run        a@1", "attempts         1", "started          yes", "none"]
    {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    assert!(!preview.contains(r#""n""#), "payloads are shown only when asked for");
    assert!(queue.run(&["replay", &source, "--preview", "--payload"]).ok().contains(r#""n": 1"#));
    assert_eq!(queue.json(&["replay", &source, "--preview"])["replayable"], true);

    let said = queue.run(&["replay", &source, "--reason", "x"]).failed(7);
    assert!(said.contains("would run") && said.contains("Replay this job? Nothing was done: add --yes"), "{said}");
    queue.run(&["replay", &source, "--yes"]).failed(2);
    assert_eq!(queue.json(&["jobs", "--state", "ready"])["jobs"], json!([]));

    let args = ["replay", &source, "--reason", "fixed", "--yes", "--request-id", "r1", "--max-attempts", "3"];
    let made = queue.run(&args).ok();
    assert_eq!(queue.run(&args).ok(), made, "one request makes one job");
    let job = &queue.json(&["job", made.trim(), "--payload"])["job"];
    assert_eq!((&job["sourceId"], &job["maxAttempts"]), (&json!(source), &json!(3)));
    assert_eq!(job["payload"], json!({"n": 1}));
    let again = queue.run(&["replay", &source, "--preview"]).ok();
    assert!(again.contains(made.trim()), "a second repetition is noticed: {again}");
}

#[test]
fn only_what_has_ended_is_replayed() {
    let queue = Queue::new("replay_state");
    let id = queue.enqueued(&["a"]);
    let said = queue.run(&["replay", &id, "--reason", "x", "--yes"]).failed(1);
    assert!(said.contains("wrong_state"), "{said}");
    queue.run(&["cancel", &id]).ok();
    queue.run(&["replay", &id, "--reason", "x", "--yes"]).ok();
    let absent = "01890a5d-ac96-774b-bcce-b302099a8057";
    assert!(queue.run(&["replay", absent, "--reason", "x", "--yes"]).failed(3).contains("not_found"));
    let test = queue.failed_job(&["b", "--endpoint", "e", "--synthetic"], "boom");
    assert!(queue.run(&["replay", &test, "--reason", "x", "--yes"]).failed(1).contains("synthetic"));
}

#[test]
fn an_endpoint_needs_somebody_who_has_looked() {
    let queue = Queue::new("replay_risk");
    let source = queue.failed_job(&["a", "--endpoint", "payments"], "boom");
    let said = queue.run(&["replay", &source, "--reason", "x", "--yes"]).failed(1);
    assert!(said.contains("--acknowledge-duplicate-risk"), "{said}");
    let many = ["replay", "--state", "failed", "--endpoint", "payments", "--reason", "x", "--yes"];
    assert!(queue.run(&many).failed(1).contains("--acknowledge-duplicate-risk"));
    queue.run(&["endpoint", "payments", "force-open"]).ok();
    let args = ["replay", &source, "--reason", "x", "--yes", "--acknowledge-duplicate-risk"];
    let ended = queue.run(&args);
    assert!(ended.err.contains("open: the new job waits for it"), "{}", ended.err);
    assert_eq!(queue.json(&["job", ended.ok().trim()])["job"]["waiting"][0]["kind"], "circuit");
}

#[test]
fn many_by_filter_with_a_count_first() {
    let queue = Queue::new("replay_many");
    for _ in 0..3 {
        queue.failed_job(&["a"], "boom");
    }
    let canceled = queue.enqueued(&["a"]);
    queue.run(&["cancel", &canceled]).ok();
    queue.run(&["replay", "--type", "a", "--reason", "x"]).failed(2);
    let preview = queue.run(&["replay", "--state", "failed", "--type", "a", "--preview"]).ok();
    assert!(preview.starts_with("failed jobs ") && preview.lines().next().unwrap().ends_with('3'), "{preview}");
    let args = ["replay", "--state", "failed", "--type", "a", "--reason", "x"];
    assert!(queue.run(&args).failed(7).contains("Replay 3 jobs?"));
    let said = queue.run(&[&args[..], &["--yes", "--limit", "2", "--request-id", "r"]].concat());
    assert_eq!(said.ok(), "2 jobs replayed.\n");
    let rest = queue.json(&[&args[..], &["--yes", "--request-id", "r"]].concat());
    assert_eq!(rest.as_array().unwrap().len(), 3, "the whole request, resumed: {rest}");
    assert_eq!(queue.json(&["jobs", "--state", "ready"])["jobs"].as_array().unwrap().len(), 3);
    assert_eq!(queue.run(&[&args[..], &["--yes"]].concat()).ok(), "Nothing to replay.\n");
    assert_eq!(queue.run(&["replay", "--state", "canceled", "--reason", "x", "--yes"]).ok(), "1 jobs replayed.\n");
}

#[test]
fn a_request_does_not_repeat_what_it_made_itself() {
    let queue = Queue::new("replay_own");
    let jobs: Vec<_> = (0..101).map(|_| json!({"type": "a", "options": {"maxAttempts": 1}})).collect();
    call(&queue.client(), "enqueueMany", json!({"jobs": jobs}));
    let fail_all = |client: &Client| {
        let wanted = json!({"queues": ["default"], "handlers": [{"type": "a", "version": "1"}], "limit": 200, "leaseMs": 60_000});
        let claims = call(client, "claim", wanted);
        for claim in claims.as_array().unwrap() {
            let claim = json!({"id": claim["id"], "fence": claim["fence"]});
            call(client, "fail", json!({"claim": claim, "error": {"name": "Boom", "message": "still down"}}));
        }
        claims.as_array().unwrap().len()
    };
    assert_eq!(fail_all(&queue.client()), 101);
    // The destination is still down: new jobs fail while the second page is on its way, and match the filter again.
    let stop = AtomicBool::new(false);
    let made = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let client = queue.client();
            while !stop.load(Ordering::Relaxed) {
                fail_all(&client);
            }
        });
        let ended = queue.run(&["redrive", "--type", "a", "--reason", "x", "--yes", "--json"]);
        stop.store(true, Ordering::Relaxed);
        worker.join().unwrap();
        ended.json()
    });
    assert_eq!(made.as_array().unwrap().len(), 101);
}
