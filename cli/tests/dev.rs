//! `drayhorse dev`: a private server for as long as the command runs.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use support::{command, program, setting};

#[test]
fn a_server_runs_until_ctrl_c() {
    let folder = std::env::temp_dir().join(format!("drayhorse-cli-dev-{}", std::process::id()));
    let url = format!("embedded:{}", folder.display());
    let binaries = setting("DRAYHORSE_TEST_PG18_BIN");
    let env = [("DRAYHORSE_URL", url.as_str()), ("DRAYHORSE_POSTGRES_BIN", binaries.as_str())];
    let mut child = command(&["dev"]).envs(env).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !said.contains("Ctrl-C") {
        said.push_str(&lines.next().unwrap_or_else(|| panic!("it ended early: {said}")).unwrap());
        said.push('\n');
    }
    assert!(said.contains(&url), "{said}");
    // Another program uses the same server meanwhile.
    let id = program(&["enqueue", "a"], &env, "").ok();
    assert!(program(&["jobs"], &env, "").ok().contains(id.trim()));

    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // What was enqueued is still there for the next one.
    assert!(program(&["jobs"], &env, "").ok().contains(id.trim()));
    // Where PostgreSQL cannot run as this user the cluster lies elsewhere, behind a link.
    if let Ok(data) = std::fs::read_link(folder.join("data")) {
        std::fs::remove_dir_all(data.parent().unwrap()).unwrap();
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn dev_is_not_for_other_databases() {
    let said = program(&["dev", "--url", "postgresql://u:S3cr3t!@127.0.0.1:1/db"], &[], "").failed(2);
    assert!(!said.contains("S3cr3t"), "{said}");
}
