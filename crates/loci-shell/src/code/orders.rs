//! Programs that take orders of a language of their own, some of which run commands or write files.

use loci_core::tool::HOLE;

/// Orders of SQLite's shell that only show, or set how things are shown. They may be cut short, so nothing else is let be.
#[rustfmt::skip]
const OF_SQLITE: &[&str] = &[
    ".tables", ".schema", ".headers", ".header", ".mode", ".dump", ".indexes", ".indices", ".databases", ".width", ".separator",
    ".nullvalue", ".help", ".show", ".stats", ".timer", ".quit", ".exit", ".explain", ".echo", ".bail", ".changes", ".fullschema",
    ".eqp", ".dbinfo", ".print", ".timeout", ".version",
];

/// Functions and statements of SQLite that reach files and libraries.
const SQLITE_CALLS: &[&str] = &["load_extension", "writefile", "readfile", "edit(", "vacuum into"];

/// Orders of `psql` that run something, or read or write a file.
const OF_PSQL: &[&str] =
    &[r"\!", r"\o", r"\g", r"\w", r"\e", r"\i", r"\s ", r"\copy", r"\cd", r"\setenv", "`"];

/// Orders of `mysql` that do.
const OF_MYSQL: &[&str] = &[r"\!", r"\P", r"\.", r"\T", r"\e"];

/// Returns true when an argument could hold an order that runs a command or opens a file unseen.
pub(super) fn could_run(program: &str, text: &str) -> bool {
    let names_code = ["!", "shell", "system", "esyscmd"].iter().any(|word| text.contains(word));
    let is_flag = match program {
        // `-o '|program'`; not SQL's `a || b`.
        "psql" => text.starts_with(['|', '-']) && text.contains('|'),
        "mysql" | "mariadb" => {
            ["--pager", "--plugin", "--default-auth"].iter().any(|flag| text.starts_with(flag))
        }
        _ if is_sqlite(program) => matches!(text, "-init" | "--init" | "-cmd" | "--cmd"),
        _ => false,
    };
    text.contains(HOLE) || names_code || is_flag || document_could_run(program, text)
}

/// Returns true when what a program reads could hold such an order.
pub(super) fn document_could_run(program: &str, text: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let lower = text.to_ascii_lowercase();
    let has_any_case = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    match program {
        "psql" => has(OF_PSQL) || (has_any_case(&["copy"]) && has_any_case(&["program"])),
        "mysql" | "mariadb" => {
            let begins = |order: &str| {
                let word = order.split_whitespace().next().unwrap_or_default();
                matches!(word, "pager" | "source" | "system" | "tee" | "edit")
            };
            has(OF_MYSQL)
                || has_any_case(&["infile", "outfile", "dumpfile", "load_file"])
                || lower.split([';', '\n']).any(begins)
        }
        _ if is_sqlite(program) => has_any_case(SQLITE_CALLS) || text.lines().any(is_unknown_dot_order),
        _ => has(&["!", "system", "syscmd", "`"]),
    }
}

fn is_sqlite(program: &str) -> bool {
    program.starts_with("sqlite")
}

/// Tells whether an order of SQLite's shell only shows something.
pub(crate) fn is_known_sqlite_order(order: &str) -> bool {
    OF_SQLITE.contains(&order)
}

fn is_unknown_dot_order(line: &str) -> bool {
    let order = line.split_whitespace().next().unwrap_or_default();
    let has_name =
        order.strip_prefix('.').is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
    has_name && !OF_SQLITE.contains(&order)
}
