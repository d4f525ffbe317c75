//! What `core::json` lets through, PostgreSQL can store; what it refuses for a number's size, PostgreSQL refuses.

mod scratch;

use drayhorse_core::json::{MAX_VALUE_BYTES, scan};
use scratch::{SERVERS, Scratch};

#[test]
fn the_bounds_of_numbers_are_those_of_postgresql() {
    let digits = |n: usize| "7".repeat(n);
    let values = [
        "1e131071".to_owned(),
        "1e131072".to_owned(),
        digits(131_072),
        digits(131_073),
        "10e131070".to_owned(),
        "10e131071".to_owned(),
        "0.001e131074".to_owned(),
        "0.001e131075".to_owned(),
        "0e131072".to_owned(),
        "0e1073741822".to_owned(),
        // 0e1073741823 is refused by PostgreSQL 15 alone, and so by the scan.
        "0e1073741824".to_owned(),
        "0e-16383".to_owned(),
        "0e-16384".to_owned(),
        "1e-16383".to_owned(),
        "1e-16384".to_owned(),
        "1.0e-16383".to_owned(),
        format!("0.{}", digits(16_383)),
        format!("0.{}", digits(16_384)),
        format!("-{}.{}", digits(131_072), digits(16_383)),
        format!("0.{}e16383", digits(32_766)),
        format!("0.{}e16382", digits(32_766)),
        "123456789012345678901234567890".to_owned(),
        "-0.0".to_owned(),
        r#"{"a":"x\\u0000y"}"#.to_owned(),
        r#""\u0000""#.to_owned(),
        r#""\ud83d\ude00""#.to_owned(),
        r#""\ud83d""#.to_owned(),
        r#""\ude00\ud83d""#.to_owned(),
        format!("{}{}", "[".repeat(100), "]".repeat(100)),
    ];
    for server in SERVERS {
        let mut database = Scratch::open(server, "json", &[]);
        for value in &values {
            let stored = database.query_one("select ($1::text::jsonb)::text", &[value]);
            let shown = &value[..value.len().min(40)];
            assert_eq!(scan(value, "payload", MAX_VALUE_BYTES).is_ok(), stored.is_ok(), "{server}: {shown}");
        }
    }
}
