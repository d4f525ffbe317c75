//! `core/sql/policy.sql` and `core::policy` are one set of rules: the same normalized forms, sentences and delays.

mod scratch;

use drayhorse_core::error::Kind;
use drayhorse_core::policy::{Policy, Scope, compatibility_delay_ms};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use scratch::{SERVERS, Scratch};
use serde_json::{Value, json};
use uuid::Uuid;

const FILES: [&str; 3] = [include_str!("../sql/errors.sql"), include_str!("../sql/policy.sql"), TRIAL];

/// What SQL makes of one policy: its form, source and delay, or the refusal.
const TRIAL: &str = "
    create function trial(given text, endpoint boolean, job uuid, attempt int) returns jsonb language plpgsql as $$
    declare
      policy jsonb;
      state text;
      sentence text;
      detail text;
    begin
      policy := case when endpoint then normalize_endpoint_policy(given::jsonb) else normalize_policy(given::jsonb) end;
      return jsonb_build_object('policy', policy, 'source', policy_source(policy), 'delay', policy_delay(policy, job, attempt));
    exception when others then
      get stacked diagnostics state = returned_sqlstate, sentence = message_text, detail = pg_exception_detail;
      return jsonb_build_object('state', state, 'message', sentence, 'detail', detail::jsonb);
    end $$";

/// The same in Rust.
fn trial(case: &Case) -> Value {
    let scope = match case.endpoint {
        true => Scope::Endpoint,
        false => Scope::Job,
    };
    let result = Policy::parse(&case.policy, "retryPolicy", scope).and_then(|policy| {
        let delay = policy.delay_ms(case.job, case.attempt)?;
        Ok(json!({"policy": policy.to_json(), "source": policy.source(), "delay": delay}))
    });
    result.unwrap_or_else(|error| {
        let mut detail = error.details().clone();
        detail.insert("code".into(), error.code().into());
        json!({"state": error.kind().sqlstate(), "message": error.message(), "detail": detail})
    })
}

#[derive(Clone, Debug)]
struct Case {
    policy: String,
    endpoint: bool,
    job: Uuid,
    attempt: i32,
}

/// A number near the bounds, in some spelling; now and then no number at all.
fn number() -> impl Strategy<Value = String> {
    let year = 31_536_000_000_i64;
    let day = 86_400_000_i64;
    let value = prop_oneof![
        4 => prop::sample::select(vec![0, 1, 2, 3, 20, 100, 1_000, 60_000, day, year]),
        4 => 0..=120_i64,
        4 => 0..=year,
        4 => 0..=day,
        1 => prop::sample::select(vec![-1, 101, day + 1, year + 1, i64::MAX, i64::MIN]),
    ];
    let spelled = (value, 0..8).prop_map(|(n, spelling)| match spelling {
        0 => format!("{n}.0"),
        1 => format!("{n}e0"),
        2 => format!("{}e-2", i128::from(n) * 100),
        3 => format!("{n}.000E+0"),
        _ => n.to_string(),
    });
    prop_oneof![
        40 => spelled,
        1 => prop::sample::select(vec![
            "-0", "0.5", "1.5", "1e-1", "1e30", "-1e400", "99999999999999999999", "null", "true", "\"1000\"", "[]", "{}",
        ]).prop_map(str::to_owned),
    ]
}

/// The keys a shape should have, and with some luck others, too many or too few.
fn shape() -> impl Strategy<Value = Vec<&'static str>> {
    let proper = prop::sample::select(vec![
        vec!["\"fixed\"", "delayMs"],
        vec!["\"exponential\"", "initialDelayMs", "multiplier", "maxDelayMs"],
        vec!["\"decorrelated-jitter\"", "baseDelayMs", "maxDelayMs"],
        vec!["\"custom\"", "maxAttempts", "initialDelayMs", "multiplier", "maxDelayMs", "jitterPercent"],
        vec!["\"standard\""],
        vec!["\"aggressive\""],
        vec!["\"relaxed\""],
        vec!["\"linear\"", "delayMs"],
        vec!["null", "delayMs"],
    ]);
    let extra = prop::sample::select(vec![
        "jitter",
        "failureThreshold",
        "Zzz",
        "",
        "ключ",
        "delayMs",
        "maxAttempts",
        "x'y\\\"z",
    ]);
    (proper, extra, 0..24).prop_map(|(mut keys, extra, luck)| {
        match luck {
            0 if keys.len() > 1 => {
                keys.remove(1);
            }
            1 => {
                keys.pop();
            }
            2 => keys.push(extra),
            3 => keys.insert(1, extra),
            _ => {}
        }
        keys
    })
}

fn case() -> impl Strategy<Value = Case> {
    let attempt = prop_oneof![8 => 1..=25_i32, 2 => 1..=100_i32, 1 => prop::sample::select(vec![0, -1, 300, i32::MAX])];
    // Often one small window of numbers, so that caps are neither always above nor always below what they cap.
    let numbers = prop::collection::vec(number(), 8);
    (shape(), numbers, any::<bool>(), any::<u128>(), attempt, any::<bool>()).prop_map(
        |(keys, mut numbers, endpoint, job, attempt, sorted)| {
            if sorted {
                numbers.sort_by_key(|n| n.parse::<f64>().map(|f| f as i64).unwrap_or(-1));
            }
            let mut members: Vec<String> =
                keys.iter().skip(1).zip(&numbers).map(|(key, n)| format!("\"{key}\":{n}")).collect();
            if let Some(kind) = keys.first() {
                members.insert(members.len() / 2, format!("\"type\":{kind}"));
            }
            let policy = format!("{{{}}}", members.join(", "));
            Case { policy, endpoint, job: Uuid::from_u128(job), attempt }
        },
    )
}

#[test]
fn ten_thousand_random_policies_agree() {
    let mut runner = TestRunner::deterministic();
    let strategy = case();
    let cases: Vec<Case> = (0..10_000).map(|_| strategy.new_tree(&mut runner).expect("a case").current()).collect();
    let expected: Vec<Value> = cases.iter().map(trial).collect();
    let accepted = expected.iter().filter(|e| e.get("policy").is_some()).count();
    assert!((2_000..9_000).contains(&accepted), "both outcomes are tested: {accepted}");

    for server in SERVERS {
        let mut database = Scratch::open(server, "policy", &FILES);
        let policies: Vec<&str> = cases.iter().map(|c| c.policy.as_str()).collect();
        let endpoints: Vec<bool> = cases.iter().map(|c| c.endpoint).collect();
        let jobs: Vec<Uuid> = cases.iter().map(|c| c.job).collect();
        let attempts: Vec<i32> = cases.iter().map(|c| c.attempt).collect();
        let rows = database
            .query(
                "select trial(g.policy, g.endpoint, g.job, g.attempt)::text
                 from unnest($1::text[], $2::boolean[], $3::uuid[], $4::int[]) with ordinality g (policy, endpoint, job, attempt, place)
                 order by g.place",
                &[&policies, &endpoints, &jobs, &attempts],
            )
            .expect("every refusal is caught");
        assert_eq!(rows.len(), cases.len());
        for ((row, case), expected) in rows.iter().zip(&cases).zip(&expected) {
            let mut answered: Value = serde_json::from_str(row.get(0)).expect("JSON");
            // A refused attempt number has no more to tell than its sentence.
            if answered["state"] == Kind::InvalidArgument.sqlstate() {
                assert_eq!(answered["detail"]["field"], "attempt");
                answered["detail"] = expected["detail"].clone();
            }
            assert_eq!(&answered, expected, "{server}: {case:?}");
        }
    }
}

#[test]
fn shared_vectors_hold_in_sql() {
    let vectors: Value = serde_json::from_str(include_str!("../../tests/vectors/policy.json")).expect("JSON");
    for server in SERVERS {
        let mut database = Scratch::open(server, "policy_vectors", &FILES);
        for case in vectors["cases"].as_array().expect("cases") {
            let name = &case["name"];
            let endpoint = case["scope"] == "endpoint";
            let mut ask = |job: &str, attempt: i64| -> Value {
                let job: Uuid = job.parse().expect("a UUID");
                let row = database
                    .query_one(
                        "select trial($1, $2, $3, $4)::text",
                        &[&case["policy"].as_str(), &endpoint, &job, &(attempt as i32)],
                    )
                    .expect("every refusal is caught");
                serde_json::from_str(row.get(0)).expect("JSON")
            };
            let first = ask("01890a5d-ac96-774b-bcce-b302099a8057", 1);
            if let Some(error) = case["error"].as_object() {
                assert_eq!(first["state"], "YD004", "{server}: {name}");
                assert_eq!(first["message"], error["message"], "{server}: {name}");
                assert_eq!(first["detail"]["field"], error["field"], "{server}: {name}");
                continue;
            }
            assert_eq!(first["policy"], case["normalized"], "{server}: {name}");
            for given in case["delays"].as_array().into_iter().flatten() {
                for (n, delay) in given["delaysMs"].as_array().expect("delays").iter().enumerate() {
                    let answered = ask(given["jobId"].as_str().expect("an id"), n as i64 + 1);
                    assert_eq!(&answered["delay"], delay, "{server}: {name} at {}", n + 1);
                }
            }
            for given in case["far"].as_array().into_iter().flatten() {
                let attempt = given["attempt"].as_i64().expect("an attempt");
                let answered = ask(given["jobId"].as_str().expect("an id"), attempt);
                assert_eq!(answered["delay"], given["delayMs"], "{server}: {name} at {attempt}");
            }
        }
        let row = database
            .query_one(
                "select jitter_draw('ffffffff-ffff-ffff-ffff-ffffffffffff', 2147483647, 31536000000, 1, 31536000000)",
                &[],
            )
            .expect("a draw");
        assert_eq!(row.get::<_, i64>(0), 22_677_029_999);
    }
}

#[test]
fn compatibility_delays_agree() {
    let attempts: Vec<i32> = (1..=100).chain([1_000, 20_000, i32::MAX]).collect();
    let randoms: Vec<f64> = (0..attempts.len()).map(|n| (n as f64 * 0.618_033_988_7).fract()).collect();
    let expected: Vec<i64> = attempts.iter().zip(&randoms).map(|(a, r)| compatibility_delay_ms(*a, *r)).collect();
    for server in SERVERS {
        let mut database = Scratch::open(server, "policy_compatibility", &FILES);
        let row = database
            .query_one(
                "select array_agg(compatibility_delay(g.attempt, g.r) order by g.place)
                 from unnest($1::int[], $2::float8[]) with ordinality g (attempt, r, place)",
                &[&attempts, &randoms],
            )
            .expect("delays");
        assert_eq!(row.get::<_, Vec<i64>>(0), expected, "{server}");
        let row = database
            .query_one("select min(d), max(d), count(distinct d) from (select compatibility_delay(2) d from generate_series(1, 1000)) x", &[])
            .expect("delays");
        assert_eq!((row.get(0), row.get(1), row.get(2)), (16_000_i64, 34_000_i64, 10_i64), "{server}");
    }
}
