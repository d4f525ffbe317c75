//! Data of strangers on an operator's terminal: it is shown, and does nothing else.

mod support;

use support::Queue;

const CLEAR: &str = "\u{1b}[2J";
const CLIPBOARD: &str = "\u{1b}]52;c;AAAA\u{7}";

fn is_plain(text: &str) {
    let bad: Vec<char> = text.chars().filter(|c| c.is_control() && *c != '\n' || *c == '\u{202e}').collect();
    assert_eq!(bad, [], "{text:?}");
}

#[test]
fn names_and_errors_are_shown_as_text() {
    let queue = Queue::new("terminal");
    let kind = format!("a{CLEAR}");
    let tag = format!("t{CLIPBOARD}");
    let id = queue.failed_job(
        &[&kind, &format!(r#"{{"p":"{}"}}"#, "\u{9b}2J\u{202e}"), "--tag", &tag],
        &format!("no{CLEAR}\u{7f}"),
    );
    let views = [
        queue.run(&["jobs"]).ok(),
        queue.run(&["job", &id, "--payload", "--stack"]).ok(),
        queue.run(&["job", &id, "--payload", "--json"]).ok(),
        queue.run(&["jobs", "--json"]).ok(),
        queue.run(&["status"]).ok(),
        queue.run(&["jobs", "--type", &kind]).ok(),
    ];
    for view in &views {
        is_plain(view);
    }
    assert!(views[0].contains("a\\x1b[2J@1"), "{}", views[0]);
    assert!(views[1].contains("t\\x1b]52") || views[1].contains("t\\u001b]52"), "{}", views[1]);
    assert!(views[1].contains("Boom: no"), "{}", views[1]);
}

#[test]
fn refusals_are_shown_as_text() {
    let queue = Queue::new("terminal_refusal");
    for args in [
        &["job", CLEAR][..],
        &["cancel", CLIPBOARD],
        &["enqueue", "a", CLEAR],
        &["jobs", "--after", CLEAR],
        &["grant", CLEAR, "reader"],
    ] {
        let ended = queue.run(args);
        assert_ne!(ended.code, 0, "{args:?}");
        is_plain(&ended.err);
        is_plain(&ended.out);
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let queue = Queue::new("pipe");
    for _ in 0..3 {
        queue.run(&["enqueue", "a"]).ok();
    }
    let mut child =
        support::command(&["jobs", "--limit", "1", "--all", "--url", &queue.url, "--schema", &queue.schema])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.stderr, b"");
}
