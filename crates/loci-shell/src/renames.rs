//! Names that a line itself gives another meaning: functions, aliases, remembered places, loaded builtins.
//!
//! What a function does stands in the line and is judged there; a call of it may hand on any of its words. What an
//! alias, `hash -p` or `enable -f` puts behind a name is not followed: such a name could be any program. The names are
//! held for the whole line, before and behind the place that changes them.

use std::collections::BTreeSet;

use loci_core::tool::HOLE;

use crate::value::Value;

/// The names that a line gives another meaning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Renames {
    functions: BTreeSet<String>,
    others: BTreeSet<String>,
    /// Whether any name may have another meaning.
    all: bool,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The program or builtin of that name.
    Usual,
    /// A function of the line.
    Function,
    /// Only the run will tell.
    Unknown,
}

impl Renames {
    /// Notes that the line defines a function.
    pub(crate) fn define(&mut self, function: &str) {
        self.functions.insert(function.to_owned());
    }

    /// Notes what a command does to names.
    pub(crate) fn note(&mut self, values: &[Value]) {
        let is_prefix = |value: &&Value| matches!(value.text.as_str(), "command" | "builtin");
        let n_prefixes = values.iter().take_while(is_prefix).count();
        let Some((first, arguments)) = values[n_prefixes..].split_first() else { return };
        let has_flag = |letters: &[char]| {
            arguments.iter().any(|value| value.text.starts_with(['-', HOLE]) && value.text.contains(letters))
        };
        let operands = || arguments.iter().filter(|value| !value.text.starts_with('-'));
        match first.text.as_str() {
            "alias" => operands().for_each(|value| self.alias(&value.text)),
            "hash" if has_flag(&['p', HOLE]) => operands().for_each(|value| self.rename(&value.text)),
            "enable" if has_flag(&['f', 'n', HOLE]) => operands().for_each(|value| self.rename(&value.text)),
            "shopt" => {
                let sets = |value: &Value| value.text == "expand_aliases" || value.text.contains(HOLE);
                self.all |= has_flag(&['s', HOLE]) && arguments.iter().any(sets);
            }
            _ => {}
        }
        values.iter().for_each(|value| self.note_assignment(&value.text));
    }

    /// Notes an assignment to the tables behind aliases and remembered places, which are arrays.
    pub(crate) fn note_assignment(&mut self, text: &str) {
        self.all |= text.contains("BASH_ALIASES") || text.contains("BASH_CMDS");
    }

    fn alias(&mut self, text: &str) {
        match text.split_once('=') {
            Some((name, _)) => self.rename(name),
            None => self.all |= text.contains(HOLE),
        }
    }

    fn rename(&mut self, name: &str) {
        match name.contains(HOLE) {
            true => self.all = true,
            false => {
                self.others.insert(name.to_owned());
            }
        }
    }

    /// Returns what a name stands for.
    pub(crate) fn meaning(&self, name: &str) -> Meaning {
        if self.all || self.others.contains(name) {
            Meaning::Unknown
        } else if self.functions.contains(name) {
            Meaning::Function
        } else {
            Meaning::Usual
        }
    }
}

/// Returns true for a command that defines an alias: not only names, all that follows may be read otherwise.
pub(crate) fn defines_alias(values: &[Value]) -> bool {
    let is_alias = |value: &Value| value.text == "alias";
    values.iter().take(3).any(is_alias) && values.iter().skip(1).any(|value| value.text.contains(['=', HOLE]))
}
