//! The lanes a worker may claim from: which have work, from where to look, whose turn it is.
//! Owned by the machine; pure. A *hint* is the remembered place of a lane's first claimable row. It only saves the
//! walk over dead rows, so it may be wrong: it is forgotten when a claim comes back short, and every lane in use is
//! looked at from its beginning at least every five seconds.

use std::collections::HashMap;
use std::sync::Arc;

use super::event::{ClaimRow, LaneRow, Millis};

/// A lane in use is scanned from its beginning at least this often.
const FULL_SCAN_MS: Millis = 5_000;
/// A short claim makes the next look a full scan, but not more often than this.
const RESCAN_MS: Millis = 100;
/// Up to so many lanes are simply asked; beyond, a survey says first which have work.
const ASK_ALL: usize = 32;
/// Lanes in one claim, if there are more free slots than this the slots decide.
const ASK_AT_LEAST: usize = 64;
/// Every so many rows, one comes from the lane whose head has waited longest.
const LONGEST_EVERY: u32 = 20;
/// How old knowledge of the heads may be when that lane is chosen.
const HEADS_AGE_MS: Millis = 200;
/// A lane that gave nothing although it has work is held back so long, doubling.
const HOLD_MS: (Millis, Millis) = (50, 1_000);

struct Lane {
    row: Arc<LaneRow>,
    hint: i64,
    /// Where its work starts as far as we know; `None`: none.
    head: Option<i64>,
    /// The database said so, it is not just supposed.
    head_seen: bool,
    /// A claim got nothing although there was work: its queue has a gate.
    gate_seen: bool,
    scanned_ms: Option<Millis>,
    turn: u64,
    held_until_ms: Millis,
    hold_ms: Millis,
}

impl Lane {
    fn has_gate(&self) -> bool {
        self.gate_seen || self.row.endpoint.is_some()
    }

    fn hold(&mut self, now: Millis) {
        self.held_until_ms = now + self.hold_ms;
        self.hold_ms = (self.hold_ms * 2).min(HOLD_MS.1);
    }

    fn claimable(&self, now: Millis) -> bool {
        self.head.is_some() && self.held_until_ms <= now
    }
}

/// A claim to make: parallel columns, in the order in which the lanes are to be served.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub lanes: Vec<i64>,
    pub hints: Vec<i64>,
    pub quotas: Vec<i32>,
    pub max_jobs: i32,
    /// A lane of it has an endpoint.
    pub gated: bool,
    /// Rows of this claim that count as the longest waiting ones.
    longest: u32,
}

/// What to do when a claim is wanted.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// No lane is known to have work.
    Nothing,
    /// It must be known first which head has waited longest.
    Survey,
    Claim(Plan),
}

/// All lanes of one worker.
#[derive(Default)]
pub struct Lanes {
    lanes: HashMap<i64, Lane>,
    turns: u64,
    since_longest: u32,
    heads_ms: Option<Millis>,
    looked_ms: Millis,
    /// No lane with work becomes free of its hold before this.
    next_hold_ms: Option<Millis>,
}

impl Lanes {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// None is known.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The lane's names.
    pub fn row(&self, id: i64) -> Option<Arc<LaneRow>> {
        self.lanes.get(&id).map(|lane| lane.row.clone())
    }

    /// Takes over the list of the database; true when a lane is new. A lane is never forgotten: jobs of it may be
    /// running, and the list only grows.
    pub fn learn(&mut self, rows: Vec<LaneRow>) -> bool {
        let before = self.lanes.len();
        for row in rows {
            self.lanes.entry(row.id).or_insert_with(|| Lane {
                row: Arc::new(row),
                hint: 0,
                head: None,
                head_seen: false,
                gate_seen: false,
                scanned_ms: None,
                turn: 0,
                held_until_ms: 0,
                hold_ms: HOLD_MS.0,
            });
        }
        self.lanes.len() > before
    }

    /// Whether all lanes may simply be asked, which saves the survey's round trip. With gates among them, or when it
    /// matters to be `sure`, only a survey tells an empty lane from one whose gate is shut.
    pub fn ask_all(&self, woken: bool, sure: bool) -> bool {
        self.lanes.len() <= ASK_ALL && (woken || (!sure && !self.lanes.values().any(Lane::has_gate)))
    }

    /// Supposes work in every lane: the claim itself will tell.
    pub fn suppose_all(&mut self, now: Millis, full: bool, woken: bool) {
        self.looked_ms = now;
        for lane in self.lanes.values_mut() {
            if full || lane.scanned_ms.is_none_or(|at| now >= at + FULL_SCAN_MS) {
                lane.hint = 0;
            }
            if woken {
                lane.held_until_ms = 0;
            }
            if lane.head.is_none() {
                lane.head = Some(lane.hint);
                lane.head_seen = false;
            }
        }
    }

    /// Whether it is time to ask again which lanes have work although some are known to have.
    pub fn look_due(&self, now: Millis) -> bool {
        let pause = if self.lanes.len() <= ASK_ALL { 50 } else { 250 + self.lanes.len() as Millis / 20 };
        now >= self.looked_ms + pause
    }

    /// The columns of a survey, and whether it is one from the beginning.
    pub fn survey(&mut self, now: Millis, full: bool) -> (Vec<i64>, Vec<i64>) {
        for lane in self.lanes.values_mut() {
            if full || lane.scanned_ms.is_none_or(|at| now >= at + FULL_SCAN_MS) {
                lane.hint = 0;
            }
        }
        let mut pairs: Vec<(i64, i64)> = self.lanes.values().map(|lane| (lane.row.id, lane.hint)).collect();
        pairs.sort_unstable();
        pairs.into_iter().unzip()
    }

    /// Takes the answer of a survey that was sent at `sent`.
    pub fn surveyed(&mut self, now: Millis, sent: Millis, ready: &[(i64, i64)]) {
        self.heads_ms = Some(now);
        self.looked_ms = now;
        let heads: HashMap<i64, i64> = ready.iter().copied().collect();
        for lane in self.lanes.values_mut() {
            if lane.hint == 0 {
                lane.scanned_ms = Some(sent);
            }
            lane.head = heads.get(&lane.row.id).copied();
            lane.head_seen = true;
            match lane.head {
                Some(head) => lane.hint = head,
                None => {
                    lane.held_until_ms = 0;
                    lane.hold_ms = HOLD_MS.0;
                }
            }
        }
        self.find_next_hold(now);
    }

    /// The claim for `room` rows: the highest priority first, within it fair turns, and every 20th row from the
    /// lane whose head has waited longest. `gated_room` bounds a claim that touches a lane with an endpoint.
    pub fn plan(&mut self, now: Millis, room: usize, gated_room: usize) -> Next {
        let mut ready: Vec<&Lane> = self.lanes.values().filter(|lane| lane.claimable(now)).collect();
        if gated_room == 0 {
            ready.retain(|lane| !lane.has_gate());
        }
        if ready.is_empty() || room == 0 {
            return Next::Nothing;
        }
        let due = (self.since_longest + room as u32) / LONGEST_EVERY;
        let longest = if due == 0 || ready.len() == 1 {
            None
        } else if self.heads_ms.is_none_or(|at| now > at + HEADS_AGE_MS) {
            return Next::Survey;
        } else {
            ready.iter().min_by_key(|lane| (lane.head, lane.row.id)).map(|lane| lane.row.id)
        };
        ready.sort_unstable_by_key(|lane| (-i32::from(lane.row.priority), lane.turn, lane.row.id));

        let mut chosen: Vec<(&Lane, usize)> = Vec::new();
        if let Some(id) = longest {
            chosen.push((&self.lanes[&id], due as usize));
        }
        let most = room.max(ASK_AT_LEAST);
        let mut rest = &ready[..];
        while let Some(first) = rest.first() {
            let band = rest.iter().take_while(|lane| lane.row.priority == first.row.priority).count();
            // A lane can be asked once only. If the longest waiting one is below the top, the rest of its rows and what
            // is below it wait for the next claim.
            let below = rest.len() < ready.len();
            if below && rest[..band].iter().any(|lane| longest == Some(lane.row.id)) {
                break;
            }
            let asked = band.min(most - chosen.len());
            let share = room.div_ceil(asked.min(room));
            for lane in &rest[..asked] {
                match chosen.iter_mut().find(|(other, _)| other.row.id == lane.row.id) {
                    Some((_, quota)) => *quota = (*quota + share).min(room),
                    None => chosen.push((lane, share)),
                }
            }
            // A lane of lower priority may only be served once all of a higher one is: certain only when that one
            // lane may have everything, and gates are not asked before it.
            rest = &rest[band..];
            let gates =
                rest.first().is_some_and(|next| next.has_gate()) || chosen.iter().any(|(lane, _)| lane.has_gate());
            if band > 1 || chosen.len() >= most || gates {
                break;
            }
        }
        let gated = chosen.iter().any(|(lane, _)| lane.has_gate());
        let plan = Plan {
            lanes: chosen.iter().map(|(lane, _)| lane.row.id).collect(),
            hints: chosen.iter().map(|(lane, _)| lane.hint).collect(),
            quotas: chosen.iter().map(|(_, quota)| *quota as i32).collect(),
            max_jobs: if gated { room.min(gated_room) } else { room } as i32,
            gated,
            longest: due,
        };
        Next::Claim(plan)
    }

    /// Takes the rows of a claim by `plan` that was sent at `sent`.
    pub fn claimed(&mut self, now: Millis, sent: Millis, plan: &Plan, rows: &[ClaimRow]) {
        let mut got: HashMap<i64, (usize, i64)> = HashMap::new();
        for row in rows {
            let entry = got.entry(row.lane).or_insert((0, 0));
            *entry = (entry.0 + 1, entry.1.max(row.seq));
        }
        self.since_longest = (self.since_longest + rows.len() as u32).saturating_sub(plan.longest * LONGEST_EVERY);
        let mut left = plan.max_jobs as usize;
        for (place, id) in plan.lanes.iter().enumerate() {
            let Some(lane) = self.lanes.get_mut(id) else { continue };
            let (count, last) = got.get(id).copied().unwrap_or((0, 0));
            // The database serves gates first, then the others in their order.
            let asked = left > 0 && (!plan.gated || rows.len() < plan.max_jobs as usize || count > 0);
            left = left.saturating_sub(count);
            if !asked {
                continue;
            }
            if plan.hints[place] == 0 {
                lane.scanned_ms = Some(sent);
            }
            if count > 0 {
                self.turns += 1;
                lane.turn = self.turns;
                lane.hint = last + 1;
                lane.head = Some(last + 1);
                lane.hold_ms = HOLD_MS.0;
            }
            let short = count < plan.quotas[place] as usize && left > 0;
            if short {
                if lane.scanned_ms.is_none_or(|at| now >= at + RESCAN_MS) {
                    lane.hint = 0;
                }
                lane.gate_seen |= count == 0 && lane.head_seen;
                if lane.has_gate() {
                    lane.hold(now);
                } else {
                    lane.head = None;
                }
            } else if count > 0 {
                lane.gate_seen = false;
            }
            lane.head_seen &= count == 0;
        }
        self.find_next_hold(now);
    }

    /// An attempt of this lane has ended: its endpoint and its queue may have a slot again.
    pub fn unhold(&mut self, id: i64) {
        let Some(row) = self.row(id) else { return };
        let shares =
            |other: &LaneRow| other.queue == row.queue || (row.endpoint.is_some() && other.endpoint == row.endpoint);
        for lane in self.lanes.values_mut().filter(|lane| lane.held_until_ms > 0 && shares(&lane.row)) {
            lane.held_until_ms = 0;
        }
    }

    /// When a held lane with work may be asked again.
    pub fn next_hold(&self) -> Option<Millis> {
        self.next_hold_ms
    }

    /// Whether some lane may be asked now.
    pub fn any_claimable(&self, now: Millis) -> bool {
        self.lanes.values().any(|lane| lane.claimable(now))
    }

    fn find_next_hold(&mut self, now: Millis) {
        self.next_hold_ms = self
            .lanes
            .values()
            .filter(|lane| lane.head.is_some() && lane.held_until_ms > now)
            .map(|lane| lane.held_until_ms)
            .min();
    }
}
