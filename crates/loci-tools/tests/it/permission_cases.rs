//! The public sample of the permission corpus, case by case.

use loci_core::permission::{Mode, RuleList, Rulebook};
use serde_json::Value;

use crate::tree::Tree;

const CASES: &str = include_str!("../../../../fixtures/permission_cases.jsonl");

#[test]
fn every_public_case_is_decided_as_expected() {
    let tree = Tree::new();
    let mut wrong = Vec::new();
    let mut n_cases = 0;
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(&tree.filled(line)).unwrap();
        n_cases += 1;
        let decision = tree.judge(&book(&tree, &case), case["tool"].as_str().unwrap(), &case["input"]);
        let found = format!("{:?}", decision.verdict).to_lowercase();
        let accepted = case["accept"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let is_fine = case["expect"] == found.as_str() || accepted.into_iter().any(|other| other == found);
        if !is_fine {
            wrong.push(format!(
                "{} {} {}: {found}, {}",
                case["id"], case["expect"], case["input"], decision.reason
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {n_cases} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn book(tree: &Tree, case: &Value) -> Rulebook {
    let mut book = tree.book(Mode::Default);
    let is_trusted = case["trusted"] != false;
    if case["rules"].is_object() {
        add(tree, &mut book, "project", &case["rules"], is_trusted);
    }
    for scope in ["user", "project", "local", "flag"] {
        add(tree, &mut book, scope, &case["scopes"][scope], is_trusted);
    }
    if let Some(mode) = case["mode"].as_str() {
        book.mode = mode.parse().unwrap();
    }
    book
}

/// Adds what a scope says; files of a folder that is not trusted may only restrict.
fn add(tree: &Tree, book: &mut Rulebook, scope: &str, rules: &Value, is_trusted: bool) {
    let dir = if scope == "user" { tree.dir("home/.claude") } else { tree.dir("proj") };
    let may_allow = is_trusted || !matches!(scope, "project" | "local");
    for (name, list) in [("allow", RuleList::Allow), ("ask", RuleList::Ask), ("deny", RuleList::Deny)] {
        for text in rules[name].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if may_allow || list != RuleList::Allow {
                tree.add(book, list, text, &dir);
            }
        }
    }
    if may_allow {
        let dirs = rules["additionalDirectories"].as_array().into_iter().flatten().filter_map(Value::as_str);
        book.dirs.extend(dirs.map(|dir| tree.filled(dir).into()));
        if let Some(mode) = rules["defaultMode"].as_str() {
            book.mode = mode.parse().unwrap();
        }
    }
}
