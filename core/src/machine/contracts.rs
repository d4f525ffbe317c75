//! Payloads under contract: a claimed job whose type had one when it was enqueued is checked before its handler may
//! start, by the pump's thread, which can also ask the database for a contract it does not know. The job keeps its
//! place and its lease meanwhile, and loses neither when that fails. The third part of [`Attempts`].

use std::sync::Arc;

use super::Machine;
use super::attempts::{Attempts, Hold, Stage};
use super::event::{Checking, Failure, Handle, LaneRow, Query, Settlement, Settling};
use super::lanes::Lanes;

/// Payloads in one check: settlements go in between.
const MOST: usize = 100;

impl Attempts {
    /// The next payloads to be checked, in the order of their claims.
    fn to_check(&self, lanes: &Lanes) -> Vec<Checking> {
        let unchecked = self.waiting.iter().filter_map(|handle| {
            let attempt = self.by_handle.get(handle).filter(|attempt| attempt.unchecked)?;
            let payload = attempt.row.as_ref()?.payload.as_deref().map(Arc::from);
            Some(Checking { handle: *handle, lane: lanes.row(attempt.lane)?, payload })
        });
        unchecked.take(MOST).collect()
    }

    /// A payload was checked: its job may start, or has failed without.
    fn checked(&mut self, handle: Handle, refused: Option<Failure>) -> Option<Settling> {
        let attempt = self.by_handle.get_mut(&handle)?;
        attempt.unchecked = false;
        let refused = refused.filter(|_| attempt.hold == Hold::Open && attempt.stage == Stage::Waiting)?;
        self.waiting.retain(|other| *other != handle);
        self.settle_unstarted(handle, Settlement::Fail(refused))
    }
}

impl Machine {
    /// The type and version whose contract the result of this attempt must meet.
    pub fn contract_of(&self, handle: Handle) -> Option<Arc<LaneRow>> {
        let attempt = self.attempts.by_handle.get(&handle).filter(|attempt| attempt.contracted)?;
        self.lanes.row(attempt.lane)
    }

    /// The next check.
    pub(super) fn next_check(&self) -> Option<Query> {
        let batch = self.attempts.to_check(&self.lanes);
        (!batch.is_empty()).then_some(Query::Check(batch))
    }

    /// What the check found, payload by payload.
    pub(super) fn understand_check(&mut self, batch: &[Checking], refusals: Vec<Option<Failure>>) {
        for (checking, refused) in batch.iter().zip(refusals) {
            let settling = self.attempts.checked(checking.handle, refused);
            self.settlements.extend(settling);
        }
    }
}
