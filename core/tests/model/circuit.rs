//! The reference of an endpoint's circuit, written from the rules alone: what it admits, and what it learns from the
//! ends of attempts. Times are microseconds of the schema's clock.

/// A claim, by its place in the world's list.
pub type ClaimKey = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    Open,
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Closed,
    /// No probe before `probe_at`.
    Open {
        probe_at: i64,
    },
    /// Exactly while a probe is out.
    HalfOpen {
        probe: ClaimKey,
        overdue_at: i64,
    },
}

/// What a claim of normal jobs may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    All,
    OneProbe,
    Nothing,
}

/// What the end of an attempt says about its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    Success,
    Failure,
    /// A probe that proved nothing.
    Lost,
    Neutral,
}

#[derive(Clone, Debug)]
pub struct Circuit {
    pub state: State,
    pub forced: Option<Forced>,
    pub failures: u32,
    pub generation: u32,
    pub threshold: u32,
    pub cooldown: i64,
    pub probe_timeout: i64,
    /// The events since they were last compared: each any of these names.
    pub events: Vec<&'static [&'static str]>,
}

impl Default for Circuit {
    fn default() -> Circuit {
        Circuit {
            state: State::Closed,
            forced: None,
            failures: 0,
            generation: 0,
            threshold: 5,
            cooldown: 60_000_000,
            probe_timeout: 900_000_000,
            events: Vec::new(),
        }
    }
}

impl Circuit {
    /// What a snapshot calls it.
    pub fn name(&self) -> &'static str {
        match (self.forced, &self.state) {
            (Some(Forced::Open), _) => "open",
            (Some(Forced::Closed), _) => "closed",
            (None, State::Closed) => "closed",
            (None, State::Open { .. }) => "open",
            (None, State::HalfOpen { .. }) => "half_open",
        }
    }

    pub fn admits(&self, now: i64) -> Admission {
        match (self.forced, &self.state) {
            (Some(Forced::Open), _) => Admission::Nothing,
            (Some(Forced::Closed), _) | (None, State::Closed) => Admission::All,
            (None, State::Open { probe_at }) if *probe_at <= now => Admission::OneProbe,
            (None, _) => Admission::Nothing,
        }
    }

    pub fn probe_taken(&mut self, probe: ClaimKey, timeout: Option<i64>, now: i64) {
        self.state = State::HalfOpen { probe, overdue_at: now + timeout.unwrap_or(self.probe_timeout) };
        self.events.push(&["probe_started"]);
    }

    /// An attempt of this generation's claim has ended.
    pub fn learn(&mut self, claim: ClaimKey, generation: u32, evidence: Evidence, now: i64) {
        if self.forced.is_some() || generation != self.generation {
            return;
        }
        match (&self.state, evidence) {
            (State::HalfOpen { probe, overdue_at }, _) if *probe == claim => match evidence {
                Evidence::Failure => self.reopen(&["circuit_reopened", "probe_lost", "probe_overdue"], now),
                // A probe that ran too long is lost from that moment, whether or not anyone has noticed it yet.
                _ if *overdue_at <= now => self.reopen(&["probe_overdue", "probe_lost"], now),
                Evidence::Lost => self.reopen(&["probe_lost"], now),
                Evidence::Success => {
                    self.state = State::Closed;
                    self.failures = 0;
                    self.generation += 1;
                    self.events.push(&["circuit_closed"]);
                }
                Evidence::Neutral => {
                    self.state = State::Open { probe_at: now };
                    self.generation += 1;
                    self.events.push(&["probe_neutral"]);
                }
            },
            (State::Closed, Evidence::Success) => self.failures = 0,
            (State::Closed, Evidence::Failure) => {
                self.failures += 1;
                if self.failures >= self.threshold {
                    self.reopen(&["circuit_opened"], now);
                }
            }
            _ => {}
        }
    }

    /// Takes the slot from a probe that has run too long.
    pub fn expire(&mut self, now: i64) {
        if let State::HalfOpen { overdue_at, .. } = self.state
            && self.forced.is_none()
            && overdue_at <= now
        {
            self.reopen(&["probe_overdue", "probe_lost"], now);
        }
    }

    pub fn force(&mut self, forced: Option<Forced>) {
        self.forced = forced;
        self.generation += 1;
        match forced {
            None => {
                self.state = State::Closed;
                self.failures = 0;
                self.events.push(&["circuit_reset"]);
            }
            Some(_) => self.events.push(&["circuit_forced"]),
        }
    }

    fn reopen(&mut self, event: &'static [&'static str], now: i64) {
        self.state = State::Open { probe_at: now + self.cooldown };
        self.generation += 1;
        self.events.push(event);
    }
}
