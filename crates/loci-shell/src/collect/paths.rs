//! What a line reads, writes and removes, from where the shell may stand.

use std::path::PathBuf;

use loci_core::tool::{HOLE, Unclear};

use super::{Dirs, Walk};
use crate::files::Access;
use crate::syntax::{Redirect, Word};
use crate::value::Value;
use crate::{ShellPath, ShellRemoval};

impl Walk<'_> {
    /// Notes what redirections read and write; returns whether they are of the kind that may run unasked.
    pub(super) fn redirects(&mut self, redirects: &[Redirect], dirs: &Dirs, scope: super::Scope) -> bool {
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
        if is_duplicate(redirect, value) || value.text == "/dev/null" && value.is_literal {
            return;
        }
        // Bash expands such a target twice: what quotes protected the first time runs the second.
        if redirect.operator.ends_with('&') && value.text.contains(['$', '`', HOLE]) {
            self.out.unknown.push("a redirection whose target is expanded twice".to_owned());
        }
        if value.text.starts_with("/dev/tcp") || value.text.starts_with("/dev/udp") {
            self.out.unknown.push("a network connection by redirection".to_owned());
            return;
        }
        if redirect.operator == "<" && is_free_device(value) {
            return;
        }
        if matches!(redirect.operator.as_str(), "<" | "<&") {
            self.accesses(vec![Access::Read(value.clone())], dirs);
            return;
        }
        let n_before = self.out.writes.len();
        self.accesses(vec![Access::Write(value.clone())], dirs);
        let written = self.out.writes[n_before..].to_vec();
        // Where the shell has moved may be known, but a write from there is asked about as a rule.
        let is_moved = *dirs != Dirs::known(self.ctx.cwd) && !value.text.starts_with('/');
        if is_clear(value, dirs) && (!value.is_literal || is_moved) {
            self.out.unclear.push(Unclear::Redirect(redirect.target.source.clone()));
        }
        self.out.redirects.extend(written);
    }

    /// Collects the commands of substitutions. The command around them never runs unasked, but rules may cover all.
    pub(super) fn scripts(&mut self, word: &Word, dirs: &Dirs, scope: super::Scope) {
        for script in &word.scripts {
            self.command(script, dirs.clone(), super::Scope { is_free: true, ..scope });
        }
    }

    pub(super) fn accesses(&mut self, accesses: Vec<Access>, dirs: &Dirs) {
        for access in accesses {
            match access {
                Access::Read(value) => {
                    let found = self.paths_of(&value, dirs, Unclear::Read);
                    self.out.reads.extend(found);
                }
                Access::Write(value) => {
                    let found = self.paths_of(&value, dirs, Unclear::Write);
                    self.out.writes.extend(found);
                }
                Access::Remove(value) => {
                    self.removal(&value, dirs);
                    // Emptying the directory we stand in is asked about as a whole, not name by name.
                    let written = self.paths_of(&value, dirs, Unclear::Write);
                    self.out.writes.extend(written.into_iter().map(|path| match emptied(path.clone()) {
                        dir if self.ctx.cwd.starts_with(&dir.path) => dir,
                        _ => path,
                    }));
                }
                Access::Move(value) => self.out.moves.extend(paths(&value, dirs)),
            }
        }
    }

    /// Returns the paths a value stands for, and notes when it may stand for others.
    fn paths_of(&mut self, value: &Value, dirs: &Dirs, unclear: fn(String) -> Unclear) -> Vec<ShellPath> {
        if !is_clear(value, dirs) {
            self.out.unclear.push(unclear(value.shown.clone()));
        }
        paths(value, dirs)
    }

    fn removal(&mut self, value: &Value, dirs: &Dirs) {
        let text = value.shown.clone();
        if text == "{}" && value.known().is_none() {
            // What `find` fills in lies below its roots, which are reported themselves.
            return;
        }
        if !is_clear(value, dirs) {
            self.out.removals.push(ShellRemoval { text: text.clone(), target: None });
        }
        let targets = paths(value, dirs).into_iter().map(emptied);
        let removals = targets.map(|path| ShellRemoval { text: text.clone(), target: Some(path) });
        self.out.removals.extend(removals);
    }
}

/// `2>&1` and `>&-` open no file.
fn is_duplicate(redirect: &Redirect, value: &Value) -> bool {
    let is_descriptor =
        |text: &str| text == "-" || text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit());
    redirect.operator.ends_with('&') && value.known().is_some_and(is_descriptor)
}

/// `*` at the end empties the directory it stands in, and `*/*` those below.
fn emptied(path: ShellPath) -> ShellPath {
    let mut path = path;
    while path.is_glob {
        let last = path.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let takes_all = last.contains('*') && last.chars().all(|c| "*?.".contains(c));
        let Some(parent) = path.path.parent().filter(|_| takes_all) else { break };
        let is_glob = parent.to_string_lossy().contains(['*', '?', '[', '\\']);
        path = ShellPath { path: parent.to_path_buf(), is_glob };
    }
    path
}

/// Tells whether a value names a device whose content tells nothing, or what the command has open anyway.
pub(super) fn is_free_device(value: &Value) -> bool {
    const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/stdin"];
    let Some(text) = value.known().filter(|_| value.pattern.is_none()) else { return false };
    let is_descriptor = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    DEVICES.contains(&text) || text.strip_prefix("/dev/fd/").is_some_and(is_descriptor)
}

/// Returns true when the value stands for the same paths wherever the shell may be.
fn is_clear(value: &Value, dirs: &Dirs) -> bool {
    match text(value) {
        Some((text, _)) => text.starts_with('/') || !dirs.is_open(),
        None => false,
    }
}

/// Returns the paths a value stands for, from each directory the shell may be in.
fn paths(value: &Value, dirs: &Dirs) -> Vec<ShellPath> {
    match text(value) {
        Some((text, is_glob)) if text.starts_with('/') => {
            vec![ShellPath { path: PathBuf::from(text), is_glob }]
        }
        Some((text, is_glob)) => {
            dirs.all().iter().map(|dir| ShellPath { path: dir.join(text), is_glob }).collect()
        }
        None => Vec::new(),
    }
}

/// Returns a value as a path, and whether it is a glob; `None` when only the run will tell.
fn text(value: &Value) -> Option<(&str, bool)> {
    match (&value.pattern, value.known()) {
        (Some(pattern), _) => Some((pattern.as_str(), true)),
        (None, Some(text)) => Some((text, false)),
        (None, None) => None,
    }
}
