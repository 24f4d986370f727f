//! Words: quotes, escapes, and where a word ends.

use super::Parser;
use crate::syntax::{Piece, Word};

impl Word {
    /// A word that stands for itself.
    pub(crate) fn quoted(text: &str) -> Self {
        Self { source: text.to_owned(), pieces: text.chars().map(Piece::Quoted).collect(), ..Self::default() }
    }

    /// Returns the value of a word without expansions, globs aside.
    pub(crate) fn literal(&self) -> Option<String> {
        let letter = |piece: &Piece| match piece {
            Piece::Plain(c) | Piece::Quoted(c) => Some(*c),
            Piece::Variable(_) | Piece::Output(_) | Piece::Unknown => None,
        };
        self.pieces.iter().map(letter).collect()
    }
}

impl Parser<'_> {
    /// Reads a word; `None` when none comes next.
    pub(super) fn word(&mut self) -> Result<Option<Word>, String> {
        let start = self.at;
        let mut word = Word::default();
        while let Some(c) = self.peek() {
            match c {
                '<' | '>' if self.rest()[1..].starts_with('(') => self.process(&mut word)?,
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' => self.escape(&mut word)?,
                '\'' => {
                    self.at += 1;
                    self.single_quoted(&mut word)?;
                }
                '"' => {
                    self.at += 1;
                    self.double_quoted(&mut word)?;
                }
                '$' => self.dollar(&mut word, false)?,
                '`' => self.backquoted(&mut word)?,
                c if is_odd(c) => return Err(format!("character {c:?} outside quotes")),
                c => {
                    self.at += c.len_utf8();
                    word.pieces.push(Piece::Plain(c));
                }
            }
        }
        if self.at == start {
            return Ok(None);
        }
        word.source = self.text[start..self.at].to_owned();
        let letters = word.pieces.iter().filter_map(|piece| match piece {
            Piece::Plain(c) | Piece::Quoted(c) => Some(*c),
            Piece::Variable(_) | Piece::Output(_) | Piece::Unknown => None,
        });
        self.note_text(&letters.collect::<String>());
        Ok(Some(word))
    }

    /// Notes whether a text, evaluated as arithmetic, would run something.
    pub(super) fn note_text(&mut self, text: &str) {
        let behind = text.split_once('[').map_or("", |(_, behind)| behind);
        self.notes.has_code_text |= behind.contains("$(") || behind.contains('`');
    }

    fn escape(&mut self, word: &mut Word) -> Result<(), String> {
        self.at += 1;
        match self.next() {
            Some('\n') => Ok(()),
            Some(c) if is_odd(c) => Err(format!("character {c:?} outside quotes")),
            Some(c) => {
                word.pieces.push(Piece::Quoted(c));
                Ok(())
            }
            None => Err("a backslash at the end".to_owned()),
        }
    }

    fn single_quoted(&mut self, word: &mut Word) -> Result<(), String> {
        // An empty pair of quotes makes a word, too.
        while let Some(c) = self.next() {
            match c {
                '\'' => return Ok(()),
                c if is_control(c) => return Err(format!("character {c:?} inside quotes")),
                c => word.pieces.push(Piece::Quoted(c)),
            }
        }
        Err("a quote is not closed".to_owned())
    }

    fn double_quoted(&mut self, word: &mut Word) -> Result<(), String> {
        self.quoted_text(word, Some('"'))
    }

    /// Reads the whole text as a here-document with expansions.
    pub(super) fn here_text(&mut self) -> Result<Word, String> {
        let mut word = Word::default();
        self.quoted_text(&mut word, None)?;
        word.source = self.text.to_owned();
        word.is_fancy = true;
        Ok(word)
    }

    pub(super) fn quoted_text(&mut self, word: &mut Word, end: Option<char>) -> Result<(), String> {
        while let Some(c) = self.peek() {
            match c {
                c if Some(c) == end => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(c @ ('$' | '`' | '"' | '\\')) => word.pieces.push(Piece::Quoted(c)),
                        Some(c) if is_control(c) => return Err(format!("character {c:?} inside quotes")),
                        Some(c) => word.pieces.extend([Piece::Quoted('\\'), Piece::Quoted(c)]),
                        None => return Err("a backslash at the end".to_owned()),
                    }
                }
                '$' => self.dollar(word, true)?,
                '`' => self.backquoted(word)?,
                c if is_control(c) => return Err(format!("character {c:?} inside quotes")),
                c => {
                    self.at += c.len_utf8();
                    word.pieces.push(Piece::Quoted(c));
                }
            }
        }
        if end.is_some() { Err("a quote is not closed".to_owned()) } else { Ok(()) }
    }
}

fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// Characters that have no business outside quotes: controls, and blanks that only look like blanks.
fn is_odd(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && !c.is_ascii())
        || matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}
