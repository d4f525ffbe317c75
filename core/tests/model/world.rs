//! The reference world: jobs, claims, the gates of two endpoints and two queues, and what time and reports do to them.
//! It knows the rules and nothing of the database; times are microseconds of the schema's clock.

use crate::circuit::{Circuit, ClaimKey, Evidence, State};
use crate::gate::Gate;
use crate::job::{Answer, Cause, Claim, Failure, Job, Lane, Phase, Rank, Settled, chosen_delay};

/// While the lease lives, the worker is left this long to report a timeout or deadline itself.
const REPORT_GRACE: i64 = 1_000_000;

#[derive(Clone, Debug, Default)]
pub struct World {
    pub now: i64,
    /// Counts the operations: the first part of ranks.
    pub step: usize,
    pub jobs: Vec<Job>,
    pub claims: Vec<Claim>,
    pub circuits: [Circuit; 2],
    pub endpoint_gates: [Gate; 2],
    pub queue_gates: [Gate; 2],
}

impl World {
    /// The claims that still hold their job.
    pub fn live(&self) -> Vec<ClaimKey> {
        (0..self.claims.len()).filter(|key| self.claims[*key].settled == Settled::Not).collect()
    }

    pub fn unended(&self) -> usize {
        self.jobs.iter().filter(|job| !matches!(job.phase, Phase::Ended { .. })).count()
    }

    /// Slots in use: the live leases of an endpoint or queue.
    pub fn slots(&self, of: impl Fn(&Lane) -> bool) -> i64 {
        let leased = |claim: &&Claim| claim.settled == Settled::Not && claim.lease_end > self.now;
        self.claims.iter().filter(leased).filter(|claim| of(&self.jobs[claim.job].lane)).count() as i64
    }

    pub fn endpoint_room(&self, endpoint: usize) -> i64 {
        self.endpoint_gates[endpoint].room(self.slots(|lane| lane.endpoint == Some(endpoint)), self.now)
    }

    pub fn queue_room(&self, queue: usize) -> i64 {
        self.queue_gates[queue].room(self.slots(|lane| lane.queue == queue), self.now)
    }

    /// Whether the claim is current and its lease has not ended.
    pub fn leased(&self, key: ClaimKey) -> bool {
        self.claims[key].settled == Settled::Not && self.claims[key].lease_end > self.now
    }

    fn limit(&self, claim: &Claim) -> (i64, Cause) {
        let job = &self.jobs[claim.job];
        let timeout = job.timeout.map(|timeout| (claim.claimed_at + timeout, 1, Cause::Timeout));
        let deadline = job.deadline.map(|deadline| (deadline, 0, Cause::Deadline));
        let lease = Some((claim.lease_end, 2, Cause::Lease));
        let (at, _, cause) = [deadline, timeout, lease].into_iter().flatten().min_by_key(|x| (x.0, x.1)).expect("one");
        (at, cause)
    }

    /// What time does: promotions, recovery, deadlines of jobs that wait, probes that ran too long.
    pub fn tick(&mut self) {
        let now = self.now;
        for job in &mut self.jobs {
            if let Phase::Scheduled { wake } = job.phase
                && wake <= now
            {
                job.phase = Phase::Ready;
                job.rank = (self.step, 0, wake);
            }
        }
        let mut over: Vec<(i64, Cause, ClaimKey)> = self
            .live()
            .into_iter()
            .map(|key| (self.limit(&self.claims[key]), key))
            .filter(|((at, _), key)| *at <= now && (self.claims[*key].lease_end <= now || *at <= now - REPORT_GRACE))
            .map(|((at, cause), key)| (at, cause, key))
            .collect();
        over.sort_by_key(|(at, _, _)| *at);
        let mut learned = Vec::new();
        for (at, cause, key) in over {
            learned.extend(self.evidence(key, cause, &Failure::default(), false).map(|evidence| (key, evidence)));
            self.end_attempt(key, cause, &Failure::default(), None, (self.step, 1, at));
            self.claims[key].settled = Settled::Recovered;
        }
        self.learn(learned);
        for job in &mut self.jobs {
            let waits = matches!(job.phase, Phase::Scheduled { .. } | Phase::Ready);
            if waits && job.deadline.is_some_and(|deadline| deadline <= now) {
                job.phase = Phase::Ended { state: "failed", reason: Some("deadline") };
            }
        }
        for circuit in &mut self.circuits {
            circuit.expire(now);
        }
    }

    pub fn complete(&mut self, key: ClaimKey) -> bool {
        if self.claims[key].settled != Settled::Not {
            return self.claims[key].settled == Settled::Complete;
        }
        let evidence = self.success(key);
        self.jobs[self.claims[key].job].phase = Phase::Ended { state: "succeeded", reason: None };
        self.claims[key].settled = Settled::Complete;
        self.learn(evidence.map(|evidence| (key, evidence)));
        true
    }

    pub fn release(&mut self, key: ClaimKey) -> bool {
        if self.claims[key].settled != Settled::Not {
            return self.claims[key].settled == Settled::Release;
        }
        let evidence = self.judged(key, true, Some(Evidence::Neutral));
        let job = &mut self.jobs[self.claims[key].job];
        job.uncertain = true;
        // The number is given back, and the place is kept.
        job.attempt -= 1;
        if job.cancel {
            job.phase = Phase::Ended { state: "canceled", reason: Some("canceled") };
        } else {
            job.phase = Phase::Ready;
        }
        self.claims[key].settled = Settled::Release;
        self.learn(evidence.map(|evidence| (key, evidence)));
        true
    }

    /// Failure reports of one statement. `told` are the delays that only the database knows, in milliseconds.
    pub fn fail(&mut self, reports: &[(ClaimKey, Cause, Failure)], told: &[Option<i64>]) -> Vec<Answer> {
        let mut learned = Vec::new();
        let mut answers = Vec::new();
        for ((key, cause, failure), told) in reports.iter().zip(told) {
            let answer = match &self.claims[*key].settled {
                Settled::Not => {
                    learned.extend(self.evidence(*key, *cause, failure, true).map(|evidence| (*key, evidence)));
                    let canceled = self.jobs[self.claims[*key].job].cancel;
                    let answer = self.end_attempt(*key, *cause, failure, *told, (self.step, 0, 0));
                    let cause = if canceled { Cause::Cancel } else { *cause };
                    self.claims[*key].settled = Settled::Fail { cause, answer: answer.clone() };
                    answer
                }
                Settled::Fail { cause: Cause::Cancel, answer } => answer.clone(),
                Settled::Fail { cause: first, answer } if first == cause => answer.clone(),
                _ => Answer::LeaseLost,
            };
            answers.push(answer);
        }
        self.learn(learned);
        answers
    }

    pub fn heartbeat(&mut self, key: ClaimKey, lease: i64) -> &'static str {
        if !self.leased(key) {
            return "lease_lost";
        }
        self.claims[key].lease_end = self.now + lease;
        if self.jobs[self.claims[key].job].cancel { "cancel_requested" } else { "accepted" }
    }

    pub fn cancel(&mut self, job: usize) -> &'static str {
        let job = &mut self.jobs[job];
        match job.phase {
            Phase::Ended { .. } => "already_terminal",
            Phase::Active { .. } => {
                job.cancel = true;
                "cancel_requested"
            }
            _ => {
                job.phase = Phase::Ended { state: "canceled", reason: Some("canceled") };
                "canceled"
            }
        }
    }

    /// The times at which something changes by itself.
    pub fn moments(&self) -> Vec<i64> {
        let mut found = Vec::new();
        for job in &self.jobs {
            if let Phase::Scheduled { wake } = job.phase {
                found.push(wake);
            }
            if !matches!(job.phase, Phase::Ended { .. }) {
                found.extend(job.deadline);
            }
        }
        for key in self.live() {
            let claim = &self.claims[key];
            found.push(claim.lease_end);
            found.extend(self.jobs[claim.job].timeout.map(|timeout| claim.claimed_at + timeout));
            found.push(self.limit(claim).0 + REPORT_GRACE);
        }
        for circuit in &self.circuits {
            match circuit.state {
                State::Open { probe_at } => found.push(probe_at),
                State::HalfOpen { overdue_at, .. } => found.push(overdue_at),
                State::Closed => {}
            }
        }
        for gate in self.endpoint_gates.iter().chain(&self.queue_gates) {
            found.extend(gate.bucket.as_ref().and_then(|bucket| bucket.next_token(self.now)));
        }
        found.retain(|at| *at > self.now);
        found.sort_unstable();
        found.dedup();
        found
    }

    fn learn(&mut self, learned: impl IntoIterator<Item = (ClaimKey, Evidence)>) {
        for (key, evidence) in learned {
            let claim = &self.claims[key];
            if let Some(endpoint) = self.jobs[claim.job].lane.endpoint {
                self.circuits[endpoint].learn(key, claim.generation, evidence, self.now);
            }
        }
    }

    fn success(&self, key: ClaimKey) -> Option<Evidence> {
        self.judged(key, true, Some(Evidence::Success))
    }

    /// What the end of an attempt says: nothing of synthetic tests, and of late reports no more than that a probe is lost.
    fn judged(&self, key: ClaimKey, reported: bool, evidence: Option<Evidence>) -> Option<Evidence> {
        let claim = &self.claims[key];
        if self.jobs[claim.job].lane.synthetic {
            return None;
        }
        let late = reported && claim.lease_end <= self.now;
        let evidence = if late { Some(Evidence::Lost) } else { evidence };
        match evidence {
            Some(Evidence::Lost | Evidence::Neutral) if !claim.probe => None,
            other => other,
        }
    }

    fn evidence(&self, key: ClaimKey, cause: Cause, failure: &Failure, reported: bool) -> Option<Evidence> {
        let evidence = if self.jobs[self.claims[key].job].cancel || failure.cancellation {
            Evidence::Neutral
        } else {
            match cause {
                Cause::Error | Cause::Timeout | Cause::Output => Evidence::Failure,
                Cause::Input | Cause::Checkpoint | Cause::Cancel => Evidence::Neutral,
                Cause::Lease | Cause::Deadline => Evidence::Lost,
            }
        };
        self.judged(key, reported, Some(evidence))
    }

    /// The attempt has not succeeded: a pending cancel, an ending without a further attempt, the budget, the deadline.
    fn end_attempt(&mut self, key: ClaimKey, cause: Cause, failure: &Failure, told: Option<i64>, rank: Rank) -> Answer {
        let now = self.now;
        let job = &mut self.jobs[self.claims[key].job];
        job.uncertain |= failure.uncertain
            || job.cancel
            || matches!(cause, Cause::Lease | Cause::Timeout | Cause::Deadline | Cause::Output);
        let (delay_ms, source) = chosen_delay(job, cause, failure, told);
        let reason = if job.cancel {
            Some("canceled")
        } else if matches!(cause, Cause::Deadline | Cause::Output | Cause::Input | Cause::Checkpoint) {
            Some(cause.name())
        } else if failure.retryable == Some(false) {
            Some("non_retryable")
        } else if job.attempt >= job.budget {
            Some("exhausted")
        } else if job.deadline.is_some_and(|deadline| deadline <= now + delay_ms * 1000) {
            Some("deadline")
        } else {
            None
        };
        if let Some(reason) = reason {
            let state = if job.cancel { "canceled" } else { "failed" };
            job.phase = Phase::Ended { state, reason: Some(reason) };
            return Answer::Ended { state, reason };
        }
        job.phase = if delay_ms == 0 { Phase::Ready } else { Phase::Scheduled { wake: now + delay_ms * 1000 } };
        job.rank = rank;
        Answer::Retry { delay_ms, source }
    }
}
