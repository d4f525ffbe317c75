//! The program run as a person would, each test in a schema of its own.
#![allow(dead_code, reason = "every test file uses another part")]

use drayhorse_core::bridge::Client;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// How the program ended and what it wrote.
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// Standard output, after checking that all went well.
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    /// Standard output as JSON.
    pub fn json(self) -> Value {
        let text = self.ok();
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// Standard error, after checking the exit code.
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self.err
    }
}

/// Runs the program with nothing of the caller's environment that would change its answer.
pub fn program(args: &[&str], env: &[(&str, &str)], input: &str) -> Ended {
    let mut command = command(args);
    command.envs(env.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    child.stdin.take().expect("its input is a pipe").write_all(input.as_bytes()).expect("it reads its input");
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
    Ended { code: output.status.code().expect("it was not killed"), out: text(output.stdout), err: text(output.stderr) }
}

/// The program, not started.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drayhorse"));
    command.args(args).env_remove("DRAYHORSE_URL").env_remove("DRAYHORSE_SCHEMA").env("USER", "tester");
    command
}

/// A variable the harness sets.
pub fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `make test-rust` or `make servers`"))
}

/// A schema of the test's own, dropped at its end.
pub struct Queue {
    pub url: String,
    pub schema: String,
}

impl Queue {
    /// A schema that has not been migrated.
    pub fn unmigrated(name: &str) -> Queue {
        Queue { url: setting("DRAYHORSE_TEST_URL"), schema: format!("cli_{name}_{}", std::process::id()) }
    }

    /// A migrated schema.
    pub fn new(name: &str) -> Queue {
        let queue = Queue::unmigrated(name);
        queue.run(&["migrate"]).ok();
        queue
    }

    /// The program on this schema.
    pub fn run(&self, args: &[&str]) -> Ended {
        self.run_with(args, "")
    }

    /// The same with something on its standard input.
    pub fn run_with(&self, args: &[&str], input: &str) -> Ended {
        program(args, &[("DRAYHORSE_URL", &self.url), ("DRAYHORSE_SCHEMA", &self.schema)], input)
    }

    /// The program's JSON answer.
    pub fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).json()
    }

    /// The core itself, for what the program does not do: claim and report.
    pub fn client(&self) -> Client {
        Client::connect(&self.url, &json!({"schema": self.schema}).to_string()).expect("the core connects")
    }

    /// A job enqueued by the program; its id.
    pub fn enqueued(&self, args: &[&str]) -> String {
        self.run(&[&["enqueue"], args].concat()).ok().trim().to_owned()
    }

    /// One job of this type under a lease, if one is admitted: what a worker's loop gets.
    pub fn claim(&self, kind: &str) -> Option<Value> {
        let handlers = json!([{"type": kind, "version": "1"}]);
        let client = self.client();
        let mut claims = call(
            &client,
            "claim",
            json!({"queues": self.queues(), "handlers": handlers, "limit": 1, "leaseMs": 60_000}),
        );
        client.close();
        claims.as_array_mut().and_then(Vec::pop).map(|claim| json!({"id": claim["id"], "fence": claim["fence"]}))
    }

    /// Every queue in use.
    fn queues(&self) -> Value {
        let queues = self.json(&["queues"]);
        queues.as_array().expect("an array").iter().map(|queue| queue["name"].clone()).collect()
    }

    /// Reports that the attempt failed.
    pub fn fail(&self, claim: &Value, message: &str) {
        let error = json!({"name": "Boom", "message": message, "stack": format!("at {message}\nat main")});
        let client = self.client();
        call(&client, "fail", json!({"claim": claim, "error": error}));
        client.close();
    }

    /// A job that has failed for good.
    pub fn failed_job(&self, args: &[&str], message: &str) -> String {
        let id = self.enqueued(&[args, &["--max-attempts", "1"]].concat());
        let claim = self.claim(args[0]).expect("the job is admitted");
        assert_eq!(claim["id"], id.as_str());
        self.fail(&claim, message);
        id
    }

    /// A worker process that is alive and handles these types in these queues.
    pub fn register_worker(&self, name: &str, queues: &[&str], types: &[&str]) {
        let handlers: Vec<Value> = types.iter().map(|kind| json!({"type": kind, "version": "1"})).collect();
        let info = json!({"name": name, "host": "h", "pid": 7, "language": "rust", "queues": queues,
            "handlers": handlers, "slots": 4});
        self.sql(&format!("select worker_start('{info}'::jsonb)"));
    }

    /// Statements in this schema, as its owner.
    pub fn sql(&self, statements: &str) {
        let mut database = postgres::Client::connect(&self.url, postgres::NoTls).expect("the test database is there");
        let quoted = self.schema.replace('"', "\"\"");
        database.batch_execute(&format!("set search_path = \"{quoted}\"; {statements}")).expect("the statements run");
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut database = postgres::Client::connect(&self.url, postgres::NoTls).expect("the test database is there");
        let quoted = self.schema.replace('"', "\"\"");
        database
            .batch_execute(&format!("set client_min_messages = error; drop schema if exists \"{quoted}\" cascade"))
            .expect("the schema can be dropped");
    }
}

/// One control call of the core.
pub fn call(client: &Client, verb: &str, args: Value) -> Value {
    let answer = client.call(verb, &args.to_string()).unwrap_or_else(|e| panic!("{verb} {args}: {e}"));
    serde_json::from_str(&answer).expect("the core answers in JSON")
}
