//! The shared vectors, and what they cannot say: text in a row, random garbage, the whole range of statuses.

use super::*;
use proptest::prelude::*;

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    args: Value,
    decision: Option<Value>,
    error: Option<String>,
}

#[test]
fn shared_vectors() {
    let vectors: Vectors =
        serde_json::from_str(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/http.json"))).unwrap();
    assert!(vectors.cases.len() >= 200);
    for case in vectors.cases {
        match (decide(&case.args.to_string()), case.error) {
            (Ok(answer), None) => {
                let mut answer: Value = serde_json::from_str(&answer).unwrap();
                let reason = answer.as_object_mut().unwrap().remove("reason");
                assert!(reason.unwrap().as_str().is_some_and(|r| !r.is_empty()), "{}", case.name);
                assert_eq!(Some(answer), case.decision, "{}", case.name);
            }
            (Err(error), Some(code)) => assert_eq!(error.code(), code, "{}: {error}", case.name),
            (result, _) => panic!("{}: {result:?}", case.name),
        }
    }
}

#[test]
fn every_status_has_an_answer() {
    for status in 100..1_000 {
        let answer = decide(&json!({"response": {"status": status}}).to_string()).unwrap();
        assert!(answer.contains("\"reason\""), "{status}");
    }
}

#[test]
fn the_answer_is_json_in_the_shape_of_the_bridge() {
    let answer = decide(r#"{"response":{"status":503},"options":{"headers":{"Retry-After":"2"}}}"#).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&answer).unwrap(),
        json!({"retryable": true, "uncertain": false, "retryAfterMs": 2000, "reason": "the service is unavailable"})
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_header_can_do_harm(
        name in prop::sample::select(vec!["Retry-After", "RateLimit", "Date"]),
        value in prop_oneof![
            any::<String>(),
            "[ 0-9,:;=\"rtGMT-]{0,40}",
            "(Mon|Monday|Sun), ?[0-9]{1,2}[ -](Jan|Feb|Jux)[ -][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
        ],
    ) {
        let args = json!({"response": {"status": 429}, "options": {"headers": {name: value, "retry-after": "soon"}}});
        let answer: Value = serde_json::from_str(&decide(&args.to_string()).unwrap()).unwrap();
        if let Some(ms) = answer.get("retryAfterMs") {
            prop_assert!((1..=86_400_000).contains(&ms.as_i64().unwrap()), "{}", ms);
        }
    }

    #[test]
    fn the_three_forms_name_one_time(seconds in 0_i64..4_102_444_800) {
        let time = Timestamp::from_second(seconds).unwrap();
        let now = time;
        for form in ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"] {
            let text = time.strftime(form).to_string();
            prop_assert_eq!(date::parse(&text, now), Some(time), "{}", text);
        }
    }
}
