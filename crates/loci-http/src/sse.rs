//! Server-sent events: bytes in, events out. Somebody else owns the socket.
//!
//! The stream is lines, ended by LF, CR or CRLF, after an optional byte order mark. A line is `field:value` or
//! `field: value`; one that starts with `:` is a comment. An empty line ends an event. Its fields are `event`, `data`
//! (several are joined by newlines) and `id`, which says where to go on when the stream breaks off; `retry` says how long to
//! wait before that. An event without data is none, but its id counts.
//!
//! It is written by hand, although there are crates for it (`eventsource-stream`): those hold an event of any size in
//! memory and give text, while a model's answer needs a cap and its bytes as they came.
//!
//! What must stay true:
//! 1. Any way of cutting the stream into chunks gives the same events (a property test).
//! 2. No more than the cap of one event is ever held, and each byte is looked at a bounded number of times.

use std::borrow::Cow;
use std::time::Duration;

use memchr::memchr2;

/// The most bytes one event may have: far above the longest answer, far below what would hurt.
pub const EVENT_CAP: usize = 64 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event, lent until the reader moves on.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Its name; empty when the stream did not give one.
    pub name: Cow<'a, str>,
    /// Its data.
    pub data: &'a [u8],
}

/// Why there is no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// One event grew past the cap.
    #[error("One event of the stream has more than {cap} bytes")]
    TooLarge {
        /// The cap that was met.
        cap: usize,
    },
}

/// Splits a byte stream into events.
#[derive(Debug)]
pub struct SseReader {
    /// Bytes received; those before `start` are done with, those before `scanned` hold no line end.
    input: Vec<u8>,
    start: usize,
    scanned: usize,
    name: Vec<u8>,
    /// Each line of data with a newline behind it; without the last one once the event is whole.
    data: Vec<u8>,
    /// Whether `name` and `data` are of a whole event and are to be emptied before reading on.
    is_whole: bool,
    /// Whether a CR ended the last line, so that an LF right after it belongs to it.
    is_after_cr: bool,
    is_at_beginning: bool,
    cap: usize,
    /// The id of the last event that came whole, to go on behind.
    last_id: Option<String>,
    next_id: Option<String>,
    pause: Option<Duration>,
}

impl Default for SseReader {
    fn default() -> Self {
        Self::with_cap(EVENT_CAP)
    }
}

impl SseReader {
    /// Makes a reader with a cap of its own.
    pub fn with_cap(cap: usize) -> Self {
        Self {
            input: Vec::new(),
            start: 0,
            scanned: 0,
            name: Vec::new(),
            data: Vec::new(),
            is_whole: false,
            is_after_cr: false,
            is_at_beginning: true,
            cap,
            last_id: None,
            next_id: None,
            pause: None,
        }
    }

    /// Makes a reader for a stream that goes on behind an event.
    pub fn behind(last_id: Option<String>) -> Self {
        Self { last_id, ..Self::default() }
    }

    /// Takes in more bytes; move on until there is no event before taking in the next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.input.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Moves to the next whole event; false until more bytes come.
    pub fn advance(&mut self) -> Result<bool, SseError> {
        self.forget_event();
        if !self.skip_byte_order_mark() {
            return Ok(false);
        }
        while let Some((line_start, line_end)) = self.next_line() {
            if line_start == line_end {
                if self.end_event() {
                    return Ok(true);
                }
            } else {
                self.take_field(line_start, line_end);
            }
            self.check_cap()?;
        }
        self.check_cap()?;
        Ok(false)
    }

    /// Moves to the event that only lacked its empty line when the stream ended, if there is one.
    ///
    /// Strictly such an event is to be dropped, but some servers end without the empty line; its lines are
    /// whole, and a cut is noticed by what the events say, not by how the bytes end.
    pub fn advance_to_last(&mut self) -> bool {
        self.forget_event();
        self.end_event()
    }

    /// Lends the event that the reader has moved to.
    pub fn event(&self) -> SseEvent<'_> {
        let data = if self.is_whole { self.data.as_slice() } else { &[] };
        SseEvent { name: String::from_utf8_lossy(&self.name), data }
    }

    /// Returns the id of the last event that came whole, to go on behind.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Returns how long to wait before going on, where the server said so.
    pub fn pause(&self) -> Option<Duration> {
        self.pause
    }

    fn forget_event(&mut self) {
        if std::mem::take(&mut self.is_whole) {
            self.name.clear();
            self.data.clear();
        }
    }

    /// Returns false while it is not yet known whether the stream starts with a mark.
    fn skip_byte_order_mark(&mut self) -> bool {
        if !self.is_at_beginning {
            return true;
        }
        if self.input.starts_with(BYTE_ORDER_MARK) {
            self.start = BYTE_ORDER_MARK.len();
            self.scanned = self.start;
        } else if BYTE_ORDER_MARK.starts_with(&self.input) {
            return false;
        }
        self.is_at_beginning = false;
        true
    }

    /// Returns where the next whole line lies in `input` and moves past it.
    fn next_line(&mut self) -> Option<(usize, usize)> {
        if self.is_after_cr && self.start < self.input.len() {
            self.is_after_cr = false;
            if self.input[self.start] == b'\n' {
                self.start += 1;
                self.scanned = self.scanned.max(self.start);
            }
        }
        let Some(found) = memchr2(b'\n', b'\r', &self.input[self.scanned..]) else {
            self.scanned = self.input.len();
            return None;
        };
        let line = (self.start, self.scanned + found);
        self.is_after_cr = self.input[line.1] == b'\r';
        self.start = line.1 + 1;
        self.scanned = self.start;
        Some(line)
    }

    fn take_field(&mut self, line_start: usize, line_end: usize) {
        let line = &self.input[line_start..line_end];
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => self.next_id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.pause = number.map(Duration::from_millis).or(self.pause);
            }
            // Comments have an empty name.
            _ => {}
        }
    }

    /// Ends the event; one without data is dropped, name and all.
    fn end_event(&mut self) -> bool {
        if let Some(id) = self.next_id.take() {
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        self.is_whole = self.data.pop().is_some();
        if !self.is_whole {
            self.name.clear();
        }
        self.is_whole
    }

    fn check_cap(&self) -> Result<(), SseError> {
        let held = self.data.len() + self.name.len() + (self.scanned - self.start);
        if held > self.cap { Err(SseError::TooLarge { cap: self.cap }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn events_of<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
        let mut reader = SseReader::default();
        let mut events = Vec::new();
        let mut keep = |event: SseEvent<'_>| {
            events.push((event.name.into_owned(), String::from_utf8_lossy(event.data).into_owned()));
        };
        for chunk in chunks {
            reader.push(chunk);
            while reader.advance().unwrap() {
                keep(reader.event());
            }
        }
        if reader.advance_to_last() {
            keep(reader.event());
        }
        events
    }

    fn check(stream: &str, expected: Expect) {
        let shown: Vec<String> =
            events_of([stream.as_bytes()]).iter().map(|(name, data)| format!("{name}={data:?}")).collect();
        expected.assert_eq(&shown.join(" "));
        let bytewise = events_of(stream.as_bytes().chunks(1));
        assert_eq!(bytewise, events_of([stream.as_bytes()]), "byte by byte: {stream:?}");
    }

    #[test]
    fn sse_events_are_parsed_in_all_spellings() {
        check("event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", expect![[r#"a="1" b="2""#]]);
        check("event:a\r\ndata:1\r\n\r\ndata: 2\r\n\r\n", expect![[r#"a="1" ="2""#]]);
        check("event: a\rdata: 1\r\rdata: 2\r\r", expect![[r#"a="1" ="2""#]]);
        check("\u{feff}data: x\n\n", expect![[r#"="x""#]]);
        check(": hello\n\n:\n\ndata: x\n: in between\n\n", expect![[r#"="x""#]]);
        check("data: one\ndata: two\ndata:\ndata:  four\n\n", expect![[r#"="one\ntwo\n\n four""#]]);
        check("event: ping\n\ndata: x\n\n", expect![[r#"="x""#]]);
        check("data\n\nevent: a\ndata: \n\n", expect![[r#"="" a="""#]]);
        check("id: 7\nretry: 10\nfoo: bar\nnonsense\ndata: x\n\n", expect![[r#"="x""#]]);
        check("event: a\nevent: b\ndata: x\n\n", expect![[r#"b="x""#]]);
        check("data: a:b: c\n\n", expect![[r#"="a:b: c""#]]);
        check("data: grün \u{1f980}\n\n", expect![[r#"="grün 🦀""#]]);
    }

    #[test]
    fn a_last_event_needs_whole_lines_but_no_empty_one() {
        check("data: x\n", expect![[r#"="x""#]]);
        check("data: x", expect![[""]]);
        check("data: x\n\ndata: y", expect![[r#"="x""#]]);
        check("", expect![[""]]);
        check("\u{feff}", expect![[""]]);
    }

    #[test]
    fn an_endless_event_is_refused() {
        for stream in
            ["data: 123456789\n", "data: 123456789", "event: 123456789\n", "data: 12345\ndata: 67\n"]
        {
            let mut reader = SseReader::with_cap(8);
            reader.push(stream.as_bytes());
            assert_eq!(reader.advance(), Err(SseError::TooLarge { cap: 8 }), "{stream:?}");
        }
        let mut reader = SseReader::with_cap(8);
        reader.push(&b"data: 12\n\n".repeat(100));
        for _ in 0..100 {
            assert_eq!(reader.advance(), Ok(true));
            assert_eq!(reader.event().data, b"12");
        }
        assert_eq!(reader.advance(), Ok(false));
    }

    #[test]
    fn last_id_and_pause_are_those_of_whole_events() {
        const STREAM: &str =
            "id: 1\ndata: a\n\nid: 2\nretry: 50\nretry: soon\n\ndata: b\n\nid: 3\ndata: lost";
        for chunk in 1..=STREAM.len() {
            let mut reader = SseReader::behind(Some("0".to_owned()));
            assert_eq!(reader.last_id(), Some("0"));
            for bytes in STREAM.as_bytes().chunks(chunk) {
                reader.push(bytes);
                while reader.advance().unwrap() {}
            }
            assert_eq!((reader.last_id(), reader.pause()), (Some("2"), Some(Duration::from_millis(50))));
        }
        let mut reader = SseReader::behind(Some("7".to_owned()));
        reader.push(b"id\ndata: x\n\n");
        assert_eq!(reader.advance(), Ok(true));
        assert_eq!(reader.last_id(), None, "an empty id takes it back");
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            lines in proptest::collection::vec(
                prop_oneof![
                    Just("".to_owned()), Just("".to_owned()), Just(": c".to_owned()),
                    "data: ?[a-zé🦀\"{}]{0,12}", "event: ?[a-z_]{0,6}", "\\PC{0,8}"
                ], 0..30),
            ends in proptest::collection::vec(prop_oneof![Just("\n"), Just("\r"), Just("\r\n")], 30),
            has_mark: bool,
            cuts in proptest::collection::vec(1usize..9, 1..40),
        ) {
            let mut stream = if has_mark { "\u{feff}".to_owned() } else { String::new() };
            for (line, end) in lines.iter().zip(&ends) {
                stream.push_str(line);
                stream.push_str(end);
            }
            let mut chunks = Vec::new();
            let mut rest = stream.as_bytes();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, tail) = rest.split_at((*cut).min(rest.len()));
                chunks.push(chunk);
                rest = tail;
            }
            prop_assert_eq!(events_of(chunks), events_of([stream.as_bytes()]));
        }
    }
}
