//! The three forms of an HTTP-date (RFC 9110 5.6.7), always UTC:
//! `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The time that `text` names; none if it is in none of the forms. `now` resolves a year of two digits. A day of the
/// week that is not that of the date is tolerated, as it changes nothing.
pub(super) fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim_matches([' ', '\t']);
    if let Some((day_name, rest)) = text.split_once(", ") {
        let rest = rest.strip_suffix(" GMT")?;
        if DAYS.iter().any(|day| day[..3] == *day_name) {
            let [day, month, year, clock] = fields(rest, [' ', ' ', ' '])?;
            return at(digits(year, 4)?, month, digits(day, 2)?, clock);
        }
        DAYS.contains(&day_name).then_some(())?;
        let [day, month, year, clock] = fields(rest, ['-', '-', ' '])?;
        return two_digit_year(digits(year, 2)?, month, digits(day, 2)?, clock, now);
    }
    let (day_name, rest) = text.split_once(' ')?;
    DAYS.iter().any(|day| day[..3] == *day_name).then_some(())?;
    // The day is padded with a blank.
    let (month, rest) = (rest.get(..3)?, rest.get(3..)?.strip_prefix(' ')?);
    let (day, rest) = (rest.get(..2)?, rest.get(2..)?.strip_prefix(' ')?);
    let (clock, year) = rest.split_once(' ')?;
    let day = match day.strip_prefix(' ') {
        Some(day) => digits(day, 1)?,
        None => digits(day, 2)?,
    };
    at(digits(year, 4)?, month, day, clock)
}

/// A date that seems more than 50 years ahead is the latest past one with these two digits.
fn two_digit_year(year: i64, month: &str, day: i64, clock: &str, now: Timestamp) -> Option<Timestamp> {
    let now = now.to_zoned_datetime(TimeZone::UTC);
    let limit = now.checked_add(50.years()).ok()?.timestamp();
    let century = i64::from(now.year()) / 100;
    [century + 1, century, century - 1]
        .into_iter()
        .filter_map(|century| at(century * 100 + year, month, day, clock))
        .find(|time| *time <= limit)
}

fn at(year: i64, month: &str, day: i64, clock: &str) -> Option<Timestamp> {
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let date = Date::new(year as i16, month as i8, day as i8).ok()?;
    let [hour, minute, second] =
        clock.split(':').map(|part| digits(part, 2)).collect::<Option<Vec<_>>>()?.try_into().ok()?;
    // 60 is a leap second.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = date.duration_since(Date::new(1970, 1, 1).ok()?).as_secs();
    let seconds = days + hour * 3_600 + minute * 60 + second;
    // The last hours of the year 9999 are beyond what a Timestamp holds.
    Some(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

/// The four fields between the three separators.
fn fields(text: &str, separators: [char; 3]) -> Option<[&str; 4]> {
    let (first, text) = text.split_once(separators[0])?;
    let (second, text) = text.split_once(separators[1])?;
    let (third, fourth) = text.split_once(separators[2])?;
    Some([first, second, third, fourth])
}

fn digits(text: &str, length: usize) -> Option<i64> {
    let all_digits = text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    all_digits.then(|| text.parse().ok()).flatten()
}
