//! Expansions: variables, parameters, substitutions, arithmetic, `$'…'`.

use super::{Parser, is_name};
use crate::syntax::{Command, Piece, Word};

impl Parser<'_> {
    /// Reads what a dollar sign begins.
    pub(super) fn dollar(&mut self, word: &mut Word, is_quoted: bool) -> Result<(), String> {
        self.at += 1;
        self.refuse_continuation()?;
        match self.peek() {
            Some('(') if self.rest().starts_with("((") => self.arithmetic(word),
            Some('(') => {
                self.at += 1;
                self.substitution(word)
            }
            Some('{') => self.parameter(word),
            Some('[') => Err("`$[`".to_owned()),
            Some('\'') if !is_quoted => self.ansi_c(word),
            Some('"') if !is_quoted => Err("`$\"`".to_owned()),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.rest();
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                word.pieces.push(Piece::Variable(rest[..end].to_owned()));
                self.at += end;
                self.refuse_continuation()
            }
            Some(c) if c.is_ascii_digit() || "?#@*!-$".contains(c) => {
                self.at += 1;
                word.pieces.push(Piece::Variable(c.to_string()));
                Ok(())
            }
            _ => {
                word.pieces.push(Piece::Quoted('$'));
                Ok(())
            }
        }
    }

    /// Bash takes continued lines together before it looks at what a dollar sign begins, in quotes too.
    fn refuse_continuation(&self) -> Result<(), String> {
        if self.rest().starts_with("\\\n") { Err("a line continued behind `$`".to_owned()) } else { Ok(()) }
    }

    fn substitution(&mut self, word: &mut Word) -> Result<(), String> {
        self.deeper()?;
        let commands = self.list()?;
        if !self.takes(")") {
            return Err("`)` is missing".to_owned());
        }
        self.depth -= 1;
        word.pieces.push(printed(&commands).map_or(Piece::Unknown, Piece::Output));
        word.scripts.push(Command::Sequence(commands));
        word.is_fancy = true;
        Ok(())
    }

    /// `<(…)` and `>(…)`: the word is the name of a pipe.
    pub(super) fn process(&mut self, word: &mut Word) -> Result<(), String> {
        self.at += 2;
        let n_before = word.pieces.len();
        self.substitution(word)?;
        word.pieces.truncate(n_before);
        word.pieces.push(Piece::Unknown);
        Ok(())
    }

    /// Between backquotes, a backslash protects itself, the dollar sign and the backquote.
    pub(super) fn backquoted(&mut self, word: &mut Word) -> Result<(), String> {
        let start = self.at;
        self.at += 1;
        let mut inner = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(c @ ('\\' | '$' | '`')) => inner.push(c),
                    Some(c) => inner.extend(['\\', c]),
                    None => return Err("a backquote is not closed".to_owned()),
                },
                Some(c) => inner.push(c),
                None => return Err("a backquote is not closed".to_owned()),
            }
        }
        self.skipped.push((start, self.at));
        let mut parser = Parser::new(&inner, self.depth + 1);
        let commands = parser.list()?;
        if !parser.rest().is_empty() || !parser.pending.is_empty() || !parser.bodies.is_empty() {
            return Err("an odd command between backquotes".to_owned());
        }
        self.notes = self.notes.and(parser.notes);
        word.pieces.push(printed(&commands).map_or(Piece::Unknown, Piece::Output));
        word.scripts.push(Command::Sequence(commands));
        word.is_fancy = true;
        Ok(())
    }

    /// `${…}`: a name with an operation and perhaps a word. What assigns, points elsewhere or runs is refused.
    fn parameter(&mut self, word: &mut Word) -> Result<(), String> {
        self.at += 1;
        self.deeper()?;
        let rest = self.rest();
        let rest = rest.strip_prefix('#').filter(|rest| !rest.starts_with('}')).unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        let is_special = end == 0 && rest.starts_with(['?', '#', '@', '*', '-', '$']);
        if !is_special && !is_name(name) && !name.bytes().all(|byte| byte.is_ascii_digit()) || rest.is_empty()
        {
            return Err("`${…}` of an odd kind".to_owned());
        }
        self.at = self.text.len() - rest.len() + end.max(usize::from(is_special));
        let operation = self.rest();
        if operation.starts_with([':']) && operation[1..].starts_with('=')
            || operation.starts_with(['=', '@', '[', '!'])
        {
            return Err("`${…}` that assigns or runs".to_owned());
        }
        // The offset of a substring is arithmetic.
        self.notes.evaluates_names |=
            operation.starts_with(':') && !operation[1..].starts_with(['-', '+', '?']);
        let mut inner = Word::default();
        self.quoted_parameter(&mut inner)?;
        self.depth -= 1;
        word.scripts.extend(inner.scripts);
        word.pieces.push(Piece::Unknown);
        word.is_fancy = true;
        Ok(())
    }

    /// Reads up to the brace that ends a parameter.
    fn quoted_parameter(&mut self, word: &mut Word) -> Result<(), String> {
        while let Some(c) = self.peek() {
            match c {
                '}' => {
                    self.at += 1;
                    return Ok(());
                }
                '"' => {
                    self.at += 1;
                    self.quoted_text(word, Some('"'))?;
                }
                '$' => self.dollar(word, true)?,
                '`' => self.backquoted(word)?,
                '\'' | '{' | '[' => return Err("`${…}` of an odd kind".to_owned()),
                '<' | '>' if self.rest()[1..].starts_with('(') => {
                    return Err("`${…}` with a process in it".to_owned());
                }
                '\\' => {
                    self.at += 1;
                    self.next();
                }
                c if c.is_control() => return Err(format!("character {c:?} in `${{…}}`")),
                c => self.at += c.len_utf8(),
            }
        }
        Err("`}` is missing".to_owned())
    }

    /// `$((…))`. Names are evaluated again as arithmetic, so only numbers are plain.
    fn arithmetic(&mut self, word: &mut Word) -> Result<(), String> {
        self.at += 2;
        word.is_fancy |= self.arithmetic_text(word)?;
        word.pieces.push(Piece::Unknown);
        Ok(())
    }

    /// `((…))`.
    pub(super) fn arithmetic_command(&mut self) -> Result<Word, String> {
        let start = self.at;
        self.at += 2;
        let mut word = Word::default();
        self.arithmetic_text(&mut word)?;
        word.is_fancy = true;
        self.skipped.push((start, self.at));
        Ok(word)
    }

    /// Reads up to `))`; returns whether there is more than numbers in it.
    fn arithmetic_text(&mut self, word: &mut Word) -> Result<bool, String> {
        let start = self.at;
        let is_fancy = self.arithmetic_operands(word)?;
        self.notes.evaluates_names |= is_fancy;
        let text = &self.text[start..self.at];
        self.notes.moves_home |= ["HOME", "PWD", "IFS"].iter().any(|name| text.contains(name));
        Ok(is_fancy)
    }

    fn arithmetic_operands(&mut self, word: &mut Word) -> Result<bool, String> {
        let (mut depth, mut is_fancy) = (0usize, false);
        loop {
            match self.peek() {
                Some(')') if depth == 0 => {
                    return if self.takes("))") { Ok(is_fancy) } else { Err("`))` is missing".to_owned()) };
                }
                Some(')') => depth -= 1,
                Some('(') => depth += 1,
                Some('$') => {
                    is_fancy = true;
                    self.dollar(word, true)?;
                    continue;
                }
                Some('`') => {
                    is_fancy = true;
                    self.backquoted(word)?;
                    continue;
                }
                Some(c) if c.is_ascii_digit() || " +-*/%<>=!&|^~?:,".contains(c) => {}
                Some(c) if c.is_ascii_alphabetic() || c == '_' => is_fancy = true,
                _ => return Err("arithmetic of an odd kind".to_owned()),
            }
            self.at += 1;
        }
    }

    /// `$'…'`, computed.
    fn ansi_c(&mut self, word: &mut Word) -> Result<(), String> {
        self.at += 1;
        word.is_fancy = true;
        loop {
            let c = match self.next().ok_or("a quote is not closed")? {
                '\'' => return Ok(()),
                '\\' => self.ansi_c_escape()?,
                c => c,
            };
            if c.is_control() && !matches!(c, '\n' | '\t') {
                return Err("a control character in `$'…'`".to_owned());
            }
            word.pieces.push(Piece::Quoted(c));
        }
    }

    fn ansi_c_escape(&mut self) -> Result<char, String> {
        let odd = || "an odd escape in `$'…'`".to_owned();
        let c = self.next().ok_or_else(odd)?;
        let (radix, most) = match c {
            'n' => return Ok('\n'),
            't' => return Ok('\t'),
            '\\' | '\'' | '"' | '?' => return Ok(c),
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            _ => return Err(odd()),
        };
        if radix == 8 {
            self.at -= 1;
        }
        let rest = self.rest();
        let length = rest.chars().take(most).take_while(|c| c.is_digit(radix)).count();
        let code = u32::from_str_radix(&rest[..length], radix).map_err(|_| odd())?;
        self.at += length;
        // Bytes beyond ASCII would have to be put together.
        let is_plain = code != 0 && (code < 0x80 || matches!(c, 'u' | 'U'));
        char::from_u32(code).filter(|_| is_plain).ok_or_else(odd)
    }
}

/// Returns what the commands of a substitution print, where that stands in them and is one plain word: `echo a/b`.
fn printed(commands: &[Command]) -> Option<String> {
    let [Command::Simple(simple)] = commands else { return None };
    if !simple.assignments.is_empty() || !simple.redirects.is_empty() {
        return None;
    }
    let words: Vec<String> = simple.words.iter().map(Word::literal).collect::<Option<_>>()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = match words.as_slice() {
        ["echo", text] | ["printf", text] | ["printf", "%s" | "%s\\n", text] => *text,
        _ => return None,
    };
    // Nothing that the shell, `echo` or `printf` would make something else of.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    (text.chars().all(is_plain) && !text.is_empty() && !text.starts_with('-')).then(|| text.to_owned())
}
