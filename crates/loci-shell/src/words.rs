//! The narrow grammar: a line to simple commands, a simple command to words, or the reason why not.

use std::iter::Peekable;
use std::str::Chars;

use crate::MAX_COMMAND_CHARS;

/// Words that begin or continue a compound command when they stand first.
pub(crate) const RESERVED: &[&str] = &[
    "!", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while", "{", "}", "[[", "]]",
];

/// One word after quote removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// What the program would get.
    pub(crate) value: String,
    /// As written.
    source: String,
    is_quoted: bool,
}

/// Returns the simple commands of a line in order, each with at least one word.
pub(crate) fn simple_commands(command: &str) -> Result<Vec<Vec<Word>>, String> {
    if command.chars().nth(MAX_COMMAND_CHARS).is_some() {
        return Err(format!("longer than {MAX_COMMAND_CHARS} characters"));
    }
    let mut reader = Reader::new(command);
    reader.read()?;
    reader.finish()
}

/// Shows a simple command the way rules are written: a word whose quotes change nothing loses them.
pub(crate) fn text(words: &[Word]) -> String {
    let shown = words.iter().map(|word| {
        let needless = !word.value.is_empty() && word.value.chars().all(is_plain);
        if needless { word.value.as_str() } else { word.source.as_str() }
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c)
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    done: Vec<Vec<Word>>,
    words: Vec<Word>,
    word: Option<Word>,
    /// Set behind `&&`, `||` and `|`, which need a command after them.
    wants_command: bool,
}

impl<'a> Reader<'a> {
    fn new(command: &'a str) -> Self {
        Self {
            chars: command.chars().peekable(),
            done: Vec::new(),
            words: Vec::new(),
            word: None,
            wants_command: true,
        }
    }

    fn read(&mut self) -> Result<(), String> {
        while let Some(c) = self.chars.next() {
            match c {
                ' ' => self.end_word(),
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '>' => self.redirection()?,
                ';' => self.end_command(false)?,
                '|' => {
                    if self.chars.next_if_eq(&'|').is_none() && self.chars.peek() == Some(&'&') {
                        return Err("`|&`".to_owned());
                    }
                    self.end_command(true)?;
                }
                '&' if self.chars.next_if_eq(&'&').is_some() => self.end_command(true)?,
                c if is_plain(c) => self.push(c),
                c => return Err(format!("character {c:?} outside quotes")),
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Vec<Word>>, String> {
        self.end_word();
        if !self.words.is_empty() {
            self.take_command()?;
        } else if self.wants_command {
            return Err("a command is missing".to_owned());
        }
        Ok(self.done)
    }

    fn push(&mut self, c: char) {
        let word = self.word.get_or_insert_default();
        word.value.push(c);
        word.source.push(c);
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self, wants_command: bool) -> Result<(), String> {
        self.end_word();
        if self.words.is_empty() {
            return Err("a command is missing".to_owned());
        }
        self.take_command()?;
        self.wants_command = wants_command;
        Ok(())
    }

    fn take_command(&mut self) -> Result<(), String> {
        let words = std::mem::take(&mut self.words);
        let first = words.first().map(|word| word.value.as_str()).unwrap_or_default();
        if first.contains('=') {
            return Err(format!("assignment `{first}`"));
        }
        if RESERVED.contains(&first) {
            return Err(format!("compound command `{first}`"));
        }
        self.done.push(words);
        Ok(())
    }

    fn single_quoted(&mut self) -> Result<(), String> {
        self.quoted('\'', |c| c == '\n' || !c.is_control())
    }

    fn double_quoted(&mut self) -> Result<(), String> {
        self.quoted('"', |c| !c.is_control() && !"$`\\".contains(c))
    }

    fn quoted(&mut self, quote: char, is_literal: impl Fn(char) -> bool) -> Result<(), String> {
        let word = self.word.get_or_insert_default();
        word.is_quoted = true;
        word.source.push(quote);
        for c in self.chars.by_ref() {
            word.source.push(c);
            if c == quote {
                return Ok(());
            }
            if !is_literal(c) {
                return Err(format!("character {c:?} inside quotes"));
            }
            word.value.push(c);
        }
        Err("a quote is not closed".to_owned())
    }

    /// Takes `2>&1`, `2>/dev/null` and `>/dev/null`; the `2` must be a word of its own up to here.
    fn redirection(&mut self) -> Result<(), String> {
        let is_stderr = match self.word.take() {
            None => false,
            Some(word) if word.value == "2" && !word.is_quoted => true,
            Some(_) => return Err("a redirection".to_owned()),
        };
        if self.chars.peek() == Some(&'&') {
            let is_duplicate = is_stderr && self.takes("&1");
            return if is_duplicate { Ok(()) } else { Err("a redirection".to_owned()) };
        }
        while self.chars.next_if_eq(&' ').is_some() {}
        if self.takes("/dev/null") { Ok(()) } else { Err("a redirection to a file".to_owned()) }
    }

    /// Takes `text` when it comes next and is followed by the end of a word.
    fn takes(&mut self, text: &str) -> bool {
        let mut ahead = self.chars.clone();
        let is_next = text.chars().all(|c| ahead.next() == Some(c));
        let is_whole = ahead.peek().is_none_or(|c| " ;|&".contains(*c));
        if is_next && is_whole {
            self.chars = ahead;
        }
        is_next && is_whole
    }
}
