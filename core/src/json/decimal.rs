//! A JSON number as it is written: its digits, without rounding. The scanner asks it whether PostgreSQL can hold the
//! number and whether a double would lose digits; policies, durations and hints ask for its integer value, so that
//! `1000`, `1e3` and `1000.0` are the same everywhere.

/// PostgreSQL's `numeric` holds this many digits before the point…
const MAX_WHOLE_DIGITS: i64 = 131_072;
/// …and this many after it.
const MAX_FRACTION_DIGITS: i64 = 16_383;
/// `numeric` refuses an exponent of this size even when the number is 0; versions after 15 allow one more.
const MAX_EXPONENT: i64 = i32::MAX as i64 / 2;
/// The largest integer up to which a double holds every one: 2^53-1.
const MAX_SAFE_INTEGER: i128 = 9_007_199_254_740_991;
/// Exponents saturate here, far beyond every bound above and far from overflow.
const EXPONENT_SATURATES: i64 = 1 << 40;

/// The parts of one number in the JSON grammar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Reads the number that starts at `start`; returns it with the offset after it, or the offset of the fault.
    pub(super) fn read(bytes: &'a [u8], start: usize) -> Result<(Decimal<'a>, usize), usize> {
        let digits = |from: usize| {
            let rest = &bytes[from.min(bytes.len())..];
            from + rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len())
        };
        let negative = bytes.get(start) == Some(&b'-');
        let from = start + usize::from(negative);
        let to = if bytes.get(from) == Some(&b'0') { from + 1 } else { digits(from) };
        if to == from {
            return Err(from);
        }
        let whole = &bytes[from..to];
        let mut end = to;
        let mut fraction = &bytes[..0];
        if bytes.get(end) == Some(&b'.') {
            let to = digits(end + 1);
            if to == end + 1 {
                return Err(to);
            }
            fraction = &bytes[end + 1..to];
            end = to;
        }
        let mut exponent = 0;
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = bytes.get(end + 1);
            let from = end + 1 + usize::from(matches!(sign, Some(b'+' | b'-')));
            let to = digits(from);
            if to == from {
                return Err(to);
            }
            exponent = bytes[from..to].iter().fold(0, |e, b| (e * 10 + i64::from(b - b'0')).min(EXPONENT_SATURATES));
            if sign == Some(&b'-') {
                exponent = -exponent;
            }
            end = to;
        }
        let decimal = Decimal { negative, whole, fraction, exponent };
        Ok((decimal, end))
    }

    /// The number that `text` is, if it is one and nothing else.
    pub(crate) fn parse(text: &'a str) -> Option<Decimal<'a>> {
        match Decimal::read(text.as_bytes(), 0) {
            Ok((decimal, end)) if end == text.len() => Some(decimal),
            _ => None,
        }
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.negative && !self.is_zero()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits().all(|d| d == b'0')
    }

    /// Whether the value, not the spelling, is an integer.
    pub(crate) fn is_integer(&self) -> bool {
        let mut after_point = self.fraction.len() as i64 - self.exponent;
        for digit in self.digits().rev() {
            if after_point <= 0 || digit != b'0' {
                break;
            }
            after_point -= 1;
        }
        after_point <= 0 || self.is_zero()
    }

    /// The value, if it is an integer that fits.
    pub(crate) fn as_i64(&self) -> Option<i64> {
        self.is_integer().then(|| self.whole_part()).and_then(|value| i64::try_from(value).ok())
    }

    /// What stands before the point, saturating beyond 10^19.
    pub(crate) fn whole_part(&self) -> i128 {
        let Some(first) = self.first_power() else {
            return 0;
        };
        let mut value: i128 = 0;
        if first > 18 {
            value = 10_i128.pow(19);
        } else if first >= 0 {
            let mut digits = self.digits().skip_while(|d| *d == b'0');
            for _ in 0..=first {
                value = value * 10 + i128::from(digits.next().unwrap_or(b'0') - b'0');
            }
        }
        if self.negative { -value } else { value }
    }

    /// Whether PostgreSQL's `numeric`, and so `jsonb`, can hold the number as it is written.
    pub(super) fn fits_numeric(&self) -> bool {
        self.exponent.abs() < MAX_EXPONENT
            && self.fraction.len() as i64 - self.exponent <= MAX_FRACTION_DIGITS
            && self.first_power().is_none_or(|power| power < MAX_WHOLE_DIGITS)
    }

    /// Whether it is an integer beyond 2^53-1 in magnitude, whose digits a double would lose.
    pub(super) fn is_big_integer(&self) -> bool {
        if self.exponent == 0 && self.whole.len() <= 15 {
            return false;
        }
        self.is_integer() && self.whole_part().abs() > MAX_SAFE_INTEGER
    }

    fn digits(&self) -> impl DoubleEndedIterator<Item = u8> + 'a {
        self.whole.iter().chain(self.fraction).copied()
    }

    /// The power of ten of the first digit that is not 0; none for zero.
    fn first_power(&self) -> Option<i64> {
        let at = self.digits().position(|d| d != b'0')? as i64;
        Some(self.whole.len() as i64 - 1 - at + self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal<'_> {
        Decimal::parse(text).unwrap_or_else(|| panic!("{text} is a number"))
    }

    #[test]
    fn integers_are_read_in_any_spelling() {
        for (text, value) in [
            ("1000", 1000),
            ("1e3", 1000),
            ("1E+3", 1000),
            ("1000.0", 1000),
            ("0.1e4", 1000),
            ("100000e-2", 1000),
            ("-0", 0),
            ("0e99999999999999999999", 0),
            ("-12.50e1", -125),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("0.000000000000000000000000000001e30", 1),
        ] {
            assert_eq!(decimal(text).as_i64(), Some(value), "{text}");
        }
        for text in ["1.5", "1e-1", "9223372036854775808", "1e99", "-1e99999999999999999999", "12e-1"] {
            assert_eq!(decimal(text).as_i64(), None, "{text}");
        }
    }

    #[test]
    fn the_grammar_is_the_one_of_json() {
        for text in ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "0x1", "1 ", "NaN", "1.e3", "--1"] {
            assert!(Decimal::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_whole_part_saturates_and_keeps_its_sign() {
        assert_eq!(decimal("1999.999").whole_part(), 1999);
        assert_eq!(decimal("-0.5").whole_part(), 0);
        assert_eq!(decimal("-9223372036854775809").whole_part(), -9223372036854775809);
        assert_eq!(decimal("1e400").whole_part(), 10_i128.pow(19));
        assert_eq!(decimal("1e-400").whole_part(), 0);
    }

    #[test]
    fn big_integers_are_told_by_value() {
        for text in [
            "9007199254740992",
            "-9007199254740992",
            "9007199254740992.0",
            "1e16",
            "0.1e18",
            "123456789012345678901234567890",
        ] {
            assert!(decimal(text).is_big_integer(), "{text}");
        }
        for text in ["9007199254740991", "-9007199254740991", "9007199254740992.5", "1e15", "0e400", "1e-400"] {
            assert!(!decimal(text).is_big_integer(), "{text}");
        }
    }

    #[test]
    fn numeric_has_these_bounds() {
        let digits = |n: usize| "1".repeat(n);
        for text in [
            "1e131071".to_owned(),
            digits(131_072),
            "0e131072".to_owned(),
            "1e-16383".to_owned(),
            format!("0.{}", digits(16_383)),
            format!("{}e16383", format_args!("0.{}", digits(32_766))),
            "0.001e131074".to_owned(),
        ] {
            assert!(decimal(&text).fits_numeric(), "{}", &text[..20.min(text.len())]);
        }
        for text in [
            "1e131072".to_owned(),
            digits(131_073),
            "10e131071".to_owned(),
            "1e-16384".to_owned(),
            "0e-16384".to_owned(),
            format!("0.{}", digits(16_384)),
            "1.0e-16383".to_owned(),
            "0e1073741823".to_owned(),
        ] {
            assert!(!decimal(&text).fits_numeric(), "{}", &text[..20.min(text.len())]);
        }
    }
}
