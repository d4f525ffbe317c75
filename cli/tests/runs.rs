//! Runs: begun, joined, looked at and closed from the command line.

mod support;

use serde_json::json;
use support::{Queue, call};

#[test]
fn a_run_from_its_start_to_its_verdict() {
    let queue = Queue::new("runs");
    let run = queue.run(&["run", "start", "ship order 7"]).ok().trim().to_owned();
    assert!(queue.run(&["run", "get", &run]).ok().contains("jobs      none"));
    let charge = queue.enqueued(&["charge", "--run", &run]);
    let ship = queue.enqueued(&["ship", "--run", &run, "--after", &format!("{charge}:succeeded")]);
    let sorry = queue.enqueued(&["apologize", "--run", &run, "--after", &format!("{charge}:failed")]);
    let shown = queue.run(&["run", "get", &run]).ok();
    for part in ["ship order 7", "running", "2 blocked, 1 ready", "jobs may still join", &charge, &ship, &sorry] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(queue.run(&["job", &ship]).ok().contains(&run));
    queue.run(&["run", "finish", &run]).ok();
    let said = queue.run(&["enqueue", "late", "--run", &run]).failed(1);
    assert!(said.contains("wrong_state"), "{said}");

    let claim = queue.claim("charge").unwrap();
    let client = queue.client();
    call(&client, "complete", json!({"claim": claim, "result": 1}));
    assert_eq!(queue.json(&["job", &sorry])["job"]["state"], "skipped");
    call(&client, "complete", json!({"claim": queue.claim("ship").unwrap(), "result": 1}));
    let ended = queue.json(&["run", "get", &run]);
    assert_eq!((&ended["state"], &ended["jobs"]), (&json!("succeeded"), &json!({"succeeded": 2, "skipped": 1})));
    assert!(queue.run(&["run", "get", &run]).ok().contains("2 succeeded, 1 skipped"));
}

#[test]
fn what_is_no_run_is_refused() {
    let queue = Queue::new("no_runs");
    let absent = "01890a5d-ac96-774b-bcce-b302099a8057";
    assert!(queue.run(&["run", "get", absent]).failed(3).contains("there is no run"));
    assert!(queue.run(&["run", "finish", absent]).failed(3).contains("not_found"));
    queue.run(&["run", "get", "not-an-id"]).failed(2);
    queue.run(&["run"]).failed(2);
    queue.run(&["run", "start"]).failed(2);
    for after in ["x", "x:ended", ":"] {
        queue.run(&["enqueue", "a", "--after", after]).failed(2);
    }
    assert_eq!(queue.run(&["enqueue", "a", "--after", &format!("{absent}:failed")]).code, 3);
}
