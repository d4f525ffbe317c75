//! `drayhorse contracts`: what is agreed about a type and version of job: its schemas, its endpoint, its defaults.

use crate::failure::Failure;
use crate::gate::or_dash;
use crate::session::{Session, default_actor};
use crate::{table, text, time};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use std::io::Read;

/// Publish, list or show contracts: schemas and defaults of a type and version.
#[derive(Args)]
pub struct Contracts {
    #[command(subcommand)]
    act: Act,
}

#[derive(Subcommand)]
enum Act {
    /// Publish the contracts of a file. A published one cannot change: another content needs a new version.
    Publish {
        /// A JSON object as `contracts.publish` takes it, or an array of them; `-` reads standard input.
        file: String,
        /// Who, where the file does not say it; the account at the terminal when absent.
        #[arg(long)]
        actor: Option<String>,
    },
    /// List what is published.
    List,
    /// Show one contract with its schemas.
    Get {
        /// The handler's name.
        #[arg(value_name = "TYPE")]
        job_type: String,
        /// The handler's version.
        #[arg(long = "handler-version", value_name = "VERSION", default_value = "1")]
        version: String,
    },
}

impl Contracts {
    pub fn run(self, session: &Session) -> Result<(), Failure> {
        match self.act {
            Act::Publish { file, actor } => publish(session, &file, actor),
            Act::List => list(session),
            Act::Get { job_type, version } => get(session, &job_type, &version),
        }
    }
}

/// One by one, each kept as soon as it is accepted: publishing the file again after a refusal does no harm.
fn publish(session: &Session, file: &str, actor: Option<String>) -> Result<(), Failure> {
    let actor = actor.unwrap_or_else(default_actor);
    let mut published = Vec::new();
    for mut contract in read(file)? {
        contract.entry("actor").or_insert_with(|| actor.clone().into());
        let answer = session.call("contracts.publish", &Value::from(contract))?;
        if !session.json {
            let how = if answer["replayed"] == true { "was published before" } else { "is published" };
            session.say(&format!("{} {how}, digest {}", name(&answer), text::value(&answer["digest"])))?;
        }
        published.push(answer);
    }
    if session.json { session.say_json(&Value::from(published)) } else { Ok(()) }
}

/// The objects of the file. Numbers keep their digits: a schema's bounds are the author's.
fn read(file: &str) -> Result<Vec<Map<String, Value>>, Failure> {
    let mut typed = String::new();
    if file == "-" {
        std::io::stdin().read_to_string(&mut typed)?;
    } else {
        typed =
            std::fs::read_to_string(file).map_err(|e| Failure::Usage(format!("cannot read the file {file}: {e}")))?;
    }
    let refused = |why: &str| Failure::Usage(format!("{file} holds no contract: {why}"));
    let document: Value = serde_json::from_str(&typed).map_err(|e| refused(&e.to_string()))?;
    let contracts = match document {
        Value::Array(contracts) => contracts,
        contract => vec![contract],
    };
    let objects = contracts.into_iter().map(|contract| match contract {
        Value::Object(contract) => Ok(contract),
        _ => Err(refused("a contract is a JSON object")),
    });
    let objects = objects.collect::<Result<Vec<_>, _>>()?;
    if objects.is_empty() { Err(refused("the list is empty")) } else { Ok(objects) }
}

fn list(session: &Session) -> Result<(), Failure> {
    let answer = session.call("contracts.list", &json!({}))?;
    if session.json {
        return session.say_json(&answer);
    }
    let contracts = answer["contracts"].as_array().map(Vec::as_slice).unwrap_or_default();
    if contracts.is_empty() {
        return session.say("No contracts yet.");
    }
    let heading = ["contract", "endpoint", "attempts", "timeout", "input", "output", "published", "by", "policy"];
    session.say(&table::render(&heading, &contracts.iter().map(row).collect::<Vec<_>>()))
}

fn row(contract: &Value) -> Vec<String> {
    let given = |key: &str| or_dash((!contract[key].is_null()).then(|| text::value(&contract[key])));
    let schema = |key: &str| or_dash((!contract[key].is_null()).then(|| "schema".to_owned()));
    vec![
        name(contract),
        given("endpoint"),
        given("maxAttempts"),
        or_dash(contract["timeoutMs"].as_i64().map(|ms| time::shown_ms(ms.into()))),
        schema("inputSchema"),
        schema("outputSchema"),
        time::shown(contract["publishedAt"].as_str().unwrap_or_default()),
        given("actor"),
        given("retryPolicy"),
    ]
}

fn get(session: &Session, job_type: &str, version: &str) -> Result<(), Failure> {
    let contract = session.call("contracts.get", &json!({"type": job_type, "version": version}))?;
    if contract.is_null() {
        return Err(Failure::NotFound(format!("there is no contract {job_type}@{version}")));
    }
    if session.json {
        return session.say_json(&contract);
    }
    let given = |name, key: &str| (!contract[key].is_null()).then(|| (name, text::value(&contract[key])));
    let mut rows = vec![("contract", name(&contract))];
    rows.extend(given("digest", "digest"));
    rows.extend(contract["publishedAt"].as_str().map(|at| ("published", time::shown(at))));
    rows.extend(given("by", "actor"));
    rows.extend(given("endpoint", "endpoint"));
    rows.extend(given("attempts", "maxAttempts"));
    rows.extend(contract["timeoutMs"].as_i64().map(|ms| ("timeout", time::shown_ms(ms.into()))));
    rows.extend(given("policy", "retryPolicy"));
    for (name, key) in [("input", "inputSchema"), ("output", "outputSchema")] {
        let schema = &contract[key];
        rows.push((name, if schema.is_null() { "any JSON value".to_owned() } else { text::json(schema, true) }));
    }
    session.say(&table::facts(&rows))
}

fn name(contract: &Value) -> String {
    format!("{}@{}", text::value(&contract["type"]), text::value(&contract["version"]))
}
