//! Compound commands: groups, choices, loops, `case`, functions, tests.

use super::{Parser, is_name};
use crate::syntax::{Command, Compound, Word};

impl Parser<'_> {
    pub(super) fn compound_command(&mut self, word: &str) -> Result<Command, String> {
        match word {
            "{" => {
                let body = self.list()?;
                self.expect("}")?;
                self.compound_end(Compound::Group, body, Vec::new())
            }
            "if" => {
                let mut body = self.list()?;
                loop {
                    self.expect("then")?;
                    body.extend(self.list()?);
                    if self.takes_word("elif") {
                        body.extend(self.list()?);
                        continue;
                    }
                    if self.takes_word("else") {
                        body.extend(self.list()?);
                    }
                    break;
                }
                self.expect("fi")?;
                self.compound_end(Compound::Choice, body, Vec::new())
            }
            "while" | "until" => {
                let mut body = self.list()?;
                body.extend(self.do_done()?);
                self.compound_end(Compound::Choice, body, Vec::new())
            }
            "for" | "select" => self.for_command(word),
            "case" => self.case_command(),
            "function" => {
                self.blanks();
                let name = self.plain_word();
                self.at += name.len();
                self.blanks();
                self.takes("()");
                self.function_body(Word { source: name.to_owned(), ..Word::default() })
            }
            _ => self.test_command(),
        }
    }

    fn do_done(&mut self) -> Result<Vec<Command>, String> {
        self.expect("do")?;
        let body = self.list()?;
        self.expect("done")?;
        Ok(body)
    }

    fn for_command(&mut self, word: &str) -> Result<Command, String> {
        self.blanks();
        let name = self.plain_word();
        if !is_name(name) {
            return Err(format!("`{word}` without a name"));
        }
        self.at += name.len();
        self.notes.moves_home |= matches!(name, "HOME" | "PWD" | "IFS");
        self.lines()?;
        let mut words = Vec::new();
        if self.takes_word("in") {
            loop {
                self.blanks();
                match self.peek() {
                    Some(';' | '\n') => break,
                    Some(_) => words.push(self.word()?.ok_or("an odd word in `for`")?),
                    None => return Err("`do` is missing".to_owned()),
                }
            }
        }
        self.blanks();
        self.takes(";");
        let body = self.do_done()?;
        let kind = if word == "for" { Compound::For } else { Compound::Opaque };
        self.compound_end(kind, body, words)
    }

    fn case_command(&mut self) -> Result<Command, String> {
        self.blanks();
        let mut words = vec![self.word()?.ok_or("`case` without a word")?];
        self.expect("in")?;
        let mut body = Vec::new();
        loop {
            self.lines()?;
            if self.takes_word("esac") {
                return self.compound_end(Compound::Opaque, body, words);
            }
            self.takes("(");
            loop {
                self.blanks();
                words.push(self.word()?.ok_or("an odd pattern in `case`")?);
                self.blanks();
                if self.takes(")") {
                    break;
                }
                if !self.takes("|") {
                    return Err("an odd pattern in `case`".to_owned());
                }
            }
            body.extend(self.list()?);
            let is_ended = self.takes(";;&") || self.takes(";;") || self.takes(";&");
            if !is_ended && self.plain_word() != "esac" {
                return Err("`esac` is missing".to_owned());
            }
        }
    }

    fn test_command(&mut self) -> Result<Command, String> {
        let start = self.at;
        self.notes.evaluates_names = true;
        let mut words = Vec::new();
        loop {
            self.lines()?;
            if self.takes_word("]]") {
                break;
            }
            if self.takes("&&") || self.takes("||") {
                continue;
            }
            match self.peek() {
                Some('(' | ')' | '<' | '>') => self.at += 1,
                Some(_) => words.push(self.word()?.ok_or("an odd word in `[[`")?),
                None => return Err("`]]` is missing".to_owned()),
            }
        }
        self.skipped.push((start, self.at));
        self.compound_end(Compound::Test, Vec::new(), words)
    }

    /// Reads what a function does; its name becomes the only word of the compound command.
    pub(super) fn function_body(&mut self, name: Word) -> Result<Command, String> {
        self.lines()?;
        self.deeper()?;
        let body = self.command()?;
        self.depth -= 1;
        self.compound_end(Compound::Function, vec![body], vec![name])
    }

    pub(super) fn compound_end(
        &mut self,
        kind: Compound,
        body: Vec<Command>,
        words: Vec<Word>,
    ) -> Result<Command, String> {
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(Command::Compound { kind, body, words, redirects }),
            }
        }
    }
}
