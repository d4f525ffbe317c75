//! Retry policies: which shapes a job or an endpoint may carry, and the delays each of them chooses. SQL decides
//! (`core/sql/policy.sql`); this module previews whole schedules and refuses early, with exactly the same numbers and
//! sentences, which tests compare over thousands of random policies. `enqueue` calls it.

#[cfg(test)]
mod tests;

use crate::error::{Error, Kind, Result};
use crate::json::{self, Decimal};
use crate::time::{MAX_AHEAD_MS, MAX_DELAY_MS};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The bound on delays of a `custom` policy: a day.
const MAX_CUSTOM_DELAY_MS: i64 = 86_400_000;
/// The draw of decorrelated jitter depends on the draw before it; no budget comes near the end of this chain.
const MAX_CHAIN: i32 = 10_000;
/// No policy is longer; the bound keeps refused ones cheap.
const MAX_POLICY_BYTES: usize = 64 << 10;

/// A normalized retry policy. Delays are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Always the same delay.
    Fixed {
        /// 0 to a year.
        delay_ms: i64,
    },
    /// Grows by a factor with each failed attempt, up to a cap.
    Exponential {
        /// 0 to a year: the delay after the first attempt.
        initial_delay_ms: i64,
        /// 1 to 100.
        multiplier: i64,
        /// The cap: `initial_delay_ms` to a year.
        max_delay_ms: i64,
    },
    /// A random delay between the base and three times the delay before it, up to a cap.
    DecorrelatedJitter {
        /// 1 to a year.
        base_delay_ms: i64,
        /// The cap: `base_delay_ms` to a year.
        max_delay_ms: i64,
    },
    /// Exponential growth in a window of plus or minus some percent, with a budget of its own; for endpoints and
    /// contracts. Presets are names for some of these.
    Custom {
        /// 1 to 100.
        max_attempts: i64,
        /// 0 to a day.
        initial_delay_ms: i64,
        /// 1 to 100.
        multiplier: i64,
        /// The cap, of the window too: `initial_delay_ms` to a day.
        max_delay_ms: i64,
        /// 0 to 100.
        jitter_percent: i64,
    },
}

/// Whose policy it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A job's own.
    Job,
    /// An endpoint's or a contract's, which may be a preset or `custom` too.
    Endpoint,
}

impl Policy {
    /// The policy that the JSON text `raw` describes; else `policy_invalid` naming the first fault. `field` is what
    /// the caller calls it. Keys are exact; numbers may be spelled in any way that is an integer.
    pub fn parse(raw: &str, field: &str, scope: Scope) -> Result<Policy> {
        json::scan(raw, field, MAX_POLICY_BYTES).map_err(|e| {
            let path = e.details().get("path").cloned().unwrap_or_default();
            Error::new(Kind::PolicyInvalid, e.message()).with("field", path)
        })?;
        match serde_json::from_str(raw) {
            Ok(Value::Object(given)) => Fields { given, field }.policy(scope),
            _ => Err(invalid(field, format!("{field} must be a JSON object"))),
        }
    }

    /// The form that is stored: exact keys, plain integers, presets spelled out as `custom`.
    pub fn to_json(&self) -> Value {
        match *self {
            Policy::Fixed { delay_ms } => json!({"type": "fixed", "delayMs": delay_ms}),
            Policy::Exponential { initial_delay_ms, multiplier, max_delay_ms } => json!({
                "type": "exponential", "initialDelayMs": initial_delay_ms, "multiplier": multiplier, "maxDelayMs": max_delay_ms,
            }),
            Policy::DecorrelatedJitter { base_delay_ms, max_delay_ms } => json!({
                "type": "decorrelated-jitter", "baseDelayMs": base_delay_ms, "maxDelayMs": max_delay_ms,
            }),
            Policy::Custom { max_attempts, initial_delay_ms, multiplier, max_delay_ms, jitter_percent } => json!({
                "type": "custom", "maxAttempts": max_attempts, "initialDelayMs": initial_delay_ms, "multiplier": multiplier,
                "maxDelayMs": max_delay_ms, "jitterPercent": jitter_percent,
            }),
        }
    }

    /// How the timeline names a delay that this policy chose.
    pub fn source(&self) -> &'static str {
        match self {
            Policy::Fixed { .. } => "policy:fixed",
            Policy::Exponential { .. } => "policy:exponential",
            Policy::DecorrelatedJitter { .. } => "policy:decorrelated-jitter",
            Policy::Custom { .. } => "policy:custom",
        }
    }

    /// The budget this policy brings along, if it has one.
    pub fn max_attempts(&self) -> Option<i64> {
        match *self {
            Policy::Custom { max_attempts, .. } => Some(max_attempts),
            _ => None,
        }
    }

    /// The delay after attempt number `attempt` of `job` has failed: a pure function of the three.
    pub fn delay_ms(&self, job: Uuid, attempt: i32) -> Result<i64> {
        let last = match self {
            Policy::DecorrelatedJitter { .. } => MAX_CHAIN,
            _ => i32::MAX,
        };
        if !(1..=last).contains(&attempt) {
            let message = format!("attempt must be an integer from 1 to {last}");
            return Err(Error::argument("attempt", message));
        }
        Ok(match *self {
            Policy::DecorrelatedJitter { base_delay_ms, .. } => {
                (1..=attempt).fold(base_delay_ms, |previous, n| self.draw(job, n, previous))
            }
            _ => self.draw(job, attempt, 0),
        })
    }

    /// The delays after the attempts 1 to `attempts`, as SQL will choose them.
    pub fn schedule(&self, job: Uuid, attempts: i32) -> Result<Vec<i64>> {
        if attempts > MAX_CHAIN {
            let message = format!("attempts must be an integer from 0 to {MAX_CHAIN}");
            return Err(Error::argument("attempts", message));
        }
        let mut previous = match *self {
            Policy::DecorrelatedJitter { base_delay_ms, .. } => base_delay_ms,
            _ => 0,
        };
        Ok((1..=attempts)
            .map(|attempt| {
                let delay = self.draw(job, attempt, previous);
                if let Policy::DecorrelatedJitter { .. } = self {
                    previous = delay;
                }
                delay
            })
            .collect())
    }

    /// One delay; `previous` is the draw before it where that matters, else 0.
    fn draw(&self, job: Uuid, attempt: i32, previous: i64) -> i64 {
        match *self {
            Policy::Fixed { delay_ms } => delay_ms,
            Policy::Exponential { initial_delay_ms, multiplier, max_delay_ms } => {
                growth(initial_delay_ms, multiplier, max_delay_ms, attempt)
            }
            Policy::DecorrelatedJitter { base_delay_ms, max_delay_ms } => {
                let upper = max_delay_ms.min(base_delay_ms.max(3 * previous));
                jitter(job, attempt, previous, base_delay_ms, upper)
            }
            Policy::Custom { initial_delay_ms, multiplier, max_delay_ms, jitter_percent, .. } => {
                // The cap is applied to the window, not to the draw: capped waves still spread.
                let middle = growth(initial_delay_ms, multiplier, max_delay_ms, attempt);
                let low = (middle * (100 - jitter_percent) + 99) / 100;
                let high = max_delay_ms.min(middle * (100 + jitter_percent) / 100);
                jitter(job, attempt, previous, low, high)
            }
        }
    }
}

/// `initial * multiplier^(attempt-1)`, at most `cap`; the power is not computed beyond the cap, so nothing overflows.
fn growth(initial: i64, multiplier: i64, cap: i64, attempt: i32) -> i64 {
    if multiplier == 1 || initial == 0 {
        return initial;
    }
    let mut delay = initial;
    for _ in 1..attempt {
        if delay >= cap {
            return cap;
        }
        delay *= multiplier;
    }
    delay.min(cap)
}

/// A number from `low` to `high` that depends on the job, the attempt and `previous` and on nothing else: 63 bits of
/// SHA-256, so that replaying a transition selects the same delay.
fn jitter(job: Uuid, attempt: i32, previous: i64, low: i64, high: i64) -> i64 {
    let mut hasher = Sha256::new();
    hasher.update(b"drayhorse/jitter/1");
    hasher.update(job.as_bytes());
    hasher.update(attempt.to_be_bytes());
    hasher.update(previous.to_be_bytes());
    let drawn = hasher.finalize()[..8].iter().fold(0_u64, |h, byte| h << 8 | u64::from(*byte)) & i64::MAX as u64;
    low + (drawn as i64) % (high - low + 1)
}

/// The delay of a job without a policy after an error or a timeout: `(attempt-1)^4 + 15 + floor(10 r) * attempt`
/// seconds with `r` in [0, 1). A hundred years at most, which no budget reaches.
pub fn compatibility_delay_ms(attempt: i32, r: f64) -> i64 {
    let attempt = i128::from(attempt);
    let seconds = (attempt - 1).pow(4) + 15 + (10.0 * r).floor() as i128 * attempt;
    seconds.min(i128::from(MAX_AHEAD_MS) / 1_000) as i64 * 1_000
}

fn invalid(field: &str, message: impl Into<String>) -> Error {
    Error::new(Kind::PolicyInvalid, message).with("field", field)
}

/// The keys of a policy that is being checked, in the order in which SQL checks them.
struct Fields<'a> {
    given: Map<String, Value>,
    field: &'a str,
}

impl Fields<'_> {
    fn policy(&self, scope: Scope) -> Result<Policy> {
        let kind = self.given.get("type").and_then(Value::as_str).unwrap_or_default();
        let presets = scope == Scope::Endpoint;
        match kind {
            "fixed" => {
                self.only(&["delayMs"])?;
                Ok(Policy::Fixed { delay_ms: self.integer("delayMs", 0, MAX_DELAY_MS)? })
            }
            "exponential" => {
                self.only(&["initialDelayMs", "multiplier", "maxDelayMs"])?;
                let initial_delay_ms = self.integer("initialDelayMs", 0, MAX_DELAY_MS)?;
                Ok(Policy::Exponential {
                    initial_delay_ms,
                    multiplier: self.integer("multiplier", 1, 100)?,
                    max_delay_ms: self.cap("initialDelayMs", initial_delay_ms, MAX_DELAY_MS)?,
                })
            }
            "decorrelated-jitter" => {
                self.only(&["baseDelayMs", "maxDelayMs"])?;
                let base_delay_ms = self.integer("baseDelayMs", 1, MAX_DELAY_MS)?;
                Ok(Policy::DecorrelatedJitter {
                    base_delay_ms,
                    max_delay_ms: self.cap("baseDelayMs", base_delay_ms, MAX_DELAY_MS)?,
                })
            }
            "standard" if presets => self.preset(5, 30_000, 900_000),
            "aggressive" if presets => self.preset(8, 5_000, 300_000),
            "relaxed" if presets => self.preset(3, 120_000, 1_800_000),
            "custom" if presets => {
                self.only(&["maxAttempts", "initialDelayMs", "multiplier", "maxDelayMs", "jitterPercent"])?;
                let max_attempts = self.integer("maxAttempts", 1, 100)?;
                let initial_delay_ms = self.integer("initialDelayMs", 0, MAX_CUSTOM_DELAY_MS)?;
                Ok(Policy::Custom {
                    max_attempts,
                    initial_delay_ms,
                    multiplier: self.integer("multiplier", 1, 100)?,
                    max_delay_ms: self.cap("initialDelayMs", initial_delay_ms, MAX_CUSTOM_DELAY_MS)?,
                    jitter_percent: self.integer("jitterPercent", 0, 100)?,
                })
            }
            "standard" | "aggressive" | "relaxed" | "custom" => Err(self.refuse(
                "type",
                format!(
                    ": {kind} is for endpoints and contracts; a job takes fixed, exponential or decorrelated-jitter"
                ),
            )),
            _ if presets => Err(self.refuse(
                "type",
                " must be fixed, exponential, decorrelated-jitter, standard, aggressive, relaxed or custom",
            )),
            _ => Err(self.refuse("type", " must be fixed, exponential or decorrelated-jitter")),
        }
    }

    fn preset(&self, max_attempts: i64, initial_delay_ms: i64, max_delay_ms: i64) -> Result<Policy> {
        self.only(&[])?;
        Ok(Policy::Custom { max_attempts, initial_delay_ms, multiplier: 2, max_delay_ms, jitter_percent: 20 })
    }

    /// Refuses the first key, in the order of its bytes, that is neither `type` nor one of `keys`.
    fn only(&self, keys: &[&str]) -> Result<()> {
        let unknown = self.given.keys().filter(|key| *key != "type" && !keys.contains(&key.as_str())).min();
        match unknown {
            None => Ok(()),
            Some(key) => {
                let shown: String = key.chars().take(100).collect();
                let path = format!("{}.{shown}", self.field);
                Err(invalid(&path, format!("unknown option: {path}")))
            }
        }
    }

    fn integer(&self, key: &str, low: i64, high: i64) -> Result<i64> {
        self.bounded(key, low, "", high)
    }

    /// A cap is never below what it caps.
    fn cap(&self, low_key: &str, low: i64, high: i64) -> Result<i64> {
        self.bounded("maxDelayMs", low, &format!(" ({low_key})"), high)
    }

    fn bounded(&self, key: &str, low: i64, low_name: &str, high: i64) -> Result<i64> {
        let Some(value) = self.given.get(key) else {
            return Err(self.refuse(key, " is missing"));
        };
        match value {
            Value::Number(number) => Decimal::parse(number.as_str()).and_then(|n| n.as_i64()),
            _ => None,
        }
        .filter(|n| (low..=high).contains(n))
        .ok_or_else(|| {
            let rule = format!(" must be an integer from {low}{low_name} to {high}");
            self.refuse(key, rule).with("low", low).with("high", high)
        })
    }

    fn refuse(&self, key: &str, rule: impl AsRef<str>) -> Error {
        let path = format!("{}.{key}", self.field);
        invalid(&path, format!("{path}{}", rule.as_ref()))
    }
}
