//! What may be typed, what is refused before a database is needed, and that no password is shown on the way.

mod support;

use support::program;

#[test]
fn help_documents_the_exit_codes_and_hides_the_url() {
    let help = program(&["--help"], &[("DRAYHORSE_URL", "postgresql://u:S3cr3t!@h/db")], "").ok();
    for line in ["Exit codes:", "not confirmed", "DRAYHORSE_URL", "7d"] {
        assert!(help.contains(line), "{help}");
    }
    assert!(!help.contains("S3cr3t"), "{help}");
}

#[test]
fn every_command_has_help() {
    let help = program(&["--help"], &[], "").ok();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> =
        listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        assert!(program(&[command, "--help"], &[], "").ok().contains("Usage:"));
    }
    assert!(program(&["--version"], &[], "").ok().starts_with("drayhorse "));
}

#[test]
fn a_url_where_a_command_belongs_does_not_show_its_password() {
    for typed in ["postgresql://u:S3cr3t!@h/db", "postgresql://u:S3cr3t%21@h/db"] {
        let said = program(&[typed, "status"], &[], "").failed(2);
        assert!(!said.contains("S3cr3t"), "{said}");
        assert!(said.contains("***@h/db"), "{said}");
    }
}

#[test]
fn wrong_usage_is_2() {
    let cases: [&[&str]; 16] = [
        &[],
        &["explode"],
        &["jobs", "--state", "waiting"],
        &["jobs", "--limit", "0"],
        &["jobs", "--payload"],
        &["enqueue", "a", "{}", "--delay", "10"],
        &["redrive", "--reason", "x"],
        &["grant", "somebody", "god"],
        &["cancel"],
        &["redrive", "x", "--queue", "q", "--reason", "x"],
        &["replay", "--queue", "q", "--reason", "x"],
        &["endpoint"],
        &["endpoint", "x", "configure"],
        &["run"],
        &["contracts", "publish"],
        &["enqueue", "a", "--after", "x"],
    ];
    for args in cases {
        let ended = program(args, &[], "");
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.err);
        assert_eq!(ended.out, "", "{args:?}");
    }
}

#[test]
fn control_characters_in_arguments_are_not_sent_to_the_terminal() {
    let said = program(&["a\x1b[2Jb"], &[], "").failed(2);
    assert!(!said.contains('\x1b'), "{said:?}");
}

#[test]
fn the_table_of_errors_needs_no_database() {
    let nobody = [("DRAYHORSE_URL", "postgresql://127.0.0.1:1/db")];
    let table = program(&["errors"], &nobody, "").ok();
    assert!(table.lines().any(|line| line.starts_with("YD013") && line.contains("statement_timeout")), "{table}");
    let listed = program(&["errors", "--json"], &nobody, "").json();
    assert_eq!(listed[0]["code"], "invalid_argument");
    assert_eq!(listed.as_array().unwrap().len() + 1, table.lines().count());
}
