//! The text of a PDF document, for models that take no documents.
//!
//! Text is read in the order in which pages draw it, which is that of reading in what programs write. Letters are found by the
//! font's own table (`ToUnicode`), else by its encoding; a font that has neither says nothing. What is drawn as an image has no
//! text, so a scanned document gives none.
//!
//! The format is the crate `hayro-syntax`'s to read; fonts and the order of text are done here, because crates that give text
//! (`pdf-extract`) bring a second reader of the format along, and panic at files that they do not know.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use hayro_syntax::Pdf;
use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction;
use hayro_syntax::object::dict::keys;
use hayro_syntax::object::{Array, Dict, Name, Object, Stream};
use hayro_syntax::page::Resources;

/// The most that is taken of a document, in bytes of text.
const MOST: usize = 400_000;
/// How deep drawings within drawings are followed.
const MOST_NESTED: u8 = 3;
/// A gap between letters that is wider than this, in thousandths of their size, parts words.
const WORD_GAP: f64 = 180.0;

/// The most documents whose text is kept.
const MOST_KEPT: usize = 16;

/// A digest of a document, and its text.
type KeptText = ([u64; 2], Option<Arc<str>>);

/// Texts of documents by a digest of them, the newest last. A document goes out with every request of its conversation, and
/// is read once.
#[derive(Debug, Default)]
pub(crate) struct PdfTextCache {
    // Guards the texts while one is looked up or added, never while a document is read.
    texts: Mutex<VecDeque<KeptText>>,
}

impl PdfTextCache {
    /// Returns the text of a document as [`pdf_text`] does, from what is kept if it was read before.
    pub(crate) fn text(&self, base64: &str) -> Option<Arc<str>> {
        let key = [0_u8, 1].map(|salt| {
            let mut hasher = DefaultHasher::new();
            (salt, base64).hash(&mut hasher);
            hasher.finish()
        });
        let kept = || self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = kept().iter().find(|(known, _)| *known == key) {
            return text.clone();
        }
        let text = pdf_text(base64).map(Arc::from);
        let mut texts = kept();
        if texts.len() == MOST_KEPT {
            texts.pop_front();
        }
        texts.push_back((key, text.clone()));
        text
    }
}

/// Returns the text of a document, page by page; none where it cannot be read or has no text.
fn pdf_text(base64: &str) -> Option<String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64).ok()?;
    let pdf = Pdf::new(bytes).ok()?;
    let pages = pdf.pages();
    let mut out = String::new();
    let mut has_text = false;
    for (idx, page) in pages.iter().enumerate() {
        let mut reader = TextReader::default();
        reader.read(page.typed_operations(), page.resources(), 0);
        let text = reader.text.trim();
        has_text |= !text.is_empty();
        out.push_str(&format!("[Page {} of {}]\n{text}\n", idx + 1, pages.len()));
        if out.len() > MOST {
            let end = (0..=MOST).rev().find(|at| out.is_char_boundary(*at)).unwrap_or(0);
            out.truncate(end);
            out.push_str("\n[The rest was left out.]");
            break;
        }
    }
    has_text.then(|| out.trim_end().to_owned())
}

#[derive(Default)]
struct TextReader {
    text: String,
    /// The height of the line at hand.
    line: Option<f64>,
    fonts: HashMap<Vec<u8>, Font>,
    font: Vec<u8>,
}

impl TextReader {
    fn read(&mut self, mut instructions: TypedIter<'_>, resources: &Resources<'_>, depth: u8) {
        while let Some(instruction) = instructions.next() {
            match instruction {
                TypedInstruction::TextFont(font) => self.choose_font(font.0, resources, depth),
                TypedInstruction::NextLine(by) => self.go(by.0.as_f64(), by.1.as_f64()),
                TypedInstruction::NextLineAndSetLeading(by) => self.go(by.0.as_f64(), by.1.as_f64()),
                TypedInstruction::SetTextMatrix(matrix) => self.go_to(matrix.5.as_f64()),
                TypedInstruction::NextLineUsingLeading(_) => self.break_line(),
                TypedInstruction::ShowText(shown) => self.show(shown.0.as_bytes()),
                TypedInstruction::NextLineAndShowText(shown) => {
                    self.break_line();
                    self.show(shown.0.as_bytes());
                }
                TypedInstruction::ShowTextWithParameters(shown) => {
                    self.break_line();
                    self.show(shown.2.as_bytes());
                }
                TypedInstruction::ShowTexts(shown) => self.show_all(shown.0),
                TypedInstruction::XObject(drawn) if depth < MOST_NESTED => {
                    self.read_nested(drawn.0, resources, depth);
                }
                _ => {}
            }
            if self.text.len() > MOST {
                return;
            }
        }
    }

    fn choose_font(&mut self, name: &Name<'_>, resources: &Resources<'_>, depth: u8) {
        // Names are those of the page, or of a drawing within it.
        let mut key = vec![depth];
        key.extend_from_slice(name.as_ref());
        let font = || resources.get_font(name).map(|dict| Font::read(&dict)).unwrap_or_default();
        self.fonts.entry(key.clone()).or_insert_with(font);
        self.font = key;
    }

    fn read_nested(&mut self, name: &Name<'_>, resources: &Resources<'_>, depth: u8) {
        let Some(drawn) = resources.get_x_object(name) else { return };
        let is_form =
            drawn.dict().get::<Name<'_>>(keys::SUBTYPE).is_some_and(|kind| kind.as_ref() == b"Form");
        let Ok(content) = drawn.decoded() else { return };
        if is_form {
            let own = drawn.dict().get::<Dict<'_>>(keys::RESOURCES).unwrap_or_else(Dict::empty);
            self.fonts.retain(|key, _| key.first() != Some(&(depth + 1)));
            let before = self.font.clone();
            self.read(TypedIter::new(&content), &Resources::new(own), depth + 1);
            self.font = before;
        }
    }

    fn show_all(&mut self, shown: &Array<'_>) {
        for item in shown.iter::<Object<'_>>() {
            match item {
                Object::String(text) => self.show(text.as_bytes()),
                Object::Number(gap) if gap.as_f64() < -WORD_GAP => self.space(),
                _ => {}
            }
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        if let Some(font) = self.fonts.get(&self.font) {
            font.decode(bytes, &mut self.text);
        }
    }

    fn go(&mut self, x: f64, y: f64) {
        match (y != 0.0, x != 0.0) {
            (true, _) => self.break_line(),
            (false, true) => self.space(),
            (false, false) => {}
        }
    }

    fn go_to(&mut self, height: f64) {
        let is_same = self.line.is_some_and(|line| (line - height).abs() < 0.5);
        self.line = Some(height);
        if is_same { self.space() } else { self.break_line() }
    }

    fn break_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }
}

/// What the codes of a font mean.
#[derive(Debug, Default)]
struct Font {
    /// How many bytes a code has.
    width: usize,
    letters: BTreeMap<u32, String>,
}

impl Font {
    fn read(dict: &Dict<'_>) -> Self {
        let is_composite = dict.get::<Name<'_>>(keys::SUBTYPE).is_some_and(|kind| kind.as_ref() == b"Type0");
        let table =
            dict.get::<Stream<'_>>(keys::TO_UNICODE).and_then(|it| it.decoded().ok().map(|it| it.to_vec()));
        let mut font = match table {
            Some(table) => Self::from_table(&table, if is_composite { 2 } else { 1 }),
            None if is_composite => Self { width: 2, letters: BTreeMap::new() },
            None => Self { width: 1, letters: BTreeMap::new() },
        };
        if !is_composite {
            font.width = 1;
            font.add_encoding(dict);
        }
        font
    }

    /// Adds what the encoding says of codes that the table does not have.
    fn add_encoding(&mut self, dict: &Dict<'_>) {
        if let Some(encoding) = dict.get::<Dict<'_>>(keys::ENCODING)
            && let Some(differences) = encoding.get::<Array<'_>>(keys::DIFFERENCES)
        {
            let mut code = 0_u32;
            for item in differences.iter::<Object<'_>>() {
                match item {
                    Object::Number(number) => code = number.as_f64() as u32,
                    Object::Name(name) => {
                        if let Some(letter) = letter_of_glyph(name.as_str()) {
                            self.letters.entry(code).or_insert_with(|| letter.to_string());
                        }
                        code += 1;
                    }
                    _ => {}
                }
            }
        }
        for code in 0x20..=0xff_u8 {
            if let Some(letter) = letter_of_byte(code) {
                self.letters.entry(u32::from(code)).or_insert_with(|| letter.to_string());
            }
        }
    }

    /// Reads a table of the form `<code> <letters>` and `<first> <last> <letters>`.
    fn from_table(table: &[u8], usual_width: usize) -> Self {
        let text = String::from_utf8_lossy(table);
        let mut font = Self { width: usual_width, letters: BTreeMap::new() };
        for (start, end, size) in [("beginbfchar", "endbfchar", 2), ("beginbfrange", "endbfrange", 3)] {
            for section in text.split(start).skip(1).filter_map(|rest| rest.split(end).next()) {
                font.add_section(section, size);
            }
        }
        let spaces = text.split("begincodespacerange").nth(1).and_then(|rest| rest.split('>').next());
        let digits = spaces.map(|first| first.chars().filter(char::is_ascii_hexdigit).count());
        font.width = digits.filter(|n| (1..=8).contains(n)).map_or(usual_width, |n| n.div_ceil(2));
        font
    }

    fn add_section(&mut self, section: &str, size: usize) {
        let tokens: Vec<&str> = section.split(['<', '>']).collect();
        // Between two of them stands white space, or a bracket that makes a list of what follows.
        let mut tokens = tokens.chunks(2).filter_map(|pair| Some((pair[0], *pair.get(1)?)));
        while let Some((_, first)) = tokens.next() {
            let Some(first) = number(first) else { return };
            if size == 2 {
                let Some((_, letters)) = tokens.next() else { return };
                self.letters.insert(first, utf16(letters));
                continue;
            }
            let (Some((_, last)), Some((before, letters))) = (tokens.next(), tokens.next()) else { return };
            let Some(last) = number(last).filter(|last| *last >= first && last - first < 0x1_0000) else {
                return;
            };
            if before.contains('[') {
                self.letters.insert(first, utf16(letters));
                for code in first + 1..=last {
                    let Some((_, letters)) = tokens.next() else { return };
                    self.letters.insert(code, utf16(letters));
                }
            } else {
                self.add_range(first, last, letters);
            }
        }
    }

    fn add_range(&mut self, first: u32, last: u32, letters: &str) {
        let mut units = units(letters);
        for code in first..=last {
            self.letters.insert(code, String::from_utf16_lossy(&units));
            if let Some(unit) = units.last_mut() {
                *unit = unit.wrapping_add(1);
            }
        }
    }

    fn decode(&self, bytes: &[u8], out: &mut String) {
        for code in bytes.chunks(self.width.max(1)) {
            let code = code.iter().fold(0_u32, |code, byte| code << 8 | u32::from(*byte));
            if let Some(letters) = self.letters.get(&code) {
                out.extend(letters.chars().filter(|c| *c != '\0'));
            }
        }
    }
}

fn number(hex: &str) -> Option<u32> {
    u32::from_str_radix(hex.trim(), 16).ok()
}

fn units(hex: &str) -> Vec<u16> {
    let digits: Vec<char> = hex.chars().filter(char::is_ascii_hexdigit).collect();
    let units = digits.chunks(4).map(|unit| unit.iter().collect::<String>());
    units.filter_map(|unit| u16::from_str_radix(&unit, 16).ok()).collect()
}

fn utf16(hex: &str) -> String {
    String::from_utf16_lossy(&units(hex))
}

/// Returns the letter of a byte in the encoding that most documents have (`WinAnsiEncoding`).
fn letter_of_byte(code: u8) -> Option<char> {
    const HIGH: [char; 32] = [
        '€', '•', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '•', 'Ž', '•', '•', '‘', '’', '“',
        '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '•', 'ž', 'Ÿ',
    ];
    match code {
        0x7f => None,
        0x80..=0x9f => HIGH.get(usize::from(code - 0x80)).copied(),
        _ => Some(char::from(code)),
    }
}

/// Returns the letter that a glyph's name stands for, as far as it is usual.
fn letter_of_glyph(name: &str) -> Option<char> {
    let mut letters = name.chars();
    if let (Some(only), None) = (letters.next(), letters.next()) {
        return Some(only);
    }
    if let Some(code) = name.strip_prefix("uni").and_then(|hex| u32::from_str_radix(hex, 16).ok()) {
        return char::from_u32(code);
    }
    GLYPHS.iter().find(|(glyph, _)| *glyph == name).map(|(_, letter)| *letter)
}

const GLYPHS: [(&str, char); 60] = [
    ("space", ' '),
    ("exclam", '!'),
    ("quotedbl", '"'),
    ("numbersign", '#'),
    ("dollar", '$'),
    ("percent", '%'),
    ("ampersand", '&'),
    ("quotesingle", '\''),
    ("parenleft", '('),
    ("parenright", ')'),
    ("asterisk", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("hyphen", '-'),
    ("minus", '−'),
    ("period", '.'),
    ("slash", '/'),
    ("zero", '0'),
    ("one", '1'),
    ("two", '2'),
    ("three", '3'),
    ("four", '4'),
    ("five", '5'),
    ("six", '6'),
    ("seven", '7'),
    ("eight", '8'),
    ("nine", '9'),
    ("colon", ':'),
    ("semicolon", ';'),
    ("less", '<'),
    ("equal", '='),
    ("greater", '>'),
    ("question", '?'),
    ("at", '@'),
    ("bracketleft", '['),
    ("backslash", '\\'),
    ("bracketright", ']'),
    ("underscore", '_'),
    ("braceleft", '{'),
    ("bar", '|'),
    ("braceright", '}'),
    ("quoteleft", '‘'),
    ("quoteright", '’'),
    ("quotedblleft", '“'),
    ("quotedblright", '”'),
    ("endash", '–'),
    ("emdash", '—'),
    ("bullet", '•'),
    ("ellipsis", '…'),
    ("fi", 'ﬁ'),
    ("fl", 'ﬂ'),
    ("ff", 'ﬀ'),
    ("ffi", 'ﬃ'),
    ("ffl", 'ﬄ'),
    ("adieresis", 'ä'),
    ("odieresis", 'ö'),
    ("udieresis", 'ü'),
    ("germandbls", 'ß'),
    ("eacute", 'é'),
    ("egrave", 'è'),
];

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A PDF file of one page with this content, whose fonts `F1` and `F2` are as said.
    pub(crate) fn pdf_with(content: &str, fonts: [&str; 2], table: &str) -> String {
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 600] /Contents 4 0 R \
             /Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>"
                .to_owned(),
            format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
            fonts[0].to_owned(),
            fonts[1].to_owned(),
            format!("<< /Length {} >>\nstream\n{table}\nendstream", table.len()),
        ];
        let mut out = "%PDF-1.4\n".to_owned();
        let mut offsets = Vec::new();
        for (n, object) in objects.iter().enumerate() {
            offsets.push(out.len());
            out.push_str(&format!("{} 0 obj\n{object}\nendobj\n", n + 1));
        }
        let xref = out.len();
        out.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
        for offset in offsets {
            out.push_str(&format!("{offset:010} 00000 n \n"));
        }
        let size = objects.len() + 1;
        out.push_str(&format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n"));
        base64::engine::general_purpose::STANDARD.encode(out)
    }

    const PLAIN: &str = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>";

    #[test]
    fn text_is_read_in_its_order_with_words_and_lines() {
        let content = "BT /F1 12 Tf 10 500 Td (Hello, ) Tj [(wor) -20 (ld) -300 (again)] TJ 0 -14 Td (Second) Tj T* (third) Tj \
                       (fourth) ' ET";
        let text = pdf_text(&pdf_with(content, [PLAIN, PLAIN], "")).unwrap();
        assert_eq!(text, "[Page 1 of 1]\nHello, world again\nSecond\nthird\nfourth");
    }

    #[test]
    fn letters_are_found_by_the_font_s_table_and_encoding() {
        let composite =
            "<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /ToUnicode 7 0 R >>";
        let named = "<< /Type /Font /Subtype /Type1 /BaseFont /Y /Encoding << /Differences [1 /A /eacute 10 /quoteright] >> >>";
        let table = "begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange\n\
                     2 beginbfchar <0001> <00DF> <0002> <D83DDE00> endbfchar\n\
                     2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<0078> <00790079>] endbfrange endcmap";
        let content = "BT /F1 12 Tf (x) Tj <00010002001000110012002000210099> Tj 1 0 0 1 0 400 Tm /F2 12 Tf <01020A41> Tj ET";
        let text = pdf_text(&pdf_with(content, [composite, named], table)).unwrap();
        assert_eq!(text, "[Page 1 of 1]\nß😀abcxyy\nAé’A");
    }

    #[test]
    fn document_is_read_once_and_others_crowd_it_out_without_harm() {
        let document = |n: usize| pdf_with(&format!("BT /F1 12 Tf (number {n}) Tj ET"), [PLAIN, PLAIN], "");
        let texts = PdfTextCache::default();
        let first = texts.text(&document(0)).unwrap();
        assert!(Arc::ptr_eq(&first, &texts.text(&document(0)).unwrap()));
        for n in 1..=2 * MOST_KEPT {
            assert!(texts.text(&document(n)).unwrap().ends_with(&format!("number {n}")), "{n}");
        }
        assert_eq!(texts.text(&document(0)).unwrap(), first);
        // Another client has read nothing yet.
        let others = PdfTextCache::default().text(&document(0)).unwrap();
        assert!(others == first && !Arc::ptr_eq(&others, &texts.text(&document(0)).unwrap()));
    }

    #[test]
    fn document_without_text_gives_none() {
        assert_eq!(pdf_text(&pdf_with("0 0 100 100 re f", [PLAIN, PLAIN], "")), None);
        assert_eq!(pdf_text("AA=="), None);
        assert_eq!(pdf_text("not base64"), None);
    }
}
