//! Code in arguments: whether what a program is given could make it run commands, or write where nobody can tell.
//!
//! A rule such as `Bash(awk *)` speaks of a program that reads and prints, not of whatever that program can be told to
//! do. So where code could run something, only a rule without wildcards lets the command run. Code that lies in a file
//! of the project is what its name says and is not looked into; files that code names are reported as reads and writes.

pub(crate) mod awk;
mod flags;
mod interpreter;
mod orders;
pub(crate) mod python;
pub(crate) mod sed;
mod words;

pub(crate) use flags::sets_code as git_sets_code;
pub(crate) use interpreter::{PythonCode, python_code};
pub(crate) use orders::is_known_sqlite_order;

use loci_core::tool::HOLE;

use crate::value::Value;
use crate::wrappers::{family, is_input};

/// A file that code names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// By this name.
    File(String),
    /// By one that only the run will tell.
    Unknown,
}

impl Named {
    /// Returns the name, or a question mark.
    #[cfg(test)]
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::File(name) => name,
            Self::Unknown => "?",
        }
    }
}

/// What a program gets as its input by redirection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Document<'d> {
    /// This text.
    Known(&'d str),
    /// Nothing that stands in the line.
    Unknown,
}

impl<'d> Document<'d> {
    /// Returns the document that a text is, if there is one.
    pub(crate) fn from_text(text: Option<&'d str>) -> Self {
        text.map_or(Self::Unknown, Self::Known)
    }
}

/// Returns true when a command could run others by what it is told.
pub(crate) fn could_run_others(values: &[Value], document: Document<'_>) -> bool {
    let Some((first, arguments)) = values.split_first() else { return false };
    let base = first.text.rsplit('/').next().unwrap_or_default();
    match (base, family(base)) {
        ("awk" | "gawk" | "mawk" | "nawk", _) => {
            awk::could_run(arguments) || file_could_run(arguments, document, |code| awk::read(code).runs)
        }
        ("sed" | "gsed", _) => {
            let could_run = |code: &str| sed::read(code).is_none_or(|script| script.runs);
            sed::could_run(arguments) || file_could_run(arguments, document, could_run)
        }
        ("git", _) => flags::by_git(values),
        ("make" | "gmake", _) => flags::by_make(arguments),
        ("ssh" | "scp" | "sftp" | "rsync", _) => flags::by_remote(base, arguments),
        ("tar" | "bsdtar", _) => flags::by_tar(arguments),
        ("vim" | "vi" | "nvim" | "ex" | "view" | "emacs", _) => {
            arguments.iter().any(|value| value.text.starts_with(['+', '-', HOLE]))
        }
        ("psql" | "mysql" | "mariadb" | "ed" | "dc" | "gnuplot" | "m4", _) | (_, "sqlite") => {
            let in_document =
                matches!(document, Document::Known(text) if orders::document_could_run(base, text));
            in_document || arguments.iter().any(|value| orders::could_run(base, &value.text))
        }
        ("printf" | "read" | "mapfile" | "readarray" | "getopts", _) => {
            flags::sets_loading_variable(base, arguments)
        }
        ("yq", _) => arguments.iter().any(|value| value.text.contains("system(")),
        (_, "python" | "pypy") => interpreter::by_python(arguments, document),
        (_, "perl") => interpreter::by_perl(arguments, document),
        (_, "ruby") => interpreter::by_ruby(arguments, document),
        (_, "node" | "nodejs") => interpreter::by_node(arguments, document),
        (_, "deno" | "bun" | "php" | "lua" | "luajit" | "tclsh" | "osascript" | "pwsh" | "powershell") => {
            let takes_code =
                |value: &Value| matches!(value.text.as_str(), "-e" | "-r" | "-c" | "-E" | "eval");
            arguments.iter().any(takes_code) || arguments.first().is_none_or(|value| value.text == "-")
        }
        _ => flags::has_running_flag(base, arguments),
    }
}

/// Tells whether a program whose code comes in a file of code (`-f`) could run something, where that file is its input.
fn file_could_run(arguments: &[Value], document: Document<'_>, could_run: impl Fn(&str) -> bool) -> bool {
    match (code_in_input(arguments), document) {
        (false, _) => false,
        (true, Document::Known(code)) => could_run(code),
        (true, Document::Unknown) => true,
    }
}

/// Tells whether `awk` or `sed` is told to take its code from its input: `-f -`, `-nf/dev/stdin`, `--file=-`.
pub(crate) fn code_in_input(arguments: &[Value]) -> bool {
    let is_file_flag = |text: &str| {
        text == "--file" || (text.starts_with('-') && !text.starts_with("--") && text.ends_with('f'))
    };
    let attached = |text: &str| {
        let behind = text.strip_prefix("--file=").or_else(|| {
            let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
            letters.split_once('f').map(|(_, behind)| behind)
        });
        behind.is_some_and(|name| is_input(&Value::literal(name)))
    };
    arguments.windows(2).any(|pair| is_file_flag(&pair[0].text) && is_input(&pair[1]))
        || arguments.iter().any(|value| attached(&value.text))
}

fn is_vague(value: &Value) -> bool {
    value.text.contains(HOLE)
}
