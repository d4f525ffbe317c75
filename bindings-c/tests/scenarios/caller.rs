//! The C program that makes the calls, and the pipes to it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::support::{C99, Schema, built, compile, url};

/// Compiles the program, with the sanitizers: what an answer leaks or overruns is a failure too.
pub fn program() -> PathBuf {
    let sanitized: Vec<&str> = C99.iter().copied().chain(["-fsanitize=address,undefined"]).collect();
    compile(&sanitized, "tests/calls.c", &built().join("libdrayhorse.a"), "calls")
}

/// A call's answer, or the error that C got.
pub type Answer = Result<Value, Refusal>;

/// An error as C sees it.
pub struct Refusal {
    /// The code in the error's JSON.
    pub code: String,
    /// The whole error.
    pub error: Value,
}

/// One running program with a client of its own.
pub struct Caller {
    child: Child,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Caller {
    /// Starts the program and connects it to a schema.
    pub fn start(program: &Path, schema: &Schema) -> Result<Caller, String> {
        let mut child = Command::new(program)
            .args([url(), schema.options()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let calls = child.stdin.take().ok_or("no pipe to the program")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe from the program")?);
        let mut caller = Caller { child, calls, answers };
        let (status, text) = caller.line()?;
        if status == 0 { Ok(caller) } else { Err(format!("connect: {text}")) }
    }

    /// Makes one call.
    pub fn call(&mut self, verb: &str, args: &Value) -> Result<Answer, String> {
        // JSON text holds no line feed and no tab outside of its spelling, so both can stand between calls.
        writeln!(self.calls, "{verb}\t{args}").map_err(|e| format!("the program reads no more: {e}"))?;
        let (status, text) = self.line()?;
        let value: Value = serde_json::from_str(&text).map_err(|e| format!("{verb} answered no JSON: {e}: {text}"))?;
        if status == 0 {
            return Ok(Ok(value));
        }
        if value["number"] != status {
            return Err(format!("{verb}: the status is {status}, the error {text}"));
        }
        let code = value["code"].as_str().unwrap_or_default().to_owned();
        Ok(Err(Refusal { code, error: value }))
    }

    /// Ends the program, which fails if a sanitizer found something.
    pub fn end(self) -> Result<(), String> {
        let Caller { mut child, calls, answers: _answers } = self;
        drop(calls);
        let status = child.wait().map_err(|e| e.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the program ended with {status}")) }
    }

    fn line(&mut self) -> Result<(i32, String), String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|e| format!("the program's answer: {e}"))?;
        let (status, text) = line.trim_end_matches('\n').split_once('\t').ok_or("the program ended early")?;
        Ok((status.parse().map_err(|e| format!("the status {status}: {e}"))?, text.to_owned()))
    }
}
