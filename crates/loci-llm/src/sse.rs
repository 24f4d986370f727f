//! Server-sent events: bytes in, frames out. Somebody else owns the socket.
//!
//! The stream is lines, ended by LF, CR or CRLF, after an optional byte order mark. A line is `field:value` or
//! `field: value`; one that starts with `:` is a comment. An empty line ends an event. Of the fields only
//! `event` and `data` matter here; several `data` lines are joined by newlines. An event without data is none.
//!
//! It is written by hand, although there are crates for it (`eventsource-stream`): those hold an event of any size in
//! memory and give text, while a model's answer needs a cap and its bytes as they came.
//!
//! What must stay true:
//! 1. Any way of cutting the stream into chunks gives the same frames (a property test).
//! 2. No more than the cap of one event is ever held, and each byte is looked at a bounded number of times.

use memchr::memchr2;

use crate::framing::{Frame, FrameError, FrameReader};

/// The most bytes one event may have: far above the longest answer, far below what would hurt.
pub(crate) const EVENT_CAP: usize = 64 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Splits a byte stream into frames.
#[derive(Debug)]
pub(crate) struct SseReader {
    /// Bytes received; those before `start` are done with, those before `scanned` hold no line end.
    input: Vec<u8>,
    start: usize,
    scanned: usize,
    event: Vec<u8>,
    data: Vec<u8>,
    /// Whether `event` and `data` were lent as a frame and are to be emptied before reading on.
    is_lent: bool,
    /// Whether a CR ended the last line, so that an LF right after it belongs to it.
    is_after_cr: bool,
    is_at_beginning: bool,
    cap: usize,
}

impl Default for SseReader {
    fn default() -> Self {
        Self::with_cap(EVENT_CAP)
    }
}

impl FrameReader for SseReader {
    /// Takes in more bytes; ask for frames until there are none before taking in the next.
    fn push(&mut self, bytes: &[u8]) {
        self.input.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Returns the next whole event, or `None` until more bytes come.
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        self.forget_lent();
        if !self.skip_byte_order_mark() {
            return Ok(None);
        }
        while let Some((line_start, line_end)) = self.next_line() {
            if line_start == line_end {
                if self.is_event_ready() {
                    return Ok(Some(self.lend()));
                }
            } else {
                self.take_field(line_start, line_end);
            }
            self.check_cap()?;
        }
        self.check_cap()?;
        Ok(None)
    }

    /// Returns the event that only lacked its empty line when the stream ended, if there is one.
    ///
    /// Strictly such an event is to be dropped, but some servers end without the empty line; its lines are
    /// whole, and a cut is noticed by what the events say, not by how the bytes end.
    fn last_frame(&mut self) -> Option<Frame<'_>> {
        self.forget_lent();
        self.is_event_ready().then(|| self.lend())
    }
}

impl SseReader {
    /// Makes a reader with a cap of its own.
    pub(crate) fn with_cap(cap: usize) -> Self {
        Self {
            input: Vec::new(),
            start: 0,
            scanned: 0,
            event: Vec::new(),
            data: Vec::new(),
            is_lent: false,
            is_after_cr: false,
            is_at_beginning: true,
            cap,
        }
    }

    fn forget_lent(&mut self) {
        if std::mem::take(&mut self.is_lent) {
            self.event.clear();
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
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            // Comments have an empty name; `id` and `retry` serve reconnecting, which we do not do.
            _ => {}
        }
    }

    /// Ends the event; one without data is dropped, name and all.
    fn is_event_ready(&mut self) -> bool {
        if self.data.len() <= 1 {
            self.event.clear();
            self.data.clear();
            return false;
        }
        self.data.pop();
        true
    }

    fn lend(&mut self) -> Frame<'_> {
        self.is_lent = true;
        Frame { event: String::from_utf8_lossy(&self.event), data: &self.data }
    }

    fn check_cap(&self) -> Result<(), FrameError> {
        let held = self.data.len() + self.event.len() + (self.scanned - self.start);
        if held > self.cap { Err(FrameError::TooLarge { cap: self.cap }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn frames_of<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
        let mut reader = SseReader::default();
        let mut frames = Vec::new();
        let mut keep = |frame: Frame<'_>| {
            frames.push((frame.event.into_owned(), String::from_utf8_lossy(frame.data).into_owned()));
        };
        for chunk in chunks {
            reader.push(chunk);
            while let Some(frame) = reader.next_frame().unwrap() {
                keep(frame);
            }
        }
        if let Some(frame) = reader.last_frame() {
            keep(frame);
        }
        frames
    }

    fn check(stream: &str, expected: Expect) {
        let shown: Vec<String> =
            frames_of([stream.as_bytes()]).iter().map(|(event, data)| format!("{event}={data:?}")).collect();
        expected.assert_eq(&shown.join(" "));
        let bytewise = frames_of(stream.as_bytes().chunks(1));
        assert_eq!(bytewise, frames_of([stream.as_bytes()]), "byte by byte: {stream:?}");
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
        check("data\n\ndata: \n\n", expect![[""]]);
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
            assert_eq!(reader.next_frame(), Err(FrameError::TooLarge { cap: 8 }), "{stream:?}");
        }
        let mut reader = SseReader::with_cap(8);
        reader.push(&b"data: 12\n\n".repeat(100));
        for _ in 0..100 {
            assert_eq!(reader.next_frame().unwrap().unwrap().data, b"12");
        }
        assert_eq!(reader.next_frame(), Ok(None));
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_frames(
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
            prop_assert_eq!(frames_of(chunks), frames_of([stream.as_bytes()]));
        }
    }
}
