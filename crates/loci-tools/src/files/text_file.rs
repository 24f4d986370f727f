//! Text as it lies on disk: its encoding, its byte-order mark and its line endings, all kept when it is changed.
//!
//! A file is UTF-8 or UTF-16 when its byte-order mark says so, UTF-8 when its bytes are valid as such, and
//! otherwise whatever its bytes look like most. The model sees line feeds only; [`LfView`] leads from an offset
//! in what the model sees back to the offset in what is stored, so that an edit touches nothing but its place.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// How many bytes at the start of a file tell text from binary.
const BINARY_SAMPLE: usize = 8 * 1024;

/// An encoding, and whether a byte-order mark stands before the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Charset {
    encoding: &'static Encoding,
    has_bom: bool,
}

/// A character the file's encoding has no bytes for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file is encoded as {charset}, which has no `{character}`")]
pub(crate) struct Unencodable {
    charset: &'static str,
    character: char,
}

impl Charset {
    /// What a new file gets.
    pub(crate) const UTF_8: Self = Self { encoding: UTF_8, has_bom: false };

    /// Tells the encoding from the first bytes of a file; a character cut off at their end does not matter.
    pub(crate) fn detect(head: &[u8]) -> Self {
        if let Some((encoding, _)) = Encoding::for_bom(head) {
            return Self { encoding, has_bom: true };
        }
        if std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true) {
            return Self::UTF_8;
        }
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(head, true);
        Self { encoding: detector.guess(None, Utf8Detection::Deny), has_bom: false }
    }

    /// Returns a decoder for the whole file, byte-order mark included.
    pub(crate) fn decoder(self) -> Decoder {
        self.encoding.new_decoder_with_bom_removal()
    }

    /// Returns the text of bytes that need not be written back; what does not fit the encoding is replaced.
    pub(crate) fn decoded(self, bytes: &[u8]) -> String {
        self.encoding.decode_with_bom_removal(bytes).0.into_owned()
    }

    /// Returns the bytes of a text, byte-order mark included.
    pub(crate) fn encode(self, text: &str) -> Result<Vec<u8>, Unencodable> {
        let mut bytes = Vec::with_capacity(text.len() + 3);
        let bom = if self.has_bom { "\u{feff}" } else { "" };
        if self.encoding == UTF_16LE {
            bytes.extend(bom.encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes));
        } else if self.encoding == UTF_16BE {
            bytes.extend(bom.encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_be_bytes));
        } else if self.encoding == UTF_8 {
            bytes.extend([bom, text].iter().flat_map(|part| part.bytes()));
        } else {
            let (encoded, _, is_lossy) = self.encoding.encode(text);
            if is_lossy {
                return Err(self.unencodable(text));
            }
            bytes.extend_from_slice(&encoded);
        }
        Ok(bytes)
    }

    fn unencodable(self, text: &str) -> Unencodable {
        let has_no_bytes = |character: &char| self.encoding.encode(character.encode_utf8(&mut [0; 4])).2;
        let character = text.chars().find(has_no_bytes).unwrap_or(char::REPLACEMENT_CHARACTER);
        Unencodable { charset: self.encoding.name(), character }
    }
}

/// Returns what kind of binary file begins with `head`, or `None` for text.
///
/// Magic bytes alone would take a note that begins with `BM` for a picture, so they only name what control
/// characters or undecodable bytes have given away.
pub(crate) fn binary_kind(head: &[u8]) -> Option<&'static str> {
    let sample = &head[..head.len().min(BINARY_SAMPLE)];
    if let Some((encoding, _)) = Encoding::for_bom(sample)
        && encoding != UTF_8
    {
        return None;
    }
    let magic = infer::get(head)
        .filter(|kind| kind.matcher_type() != infer::MatcherType::Text)
        .map(|kind| kind.mime_type());
    let n_control = sample.iter().filter(|byte| matches!(byte, 1..=8 | 14..=26 | 28..=31)).count();
    let is_binary = sample.contains(&0)
        || n_control * 10 > sample.len()
        || (magic.is_some() && Charset::detect(sample) != Charset::UTF_8);
    is_binary.then(|| magic.unwrap_or("application/octet-stream"))
}

/// A text file in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextFile {
    /// The text with its line endings as they are stored.
    pub(crate) stored: String,
    pub(crate) charset: Charset,
}

impl TextFile {
    /// Decodes a file; `None` when writing the text back would not give the same bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let charset = Charset::detect(bytes);
        let (stored, _) = charset.encoding.decode_with_bom_removal(bytes);
        let file = Self { stored: stored.into_owned(), charset };
        let is_faithful = charset.encode(&file.stored).is_ok_and(|encoded| encoded == bytes);
        is_faithful.then_some(file)
    }
}

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnding {
    Lf,
    CrLf,
}

impl LineEnding {
    /// Returns a text as it is stored in a file with these endings. Carriage returns in a file of line feeds
    /// are meant and stay.
    pub(crate) fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::CrLf if text.contains('\n') => Cow::Owned(to_lf(text).replace('\n', "\r\n")),
            Self::CrLf | Self::Lf => Cow::Borrowed(text),
        }
    }
}

/// Returns a text with line feeds for all its line endings.
pub(crate) fn to_lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// A stored text as the model sees it, with line feeds only, and the way back.
pub(crate) struct LfView<'a> {
    /// What the model sees.
    pub(crate) text: Cow<'a, str>,
    /// Where in `text` the line feeds stand that are stored with a carriage return, in order.
    crlf: Vec<usize>,
}

impl<'a> LfView<'a> {
    pub(crate) fn new(stored: &'a str) -> Self {
        let text = to_lf(stored);
        let crlf = stored.match_indices("\r\n").enumerate().map(|(n, (at, _))| at - n).collect();
        Self { text, crlf }
    }

    /// Returns the offset in the stored text of an offset in [`LfView::text`]. A line ending is one thing: the
    /// offset before its line feed leads to before its carriage return.
    pub(crate) fn stored_offset(&self, offset: usize) -> usize {
        offset + self.crlf.partition_point(|at| *at < offset)
    }

    /// Returns the ending most lines have.
    pub(crate) fn ending(&self) -> LineEnding {
        let n_lines = self.text.bytes().filter(|byte| *byte == b'\n').count();
        if self.crlf.len() * 2 > n_lines { LineEnding::CrLf } else { LineEnding::Lf }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn encodings_are_told_apart_and_kept() {
        let german = "Die Straße führt über die Brücke, schön für Fußgänger.\n";
        let russian = "Съешь ещё этих мягких французских булок, да выпей чаю.\n";
        let japanese = "これは日本語の文章です。文字コードを調べています。\n";
        for (bytes, name, text) in [
            (b"plain\n".to_vec(), "UTF-8", "plain\n"),
            ("gr\u{fc}n\n".into(), "UTF-8", "gr\u{fc}n\n"),
            (b"\xef\xbb\xbfbom\n".to_vec(), "UTF-8", "bom\n"),
            (utf16("\u{feff}a\u{20ac}\n", u16::to_le_bytes), "UTF-16LE", "a\u{20ac}\n"),
            (utf16("\u{feff}a\u{20ac}\n", u16::to_be_bytes), "UTF-16BE", "a\u{20ac}\n"),
            (encoding_rs::WINDOWS_1252.encode(german).0.into_owned(), "windows-1252", german),
            (encoding_rs::WINDOWS_1251.encode(russian).0.into_owned(), "windows-1251", russian),
            (encoding_rs::SHIFT_JIS.encode(japanese).0.into_owned(), "Shift_JIS", japanese),
        ] {
            let file = TextFile::decode(&bytes).unwrap();
            assert_eq!((file.charset.encoding.name(), file.stored.as_str()), (name, text));
            assert_eq!(file.charset.encode(&file.stored).unwrap(), bytes, "{name}");
        }
    }

    #[test]
    fn a_character_cut_off_at_the_end_of_the_sample_is_no_error() {
        assert_eq!(Charset::detect(&"aß€".as_bytes()[..5]), Charset::UTF_8);
    }

    #[test]
    fn a_character_without_bytes_is_named() {
        let file = TextFile::decode(&encoding_rs::WINDOWS_1252.encode("schöne grüße").0).unwrap();
        let error = file.charset.encode("grün \u{1f600}").unwrap_err();
        assert_eq!(error.to_string(), "the file is encoded as windows-1252, which has no `\u{1f600}`");
    }

    #[test]
    fn an_odd_utf16_file_is_not_faithful() {
        assert_eq!(TextFile::decode(b"\xff\xfea\0b"), None);
    }

    #[test]
    fn binary_files_are_named() {
        let elf = [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 60]].concat();
        for (head, expected) in [
            (b"plain text".as_slice(), None),
            (b"", None),
            (b"BM is how a bitmap begins", None),
            (b"\x1b[31mred\x1b[0m log", None),
            (b"caf\xe9 noir", None),
            (b"\xff\xfea\0b\0", None),
            (b"%PDF-1.7 text of a document", None),
            (&elf, Some("application/x-executable")),
            (b"PK\x03\x04\x14\0\0\0", Some("application/zip")),
            (b"\0\x01\x02\x03", Some("application/octet-stream")),
            (b"\x01\x02\x03\x04\x05abc", Some("application/octet-stream")),
        ] {
            assert_eq!(binary_kind(head), expected, "{}", head.escape_ascii());
        }
    }

    #[test]
    fn endings_are_those_of_most_lines() {
        for (stored, expected) in [
            ("", LineEnding::Lf),
            ("one line", LineEnding::Lf),
            ("a\nb\n", LineEnding::Lf),
            ("a\r\nb\r\n", LineEnding::CrLf),
            ("a\r\nb\r\nc\n", LineEnding::CrLf),
            ("a\r\nb\n", LineEnding::Lf),
            ("a\rb\r", LineEnding::Lf),
        ] {
            assert_eq!(LfView::new(stored).ending(), expected, "{stored:?}");
        }
        assert_eq!(LineEnding::CrLf.apply("a\nb\r\nc"), "a\r\nb\r\nc");
        assert_eq!(LineEnding::Lf.apply("a\nb\r\nc"), "a\nb\r\nc");
    }

    proptest! {
        #[test]
        fn offsets_lead_back_to_the_stored_text(stored in "[ab\r\n]{0,24}") {
            let view = LfView::new(&stored);
            let mut rebuilt = String::new();
            for (at, character) in view.text.char_indices() {
                let (from, to) = (view.stored_offset(at), view.stored_offset(at + 1));
                let piece = &stored[from..to];
                prop_assert!(piece == character.to_string() || (character == '\n' && piece == "\r\n"));
                rebuilt.push_str(piece);
            }
            prop_assert_eq!(rebuilt, stored);
        }
    }
}
