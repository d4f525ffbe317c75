//! Durations as people type and read them, and times as they are shown: always UTC, to the millisecond.

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// `500ms`, `30s`, `10m`, `2h`, `7d` in milliseconds. A bare number is refused: it would be guessed wrong.
pub fn parse_duration_ms(typed: &str) -> Result<u64, String> {
    let digits = typed.find(|c: char| !c.is_ascii_digit()).unwrap_or(typed.len());
    let (number, unit) = typed.split_at(digits);
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    match (number.parse::<u64>(), factor) {
        (Ok(number), Some(factor)) => number.checked_mul(factor).ok_or_else(|| "too long".to_owned()),
        _ => Err("a duration is a whole number and a unit: 500ms, 30s, 10m, 2h or 7d".to_owned()),
    }
}

/// The two largest units that say something: `1.5 s`, `2 min 3 s`, `4 h`, `3 d 2 h`.
pub fn shown_ms(ms: i128) -> String {
    let (sign, ms) = if ms < 0 { ("-", -ms) } else { ("", ms) };
    let body = match ms {
        0..=999 => format!("{ms} ms"),
        1_000..=59_999 if ms % 1_000 == 0 => format!("{} s", ms / 1_000),
        1_000..=59_999 => format!("{}.{:03} s", ms / 1_000, ms % 1_000).replace("0 s", " s").replace("0 s", " s"),
        60_000..=3_599_999 => two(ms / 60_000, "min", ms % 60_000 / 1_000, "s"),
        3_600_000..=86_399_999 => two(ms / 3_600_000, "h", ms % 3_600_000 / 60_000, "min"),
        _ => two(ms / 86_400_000, "d", ms % 86_400_000 / 3_600_000, "h"),
    };
    format!("{sign}{body}")
}

fn two(large: i128, large_unit: &str, small: i128, small_unit: &str) -> String {
    if small == 0 { format!("{large} {large_unit}") } else { format!("{large} {large_unit} {small} {small_unit}") }
}

/// `2030-01-31T18:00:00.123456Z` as `2030-01-31 18:00:00.123Z`; anything else as it is.
pub fn shown(rfc3339: &str) -> String {
    let bytes = rfc3339.as_bytes();
    let is_utc = bytes.len() >= 20 && bytes[10] == b'T' && rfc3339.is_ascii() && rfc3339.ends_with('Z');
    if !is_utc {
        return crate::text::line(rfc3339);
    }
    let fraction: String = rfc3339[19..].chars().filter(char::is_ascii_digit).chain("000".chars()).take(3).collect();
    format!("{} {}.{fraction}Z", &rfc3339[..10], &rfc3339[11..19])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration_ms("500ms"), Ok(500));
        assert_eq!(parse_duration_ms("2h"), Ok(7_200_000));
        for bad in ["10", "", "s", "-1s", "1.5s", "1 s", "1w", "99999999999999999999s", "18446744073709551615d"] {
            assert!(parse_duration_ms(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_are_read_at_a_glance() {
        let cases = [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_500, "1.5 s"),
            (10_005, "10.005 s"),
            (12_340, "12.34 s"),
            (123_000, "2 min 3 s"),
            (3_600_000, "1 h"),
            (93_600_000, "1 d 2 h"),
            (-5, "-5 ms"),
        ];
        for (ms, expected) in cases {
            assert_eq!(shown_ms(ms), expected);
        }
    }

    #[test]
    fn times_are_utc_to_the_millisecond() {
        assert_eq!(shown("2030-01-31T18:00:00.123456Z"), "2030-01-31 18:00:00.123Z");
        assert_eq!(shown("2030-01-31T18:00:00Z"), "2030-01-31 18:00:00.000Z");
        assert_eq!(shown("soon\x1b[2J"), "soon\\x1b[2J");
    }
}
