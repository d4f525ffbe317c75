//! What a claim may take. The choice between lanes is free, so the reference does not predict a claim: it tells whether
//! the rows it took are ones it might take, and whether it left anything that it could have taken.

use crate::circuit::{Admission, ClaimKey};
use crate::job::{Claim, Job, Lane, Phase, Settled};
use crate::world::World;

/// Of every this many rows one may go to the lane that has waited longest, whatever its priority.
const TURNS_FOR_THE_OLDEST: usize = 20;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Ask {
    pub queues: Vec<usize>,
    pub kinds: Vec<usize>,
    pub limit: usize,
    pub lease: i64,
    /// Lanes are taken by priority, as the public claim does.
    pub by_priority: bool,
    /// Nothing else claims at the same time, so that nothing may be left.
    pub alone: bool,
}

/// A row that was taken.
#[derive(Clone, Debug)]
pub struct Got {
    pub id: String,
    pub fence: (String, i64),
    pub attempt: i64,
}

/// What the gates still have to give while rows are taken one after another.
struct Rooms {
    endpoints: [i64; 2],
    queues: [i64; 2],
    admissions: [Admission; 2],
}

impl Rooms {
    fn of(world: &World) -> Rooms {
        Rooms {
            endpoints: [0, 1].map(|n| world.endpoint_room(n)),
            queues: [0, 1].map(|n| world.queue_room(n)),
            admissions: [0, 1].map(|n| world.circuits[n].admits(world.now)),
        }
    }

    /// Which gate refuses a job of this lane, if any does.
    fn refusal(&self, lane: &Lane) -> Option<&'static str> {
        if self.queues[lane.queue] <= 0 {
            return Some("its queue has no room");
        }
        let endpoint = lane.endpoint?;
        if self.endpoints[endpoint] <= 0 {
            return Some("its endpoint has no room");
        }
        (!lane.synthetic && self.admissions[endpoint] == Admission::Nothing).then_some("the circuit admits nothing")
    }

    /// Returns whether it is the probe.
    fn take(&mut self, lane: &Lane) -> bool {
        self.queues[lane.queue] -= 1;
        let Some(endpoint) = lane.endpoint else {
            return false;
        };
        self.endpoints[endpoint] -= 1;
        let probe = !lane.synthetic && self.admissions[endpoint] == Admission::OneProbe;
        if probe {
            self.admissions[endpoint] = Admission::Nothing;
        }
        probe
    }
}

impl World {
    /// Judges the rows of a claim (or of several at once) and takes them over. `last_failed` are the jobs that failed
    /// last, by endpoint.
    pub fn claimed(&mut self, ask: &Ask, got: &[Got], last_failed: &[Option<String>; 2]) -> Result<(), String> {
        if got.len() > ask.limit {
            return Err(format!("{} rows were claimed, {} were asked for", got.len(), ask.limit));
        }
        let before = self.clone();
        let mut rooms = Rooms::of(self);
        let mut taken = Vec::new();
        for row in got {
            let found = self.jobs.iter().position(|job| job.id == row.id);
            let number = found.ok_or_else(|| format!("{} is no job of this run", row.id))?;
            let job = &self.jobs[number];
            if !before.claimable(ask, job) || taken.contains(&number) {
                return Err(format!("claimed {job:?}, which is not claimable by {ask:?}"));
            }
            if row.attempt != job.attempt + 1 || row.attempt > job.budget {
                return Err(format!("claimed as attempt {} what is {job:?}", row.attempt));
            }
            if let Some(why) = rooms.refusal(&job.lane) {
                return Err(format!("claimed {job:?} although {why}; got {got:?}"));
            }
            let probe = rooms.take(&job.lane);
            self.take(number, row, probe, ask.lease);
            taken.push(number);
        }
        self.take_tokens(&taken);
        before.in_order(ask, &taken, last_failed)?;
        if ask.alone {
            before.nothing_left(ask, &taken, &rooms)?;
            if ask.by_priority {
                before.by_priority(ask, &taken, &rooms)?;
            }
        }
        Ok(())
    }

    fn claimable(&self, ask: &Ask, job: &Job) -> bool {
        job.phase == Phase::Ready
            && ask.queues.contains(&job.lane.queue)
            && ask.kinds.contains(&job.lane.kind)
            && job.deadline.is_none_or(|deadline| deadline > self.now)
    }

    fn take(&mut self, number: usize, row: &Got, probe: bool, lease: i64) {
        let key: ClaimKey = self.claims.len();
        let job = &mut self.jobs[number];
        job.attempt = row.attempt;
        job.phase = Phase::Active { claim: key };
        let circuit = job.lane.endpoint.map(|endpoint| &mut self.circuits[endpoint]);
        let generation = circuit.as_ref().map_or(0, |circuit| circuit.generation);
        if probe && let Some(circuit) = circuit {
            circuit.probe_taken(key, job.timeout, self.now);
        }
        self.claims.push(Claim {
            fence: row.fence.clone(),
            job: number,
            generation,
            probe,
            claimed_at: self.now,
            lease_end: self.now + lease,
            settled: Settled::Not,
        });
    }

    fn take_tokens(&mut self, taken: &[usize]) {
        for number in taken {
            let lane = self.jobs[*number].lane;
            self.queue_gates[lane.queue].take(1, self.now);
            if let Some(endpoint) = lane.endpoint {
                self.endpoint_gates[endpoint].take(1, self.now);
            }
        }
    }

    /// FIFO inside a lane; a probe passes over the job that failed last, unless there is no other.
    fn in_order(&self, ask: &Ask, taken: &[usize], last_failed: &[Option<String>; 2]) -> Result<(), String> {
        for number in taken {
            let job = &self.jobs[*number];
            let probe = self.is_probe(&job.lane);
            let failed = job.lane.endpoint.and_then(|endpoint| last_failed[endpoint].as_ref());
            for (other_number, other) in self.jobs.iter().enumerate() {
                if taken.contains(&other_number) || !self.claimable(ask, other) {
                    continue;
                }
                if other.lane == job.lane && other.rank < job.rank && !(probe && failed == Some(&other.id)) {
                    return Err(format!("claimed {job:?} before {other:?} of the same lane"));
                }
                let rival = other.lane.endpoint == job.lane.endpoint
                    && self.is_probe(&other.lane)
                    && other.lane.priority >= job.lane.priority
                    && self.queue_room(other.lane.queue)
                        > taken.iter().filter(|n| self.jobs[**n].lane.queue == other.lane.queue).count() as i64;
                if ask.alone && probe && failed == Some(&job.id) && rival {
                    return Err(format!("the probe is the job that failed last, {job:?}, with {other:?} there"));
                }
            }
        }
        Ok(())
    }

    fn is_probe(&self, lane: &Lane) -> bool {
        let admission = lane.endpoint.map(|endpoint| self.circuits[endpoint].admits(self.now));
        !lane.synthetic && admission == Some(Admission::OneProbe)
    }

    /// Fewer than asked for only when fewer are admissible.
    fn nothing_left(&self, ask: &Ask, taken: &[usize], rooms: &Rooms) -> Result<(), String> {
        if taken.len() == ask.limit {
            return Ok(());
        }
        match self.rest(ask, taken, rooms).next() {
            Some(left) => Err(format!("{} of {} were claimed although there is {left:?}", taken.len(), ask.limit)),
            None => Ok(()),
        }
    }

    /// Higher priorities first, but for the rows that go to whoever has waited longest.
    fn by_priority(&self, ask: &Ask, taken: &[usize], rooms: &Rooms) -> Result<(), String> {
        let left = self.rest(ask, taken, rooms).map(|job| job.lane.priority).max();
        let early = taken.iter().filter(|n| Some(self.jobs[**n].lane.priority) < left).count();
        if early > ask.limit.div_ceil(TURNS_FOR_THE_OLDEST) {
            return Err(format!(
                "{early} rows of low priority were claimed with one of priority {left:?} left: {taken:?}"
            ));
        }
        Ok(())
    }

    /// Jobs that could have been taken as well.
    fn rest<'a>(&'a self, ask: &'a Ask, taken: &'a [usize], rooms: &'a Rooms) -> impl Iterator<Item = &'a Job> {
        self.jobs
            .iter()
            .enumerate()
            .filter(move |(n, job)| {
                !taken.contains(n) && self.claimable(ask, job) && rooms.refusal(&job.lane).is_none()
            })
            .map(|(_, job)| job)
    }
}
