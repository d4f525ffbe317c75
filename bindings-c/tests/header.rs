//! The committed header is what cbindgen makes of the sources: `DRAYHORSE_WRITE_HEADER=1 cargo test -p drayhorse-c`
//! writes it anew.

use std::path::Path;
use std::{env, fs};

#[test]
fn the_committed_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml is readable");
    // From its root file, not as a crate: that would run `cargo metadata`, which may ask the registry.
    let bindings = cbindgen::Builder::new().with_config(config).with_src(root.join("src/lib.rs"));
    let mut wanted = Vec::new();
    bindings.generate().expect("the sources are readable").write(&mut wanted);
    let wanted = String::from_utf8(wanted).expect("a header is UTF-8");

    let path = root.join("include/drayhorse.h");
    if env::var_os("DRAYHORSE_WRITE_HEADER").is_some() {
        fs::write(&path, &wanted).expect("the header is writable");
    }
    let committed = fs::read_to_string(&path).expect("include/drayhorse.h is committed");
    assert!(committed == wanted, "include/drayhorse.h is stale: write it with DRAYHORSE_WRITE_HEADER=1");
}
