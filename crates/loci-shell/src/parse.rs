//! The parser: a line of bash to a tree, or the reason why not.
//!
//! It knows lists, pipelines, compound commands, functions, redirections, here-documents, quotes and expansions.
//! What it does not know (arrays, `coproc`, extended globs, odd characters) is an error, never a guess.
//!
//! It is written by hand beside tree-sitter's grammar, which is asked too (`second_opinion`): permissions rest on where a
//! word begins and ends, and two parsers that must agree rarely make the same mistake.

mod compound;
mod expansion;
mod here;
mod word;

use crate::MAX_COMMAND_CHARS;
use crate::syntax::{Assignment, Command, Compound, Redirect, Simple, Word};
use here::{Pending, fill_bodies};

/// Words that begin or continue a compound command when they stand first.
pub(crate) const RESERVED: &[&str] = &[
    "!", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while", "{", "}", "[[", "]]",
];

/// Reserved words that end a list of commands.
const CLOSERS: &[&str] = &["do", "done", "elif", "else", "esac", "fi", "then", "}"];

/// How deep commands may nest.
const MAX_DEPTH: usize = 40;

/// A parsed line.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) command: Command,
    /// Where the words of simple commands stand, in bytes.
    pub(crate) spans: Vec<(usize, usize)>,
    /// Places that were parsed by other means, so that their words have no position.
    pub(crate) skipped: Vec<(usize, usize)>,
    pub(crate) notes: Notes,
}

/// What holds for a line as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Names are evaluated as arithmetic, and so is what their values say.
    pub(crate) evaluates_names: bool,
    /// A text holds a subscript with a substitution, which arithmetic would run.
    pub(crate) has_code_text: bool,
    /// `HOME` or `PWD` is set, so that neither `~` nor `$PWD` is what it was.
    pub(crate) moves_home: bool,
    /// The shell goes elsewhere, so that what is called later runs from there.
    pub(crate) moves: bool,
}

impl Notes {
    /// Returns what either notes.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            evaluates_names: self.evaluates_names || other.evaluates_names,
            has_code_text: self.has_code_text || other.has_code_text,
            moves_home: self.moves_home || other.moves_home,
            moves: self.moves || other.moves,
        }
    }
}

/// Parses a whole line.
pub(crate) fn parse(line: &str) -> Result<Parsed, String> {
    if line.chars().nth(MAX_COMMAND_CHARS).is_some() {
        return Err(format!("longer than {MAX_COMMAND_CHARS} characters"));
    }
    let mut parser = Parser::new(line, 0);
    let commands = parser.list()?;
    if !parser.rest().is_empty() {
        return Err(format!("unexpected `{}`", parser.rest().chars().take(10).collect::<String>()));
    }
    if !parser.pending.is_empty() {
        return Err("a here-document has no end".to_owned());
    }
    if commands.is_empty() {
        return Err("a command is missing".to_owned());
    }
    let mut command = Command::Sequence(commands);
    fill_bodies(&mut command, &mut parser.bodies);
    Ok(Parsed { command, spans: parser.spans, skipped: parser.skipped, notes: parser.notes })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    spans: Vec<(usize, usize)>,
    skipped: Vec<(usize, usize)>,
    /// Here-documents whose text comes after the next line break.
    pending: Vec<Pending>,
    /// Texts of here-documents, by number.
    bodies: Vec<Word>,
    notes: Notes,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, depth: usize) -> Self {
        Self {
            text,
            at: 0,
            depth,
            spans: Vec::new(),
            skipped: Vec::new(),
            pending: Vec::new(),
            bodies: Vec::new(),
            notes: Notes::default(),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn takes(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err("too deeply nested".to_owned()) } else { Ok(()) }
    }

    /// Skips blanks, continued lines and a comment.
    fn blanks(&mut self) {
        loop {
            if self.takes("\\\n") {
                continue;
            }
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('#') => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                _ => return,
            }
        }
    }

    /// Skips blanks and line breaks, reading here-documents on the way.
    fn lines(&mut self) -> Result<(), String> {
        loop {
            self.blanks();
            if !self.takes("\n") {
                return Ok(());
            }
            self.here_documents()?;
        }
    }

    /// Returns the reserved or plain word that comes next, when it is nothing but letters.
    fn plain_word(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || ";&|()<>".contains(c)).unwrap_or(rest.len());
        &rest[..end]
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_next = self.plain_word() == word;
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        self.lines()?;
        if self.takes_word(word) { Ok(()) } else { Err(format!("`{word}` is missing")) }
    }

    /// Reads commands up to something that ends a list.
    fn list(&mut self) -> Result<Vec<Command>, String> {
        let mut commands = Vec::new();
        loop {
            self.lines()?;
            if self.is_at_end_of_list() {
                return Ok(commands);
            }
            let command = self.and_or()?;
            self.blanks();
            if self.rest().starts_with(";;") || self.rest().starts_with(";&") {
                commands.push(command);
                return Ok(commands);
            }
            let is_background = self.peek() == Some('&');
            let is_separated = matches!(self.peek(), Some(';' | '&'));
            if is_separated {
                self.at += 1;
            }
            commands.push(if is_background {
                compound(Compound::Background, vec![command])
            } else {
                command
            });
            if !is_separated && self.peek() != Some('\n') && !self.is_at_end_of_list() {
                return Err(format!("unexpected `{}`", self.rest().chars().take(10).collect::<String>()));
            }
        }
    }

    fn is_at_end_of_list(&self) -> bool {
        self.rest().is_empty()
            || self.rest().starts_with([')'])
            || self.rest().starts_with(";;")
            || self.rest().starts_with(";&")
            || CLOSERS.contains(&self.plain_word())
    }

    fn and_or(&mut self) -> Result<Command, String> {
        let mut left = self.pipeline()?;
        loop {
            self.blanks();
            let is_and = self.rest().starts_with("&&");
            if !is_and && !self.rest().starts_with("||") {
                return Ok(left);
            }
            self.at += 2;
            self.lines()?;
            let right = Box::new(self.pipeline()?);
            left =
                if is_and { Command::And(Box::new(left), right) } else { Command::Or(Box::new(left), right) };
        }
    }

    fn pipeline(&mut self) -> Result<Command, String> {
        self.deeper()?;
        self.blanks();
        let prefix = match self.plain_word() {
            "!" => Some(Compound::Not),
            "time" => Some(Compound::Group),
            _ => None,
        };
        if let Some(kind) = prefix {
            let start = self.at;
            self.at += self.plain_word().len();
            if kind == Compound::Group {
                self.spans.push((start, self.at));
                self.blanks();
                if self.plain_word().starts_with('-') {
                    return Err("flags of `time`".to_owned());
                }
            }
            let inner = self.pipeline()?;
            self.depth -= 1;
            return Ok(compound(kind, vec![inner]));
        }
        let mut parts = vec![self.command()?];
        loop {
            self.blanks();
            if self.rest().starts_with("||") || !self.takes("|") {
                break;
            }
            self.takes("&");
            self.lines()?;
            parts.push(self.command()?);
        }
        self.depth -= 1;
        Ok(if parts.len() == 1 { parts.remove(0) } else { Command::Pipeline(parts) })
    }

    fn command(&mut self) -> Result<Command, String> {
        self.blanks();
        if self.rest().starts_with("((") {
            let word = self.arithmetic_command()?;
            return self.compound_end(Compound::Test, Vec::new(), vec![word]);
        }
        if self.takes("(") {
            let body = self.list()?;
            return match (self.takes(")"), body.is_empty()) {
                (true, false) => self.compound_end(Compound::Subshell, body, Vec::new()),
                _ => Err("`)` is missing".to_owned()),
            };
        }
        let word = self.plain_word();
        match word {
            "{" | "if" | "while" | "until" | "for" | "select" | "case" | "function" | "[[" => {
                self.at += word.len();
                self.compound_command(word)
            }
            "coproc" => Err("`coproc`".to_owned()),
            _ if CLOSERS.contains(&word) => Err(format!("unexpected `{word}`")),
            _ => self.simple(),
        }
    }

    fn simple(&mut self) -> Result<Command, String> {
        let mut simple = Simple::default();
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            let start = self.at;
            let Some(word) = self.word()? else { break };
            if simple.words.is_empty()
                && let Some(name) = assigned_name(&word.source.replace("\\\n", ""))?
            {
                simple.assignments.push(Assignment { name, word });
                continue;
            }
            if is_split_keyword(&word) || self.is_descriptor(&word) {
                return Err(format!("`{}` in front of what follows", word.source));
            }
            self.spans.push((start, self.at));
            simple.words.push(word);
            self.blanks();
            if self.peek() == Some('(') {
                let is_function = simple.words.len() == 1 && simple.assignments.is_empty();
                self.at += 1;
                self.blanks();
                if !is_function || !self.takes(")") {
                    return Err("`(` in a command".to_owned());
                }
                self.spans.pop();
                let name = simple.words.remove(0);
                return self.function_body(name);
            }
        }
        if simple == Simple::default() {
            return Err("a command is missing".to_owned());
        }
        Ok(Command::Simple(simple))
    }

    /// `{name}>file` puts a descriptor's number into a variable, or into part of an array.
    fn is_descriptor(&self, word: &Word) -> bool {
        word.source.starts_with('{') && word.source.ends_with('}') && self.rest().starts_with(['<', '>'])
    }

    /// Reads a redirection, if one comes next.
    fn redirect(&mut self) -> Result<Option<Redirect>, String> {
        let digits = self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let behind = &self.rest()[digits..];
        if behind.starts_with("<(") || behind.starts_with(">(") {
            return if digits == 0 { Ok(None) } else { Err("a redirection".to_owned()) };
        }
        const OPERATORS: &[&str] = &["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"];
        let Some(operator) = OPERATORS.iter().find(|operator| behind.starts_with(**operator)) else {
            return Ok(None);
        };
        if digits > 0 && operator.starts_with('&') {
            return Ok(None);
        }
        self.at += digits + operator.len();
        self.blanks();
        let target = self.word()?.ok_or("a redirection to nothing")?;
        let body = match *operator {
            "<<" => Some(self.announce(&target, false)?),
            "<<-" => Some(self.announce(&target, true)?),
            _ => None,
        };
        let operator = (*operator).to_owned();
        Ok(Some(Redirect { is_numbered: digits > 0, operator, target, body }))
    }
}

fn compound(kind: Compound, body: Vec<Command>) -> Command {
    Command::Compound { kind, body, words: Vec::new(), redirects: Vec::new() }
}

/// A keyword over two lines is still one to bash.
fn is_split_keyword(word: &Word) -> bool {
    word.source.contains("\\\n") && RESERVED.contains(&word.source.replace("\\\n", "").as_str())
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the variable a word assigns, as the first words of a command may.
fn assigned_name(source: &str) -> Result<Option<String>, String> {
    let Some((name, _)) = source.split_once('=') else { return Ok(None) };
    let name = name.strip_suffix('+').unwrap_or(name);
    if let Some((array, _)) = name.split_once('[')
        && is_name(array)
    {
        return Err("an assignment to part of an array".to_owned());
    }
    Ok(is_name(name).then(|| name.to_owned()))
}
