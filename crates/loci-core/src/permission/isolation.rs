//! What works in a worktree leaves the main checkout alone: nothing there is changed, and no command goes there to work.
//! A command line of which nobody can say where it would work is not run at all.
//!
//! Held by whatever rules, modes and people allow: two who edit one file at once is what a worktree is there to prevent.

use std::path::{Path, PathBuf};

use super::{Decision, Reason, Rulebook, Verdict};
use crate::path::{is_inside, normalise};
use crate::tool::{ASKS_OUTSIDE, CallEffects, CommandEffect, HOLE, PathEffect, Unclear};

/// A worktree, and the checkouts that are not to be touched from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// Where the work is done.
    pub worktree: PathBuf,
    /// The main checkout, and any other that whoever works apart was sent out from.
    checkouts: Vec<PathBuf>,
}

/// Where memories of agents lie in a project; they are shared on purpose.
const SHARED: [&str; 2] = [".claude/agent-memory", ".claude/agent-memory-local"];

impl Isolation {
    /// Returns the isolation of a worktree, wherever it lies; none where it is the checkout itself, or around it.
    pub fn new(worktree: &Path, main: &Path) -> Option<Self> {
        let is_apart = !is_inside(main, worktree);
        is_apart.then(|| Self { worktree: worktree.to_owned(), checkouts: vec![main.to_owned()] })
    }

    /// Keeps the work out of another checkout as well, unless that is the worktree itself, or in it.
    #[must_use]
    pub fn keeping_out_of(mut self, checkout: &Path) -> Self {
        if !is_inside(checkout, &self.worktree) && !self.checkouts.iter().any(|it| it == checkout) {
            self.checkouts.push(checkout.to_owned());
        }
        self
    }

    /// Keeps the work out of all that another worktree is kept out of, and of that one.
    #[must_use]
    pub fn within(self, outer: &Self) -> Self {
        let checkouts = outer.checkouts.iter().chain([&outer.worktree]);
        checkouts.fold(self, |isolation, checkout| isolation.keeping_out_of(checkout))
    }

    /// Returns the isolation of a worktree where loci makes them: `<main>/.claude/worktrees/<name>`.
    pub fn of_worktree(worktree: &Path) -> Option<Self> {
        let dir = worktree.parent().filter(|dir| dir.ends_with(".claude/worktrees"))?;
        let main = dir.parent()?.parent()?;
        Self::new(worktree, main)
    }

    /// Tells whether a path is in one of the checkouts. Other worktrees below them count as part of them.
    fn holds(&self, path: &Path) -> bool {
        let is_in = |checkout: &PathBuf| {
            let is_shared = SHARED.iter().any(|dir| is_inside(path, &checkout.join(dir)));
            is_inside(path, checkout) && !is_shared
        };
        !is_inside(path, &self.worktree) && self.checkouts.iter().any(is_in)
    }

    fn holds_effect(&self, path: &PathEffect) -> bool {
        self.holds(&path.real) || self.holds(&path.requested)
    }

    /// Returns the directory of the main checkout that a command goes to, or has git work in.
    fn entered(&self, command: &CommandEffect, cwd: &Path) -> Option<PathBuf> {
        let readings = command.readings.iter().chain([&command.text]);
        readings.flat_map(|reading| directories(reading)).find_map(|dir| {
            let path = normalise(cwd, Path::new(&dir));
            self.holds(&path).then_some(path)
        })
    }
}

/// Refuses a call that would change the main checkout, or work there.
pub(super) fn outside_worktree(effects: &CallEffects, book: &Rulebook) -> Option<Decision> {
    let isolation = book.isolation.as_ref()?;
    let removed = effects.removals.iter().filter_map(|removal| removal.target.as_ref());
    let changed = effects.writes.iter().chain(&effects.redirects).chain(removed);
    let is_allowed = |path: &PathEffect| {
        book.plan_file.as_ref() == Some(path) || book.memory_dirs.iter().any(|dir| is_inside(&path.real, dir))
    };
    let mut changed = changed.filter(|path| isolation.holds_effect(path) && !is_allowed(path));
    let changed = changed.next().map(|path| path.requested.clone());
    let cwd = if is_inside(&book.cwd, &isolation.worktree) { &book.cwd } else { &isolation.worktree };
    let entered = || effects.commands.iter().find_map(|command| isolation.entered(command, cwd));
    let worktree = isolation.worktree.clone();
    let reason = match changed.or_else(entered) {
        Some(path) => Reason::OutsideWorktree { path, worktree },
        None => Reason::UnclearInWorktree { what: untraceable(effects)?, worktree },
    };
    Some(Decision { verdict: Verdict::Deny, reason })
}

/// Returns what of a command line only the run will tell, where it decides what is changed, or where.
fn untraceable(effects: &CallEffects) -> Option<String> {
    if effects.commands.is_empty() {
        return None;
    }
    let unknown = effects.unknown.iter().find(|what| *what != ASKS_OUTSIDE).cloned();
    let unclear = || {
        effects.unclear.iter().find_map(|path| match path {
            Unclear::Write(text) | Unclear::Redirect(text) => {
                Some(format!("where it writes is only known when it runs: {text}"))
            }
            Unclear::Read(_) => None,
        })
    };
    let hidden = || {
        let goes_anywhere = |command: &CommandEffect| {
            command.readings.iter().flat_map(|reading| directories(reading)).any(|dir| dir.contains(HOLE))
        };
        let command = effects.commands.iter().find(|it| it.runs_unknown || goes_anywhere(it))?;
        Some(format!("what it runs, or where, is only known when it runs: {}", command.text))
    };
    unknown.or_else(unclear).or_else(hidden)
}

/// Returns the directories that a simple command goes to, or has git work in, as they are written.
fn directories(command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
    let assigned = words.iter().take_while(|word| word.contains('='));
    let mut found: Vec<String> = assigned.filter_map(|word| git_variable(word)).collect();
    let rest: Vec<&str> = words.iter().skip_while(|word| word.contains('=')).copied().collect();
    let Some((program, arguments)) = rest.split_first() else { return found };
    match program.rsplit('/').next() {
        Some("cd" | "pushd") => {
            found.extend(arguments.iter().find(|word| !word.starts_with('-')).map(|word| (*word).to_owned()));
        }
        Some("git") => found.extend(git_directories(arguments)),
        Some("env" | "export") => found.extend(arguments.iter().filter_map(|word| git_variable(word))),
        _ => {}
    }
    found
}

fn git_variable(word: &str) -> Option<String> {
    let (name, value) = word.split_once('=')?;
    matches!(name, "GIT_DIR" | "GIT_WORK_TREE").then(|| git_dir(value.trim_matches(['"', '\''])))
}

fn git_directories(arguments: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        let next = || arguments.get(at + 1).map(|word| git_dir(word));
        match word.split_once('=') {
            Some(("--git-dir" | "--work-tree", dir)) => found.push(git_dir(dir.trim_matches(['"', '\'']))),
            None if matches!(*word, "-C" | "--git-dir" | "--work-tree") => found.extend(next()),
            _ => {}
        }
    }
    found
}

/// Returns the checkout that a `.git` belongs to.
fn git_dir(path: &str) -> String {
    path.trim_end_matches('/').strip_suffix("/.git").unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Removal;

    fn book() -> Rulebook {
        let worktree = PathBuf::from("/p/.claude/worktrees/agent-a");
        Rulebook { isolation: Isolation::of_worktree(&worktree), cwd: worktree, ..Rulebook::default() }
    }

    fn refused(effects: &CallEffects) -> Option<String> {
        match outside_worktree(effects, &book())?.reason {
            Reason::OutsideWorktree { path, .. } => Some(path.display().to_string()),
            Reason::UnclearInWorktree { what, .. } => Some(what),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn changes_of_the_main_checkout_are_refused() {
        for (path, is_refused) in [
            ("/p/src/a.rs", true),
            ("/p/.claude/worktrees/other/a.rs", true),
            ("/p/.claude/worktrees/agent-a/src/a.rs", false),
            ("/p/.claude/worktrees/agent-a-2/a.rs", true),
            ("/p/.claude/agent-memory/a/MEMORY.md", false),
            ("/q/a.rs", false),
        ] {
            let write = CallEffects::write(PathEffect::plain(path));
            assert_eq!(refused(&write).is_some(), is_refused, "{path}");
            assert_eq!(refused(&CallEffects::read(PathEffect::plain(path))), None, "reading {path}");
            let target = Some(PathEffect::plain(path));
            let removal = Removal { text: path.to_owned(), target };
            let removal = CallEffects { removals: vec![removal], ..CallEffects::default() };
            assert_eq!(refused(&removal).is_some(), is_refused, "removing {path}");
        }
        let linked =
            PathEffect { requested: "/p/.claude/worktrees/agent-a/link".into(), real: "/p/src".into() };
        assert!(refused(&CallEffects::write(linked)).is_some());
    }

    #[test]
    fn commands_that_go_to_the_main_checkout_are_refused() {
        for (command, is_refused) in [
            ("git status", false),
            ("git -C /p status", true),
            ("git -C ../../.. log", true),
            ("git -C src status", false),
            ("git --git-dir=/p/.git log", true),
            ("git --git-dir \"/p/.git\" --work-tree=/p add .", true),
            ("GIT_DIR=/p/.git git log", true),
            ("env GIT_WORK_TREE=/p git add x", true),
            ("cd /p", true),
            ("cd ../..", true),
            ("cd src", false),
            ("pushd '/p/src'", true),
            ("cd /tmp", false),
            ("make -C /p", false),
            ("echo git -C /p", false),
        ] {
            let effects =
                CallEffects { commands: vec![CommandEffect::plain(command)], ..CallEffects::default() };
            assert_eq!(refused(&effects).is_some(), is_refused, "{command}");
        }
    }

    #[test]
    fn command_that_cannot_be_traced_is_refused_in_a_worktree_alone() {
        let plain = |command: &str| CallEffects {
            commands: vec![CommandEffect::plain(command)],
            ..CallEffects::default()
        };
        let unknown = |what: &str| CallEffects { unknown: vec![what.to_owned()], ..plain("x") };
        let unclear = |path: Unclear| CallEffects { unclear: vec![path], ..plain("x") };
        let hidden = CommandEffect { runs_unknown: true, ..CommandEffect::plain("$CMD all") };
        let hidden = CallEffects { commands: vec![hidden], ..CallEffects::default() };
        for (effects, is_refused) in [
            (plain("cargo test"), false),
            (plain("cd \0/src"), true),
            (plain("git -C \0 status"), true),
            (plain("echo $HOME"), false),
            (unknown("a line that two parsers read differently"), true),
            (unknown(ASKS_OUTSIDE), false),
            (unclear(Unclear::Write("$OUT".to_owned())), true),
            (unclear(Unclear::Read("$IN".to_owned())), false),
            (hidden, true),
            (CallEffects::unknown("it may discard the work in the worktree"), false),
        ] {
            assert_eq!(refused(&effects).is_some(), is_refused, "{effects:?}");
            assert_eq!(outside_worktree(&effects, &Rulebook::default()), None);
        }
    }

    #[test]
    fn worktree_elsewhere_leaves_its_checkout_alone_and_one_around_it_is_none() {
        let at = |worktree: &str| Isolation::new(Path::new(worktree), Path::new("/p"));
        let elsewhere = at("/copies/one").unwrap();
        assert!(elsewhere.holds(Path::new("/p/src/a.rs")) && !elsewhere.holds(Path::new("/copies/one/a.rs")));
        assert_eq!((at("/"), at("/p")), (None, None));
    }

    #[test]
    fn worktree_is_kept_out_of_every_checkout_that_it_was_sent_out_from() {
        let at = |worktree: &str| Isolation::new(Path::new(worktree), Path::new("/p")).unwrap();
        let alone = at("/p/.claude/worktrees/agent-a");
        assert!(!alone.holds(Path::new("/copies/one/a.rs")), "a directory like any other");
        let apart = alone.clone().keeping_out_of(Path::new("/copies/one"));
        for (path, is_held) in [
            ("/copies/one/a.rs", true),
            ("/p/a.rs", true),
            ("/copies/one/.claude/agent-memory/x/MEMORY.md", false),
            ("/copies/two/a.rs", false),
            ("/p/.claude/worktrees/agent-a/a.rs", false),
        ] {
            assert_eq!(apart.holds(Path::new(path)), is_held, "{path}");
        }
        assert_eq!(alone.clone().within(&at("/copies/one")), apart, "so is one that an agent sends out");
        assert_eq!(alone.clone().keeping_out_of(&alone.worktree), alone, "its own is its own");
    }

    #[test]
    fn only_worktrees_of_ours_have_a_main_checkout() {
        assert_eq!(Isolation::of_worktree(Path::new("/p/worktrees/a")), None);
        assert_eq!(Isolation::of_worktree(Path::new("/p")), None);
        let effects = CallEffects::write(PathEffect::plain("/p/src/a.rs"));
        assert_eq!(outside_worktree(&effects, &Rulebook::default()), None);
    }
}
