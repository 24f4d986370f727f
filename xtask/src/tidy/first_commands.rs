//! The README begins with two commands, the demo and the tests, and CI runs these same tests.

use super::tree::{File, Tree};

const README: &str = "README.md";
const CI: &str = ".ci/run";
const DEMO: &str = "cargo run -- demo";

/// Finds a README whose first command is not the demo, or whose second is not what CI runs.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let (Some(readme), Some(ci)) = (tree.file(README), tree.file(CI)) else { return Vec::new() };
    let mut commands = commands(readme);
    let mut problems = Vec::new();
    match commands.next() {
        Some((_, DEMO)) => {}
        Some((line, other)) => {
            problems.push(format!("{README}:{line}: `{other}` is the first command; begin with `{DEMO}`"));
        }
        None => problems.push(format!("{README}:1: no command is shown; begin with `{DEMO}`")),
    }
    match commands.next() {
        Some((_, tests)) if runs(ci, tests) => {}
        Some((line, tests)) => {
            problems.push(format!("{README}:{line}: {CI} does not run `{tests}`; say the same in both"));
        }
        None => problems.push(format!("{README}:1: no second command is shown; say how every test is run")),
    }
    problems
}

/// Returns the first line of each code block for a shell, with its number.
fn commands(readme: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut opened = false;
    readme.lines().filter(move |(_, line)| std::mem::replace(&mut opened, *line == "```sh"))
}

/// Whether a line of the script is this command, after variables and before what takes its output.
fn runs(ci: &File, command: &str) -> bool {
    ci.lines().any(|(_, line)| {
        let code = line.split('#').next().unwrap_or(line);
        code.split_once(command).is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with(" 2>&1"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    fn readme(first: &str, second: &str) -> String {
        format!("# x\n\n```sh\n{first}\n```\n\n```text\nno command\n```\n\n```sh\n{second}\nmore\n```\n")
    }

    #[test]
    fn readme_and_ci_run_the_same_commands() {
        let good = readme(DEMO, "cargo test --workspace");
        for ci in
            ["cargo test --workspace\n", "tests() {\n    A=b cargo test --workspace 2>&1 | tee log\n}\n"]
        {
            expect_problems(check, &[(README, good.as_str()), (CI, ci)], &[]);
        }
        for ci in ["cargo test --workspace --other\n", "# cargo test --workspace\n", "cargo test\n"] {
            expect_problems(
                check,
                &[(README, good.as_str()), (CI, ci)],
                &["README.md:12: .ci/run does not run `cargo test --workspace`; say the same in both"],
            );
        }
    }

    #[test]
    fn the_demo_comes_first() {
        let ci = (CI, "cargo test\n");
        expect_problems(
            check,
            &[(README, readme("cargo build", "cargo test").as_str()), ci],
            &["README.md:4: `cargo build` is the first command; begin with `cargo run -- demo`"],
        );
        expect_problems(
            check,
            &[(README, "# x\n"), ci],
            &[
                "README.md:1: no command is shown; begin with `cargo run -- demo`",
                "README.md:1: no second command is shown; say how every test is run",
            ],
        );
    }
}
