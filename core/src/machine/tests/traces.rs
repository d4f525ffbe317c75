//! Traces: what goes in, what comes out, in order.

use super::*;
use crate::error::Result;

/// A machine with a clock, its actions written as short lines.
struct Trace {
    machine: Machine,
    now: Millis,
    claim: Option<Uuid>,
    tick: bool,
}

impl Trace {
    fn new(settings: Settings) -> Trace {
        Trace { machine: Machine::new(settings), now: 0, claim: None, tick: false }
    }

    /// A worker that has registered, knows `lanes`, and has looked once.
    fn running(settings: Settings, lanes: Vec<LaneRow>) -> Trace {
        let mut t = Trace::new(settings);
        assert_eq!(t.on(Event::PumpUp), ["pump: register"]);
        assert_eq!(t.answer(Answer::Registered), ["pump: lanes"]);
        t.answer(Answer::Lanes(lanes));
        t
    }

    fn on(&mut self, event: Event) -> Vec<String> {
        let actions = self.machine.step(self.now, event);
        actions.into_iter().filter_map(|action| self.line(action)).collect()
    }

    fn answer(&mut self, answer: Answer) -> Vec<String> {
        self.on(Event::PumpAnswered { result: Ok(answer), up: true })
    }

    fn refuse(&mut self, kind: Kind) -> Vec<String> {
        let up = !matches!(kind, Kind::ConnectionLost | Kind::ReadOnly);
        self.on(Event::PumpAnswered { result: Err(Error::new(kind, kind.code())), up })
    }

    fn care(&mut self, result: Result<Cared>) -> Vec<String> {
        self.on(Event::KeeperAnswered { result, up: true })
    }

    /// The rows of the claim in flight: (job, lane, seq).
    fn rows(&mut self, rows: &[(u128, i64, i64)]) -> Vec<String> {
        let claim = self.claim.expect("a claim is in flight");
        let rows = rows.iter().zip(1..).map(|((job, lane, seq), number)| row(*job, claim, number, *lane, *seq));
        let rows = rows.collect();
        self.answer(Answer::Rows(rows))
    }

    /// The same, all of them under contract.
    fn contracted_rows(&mut self, rows: &[(u128, i64, i64)]) -> Vec<String> {
        let claim = self.claim.expect("a claim is in flight");
        let extra = Extra { contract: true, ..Extra::default() };
        let rows = rows.iter().zip(1..).map(|((job, lane, seq), number)| ClaimRow {
            extra: extra.clone(),
            payload: Some("1".to_owned()),
            ..row(*job, claim, number, *lane, *seq)
        });
        let rows = rows.collect();
        self.answer(Answer::Rows(rows))
    }

    fn report(&mut self, handle: Handle, ending: Ending) -> Vec<String> {
        self.on(Event::Reports(vec![Report { handle, ending, note: None }]))
    }

    fn after(&mut self, ms: Millis) -> Vec<String> {
        self.now += ms;
        self.on(Event::Clock)
    }

    /// Lets the keeper answer its ticks by itself, so that traces show heartbeats only.
    fn keeper(&mut self) -> Vec<String> {
        let lines = self.on(Event::KeeperUp);
        self.calm(lines)
    }

    fn calm(&mut self, mut lines: Vec<String>) -> Vec<String> {
        while std::mem::take(&mut self.tick) {
            lines.retain(|line| line != "keeper: tick 1000");
            lines.extend(self.care(Ok(Cared::Ticked { moved: 0, more: false, next_ms: None })));
        }
        lines
    }

    fn line(&mut self, action: Action) -> Option<String> {
        Some(match action {
            Action::Pump(query) => match &*query {
                Query::Claim { claim, lanes, hints, quotas, max_jobs, .. } => {
                    self.claim = Some(*claim);
                    format!("pump: claim {max_jobs} from {lanes:?} at {hints:?} by {quotas:?}")
                }
                Query::Claimed { claim } => {
                    assert_eq!(Some(*claim), self.claim);
                    "pump: claimed".into()
                }
                Query::Survey { lanes, hints } => format!("pump: survey {lanes:?} at {hints:?}"),
                Query::Check(batch) => format!("pump: check {:?}", batch.iter().map(|c| c.handle).collect::<Vec<_>>()),
                Query::Settle(batch) => {
                    let jobs: Vec<u128> = batch.iter().map(|s| s.claim.job.as_u128()).collect();
                    match &batch[0].settlement {
                        Settlement::Complete(_) => format!("pump: complete {jobs:?}"),
                        Settlement::Fail(failure) => format!("pump: fail {jobs:?} {}", failure.cause.as_str()),
                        Settlement::Release(_) => format!("pump: release {jobs:?}"),
                    }
                }
                Query::Progress(values) => {
                    format!("pump: progress {:?}", values.iter().map(|v| &*v.1).collect::<Vec<_>>())
                }
                other => format!("pump: {}", other.name()),
            },
            Action::Keep(care) => match &*care {
                Care::Heartbeat(claims) => {
                    format!("keeper: heartbeat {:?}", claims.iter().map(|(handle, _)| *handle).collect::<Vec<_>>())
                }
                Care::Prune { max_rows } => format!("keeper: prune {max_rows}"),
                Care::Tick { max_rows, .. } => {
                    self.tick = true;
                    format!("keeper: tick {max_rows}")
                }
                Care::Seen { running } => format!("keeper: seen {running}"),
                Care::Ping(number) => format!("keeper: ping {number}"),
            },
            Action::Start { handle, row, .. } => format!("start {handle}: job {}", row.claim.job.as_u128()),
            Action::Abort { handle, reason } => format!("abort {handle}: {}", reason.as_str()),
            Action::Complain { error, .. } => format!("complain: {}", error.code()),
            Action::Relisten { after_ms } => format!("relisten after {after_ms}"),
            Action::Stopped(error) => {
                format!("stopped{}", error.map(|e| format!(": {}", e.code())).unwrap_or_default())
            }
        })
    }
}

const NOTHING: [String; 0] = [];

fn done() -> Ending {
    Ending::Complete(None)
}

fn thrown() -> Ending {
    Ending::Fail(Failure::of(Cause::Error, "E", "m"))
}

#[test]
fn a_job_is_claimed_run_and_completed() {
    let mut t = Trace::new(settings(2));
    assert_eq!(t.on(Event::PumpUp), ["pump: register"]);
    assert_eq!(t.answer(Answer::Registered), ["pump: lanes"]);
    assert_eq!(t.answer(Answer::Lanes(vec![lane(1, 0, None)])), ["pump: claim 2 from [1] at [0] by [2]"]);
    assert_eq!(t.rows(&[(7, 1, 40), (8, 1, 41)]), ["start 1: job 7", "start 2: job 8"]);
    assert_eq!(t.report(1, done()), ["pump: complete [7]"]);
    // Its slot is free; the next claim follows the report and looks behind what was seen.
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: claim 1 from [1] at [42] by [1]"]);
    assert_eq!(t.rows(&[]), NOTHING);
}

#[test]
fn reports_gather_while_a_statement_is_in_flight_and_go_together_by_job() {
    let mut t = Trace::running(settings(4), vec![lane(1, 0, None)]);
    t.rows(&[(9, 1, 1), (8, 1, 2), (7, 1, 3), (6, 1, 4)]);
    assert_eq!(t.report(1, done()), ["pump: complete [9]"]);
    assert_eq!(t.report(2, done()), NOTHING);
    assert_eq!(t.report(3, thrown()), NOTHING);
    assert_eq!(t.report(4, done()), NOTHING);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: complete [6, 8]"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: fail [7] error"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: claim 4 from [1] at [5] by [4]"]);
}

#[test]
fn before_it_sleeps_a_worker_announces_it_and_looks_once_more_from_the_beginning() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.on(Event::ListenerUp);
    t.on(Event::KeeperUp);
    assert_eq!(t.on(Event::KeeperAnswered { result: Ok(Cared::Done), up: true }), ["keeper: tick 1000"]);
    assert_eq!(t.on(Event::PingHeard(1)), NOTHING);
    // Now that wake-ups arrive the database is told where to send them, also those of cancels.
    assert_eq!(t.rows(&[(7, 1, 5)]), ["start 1: job 7", "pump: sleep"]);
    assert_eq!(t.answer(Answer::Done), NOTHING);
    t.report(1, done());
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: lanes"]);
    assert_eq!(t.answer(Answer::Lanes(vec![])), ["pump: claim 1 from [1] at [0] by [1]"]);
    assert_eq!(t.rows(&[(6, 1, 5)]), ["start 2: job 6", "pump: wake"]);
    assert_eq!(t.answer(Answer::Done), NOTHING);
    t.report(2, done());
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: claim 1 from [1] at [6] by [1]"]);
    assert_eq!(t.rows(&[]), NOTHING, "it lingers a moment");
    assert_eq!(t.after(5), ["pump: claim 1 from [1] at [6] by [1]"]);
    assert_eq!(t.rows(&[]), ["pump: sleep"]);
    assert_eq!(t.answer(Answer::Done), ["pump: survey [1] at [0]"]);
    assert_eq!(t.answer(Answer::Ready(vec![])), ["pump: lanes"], "a new lane may have come too");
    assert_eq!(t.answer(Answer::Lanes(vec![lane(1, 0, None)])), NOTHING);
    // The wake-up: first the job, then the announcement is taken back.
    t.now += 100;
    assert_eq!(t.on(Event::Woken), ["pump: claim 1 from [1] at [0] by [1]"]);
    assert_eq!(t.rows(&[(8, 1, 9)]), ["start 3: job 8", "pump: wake"]);
}

#[test]
fn without_wake_ups_it_polls_ever_more_slowly() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.rows(&[]);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let at = t.machine.due().unwrap();
        pauses.push(at - t.now);
        let mut lines = t.after(at - t.now);
        if lines == ["pump: lanes"] {
            lines = t.answer(Answer::Lanes(vec![]));
        }
        assert_eq!(lines, ["pump: survey [1] at [0]"]);
        let lines = t.answer(Answer::Ready(vec![]));
        if lines == ["pump: lanes"] {
            t.answer(Answer::Lanes(vec![]));
        }
    }
    assert_eq!(pauses, [100, 150, 225, 337, 505, 757, 1_000, 1_000]);
}

#[test]
fn a_heartbeat_is_sent_at_a_third_of_the_lease_and_counts_from_its_sending() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.keeper();
    t.rows(&[(7, 1, 1)]);
    let lines = t.after(9_999);
    assert_eq!(t.calm(lines), NOTHING);
    assert_eq!(t.after(1), ["keeper: heartbeat [1]"]);
    // It takes a second: the lease runs 30 s from the sending.
    t.now += 1_000;
    let lines = t.care(Ok(Cared::Beaten(vec![0])));
    let lines = t.calm(lines);
    assert_eq!(lines, ["keeper: seen 1"]);
    t.care(Ok(Cared::Done));
    t.on(Event::KeeperAnswered { result: Err(Error::new(Kind::ConnectionLost, "gone")), up: false });
    assert_eq!(t.machine.lease_remaining(t.now, 1), Some(29_000));
    assert_eq!(t.after(28_999), NOTHING);
    assert_eq!(t.after(1), ["abort 1: lease_lost"]);
}

#[test]
fn one_failed_heartbeat_stops_nothing() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.keeper();
    t.rows(&[(7, 1, 1)]);
    let lines = t.after(10_000);
    assert!(lines.contains(&"keeper: heartbeat [1]".to_owned()), "{lines:?}");
    let lost = Err(Error::new(Kind::ConnectionLost, "gone"));
    assert_eq!(t.on(Event::KeeperAnswered { result: lost, up: false }), ["complain: connection_lost"]);
    t.now += 500;
    assert_eq!(t.on(Event::KeeperUp), ["keeper: heartbeat [1]"]);
    t.care(Ok(Cared::Beaten(vec![0])));
    assert_eq!(t.machine.lease_remaining(t.now, 1), Some(30_000));
}

#[test]
fn a_success_after_the_lease_s_end_is_still_sent_and_a_failure_is_not() {
    let mut t = Trace::running(settings(2), vec![lane(1, 0, None)]);
    t.rows(&[(7, 1, 1), (8, 1, 2)]);
    assert_eq!(t.after(30_000), ["abort 1: lease_lost", "abort 2: lease_lost"]);
    assert_eq!(t.report(1, done()), ["pump: complete [7]"]);
    assert_eq!(t.answer(Answer::Settled(vec![Verdict::LeaseLost]))[0], "complain: lease_lost");
    assert!(t.report(2, thrown()).iter().all(|line| !line.contains("fail")));
    assert_eq!(t.machine.health().running, 0);
}

#[test]
fn a_claim_the_database_calls_lost_is_told_and_settled_by_nobody() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.keeper();
    t.rows(&[(7, 1, 1)]);
    t.after(10_000);
    assert_eq!(t.care(Ok(Cared::Beaten(vec![2])))[0], "abort 1: lease_lost");
    assert_eq!(t.machine.health().stuck.len(), 1);
    assert!(t.report(1, done()).iter().all(|line| !line.contains("complete")));
    assert_eq!(t.machine.health().stuck, []);
}

#[test]
fn a_cancel_is_told_once_and_the_report_goes_as_it_is() {
    for (ending, sent) in [(done(), "pump: complete [7]"), (thrown(), "pump: fail [7] error")] {
        let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
        t.keeper();
        t.rows(&[(7, 1, 1)]);
        t.now += 50;
        let lines = t.on(Event::CancelHinted);
        assert_eq!(lines, ["keeper: heartbeat [1]"]);
        assert_eq!(t.care(Ok(Cared::Beaten(vec![1]))), ["abort 1: cancel"]);
        let lines = t.after(10_000);
        let lines = t.calm(lines);
        assert!(lines.contains(&"keeper: heartbeat [1]".to_owned()), "{lines:?}");
        assert!(t.care(Ok(Cared::Beaten(vec![1]))).iter().all(|line| !line.starts_with("abort")));
        assert_eq!(t.report(1, ending), [sent]);
    }
}

#[test]
fn a_timeout_settles_at_once_and_the_later_report_is_ignored() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    let claim = t.claim.unwrap();
    t.answer(Answer::Rows(vec![ClaimRow { ends_ms: Some(500), ..row(7, claim, 1, 1, 1) }]));
    assert_eq!(t.after(499), NOTHING);
    assert_eq!(t.after(1), ["abort 1: timeout", "pump: fail [7] timeout"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), NOTHING, "the slot is still taken");
    let health = t.machine.health();
    assert_eq!((health.running, health.stuck.len()), (1, 1));
    let lines = t.report(1, done());
    assert!(lines[0].starts_with("pump: claim 1"), "{lines:?}");
    assert_eq!(t.machine.health().running, 0);
}

#[test]
fn a_deadline_is_named_when_the_database_names_it() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    let claim = t.claim.unwrap();
    let extra = Extra { ends_by_deadline: true, ..Extra::default() };
    t.answer(Answer::Rows(vec![ClaimRow { ends_ms: Some(500), extra, ..row(7, claim, 1, 1, 1) }]));
    assert_eq!(t.after(500), ["abort 1: deadline", "pump: fail [7] deadline"]);
}

#[test]
fn a_claim_in_flight_at_the_stop_is_handed_back_and_nothing_starts() {
    let mut t = Trace::running(settings(2), vec![lane(1, 0, None)]);
    assert_eq!(t.on(Event::Stop), NOTHING);
    assert_eq!(t.rows(&[(7, 1, 1), (8, 1, 2)]), ["pump: release [7, 8]"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: unregister"]);
    assert_eq!(t.answer(Answer::Done), ["stopped"]);
    assert_eq!(t.on(Event::Clock), NOTHING);
}

#[test]
fn a_drain_waits_for_handlers_and_their_reports() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.rows(&[(7, 1, 1)]);
    assert_eq!(t.on(Event::Stop), NOTHING);
    assert_eq!(t.machine.health().phase, Phase::Draining);
    assert_eq!(t.after(9_999), NOTHING);
    assert_eq!(t.report(1, done()), ["pump: complete [7]"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: unregister"]);
    assert_eq!(t.answer(Answer::Done), ["stopped"]);
}

#[test]
fn at_the_end_of_the_grace_time_the_rest_is_released() {
    let mut t = Trace::running(settings(2), vec![lane(1, 0, None)]);
    t.rows(&[(7, 1, 1), (8, 1, 2)]);
    t.on(Event::Stop);
    assert_eq!(t.after(10_000), ["abort 1: shutdown", "abort 2: shutdown", "pump: release [7, 8]"]);
    assert_eq!(t.report(1, done()), NOTHING, "it has been released");
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: unregister"]);
    assert_eq!(t.answer(Answer::Done), ["stopped"]);
}

#[test]
fn releases_that_cannot_be_sent_do_not_hold_up_the_end() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.rows(&[(7, 1, 1)]);
    t.on(Event::Stop);
    assert_eq!(t.after(10_000), ["abort 1: shutdown", "pump: release [7]"]);
    assert_eq!(t.refuse(Kind::ConnectionLost), ["complain: connection_lost"]);
    assert_eq!(t.after(999), NOTHING);
    assert_eq!(t.after(1), ["stopped"]);
}

#[test]
fn close_gives_no_grace() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.rows(&[(7, 1, 1)]);
    assert_eq!(t.on(Event::Close), ["abort 1: shutdown", "pump: release [7]"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: unregister"]);
    assert_eq!(t.answer(Answer::Done), ["stopped"]);
}

#[test]
fn a_lost_answer_to_a_claim_is_asked_for_by_its_id() {
    let mut t = Trace::running(settings(2), vec![lane(1, 0, None)]);
    assert_eq!(t.refuse(Kind::ConnectionLost), ["complain: connection_lost"]);
    t.now += 3_000;
    assert_eq!(t.on(Event::PumpUp), ["pump: claimed"]);
    t.now += 50;
    assert_eq!(t.rows(&[(7, 1, 1)])[0], "start 1: job 7");
    // The lease began with the claim, not with the question.
    assert_eq!(t.machine.lease_remaining(t.now, 1), Some(26_950));
}

#[test]
fn rows_that_come_after_their_lease_are_given_back() {
    let mut t = Trace::running(settings(2), vec![lane(1, 0, None)]);
    t.refuse(Kind::ConnectionLost);
    t.now += 31_000;
    t.on(Event::PumpUp);
    assert_eq!(t.rows(&[(7, 1, 1)]), ["pump: release [7]"]);
}

#[test]
fn a_report_goes_again_after_a_lost_answer_and_others_wait_behind_it() {
    let mut t = Trace::running(settings(2), vec![lane(1, 0, None)]);
    t.rows(&[(7, 1, 1), (8, 1, 2)]);
    assert_eq!(t.report(1, done()), ["pump: complete [7]"]);
    t.refuse(Kind::ConnectionLost);
    assert_eq!(t.report(2, done()), NOTHING);
    t.now += 200;
    assert_eq!(t.on(Event::PumpUp), ["pump: complete [7]"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: complete [8]"]);
}

#[test]
fn a_report_at_fault_is_found_and_reduced_until_it_can_be_kept() {
    let mut t = Trace::running(settings(2), vec![lane(1, 0, None)]);
    t.rows(&[(7, 1, 1), (8, 1, 2)]);
    t.on(Event::Reports(vec![
        Report { handle: 1, ending: done(), note: None },
        Report { handle: 2, ending: done(), note: None },
    ]));
    assert_eq!(t.refuse(Kind::PayloadInvalid), ["pump: complete [7]"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: complete [8]"]);
    assert_eq!(t.refuse(Kind::PayloadInvalid), ["pump: fail [8] output"]);
    assert_eq!(t.refuse(Kind::Internal)[0], "complain: internal");
}

#[test]
fn a_statement_that_takes_too_long_goes_again_in_halves() {
    let mut t = Trace::running(settings(4), vec![lane(1, 0, None)]);
    t.rows(&[(1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 1, 4)]);
    t.on(Event::Reports((1..=4).map(|handle| Report { handle, ending: done(), note: None }).collect()));
    t.refuse(Kind::StatementTimeout);
    assert_eq!(t.after(250), ["pump: complete [1, 2]"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: complete [3, 4]"]);
}

#[test]
fn a_tick_that_takes_too_long_is_halved_down_to_ten_rows() {
    let mut t = Trace::running(settings(1), vec![]);
    let mut lines = t.on(Event::KeeperUp);
    for rows in [1_000, 500, 250, 125, 62, 31, 15, 10, 10] {
        assert_eq!(lines, [format!("keeper: tick {rows}")]);
        lines = t.care(Err(Error::new(Kind::StatementTimeout, "cut")));
    }
}

#[test]
fn what_no_waiting_cures_ends_the_worker_by_name() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    assert_eq!(t.refuse(Kind::PermissionDenied), ["stopped: permission_denied"]);

    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.rows(&[(7, 1, 1)]);
    t.keeper();
    t.after(200);
    let fatal = Err(Error::new(Kind::SchemaMissing, "gone"));
    assert_eq!(t.on(Event::KeeperAnswered { result: fatal, up: true }), NOTHING, "the handler may finish");
    assert_eq!(t.report(1, done()), ["pump: complete [7]"]);
    let lines = t.refuse(Kind::SchemaMissing);
    assert_eq!(lines, ["complain: schema_missing", "stopped: schema_missing"]);
}

#[test]
fn a_fatal_end_never_takes_longer_than_the_grace_time() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.rows(&[(7, 1, 1)]);
    t.on(Event::Fatal(Error::new(Kind::SchemaMissing, "gone")));
    assert_eq!(t.after(9_999), NOTHING);
    assert_eq!(t.after(1), ["abort 1: shutdown", "stopped: schema_missing"]);
}

#[test]
fn jobs_claimed_ahead_start_when_a_slot_is_free_and_gates_are_never_passed_ahead() {
    let ahead = Settings { prefetch: 2, ..settings(1) };
    let mut t = Trace::running(ahead.clone(), vec![lane(1, 0, None)]);
    assert_eq!(t.rows(&[(7, 1, 1), (8, 1, 2), (9, 1, 3)]), ["start 1: job 7"]);
    assert_eq!(t.report(1, done()), ["start 2: job 8", "pump: complete [7]"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: claim 1 from [1] at [4] by [1]"]);
    assert_eq!(t.on(Event::Stop), NOTHING);
    assert_eq!(t.rows(&[]), ["pump: release [9]"]);

    let mut t = Trace::new(ahead);
    t.on(Event::PumpUp);
    t.answer(Answer::Registered);
    assert_eq!(t.answer(Answer::Lanes(vec![lane(1, 0, Some("api"))])), ["pump: survey [1] at [0]"]);
    assert_eq!(t.answer(Answer::Ready(vec![(1, 3)])), ["pump: claim 1 from [1] at [3] by [3]"]);
    assert_eq!(t.rows(&[(7, 1, 3)]), ["start 1: job 7"]);
}

#[test]
fn priorities_are_strict_and_lanes_of_one_priority_share() {
    let lanes = vec![lane(1, 0, None), lane(2, 5, None), lane(3, 5, None)];
    let mut t = Trace::new(settings(4));
    t.on(Event::PumpUp);
    t.answer(Answer::Registered);
    assert_eq!(t.answer(Answer::Lanes(lanes)), ["pump: claim 4 from [2, 3] at [0, 0] by [2, 2]"]);
    // One of the two came short: the other may have all that is left, and what is below comes after it.
    assert_eq!(
        t.rows(&[(7, 2, 10), (8, 2, 11), (9, 3, 12)]),
        ["start 1: job 7", "start 2: job 8", "start 3: job 9", "pump: claim 1 from [2, 1] at [12, 0] by [1, 1]"]
    );
}

#[test]
fn every_twentieth_row_comes_from_the_head_that_has_waited_longest() {
    let lanes = vec![lane(1, 0, None), lane(2, 5, None)];
    let mut t = Trace::new(settings(20));
    t.on(Event::PumpUp);
    t.answer(Answer::Registered);
    assert_eq!(t.answer(Answer::Lanes(lanes)), ["pump: survey [1, 2] at [0, 0]"]);
    // The low priority's head is older.
    assert_eq!(
        t.answer(Answer::Ready(vec![(1, 100), (2, 500)])),
        ["pump: claim 20 from [1, 2] at [100, 500] by [1, 20]"]
    );
}

#[test]
fn a_lane_behind_a_shut_gate_is_held_back_until_its_endpoint_may_have_a_slot() {
    let lanes = vec![lane(1, 0, Some("api"))];
    let mut t = Trace::new(settings(2));
    t.on(Event::PumpUp);
    t.answer(Answer::Registered);
    t.answer(Answer::Lanes(lanes));
    assert_eq!(t.answer(Answer::Ready(vec![(1, 1)])), ["pump: claim 2 from [1] at [1] by [2]"]);
    // One slot at the endpoint: one row, and the lane is held back.
    assert_eq!(t.rows(&[(7, 1, 1)]), ["start 1: job 7"]);
    assert_eq!(t.after(5), ["pump: survey [1] at [2]"]);
    assert_eq!(t.answer(Answer::Ready(vec![(1, 2)])), NOTHING);
    assert_eq!(t.after(45), ["pump: claim 1 from [1] at [2] by [1]"]);
    assert_eq!(t.rows(&[]), NOTHING);
    // The slot is given back by our own report.
    assert_eq!(t.report(1, done()), ["pump: complete [7]"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: claim 2 from [1] at [2] by [2]"]);
}

#[test]
fn a_queue_s_gate_is_known_by_a_claim_that_gets_nothing_of_what_is_there() {
    let mut t = Trace::running(settings(2), vec![lane(1, 0, None)]);
    assert_eq!(t.rows(&[(7, 1, 1)]), ["start 1: job 7"]);
    assert_eq!(t.after(5), ["pump: claim 1 from [1] at [2] by [1]"]);
    assert_eq!(t.rows(&[]), NOTHING);
    // Before it waits it makes sure; there is work.
    assert_eq!(t.after(100), ["pump: survey [1] at [0]"]);
    assert_eq!(t.answer(Answer::Ready(vec![(1, 2)])), ["pump: claim 1 from [1] at [2] by [1]"]);
    assert_eq!(t.rows(&[]), NOTHING);
    assert_eq!(t.report(1, done()), ["pump: complete [7]"]);
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: claim 2 from [1] at [2] by [2]"]);
}

#[test]
fn the_hint_is_forgotten_after_five_seconds_of_steady_work() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    let mut hints = Vec::new();
    for n in 1..=60_u64 {
        let lines = t.rows(&[(u128::from(n), 1, n as i64)]);
        assert_eq!(lines, [format!("start {n}: job {n}")]);
        t.now += 100;
        t.report(n, done());
        let mut lines = t.answer(Answer::Settled(vec![]));
        if lines == ["pump: lanes"] {
            lines = t.answer(Answer::Lanes(vec![]));
        }
        hints.push(lines[0].contains("at [0]"));
    }
    let scans: Vec<usize> = hints.iter().enumerate().filter(|(_, full)| **full).map(|(n, _)| n).collect();
    assert_eq!(scans, [49], "at five seconds, not at each claim");
}

#[test]
fn a_worker_that_is_never_idle_learns_of_new_lanes() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.rows(&[(7, 1, 1)]);
    t.now += 1_500;
    t.report(1, done());
    assert_eq!(t.answer(Answer::Settled(vec![])), ["pump: lanes"]);
    let lines = t.answer(Answer::Lanes(vec![lane(1, 0, None), lane(2, 9, None)]));
    assert_eq!(lines, ["pump: claim 1 from [2, 1] at [0, 0] by [1, 1]"]);
}

#[test]
fn progress_is_written_at_most_ten_times_a_second_and_the_last_value_wins() {
    let mut t = Trace::running(settings(1), vec![lane(1, 0, None)]);
    t.rows(&[(7, 1, 1)]);
    let set = |t: &mut Trace, value: &str| t.on(Event::Progress { handle: 1, value: value.into() });
    assert_eq!(set(&mut t, "1"), [r#"pump: progress ["1"]"#]);
    assert_eq!(set(&mut t, "2"), NOTHING);
    assert_eq!(t.answer(Answer::Done), NOTHING);
    assert_eq!(set(&mut t, "3"), NOTHING);
    assert_eq!(t.machine.due(), Some(100));
    assert_eq!(t.after(100), [r#"pump: progress ["3"]"#]);
}

fn violation() -> Option<Failure> {
    Some(Failure::of(Cause::Input, "ContractViolation", "m"))
}

#[test]
fn a_payload_under_contract_is_checked_before_its_handler() {
    let mut t = Trace::running(settings(3), vec![lane(1, 0, None)]);
    assert_eq!(t.contracted_rows(&[(7, 1, 1), (8, 1, 2), (9, 1, 3)]), ["pump: check [1, 2, 3]"]);
    let lines = t.answer(Answer::Checked(vec![None, violation(), None]));
    assert_eq!(lines, ["start 1: job 7", "start 3: job 9", "pump: fail [8] input"]);
    assert_eq!(t.machine.contract_of(1).map(|lane| lane.kind.clone()).as_deref(), Some("t"));
    assert_eq!(t.machine.contract_of(4), None);
}

#[test]
fn a_check_that_fails_is_sent_again_and_the_jobs_keep_their_leases() {
    let mut t = Trace::running(settings(2), vec![lane(1, 0, None)]);
    t.keeper();
    assert_eq!(t.contracted_rows(&[(7, 1, 1)]), ["pump: check [1]"]);
    assert_eq!(t.refuse(Kind::StatementTimeout), ["complain: statement_timeout"]);
    let lines = t.after(250);
    assert_eq!(t.calm(lines), ["pump: check [1]"]);
    assert_eq!(t.refuse(Kind::ConnectionLost), ["complain: connection_lost"]);
    let lines = t.after(10_000);
    assert!(lines.contains(&"keeper: heartbeat [1]".to_owned()), "{lines:?}");
    assert_eq!(t.on(Event::PumpUp), ["pump: check [1]"]);
    assert_eq!(t.answer(Answer::Checked(vec![None]))[0], "start 1: job 7");
}

#[test]
fn a_drain_gives_back_what_is_being_checked() {
    let mut t = Trace::running(settings(3), vec![lane(1, 0, None)]);
    t.contracted_rows(&[(7, 1, 1)]);
    let lines = t.refuse(Kind::ReadOnly);
    assert_eq!(lines, ["complain: read_only"]);
    assert_eq!(t.on(Event::PumpUp), NOTHING);
    assert_eq!(t.after(250), ["pump: check [1]"]);
    // The drain gives it back; what the check says of it then means nothing.
    t.keeper();
    assert_eq!(t.on(Event::Stop), NOTHING);
    let lines = t.answer(Answer::Checked(vec![violation()]));
    assert_eq!(lines, ["pump: release [7]"]);
}

#[test]
fn an_outage_is_said_once() {
    let mut t = Trace::new(settings(1));
    let gone = || Event::Unreachable(Error::new(Kind::ConnectionLost, "refused"));
    assert_eq!(t.on(gone()), ["complain: connection_lost"]);
    assert_eq!(t.on(gone()), NOTHING);
    t.now += 60_000;
    assert_eq!(t.on(gone()), ["complain: connection_lost"]);
}
