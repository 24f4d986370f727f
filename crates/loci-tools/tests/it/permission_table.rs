//! Our own permission cases, by class: see `permissions/requirements.txt` for the format.

use std::collections::BTreeMap;

use loci_core::permission::{Mode, RuleList, Rulebook, Verdict};
use serde_json::{Value, json};

use crate::tree::Tree;

/// The classes and their cases.
const TABLES: &[(&str, &str)] = &[
    ("requirements", include_str!("permissions/requirements.txt")),
    ("read-only", include_str!("permissions/read_only.txt")),
    ("syntax", include_str!("permissions/syntax.txt")),
    ("see-through", include_str!("permissions/see_through.txt")),
    ("allow", include_str!("permissions/allow.txt")),
    ("paths", include_str!("permissions/paths.txt")),
    ("adversary", include_str!("permissions/adversary.txt")),
    ("code", include_str!("permissions/code.txt")),
    ("flags", include_str!("permissions/flags.txt")),
];

/// A case: what to expect, the book it is judged by, the tool, its argument.
pub(crate) struct Case {
    pub(crate) class: &'static str,
    pub(crate) title: &'static str,
    expected: &'static str,
    pub(crate) book: Rulebook,
    pub(crate) tool: &'static str,
    pub(crate) argument: String,
}

pub(crate) fn cases(tree: &Tree) -> Vec<Case> {
    TABLES.iter().flat_map(|(class, table)| read(tree, class, table)).collect()
}

fn read(tree: &Tree, class: &'static str, table: &'static str) -> Vec<Case> {
    let mut found = Vec::new();
    let (mut title, mut book) = ("", tree.book(Mode::Default));
    for line in table.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//")) {
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
        let argument = tree.filled(&unescaped(argument));
        found.push(Case { class, title, expected: head, book: book.clone(), tool, argument });
    }
    found
}

/// Puts line breaks and odd characters where `\n` and `\u{…}` stand.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\\u{") {
        out.push_str(&rest[..at]);
        let (code, behind) = rest[at + 3..].split_once('}').unwrap();
        out.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        rest = behind;
    }
    out.push_str(rest);
    out.replace("\\n", "\n")
}

pub(crate) fn input(tool: &str, argument: &str) -> Value {
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
    assert!(cases.len() >= 1_500, "only {} cases", cases.len());
    let mut classes: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let decision = tree.judge(&case.book, case.tool, &input(case.tool, &case.argument));
        let found = format!("{:?}", decision.verdict).to_lowercase();
        let is_fine = case.expected.split('|').any(|expected| expected == found);
        let is_unsafe = !is_fine && found == "allow";
        let counts = classes.entry(case.class).or_default();
        counts[0] += 1;
        counts[1] += usize::from(!is_fine);
        counts[2] += usize::from(is_unsafe);
        if !is_fine {
            let Case { class, title, expected, tool, argument, .. } = case;
            let mark = if is_unsafe { "UNSAFE " } else { "" };
            wrong.push(format!(
                "{mark}{class}: {title}: {expected}: {tool} {argument}: {found}, {}",
                decision.reason
            ));
        }
    }
    let summary: Vec<String> = classes
        .iter()
        .map(|(class, [n, n_wrong, n_unsafe])| {
            format!("{class}: {n} cases, {n_wrong} wrong, {n_unsafe} unsafe")
        })
        .collect();
    assert!(wrong.is_empty(), "{}\n\n{}", wrong.join("\n"), summary.join("\n"));
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
