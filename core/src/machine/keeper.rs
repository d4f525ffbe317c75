//! The keeper's half of the machine: heartbeats before all else, then the ping, the sign of life, the tick, retention.

use std::sync::Arc;

use super::Machine;
use super::event::{Abort, Action, Care, Cared, Millis};
use super::leases::Canceling;
use super::stop::Phase;
use crate::error::{Kind, Result};

/// The keeper's connection and the statement in flight on it.
#[derive(Default)]
pub(super) struct Keeper {
    pub up: bool,
    care: Option<(Arc<Care>, Millis)>,
}

impl Keeper {
    /// A statement may be sent.
    pub fn ready(&self) -> bool {
        self.up && self.care.is_none()
    }
}

impl Machine {
    pub(super) fn keeper_answered(&mut self, now: Millis, result: Result<Cared>, up: bool, out: &mut Vec<Action>) {
        self.keeper.up = up;
        let Some((care, sent)) = self.keeper.care.take() else { return };
        match (&*care, result) {
            (Care::Heartbeat(claims), Ok(Cared::Beaten(codes))) => {
                for ((handle, _), code) in claims.iter().zip(codes) {
                    match code {
                        2 => {
                            if let Some(reason) = self.attempts.lost(now, *handle) {
                                out.push(Action::Abort { handle: *handle, reason });
                            }
                            self.progress.forget(*handle);
                        }
                        code => {
                            self.attempts.renewed(*handle, sent);
                            if code == 1 {
                                match self.attempts.cancel(now, *handle) {
                                    Canceling::Tell => {
                                        out.push(Action::Abort { handle: *handle, reason: Abort::Cancel })
                                    }
                                    Canceling::Settle(settling) => self.settlements.extend([settling]),
                                    Canceling::Nothing => {}
                                }
                            }
                        }
                    }
                }
            }
            (Care::Tick { .. }, Ok(Cared::Ticked { moved, more, next_ms })) => {
                self.timetable.ticked(now, more, next_ms);
                if moved > 0 {
                    self.look.soon(now);
                }
            }
            (Care::Prune { .. }, Ok(Cared::Pruned { jobs })) => self.timetable.pruned(now, jobs),
            (Care::Ping(_), Ok(_)) => self.wakeups.sent(now),
            (_, Ok(_)) => {}
            (care, Err(error)) => {
                let cut = error.kind() == Kind::StatementTimeout;
                match care {
                    Care::Heartbeat(_) => self.timetable.beat_failed(now),
                    Care::Tick { .. } if cut => self.timetable.tick_too_long(now),
                    Care::Tick { .. } => self.timetable.tick_failed(now),
                    Care::Prune { .. } | Care::Seen { .. } | Care::Ping(_) => {}
                }
                if !(cut && matches!(care, Care::Tick { .. } | Care::Prune { .. })) {
                    self.failed(now, error, out);
                }
            }
        }
    }

    pub(super) fn keeper_next(&mut self, now: Millis, out: &mut Vec<Action>) {
        if !self.keeper.ready() || !self.registered {
            return;
        }
        let Some(care) = self.next_care(now) else { return };
        let care = Arc::new(care);
        self.keeper.care = Some((care.clone(), now));
        out.push(Action::Keep(care));
    }

    fn next_care(&mut self, now: Millis) -> Option<Care> {
        if self.timetable.beat_due(now) {
            let claims = self.attempts.to_renew();
            self.timetable.beat_sent(now, !claims.is_empty());
            if !claims.is_empty() {
                return Some(Care::Heartbeat(claims));
            }
        }
        if let Some(number) = self.wakeups.ping_due(now) {
            return Some(Care::Ping(number));
        }
        if self.timetable.take_seen(now) {
            return Some(Care::Seen { running: self.attempts.running() as i32 });
        }
        // Recovery would end an attempt whose limit we are just reporting, without the worker's own delay.
        if self.end.phase() == Phase::Running
            && !self.attempts.limits_pending()
            && let Some((max_rows, full)) = self.timetable.tick_due(now)
        {
            self.timetable.tick_sent(now, full);
            return Some(Care::Tick { max_rows, full });
        }
        if self.end.phase() == Phase::Running
            && let Some(max_rows) = self.timetable.take_prune(now)
        {
            return Some(Care::Prune { max_rows });
        }
        None
    }
}
