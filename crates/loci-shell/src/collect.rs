//! The walk over a parsed line: commands, paths, and where the shell stands as it goes.

mod dirs;
mod inner;
mod paths;

use std::path::PathBuf;

use loci_core::tool::{Cover, HOLE};

use dirs::{After, Dirs};

use crate::cover::{cover, is_safe_variable};
use crate::files::{self, Access};
use crate::parse::{Notes, Parsed};
use crate::renames::{Meaning, Renames, defines_alias};
use crate::syntax::{Assignment, Command, Compound, Redirect, Simple, Word};
use crate::value::{Surroundings, Value, join, show, values};
use crate::{ShellCommand, ShellContext, ShellPath, ShellReading, parts, read_only, special, wrappers};

/// Walks a line and reports what it does.
pub(crate) fn collect(parsed: &Parsed, ctx: &ShellContext<'_>) -> ShellReading {
    let start = (Notes::default(), Renames::default());
    let (mut reading, (notes, _)) = walk(parsed, ctx, &Dirs::known(ctx.cwd), 0, start);
    if notes.evaluates_names && notes.has_code_text {
        reading.unknown.push("arithmetic that may run what is in a subscript".to_owned());
    }
    reading
}

/// Walks code at any depth. What is noted holds for all of it, so a note that comes late means another walk.
fn walk(
    parsed: &Parsed,
    ctx: &ShellContext<'_>,
    dirs: &Dirs,
    nesting: usize,
    (before, renames): (Notes, Renames),
) -> (ShellReading, (Notes, Renames)) {
    let start = (before.and(parsed.notes), renames);
    let once = |(notes, renames): (Notes, Renames)| {
        let mut walk = Walk {
            ctx: *ctx,
            out: ShellReading::default(),
            nesting,
            notes,
            renames,
            runs_unknown: false,
            n_guesses: 0,
        };
        walk.command(&parsed.command, dirs.clone(), Scope { is_free: true, is_covered: true });
        (walk.out, (walk.notes, walk.renames))
    };
    let (reading, noted) = once(start.clone());
    let moves = |notes: &Notes| (notes.moves_home, notes.moves);
    let is_late = moves(&noted.0) != moves(&start.0) || noted.1 != start.1;
    if is_late { once(noted) } else { (reading, noted) }
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
    notes: Notes,
    /// The names that the line gives another meaning.
    renames: Renames,
    /// Whether the command that is looked at runs what is only known when it runs.
    runs_unknown: bool,
    /// How many guesses deep it is looked at: what one of them would run is not said to run.
    n_guesses: usize,
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
        if kind == Compound::For {
            // The shell looks into directories to expand a glob.
            let globs = self.values(words, &dirs).into_iter().filter(|value| value.pattern.is_some());
            self.accesses(globs.map(Access::Read).collect(), &dirs);
        }
        if has_substitution {
            self.out.commands.push(uncovered("$("));
        }
        let is_opaque = matches!(kind, Compound::Opaque | Compound::Function);
        let is_free = scope.is_free && matches!(kind, Compound::Not | Compound::Choice | Compound::For);
        let inner = Scope { is_free, is_covered: scope.is_covered && !is_opaque };
        if kind == Compound::Test {
            let reads = self.tested(words, &dirs).filter(|_| !has_substitution);
            let is_read_only = reads.is_some() && scope.is_free;
            self.accesses(reads.into_iter().flatten().map(Access::Read).collect(), &dirs);
            self.out.commands.push(ShellCommand { is_read_only, ..uncovered("[[") });
        } else if is_opaque {
            self.out.commands.push(uncovered("{"));
        }
        match kind {
            Compound::Function => {
                words.iter().for_each(|name| self.renames.define(&name.source));
                let from = self.later(&dirs);
                let after = self.list(body, &from, inner);
                After::same(after.either().or(&from))
            }
            Compound::Choice | Compound::For | Compound::Opaque => self.rounds(body, dirs, inner),
            Compound::Subshell | Compound::Background => {
                self.list(body, &dirs, inner);
                After::same(dirs)
            }
            Compound::Not | Compound::Group | Compound::Test => {
                After::same(self.list(body, &dirs, inner).either().or(&dirs))
            }
        }
    }

    /// Returns the files that a `[[ … ]]` looks at, where it compares texts and asks for files and nothing else.
    fn tested(&self, words: &[Word], dirs: &Dirs) -> Option<Vec<Value>> {
        /// What evaluates its operands as arithmetic or names, which runs what stands in a subscript.
        const EVALUATED: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R", "=~"];
        let is_operator = |word: &Word| EVALUATED.contains(&word.source.as_str());
        let is_plain = |word: &Word| !word.is_fancy && word.literal().is_some() && !is_operator(word);
        if words.is_empty() || !words.iter().all(is_plain) {
            return None;
        }
        // Neither braces nor globs are expanded in it: each word stands for one value.
        let values: Vec<Value> =
            words.iter().flat_map(|word| self.values(std::slice::from_ref(word), dirs)).collect();
        let texts: Vec<&str> = values.iter().map(|value| value.text.as_str()).collect();
        let reads = (values.len() == words.len()).then(|| special::test(&texts))??;
        let named = |text: &String| values.iter().find(|value| value.text == *text).cloned();
        reads.iter().map(named).collect()
    }

    /// Where what is called later runs: nobody knows, once the shell goes elsewhere.
    fn later(&self, dirs: &Dirs) -> Dirs {
        if self.notes.moves { dirs.opened() } else { dirs.clone() }
    }

    fn list(&mut self, body: &[Command], dirs: &Dirs, scope: Scope) -> After {
        let mut after = After::same(dirs.clone());
        for command in body {
            after = self.command(command, after.either().or(dirs), scope);
        }
        after
    }

    /// Walks a loop until it comes round to where it was; when it does not soon, it may lead anywhere.
    fn rounds(&mut self, body: &[Command], dirs: Dirs, scope: Scope) -> After {
        let start = self.out.commands.len();
        let mut dirs = dirs;
        for round in 0..4 {
            let first: Vec<ShellCommand> = self.out.commands.drain(start..).collect();
            let end = self.list(body, &dirs, scope).either().or(&dirs);
            for (before, now) in first.iter().zip(&mut self.out.commands[start..]) {
                now.add(before);
            }
            if end == dirs {
                break;
            }
            dirs = if round < 2 { end } else { end.opened() };
        }
        After::same(dirs)
    }

    fn simple(&mut self, simple: &Simple, dirs: Dirs, scope: Scope) -> After {
        let words = simple.words.iter().chain(simple.assignments.iter().map(|it| &it.word));
        for word in words {
            self.scripts(word, &dirs, scope);
        }
        self.notes.moves_home |= simple.assignments.iter().any(|it| is_home(&it.name));
        simple.assignments.iter().for_each(|it| self.renames.note_assignment(&it.word.source));
        let is_fed_plainly = self.redirects(&simple.redirects, &dirs, scope);
        let mut values = self.values(&simple.words, &dirs);
        // A program by a name that a substitution prints stays one that only the run will tell.
        let is_printed =
            |word: &Word| word.pieces.iter().any(|piece| matches!(piece, crate::syntax::Piece::Output(_)));
        if let (Some(word), Some(first)) =
            (simple.words.first().filter(|word| is_printed(word)), values.first_mut())
        {
            *first = Value { shown: word.source.clone(), ..Value::hole() };
        }
        let assigned: Vec<&str> = simple.assignments.iter().map(|it| it.word.source.as_str()).collect();
        let is_harmless = simple.assignments.iter().all(is_harmless);
        let Some(first) = values.first() else {
            if !simple.assignments.is_empty() {
                let text = assigned.join(" ");
                let is_read_only = is_harmless && scope.is_free;
                let cover = Cover::Spelled { n_words: 1, text: text.clone() };
                let code = assigned_code(simple);
                let runs_unknown = code.iter().any(|code| code.starts_with(HOLE));
                let readings = std::iter::once(text.clone()).chain(code).collect();
                let command = ShellCommand {
                    is_read_only,
                    runs_unknown,
                    cover,
                    readings,
                    ..plain_command(text, String::new())
                };
                self.out.commands.push(command);
            }
            return After::same(dirs);
        };
        let program = first.text.clone();
        self.notes.moves_home |= assigns_home(&values);
        if evaluates(&values) {
            self.out.unknown.push(format!("`{program}` would run what is in a subscript"));
        }
        if follows_links(&values) {
            self.out.unknown.push("`cd` that goes where links lead".to_owned());
        }
        self.renames.note(&values);
        if defines_alias(&values) {
            self.out.unknown.push("an alias, which changes how the rest is read".to_owned());
        }
        let meaning = self.renames.meaning(&program);
        let is_plain = simple.words.iter().zip(0..).all(|(word, idx)| is_plain_word(word, idx, &program))
            && meaning == Meaning::Usual;
        let moved = dirs != Dirs::known(self.ctx.cwd);
        let mut after = After::same(dirs.clone());
        let reads = match (meaning, program.as_str()) {
            (Meaning::Usual, "cd") => {
                after = self.cd(&values, &dirs);
                (!after.ok.is_open()).then(Vec::new)
            }
            (Meaning::Usual, _) => read_only::reads_of(&values),
            (Meaning::Function | Meaning::Unknown, _) => None,
        };
        let may_be_free =
            scope.is_free && is_harmless && is_plain && is_fed_plainly && !(program == "git" && moved);
        let mut readings: Vec<String> = assigned_code(simple);
        self.runs_unknown = readings.iter().any(|code| code.starts_with(HOLE));
        match &reads {
            // What `xargs` runs is a command of its own to rules that forbid.
            Some(paths) if program != "xargs" => {
                let paths = paths.iter().filter(|path| !paths::is_free_device(path));
                self.accesses(paths.map(|path| Access::Read(path.clone())).collect(), &dirs);
                readings.push(join(&values));
                readings.push(show(&values));
            }
            None if meaning == Meaning::Function => self.call(&values, &dirs, &mut readings),
            Some(_) | None => self.consider(&values, simple, &dirs, &mut readings, 0),
        }
        if changes_directory(&program) || meaning == Meaning::Unknown {
            after = After::same(dirs.opened());
        }
        self.notes.moves |= after.either() != dirs;
        let shown = show(&values);
        let text = if assigned.is_empty() { shown } else { format!("{} {shown}", assigned.join(" ")) };
        let cover = match scope.is_covered && meaning == Meaning::Usual {
            true => cover(&assigned, is_harmless, &values, inner::documents(simple).as_deref()),
            false => Cover::Never,
        };
        self.out.commands.push(ShellCommand {
            is_read_only: may_be_free && reads.is_some(),
            is_edit: scope.is_free
                && is_harmless
                && !moved
                && is_plain
                && files::is_plain_edit(wrappers::stripped(&values)),
            runs_unknown: std::mem::take(&mut self.runs_unknown),
            cover,
            readings,
            ..plain_command(text, program)
        });
        after
    }

    fn values(&self, words: &[Word], dirs: &Dirs) -> Vec<Value> {
        let known = !self.notes.moves_home;
        let is_usual = |name: &str| self.renames.meaning(name) == Meaning::Usual;
        let prints = known && is_usual("echo") && is_usual("printf");
        let around =
            Surroundings { home: known.then_some(self.ctx.home), cwd: dirs.only().filter(|_| known), prints };
        words.iter().flat_map(|word| values(word, around)).collect()
    }

    fn cd(&mut self, values: &[Value], dirs: &Dirs) -> After {
        let is_flag = |value: &&Value| matches!(value.text.as_str(), "-P" | "-L" | "-e" | "-Pe" | "--");
        let n_flags = values.iter().skip(1).take_while(is_flag).count();
        let target = match values.get(1 + n_flags..).unwrap_or_default() {
            [] => Some(self.ctx.home.to_path_buf()),
            [to] => to.known().filter(|text| !text.starts_with('-') && !text.is_empty()).map(PathBuf::from),
            _ => None,
        };
        let Some(target) = target.filter(|_| !self.notes.moves_home || values.len() > 1 + n_flags) else {
            return After { ok: dirs.opened(), failed: dirs.clone() };
        };
        // With `-P` the `..` of what follows is that of where links lead.
        let is_physical = values[1..=n_flags].iter().any(|flag| flag.text.contains('P'));
        let to = dirs.entered(&target);
        let to = if is_physical { to.opened() } else { to };
        self.out.reads.extend(to.all().iter().map(|path| ShellPath { path: path.clone(), is_glob: false }));
        After { ok: to, failed: dirs.clone() }
    }
}

fn plain_command(text: String, program: String) -> ShellCommand {
    ShellCommand {
        text,
        program,
        is_read_only: false,
        is_edit: false,
        runs_unknown: false,
        cover: Cover::Never,
        readings: Vec::new(),
    }
}

impl ShellCommand {
    /// Adds what the same command is when it comes round again.
    fn add(&mut self, other: &Self) {
        self.is_read_only &= other.is_read_only;
        self.is_edit &= other.is_edit;
        self.runs_unknown |= other.runs_unknown;
        if self.cover != other.cover {
            self.cover = Cover::Never;
        }
        let new: Vec<String> =
            other.readings.iter().filter(|it| !self.readings.contains(it)).cloned().collect();
        self.readings.extend(new);
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
        let around = Surroundings { home: None, cwd: None, prints: false };
        values(word, around).len() != 1
    };
    let has_unknown = word.pieces.iter().any(|piece| match piece {
        Piece::Variable(_) => program != "echo" || idx == 0,
        Piece::Output(_) => true,
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

/// Variables that paths are told by, and the one that says where words end.
fn is_home(name: &str) -> bool {
    matches!(name, "HOME" | "PWD" | "OLDPWD" | "CDPATH" | "IFS")
}

/// `set -P` and `set -o physical`: every `cd` that comes is one with `-P`.
fn follows_links(values: &[Value]) -> bool {
    let is_set = values.iter().take(3).any(|value| value.text == "set");
    let is_flag =
        |value: &Value| value.text == "physical" || (value.text.starts_with('-') && value.text.contains('P'));
    is_set && values.iter().any(is_flag)
}

/// Builtins that set variables they are told the names of.
fn assigns_home(values: &[Value]) -> bool {
    #[rustfmt::skip]
    const ASSIGNERS: &[&str] = &[
        "declare", "export", "getopts", "let", "local", "mapfile", "printf", "read", "readarray", "readonly", "typeset",
        "unset", "wait",
    ];
    let is_builtin = |value: &Value| ASSIGNERS.contains(&value.text.as_str());
    let is_print = values.iter().take(3).any(|value| value.text == "printf");
    let is_wait = values.first().is_some_and(|first| first.text == "wait");
    let sets_any = !is_wait && (!is_print || values.iter().any(|value| value.text.starts_with(['-', HOLE])));
    let may_name = |value: &Value| {
        let name = value.text.split('=').next().unwrap_or_default();
        ["HOME", "PWD", "IFS"].iter().any(|known| value.text.contains(known))
            || (sets_any && name.contains(HOLE))
    };
    let runs_file = values.first().is_some_and(|first| matches!(first.text.as_str(), "source" | "."));
    runs_file || (values.iter().take(3).any(is_builtin) && values.iter().skip(1).any(may_name))
}

/// Returns true for an assignment that changes nothing but output. A path would have a program load what lies there:
/// message catalogues, time zones.
fn is_harmless(assignment: &Assignment) -> bool {
    let text = assignment.word.literal().filter(|_| assignment.word.scripts.is_empty());
    let Some((_, value)) = text.as_deref().and_then(|text| text.split_once('=')) else { return false };
    let is_path = value.starts_with(['/', ':', '.', '~']) || value.contains("..");
    let takes_slashes = matches!(assignment.name.as_str(), "TZ" | "RUST_LOG");
    is_safe_variable(&assignment.name) && !is_path && (takes_slashes || !value.contains('/'))
}

/// Values of assignments that programs may run: `GIT_PAGER`, `PS4`, and whatever else there is.
fn assigned_code(simple: &Simple) -> Vec<String> {
    let unsafe_ones = simple.assignments.iter().filter(|it| !is_safe_variable(&it.name));
    let run = |it: &Assignment| match it.word.literal() {
        Some(text) => {
            let value = text.split_once('=').map(|(_, value)| value).unwrap_or_default();
            parts::rough_parts(value.trim_start_matches(['!', '|']))
        }
        None if wrappers::is_code_variable(&it.name) => vec![HOLE.to_string()],
        None => Vec::new(),
    };
    unsafe_ones.flat_map(run).collect()
}

/// Builtins after which nobody knows where the shell stands.
fn changes_directory(program: &str) -> bool {
    matches!(program, "pushd" | "popd" | "eval" | "source" | "." | "trap" | "exec" | "builtin" | "command")
        || program.contains(HOLE)
}
