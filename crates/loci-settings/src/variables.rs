//! Environment variables as a table: every one that loci reads or sets, what it holds, and what it does.
//!
//! A row of [`table`] is a constant of this module and an entry of [`Variable::all`], so that code names a variable by its
//! constant and the reference (`docs/variables.md`) is made of the same line. Variables of others that only change what a
//! command does, and those of the build, are no rows.

mod table;

pub use table::*;

/// One variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name; a `*` stands for a part that differs.
    pub name: &'static str,
    /// What it holds.
    pub kind: VariableKind,
    /// What it is for, one clause; of one without an effect, why it has none.
    pub about: &'static str,
}

/// What a variable holds, and who sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// A yes or a no: `1`, `true`, `yes`, `on`, or `0`, `false`, `no`, `off`.
    Switch,
    /// A number, often of milliseconds, as its name says.
    Number,
    /// Words.
    Text,
    /// A file or a directory.
    Path,
    /// An address.
    Address,
    /// A credential, which is kept from commands.
    Secret,
    /// Set by loci for what it runs.
    Given,
    /// Without an effect, and told where it turns something on.
    IdleSwitch,
    /// Without an effect, and told wherever it has a value that asks for something.
    IdleValue,
}

impl Variable {
    /// Returns all variables, in the order of their topics.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        table::VARIABLES.iter().chain(table::FAMILIES)
    }

    /// Returns those without an effect, and of each kind those that are told.
    pub fn idle() -> impl Iterator<Item = &'static Self> {
        Self::all().filter(|row| matches!(row.kind, VariableKind::IdleSwitch | VariableKind::IdleValue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_there_once_and_says_what_it_is_for() {
        let all: Vec<&Variable> = Variable::all().collect();
        for (idx, row) in all.iter().enumerate() {
            assert!(!all[..idx].iter().any(|other| other.name == row.name), "{} twice", row.name);
            assert!(!row.about.is_empty() && !row.about.ends_with('.'), "{}", row.name);
            let is_name =
                row.name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || "_*".contains(c));
            assert!(is_name, "{}", row.name);
        }
        assert_eq!(ANTHROPIC_API_KEY, "ANTHROPIC_API_KEY");
    }
}
