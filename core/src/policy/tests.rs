//! The shared vectors, and the traps of delay arithmetic: overflow, a cap that jitter passes, a wave that collapses.

use super::*;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    scope: String,
    policy: String,
    normalized: Option<Value>,
    error: Option<BTreeMap<String, String>>,
    #[serde(default)]
    delays: Vec<Value>,
    #[serde(default)]
    far: Vec<Value>,
}

fn job(value: &Value) -> Uuid {
    value["jobId"].as_str().unwrap().parse().unwrap()
}

#[test]
fn shared_vectors() {
    let vectors: Vectors =
        serde_json::from_str(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/policy.json")))
            .unwrap();
    assert!(vectors.cases.len() > 100);
    for case in vectors.cases {
        let name = &case.name;
        let scope = match case.scope.as_str() {
            "job" => Scope::Job,
            "endpoint" => Scope::Endpoint,
            other => panic!("{name}: scope {other}"),
        };
        match (Policy::parse(&case.policy, "retryPolicy", scope), case.error) {
            (Ok(policy), None) => {
                assert_eq!(Some(policy.to_json()), case.normalized, "{name}");
                let again = Policy::parse(&policy.to_json().to_string(), "p", Scope::Endpoint);
                assert_eq!(again, Ok(policy), "{name}: what is normalized stays as it is");
                for given in &case.delays {
                    let expected: Vec<i64> = serde_json::from_value(given["delaysMs"].clone()).unwrap();
                    let attempts = expected.len() as i32;
                    assert_eq!(policy.schedule(job(given), attempts).unwrap(), expected, "{name}");
                    let single: Vec<i64> = (1..=attempts).map(|n| policy.delay_ms(job(given), n).unwrap()).collect();
                    assert_eq!(single, expected, "{name}");
                }
                for given in &case.far {
                    let attempt = given["attempt"].as_i64().unwrap() as i32;
                    let delay = policy.delay_ms(job(given), attempt).unwrap();
                    assert_eq!(Some(delay), given["delayMs"].as_i64(), "{name} at {attempt}");
                }
            }
            (Err(error), Some(expected)) => {
                assert_eq!(error.code(), expected["code"], "{name}");
                assert_eq!(error.message(), expected["message"], "{name}");
                assert_eq!(error.details()["field"], expected["field"].as_str(), "{name}");
            }
            (result, _) => panic!("{name}: {result:?}"),
        }
    }
}

#[test]
fn text_that_cannot_be_a_policy_is_policy_invalid() {
    for (raw, message) in [
        ("{", "retryPolicy: not valid JSON: a key expected at byte 1"),
        (r#"{"type":"fixed","delayMs":NaN}"#, "retryPolicy.delayMs: NaN and infinities cannot be stored"),
        (r#"{"type":"\u0000"}"#, "retryPolicy.type: U+0000 cannot be stored; remove it or encode it"),
        (
            r#"{"type":"fixed","delayMs":1e999999999999}"#,
            "retryPolicy.delayMs: a number with more than 131072 digits before or 16383 after the point cannot be stored",
        ),
    ] {
        let error = Policy::parse(raw, "retryPolicy", Scope::Job).unwrap_err();
        assert_eq!(error.kind(), Kind::PolicyInvalid);
        assert_eq!(error.message(), message);
        assert!(error.details().contains_key("field"));
    }
    let error = Policy::parse("{}", "jobs[3].retryPolicy", Scope::Job).unwrap_err();
    assert_eq!(error.details()["field"], "jobs[3].retryPolicy.type");
}

#[test]
fn a_draw_far_out_is_exact() {
    let year = 31_536_000_000;
    assert_eq!(jitter(Uuid::max(), i32::MAX, year, 1, year), 22_677_029_999);
}

/// T11: no overflow to 0 or below, whatever the attempt.
#[test]
fn growth_reaches_its_cap_and_stays_there() {
    for multiplier in [2, 3, 7, 10, 99, 100] {
        for initial in [1, 2, 999, 1_000, 31_535_999_999, MAX_DELAY_MS] {
            let mut before = 0;
            for attempt in (1..70).chain([1_024, 1_025, i32::MAX - 1, i32::MAX]) {
                let delay = growth(initial, multiplier, MAX_DELAY_MS, attempt);
                assert!(delay >= before && delay <= MAX_DELAY_MS);
                before = delay;
            }
            assert_eq!(before, MAX_DELAY_MS);
        }
    }
}

/// T12: the cap bounds every draw, and a capped wave does not collapse on it.
#[test]
fn jitter_stays_below_the_cap_and_spreads() {
    let custom = Policy::Custom {
        max_attempts: 100,
        initial_delay_ms: 10_000,
        multiplier: 2,
        max_delay_ms: 60_000,
        jitter_percent: 50,
    };
    let decorrelated = Policy::DecorrelatedJitter { base_delay_ms: 1_000, max_delay_ms: 60_000 };
    for (policy, low, attempt) in [(custom, 30_000, 20), (custom, 30_000, 30), (decorrelated, 1_000, 30)] {
        let draws: Vec<i64> = (0..10_000_u128).map(|n| policy.delay_ms(Uuid::from_u128(n), attempt).unwrap()).collect();
        assert!(draws.iter().all(|d| (low..=60_000).contains(d)));
        // Every second of the window is used by about as many jobs.
        let mut seconds = BTreeMap::new();
        for draw in &draws[..1_000] {
            *seconds.entry(draw / 1_000).or_insert(0) += 1;
        }
        assert!(seconds.len() as i64 >= (60_000 - low) / 1_000, "{seconds:?}");
        assert!(*seconds.values().max().unwrap() < 100, "{seconds:?}");
    }
}

#[test]
fn attempts_out_of_range_are_refused() {
    let fixed = Policy::Fixed { delay_ms: 5 };
    let decorrelated = Policy::DecorrelatedJitter { base_delay_ms: 1, max_delay_ms: 9 };
    for (policy, attempt) in [(fixed, 0), (fixed, -1), (decorrelated, 10_001), (decorrelated, i32::MIN)] {
        let error = policy.delay_ms(Uuid::nil(), attempt).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument);
        assert_eq!(error.details()["field"], "attempt");
    }
    assert!(decorrelated.delay_ms(Uuid::nil(), 10_000).is_ok());
    assert!(fixed.schedule(Uuid::nil(), i32::MAX).is_err());
    assert_eq!(fixed.schedule(Uuid::nil(), 0), Ok(vec![]));
}

#[test]
fn compatibility_delays_grow_and_end() {
    assert_eq!(compatibility_delay_ms(1, 0.0), 15_000);
    assert_eq!(compatibility_delay_ms(1, 0.999), 24_000);
    assert_eq!(compatibility_delay_ms(3, 0.55), (16 + 15 + 15) * 1_000);
    assert_eq!(compatibility_delay_ms(100, 0.0), (96_059_601 + 15) * 1_000);
    assert_eq!(compatibility_delay_ms(i32::MAX, 0.5), MAX_AHEAD_MS);
}
