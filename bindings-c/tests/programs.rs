//! C and C++ programs against the header and the archives: compiled with every warning an error, linked with what
//! cargo built and with what `package.sh` makes of it, and run against `DRAYHORSE_TEST_URL`.

mod support;

use std::env;
use std::path::PathBuf;
use std::process::Command;

use support::{C99, Schema, built, compile, root, run, url};

/// What `package.sh` makes of the archive that cargo built.
fn packaged(name: &str) -> PathBuf {
    let prefix = built().join(format!("c-package-{name}"));
    run(Command::new(root().join("package.sh")).arg(built().join("libdrayhorse.a")).arg(&prefix));
    prefix
}

const CPP: &[&str] = &["g++", "-x", "c++", "-std=c++11"];

#[test]
fn the_example_runs_as_c_and_as_cpp() {
    for (language, compiler) in [("c", C99), ("cpp", CPP)] {
        let schema = Schema::new(language);
        let program = compile(compiler, "examples/first_job.c", &built().join("libdrayhorse.a"), language);
        let output = run(Command::new(program).args([url(), schema.options()]));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("succeeded: {"), "{text}");
    }
}

#[test]
fn the_rules_of_the_abi_hold() {
    let schema = Schema::new("protocol");
    let sanitized: Vec<&str> = C99.iter().copied().chain(["-fsanitize=address,undefined"]).collect();
    let program = compile(&sanitized, "tests/protocol.c", &built().join("libdrayhorse.a"), "protocol");
    run(Command::new(program).args([url(), schema.options()]));
}

#[test]
fn the_package_shows_only_its_own_symbols_and_runs() {
    let prefix = packaged("symbols");
    let schema = Schema::new("package");
    let archive = prefix.join("lib/libdrayhorse.a");
    let symbols = run(Command::new("nm").args(["-g", "--defined-only"]).arg(&archive));
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let names: Vec<&str> = symbols.lines().filter_map(|l| l.split_whitespace().nth(2)).collect();
    assert_eq!(names.len(), 20, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("dh_")), "{names:?}");

    let flags = run(Command::new("pkg-config").env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).args([
        "--cflags",
        "--libs",
        "drayhorse",
    ]));
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let program = built().join("c-test-package");
    run(Command::new("gcc")
        .arg(root().join("tests/protocol.c"))
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&program));
    run(Command::new(program).args([url(), schema.options()]));
}

#[test]
fn the_shared_library_shows_only_its_own_symbols() {
    let library = built().join("libdrayhorse.so");
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let names: Vec<&str> = symbols.lines().filter_map(|l| l.split_whitespace().nth(2)).collect();
    assert_eq!(names.len(), 20, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("dh_")), "{names:?}");
}

/// Another Rust archive in the same program: the standard library is in both and may not clash.
#[test]
fn two_rust_libraries_link_into_one_program() {
    let prefix = packaged("twice");
    let (source, second) = (built().join("c-second.rs"), built().join("libc_second.a"));
    let text = r#"
        #[unsafe(no_mangle)]
        pub extern "C" fn second(n: usize) -> usize { vec![1u8; n].iter().map(|b| format!("{b}").len()).sum() }
    "#;
    std::fs::write(&source, text).expect("target is writable");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    run(Command::new(rustc).args(["--edition", "2024", "--crate-type", "staticlib", "-o"]).arg(&second).arg(&source));
    let (main, program) = (built().join("c-second.c"), built().join("c-test-second"));
    let text = "#include <drayhorse.h>\nsize_t second(size_t);\n\
        int main(void) { return dh_error_table(NULL) == 0 && second(3) == 3 ? 0 : 1; }\n";
    std::fs::write(&main, text).expect("target is writable");
    // Whole archives, so that each symbol that would clash does.
    run(Command::new("gcc")
        .arg("-I")
        .arg(prefix.join("include"))
        .arg(&main)
        .arg("-Wl,--whole-archive")
        .arg(prefix.join("lib/libdrayhorse.a"))
        .arg(&second)
        .args(["-Wl,--no-whole-archive", "-lpthread", "-lm", "-ldl", "-o"])
        .arg(&program));
    run(&mut Command::new(program));
}
