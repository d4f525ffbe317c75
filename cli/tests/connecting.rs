//! Databases that cannot be used, and what is said about them.

mod support;

use support::{Queue, program};

const SECRETS: [&str; 2] = ["S3cr3t!", "S3cr3t%21"];

fn without_secret(said: &str) {
    for secret in SECRETS {
        assert!(!said.contains(secret), "{said}");
    }
}

#[test]
fn nobody_listens() {
    for secret in SECRETS {
        let url = format!("postgresql://u:{secret}@127.0.0.1:1/db?connect_timeout=2");
        let said = program(&["status", "--connect-timeout", "2s"], &[("DRAYHORSE_URL", &url)], "").failed(4);
        assert!(said.starts_with("drayhorse: connection_lost: "), "{said}");
        without_secret(&said);
        let said = program(&["status", "--json", "--connect-timeout", "2s", "--url", &url], &[], "").failed(4);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&said).unwrap()["code"], "connection_lost");
        without_secret(&said);
    }
}

#[test]
fn a_malformed_url_is_not_echoed() {
    for url in [
        "postgresql://u:S3cr3t!@h:notaport/db",
        "mysql://u:S3cr3t!@h/db",
        "u:S3cr3t!@h",
        "postgresql://u:S3cr3t!@h/db?sslmode=maybe",
    ] {
        let ended = program(&["status"], &[("DRAYHORSE_URL", url)], "");
        assert_eq!(ended.code, 2, "{url}: {}", ended.err);
        without_secret(&ended.err);
    }
}

#[test]
fn a_schema_that_was_not_migrated_is_5_and_says_what_to_do() {
    let queue = Queue::unmigrated("missing");
    for args in [&["status"][..], &["jobs"], &["enqueue", "a"], &["workers"], &["migrate", "--check"]] {
        let said = queue.run(args).failed(5);
        assert!(said.starts_with("drayhorse: schema_missing: "), "{said}");
        assert!(said.contains("drayhorse migrate"), "{said}");
    }
}

#[test]
fn migrate_is_repeatable_and_says_so() {
    let queue = Queue::unmigrated("migrate");
    assert!(queue.run(&["migrate"]).ok().contains("applied"));
    assert!(queue.run(&["migrate"]).ok().contains("nothing to do"));
    assert!(queue.run(&["migrate", "--check"]).ok().contains("nothing to do"));
    assert_eq!(queue.json(&["migrate"])["applied"], serde_json::json!([]));
}

#[test]
fn a_schema_name_is_data() {
    let mut queue = Queue::unmigrated("quoted");
    queue.schema = format!("o'brien \"q\" {}", std::process::id());
    queue.run(&["migrate"]).ok();
    let id = queue.run(&["enqueue", "a"]).ok();
    assert!(queue.run(&["jobs"]).ok().contains(id.trim()));
}
