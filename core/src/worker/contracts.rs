//! The contracts of the jobs a worker runs: payloads are checked on the pump's thread, results on the thread that
//! reports them. A contract is asked for once and kept, since it never changes; jobs without one never come here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::shared::Shared;
use super::statements::Statements;
use crate::contract::{Contract, Violation};
use crate::error::Result;
use crate::machine::{Cause, Checking, Ending, Event, Failure};
use crate::store::Connection;

type Known = HashMap<(String, String), Arc<Contract>>;

/// What one worker knows of them.
#[derive(Default)]
pub struct Contracts {
    known: Mutex<Known>,
    /// Some contract asks something of results.
    results: AtomicBool,
}

impl Contracts {
    /// Per payload: how its job fails, if it does.
    pub fn check(
        &self,
        connection: &mut Connection,
        statements: &Statements,
        batch: &[Checking],
    ) -> Result<Vec<Option<Failure>>> {
        batch
            .iter()
            .map(|checking| {
                let contract = self.learn(connection, statements, &checking.lane.kind, &checking.lane.version)?;
                let checked = contract.check_payload(checking.payload.as_deref(), "payload");
                Ok(checked.err().map(|violation| refused(Cause::Input, &violation)))
            })
            .collect()
    }

    fn learn(
        &self,
        connection: &mut Connection,
        statements: &Statements,
        kind: &str,
        version: &str,
    ) -> Result<Arc<Contract>> {
        if let Some(contract) = self.get(kind, version) {
            return Ok(contract);
        }
        let Some(contract) = statements.contract(connection, kind, version)? else {
            return Ok(Arc::new(Contract::missing(kind, version)));
        };
        if contract.checks_results() {
            self.results.store(true, Ordering::Relaxed);
        }
        let contract = Arc::new(contract);
        self.known().insert((kind.to_owned(), version.to_owned()), contract.clone());
        Ok(contract)
    }

    fn get(&self, kind: &str, version: &str) -> Option<Arc<Contract>> {
        self.known().get(&(kind.to_owned(), version.to_owned())).cloned()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns results that their contracts do not allow into output failures.
pub fn check_results(shared: &Shared, event: Event) -> Event {
    let Event::Reports(mut reports) = event else { return event };
    if shared.contracts.results.load(Ordering::Relaxed) {
        for report in &mut reports {
            let Ending::Complete(result) = &report.ending else { continue };
            let Some(lane) = shared.look(|machine, _| machine.contract_of(report.handle)) else { continue };
            let Some(contract) = shared.contracts.get(&lane.kind, &lane.version) else { continue };
            if let Err(violation) = contract.check_result(result.as_deref()) {
                report.ending = Ending::Fail(refused(Cause::Output, &violation));
            }
        }
    }
    Event::Reports(reports)
}

fn refused(cause: Cause, violation: &Violation) -> Failure {
    Failure {
        retryable: Some(false),
        uncertain: cause == Cause::Output,
        ..Failure::of(cause, "ContractViolation", violation.message())
    }
}
