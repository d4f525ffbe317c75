//! Reports of a run: sent under the fences of its claims, and their answers held against the reference.

use crate::compare::same;
use crate::job::{Answer, Cause, Failure, Settled, compatibility_bounds};
use crate::run::Run;
use serde_json::{Value, json};

impl Run<'_> {
    pub fn complete(&mut self, keys: &[usize]) -> Result<(), String> {
        if keys.is_empty() {
            return Ok(());
        }
        let list = |part: &dyn Fn(usize) -> String| keys.iter().map(|key| part(*key)).collect::<Vec<_>>().join(",");
        let sql = format!(
            "select coalesce(to_jsonb(complete('{{{}}}', '{{{}}}', '{{{}}}', array_fill('1'::text, array[{}]))), '[]')::text",
            list(&|key| self.world.jobs[self.world.claims[key].job].id.clone()),
            list(&|key| self.world.claims[key].fence.0.clone()),
            list(&|key| self.world.claims[key].fence.1.to_string()),
            keys.len()
        );
        let codes: Vec<i64> = serde_json::from_str(&self.stage.text(&sql)).map_err(|e| e.to_string())?;
        for (n, key) in keys.iter().enumerate() {
            let accepted = codes.get(n).is_none_or(|code| *code < 2);
            same("accepted", &accepted, &self.world.complete(*key))?;
        }
        Ok(())
    }

    pub fn fail(&mut self, reports: &[(usize, Cause, Failure)]) -> Result<(), String> {
        if reports.is_empty() {
            return Ok(());
        }
        let given: Vec<Value> = reports.iter().map(|report| self.failure_json(report)).collect();
        let answers = self.stage.rpc("fail", &json!(given))?;
        let answers = answers.as_array().ok_or("no array")?;
        let mut told = Vec::new();
        for ((key, _, _), answer) in reports.iter().zip(answers) {
            let job = &self.world.jobs[self.world.claims[*key].job];
            let ms = answer["delayMs"].as_i64().filter(|_| answer["source"] == "legacy:error");
            if let (Settled::Not, Some(ms)) = (&self.world.claims[*key].settled, ms) {
                let (low, high) = compatibility_bounds(job.attempt);
                if !(low..=high).contains(&ms) {
                    return Err(format!("a compatibility delay of {ms} ms for {job:?}"));
                }
            }
            told.push(ms);
        }
        let expected = self.world.fail(reports, &told);
        for (expected, answer) in expected.iter().zip(answers) {
            let wanted = match expected {
                Answer::LeaseLost => json!({"error": "lease_lost"}),
                Answer::Ended { state, reason } => json!({"state": state, "reason": reason}),
                Answer::Retry { delay_ms, source } => {
                    let state = if *delay_ms == 0 { "ready" } else { "scheduled" };
                    json!({"state": state, "delayMs": delay_ms, "source": source})
                }
            };
            for (key, value) in wanted.as_object().expect("an object") {
                same(key, &answer[key], value)?;
            }
        }
        Ok(())
    }

    pub fn release(&mut self, key: usize) -> Result<(), String> {
        let args = json!({"claim": self.token(key)});
        let accepted = accepted(self.stage.rpc("rpc_release", &args))?;
        same("accepted", &accepted, &self.world.release(key))
    }

    /// A report on a claim that may have ended before.
    pub fn report(&mut self, key: usize, kind: u8) -> Result<(), String> {
        match kind {
            0 => self.complete(&[key]),
            1 => self.release(key),
            2 => self.fail(&[(key, Cause::Error, Failure { delay_ms: Some(0), ..Failure::default() })]),
            _ => {
                let again = match self.world.claims[key].settled {
                    Settled::Fail { cause, .. } if cause != Cause::Cancel => cause,
                    _ => Cause::Error,
                };
                self.fail(&[(key, again, Failure { delay_ms: Some(100), ..Failure::default() })])
            }
        }
    }

    pub fn heartbeat(&mut self, picks: &[u16], lease_ms: i64) -> Result<(), String> {
        if self.world.claims.is_empty() {
            return Ok(());
        }
        let mut keys: Vec<usize> = picks.iter().map(|pick| *pick as usize % self.world.claims.len()).collect();
        keys.sort_unstable();
        keys.dedup();
        let claims: Vec<Value> = keys.iter().map(|key| self.token(*key)).collect();
        let answers = self.stage.rpc("rpc_heartbeat", &json!({"claims": claims, "leaseMs": lease_ms}))?;
        for (n, key) in keys.iter().enumerate() {
            same("heartbeat", &answers[n], &self.world.heartbeat(*key, lease_ms * 1000).into())?;
        }
        Ok(())
    }

    fn token(&self, key: usize) -> Value {
        let claim = &self.world.claims[key];
        json!({"id": self.world.jobs[claim.job].id, "fence": format!("{}/{}", claim.fence.0, claim.fence.1)})
    }

    fn failure_json(&self, (key, cause, failure): &(usize, Cause, Failure)) -> Value {
        let claim = &self.world.claims[*key];
        let mut report = json!({
            "id": self.world.jobs[claim.job].id, "claim": claim.fence.0, "number": claim.fence.1, "cause": cause.name(),
            "error": {"name": "ModelError", "message": "as planned"}, "uncertain": failure.uncertain,
            "cancellation": failure.cancellation,
        });
        let optional = [
            ("retryable", failure.retryable.map(Value::from)),
            ("delayMs", failure.delay_ms.map(Value::from)),
            ("workerDelayMs", failure.worker_delay_ms.map(Value::from)),
            ("retryAfterMs", failure.hint_ms.map(Value::from)),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                report[name] = value;
            }
        }
        report
    }
}

/// Whether a report was taken; anything but `lease_lost` is a fault of the run.
fn accepted(answer: Result<Value, String>) -> Result<bool, String> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.contains("lease_lost") => Ok(false),
        Err(error) => Err(error),
    }
}
