//! Commands in commands: every way to read one, and the paths each way touches.

use loci_core::tool::HOLE;

use super::paths::is_free_device;
use super::{Dirs, Walk, walk};
use crate::code::Document;
use crate::files::{self, Access};
use crate::renames::Meaning;
use crate::syntax::Simple;
use crate::value::{Value, join, show};
use crate::wrappers::{self, Inner};
use crate::{parse, parts, read_only, second_opinion};

/// How often a string in a command may be a command again.
const MAX_NESTING: usize = 8;
/// How many words are tried as the beginning of a command.
const MOST_SUFFIXES: usize = 64;
/// On how many levels code is looked for behind any of the words, and how many pieces of it on each.
const MOST_GUESSES: usize = 2;
const MOST_CODES: usize = 8;

impl Walk<'_> {
    /// Notes every way to read a command, and the paths each touches.
    pub(super) fn consider(
        &mut self,
        values: &[Value],
        simple: &Simple,
        dirs: &Dirs,
        readings: &mut Vec<String>,
        depth: usize,
    ) {
        let Some(first) = values.first() else { return };
        if self.is_renamed(first) {
            self.renamed(values, dirs, readings);
        }
        if first.text.contains(HOLE) {
            self.note_unknown();
        }
        readings.push(show(values));
        for values in std::iter::once(values.to_vec()).chain(by_base_name(values)) {
            readings.push(join(&values));
            readings.extend(without_holes(&values));
        }
        if depth > MAX_NESTING {
            self.anything(readings);
            return;
        }
        let accesses: Vec<Access> = match read_only::reads_of(values) {
            Some(paths) => paths.into_iter().map(Access::Read).collect(),
            None => files::accesses(values, Document::from_text(documents(simple).as_deref())),
        };
        let is_free = |access: &Access| matches!(access, Access::Read(value) if is_free_device(value));
        let opens_only = files::only_opens(values);
        self.accesses(accesses.into_iter().filter(|it| !(opens_only && is_free(it))).collect(), dirs);
        let dirs = match wrappers::directory(values) {
            Some(to) => &dirs.moved_to(&to),
            // What a trap runs, it runs from wherever the shell then is.
            None if first.text == "trap" => &self.later(dirs),
            None => dirs,
        };
        for inner in wrappers::inner(values) {
            match inner {
                Inner::Words(words) => self.consider(&words, simple, dirs, readings, depth + 1),
                Inner::Guess(words) => {
                    self.n_guesses += 1;
                    self.consider(&words, simple, dirs, readings, depth + 1);
                    self.n_guesses -= 1;
                }
                Inner::Code(code) => self.code(&code, dirs, readings),
                Inner::Script(text) => readings.push(text),
                Inner::Foreign(code) => readings.extend(rough(&code)),
                Inner::Input => match documents(simple) {
                    Some(code) => self.code(&Value::literal(&code), dirs, readings),
                    None => self.anything(readings),
                },
                Inner::ForeignInput => match documents(simple) {
                    Some(code) => readings.extend(rough(&code)),
                    None => self.anything(readings),
                },
                Inner::ForeignData => readings.extend(documents(simple).iter().flat_map(|data| rough(data))),
                Inner::Suffixes => self.guess(values, dirs, readings),
                Inner::Anything => self.anything(readings),
                Inner::Perhaps => readings.push(HOLE.to_string()),
            }
        }
    }

    /// Notes a call of a function of the line, which may run any of its words; what else it does is judged where it
    /// is defined.
    pub(super) fn call(&mut self, values: &[Value], dirs: &Dirs, readings: &mut Vec<String>) {
        readings.push(join(values));
        readings.push(show(values));
        let codes = values.iter().skip(1).filter(|value| value.text.contains(char::is_whitespace));
        readings.extend(codes.flat_map(|value| rough(&value.text)));
        self.guess(values, dirs, readings);
    }

    fn is_renamed(&self, program: &Value) -> bool {
        !program.text.contains(HOLE) && self.renames.meaning(&program.text) == Meaning::Unknown
    }

    /// Notes that a command's name could stand for any program, one that removes what it is given, too.
    fn renamed(&mut self, values: &[Value], dirs: &Dirs, readings: &mut Vec<String>) {
        self.note_unknown();
        let (name, arguments) = (&values[0], &values[1..]);
        let hidden = Value { shown: name.shown.clone(), ..Value::hole() };
        let hidden: Vec<Value> = std::iter::once(hidden).chain(arguments.iter().cloned()).collect();
        readings.push(join(&hidden));
        let removed = arguments.iter().filter(|value| !value.text.starts_with('-') && !value.text.is_empty());
        self.accesses(removed.cloned().map(Access::Remove).collect(), dirs);
        self.accesses(files::accesses(&hidden, Document::Unknown), dirs);
        self.guess(&hidden, dirs, readings);
    }

    /// Notes that any of the words may begin a command.
    fn guess(&mut self, values: &[Value], dirs: &Dirs, readings: &mut Vec<String>) {
        readings.extend(suffixes(values));
        self.n_guesses += 1;
        self.suffixes(values, dirs, readings);
        self.n_guesses -= 1;
    }

    /// Notes that what is run is only known when it runs.
    fn anything(&mut self, readings: &mut Vec<String>) {
        self.note_unknown();
        readings.push(HOLE.to_string());
    }

    fn note_unknown(&mut self) {
        self.runs_unknown |= self.n_guesses == 0;
    }

    /// Notes what a command would touch that stands behind any of the words.
    fn suffixes(&mut self, values: &[Value], dirs: &Dirs, readings: &mut Vec<String>) {
        let mut seen = Vec::new();
        for at in 1..values.len().min(MOST_SUFFIXES) {
            let rest = &values[at..];
            if read_only::reads_of(rest).is_none() {
                self.accesses(files::accesses(rest, Document::Unknown), dirs);
            }
            for inner in wrappers::inner(rest) {
                match inner {
                    Inner::Code(code) if seen.contains(&code.text) => {}
                    // Each level may have many, so few levels are followed.
                    Inner::Code(_) if self.nesting >= MOST_GUESSES || seen.len() >= MOST_CODES => {
                        self.out.unknown.push("code in code that only the run will tell".to_owned());
                    }
                    Inner::Code(code) => {
                        self.code(&code, dirs, readings);
                        seen.push(code.text);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Analyses a string that is run as a command; its readings are those of the command that runs it.
    fn code(&mut self, code: &Value, dirs: &Dirs, readings: &mut Vec<String>) {
        let parsed = match code.known() {
            Some(text) if self.nesting < MAX_NESTING => {
                parse::parse(text).map(|parsed| (second_opinion::objection(text, &parsed), parsed))
            }
            _ => Err("code that only the run will tell".to_owned()),
        };
        let (objection, parsed) = match parsed {
            Ok(parsed) => parsed,
            Err(reason) => {
                self.out.unknown.extend(code.known().map(|_| reason));
                readings.extend(rough(&code.text));
                self.anything(readings);
                self.known_parts(code, dirs);
                return;
            }
        };
        readings.extend(self.walk_inner(&parsed, dirs));
        self.out.unknown.extend(objection);
    }

    /// Notes what the known parts of code touch, with a variable where only the run will tell.
    fn known_parts(&mut self, code: &Value, dirs: &Dirs) {
        let text = code.text.replace(HOLE, "$_");
        if code.known().is_none()
            && self.nesting < MAX_NESTING
            && text.trim() != "$_"
            && let Ok(parsed) = parse::parse(&text)
        {
            self.walk_inner(&parsed, dirs);
        }
    }

    /// Takes over what a string of code does, and returns every way to read its commands.
    fn walk_inner(&mut self, parsed: &parse::Parsed, dirs: &Dirs) -> Vec<String> {
        let before = (self.notes, self.renames.clone());
        let (inner, (notes, renames)) = walk(parsed, &self.ctx, dirs, self.nesting + 1, before);
        self.notes = self.notes.and(notes);
        self.renames = renames;
        self.out.reads.extend(inner.reads);
        self.out.writes.extend(inner.writes);
        self.out.redirects.extend(inner.redirects);
        self.out.removals.extend(inner.removals);
        self.out.moves.extend(inner.moves);
        self.out.unclear.extend(inner.unclear);
        self.out.unknown.extend(inner.unknown);
        if inner.commands.iter().any(|command| command.runs_unknown) {
            self.note_unknown();
        }
        inner.commands.into_iter().flat_map(|command| command.readings).collect()
    }
}

fn rough(code: &str) -> Vec<String> {
    parts::rough_parts(code).iter().flat_map(|part| parts::rough_readings(part)).collect()
}

/// Reads a command as if words that only the run will tell came to nothing: each of the first few, and all.
fn without_holes(values: &[Value]) -> Vec<String> {
    let is_hole = |value: &Value| value.text.chars().eq([HOLE]);
    let holes: Vec<usize> = (0..values.len()).filter(|idx| is_hole(&values[*idx])).collect();
    let n_sets = 1_usize << holes.len().min(3);
    let is_gone = |set: usize, idx: usize| {
        holes.iter().position(|hole| *hole == idx).is_some_and(|at| at > 2 || set & (1 << at) != 0)
    };
    let kept = |set: usize| -> Vec<Value> {
        (0..values.len()).filter(|idx| !is_gone(set, *idx)).map(|idx| values[idx].clone()).collect()
    };
    (1..n_sets).map(kept).filter(|rest| !rest.is_empty()).map(|rest| join(&rest)).collect()
}

/// Reads a command by its program's bare name.
fn by_base_name(values: &[Value]) -> Option<Vec<Value>> {
    let first = values.first()?;
    let (_, base) = first.text.rsplit_once('/').filter(|(_, base)| !base.is_empty())?;
    let mut renamed = values.to_vec();
    renamed[0] = Value { text: base.to_owned(), shown: base.to_owned(), ..first.clone() };
    Some(renamed)
}

/// What stands behind each word, and behind a flag that it is attached to: any of it may be the command.
fn suffixes(values: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for at in 1..values.len().min(MOST_SUFFIXES) {
        let rest = &values[at..];
        found.push(join(rest));
        found.push(show(rest));
        found.extend(by_base_name(rest).map(|renamed| join(&renamed)));
        for text in wrappers::attached(&rest[0].text) {
            found.push(join(&[&[Value::literal(text)], &rest[1..]].concat()));
        }
    }
    found
}

/// Returns the literal text a command gets as its input by redirection, where that is the only one of its kind: the last
/// of several counts, and one with a number may be about another descriptor.
pub(super) fn documents(simple: &Simple) -> Option<String> {
    let mut inputs = simple.redirects.iter().filter(|it| it.operator.starts_with('<'));
    let (Some(redirect), None) = (inputs.next(), inputs.next()) else { return None };
    let is_document = redirect.operator.starts_with("<<") && !redirect.is_numbered;
    let text = redirect.body.as_ref().unwrap_or(&redirect.target).literal().filter(|_| is_document)?;
    // Bash puts a line break behind a here-string.
    Some(if redirect.body.is_some() { text } else { format!("{text}\n") })
}
