//! The walk over a parsed line: commands, paths, and where the shell stands as it goes.

mod dirs;

use std::path::PathBuf;

use loci_core::tool::{Cover, HOLE, Unclear};

use dirs::{After, Dirs};

use crate::cover::{cover, is_safe_variable};
use crate::files::{self, Access};
use crate::syntax::{Command, Compound, Redirect, Simple, Word};
use crate::value::{Surroundings, Value, join, show, values};
use crate::{
    ShellCommand, ShellContext, ShellPath, ShellReading, ShellRemoval, parse, parts, read_only, wrappers,
};

/// How often a string in a command may be a command again.
const MAX_NESTING: usize = 8;

/// Walks a line and reports what it does.
pub(crate) fn collect(command: &Command, ctx: &ShellContext<'_>, nesting: usize) -> ShellReading {
    let mut walk = Walk { ctx: *ctx, out: ShellReading::default(), nesting, home_changed: false };
    let scope = Scope { is_free: true, is_covered: true };
    walk.command(command, Dirs::known(ctx.cwd), scope);
    walk.out
}

/// What surrounds a command.
#[derive(Debug, Clone, Copy)]
struct Scope {
    /// Whether a read-only command counts as such here.
    is_free: bool,
    /// Whether a rule for a command reaches it here.
    is_covered: bool,
}

struct Walk<'a> {
    ctx: ShellContext<'a>,
    out: ShellReading,
    nesting: usize,
    /// Whether the line sets `HOME`.
    home_changed: bool,
}

impl Walk<'_> {
    fn command(&mut self, command: &Command, dirs: Dirs, scope: Scope) -> After {
        match command {
            Command::Simple(simple) => self.simple(simple, dirs, scope),
            Command::Sequence(commands) => {
                let mut after = After::same(dirs);
                for command in commands {
                    after = self.command(command, after.either(), scope);
                }
                after
            }
            Command::And(left, right) => {
                let left = self.command(left, dirs, scope);
                let right = self.command(right, left.ok, scope);
                After { failed: left.failed.or(&right.failed), ok: right.ok }
            }
            Command::Or(left, right) => {
                let left = self.command(left, dirs, scope);
                let right = self.command(right, left.failed, scope);
                After { ok: left.ok.or(&right.ok), failed: right.failed }
            }
            Command::Pipeline(parts) => {
                let mut all = dirs.clone();
                for part in parts {
                    all = all.or(&self.command(part, dirs.clone(), scope).either());
                }
                After::same(all)
            }
            Command::Compound { kind, body, words, redirects } => {
                self.compound(*kind, body, words, redirects, dirs, scope)
            }
        }
    }

    fn compound(
        &mut self,
        kind: Compound,
        body: &[Command],
        words: &[Word],
        redirects: &[Redirect],
        dirs: Dirs,
        scope: Scope,
    ) -> After {
        let mut has_substitution = !self.redirects(redirects, &dirs, scope);
        for word in words {
            has_substitution |= word.is_fancy;
            self.scripts(word, &dirs, scope);
        }
        if has_substitution {
            self.out.commands.push(uncovered("$("));
        }
        let is_free = scope.is_free && matches!(kind, Compound::Not | Compound::Choice | Compound::For);
        let is_covered = scope.is_covered && kind != Compound::Opaque;
        let inner = Scope { is_free, is_covered };
        if kind == Compound::Test || kind == Compound::Opaque {
            let what = if kind == Compound::Test { "[[" } else { "{" };
            self.out.commands.push(uncovered(what));
        }
        let mut after = After::same(dirs.clone());
        // A loop may come round again from where its last command left it.
        let n_rounds = if matches!(kind, Compound::Choice | Compound::For) { 2 } else { 1 };
        for round in 0..n_rounds {
            let n_before = self.out.commands.len();
            for command in body {
                after = self.command(command, after.either().or(&dirs), inner);
            }
            if round == 0 && after.either() == dirs {
                break;
            }
            if round > 0 {
                self.out.commands.truncate(n_before);
            }
        }
        match kind {
            Compound::Subshell | Compound::Background => After::same(dirs),
            _ => After::same(after.either().or(&dirs)),
        }
    }

    fn simple(&mut self, simple: &Simple, dirs: Dirs, scope: Scope) -> After {
        let words = simple.words.iter().chain(simple.assignments.iter().map(|it| &it.word));
        for word in words {
            self.scripts(word, &dirs, scope);
        }
        self.home_changed |= simple.assignments.iter().any(|it| matches!(it.name.as_str(), "HOME" | "PWD"));
        let is_fed_plainly = self.redirects(&simple.redirects, &dirs, scope);
        let values = self.values(&simple.words, &dirs);
        let assigned: Vec<&str> = simple.assignments.iter().map(|it| it.word.source.as_str()).collect();
        let is_harmless = simple.assignments.iter().all(|it| {
            is_safe_variable(&it.name) && it.word.scripts.is_empty() && it.word.literal().is_some()
        });
        let Some(first) = values.first() else {
            if !simple.assignments.is_empty() {
                let text = assigned.join(" ");
                let is_read_only = is_harmless && scope.is_free;
                let cover = Cover::Spelled { n_words: 1, text: text.clone() };
                let readings = vec![text.clone()];
                let command =
                    ShellCommand { is_read_only, cover, readings, ..plain_command(text, String::new()) };
                self.out.commands.push(command);
            }
            return After::same(dirs);
        };
        let program = first.text.clone();
        if evaluates(&values) {
            self.out.unknown.push(format!("`{program}` would run what is in a subscript"));
        }
        let is_plain = simple.words.iter().zip(0..).all(|(word, idx)| is_plain_word(word, idx, &program));
        let moved = dirs != Dirs::known(self.ctx.cwd);
        let mut after = After::same(dirs.clone());
        let reads = if program == "cd" {
            after = self.cd(&values, &dirs);
            (after.ok.0.is_some()).then(Vec::new)
        } else {
            read_only::reads_of(&values)
        };
        let may_be_free =
            scope.is_free && is_harmless && is_plain && is_fed_plainly && !(program == "git" && moved);
        let mut readings = Vec::new();
        match &reads {
            Some(paths) => {
                self.accesses(paths.iter().map(|path| Access::Read(path.clone())).collect(), &dirs);
                readings.push(join(&values));
                readings.push(show(&values));
            }
            None => self.consider(&values, simple, &dirs, &mut readings, 0),
        }
        if changes_directory(&program) {
            after = After::same(Dirs(None));
        }
        let shown = show(&values);
        let text = if assigned.is_empty() { shown } else { format!("{} {shown}", assigned.join(" ")) };
        let cover = match scope.is_covered {
            true => cover(&assigned, is_harmless, &values),
            false => Cover::Never,
        };
        self.out.commands.push(ShellCommand {
            is_read_only: may_be_free && reads.is_some(),
            is_edit: scope.is_free
                && is_harmless
                && !moved
                && is_plain
                && files::is_plain_edit(wrappers::stripped(&values)),
            cover,
            readings,
            ..plain_command(text, program)
        });
        after
    }

    /// Notes every way to read a command, and the paths each touches.
    fn consider(
        &mut self,
        values: &[Value],
        simple: &Simple,
        dirs: &Dirs,
        readings: &mut Vec<String>,
        depth: usize,
    ) {
        let Some(first) = values.first() else { return };
        readings.push(join(values));
        readings.push(show(values));
        if let Some((_, base)) = first.text.rsplit_once('/')
            && !base.is_empty()
        {
            let mut renamed = values.to_vec();
            renamed[0] = Value { text: base.to_owned(), shown: base.to_owned(), ..first.clone() };
            readings.push(join(&renamed));
        }
        if depth > MAX_NESTING {
            readings.push(HOLE.to_string());
            return;
        }
        let accesses = match read_only::reads_of(values) {
            Some(paths) => paths.into_iter().map(Access::Read).collect(),
            None => files::accesses(values),
        };
        self.accesses(accesses, dirs);
        for inner in wrappers::inner(values) {
            match inner {
                wrappers::Inner::Words(words) => self.consider(&words, simple, dirs, readings, depth + 1),
                wrappers::Inner::Code(code) => self.code(&code, dirs, readings),
                wrappers::Inner::Foreign(code) => {
                    readings.extend(
                        parts::rough_parts(&code).iter().flat_map(|part| parts::rough_readings(part)),
                    );
                }
                wrappers::Inner::Input => match documents(simple) {
                    Some(code) => self.code(&Value::literal(&code), dirs, readings),
                    None => readings.push(HOLE.to_string()),
                },
                wrappers::Inner::Suffixes => {
                    let most = values.len().min(64);
                    readings.extend((1..most).map(|at| join(&values[at..])));
                    readings.extend((1..most).map(|at| show(&values[at..])));
                }
                wrappers::Inner::Anything => readings.push(HOLE.to_string()),
            }
        }
    }

    /// Analyses a string that is run as a command; its readings are those of the command that runs it.
    fn code(&mut self, code: &Value, dirs: &Dirs, readings: &mut Vec<String>) {
        let rough = |readings: &mut Vec<String>| {
            readings
                .extend(parts::rough_parts(&code.text).iter().flat_map(|part| parts::rough_readings(part)));
        };
        let cwd = dirs.0.as_ref().and_then(|dirs| dirs.first()).map_or(self.ctx.cwd, PathBuf::as_path);
        let parsed = match code.known() {
            Some(text) if self.nesting < MAX_NESTING => parse::parse(text),
            _ => Err("code that only the run will tell".to_owned()),
        };
        match parsed {
            Ok(parsed) => {
                let ctx = ShellContext { cwd, home: self.ctx.home };
                let inner = collect(&parsed.command, &ctx, self.nesting + 1);
                readings.extend(inner.commands.into_iter().flat_map(|command| command.readings));
                self.out.reads.extend(inner.reads);
                self.out.writes.extend(inner.writes);
                self.out.redirects.extend(inner.redirects);
                self.out.removals.extend(inner.removals);
                self.out.moves.extend(inner.moves);
                self.out.unclear.extend(inner.unclear);
                self.out.unknown.extend(inner.unknown);
            }
            Err(reason) => {
                self.out.unknown.extend(code.known().map(|_| reason));
                rough(readings);
                readings.push(HOLE.to_string());
            }
        }
    }

    /// Collects the commands of substitutions. The command around them never runs unasked, but rules may cover all.
    fn scripts(&mut self, word: &Word, dirs: &Dirs, scope: Scope) {
        for script in &word.scripts {
            self.command(script, dirs.clone(), Scope { is_free: true, ..scope });
        }
    }

    /// Notes what redirections read and write; returns whether they are of the kind that may run unasked.
    fn redirects(&mut self, redirects: &[Redirect], dirs: &Dirs, scope: Scope) -> bool {
        let mut is_plain = true;
        for redirect in redirects {
            is_plain &= !redirect.target.is_fancy;
            self.scripts(&redirect.target, dirs, scope);
            if let Some(body) = &redirect.body {
                is_plain &= !body.is_fancy;
                self.scripts(body, dirs, scope);
            } else if redirect.operator == "<<<" {
                is_plain &= redirect.target.literal().is_some();
            } else {
                self.redirect(redirect, dirs);
            }
        }
        is_plain
    }

    fn redirect(&mut self, redirect: &Redirect, dirs: &Dirs) {
        let values = self.values(std::slice::from_ref(&redirect.target), dirs);
        let [value] = values.as_slice() else {
            self.out.unclear.push(Unclear::Write(redirect.target.source.clone()));
            return;
        };
        let is_duplicate = redirect.operator.ends_with('&')
            && value.known().is_some_and(|text| {
                text == "-" || text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit())
            });
        if is_duplicate || value.text == "/dev/null" && value.is_literal {
            return;
        }
        if value.text.starts_with("/dev/tcp") || value.text.starts_with("/dev/udp") {
            self.out.unknown.push("a network connection by redirection".to_owned());
            return;
        }
        if matches!(redirect.operator.as_str(), "<" | "<&") {
            self.accesses(vec![Access::Read(value.clone())], dirs);
            return;
        }
        if !value.is_literal {
            self.out.unclear.push(Unclear::Write(redirect.target.source.clone()));
        }
        let n_before = self.out.writes.len();
        self.accesses(vec![Access::Write(value.clone())], dirs);
        let written = self.out.writes[n_before..].to_vec();
        // Where the shell has moved is known, but a write from there is asked about.
        if *dirs != Dirs::known(self.ctx.cwd) && !value.text.starts_with('/') {
            self.out.unclear.push(Unclear::Write(redirect.target.source.clone()));
        }
        self.out.redirects.extend(written);
    }

    fn values(&self, words: &[Word], dirs: &Dirs) -> Vec<Value> {
        let cwd = match &dirs.0 {
            Some(dirs) if dirs.len() == 1 => dirs.first().map(PathBuf::as_path),
            _ => None,
        };
        let known = !self.home_changed;
        let around = Surroundings { home: known.then_some(self.ctx.home), cwd: cwd.filter(|_| known) };
        words.iter().flat_map(|word| values(word, around)).collect()
    }

    fn accesses(&mut self, accesses: Vec<Access>, dirs: &Dirs) {
        for access in accesses {
            match access {
                Access::Read(value) => match paths(&value, dirs) {
                    Some(paths) => self.out.reads.extend(paths),
                    None => self.out.unclear.push(Unclear::Read(value.shown)),
                },
                Access::Write(value) => match paths(&value, dirs) {
                    Some(paths) => self.out.writes.extend(paths),
                    None => self.out.unclear.push(Unclear::Write(value.shown)),
                },
                Access::Remove(value) => {
                    self.removal(&value, dirs);
                    // Emptying the directory we stand in is asked about as a whole, not name by name.
                    let written = paths(&value, dirs).unwrap_or_default();
                    self.out.writes.extend(written.into_iter().map(|path| match emptied(path.clone()) {
                        dir if self.ctx.cwd.starts_with(&dir.path) => dir,
                        _ => path,
                    }));
                    if paths(&value, dirs).is_none() {
                        self.out.unclear.push(Unclear::Write(value.shown));
                    }
                }
                Access::Move(value) => self.out.moves.extend(paths(&value, dirs).unwrap_or_default()),
            }
        }
    }

    fn removal(&mut self, value: &Value, dirs: &Dirs) {
        let text = value.shown.clone();
        if text == "{}" && value.known().is_none() {
            // What `find` fills in lies below its roots, which are reported themselves.
            return;
        }
        match paths(value, dirs) {
            Some(paths) => self.out.removals.extend(
                paths
                    .into_iter()
                    .map(|path| ShellRemoval { text: text.clone(), target: Some(emptied(path)) }),
            ),
            None => self.out.removals.push(ShellRemoval { text, target: None }),
        }
    }

    fn cd(&mut self, values: &[Value], dirs: &Dirs) -> After {
        let target = match values {
            [_] => Some(self.ctx.home.to_path_buf()),
            [_, to] => {
                to.known().filter(|text| !text.starts_with('-') && !text.is_empty()).map(PathBuf::from)
            }
            _ => None,
        };
        let (Some(target), Some(from)) = (target, &dirs.0) else {
            return After::same(Dirs(None));
        };
        let to: Vec<PathBuf> = from.iter().map(|dir| loci_core::path::normalise(dir, &target)).collect();
        self.out.reads.extend(to.iter().map(|path| ShellPath { path: path.clone(), is_glob: false }));
        After { ok: Dirs(Some(to)), failed: dirs.clone() }
    }
}

/// `*` at the end empties the directory it stands in.
fn emptied(path: ShellPath) -> ShellPath {
    let last = path.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let takes_all =
        path.is_glob && !last.is_empty() && last.chars().all(|c| "*?.".contains(c)) && last.contains('*');
    match (takes_all, path.path.parent()) {
        (true, Some(parent)) => {
            let is_glob = parent.to_string_lossy().contains(['*', '?', '[', '\\']);
            ShellPath { path: parent.to_path_buf(), is_glob }
        }
        _ => path,
    }
}

/// Returns the paths a value stands for, from each directory the shell may be in.
fn paths(value: &Value, dirs: &Dirs) -> Option<Vec<ShellPath>> {
    let (text, is_glob) = match (&value.pattern, value.known()) {
        (Some(pattern), _) => (pattern.as_str(), true),
        (None, Some(text)) => (text, false),
        (None, None) => return None,
    };
    if text.starts_with('/') {
        return Some(vec![ShellPath { path: PathBuf::from(text), is_glob }]);
    }
    let dirs = dirs.0.as_ref()?;
    Some(dirs.iter().map(|dir| ShellPath { path: dir.join(text), is_glob }).collect())
}

fn plain_command(text: String, program: String) -> ShellCommand {
    ShellCommand {
        text,
        program,
        is_read_only: false,
        is_edit: false,
        cover: Cover::Never,
        readings: Vec::new(),
    }
}

/// A part that no rule for a command covers.
fn uncovered(what: &str) -> ShellCommand {
    plain_command(what.to_owned(), what.to_owned())
}

/// A word that may be part of a command that runs unasked: no fancy forms; variables only where they are printed.
fn is_plain_word(word: &Word, idx: usize, program: &str) -> bool {
    use crate::syntax::Piece;
    let has_brace = {
        let around = Surroundings { home: None, cwd: None };
        values(word, around).len() != 1
    };
    let has_unknown = word.pieces.iter().any(|piece| match piece {
        Piece::Variable(_) => program != "echo" || idx == 0,
        Piece::Unknown => word.is_fancy,
        Piece::Plain(_) | Piece::Quoted(_) => false,
    });
    !word.is_fancy && !has_brace && !has_unknown
}

/// Builtins evaluate subscripts in their arguments once more, and run what is in them, quoted or not.
fn evaluates(values: &[Value]) -> bool {
    #[rustfmt::skip]
    const EVALUATORS: &[&str] = &[
        "declare", "export", "let", "local", "mapfile", "printf", "read", "readarray", "readonly", "test", "[", "typeset",
        "unset", "wait",
    ];
    let is_builtin = |value: &Value| EVALUATORS.contains(&value.text.as_str());
    let may_run = |value: &Value| value.text.contains('[') && value.text.contains(['$', '`', HOLE]);
    values.iter().take(3).any(is_builtin) && values.iter().skip(1).any(may_run)
}

/// Builtins after which nobody knows where the shell stands.
fn changes_directory(program: &str) -> bool {
    matches!(program, "pushd" | "popd" | "eval" | "source" | "." | "trap" | "exec" | "builtin" | "command")
        || program.contains(HOLE)
}

/// Returns the literal text a command gets as its input by redirection.
fn documents(simple: &Simple) -> Option<String> {
    let redirect = simple.redirects.iter().rev().find(|it| it.operator.starts_with("<<"))?;
    redirect.body.as_ref().unwrap_or(&redirect.target).literal()
}
