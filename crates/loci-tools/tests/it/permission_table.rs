//! Our own permission cases, by requirement: see `permission_table.txt` for the format.

use loci_core::permission::{Mode, RuleList, Rulebook, Verdict};
use serde_json::{Value, json};

use crate::tree::Tree;

const TABLE: &str = include_str!("permission_table.txt");

/// A case: what to expect, the book it is judged by, the tool, its argument.
struct Case<'a> {
    title: &'a str,
    expected: &'a str,
    book: Rulebook,
    tool: &'a str,
    argument: String,
}

fn cases(tree: &Tree) -> Vec<Case<'static>> {
    let mut found = Vec::new();
    let (mut title, mut book) = ("", tree.book(Mode::Default));
    for line in TABLE.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//")) {
        if let Some(rest) = line.strip_prefix("## ") {
            (title, book) = (rest, tree.book(Mode::Default));
            continue;
        }
        let (head, rest) = line.split_once(": ").unwrap_or_else(|| panic!("odd line: {line}"));
        let list = match head {
            "mode" => {
                book.mode = rest.parse().unwrap();
                continue;
            }
            "dir" => {
                book.dirs.push(tree.filled(rest).into());
                continue;
            }
            "+allow" => Some(RuleList::Allow),
            "+ask" => Some(RuleList::Ask),
            "+deny" => Some(RuleList::Deny),
            _ => None,
        };
        if let Some(list) = list {
            tree.add(&mut book, list, rest, &tree.dir("proj"));
            continue;
        }
        let (tool, argument) = rest.split_once(' ').unwrap_or((rest, ""));
        let argument = tree.filled(&argument.replace("\\n", "\n"));
        found.push(Case { title, expected: head, book: book.clone(), tool, argument });
    }
    found
}

fn input(tool: &str, argument: &str) -> Value {
    match tool {
        "Bash" => json!({"command": argument}),
        "WebFetch" => json!({"url": argument}),
        "Write" => json!({"file_path": argument, "content": "x"}),
        "Edit" => json!({"file_path": argument, "old_string": "a", "new_string": "b"}),
        "Read" => json!({"file_path": argument}),
        "Grep" => json!({"pattern": "x", "path": argument}),
        _ => json!({}),
    }
}

#[test]
fn every_case_of_the_table_holds() {
    let tree = Tree::new();
    let cases = cases(&tree);
    assert!(cases.len() >= 300, "only {} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let decision = tree.judge(&case.book, case.tool, &input(case.tool, &case.argument));
            let found = format!("{:?}", decision.verdict).to_lowercase();
            let is_fine = case.expected.split('|').any(|expected| expected == found);
            (!is_fine).then(|| {
                let Case { title, expected, tool, argument, .. } = case;
                format!("{title}: {expected}: {tool} {argument}: {found}, {}", decision.reason)
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// A deny rule for the tool wins in every mode, whatever else is said (P-2, S-2).
#[test]
fn deny_wins_in_every_mode() {
    let tree = Tree::new();
    for case in cases(&tree) {
        for mode in ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"] {
            let mut book = Rulebook { mode: mode.parse().unwrap(), ..case.book.clone() };
            tree.add(&mut book, RuleList::Deny, case.tool, &tree.dir("proj"));
            let verdict = tree.judge(&book, case.tool, &input(case.tool, &case.argument)).verdict;
            assert_eq!(verdict, Verdict::Deny, "{mode} {} {}", case.tool, case.argument);
        }
    }
}

/// Putting a command in a subshell, a group, a wrapper or a nested shell never makes it run where it did not (P-4, S-5).
#[test]
fn wrapping_never_opens() {
    let tree = Tree::new();
    let mut opened = Vec::new();
    for case in cases(&tree).iter().filter(|case| case.tool == "Bash" && !case.argument.contains('\'')) {
        let before = tree.judge(&case.book, "Bash", &input("Bash", &case.argument)).verdict;
        if before == Verdict::Allow {
            continue;
        }
        for (open, close) in [
            ("( ", " )"),
            ("{ ", "; }"),
            ("bash -c '", "'"),
            ("ls; ", ""),
            ("echo \"$( ", " )\""),
            ("true && ", ""),
        ] {
            if case.argument.contains("<<") || case.argument.trim_end().ends_with([';', '&']) {
                continue;
            }
            let wrapped = format!("{open}{}{close}", case.argument);
            let decision = tree.judge(&case.book, "Bash", &input("Bash", &wrapped));
            if decision.verdict == Verdict::Allow {
                opened.push(format!("{}: {wrapped}: {}", case.title, decision.reason));
            }
        }
    }
    assert!(opened.is_empty(), "{} were opened:\n{}", opened.len(), opened.join("\n"));
}
