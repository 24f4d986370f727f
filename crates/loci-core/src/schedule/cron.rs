//! Cron expressions: five fields, in the time of the clock on the wall.
//!
//! `minute hour day-of-month month day-of-week`, each `*`, a number, a range `a-b`, a list `a,b`, with a step `/n`. Names and
//! the letters `L`, `W`, `?` are not known. Where both days are restricted, either makes a match, as cron has always had it.
//!
//! By hand, because the crates for it (`cron`, `croner`) have seconds, years and the time types of `chrono`; the five
//! fields are the whole language that tasks are written in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A minute as a clock on the wall shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CivilMinute {
    /// Years of the common era.
    pub year: i16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
}

impl CivilMinute {
    /// Returns the day of the week; 0 is Sunday.
    fn weekday(self) -> u8 {
        // Sakamoto's way.
        const SHIFTS: [i32; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
        let year = i32::from(self.year) - i32::from(self.month < 3);
        let shift = SHIFTS[usize::from(self.month.clamp(1, 12)) - 1];
        let day = year + year / 4 - year / 100 + year / 400 + shift + i32::from(self.day);
        u8::try_from(day.rem_euclid(7)).unwrap_or(0)
    }
}

/// A cron expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cron {
    text: String,
    /// A bit for each value that matches.
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether the days are restricted, which decides how the two fields join.
    has_days: bool,
    has_weekdays: bool,
}

/// Why an expression is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// There are not five fields.
    #[error("a cron expression has five fields (minute hour day-of-month month day-of-week), found {0}")]
    Fields(usize),
    /// A field is not understood.
    #[error(
        "`{field}` is not understood as the {name}: use *, numbers from {first} to {last}, ranges, lists and steps"
    )]
    Field {
        /// What stands there.
        field: String,
        /// Which field it is.
        name: &'static str,
        /// The least value.
        first: u8,
        /// The greatest.
        last: u8,
    },
}

/// How far ahead a match is looked for, in hours: February 29 comes every four years, or eight.
const MOST_HOURS: u32 = 8 * 366 * 24;

impl Cron {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(CronError::Fields(fields.len()));
        };
        let weekdays = parse_field(weekday, "day of the week", 0, 7)?;
        Ok(Self {
            text: fields.join(" "),
            minutes: parse_field(minute, "minute", 0, 59)?,
            hours: parse_field(hour, "hour", 0, 23)?,
            days: parse_field(day, "day of the month", 1, 31)?,
            months: parse_field(month, "month", 1, 12)?,
            // Sunday has two numbers.
            weekdays: (weekdays | (weekdays >> 7)) & 0x7f,
            has_days: !day.starts_with('*'),
            has_weekdays: !weekday.starts_with('*'),
        })
    }

    /// Tells whether a minute is one of those meant.
    pub fn matches(&self, at: CivilMinute) -> bool {
        self.matches_day(at) && has(self.hours, at.hour) && has(self.minutes, at.minute)
    }

    fn matches_day(&self, at: CivilMinute) -> bool {
        let (day, weekday) = (has(self.days, at.day), has(self.weekdays, at.weekday()));
        let is_day = if self.has_days && self.has_weekdays { day || weekday } else { day && weekday };
        has(self.months, at.month) && is_day
    }

    /// Returns the first second of the next minute after `after` that matches, in seconds since 1970.
    pub fn next_after(&self, after: i64, wall: &dyn Fn(i64) -> CivilMinute) -> Option<i64> {
        let mut at = (after.div_euclid(60) + 1) * 60;
        let mut n_hours = 0;
        while n_hours < MOST_HOURS {
            let civil = wall(at);
            if self.matches_day(civil) && has(self.hours, civil.hour) {
                if has(self.minutes, civil.minute) {
                    return Some(at);
                }
                at += 60;
                n_hours += u32::from(civil.minute == 59);
            } else {
                // To the next full hour on the wall.
                at += i64::from(60 - civil.minute) * 60;
                n_hours += 1;
            }
        }
        None
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Cron {
    type Error = CronError;

    fn try_from(text: String) -> Result<Self, CronError> {
        Self::parse(&text)
    }
}

impl From<Cron> for String {
    fn from(cron: Cron) -> Self {
        cron.text
    }
}

fn has(bits: u64, value: u8) -> bool {
    bits >> value & 1 == 1
}

fn parse_field(text: &str, name: &'static str, first: u8, last: u8) -> Result<u64, CronError> {
    let wrong = || CronError::Field { field: text.to_owned(), name, first, last };
    let mut bits = 0;
    for part in text.split(',') {
        bits |= parse_part(part, first, last).ok_or_else(wrong)?;
    }
    Ok(bits)
}

fn parse_part(part: &str, first: u8, last: u8) -> Option<u64> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u8>().ok()).flatten().filter(|it| (first..=last).contains(it))
    };
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => {
            (range, Some(step.parse::<u8>().ok().filter(|step| *step > 0 && !range.is_empty())?))
        }
        None => (part, None),
    };
    let (from, to) = match range.split_once('-') {
        _ if range == "*" => (first, last),
        Some((from, to)) => (number(from)?, number(to)?),
        // `5/15` begins at five.
        None => (number(range)?, if step.is_some() { last } else { number(range)? }),
    };
    (from <= to)
        .then(|| (from..=to).step_by(usize::from(step.unwrap_or(1))).fold(0, |bits, it| bits | 1 << it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> CivilMinute {
        let numbers: Vec<i16> = text.split(['-', ' ', ':']).map(|it| it.parse().unwrap()).collect();
        let small = |idx: usize| u8::try_from(numbers[idx]).unwrap();
        CivilMinute { year: numbers[0], month: small(1), day: small(2), hour: small(3), minute: small(4) }
    }

    #[test]
    fn days_of_the_week_are_known() {
        for (text, expected) in
            [("2026-11-17 0:0", 2), ("2000-02-29 0:0", 2), ("2026-01-04 0:0", 0), ("2100-03-01 0:0", 1)]
        {
            assert_eq!(at(text).weekday(), expected, "{text}");
        }
    }

    #[test]
    fn expressions_match_their_minutes() {
        for (text, time, expected) in [
            ("* * * * *", "2026-11-17 7:46", true),
            ("*/5 * * * *", "2026-11-17 7:45", true),
            ("*/5 * * * *", "2026-11-17 7:46", false),
            ("5/20 * * * *", "2026-11-17 7:45", true),
            ("0 9-17/2 * * *", "2026-11-17 11:00", true),
            ("0 9-17/2 * * *", "2026-11-17 12:00", false),
            ("30 14 1,15 * *", "2026-11-15 14:30", true),
            ("30 14 1,15 * *", "2026-11-16 14:30", false),
            ("0 9 * * 1-5", "2026-11-17 9:00", true),
            ("0 9 * * 1-5", "2026-11-15 9:00", false),
            ("0 9 * * 7", "2026-11-15 9:00", true),
            ("0 9 * * 0", "2026-11-15 9:00", true),
            // Either day makes a match where both are restricted.
            ("0 9 1 * 2", "2026-11-17 9:00", true),
            ("0 9 17 * 1", "2026-11-17 9:00", true),
            ("0 9 1 * 1", "2026-11-17 9:00", false),
            ("0 0 29 2 *", "2028-02-29 0:00", true),
        ] {
            assert_eq!(Cron::parse(text).unwrap().matches(at(time)), expected, "{text} {time}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused_with_a_reason() {
        for (text, expected) in [
            ("* * * *", "found 4"),
            ("", "found 0"),
            ("60 * * * *", "`60` is not understood as the minute: use *, numbers from 0 to 59"),
            ("* 24 * * *", "hour"),
            ("* * 0 * *", "day of the month"),
            ("* * * 13 *", "month"),
            ("* * * * 8", "day of the week"),
            ("* * L * *", "`L`"),
            ("* * ? * *", "`?`"),
            ("* * 15W * *", "`15W`"),
            ("* * * JAN *", "`JAN`"),
            ("* * * * mon", "`mon`"),
            ("*/0 * * * *", "`*/0`"),
            ("5-2 * * * *", "`5-2`"),
            ("1,,2 * * * *", "`1,,2`"),
            ("+5 * * * *", "`+5`"),
        ] {
            let error = Cron::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
