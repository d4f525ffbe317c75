//! What a client knows of the published contracts. Payloads are checked here before they are sent, and every enqueue
//! says against which version of the set; SQL answers `contractStale` when that is an old one, and the client learns
//! and sends again. Version 0 is the empty set: then nothing is looked up, nothing is asked and nothing is parsed.
//!
//! A contract never changes, so one that was read is kept; that there is none for a type is only known for one version.

use super::verbs::ask;
use crate::contract::Contract;
use crate::enqueue::{Sent, Statement};
use crate::error::{Error, Kind, Result};
use crate::store::Link;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Types without a contract that are remembered.
const MOST_ABSENT: usize = 10_000;
/// How often one enqueue is sent: each time a publication came in between.
const SENDS: usize = 10;

/// A type and its version.
type Name = (String, String);
/// None: there is none.
type Entry = Option<Arc<Contract>>;

/// The cache of one client.
#[derive(Default)]
pub struct Contracts {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    version: i32,
    /// By type, then by version; none where there is no contract in this version of the set.
    types: HashMap<String, Vec<(String, Entry)>>,
    absent: usize,
}

/// The contracts of some statements, job by job, as of one version of the set.
pub struct Covering {
    version: i32,
    /// Empty when there are no contracts at all.
    jobs: Vec<Vec<Entry>>,
}

/// What a look into the cache found: the contracts job by job, and what is not known.
struct Found {
    version: i32,
    jobs: Vec<Vec<Entry>>,
    missing: HashSet<Name>,
}

/// What the function `enqueue` answered.
pub enum Answer {
    /// One element per job.
    Enqueued(String),
    /// Nothing was written: this is the version of the set now.
    Stale(i32),
}

impl Answer {
    /// Reads the answer's text.
    pub fn read(text: String) -> Result<Answer> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Stale {
            contract_stale: i32,
        }
        if !text.starts_with('{') {
            return Ok(Answer::Enqueued(text));
        }
        let stale: Stale = serde_json::from_str(&text)
            .map_err(|_| Error::new(Kind::Internal, "enqueue answered something that cannot be read"))?;
        Ok(Answer::Stale(stale.contract_stale))
    }
}

impl Covering {
    /// The version to be sent.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// Checks the payloads of the n-th statement.
    pub fn check(&self, n: usize, statement: &Statement) -> Result<()> {
        let Some(contracts) = self.jobs.get(n) else { return Ok(()) };
        for (job, (sent, contract)) in statement.jobs().zip(contracts).enumerate() {
            if let Some(contract) = contract {
                contract.check_payload(sent.payload, &format!("{}payload", statement.path(job)))?;
            }
        }
        Ok(())
    }
}

impl Contracts {
    /// Checks a statement and sends it, again after every publication that comes in between.
    pub fn send(&self, link: &mut Link, statement: &Statement, wanted: &dyn Fn() -> bool) -> Result<String> {
        for _ in 0..SENDS {
            let version = self.check(link, statement, wanted)?;
            match Answer::read(ask(link, "enqueue", &statement.validated(version), wanted)?)? {
                Answer::Enqueued(answers) => return Ok(answers),
                Answer::Stale(now) => self.stale(version, now),
            }
        }
        Err(too_many_publications())
    }

    /// Checks a statement; returns the version against which. A refusal is not left to memory: before it, the contracts
    /// are read again, since somebody may have dropped the schema and made it anew.
    pub fn check(&self, link: &mut Link, statement: &Statement, wanted: &dyn Fn() -> bool) -> Result<i32> {
        let covering = self.covering(link, &[statement], wanted)?;
        if covering.check(0, statement).is_ok() {
            return Ok(covering.version());
        }
        self.forget(statement);
        let covering = self.covering(link, &[statement], wanted)?;
        covering.check(0, statement)?;
        Ok(covering.version())
    }

    /// The contracts for all jobs of the statements; asks the database for those it does not know.
    pub fn covering(&self, link: &mut Link, statements: &[&Statement], wanted: &dyn Fn() -> bool) -> Result<Covering> {
        let mut asked = HashSet::new();
        let mut answered = None;
        for _ in 0..SENDS {
            let Found { version, jobs, missing } = self.look_up(statements, &asked);
            if missing.is_empty() {
                // Another thread may have gone on to a version that was not asked for.
                return Ok(Covering { version: answered.map_or(version, |then: i32| then.min(version)), jobs });
            }
            let (now, found) = list(link, &missing, wanted)?;
            if now > version {
                asked.clear();
            }
            if now < version {
                // Asked for after that version was known: the schema was made anew, or the version was heard of from a
                // transaction that has not committed.
                *self.lock() = Known { version: now, ..Known::default() };
            }
            self.absorb(now, &missing, found);
            asked.extend(missing);
            answered = Some(now);
        }
        Err(too_many_publications())
    }

    /// Another version was answered to an enqueue of ours that told `sent`.
    pub fn stale(&self, sent: i32, now: i32) {
        let mut known = self.lock();
        if now < sent {
            // The schema was dropped and made anew: nothing of the old one holds.
            *known = Known { version: now, ..Known::default() };
        } else {
            known.advance(now);
        }
    }

    /// Another version was answered to a statement in somebody's transaction, which may see an older set, or a
    /// publication of its own.
    pub fn heard(&self, version: i32) {
        self.lock().advance(version);
    }

    fn forget(&self, statement: &Statement) {
        let mut known = self.lock();
        for job in statement.jobs() {
            known.types.remove(&*job.kind);
        }
        known.absent = known.types.values().flatten().filter(|(_, entry)| entry.is_none()).count();
    }

    fn look_up(&self, statements: &[&Statement], asked: &HashSet<Name>) -> Found {
        let known = self.lock();
        let mut found = Found { version: known.version, jobs: Vec::new(), missing: HashSet::new() };
        if known.version == 0 {
            return found;
        }
        let mut find = |job: Sent<'_>| match known.find(&job.kind, &job.version) {
            Some(entry) => entry.clone(),
            None => {
                let name = (job.kind.into_owned(), job.version.into_owned());
                if !asked.contains(&name) {
                    found.missing.insert(name);
                }
                None
            }
        };
        found.jobs = statements.iter().map(|statement| statement.jobs().map(&mut find).collect()).collect();
        found
    }

    fn absorb(&self, version: i32, asked: &HashSet<Name>, found: Vec<Contract>) {
        let mut known = self.lock();
        known.advance(version);
        for contract in found {
            known.set(contract.kind().to_owned(), contract.version().to_owned(), Some(Arc::new(contract)));
        }
        // An answer that is older than what another thread has learned says nothing about what is absent now.
        if version == known.version {
            for (kind, its_version) in asked {
                if known.find(kind, its_version).is_none() {
                    known.set(kind.clone(), its_version.clone(), None);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Every change under the lock is complete at each step.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn find(&self, kind: &str, version: &str) -> Option<&Entry> {
        self.types.get(kind)?.iter().find(|(name, _)| name == version).map(|(_, entry)| entry)
    }

    fn set(&mut self, kind: String, version: String, entry: Entry) {
        if entry.is_none() {
            if self.absent >= MOST_ABSENT {
                self.forget_absent();
            }
            self.absent += 1;
        }
        let versions = self.types.entry(kind).or_default();
        versions.retain(|(name, _)| *name != version);
        versions.push((version, entry));
    }

    fn advance(&mut self, version: i32) {
        if version > self.version {
            self.version = version;
            self.forget_absent();
        }
    }

    fn forget_absent(&mut self) {
        self.absent = 0;
        self.types.retain(|_, versions| {
            versions.retain(|(_, entry)| entry.is_some());
            !versions.is_empty()
        });
    }
}

/// The contracts of these types and the version of the whole set.
fn list(link: &mut Link, names: &HashSet<Name>, wanted: &dyn Fn() -> bool) -> Result<(i32, Vec<Contract>)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Listed {
        contracts_version: i32,
        contracts: Vec<Box<RawValue>>,
    }
    let handlers: Vec<_> = names.iter().map(|(kind, version)| json!({"type": kind, "version": version})).collect();
    let answer = ask(link, "rpc_contracts_list", &json!({ "handlers": handlers }).to_string(), wanted)?;
    let listed: Listed = serde_json::from_str(&answer)
        .map_err(|e| Error::new(Kind::Internal, format!("the list of contracts cannot be read: {e}")))?;
    let contracts = listed.contracts.iter().map(|text| Contract::read(text.get())).collect::<Result<_>>()?;
    Ok((listed.contracts_version, contracts))
}

fn too_many_publications() -> Error {
    let message = format!("contracts were published {SENDS} times while this call was on its way: send it again");
    Error::new(Kind::Internal, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enqueue::one;

    fn contract(kind: &str) -> Contract {
        let text = json!({"type": kind, "version": "1", "inputSchema": {"type": "integer"}, "outputSchema": null});
        Contract::read(&text.to_string()).unwrap()
    }

    fn names(kinds: &[&str]) -> HashSet<Name> {
        kinds.iter().map(|kind| ((*kind).to_owned(), "1".to_owned())).collect()
    }

    fn missing(contracts: &Contracts, kind: &str) -> bool {
        let statement = one(&json!({ "type": kind }).to_string()).unwrap();
        !contracts.look_up(&[&statement], &HashSet::new()).missing.is_empty()
    }

    #[test]
    fn nothing_is_looked_up_while_nothing_is_published() {
        let contracts = Contracts::default();
        assert!(!missing(&contracts, "a"));
        contracts.stale(0, 1);
        assert!(missing(&contracts, "a"));
    }

    #[test]
    fn what_is_absent_is_forgotten_with_the_next_version_and_what_was_read_is_kept() {
        let contracts = Contracts::default();
        contracts.absorb(1, &names(&["a", "b"]), vec![contract("a")]);
        assert_eq!((missing(&contracts, "a"), missing(&contracts, "b")), (false, false));
        contracts.stale(1, 2);
        assert_eq!((missing(&contracts, "a"), missing(&contracts, "b")), (false, true));
        // An answer that was overtaken.
        contracts.absorb(1, &names(&["b", "c"]), vec![contract("c")]);
        assert_eq!((missing(&contracts, "b"), missing(&contracts, "c")), (true, false));
        // A schema that was made anew.
        contracts.stale(2, 1);
        assert!(missing(&contracts, "a"));
        contracts.stale(1, 0);
        assert!(!missing(&contracts, "a"));
    }

    #[test]
    fn absent_types_take_no_more_than_so_much() {
        let contracts = Contracts::default();
        for n in 0..MOST_ABSENT + 5 {
            contracts.absorb(1, &names(&[&n.to_string()]), Vec::new());
        }
        assert_eq!(contracts.lock().absent, 5);
        assert_eq!(contracts.lock().types.len(), 5);
    }

    #[test]
    fn answers_are_told_apart() {
        assert!(matches!(Answer::read("[]".into()), Ok(Answer::Enqueued(text)) if text == "[]"));
        assert!(matches!(Answer::read(r#"{"contractStale": 3}"#.into()), Ok(Answer::Stale(3))));
        assert!(Answer::read("{}".into()).is_err());
    }
}
