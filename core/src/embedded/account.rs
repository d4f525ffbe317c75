//! The operating-system user the server runs as, and the one way programs are run for it. PostgreSQL refuses to run
//! as root, so root lends it another user; everybody else runs it as themselves.

use super::failed;
use crate::error::Result;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::lchown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `"$@"` and ends its output with a line that holds the status. The status of the shell itself may be lost: a
/// host that ignores SIGCHLD or reaps every child takes it away.
const REPORT_STATUS: &str = r#""$@" 2>&1; printf '\nended %s\n' "$?""#;

/// More output than this is cut; programs run here say a few lines.
const OUTPUT_LIMIT_BYTES: usize = 256 * 1024;

/// Who the server runs as.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub uid: u32,
    gid: u32,
    pub name: String,
    /// This process is root and becomes the account in every program it runs for it.
    pub switched: bool,
}

/// What a program said and how it ended.
pub(super) struct Ended {
    pub status: i32,
    pub output: String,
}

impl Account {
    /// This process's own user.
    pub fn current() -> Account {
        let uid = rustix::process::geteuid().as_raw();
        Account { uid, gid: rustix::process::getegid().as_raw(), name: name_of(uid), switched: false }
    }

    /// Who runs a cluster that does not exist yet.
    pub fn for_new_cluster() -> Result<Account> {
        let current = Account::current();
        if current.uid != 0 {
            return Ok(current);
        }
        let users = users();
        let lent = ["postgres", "nobody"].iter().find_map(|name| users.iter().find(|u| u.name == *name && u.uid != 0));
        match lent {
            Some(user) => Ok(Account { uid: user.uid, gid: user.gid, name: user.name.clone(), switched: true }),
            None => Err(failed(
                "PostgreSQL does not run as root, and /etc/passwd has neither the user postgres nor nobody to run it as: \
                 add one of them, or run this program as an ordinary user",
            )),
        }
    }

    /// Who runs the cluster in `data`, which belongs to `uid` and `gid`.
    pub fn for_owner(data: &Path, uid: u32, gid: u32) -> Result<Account> {
        let current = Account::current();
        if uid == 0 {
            return Err(failed(format!(
                "{} belongs to root, and PostgreSQL does not run as root: give the folder to another user (chown -R)",
                data.display()
            )));
        }
        if current.uid != uid && current.uid != 0 {
            return Err(failed(format!(
                "{} belongs to the user {}, not to {}: open it as that user or as root, or choose another folder",
                data.display(),
                name_of(uid),
                current.name
            )));
        }
        Ok(Account { uid, gid, name: name_of(uid), switched: current.uid != uid })
    }

    /// Gives `path` to the account.
    pub fn own(&self, path: &Path) -> io::Result<()> {
        if self.switched { lchown(path, Some(self.uid), Some(self.gid)) } else { Ok(()) }
    }

    /// Runs a program to its end. `held` becomes its standard input: a descriptor it shall keep open while it lives.
    pub fn run<S: AsRef<OsStr>>(&self, program: &[S], held: Option<File>) -> Result<Ended> {
        self.shell(REPORT_STATUS, "drayhorse", program, held)
    }

    /// Runs a script that ends its answer with the line `ended <status>`, and returns when it has said so; what the
    /// script left in the background may live on.
    pub fn shell<S: AsRef<OsStr>>(&self, script: &str, name: &str, args: &[S], held: Option<File>) -> Result<Ended> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).arg(name).args(args);
        // The host's environment can change what PostgreSQL does (PGPORT, PGOPTIONS, LC_ALL); only what finds
        // programs and libraries is passed on. The host's folder may be closed to the account.
        command.env_clear().env("LC_ALL", "C").current_dir("/");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()));
        if let Some(libraries) = std::env::var_os("LD_LIBRARY_PATH") {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        if self.switched {
            // As root the standard library drops the supplementary groups with this.
            command.gid(self.gid).uid(self.uid);
        }
        command.stdin(held.map_or_else(Stdio::null, Stdio::from)).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| {
            failed(match self.switched {
                true => {
                    format!("cannot run a program as the user {}: {e}; run this program as an ordinary user", self.name)
                }
                false => format!("cannot run /bin/sh: {e}"),
            })
        })?;
        let output = child.stdout.take().map(read_answer).unwrap_or_default();
        // Only to leave no zombie: the status is in the output, and the host may have reaped the child already.
        let _ = child.wait();
        parse_answer(&output).ok_or_else(|| failed("a helper program was killed; try again"))
    }
}

/// Reads up to the last line of an answer instead of to the end of the pipe, which a process forked meanwhile by the
/// host may keep open.
fn read_answer(mut pipe: impl Read) -> Vec<u8> {
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    while parse_answer(&answer).is_none() {
        match pipe.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => answer.extend_from_slice(&chunk[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
        if answer.len() > OUTPUT_LIMIT_BYTES {
            answer.drain(..answer.len() - OUTPUT_LIMIT_BYTES / 2);
        }
    }
    answer
}

fn parse_answer(answer: &[u8]) -> Option<Ended> {
    let text = String::from_utf8_lossy(answer);
    let (output, last) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let status = last.strip_prefix("ended ")?.parse().ok()?;
    Some(Ended { status, output: output.trim().to_owned() })
}

struct User {
    name: String,
    uid: u32,
    gid: u32,
}

fn users() -> Vec<User> {
    parse_users(&std::fs::read_to_string("/etc/passwd").unwrap_or_default())
}

fn parse_users(passwd: &str) -> Vec<User> {
    let user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let uid = fields.nth(1)?.parse().ok()?;
        Some(User { name, uid, gid: fields.next()?.parse().ok()? })
    };
    passwd.lines().filter_map(user).collect()
}

fn name_of(uid: u32) -> String {
    users().into_iter().find(|u| u.uid == uid).map_or_else(|| uid.to_string(), |u| u.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_report_their_output_and_status() {
        let account = Account::current();
        let said = account.run(&["sh", "-c", "echo out; echo err >&2; exit 3"], None).unwrap();
        assert_eq!((said.status, said.output.as_str()), (3, "out\nerr"));
        assert_eq!(account.run(&["/no/such/program"], None).unwrap().status, 127);
        assert_eq!(account.run(&["printf", "no newline"], None).unwrap().output, "no newline");
    }

    #[test]
    fn the_hosts_postgresql_variables_do_not_reach_programs() {
        let said = Account::current().run(&["env"], None).unwrap();
        assert!(said.output.contains("LC_ALL=C"));
        assert!(!said.output.contains("CARGO"), "{}", said.output);
    }

    #[test]
    fn an_answer_is_complete_only_with_its_last_line() {
        assert!(parse_answer(b"ended 0").is_none());
        assert!(parse_answer(b"x\nended ").is_none());
        let ended = parse_answer(b"x\ny\n\nended 75\n").unwrap();
        assert_eq!((ended.status, ended.output.as_str()), (75, "x\ny"));
    }

    #[test]
    fn users_come_from_passwd_lines() {
        let users = parse_users("root:x:0:0::/root:/bin/sh\nbroken\npostgres:x:101:104::/:/bin/sh\n");
        assert_eq!(users.len(), 2);
        assert_eq!((users[1].name.as_str(), users[1].uid, users[1].gid), ("postgres", 101, 104));
    }
}
