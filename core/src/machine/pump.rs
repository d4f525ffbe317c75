//! The pump's half of the machine: which statement is next, and what its answer means. Settlements go first, since
//! they are what people wait for; then progress; then the look-out for work.

use std::sync::Arc;

use uuid::Uuid;

use super::event::{Action, Answer, Cause, ClaimRow, Handle, Millis, Query, Settlement, Settling, Verdict};
use super::lanes::{Next, Plan};
use super::look::Step;
use super::settle::Refused;
use super::stop::{Phase, unsettled};
use super::{Machine, is_fatal};
use crate::error::{Error, Kind, Result};

/// A settlement that was given up: whose, and of which job.
pub(super) type Gone = (Handle, Uuid);

/// A statement and what is needed to understand its answer.
struct Sent {
    query: Arc<Query>,
    at_ms: Millis,
    /// When the claim was sent whose rows are asked for once more.
    claimed_ms: Millis,
    plan: Option<Plan>,
}

/// The pump's connection and the statement in flight on it.
#[derive(Default)]
pub(super) struct Pump {
    pub up: bool,
    busy: Option<Sent>,
    /// To be sent before anything else: its answer was lost.
    again: Option<Sent>,
    pause_until_ms: Option<Millis>,
    /// Rows in one claim, when larger ones took too long.
    most: Option<usize>,
}

impl Pump {
    /// A statement may be sent.
    pub fn ready(&self) -> bool {
        self.up && self.busy.is_none()
    }

    /// Nothing is in flight or to be sent again.
    pub fn idle(&self) -> bool {
        self.busy.is_none() && self.again.is_none()
    }

    /// Only the goodbye is in flight, which nobody has to wait for when the connection is gone.
    pub fn only_goodbye(&self) -> bool {
        let sent = self.busy.as_ref().or(self.again.as_ref());
        !self.up && sent.is_some_and(|sent| matches!(*sent.query, Query::Unregister))
    }

    /// When a pause after a failure is over.
    pub fn not_before(&self) -> Option<Millis> {
        self.pause_until_ms
    }
}

/// After a statement that failed for a reason of its own.
const PAUSE_MS: Millis = 250;
/// After a look that failed.
const LOOK_AGAIN_MS: Millis = 1_000;

impl Machine {
    pub(super) fn pump_next(&mut self, now: Millis, out: &mut Vec<Action>) {
        if !self.pump.ready() || self.pump.pause_until_ms.is_some_and(|until| now < until) {
            return;
        }
        self.pump.pause_until_ms = None;
        let sent = match self.pump.again.take() {
            Some(again) => Sent { at_ms: now, ..again },
            None => match self.next_query(now) {
                Some((query, plan)) => Sent { query: Arc::new(query), at_ms: now, claimed_ms: now, plan },
                None => return,
            },
        };
        out.push(Action::Pump(sent.query.clone()));
        self.pump.busy = Some(sent);
    }

    fn next_query(&mut self, now: Millis) -> Option<(Query, Option<Plan>)> {
        if !self.registered {
            return (self.end.phase() == Phase::Running).then_some((Query::Register, None));
        }
        if self.end.is_fatal() && self.end.phase() == Phase::Draining && self.settlements.is_empty() {
            return None;
        }
        let due: Vec<_> = self.progress.take_due(now);
        let values: Vec<_> =
            due.into_iter().filter_map(|(handle, value)| Some((self.attempts.current(handle)?, value))).collect();
        if !values.is_empty() {
            return Some((Query::Progress(values), None));
        }
        if let Some(batch) = self.settlements.next_batch() {
            return Some((Query::Settle(batch), None));
        }
        match self.end.phase() {
            Phase::Running => match self.next_check() {
                Some(check) => Some((check, None)),
                None => self.next_look(now),
            },
            Phase::Draining if self.may_unregister() => Some((Query::Unregister, None)),
            _ => None,
        }
    }

    fn next_look(&mut self, now: Millis) -> Option<(Query, Option<Plan>)> {
        if self.look.withdraw_wanted() {
            return Some((Query::Wake, None));
        }
        if self.look.introduce_wanted() {
            return Some((Query::Sleep { for_ms: self.look.announce_ms() }, None));
        }
        let (mut room, gated_room) = self.room();
        if let Some(most) = self.pump.most {
            room = room.min(most);
        }
        if room == 0 {
            return None;
        }
        let knows_some = self.lanes.any_claimable(now);
        if knows_some && self.look.lanes_stale(now) {
            return Some((Query::Lanes, None));
        }
        if self.look.due(now) || (knows_some && self.lanes.look_due(now)) {
            let manner = self.look.begin();
            if !self.lanes.is_empty() {
                if !self.lanes.ask_all(manner.woken, manner.sure) {
                    return Some((self.survey(now, manner.full), None));
                }
                self.lanes.suppose_all(now, manner.full, manner.woken);
            }
        }
        match self.lanes.plan(now, room, gated_room) {
            Next::Survey => return Some((self.survey(now, false), None)),
            Next::Claim(plan) => {
                let query = Query::Claim {
                    claim: (self.settings.new_claim_id)(),
                    lanes: plan.lanes.clone(),
                    hints: plan.hints.clone(),
                    quotas: plan.quotas.clone(),
                    max_jobs: plan.max_jobs,
                    // The database commits a claim that takes from a gate synchronously all the same.
                    async_commit: self.settings.async_commit,
                };
                return Some((query, Some(plan)));
            }
            Next::Nothing => self.look.exhausted(now),
        }
        match self.look.step() {
            Step::Lanes => Some((Query::Lanes, None)),
            Step::Sleep => Some((Query::Sleep { for_ms: self.look.announce_ms() }, None)),
            Step::Wait => None,
        }
    }

    fn survey(&mut self, now: Millis, full: bool) -> Query {
        let (lanes, hints) = self.lanes.survey(now, full);
        Query::Survey { lanes, hints }
    }

    pub(super) fn pump_answered(&mut self, now: Millis, result: Result<Answer>, up: bool, out: &mut Vec<Action>) {
        self.pump.up = up;
        let Some(sent) = self.pump.busy.take() else { return };
        match result {
            Ok(answer) => self.understand(now, sent, answer, out),
            Err(error) => self.pump_failed(now, sent, error, out),
        }
    }

    fn understand(&mut self, now: Millis, sent: Sent, answer: Answer, out: &mut Vec<Action>) {
        match (&*sent.query, answer) {
            (Query::Register, Answer::Registered) => self.registered = true,
            (Query::Lanes, Answer::Lanes(rows)) => {
                let new = self.lanes.learn(rows);
                self.look.lanes_read(now, self.lanes.len(), new);
            }
            (Query::Survey { .. }, Answer::Ready(heads)) => self.lanes.surveyed(now, sent.at_ms, &heads),
            (Query::Claim { .. }, Answer::Rows(rows)) => {
                if let Some(plan) = &sent.plan {
                    self.lanes.claimed(now, sent.at_ms, plan, &rows);
                }
                if let Some(most) = self.pump.most {
                    self.pump.most = Some(most * 2).filter(|most| *most < self.settings.slots + self.settings.prefetch);
                }
                self.take_rows(now, sent.at_ms, sent.at_ms, rows);
            }
            (Query::Claimed { .. }, Answer::Rows(rows)) => {
                self.look.failed(now, 0);
                self.take_rows(now, sent.claimed_ms, sent.at_ms, rows);
            }
            (Query::Check(batch), Answer::Checked(refusals)) => self.understand_check(batch, refusals),
            (Query::Settle(batch), Answer::Settled(verdicts)) => {
                self.settlements.accepted();
                self.settled(now, batch, &verdicts, out);
            }
            (Query::Sleep { .. }, Answer::Done) => self.look.announced(now, self.lanes.len()),
            (Query::Wake, Answer::Done) => self.look.withdrawn(),
            (Query::Unregister, Answer::Done) => self.end.unregistered(),
            (Query::Progress(_), Answer::Done) => {}
            (query, answer) => {
                let message =
                    format!("an answer that does not fit its statement: {} for {}", answer.name(), query.name());
                self.pump_failed(
                    now,
                    Sent { query: sent.query.clone(), ..sent },
                    Error::new(Kind::Internal, message),
                    out,
                );
            }
        }
    }

    /// New attempts. In a drain they are given back at once: `advance_end` follows every event.
    fn take_rows(&mut self, now: Millis, claimed: Millis, asked: Millis, rows: Vec<ClaimRow>) {
        if rows.is_empty() {
            return;
        }
        self.last_claim_ms = Some(now);
        self.look.found(now);
        self.timetable.lease_began(claimed);
        for row in rows {
            self.attempts.add(claimed, asked, row);
        }
    }

    fn settled(&mut self, now: Millis, batch: &[Settling], verdicts: &[Verdict], out: &mut Vec<Action>) {
        for (place, settling) in batch.iter().enumerate() {
            let job = settling.claim.job;
            let said = match verdicts.get(place).unwrap_or(&Verdict::Accepted) {
                Verdict::Accepted => None,
                Verdict::LeaseLost => Some(Error::new(
                    Kind::LeaseLost,
                    format!(
                        "the report for job {job} was refused: its attempt was settled, recovered or claimed again"
                    ),
                )),
                Verdict::ResultRefused => Some(Error::new(
                    Kind::PayloadTooLarge,
                    format!("the result of job {job} is larger than the database's limit: the job has failed"),
                )),
            };
            // A release concerns no handler, and recovery may be a moment ahead with timeouts and deadlines.
            let handlers = match &settling.settlement {
                Settlement::Complete(_) => true,
                Settlement::Fail(failure) => !matches!(failure.cause, Cause::Timeout | Cause::Deadline),
                Settlement::Release(_) => false,
            };
            if let Some(error) = said
                && handlers
            {
                out.push(Action::Complain { error, handle: Some(settling.handle), job: Some(job) });
            }
            if let Some(lane) = self.attempts.settled(settling.handle) {
                self.lanes.unhold(lane);
            }
            if matches!(settling.settlement, Settlement::Fail(_)) {
                self.look.soon(now);
            }
        }
    }

    fn pump_failed(&mut self, now: Millis, sent: Sent, error: Error, out: &mut Vec<Action>) {
        if is_fatal(&error) {
            return self.pump_fatal(now, sent, error, out);
        }
        let lost = error.kind() == Kind::ConnectionLost;
        // A read-only server and a cancelled statement have done nothing for certain.
        let passing = lost || matches!(error.kind(), Kind::ReadOnly | Kind::StatementTimeout) || gave_way(&error);
        let cut = error.kind() == Kind::StatementTimeout;
        match &*sent.query {
            Query::Claim { claim, .. } if lost => {
                let query = Arc::new(Query::Claimed { claim: *claim });
                self.pump.again = Some(Sent { query, at_ms: sent.at_ms, claimed_ms: sent.at_ms, plan: None });
            }
            Query::Claimed { .. } => self.pump.again = Some(sent),
            Query::Claim { max_jobs, .. } => {
                if cut {
                    self.pump.most = Some((*max_jobs as usize / 2).max(1));
                }
                self.look.failed(now, if passing { PAUSE_MS } else { LOOK_AGAIN_MS });
            }
            Query::Lanes | Query::Survey { .. } | Query::Sleep { .. } | Query::Wake => {
                self.look.failed(now, if passing { PAUSE_MS } else { LOOK_AGAIN_MS });
            }
            Query::Settle(batch) if cut && batch.len() > 1 => self.settlements.took_too_long(batch.clone()),
            Query::Settle(batch) if !passing => {
                if let Refused::GivenUp(settling) = self.settlements.refused(batch.clone(), error.message()) {
                    self.attempts.settled(settling.handle);
                    let job = settling.claim.job;
                    out.push(Action::Complain {
                        error: unsettled(&error, job),
                        handle: Some(settling.handle),
                        job: Some(job),
                    });
                    return;
                }
                // The refusal is answered by the form in which it goes again.
                return;
            }
            Query::Settle(_) => self.pump.again = Some(sent),
            // The jobs wait, and their check is the next statement again.
            Query::Check(_) => {}
            Query::Register if passing => self.pump.again = Some(sent),
            Query::Register => return self.end.fatal(now, self.settings.grace_ms, error),
            // Values that are replaced ten times a second are not worth a second try; neither is a goodbye.
            Query::Progress(_) => {
                if error.kind() == Kind::LeaseLost {
                    return;
                }
            }
            Query::Unregister => self.end.unregistered(),
        }
        if !lost {
            self.pump.pause_until_ms = Some(now + PAUSE_MS);
        }
        if !gave_way(&error) {
            self.complain(now, error, None, None, out);
        }
    }

    fn pump_fatal(&mut self, now: Millis, sent: Sent, error: Error, out: &mut Vec<Action>) {
        if let Query::Settle(batch) = &*sent.query {
            let gone = batch.iter().map(|settling| (settling.handle, settling.claim.job)).collect();
            self.give_up(gone, &error, out);
        }
        if matches!(*sent.query, Query::Unregister) {
            self.end.unregistered();
        }
        self.end.fatal(now, self.settings.grace_ms, error);
    }
}

fn gave_way(error: &Error) -> bool {
    matches!(error.details().get("sqlstate").and_then(|state| state.as_str()), Some("40001" | "40P01"))
}
