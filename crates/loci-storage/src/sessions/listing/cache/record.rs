//! One session's facts as they are kept.
//!
//! ```text
//! file                              length, bytes
//! stamp                             size, seconds, nanoseconds, number on disk
//! what there is                     a bit each, see below
//! when the file was changed         milliseconds
//! last activity, begun              seconds, nanoseconds; where there are
//! messages                          number
//! cost                              the bits of the number, which survive; where there is one
//! texts                             length, bytes; those there are, in the order of `texts`
//! ```
//!
//! Numbers are written as in the index, those that may be negative with their sign last.

use std::os::unix::ffi::OsStrExt;

use loci_stdx::{Packed, Timestamp, put_number, put_text};

use super::super::{Labels, MessageCount, SessionMetadata, SessionSummary};
use crate::sessions::find::FileStamp;

/// Bits that say what there is; below them is one for each text.
const N_TEXTS: usize = 12;
const LAST_ACTIVITY: u64 = 1 << N_TEXTS;
const CREATED: u64 = 1 << (N_TEXTS + 1);
const COST: u64 = 1 << (N_TEXTS + 2);
const SIDECHAIN: u64 = 1 << (N_TEXTS + 3);
const EMPTY: u64 = 1 << (N_TEXTS + 4);
const EXACT: u64 = 1 << (N_TEXTS + 5);

/// Writes what is known of a session.
pub(super) fn encode(session: &SessionSummary, stamp: FileStamp) -> Vec<u8> {
    let facts = &session.facts;
    let mut out = Vec::with_capacity(320);
    let path = session.place.file().as_os_str().as_bytes();
    put_number(&mut out, path.len() as u64);
    out.extend_from_slice(path);
    put_number(&mut out, stamp.size);
    put_signed(&mut out, stamp.modified_s);
    put_signed(&mut out, stamp.modified_ns);
    put_number(&mut out, stamp.inode);
    put_number(&mut out, bits_of(facts));
    put_signed(&mut out, facts.modified_ms);
    for time in [facts.last_activity, facts.created].into_iter().flatten() {
        put_signed(&mut out, time.as_second());
        put_signed(&mut out, time.subsec_nanosecond().into());
    }
    put_number(&mut out, facts.messages.number());
    if let Some(cost) = facts.cost_usd {
        out.extend_from_slice(&cost.to_bits().to_le_bytes());
    }
    texts(facts).into_iter().flatten().for_each(|text| put_text(&mut out, text));
    out
}

fn bits_of(facts: &SessionMetadata) -> u64 {
    let texts = texts(facts).into_iter().enumerate().filter(|(_, text)| text.is_some());
    let mut bits = texts.fold(0, |bits, (idx, _)| bits | 1 << idx);
    for (bit, is_set) in [
        (LAST_ACTIVITY, facts.last_activity.is_some()),
        (CREATED, facts.created.is_some()),
        (COST, facts.cost_usd.is_some()),
        (SIDECHAIN, facts.is_sidechain),
        (EMPTY, facts.is_empty),
        (EXACT, facts.messages.is_exact()),
    ] {
        bits |= if is_set { bit } else { 0 };
    }
    bits
}

fn texts(facts: &SessionMetadata) -> [Option<&str>; N_TEXTS] {
    let Labels { custom, generated, name, tag, last_prompt, summary } = &facts.labels;
    let SessionMetadata { first_prompt, git_branch, cwd, entrypoint, first_entry, forked_from, .. } = facts;
    [
        custom,
        generated,
        name,
        tag,
        last_prompt,
        summary,
        first_prompt,
        git_branch,
        cwd,
        entrypoint,
        first_entry,
        forked_from,
    ]
    .map(Option::as_deref)
}

/// A record, not looked into yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a>(pub(super) &'a [u8]);

/// What a record is looked up for.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordHead {
    /// What the file was like.
    pub(super) stamp: FileStamp,
    /// The moment to sort by.
    pub(super) newest_ms: i64,
}

impl<'a> Record<'a> {
    /// Returns the path of the session's file.
    pub(super) fn path(self) -> Option<&'a [u8]> {
        take_path(&mut Packed(self.0))
    }

    /// Returns what a record is looked up for, without making texts or times.
    pub(super) fn head(self) -> Option<RecordHead> {
        let mut bytes = Packed(self.0);
        take_path(&mut bytes)?;
        let stamp = take_stamp(&mut bytes)?;
        let bits = bytes.number()?;
        let modified_ms = take_signed(&mut bytes)?;
        let newest_ms = match bits & LAST_ACTIVITY {
            0 => modified_ms,
            _ => milliseconds(take_signed(&mut bytes)?, take_signed(&mut bytes)?)?,
        };
        Some(RecordHead { stamp, newest_ms })
    }

    /// Returns the facts; `None` when a time is none.
    pub(super) fn facts(self) -> Option<SessionMetadata> {
        let mut bytes = Packed(self.0);
        take_path(&mut bytes)?;
        let stamp = take_stamp(&mut bytes)?;
        let bits = bytes.number()?;
        let modified_ms = take_signed(&mut bytes)?;
        let mut time = |bit: u64| match bits & bit {
            0 => Some(None),
            _ => take_time(&mut bytes).map(Some),
        };
        let (last_activity, created) = (time(LAST_ACTIVITY)?, time(CREATED)?);
        let n_messages = bytes.number()?;
        let cost_usd = match bits & COST {
            0 => None,
            _ => Some(f64::from_bits(u64::from_le_bytes(*bytes.take(8)?.first_chunk()?))),
        };
        let mut texts: [Option<String>; N_TEXTS] = Default::default();
        for (idx, text) in texts.iter_mut().enumerate() {
            if bits & 1 << idx != 0 {
                *text = Some(bytes.text()?.to_owned());
            }
        }
        let [custom, generated, name, tag, last_prompt, summary, rest @ ..] = texts;
        let [first_prompt, git_branch, cwd, entrypoint, first_entry, forked_from] = rest;
        Some(SessionMetadata {
            size: stamp.size,
            modified_ms,
            last_activity,
            created,
            labels: Labels { custom, generated, name, tag, last_prompt, summary },
            first_prompt,
            git_branch,
            cwd,
            entrypoint,
            first_entry,
            forked_from,
            is_sidechain: bits & SIDECHAIN != 0,
            is_empty: bits & EMPTY != 0,
            messages: if bits & EXACT != 0 {
                MessageCount::Exactly(n_messages)
            } else {
                MessageCount::About(n_messages)
            },
            cost_usd,
        })
    }
}

fn take_path<'a>(bytes: &mut Packed<'a>) -> Option<&'a [u8]> {
    let n_bytes = usize::try_from(bytes.number()?).ok()?;
    bytes.take(n_bytes)
}

fn take_stamp(bytes: &mut Packed<'_>) -> Option<FileStamp> {
    Some(FileStamp {
        size: bytes.number()?,
        modified_s: take_signed(bytes)?,
        modified_ns: take_signed(bytes)?,
        inode: bytes.number()?,
    })
}

fn take_time(bytes: &mut Packed<'_>) -> Option<Timestamp> {
    let second = take_signed(bytes)?;
    Timestamp::new(second, i32::try_from(take_signed(bytes)?).ok()?).ok()
}

/// Returns what a time of these seconds and nanoseconds, which have one sign, is in milliseconds.
fn milliseconds(second: i64, nanosecond: i64) -> Option<i64> {
    second.checked_mul(1_000)?.checked_add(nanosecond / 1_000_000)
}

fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

fn take_signed(bytes: &mut Packed<'_>) -> Option<i64> {
    let number = bytes.number()?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_sorted_like_its_metadata() {
        for nanoseconds in [0, 1, 999_999, 1_000_000, 1_700_000_000_123_456_789, -1, -999_999_999, -1_500_000]
        {
            let time = Timestamp::from_nanosecond(nanoseconds).unwrap();
            let ms = milliseconds(time.as_second(), time.subsec_nanosecond().into());
            assert_eq!(ms, Some(time.as_millisecond()), "{nanoseconds}");
        }
    }

    #[test]
    fn signed_numbers_round_trip() {
        for number in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            put_signed(&mut out, number);
            assert_eq!(take_signed(&mut Packed(&out)), Some(number));
        }
    }
}
