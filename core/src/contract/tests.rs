//! What the one validator says, in its own words, and how far it goes.

use super::*;
use serde_json::json;
use std::time::{Duration, Instant};

fn contract(input: Value) -> Contract {
    let text = json!({"type": "charge", "version": "1", "inputSchema": input, "outputSchema": null});
    Contract::read(&text.to_string()).unwrap()
}

/// What is said of a payload; nothing when it is sound.
fn said(schema: Value, payload: &str) -> String {
    match contract(schema).check_payload(Some(payload), "payload") {
        Ok(()) => String::new(),
        Err(violation) => {
            let said = violation.message().strip_prefix("payload does not match contract charge@1: ");
            said.expect("it begins with the contract").to_owned()
        }
    }
}

fn raw(schema: &str, payload: &str) -> String {
    said(serde_json::from_str(schema).unwrap(), payload)
}

fn no_schema(schema: &str) -> Fault {
    Schema::compile(schema, "inputSchema").err().unwrap_or_else(|| panic!("a schema: {schema}"))
}

#[test]
fn every_problem_has_its_path_and_its_sentence() {
    for (schema, payload, expected) in [
        (json!({"type": "object"}), "1", "payload must be an object"),
        (json!({"type": ["string", "null"]}), "1", "payload must be null or a string"),
        (json!({"required": ["a"]}), "{}", "payload.a is missing"),
        (json!({"required": ["b~/c"]}), "{}", r#"payload["b~/c"] is missing"#),
        (json!({"properties": {"0": {"type": "null"}}}), r#"{"0":1}"#, r#"payload["0"] must be null"#),
        (json!({"items": {"properties": {"": false}}}), r#"[{"":1}]"#, r#"payload[0][""] is not allowed"#),
        (
            json!({"properties": {"a": true}, "additionalProperties": false}),
            r#"{"b":1}"#,
            r#"payload must not have the member "b""#,
        ),
        (json!({"unevaluatedProperties": false}), r#"{"b":1,"c":2}"#, r#"payload must not have the members "b", "c""#),
        (json!({"propertyNames": {"maxLength": 2}}), r#"{"abc":1}"#, r#"payload must not have the member "abc""#),
        (json!({"enum": [1, "a", null]}), "2", r#"payload must be one of [1,"a",null]"#),
        (json!({"const": {"a": 1}}), "2", r#"payload must be {"a":1}"#),
        (json!({"minimum": 2}), "1", "payload must be at least 2"),
        (json!({"maximum": 2}), "3", "payload must be at most 2"),
        (json!({"exclusiveMinimum": 2}), "2", "payload must be more than 2"),
        (json!({"exclusiveMaximum": 2}), "2", "payload must be less than 2"),
        (json!({"multipleOf": 2}), "3", "payload must be a multiple of 2"),
        (json!({"minLength": 2}), r#""é""#, "payload must have at least 2 characters"),
        (json!({"maxLength": 1}), r#""ab""#, "payload must have at most 1 character"),
        (json!({"pattern": "^a+$"}), r#""b""#, "payload must match the pattern ^a+$"),
        (json!({"minItems": 1}), "[]", "payload must have at least 1 item"),
        (json!({"maxItems": 1}), "[1,2]", "payload must have at most 1 item"),
        (json!({"uniqueItems": true}), "[1,1.0]", "payload must not have equal items"),
        (json!({"minProperties": 1}), "{}", "payload must have at least 1 member"),
        (json!({"maxProperties": 0}), r#"{"a":1}"#, "payload must have at most 0 members"),
        (json!({"not": {"type": "null"}}), "null", "payload must not match the schema under not"),
        (
            json!({"oneOf": [{"minimum": 1}, {"maximum": 9}]}),
            "5",
            "payload must match one alternative of oneOf and no other",
        ),
        (json!({"prefixItems": [true], "items": false}), "[1,2]", "payload[1] is not allowed"),
        (json!({"unevaluatedItems": false}), "[1]", "payload must not have items beyond those its schema describes"),
        (json!({"dependentRequired": {"a": ["b"]}}), r#"{"a":1}"#, "payload.b is missing"),
        (json!(false), "1", "payload is not allowed"),
        (
            json!({"contains": {"const": 1}}),
            "[2]",
            "payload must have the items that contains asks for, as many as it asks for",
        ),
    ] {
        assert_eq!(said(schema.clone(), payload), expected, "{schema}");
    }
}

#[test]
fn alternatives_are_told_by_the_one_that_was_meant() {
    let optional = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
    assert_eq!(said(optional, r#""x""#), "payload must be an integer or null");
    let object = json!({"anyOf": [{"type": "object", "required": ["a"]}, {"type": "null"}]});
    assert_eq!(said(object, "{}"), "payload.a is missing");
    let open = json!({"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]});
    assert_eq!(said(open, "{}"), "payload must match an alternative of oneOf");
}

#[test]
fn at_most_five_problems_are_named_in_the_order_of_their_places() {
    let schema = json!({"items": {"type": "string"}});
    let violation =
        contract(schema).check_payload(Some(&Value::from(vec![1; 12]).to_string()), "jobs[3].payload").unwrap_err();
    let error = Error::from(violation);
    assert_eq!(error.code(), "contract_violation");
    assert_eq!(error.details()["path"], "jobs[3].payload[0]");
    let problems = error.details()["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 5);
    assert_eq!(problems[4], json!({"path": "jobs[3].payload[4]", "message": "must be a string"}));
    assert!(error.message().ends_with("; and more"), "{}", error.message());
    let schema = json!({"items": {"maxLength": 1}});
    let payload = json!(["", "", "aa", "", "", "", "", "", "", "", "bb"]).to_string();
    let expected = "payload[2] must have at most 1 character; payload[10] must have at most 1 character";
    assert_eq!(said(schema, &payload), expected);
}

#[test]
fn no_sentence_carries_the_value_or_grows_with_it() {
    let secret = "s3cr3t".repeat(1_000);
    let keys: serde_json::Map<String, Value> = (0..50).map(|n| (format!("{n}{secret}"), json!(1))).collect();
    let payload = json!({"a": secret, "b": [secret], "k": keys}).to_string();
    let schema = json!({
        "properties": {
            "a": {"type": "integer", "enum": [1, "x".repeat(5_000)], "pattern": format!("^{}$", "y".repeat(5_000))},
            "b": {"items": {"maxLength": 3}},
            "k": {"additionalProperties": false},
        },
        "required": ["z".repeat(5_000)],
    });
    let all = said(schema, &payload);
    assert!(all.len() < 2_000, "{} bytes", all.len());
    assert!(all.matches("s3cr3t").count() < 100, "only the beginnings of names: {all}");
    assert!(!said(json!({"type": "integer"}), &payload).contains("s3cr3t"));
}

#[test]
fn the_same_words_whatever_the_order_of_compilation() {
    let schema = json!({
        "properties": {"a": {"type": "string"}, "b": {"minimum": 5}, "c": {"enum": [1]}},
        "patternProperties": {"^x": {"type": "null"}, "y$": {"maximum": 0}},
        "required": ["p", "q"], "additionalProperties": false,
    });
    let payload = r#"{"a":1,"b":2,"c":3,"xy":4,"other":5}"#;
    let first = said(schema.clone(), payload);
    assert!((0..50).all(|_| said(schema.clone(), payload) == first));
}

#[test]
fn numbers_keep_their_digits() {
    let big = "123456789012345678901234567890";
    for (schema, payload, sound) in [
        (r#"{"type":"integer"}"#, big, true),
        (r#"{"type":"integer"}"#, "2.0", true),
        (r#"{"type":"integer"}"#, "1e3", true),
        (r#"{"type":"integer"}"#, "1e400", true),
        (r#"{"type":"integer"}"#, "2.5", false),
        (r#"{"type":"integer"}"#, "123456789012345678901234567890.5", false),
        (r#"{"maximum":9007199254740992}"#, "9007199254740993", false),
        (r#"{"maximum":9007199254740993}"#, "9007199254740993", true),
        (r#"{"minimum":123456789012345678901234567891}"#, big, false),
        (r#"{"minimum":123456789012345678901234567890}"#, big, true),
        (r#"{"exclusiveMaximum":123456789012345678901234567890}"#, big, false),
        (r#"{"multipleOf":2}"#, "9007199254740993", false),
        (r#"{"multipleOf":2}"#, "123456789012345678901234567891", false),
        (r#"{"multipleOf":2}"#, big, true),
        (r#"{"multipleOf":0.01}"#, "0.07", true),
        (r#"{"multipleOf":0.01}"#, "1.001", false),
        (r#"{"multipleOf":10000000000000000000000}"#, "30000000000000000000001", false),
        (r#"{"const":9007199254740993}"#, "9007199254740992", false),
        (r#"{"const":123456789012345678901234567890}"#, "123456789012345678901234567891", false),
        (r#"{"const":2}"#, "2.0", true),
        (r#"{"enum":[1,100]}"#, "1e2", true),
        (r#"{"uniqueItems":true}"#, "[9007199254740993,9007199254740992]", true),
        (r#"{"minimum":0}"#, "-1e400", false),
        (r#"{"maximum":0.1}"#, "0.1000000000000000000000001", false),
    ] {
        assert_eq!(raw(schema, payload).is_empty(), sound, "{schema} of {payload}");
    }
    assert_eq!(
        raw(r#"{"maximum":123456789012345678901234567890}"#, "123456789012345678901234567891"),
        "payload must be at most 123456789012345678901234567890"
    );
}

#[test]
fn a_missing_value_counts_as_null() {
    assert!(contract(json!({"type": "null"})).check_payload(None, "payload").is_ok());
    assert!(contract(json!({"type": "object"})).check_payload(None, "payload").is_err());
    let published = json!({"type": "t", "version": "2", "outputSchema": {"type": "integer"}});
    let contract = Contract::read(&published.to_string()).unwrap();
    assert!(contract.checks_results() && contract.check_payload(None, "payload").is_ok());
    assert_eq!(
        contract.check_result(None).unwrap_err().message(),
        "result does not match contract t@2: result must be an integer"
    );
}

#[test]
fn what_is_no_schema_is_refused_by_its_place() {
    for (schema, path) in [
        ("1", "inputSchema"),
        ("null", "inputSchema"),
        (r#"{"type":"no such type"}"#, "inputSchema.type"),
        (r#"{"properties":{"a":{"minimum":"x"}}}"#, "inputSchema.properties.a.minimum"),
        (r#"{"allOf":[{},{"required":"a"}]}"#, "inputSchema.allOf[1].required"),
        (r#"{"pattern":"("}"#, "inputSchema.pattern"),
        (r#"{"pattern":"(?=x)"}"#, "inputSchema.pattern"),
        (r#"{"pattern":"(x{1000}){1000}"}"#, "inputSchema.pattern"),
        (r##"{"$ref":"#/$defs/missing"}"##, "inputSchema"),
        (r#"{"properties":{"a":{"$ref":"other.json"}}}"#, "inputSchema"),
        (r#"{"$ref":"https://example.com/a.json"}"#, "inputSchema"),
        (r#"{"$ref":"file:///etc/hostname"}"#, "inputSchema"),
        (r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#, "inputSchema.$schema"),
    ] {
        let fault = no_schema(schema);
        assert_eq!(fault.path.replace("[\"$schema\"]", ".$schema"), path, "{schema}");
        assert!(fault.message.starts_with("inputSchema") && fault.message.len() < 600, "{}", fault.message);
    }
    assert!(no_schema(r#"{"pattern":"(?=x)"}"#).message.contains("linear time"));
    assert!(Schema::compile(r#"{"$schema":"https://json-schema.org/draft/2020-12/schema"}"#, "s").is_ok());
    assert!(Schema::compile(r#"{"$ref":"https://json-schema.org/draft/2020-12/schema"}"#, "s").is_ok());
}

#[test]
fn a_publication_is_refused_by_the_name_of_its_schema() {
    assert!(check_publication(r#"{"type":"t","inputSchema":true,"outputSchema":{"type":"object"}}"#).is_ok());
    for (args, field) in [
        (r#"{"type":"t","inputSchema":{"type":7}}"#, "inputSchema"),
        (r#"{"type":"t","outputSchema":[]}"#, "outputSchema"),
        (r#"{"type":"t","outputSchema":null}"#, "outputSchema"),
        (r#"{"type":"t","inputSchema":{"const":"\u0000"}}"#, "inputSchema"),
    ] {
        let error = check_publication(args).unwrap_err();
        assert_eq!((error.code(), &error.details()["field"]), ("invalid_argument", &json!(field)), "{args}");
    }
    let large = json!({"type": "t", "inputSchema": {"const": "x".repeat(MAX_SCHEMA_BYTES)}}).to_string();
    assert_eq!(check_publication(&large).unwrap_err().details()["limit"], MAX_SCHEMA_BYTES);
}

#[test]
fn a_contract_that_only_sql_took_matches_nothing() {
    let broken = contract(json!({"type": "no such type"}));
    let violation = broken.check_payload(Some("1"), "payload").unwrap_err();
    assert!(violation.message().contains("payload cannot be checked: inputSchema.type is no JSON Schema"));
    let gone = Contract::missing("t", "1").check_payload(None, "payload").unwrap_err();
    assert_eq!(
        gone.message(),
        "payload does not match contract t@1: payload cannot be checked: contract t@1 is not there any more"
    );
}

#[test]
fn schemas_that_refer_to_themselves_come_to_an_end() {
    for schema in [r##"{"$ref":"#"}"##, r##"{"anyOf":[{"$ref":"#"},{"type":"string"}]}"##] {
        assert_eq!(raw(schema, "1"), "");
    }
    let tree = r##"{"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#"}}]}"##;
    let deep = |leaf: &str| format!("{}{leaf}{}", "[".repeat(100), "]".repeat(100));
    // The stack of the smallest thread that checks.
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let check = move || (raw(tree, &deep("1")), raw(tree, &deep("null")));
    let (sound, wrong) = small.spawn(check).unwrap().join().unwrap();
    assert_eq!(sound, "");
    assert!(wrong.contains("must be an integer or an array"), "{wrong}");
}

#[test]
fn no_schema_and_no_payload_takes_more_than_its_share() {
    let mut definitions = serde_json::Map::new();
    for n in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        definitions.insert(format!("d{n}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("d40".into(), json!({"type": "integer"}));
    let doubling = json!({"$defs": definitions, "$ref": "#/$defs/d0"});
    let wide = Value::from(vec![1; 300_000]).to_string();
    for (schema, payload, expected) in [
        (doubling.clone(), "1", "payload takes too much work to check against its schema"),
        (doubling, "null", "payload must be an integer; and more"),
        (json!({"items": {"type": "string"}}), wide.as_str(), "payload[0] must be a string; and more"),
        (
            json!({"anyOf": [{"items": {"type": "string"}}, {"items": {"type": "null"}}]}),
            wide.as_str(),
            "payload must match its schema",
        ),
        (
            json!({"pattern": "^(a+)+$"}),
            &format!("\"{}b\"", "a".repeat(50_000)),
            "payload must match the pattern ^(a+)+$",
        ),
    ] {
        let started = Instant::now();
        assert_eq!(said(schema, payload), expected);
        assert!(started.elapsed() < Duration::from_secs(20), "{expected}: {:?}", started.elapsed());
    }
}
