//! What tests with C programs share: where things are built, the compiler, a schema of the test's own.

use std::path::{Path, PathBuf};
use std::process::{self, Command, Output};
use std::{env, fs};

/// The compiler for C as the header promises to need it.
pub const C99: &[&str] = &["gcc", "-x", "c", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-pedantic"];

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `target/debug` or `target/release`: the test's own program lies in its `deps`.
pub fn built() -> PathBuf {
    let program = env::current_exe().expect("a test has a path");
    program.ancestors().nth(2).expect("target/PROFILE/deps").to_owned()
}

pub fn url() -> String {
    env::var("DRAYHORSE_TEST_URL").expect("set DRAYHORSE_TEST_URL to a PostgreSQL whose schemas a test may create")
}

pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

/// A schema of the test's own, dropped at its end.
pub struct Schema {
    name: String,
    url: String,
}

impl Schema {
    pub fn new(name: &str) -> Schema {
        Schema { name: format!("c_{name}_{}", process::id()), url: url() }
    }

    pub fn options(&self) -> String {
        format!(r#"{{"schema":"{}","language":"c","poolSize":2}}"#, self.name)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("set client_min_messages = error; drop schema if exists {} cascade", self.name);
        run(Command::new("psql").args([&self.url, "-qc", &drop]));
    }
}

/// Compiles `source` as C or C++ and links it with `archive`. The program is put in place when it is complete: another
/// run of the same tests may be executing the one that is there.
pub fn compile(compiler: &[&str], source: &str, archive: &Path, name: &str) -> PathBuf {
    let program = built().join(format!("c-test-{name}"));
    let fresh = program.with_extension(process::id().to_string());
    run(Command::new(compiler[0])
        .args(&compiler[1..])
        .args(["-Wall", "-Wextra", "-Werror", "-g", "-I"])
        .arg(root().join("include"))
        .arg(root().join(source))
        .args(["-x", "none"])
        .arg(archive)
        .args(["-lpthread", "-lm", "-ldl", "-o"])
        .arg(&fresh));
    fs::rename(&fresh, &program).expect("target is writable");
    program
}
