//! A page of a text file, read as a stream.
//!
//! The whole file passes through to count its lines, but only the page is held: a log of many gigabytes costs
//! time, not memory. A trailing line feed counts as one more, empty line, as the format has it.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter};
use tokio_util::sync::CancellationToken;

use crate::files::text_file::Charset;

/// Longer lines are cut here, in characters.
pub(super) const MAX_LINE_CHARS: usize = 2_000;

/// The most text kept to recognise the file by; beyond it the cut lines as shown must do.
const MAX_KEPT_BYTES: usize = 1024 * 1024;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// Which lines are wanted, and how much may be shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// The first line, counted from one.
    pub(super) first: u64,
    /// How many lines.
    pub(super) lines: u64,
    /// The most bytes of numbered text; at least one line is shown whatever its size.
    pub(super) max_bytes: usize,
}

/// Lines of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// The lines as shown, joined by line feeds, long ones cut.
    pub(super) shown: String,
    /// The same with a number and a tab before each.
    pub(super) numbered: String,
    /// The same lines uncut, unless that was too much.
    pub(super) kept: Option<String>,
    /// How many lines are shown.
    pub(super) n_lines: u64,
    /// How many lines the file has; 0 when it is empty.
    pub(super) total_lines: u64,
    /// Whether wanted lines were left out to stay within `max_bytes`.
    pub(super) is_over: bool,
}

/// Reads a page out of a file whose first bytes (`head`) have been read already.
pub(super) fn read_page(
    head: &[u8],
    mut rest: impl Read,
    wanted: Wanted,
    cancel: &CancellationToken,
) -> io::Result<Page> {
    let mut decoder = Charset::detect(head).decoder();
    let mut pager = Pager::new(wanted);
    let mut text = String::new();
    let mut decode = |chunk: &[u8], is_last: bool, pager: &mut Pager| {
        text.clear();
        text.reserve(decoder.max_utf8_buffer_length(chunk.len()).unwrap_or(chunk.len() * 3 + 16));
        // Replacement characters stand for what cannot be decoded.
        let (_result, _n_read, _has_errors) = decoder.decode_to_string(chunk, &mut text, is_last);
        pager.feed(&text);
    };
    decode(head, false, &mut pager);
    let mut chunk = vec![0; CHUNK];
    while !cancel.is_cancelled() {
        let n_read = read_some(&mut rest, &mut chunk)?;
        decode(&chunk[..n_read], n_read == 0, &mut pager);
        if n_read == 0 {
            return Ok(pager.finish());
        }
    }
    Err(io::Error::other("interrupted"))
}

fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Cuts a stream of text into lines and keeps those of the page.
struct Pager {
    wanted: Wanted,
    page: Page,
    /// The number of the line under way.
    line_number: u64,
    line: Line,
    has_text: bool,
}

/// The line under way.
#[derive(Default)]
struct Line {
    /// Its beginning, little more than [`MAX_LINE_CHARS`] characters.
    start: String,
    /// All of it, as long as the page is kept.
    whole: String,
    n_chars: usize,
    ends_in_cr: bool,
}

impl Pager {
    fn new(wanted: Wanted) -> Self {
        let page = Page { kept: Some(String::new()), ..Page::default() };
        Self { wanted, page, line_number: 1, line: Line::default(), has_text: false }
    }

    fn feed(&mut self, mut text: &str) {
        self.has_text |= !text.is_empty();
        while !text.is_empty() {
            if self.is_past_page() {
                self.line_number += memchr_iter(b'\n', text.as_bytes()).count() as u64;
                return;
            }
            let end = memchr(b'\n', text.as_bytes());
            self.extend_line(&text[..end.unwrap_or(text.len())]);
            let Some(end) = end else { return };
            if self.line.ends_in_cr {
                self.line.drop_cr();
            }
            self.end_line();
            self.line_number += 1;
            text = &text[end + 1..];
        }
    }

    fn finish(mut self) -> Page {
        if self.has_text {
            self.end_line();
            self.page.total_lines = self.line_number;
        }
        self.page
    }

    fn is_past_page(&self) -> bool {
        self.page.is_over || self.line_number >= self.wanted.first.saturating_add(self.wanted.lines)
    }

    fn is_in_page(&self) -> bool {
        self.line_number >= self.wanted.first && !self.is_past_page()
    }

    fn extend_line(&mut self, piece: &str) {
        if piece.is_empty() || !self.is_in_page() {
            return;
        }
        let kept_bytes = self.page.kept.as_ref().map_or(usize::MAX, String::len);
        if kept_bytes.saturating_add(self.line.whole.len() + piece.len()) > MAX_KEPT_BYTES {
            self.page.kept = None;
            self.line.whole = String::new();
        } else {
            self.line.whole.push_str(piece);
        }
        self.line.extend(piece);
    }

    fn end_line(&mut self) {
        if !self.is_in_page() {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let shown = line.to_shown();
        let numbered = format!("{}\t{shown}", self.line_number);
        let separator = if self.page.n_lines == 0 { "" } else { "\n" };
        if self.page.n_lines > 0 && self.page.numbered.len() + 1 + numbered.len() > self.wanted.max_bytes {
            self.page.is_over = true;
            return;
        }
        self.page.numbered.extend([separator, &numbered]);
        self.page.shown.extend([separator, &shown]);
        if let Some(kept) = &mut self.page.kept {
            kept.extend([separator, &line.whole]);
        }
        self.page.n_lines += 1;
    }
}

impl Line {
    fn extend(&mut self, piece: &str) {
        // One more than is shown, for a carriage return that will go.
        let room = (MAX_LINE_CHARS + 1).saturating_sub(self.n_chars);
        self.start.extend(piece.chars().take(room));
        self.n_chars += piece.chars().count();
        self.ends_in_cr = piece.ends_with('\r');
    }

    /// Drops the carriage return of a line ending.
    fn drop_cr(&mut self) {
        if self.start.chars().count() == self.n_chars {
            self.start.pop();
        }
        self.whole.pop();
        self.n_chars -= 1;
    }

    fn to_shown(&self) -> String {
        if self.n_chars <= MAX_LINE_CHARS {
            return self.start.clone();
        }
        let cut: String = self.start.chars().take(MAX_LINE_CHARS).collect();
        format!("{cut}… [line cut here: it has {} characters]", self.n_chars)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(bytes: &[u8], first: u64, lines: u64, max_bytes: usize) -> Page {
        let head = bytes.len().min(7);
        let wanted = Wanted { first, lines, max_bytes };
        read_page(&bytes[..head], &bytes[head..], wanted, &CancellationToken::new()).unwrap()
    }

    fn check(bytes: &[u8], first: u64, lines: u64, numbered: &str, total_lines: u64) {
        let page = page(bytes, first, lines, usize::MAX);
        assert_eq!(
            (page.numbered.as_str(), page.total_lines),
            (numbered, total_lines),
            "{}",
            bytes.escape_ascii()
        );
    }

    #[test]
    fn lines_are_numbered_from_one() {
        check(b"port=9000\nhost=local\n", 1, 9, "1\tport=9000\n2\thost=local\n3\t", 3);
        check(b"no end", 1, 9, "1\tno end", 1);
        check(b"\n", 1, 9, "1\t\n2\t", 2);
        check(b"", 1, 9, "", 0);
        check(b"\xef\xbb\xbf", 1, 9, "", 0);
        check(b"a\nb\nc\nd", 2, 2, "2\tb\n3\tc", 4);
        check(b"a\nb\n", 3, 1, "3\t", 3);
        check(b"a\nb\n", 4, 1, "", 3);
        check(b"a\r\nb\r\n", 1, 9, "1\ta\n2\tb\n3\t", 3);
        check(b"a\rb\r", 1, 9, "1\ta\rb\r", 1);
        check(b"\xff\xfea\0\r\0\n\0b\0", 1, 9, "1\ta\n2\tb", 2);
        check(b"caf\xe9 cr\xe8me\n", 1, 1, "1\tcafé crème", 2);
    }

    #[test]
    fn long_lines_are_cut_in_view_and_kept_whole() {
        for (line, cut) in [("é".repeat(2_000), false), ("é".repeat(2_001), true)] {
            let page = page(format!("{line}\r\nnext").as_bytes(), 1, 9, usize::MAX);
            assert_eq!(page.kept, Some(format!("{line}\nnext")));
            assert_eq!(page.shown.contains("[line cut here: it has 2001 characters]"), cut);
            assert_eq!(page.shown.chars().filter(|c| *c == 'é').count(), 2_000);
            assert!(page.numbered.ends_with("\n2\tnext"));
        }
    }

    #[test]
    fn a_page_too_large_stops_early_and_still_counts() {
        let page = page(b"aaaa\nbbbb\ncccc\ndddd", 1, 4, "1\taaaa\n2\tbbbb".len());
        assert_eq!((page.n_lines, page.total_lines, page.is_over), (2, 4, true));
        assert_eq!((page.shown.as_str(), page.kept.as_deref()), ("aaaa\nbbbb", Some("aaaa\nbbbb")));
    }

    #[test]
    fn one_line_is_shown_whatever_its_size() {
        let page = page(b"aaaa\nb", 1, 2, 1);
        assert_eq!((page.n_lines, page.is_over), (1, true));
    }

    #[test]
    fn memory_is_bounded_by_the_page() {
        // 100 MB from a reader that makes them up: only the page is held.
        struct Endless(u64);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let n_bytes = (buffer.len() as u64).min(self.0);
                self.0 -= n_bytes;
                buffer[..n_bytes as usize].fill(b'\n');
                Ok(n_bytes as usize)
            }
        }
        let wanted = Wanted { first: 1_000_000, lines: 3, max_bytes: usize::MAX };
        let page = read_page(b"", Endless(100_000_000), wanted, &CancellationToken::new()).unwrap();
        assert_eq!((page.n_lines, page.total_lines), (3, 100_000_001));
        let one_line = Wanted { first: 1, lines: 1, max_bytes: usize::MAX };
        let rest = io::repeat(b'x').take(10_000_000);
        let page = read_page(b"", rest, one_line, &CancellationToken::new()).unwrap();
        assert_eq!(page.kept, None);
        assert!(page.shown.ends_with("[line cut here: it has 10000000 characters]"));
    }

    #[test]
    fn interrupt_ends_reading_a_page() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let wanted = Wanted { first: 1, lines: 1, max_bytes: 1 };
        assert!(read_page(b"", io::repeat(b'x'), wanted, &cancel).is_err());
    }

    proptest! {
        #[test]
        fn any_page_is_the_lines_of_the_text(text in "[aé\r\n]{1,40}", first in 1u64..8, lines in 1u64..8) {
            let lf = text.replace("\r\n", "\n");
            let all: Vec<&str> = lf.split('\n').collect();
            let page = page(text.as_bytes(), first, lines, usize::MAX);
            let expected: Vec<&str> =
                all.iter().skip(first as usize - 1).take(lines as usize).copied().collect();
            prop_assert_eq!(page.total_lines, all.len() as u64);
            prop_assert_eq!(page.n_lines, expected.len() as u64);
            prop_assert_eq!(&page.shown, &expected.join("\n"));
            prop_assert_eq!(page.kept, Some(page.shown));
        }
    }
}
