//! There are no globals: what changes while the program runs hangs from a value that somebody owns. Invariant 2 of
//! `docs/ARCHITECTURE.md`.
//!
//! A table that is made once and never changed (`LazyLock`, `OnceLock`) is none.

use super::tree::Tree;

/// What can be changed behind a shared reference.
const CHANGEABLE: [&str; 6] = ["Mutex<", "RwLock<", "Atomic", "RefCell<", "Cell<", "UnsafeCell<"];

/// Files that may have one, and why.
const ALLOWED: [(&str, &str); 2] = [
    ("crates/loci-tui/src/terminal/signals.rs", "a signal handler is given nothing else"),
    ("crates/loci-shell/src/second_opinion.rs", "a parser that keeps nothing from one line to the next"),
];

/// Finds statics of product code that can be changed.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let is_product = |path: &str| path.starts_with("crates/") && path.contains("/src/");
    let is_allowed = |path: &str| ALLOWED.iter().any(|(allowed, _)| *allowed == path);
    let mut problems = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| is_product(&file.path) && !is_allowed(&file.path)) {
        let code = rust.product_code();
        let globals = (1..).zip(code.lines()).filter(|(_, line)| is_changeable_static(line));
        problems.extend(globals.map(|(number, _)| {
            format!(
                "{}:{number}: a global that can be changed; let a value own it that its users are given",
                file.path
            )
        }));
    }
    problems
}

fn is_changeable_static(line: &str) -> bool {
    let declared = line.split_once(" = ").map_or(line, |(declared, _)| declared);
    let mut words = declared.split_whitespace().skip_while(|word| word.starts_with("pub"));
    words.next() == Some("static") && CHANGEABLE.iter().any(|kind| declared.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    #[test]
    fn changeable_statics_are_globals() {
        let code = "static KEPT: Mutex<Vec<u8>> = Mutex::new(Vec::new());\nthread_local! {\n    \
                    pub(super) static N: Cell<u8> = const { Cell::new(0) };\n}";
        let problem = "a global that can be changed; let a value own it that its users are given";
        expect_problems(
            check,
            &[("crates/a/src/b.rs", code)],
            &[&format!("crates/a/src/b.rs:1: {problem}"), &format!("crates/a/src/b.rs:3: {problem}")],
        );
        expect_problems(check, &[("xtask/src/b.rs", code)], &[]);
    }

    #[test]
    fn tables_arguments_and_tests_are_none() {
        let code = "static RULES: LazyLock<Vec<Rule>> = LazyLock::new(rules);\n\
                    fn f(name: &'static str, n: &AtomicU64) {}\n\
                    #[cfg(test)]\nstatic SEEN: AtomicU64 = AtomicU64::new(0);";
        expect_problems(check, &[("crates/a/src/b.rs", code)], &[]);
    }
}
