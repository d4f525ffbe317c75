//! Endpoints and queues: seen in a table, looked at one by one, and acted on.

mod support;

use serde_json::json;
use support::Queue;

/// The cells of one row; cells hold single blanks, columns are at least two apart.
fn row(table: &str, name: &str) -> Vec<String> {
    let line = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {table}"));
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
}

/// The value of a fact.
fn fact(shown: &str, name: &str) -> String {
    let line = shown.lines().find_map(|line| line.strip_prefix(&format!("{name}  ")));
    line.unwrap_or_else(|| panic!("{name}: {shown}")).trim().to_owned()
}

#[test]
fn an_outage_in_one_table() {
    let queue = Queue::new("endpoints");
    assert_eq!(queue.run(&["endpoints"]).ok(), "No endpoints yet.\n");
    assert_eq!(queue.json(&["endpoints"]), json!([]));
    let configured = queue
        .run(&[
            "endpoint",
            "payments",
            "configure",
            "--failure-threshold",
            "1",
            "--rate",
            "100/60s",
            "--burst",
            "10",
            "--concurrency",
            "5",
            "--cooldown-ms",
            "3600000",
        ])
        .ok();
    assert_eq!(fact(&configured, "rate"), "100/1 min, 10 of 10 left");
    assert_eq!(fact(&configured, "concurrency"), "0/5");
    let long = "x".repeat(200);
    let failed = queue.failed_job(&["a", "--endpoint", "payments"], &long);
    queue.enqueued(&["a", "--endpoint", "payments"]);
    queue.enqueued(&["a", "--endpoint", "mail-api"]);

    let table = queue.run(&["endpoints"]).ok();
    let open = row(&table, "payments");
    assert_eq!(open[1], "open");
    assert!(open[2].ends_with('Z') && open[4].ends_with('Z'), "since and next probe: {open:?}");
    assert_eq!(open[3], "1/1");
    assert_eq!(open[5..11], ["-", "-", "100/1 min, 9 of 10 left", "0/5", "0", "1"]);
    assert!(open[11].starts_with("Boom: xxx") && open[11].ends_with('…') && open[11].chars().count() < 70, "{open:?}");
    assert_eq!(row(&table, "mail-api")[1..], ["closed", "-", "0/5", "-", "-", "-", "-", "-", "0", "1", "-"]);

    let shown = queue.run(&["endpoint", "payments"]).ok();
    assert_eq!(fact(&shown, "circuit"), "open");
    assert_eq!(fact(&shown, "  of job"), failed);
    assert_eq!(fact(&shown, "  cooldown"), "1 h");
    assert!(fact(&shown, "  last error").contains(&long), "{shown}");
    let opened = shown.lines().find(|line| line.contains("circuit_opened")).expect("the opening is told");
    for part in [&failed[..], "Boom: xxx", "cooldown 1 h", "probeAt "] {
        assert!(opened.contains(part), "{part}: {opened}");
    }
    let json = queue.json(&["endpoint", "payments"]);
    assert_eq!(json["circuit"]["state"], "open");
    assert_eq!(json["events"][1]["event"], "circuit_opened");
}

#[test]
fn a_probe_is_shown_while_it_is_out() {
    let queue = Queue::new("probe");
    queue.run(&["endpoint", "payments", "configure", "--failure-threshold", "1", "--cooldown-ms", "1"]).ok();
    queue.failed_job(&["a", "--endpoint", "payments"], "503");
    let probe = queue.enqueued(&["a", "--endpoint", "payments"]);
    assert_eq!(queue.claim("a").expect("the cooldown is over")["id"], probe.as_str());
    let cells = row(&queue.run(&["endpoints"]).ok(), "payments");
    assert_eq!((&cells[1][..], &cells[4][..], &cells[5]), ("half_open", "-", &probe));
    let shown = queue.run(&["endpoint", "payments"]).ok();
    assert_eq!(fact(&shown, "  probe job"), probe);
    assert!(fact(&shown, "  overdue at").ends_with('Z'));
}

#[test]
fn every_act_is_kept_with_who_and_why() {
    let queue = Queue::new("acts");
    let act = |act: &[&str]| queue.run(&[&["endpoint", "payments"], act].concat());
    let first = act(&["pause", "--actor", "ada", "--reason", "maintenance"]);
    assert!(first.err.contains("was never used before"), "a misspelled name is noticed: {}", first.err);
    assert!(fact(&first.ok(), "paused").starts_with("by ada since 20"));
    assert_eq!(row(&queue.run(&["endpoints"]).ok(), "payments")[6], "ada");
    let resumed = act(&["resume"]);
    assert_eq!(resumed.err, "");
    assert_eq!(fact(&resumed.ok(), "paused"), "no");
    assert_eq!(fact(&act(&["force-open"]).ok(), "circuit"), "open, forced");
    assert_eq!(fact(&act(&["force-close"]).ok(), "circuit"), "closed, forced");
    assert_eq!(fact(&act(&["reset"]).ok(), "circuit"), "closed");
    let policy = r#"{"type":"fixed","delayMs":5}"#;
    let set = act(&["configure", "--retry-policy", policy, "--probe-timeout-ms", "2000", "--concurrency", "2"]).ok();
    assert_eq!(fact(&set, "retry policy"), r#"{"delayMs":5,"type":"fixed"}"#);
    assert_eq!(fact(&set, "  probe timeout"), "2 s");
    let removed = act(&["configure", "--no-retry-policy", "--no-concurrency", "--no-rate"]).ok();
    for name in ["retry policy", "concurrency", "rate"] {
        assert_eq!(fact(&removed, name), "-");
    }
    assert_eq!(fact(&removed, "  probe timeout"), "2 s", "what is not named stays as it is");

    let shown = queue.run(&["endpoint", "payments"]).ok();
    let events: Vec<&str> = shown.lines().skip_while(|line| *line != "Events").skip(2).collect();
    let kinds: Vec<&str> = events.iter().filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(
        kinds,
        ["paused", "resumed", "circuit_forced", "circuit_forced", "circuit_reset", "configured", "configured"]
    );
    assert!(events[0].contains("by ada · maintenance"), "{shown}");
    assert!(events[1].contains("by cli:tester"), "the account at the terminal: {shown}");
    let last = queue.run(&["endpoint", "payments", "--events", "1"]).ok();
    assert!(last.contains("The last 1 events") && !last.contains("maintenance\n"), "{last}");
}

#[test]
fn queues_have_the_same_gates() {
    let queue = Queue::new("queues");
    assert_eq!(queue.run(&["queues"]).ok(), "No queues yet.\n");
    queue.enqueued(&["a", "--queue", "mail"]);
    let set = queue.run(&["queue", "mail", "configure", "--rate", "2/1s", "--concurrency", "3"]);
    assert_eq!(set.err, "");
    let set = set.ok();
    assert_eq!(fact(&set, "rate"), "2/1 s, 2 of 2 left");
    assert!(!set.contains("circuit"), "{set}");
    queue.run(&["queue", "mail", "pause", "--actor", "ada"]).ok();
    assert_eq!(row(&queue.run(&["queues"]).ok(), "mail")[1..], ["ada", "2/1 s, 2 of 2 left", "0/3", "0", "1"]);
    assert_eq!(queue.json(&["queues"])[0]["name"], "mail");
    assert_eq!(queue.claim("a"), None);
    queue.run(&["queue", "mail", "resume"]).ok();
    assert!(queue.claim("a").is_some());
    let shown = queue.run(&["queue", "mail"]).ok();
    assert_eq!(fact(&shown, "running"), "1");
    assert!(shown.contains("resumed"), "{shown}");
}

#[test]
fn refusals_name_what_is_wrong() {
    let queue = Queue::new("gates_refused");
    assert!(queue.run(&["endpoint", "nobody"]).failed(3).contains("endpoint nobody was never used"));
    assert!(queue.run(&["queue", "nobody"]).failed(3).contains("queue nobody was never used"));
    let cases: [&[&str]; 8] = [
        &["configure"],
        &["configure", "--burst", "2"],
        &["configure", "--rate", "100"],
        &["configure", "--rate", "2/1s", "--no-rate"],
        &["configure", "--rate", "2/1s", "--burst", "3"],
        &["configure", "--concurrency", "0"],
        &["configure", "--retry-policy", r#"{"type":"fixed"}"#],
        &["explode"],
    ];
    for case in cases {
        queue.run(&[&["endpoint", "payments"], case].concat()).failed(2);
    }
    queue.run(&["queue", "mail", "configure", "--cooldown-ms", "5"]).failed(2);
    queue.run(&["queue", "mail", "reset"]).failed(2);
    assert_eq!(queue.json(&["endpoints"]), json!([]), "a refused act makes no endpoint");
}

#[test]
fn a_name_may_be_anything() {
    let queue = Queue::new("gate_names");
    queue.run(&["endpoint", "--name", "pause", "pause"]).ok();
    assert_eq!(fact(&queue.run(&["endpoint", "--name", "pause"]).ok(), "endpoint"), "pause");
    let name = "a\u{1b}[2J";
    let said = queue.run(&["endpoint", name, "pause", "--reason", "\u{9b}2J"]);
    assert!(!said.err.contains('\u{1b}'), "{:?}", said.err);
    for view in [said.ok(), queue.run(&["endpoints"]).ok(), queue.run(&["endpoint", name]).ok()] {
        assert!(view.contains("a\\x1b[2J") && !view.contains('\u{1b}') && !view.contains('\u{9b}'), "{view:?}");
    }
}
