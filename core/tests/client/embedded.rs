//! `embedded:PATH` through the client: the server lives as long as somebody uses it, and a dead one is started again.

use crate::support::{call, eventually};
use drayhorse_core::bridge::Client;
use drayhorse_core::embedded;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

fn server_pid(path: &Path) -> Option<i32> {
    let text = std::fs::read_to_string(path.join("data/postmaster.pid")).ok()?;
    text.lines().next()?.trim().parse().ok()
}

#[test]
fn a_private_server_for_as_long_as_it_is_used() {
    let path = std::env::temp_dir().join(format!("drayhorse client {}", std::process::id()));
    let url = format!("embedded:{}", path.display());
    let client = Client::connect(&url, r#"{"poolSize":2}"#).unwrap();
    call(&client, "migrate", json!({}));
    call(&client, "enqueue", json!({"type": "t", "payload": 1}));
    let second = Client::connect(&url, "{}").unwrap();
    call(&second, "enqueue", json!({"type": "t", "payload": 2}));
    client.close();
    assert_eq!(call(&second, "counts", json!({}))["ready"], 2);
    // The server is killed under the client: a call that finds it dead starts it again.
    let killed = server_pid(&path).expect("it runs");
    assert_eq!(unsafe { libc::kill(killed, libc::SIGKILL) }, 0);
    call(&second, "enqueue", json!({"type": "t", "payload": 3}));
    // The session that was open may live a moment longer than its server.
    eventually("it is another server", Duration::from_secs(20), || {
        assert_eq!(call(&second, "counts", json!({}))["ready"], 3);
        server_pid(&path) != Some(killed)
    });
    second.close();
    eventually("the server has stopped", Duration::from_secs(20), || server_pid(&path).is_none());
    // What it kept is there again.
    let third = Client::connect(&url, "{}").unwrap();
    assert_eq!(call(&third, "counts", json!({}))["ready"], 3);
    drop(third);
    eventually("the server has stopped", Duration::from_secs(20), || server_pid(&path).is_none());
    let data = std::fs::canonicalize(path.join("data")).unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    // Run by root, the cluster is elsewhere.
    std::fs::remove_dir_all(data.parent().filter(|_| data.exists()).unwrap_or(&data)).ok();
    assert_eq!(Client::connect("embedded:", "{}").unwrap_err().code(), "invalid_argument");
    let nothing = embedded::open(Path::new("/proc/none"), &embedded::Options::default());
    assert_eq!(nothing.err().map(|error| error.code()), Some("embedded_failed"));
}
