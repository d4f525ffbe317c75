//! What is written about the program is what it does: the reference names every command and option, and the first
//! screen of the README is the program's own output.

mod support;

use drayhorse_core::bridge::WorkerHandle;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use support::{Queue, program};

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the top").join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn help(command: &[&str]) -> String {
    program(&[command, &["--help"]].concat(), &[], "").ok()
}

/// The names under a heading of a help text.
fn listed(help: &str, heading: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).filter(|name| name != "help").collect()
}

/// The options of a help text, but for the ones every command has.
fn options(help: &str) -> Vec<String> {
    let own = help.split("Connection and output:").next().unwrap_or_default();
    let options = own.lines().map(str::trim).filter(|line| line.starts_with('-'));
    let names = options.filter_map(|line| line.split([' ', ',']).find(|word| word.starts_with("--")));
    names.filter(|name| *name != "--help").map(str::to_owned).collect()
}

#[test]
fn the_reference_names_every_command_and_option() {
    let reference = document("docs/cli.md");
    let commands = listed(&help(&[]), "Commands:");
    assert!(commands.len() > 15, "{commands:?}");
    for command in &commands {
        let heading = format!("### `drayhorse {command}`");
        let section = reference.split(&heading).nth(1).unwrap_or_else(|| panic!("docs/cli.md has no {heading}"));
        let section = section.split("\n### ").next().unwrap_or_default().split("\n## ").next().unwrap_or_default();
        let has = |word: &str| section.contains(&format!("`{word}")) || section.contains(&format!(" {word}"));
        let text = help(&[command]);
        let acts = [listed(&text, "Acts:"), listed(&text, "Commands:")].concat();
        let of_acts = acts.iter().map(|act| match command.as_str() {
            "endpoint" | "queue" => help(&[command, "--name", "x", act]),
            _ => help(&[command, act]),
        });
        let texts: Vec<String> = of_acts.chain([text.clone()]).collect();
        let words = texts.iter().flat_map(|text| options(text)).chain(acts.iter().cloned());
        let missing: Vec<String> = words.filter(|word| !has(word)).collect();
        assert!(missing.is_empty(), "docs/cli.md does not say of {command}: {missing:?}");
    }
    let documented: Vec<&str> = reference.lines().filter_map(|line| line.strip_prefix("### `drayhorse ")).collect();
    let known = |line: &&str| !commands.iter().any(|command| line.starts_with(&format!("{command}`")));
    assert_eq!(documented.into_iter().filter(known).collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn the_reference_names_every_exit_code() {
    let reference = document("docs/cli.md");
    let text = help(&[]);
    let codes = text.lines().skip_while(|line| *line != "Exit codes:").skip(1).take_while(|line| !line.is_empty());
    let numbers: Vec<&str> = codes.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(numbers.len() > 8, "{numbers:?}");
    for number in numbers {
        assert!(reference.contains(&format!("| {number} |")), "docs/cli.md does not say what {number} means");
    }
}

/// What differs from run to run, replaced: ids, times, durations.
fn without_chance(output: &str) -> String {
    let word = |word: &str| -> String {
        let is = |pattern: &str| {
            word.chars().count() == pattern.chars().count()
                && word.chars().zip(pattern.chars()).all(|(c, p)| match p {
                    'x' => c.is_ascii_hexdigit(),
                    '9' => c.is_ascii_digit(),
                    p => c == p,
                })
        };
        let shapes = ["xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "9999-99-99", "99:99:99.999Z", "xxxxxxxx…"];
        match shapes.iter().find(|shape| is(shape)) {
            Some(shape) => (*shape).to_owned(),
            None if word.contains('.') && word.parse::<f64>().is_ok() => "9.9".to_owned(),
            None => word.to_owned(),
        }
    };
    output.lines().map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn the_readme_shows_what_the_program_prints() {
    let queue = Queue::new("readme");
    let policy = r#"{"type":"fixed","delayMs":10000}"#;
    let id = queue.enqueued(&["provider.sync", r#"{"accountId":7}"#, "--max-attempts", "5", "--retry-policy", policy]);
    let client = queue.client();
    let options = json!({"name": "api-7", "handlers": [{"type": "provider.sync"}]});
    let worker = WorkerHandle::start(&client, &options.to_string(), Box::new(|| ())).expect("the worker starts");
    let events: Value = serde_json::from_str(&worker.take(1, 10_000)).expect("JSON");
    let failed =
        json!([{"handle": events[0]["handle"], "verb": "fail", "error": {"name": "ProviderError", "message": "503"}}]);
    worker.report(&failed.to_string()).expect("the report is taken");
    while queue.json(&["job", &id])["job"]["state"] != "scheduled" {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let printed = queue.run(&["job", &id]).ok();
    worker.close();
    client.close();

    let readme = document("README.md");
    let sample = readme.split("```\n$ drayhorse job ").nth(1).expect("the README shows `drayhorse job`");
    let sample = sample.split("```").next().unwrap_or_default();
    let (_, sample) = sample.split_once('\n').expect("output under the command");
    assert_eq!(without_chance(sample), without_chance(&printed), "README.md shows another output:\n{printed}");
}
