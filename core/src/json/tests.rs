//! The scanner against serde_json, and every refusal with its path.

use super::*;
use proptest::prelude::*;
use serde_json::value::RawValue;

fn refusal(json: &str) -> String {
    let error = scan(json, "payload", MAX_VALUE_BYTES).expect_err(json);
    assert_eq!(error.kind(), Kind::PayloadInvalid, "{json}");
    assert!(error.details().contains_key("path"), "{json}");
    error.message().to_owned()
}

#[test]
fn what_postgresql_cannot_keep_is_refused_with_its_path() {
    for (json, message) in [
        (r#"{"items":[0,1,2,"a\u0000b"]}"#, "payload.items[3]: U+0000 cannot be stored; remove it or encode it"),
        (r#""\u0000""#, "payload: U+0000 cannot be stored; remove it or encode it"),
        (r#"{"a":{"b\u0000":1}}"#, "payload.a: a key holds U+0000, which cannot be stored; remove it or encode it"),
        (r#"{"a b":["\ud800"]}"#, "payload[\"a b\"][0]: a lone surrogate cannot be stored; remove it or encode it"),
        (r#"["\ud83d\ud83d\ude00"]"#, "payload[0]: a lone surrogate cannot be stored; remove it or encode it"),
        (r#"["\udc00\ud800"]"#, "payload[0]: a lone surrogate cannot be stored; remove it or encode it"),
        (r#"{"x":NaN}"#, "payload.x: NaN and infinities cannot be stored"),
        (r#"[1,-Infinity]"#, "payload[1]: NaN and infinities cannot be stored"),
        (
            r#"{"x":{"y":1e131072}}"#,
            "payload.x.y: a number with more than 131072 digits before or 16383 after the point cannot be stored",
        ),
        (r#"{"x":1,}"#, "payload: not valid JSON: a key expected at byte 7"),
        (r#"{"x":[1,]}"#, "payload.x[1]: not valid JSON: a value expected at byte 8"),
        ("\"a\nb\"", "payload: not valid JSON: an escape instead of a control character expected at byte 2"),
        (r#"{"x":"a"#, "payload.x: not valid JSON: the end of a string expected at byte 7"),
        ("1 2", "payload: not valid JSON: the end expected at byte 2"),
        ("", "payload: not valid JSON: a value expected at byte 0"),
        (r#"{"done":[{"q":1},"x"],"a":01}"#, "payload.a: not valid JSON: a comma or } expected at byte 27"),
    ] {
        assert_eq!(refusal(json), message, "{json}");
    }
}

#[test]
fn harmless_neighbours_pass() {
    for json in [
        r#"{"a":"x\\u0000y"}"#,
        r#""\\\\u0000""#,
        r#""\ud83d\ude00""#,
        r#""\uFFFF\u0001""#,
        r#"{"":1,"":2}"#,
        " [ ] ",
        "{}",
        "null",
        r#""""#,
        "-0",
        "1e131071",
    ] {
        scan(json, "payload", MAX_VALUE_BYTES).expect(json);
    }
}

#[test]
fn nesting_ends_at_100() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(scan(&nested(100), "payload", MAX_VALUE_BYTES).is_ok());
    let error = scan(&nested(101), "payload", MAX_VALUE_BYTES).unwrap_err();
    assert!(error.message().starts_with("payload[0][0]"));
    assert!(error.message().ends_with("nesting over 100"));
    assert!(error.message().chars().count() < 250, "a path stays readable");
    assert_eq!(error.details()["limit"], 100);
    let objects = format!("{}1{}", r#"{"a":"#.repeat(101), "}".repeat(101));
    assert!(scan(&objects, "payload", MAX_VALUE_BYTES).is_err());
    // A depth no stack would survive, were the scan recursive.
    assert!(scan(&"[".repeat(1_000_000), "payload", MAX_VALUE_BYTES).is_err());
}

#[test]
fn arguments_hold_values_of_every_depth() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    for around in [("{\"result\":", "}"), ("{\"claim\":{\"payload\":", "}}"), ("{\"claims\":[{\"payload\":", "}]}")] {
        let args = format!("{}{}{}", around.0, nested(MAX_NESTING), around.1);
        assert!(scan_arguments(&args, MAX_VALUE_BYTES).is_ok(), "{}", around.0);
    }
    let args = format!("{{\"result\":{}}}", nested(MAX_NESTING + 3));
    assert_eq!(scan_arguments(&args, MAX_VALUE_BYTES).unwrap_err().code(), "payload_invalid");
}

#[test]
fn size_is_told_before_anything_else() {
    let error = scan("\"\\u0000 and more\"", "result", 5).unwrap_err();
    assert_eq!(error.kind(), Kind::PayloadTooLarge);
    assert_eq!(error.message(), "result is 17 bytes of JSON; the limit is 5");
    assert_eq!(error.details()["path"], "result");
    assert_eq!(error.details()["limit"], 5);
    assert!(scan("12345", "result", 5).is_ok());
}

#[test]
fn big_numbers_are_found_wherever_they_are() {
    let big = |json: &str| scan(json, "payload", MAX_VALUE_BYTES).expect(json).big_numbers;
    assert!(big(r#"{"a":[{"id":1970670598291982290}],"b":1}"#));
    assert!(big("-9007199254740992"));
    assert!(!big("9007199254740991"));
    assert!(!big(r#"{"9007199254740993":"9007199254740993","x":9007199254740993.5}"#));
}

#[test]
fn repair_touches_nothing_but_what_cannot_be_kept() {
    for (json, repaired) in [
        (r#""a\u0000b""#, r#""a\ufffdb""#),
        (r#""a\\u0000b""#, r#""a\\u0000b""#),
        (r#""a\\\u0000b""#, r#""a\\\ufffdb""#),
        (r#""\ud83d\ude00\ud83d""#, r#""\ud83d\ude00\ufffd""#),
        (r#""\udcff\udcff""#, r#""\ufffd\ufffd""#),
        (r#""\ud800\u0041""#, r#""\ufffd\u0041""#),
        (r#""plain é""#, r#""plain é""#),
        (r#""open\"#, r#""open\"#),
        (r#""é\u00"#, r#""é\u00"#),
    ] {
        assert_eq!(repair(json), repaired);
    }
}

#[test]
fn text_is_cut_between_characters() {
    assert_eq!(sanitize_text("short", 5), "short");
    assert_eq!(sanitize_text("longer", 5), "lo…");
    assert_eq!(sanitize_text("a\0b", 10), "a\u{FFFD}b");
    assert_eq!(sanitize_text("\0\0", 5), "…");
    assert_eq!(sanitize_text("ééé", 5), "é…");
    assert_eq!(sanitize_text("éé", 3), "é");
    assert_eq!(sanitize_text("é", 1), "");
    assert_eq!(sanitize_text("", 0), "");
}

#[test]
fn any_error_a_host_sends_can_be_recorded() {
    let huge = format!(
        r#"{{"name":"ValueError","message":"bad \u0000 byte \udcff {}","stack":null,"x":1}}"#,
        "y".repeat(5 << 20)
    );
    let error = sanitize_error(&huge);
    assert_eq!(error["name"], "ValueError");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("bad \u{FFFD} byte \u{FFFD} yy"));
    assert!(message.ends_with('…') && message.len() <= 16 << 10);
    assert!(error.get("stack").is_none() && error.get("x").is_none());

    let caused = sanitize_error(r#"{"message":7,"stack":"at 1","causes":[{"name":"A","message":"b"},"text",null]}"#);
    assert_eq!(
        caused,
        serde_json::json!({"name": "Error", "message": "7", "stack": "at 1", "causes": [
            {"name": "A", "message": "b"},
            {"name": "Error", "message": "text"},
            {"name": "Error", "message": ""},
        ]})
    );
    assert_eq!(sanitize_error("no \u{0} JSON")["message"], "no \u{FFFD} JSON");
    assert_eq!(sanitize_error("null")["message"], "");
}

/// JSON text with the faults that people and programs make.
fn jsonish() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a\":", "\"b\":1,", "\"k\":{", "\"l\":[", "1", "0", "-1", "1.5", "1e3",
            "1e", "1.", "-", "01", "true", "false", "null", "nul", " ", "\n", "\\", "\"\\n\"", "\"\\u0000\"", "\"\\ud800\"",
            "\"\\ud83d\\ude00\"", "\"\\u00e9\"", "\"\\x\"", "\"é\"", "NaN", "9007199254740993", "\"\\\\u0000\"",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(|s| s.replace('\0', "").into()),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(any::<String>().prop_map(|s| s.replace('\0', "")), inner, 0..6)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

/// What serde_json says agrees with what the scan says, as far as the two look for the same.
fn agrees(json: &str) {
    let valid = serde_json::from_str::<&RawValue>(json).is_ok();
    match walk(json.as_bytes(), MAX_NESTING) {
        Ok(_) => {
            assert!(valid && serde_json::from_str::<serde_json::Value>(json).is_ok(), "only serde_json refuses {json}")
        }
        Err(Fault { what: What::Syntax(_) | What::NotFinite, .. }) => assert!(!valid, "only the scan refuses {json}"),
        Err(_) => {}
    }
    let repaired = repair(json);
    assert_eq!(serde_json::from_str::<&RawValue>(&repaired).is_ok(), valid, "repair keeps validity: {json}");
    assert!(!matches!(
        walk(repaired.as_bytes(), MAX_NESTING),
        Err(Fault { what: What::Nul | What::LoneSurrogate, .. })
    ));
    if let Err(error) = scan(json, "payload", usize::MAX) {
        assert!(error.message().starts_with("payload"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn validity_is_that_of_serde_json(json in jsonish()) {
        agrees(&json);
    }

    #[test]
    fn every_json_value_passes_and_its_mutations_agree(value in json_value(), at in any::<prop::sample::Index>(), byte in any::<char>()) {
        let json = value.to_string();
        prop_assert!(scan(&json, "payload", MAX_VALUE_BYTES).is_ok(), "{json}");
        prop_assert!(scan(&serde_json::to_string_pretty(&value).unwrap(), "payload", MAX_VALUE_BYTES).is_ok());
        let mut chars: Vec<char> = json.chars().collect();
        let at = at.index(chars.len());
        chars[at] = byte;
        agrees(&chars.iter().collect::<String>());
        chars.remove(at);
        agrees(&chars.iter().collect::<String>());
    }

    #[test]
    fn numbers_agree_with_serde_json(text in "-?[0-9]{1,20}(\\.[0-9]{0,5})?([eE][+-]?[0-9]{0,4})?") {
        agrees(&text);
        if let Some(number) = Decimal::parse(&text) {
            let double: f64 = text.parse().unwrap();
            prop_assert_eq!(number.is_negative(), double < 0.0 || (text.starts_with('-') && !number.is_zero()));
            if let Some(value) = number.as_i64() {
                prop_assert!((value as f64 - double).abs() <= double.abs() * 1e-15, "{} {}", value, double);
            }
        }
    }

    #[test]
    fn cut_text_keeps_its_bound(text in any::<String>(), max_bytes in 0_usize..60) {
        let kept = sanitize_text(&text, max_bytes);
        prop_assert!(kept.len() <= max_bytes);
        prop_assert!(!kept.contains('\0'));
        if text.len() <= max_bytes && !text.contains('\0') {
            prop_assert_eq!(&*kept, text.as_str());
        }
    }
}
