//! The binary prints through one file, which makes visible what would act on a terminal: names, rules and answers come from
//! others.

use super::tree::Tree;

/// The file that prints.
const PRINTER: &str = "crates/loci/src/print.rs";

/// What prints past it.
const PAST: [&str; 6] = ["println!", "eprintln!", "print!(", "eprint!(", "io::stdout()", "io::stderr()"];

/// Files that may, and why.
const ALLOWED: [(&str, &str); 1] = [
    // A protocol of frames on standard output, which is no terminal.
    ("crates/loci/src/mcp/serve.rs", "tokio::io::stdout()"),
];

/// Finds verbs that print past the printer.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let is_binary = |path: &str| path.starts_with("crates/loci/src/") && path != PRINTER;
    let mut problems = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| is_binary(&file.path)) {
        let code = rust.product_code();
        for (number, line) in (1..).zip(code.lines()) {
            let is_allowed = ALLOWED.iter().any(|(path, what)| *path == file.path && line.contains(what));
            if let Some(past) = PAST.iter().find(|past| line.contains(*past)).filter(|_| !is_allowed) {
                problems.push(format!(
                    "{}:{number}: `{past}` prints what terminals would obey; print through {PRINTER}",
                    file.path
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    #[test]
    fn verbs_print_through_the_printer() {
        let code = "fn f() { println!(\"x\"); }\nfn g() { drop(writeln!(std::io::stderr(), \"x\")); }\n\
                    #[cfg(test)]\nmod tests { fn h() { println!(\"x\"); } }";
        let problem = |what| format!("`{what}` prints what terminals would obey; print through {PRINTER}");
        expect_problems(
            check,
            &[("crates/loci/src/a.rs", code), (PRINTER, code), ("xtask/src/a.rs", code)],
            &[
                &format!("crates/loci/src/a.rs:1: {}", problem("println!")),
                &format!("crates/loci/src/a.rs:2: {}", problem("io::stderr()")),
            ],
        );
    }
}
