//! A job's life as the command line shows it.

mod support;

use serde_json::json;
use support::{Queue, call};

#[test]
fn enqueued_listed_shown_canceled() {
    let queue = Queue::new("life");
    let id = queue
        .run(&["enqueue", "mail.send", r#"{"to":"a@example.org"}"#, "--queue", "mail", "--tag", "x", "--delay", "1h"])
        .ok();
    let id = id.trim();
    let listed =
        queue.run(&["jobs", "--state", "scheduled", "--queue", "mail", "--type", "mail.send", "--tag", "x"]).ok();
    assert!(listed.contains(id) && listed.contains("mail.send@1") && listed.contains("0/25"), "{listed}");
    assert_eq!(queue.run(&["jobs", "--queue", "other"]).ok(), "No jobs.\n");

    let shown = queue.run(&["job", id]).ok();
    for part in
        ["scheduled", "0 of 25", "due in", "no worker handles mail.send@1", "none (compatibility delays)", "enqueued"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("a@example.org"), "payloads are shown only when asked for");
    assert!(queue.run(&["job", id, "--payload"]).ok().contains("a@example.org"));
    assert!(queue.json(&["job", id])["job"].get("payload").is_none());
    assert_eq!(queue.json(&["job", id, "--payload"])["job"]["payload"], json!({"to": "a@example.org"}));

    assert!(queue.run(&["cancel", id, "--reason", "a test"]).ok().contains("canceled"));
    let said = queue.run(&["cancel", id]).failed(1);
    assert!(said.contains("had ended before"), "{said}");
    let shown = queue.run(&["job", id]).ok();
    assert!(shown.contains("a test") && shown.contains("cli:tester"), "{shown}");
    assert_eq!(queue.json(&["job", id])["timeline"][0]["kind"], "enqueued");
}

#[test]
fn what_does_not_exist_is_3() {
    let queue = Queue::new("absent");
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    assert!(queue.run(&["job", id]).failed(3).contains("not_found"));
    assert!(queue.run(&["cancel", id]).failed(3).contains("do not exist"));
    assert!(queue.run(&["redrive", id, "--reason", "x"]).failed(3).contains("not_found"));
    assert!(queue.run(&["grant", "no_such_role_here", "reader"]).failed(3).contains("not_found"));
    assert_eq!(queue.run(&["job", "not-an-id"]).code, 2);
}

#[test]
fn status_counts_by_queue_and_state() {
    let queue = Queue::new("status");
    assert!(queue.run(&["status"]).ok().contains("No jobs yet."));
    for (kind, name) in [("a", "one"), ("a", "one"), ("b", "two")] {
        queue.run(&["enqueue", kind, "--queue", name]).ok();
    }
    queue.run(&["enqueue", "a", "--queue", "two", "--delay", "1h"]).ok();
    let status = queue.run(&["status"]).ok();
    let row = |name: &str| -> Vec<String> {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {status}"));
        line[name.len()..].split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("one"), ["0", "0", "2", "0", "0", "0", "0", "0"]);
    assert_eq!(row("two"), ["0", "1", "1", "0", "0", "0", "0", "0"]);
    assert_eq!(row("all queues"), ["0", "1", "3", "0", "0", "0", "0", "0"]);
    assert!(status.contains("No worker is alive."), "{status}");
    assert_eq!(queue.json(&["status"])["queues"][1]["scheduled"], 1);
}

#[test]
fn pages_follow_each_other_and_all_of_them_can_be_asked_for() {
    let queue = Queue::new("pages");
    for _ in 0..5 {
        queue.run(&["enqueue", "a"]).ok();
    }
    let first = queue.json(&["jobs", "--limit", "2"]);
    assert_eq!(first["jobs"].as_array().unwrap().len(), 2);
    let cursor = first["next"].as_str().unwrap().to_owned();
    assert!(queue.run(&["jobs", "--limit", "2"]).ok().contains(&format!("--after {cursor}")));
    let second = queue.json(&["jobs", "--limit", "2", "--after", &cursor]);
    assert_ne!(second["jobs"][0]["id"], first["jobs"][0]["id"]);
    assert_eq!(queue.json(&["jobs", "--limit", "2", "--all"])["jobs"].as_array().unwrap().len(), 5);
}

#[test]
fn a_key_makes_one_job() {
    let queue = Queue::new("key");
    let args = ["enqueue", "a", "{}", "--idempotency-key", "k", "--key-ttl", "1h"];
    let first = queue.run(&args).ok();
    let again = queue.run(&args);
    assert!(again.err.contains("already names this job"), "{}", again.err);
    assert_eq!(again.ok(), first);
    let said = queue.run(&["enqueue", "a", "[]", "--idempotency-key", "k"]).failed(1);
    assert!(said.starts_with("drayhorse: idempotency_conflict: "), "{said}");
}

#[test]
fn digits_survive() {
    let queue = Queue::new("digits");
    let payload = r#"{"e":123456789012345678901234567890,"id":1970670598291982290,"n":9007199254740993}"#;
    let id = queue.run_with(&["enqueue", "a", "-"], payload).ok();
    let shown = queue.run(&["job", id.trim(), "--payload", "--json"]).ok();
    for digits in ["123456789012345678901234567890", "1970670598291982290", "9007199254740993"] {
        assert!(shown.contains(digits), "{shown}");
    }
}

#[test]
fn what_cannot_be_stored_is_refused_before_it_is_sent() {
    let queue = Queue::new("refused");
    assert!(queue.run(&["enqueue", "a", r#"{"x":"\u0000"}"#]).failed(2).contains("payload_invalid"));
    assert!(queue.run(&["enqueue", "a", "{"]).failed(2).contains("not JSON"));
    assert!(queue.run(&["enqueue", "a", r#"1,"options":{}"#]).failed(2).contains("not JSON"));
    assert!(queue.run(&["enqueue", "a", "--max-attempts", "0"]).failed(2).contains("maxAttempts"));
    assert!(queue.run(&["enqueue", "a", "--retry-policy", r#"{"type":"fixed"}"#]).failed(2).contains("policy_invalid"));
    assert_eq!(queue.run(&["jobs"]).ok(), "No jobs.\n");
}

#[test]
fn workers_are_listed_while_they_live() {
    let queue = Queue::new("workers");
    assert_eq!(queue.run(&["workers"]).ok(), "No worker is alive.\n");
    let mut database = postgres::Client::connect(&queue.url, postgres::NoTls).unwrap();
    let info = json!({"name": "w\u{1b}[2J", "host": "h", "pid": 7, "language": "rust", "queues": ["default"],
        "handlers": [{"type": "a", "version": "3"}], "slots": 4});
    database.batch_execute(&format!("select \"{}\".worker_start('{info}'::jsonb)", queue.schema)).unwrap();
    let shown = queue.run(&["workers"]).ok();
    assert!(shown.contains("w\\x1b[2J") && shown.contains("a@3") && shown.contains("0/4"), "{shown:?}");
    assert!(queue.run(&["status"]).ok().contains("1 worker alive, 0 of 4 slots in use"));
}

#[test]
fn retention_removes_what_is_old_enough() {
    let queue = Queue::new("prune");
    let id = queue.run(&["enqueue", "a"]).ok();
    queue.run(&["cancel", id.trim()]).ok();
    assert_eq!(queue.run(&["prune"]).ok(), "0 jobs removed.\n");
    call(&queue.client(), "advanceClock", json!({"ms": 31_u64 * 86_400_000}));
    assert_eq!(queue.json(&["prune"]), json!({"jobs": 1}));
    queue.run(&["job", id.trim()]).failed(3);
}

#[test]
fn rights_are_given_and_taken() {
    let queue = Queue::new("rights");
    let role = format!("{}_role", queue.schema);
    let mut database = postgres::Client::connect(&queue.url, postgres::NoTls).unwrap();
    database.batch_execute(&format!("create role {role} login")).unwrap();
    let as_role = queue.url.replace("postgres@", &format!("{role}@"));
    let env = [("DRAYHORSE_URL", as_role.as_str()), ("DRAYHORSE_SCHEMA", queue.schema.as_str())];
    let attempt = || support::program(&["enqueue", "a"], &env, "");

    let refused = attempt();
    assert_eq!(refused.code, 6, "{}", refused.err);
    assert!(queue.run(&["grant", &role, "producer"]).ok().contains("is a producer"));
    attempt().ok();
    assert_eq!(support::program(&["cancel", "01890a5d-ac96-774b-bcce-b302099a8057"], &env, "").code, 6);
    queue.run(&["revoke", &role, "producer"]).ok();
    assert_eq!(attempt().code, 6);
    database.batch_execute(&format!("drop owned by {role}; drop role {role}")).unwrap();
}

#[test]
fn a_policy_is_previewed_as_sql_will_choose() {
    let queue = Queue::new("policy");
    let policy = r#"{"type":"decorrelated-jitter","baseDelayMs":1000,"maxDelayMs":60000}"#;
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let answer = queue.json(&["preview-policy", policy, "--job-id", id, "--attempts", "6"]);
    assert_eq!(answer["delaysMs"], json!([2075, 1144, 1356, 3428, 6033, 15453]));
    let shown = queue.run(&["preview-policy", policy, "--job-id", id, "--attempts", "6"]).ok();
    assert!(shown.contains("2.075 s") && shown.contains("15.453 s"), "{shown}");
    assert!(queue.run(&["preview-policy", r#"{"type":"fixed","delayMs":-1}"#]).failed(2).contains("policy_invalid"));
}
