//! A Rust file taken apart: code, comments, and what of the code is only there for tests.
//!
//! The parts are as long as the file, with blanks where something else stood, so that an offset or a line
//! number means the same in all of them. This is a scanner, not a parser: it knows comments, literals and
//! brackets, which is enough to never mistake a word in a string for code.

use std::ops::Range;

/// The parts of one file.
pub(crate) struct RustSource {
    code: String,
    comments: String,
    /// Byte ranges of items under `#[cfg(test)]`.
    tests: Vec<Range<usize>>,
    test_modules: Vec<String>,
    is_all_test: bool,
}

impl RustSource {
    pub(crate) fn new(text: &str) -> RustSource {
        let (code, comments) = split(text);
        let mut source =
            RustSource { code, comments, tests: Vec::new(), test_modules: Vec::new(), is_all_test: false };
        source.find_tests();
        source
    }

    /// Returns code without comments and the insides of literals.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// Returns comments alone.
    pub(crate) fn comments(&self) -> &str {
        &self.comments
    }

    /// Returns code without its tests.
    pub(crate) fn product_code(&self) -> String {
        let mut code = self.code.clone().into_bytes();
        for range in &self.tests {
            blank(&mut code, range.clone());
        }
        String::from_utf8_lossy(&code).into_owned()
    }

    /// Returns the names in `#[cfg(test)] mod name;`.
    pub(crate) fn test_modules(&self) -> &[String] {
        &self.test_modules
    }

    /// Returns the number of lines that are under `#[cfg(test)]`.
    pub(crate) fn n_test_lines(&self) -> usize {
        self.tests.iter().map(|range| self.code[range.clone()].matches('\n').count()).sum()
    }

    /// Marks the whole file as there for tests only.
    pub(crate) fn make_all_test(&mut self) {
        self.is_all_test = true;
        self.tests = std::iter::once(0..self.code.len()).collect();
    }

    pub(crate) fn is_all_test(&self) -> bool {
        self.is_all_test
    }

    fn find_tests(&mut self) {
        let mut from = 0;
        while let Some(start) = self.code[from..].find("#[cfg(").map(|at| from + at) {
            let attribute = start..closing(&self.code, start + 1);
            from = attribute.end;
            if words(&self.code[attribute.clone()], "test").next().is_none() {
                continue;
            }
            let item = start..item_end(&self.code, attribute.end);
            self.test_modules.extend(declared_module(&self.code[attribute.end..item.end]));
            from = item.end;
            self.tests.push(item);
        }
    }
}

/// Returns the lines (from 1) on which `word` stands by itself in `text`.
pub(crate) fn lines_with<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    words(text, word).map(|at| line_at(text, at))
}

/// Returns the line (from 1) of a byte offset.
pub(crate) fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Returns offsets at which `word` stands without a letter, digit or underscore next to it.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let first_joins = word.starts_with(is_part) && before.is_some_and(is_part);
        let last_joins = word.ends_with(is_part) && after.is_some_and(is_part);
        !first_joins && !last_joins
    })
}

/// Splits a text into code and comments.
fn split(text: &str) -> (String, String) {
    let mut code = text.as_bytes().to_vec();
    let mut comments = code.clone();
    blank(&mut comments, 0..text.len());
    let mut at = 0;
    while at < text.len() {
        let end = match token(text, at) {
            Token::Comment(end) => {
                comments[at..end].copy_from_slice(&text.as_bytes()[at..end]);
                blank(&mut code, at..end);
                end
            }
            Token::Literal(end) => {
                // The first quote stays, so that a literal still separates what is around it.
                blank(&mut code, at + 1..end);
                end
            }
            Token::Code(end) => end,
        };
        at = end;
    }
    (String::from_utf8_lossy(&code).into_owned(), String::from_utf8_lossy(&comments).into_owned())
}

/// What begins at an offset, and where it ends.
enum Token {
    Comment(usize),
    Literal(usize),
    Code(usize),
}

fn token(text: &str, at: usize) -> Token {
    let rest = &text[at..];
    if rest.starts_with("//") {
        Token::Comment(at + rest.find('\n').unwrap_or(rest.len()))
    } else if rest.starts_with("/*") {
        Token::Comment(at + block_comment_len(rest))
    } else if rest.starts_with('"') {
        Token::Literal(at + quoted_len(rest, '"'))
    } else if let Some(len) = raw_string_len(rest) {
        Token::Literal(at + len)
    } else if let Some(len) = char_literal_len(rest) {
        Token::Literal(at + len)
    } else {
        Token::Code(at + plain_len(rest))
    }
}

fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        let tail = &rest[at..];
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Returns the length of a literal that begins and ends with `quote`.
fn quoted_len(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string_len(rest: &str) -> Option<usize> {
    let after_prefix = ["r", "br", "cr"].iter().find_map(|prefix| rest.strip_prefix(prefix))?;
    let after_hashes = after_prefix.trim_start_matches('#');
    let hashes = &after_prefix[..after_prefix.len() - after_hashes.len()];
    let body = after_hashes.strip_prefix('"')?;
    let end = format!("\"{hashes}");
    let body_len = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(rest.len() - body.len() + body_len)
}

/// Tells `'a'` from the lifetime `'a`.
fn char_literal_len(rest: &str) -> Option<usize> {
    let mut chars = rest.strip_prefix('\'')?.chars();
    let first = chars.next()?;
    if first == '\\' {
        return Some(quoted_len(rest, '\''));
    }
    (chars.next() == Some('\'')).then_some(2 + first.len_utf8())
}

/// Returns the length of a whole word, so that the `r` of `for"x"` begins no raw string; else of one character.
fn plain_len(rest: &str) -> usize {
    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    if word > 0 { word } else { rest.chars().next().map_or(1, char::len_utf8) }
}

/// Returns where the item that follows an attribute ends.
fn item_end(code: &str, mut at: usize) -> usize {
    while at < code.len() {
        match code.as_bytes()[at] {
            b'{' => return closing(code, at),
            b';' => return at + 1,
            // A field or an argument, the last of its kind.
            b'}' | b')' | b']' => return at,
            b'(' | b'[' => at = closing(code, at),
            _ => at += 1,
        }
    }
    code.len()
}

/// Returns the offset behind the bracket that closes the one at `open`.
pub(crate) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

fn declared_module(item: &str) -> Option<String> {
    let (_, name) = item.strip_suffix(';')?.rsplit_once("mod ")?;
    Some(name.trim().to_owned())
}

fn blank(bytes: &mut [u8], range: Range<usize>) {
    for byte in &mut bytes[range] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: &str, comments: &str) {
        let squeeze = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
        let source = RustSource::new(text);
        assert_eq!(source.code().len(), text.len());
        assert_eq!(source.comments().len(), text.len());
        assert_eq!((squeeze(source.code()).as_str(), squeeze(source.comments()).as_str()), (code, comments));
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        check("a // b\nc", "a c", "// b");
        check("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
        check(r#"f("todo!", x)"#, r#"f(" , x)"#, "");
        check(r#"f("\"//", x)"#, r#"f(" , x)"#, "");
        check(r###"f(r#"a "b" //"#, x)"###, "f(r , x)", "");
        check("'\"' 'ä' '\\'' // b", "' ' '", "// b");
        check("fn f<'a>(x: &'a str) {} // 'a'", "fn f<'a>(x: &'a str) {}", "// 'a'");
        check("let r#type = b\"x\";", "let r#type = b\" ;", "");
        check("\"ünicode\" ü /* ü */", "\" ü", "/* ü */");
        check("\"never closed", "\"", "");
    }

    #[test]
    fn tests_are_not_product_code() {
        let product = |text: &str| {
            RustSource::new(text).product_code().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(product("a\n#[cfg(test)]\nmod tests { fn f() { } }\nb"), "a b");
        assert_eq!(product("#[cfg(test)]\nuse x::y; b"), "b");
        assert_eq!(product("#[cfg(all(test, unix))]\n#[derive(A)]\nfn f(a: [u8; 2]) -> B { } b"), "b");
        assert_eq!(product("fn f() { A { a, #[cfg(test)] b: 0 } } c"), "fn f() { A { a, } } c");
        assert_eq!(product("#[cfg(unix)]\nmod a { } b"), "#[cfg(unix)] mod a { } b");
        assert_eq!(product("#[cfg(test)]\nmod tests { let s = \"}\"; c } b"), "b");
    }

    #[test]
    fn test_modules_in_their_own_file_are_named() {
        let source =
            RustSource::new("#[cfg(test)]\npub(crate) mod tests;\n#[cfg(test)]\nmod inline {}\nmod a;");
        assert_eq!(source.test_modules(), ["tests"]);
        assert_eq!(source.n_test_lines(), 2);
    }

    #[test]
    fn words_stand_alone() {
        let lines = |text, word| lines_with(text, word).collect::<Vec<_>>();
        assert_eq!(lines("Instant\nInstantly\nmy_Instant\n(Instant)", "Instant"), [1, 4]);
        assert_eq!(lines("std::fs std::fsx\nstd::fs::read", "std::fs"), [1, 2]);
        assert_eq!(lines("todo!() my_todo!()", "todo!"), [1]);
    }
}
