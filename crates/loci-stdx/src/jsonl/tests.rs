//! What counts as a line, and that both directions agree on it.

use std::fs::File;
use std::io::{Cursor, Write};

use proptest::prelude::*;

use super::*;

type Found = (u64, Vec<u8>, bool);

fn found(line: Line<'_>) -> Found {
    (line.offset, line.bytes.to_vec(), line.terminated)
}

fn forward(bytes: &[u8]) -> Vec<Found> {
    lines(bytes).map(found).collect()
}

fn backward(bytes: &[u8], chunk: usize) -> Vec<Found> {
    let mut reverse = ReverseLines::new(Cursor::new(bytes)).unwrap().with_chunk_size(chunk);
    let mut all = Vec::new();
    while let Some(line) = reverse.next_line().unwrap() {
        all.push(found(line));
    }
    assert!(reverse.next_line().unwrap().is_none(), "stays at the end");
    all.reverse();
    all
}

/// Checks both directions; a `!` in an expected line stands for "not terminated".
fn check(bytes: &[u8], expected: &[(u64, &str)]) {
    let expected: Vec<Found> = expected
        .iter()
        .map(|(offset, text)| {
            let bytes = text.strip_suffix('!').unwrap_or(text).as_bytes().to_vec();
            (*offset, bytes, !text.ends_with('!'))
        })
        .collect();
    assert_eq!(forward(bytes), expected, "forward, {:?}", bytes.escape_ascii().to_string());
    for chunk in [1, 2, 3, 7, 64] {
        assert_eq!(backward(bytes, chunk), expected, "chunk {chunk}, {:?}", bytes.escape_ascii().to_string());
    }
}

#[test]
fn a_line_ends_at_a_newline_or_at_the_end() {
    check(b"", &[]);
    check(b"{}", &[(0, "{}!")]);
    check(b"{}\n", &[(0, "{}")]);
    check(b"{}\n[]", &[(0, "{}"), (3, "[]!")]);
    check(b"{}\n[]\n", &[(0, "{}"), (3, "[]")]);
}

#[test]
fn carriage_returns_at_the_end_of_a_line_are_dropped() {
    check(b"{}\r\n[]\r", &[(0, "{}"), (4, "[]!")]);
    check(b"a\rb\n", &[(0, "a\rb")]);
}

#[test]
fn blank_lines_are_passed_over() {
    check(b"\n\n\r\n \t\n{}\n\n  ", &[(7, "{}")]);
    check(b"  {}\n", &[(0, "  {}")]);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_start() {
    check(b"\xef\xbb\xbf{}\n", &[(3, "{}")]);
    check(b"\xef\xbb\xbf\n{}\n", &[(4, "{}")]);
    check(b"{}\n\xef\xbb\xbf[]\n", &[(0, "{}"), (3, "\u{feff}[]")]);
}

#[test]
fn runs_of_nul_are_lines_for_the_caller_to_reject() {
    check(b"{}\n\0\0\0\n\0\0[]", &[(0, "{}"), (3, "\0\0\0"), (7, "\0\0[]!")]);
}

#[test]
fn a_part_of_a_file_keeps_the_offsets_of_the_whole() {
    let found: Vec<_> = lines_at(100, b"\xef\xbb\xbfa\nb").map(found).collect();
    assert_eq!(found, [(100, b"\xef\xbb\xbfa".to_vec(), true), (105, b"b".to_vec(), false)]);
}

#[test]
fn reading_backwards_can_start_anywhere() {
    let mut reverse = ReverseLines::ending_at(Cursor::new(b"first\nsecond\nthird\n"), 9);
    assert_eq!(found(reverse.next_line().unwrap().unwrap()), (6, b"sec".to_vec(), false));
    assert_eq!(found(reverse.next_line().unwrap().unwrap()), (0, b"first".to_vec(), true));
    assert_eq!(reverse.next_line().unwrap(), None);
}

/// Counts what is read, to show that nothing is read twice.
struct Counting<R> {
    inner: R,
    n_read: usize,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.inner.read(buffer)?;
        self.n_read += n_bytes;
        Ok(n_bytes)
    }
}

impl<R: Seek> Seek for Counting<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

#[test]
fn a_line_of_many_chunks_is_read_once_in_memory_of_its_size() {
    const LONG: usize = 50_000_000;
    let mut bytes = b"{\"before\":1}\n".repeat(10_000);
    let n_before = bytes.len();
    bytes.resize(n_before + LONG, b'x');
    bytes.extend_from_slice(b"\nlast\n");
    let mut counting = Counting { inner: Cursor::new(&bytes), n_read: 0 };
    let mut reverse = ReverseLines::new(&mut counting).unwrap();
    assert_eq!(reverse.next_line().unwrap().unwrap().bytes, b"last");
    let long = reverse.next_line().unwrap().unwrap();
    assert_eq!((long.offset, long.bytes.len()), (n_before as u64, LONG));
    assert!(reverse.buffer_size() <= 2 * LONG + 4 * 64 * 1024, "{}", reverse.buffer_size());
    let mut n_lines = 0;
    while reverse.next_line().unwrap().is_some() {
        n_lines += 1;
    }
    assert_eq!(n_lines, 10_000);
    assert!(reverse.buffer_size() <= 1024 * 1024, "the memory of a long line is given back");
    assert_eq!(counting.n_read, bytes.len());
}

#[test]
fn a_file_cut_short_meanwhile_is_an_error_and_then_the_end() {
    let mut reverse = ReverseLines::ending_at(Cursor::new(b"short"), 100);
    assert_eq!(reverse.next_line().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(reverse.next_line().unwrap(), None);
}

#[test]
fn real_files_can_be_read_backwards() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"one\ntwo\nthree").unwrap();
    let mut reverse: ReverseLines<&File> = ReverseLines::new(&file).unwrap();
    assert_eq!(reverse.next_line().unwrap().unwrap().bytes, b"three");
    assert_eq!(reverse.next_line().unwrap().unwrap().bytes, b"two");
}

#[test]
fn head_and_tail_of_files_of_any_size() {
    for (content, head, tail) in [
        ("", "", ""),
        ("abc", "abc", "abc"),
        ("abcd", "abcd", "abcd"),
        ("abcdef", "abcd", "cdef"),
        ("abcdefghij", "abcd", "ghij"),
    ] {
        let actual = head_and_tail(&mut Cursor::new(content), 4).unwrap();
        assert_eq!(actual, (head.as_bytes().to_vec(), tail.as_bytes().to_vec()), "{content}");
    }
}

/// Bytes in which the interesting ones are frequent.
fn file_content() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => Just(b'\n'),
        2 => Just(b'\r'),
        2 => prop::sample::select(b"\0\xef\xbb\xbf \t".to_vec()),
        6 => any::<u8>(),
    ];
    let mark = prop_oneof![Just(Vec::new()), Just(BYTE_ORDER_MARK.to_vec())];
    (mark, prop::collection::vec(byte, 0..300)).prop_map(|(mark, rest)| [mark, rest].concat())
}

proptest! {
    #[test]
    fn backward_is_forward_reversed(bytes in file_content(), chunk in 1_usize..400) {
        prop_assert_eq!(backward(&bytes, chunk), forward(&bytes));
    }

    #[test]
    fn offsets_and_terminations_are_true(bytes in file_content()) {
        for (offset, line, terminated) in forward(&bytes) {
            let rest = &bytes[usize::try_from(offset).unwrap()..];
            prop_assert!(rest.starts_with(&line));
            let after = &rest[line.len()..];
            let after = after.strip_prefix(b"\r").unwrap_or(after);
            prop_assert_eq!(after.first(), terminated.then_some(&b'\n'));
        }
    }
}
