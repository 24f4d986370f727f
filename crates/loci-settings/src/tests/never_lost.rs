//! For any file in which a restricting list is intact, its rules come out, whatever else is wrong.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;

/// Files as people write them, on one line, indented, and with comments.
fn file(shape: u8, rules: &[String]) -> (String, String) {
    let list = serde_json::to_string(rules).unwrap();
    let array = format!("\"deny\": {list}");
    let text = match shape % 4 {
        0 => format!(
            r#"{{"model":"opus","env":{{"A":"1"}},"permissions":{{"allow":["Read"],{array},"ask":["Edit"]}},"x":[1,2]}}"#
        ),
        1 => format!(
            "{{\n  \"model\": \"opus\",\n  \"permissions\": {{\n    \"allow\": [\n      \"Bash(git *)\"\n    ],\n    {array}\n  }},\n  \"hooks\": {{\"Stop\": [{{\"hooks\": []}}]}}\n}}\n"
        ),
        2 => format!(
            "{{ // mine\n\t\"permissions\": {{ {array}, /* keep */ }},\n\t\"language\": \"it's \\\"x\\\"\",\n}}"
        ),
        _ => format!("{{\"permissions\":{{{array}}}}}"),
    };
    (text, array)
}

#[derive(Debug, Clone)]
enum Mutation {
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, String),
    Delete(prop::sample::Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<prop::sample::Index>();
    prop_oneof![
        at.prop_map(Mutation::Cut),
        (any::<prop::sample::Index>(), "[\\[\\]{},:\"'a1 \n\\\\*é]{1,3}")
            .prop_map(|(at, text)| Mutation::Insert(at, text)),
        (any::<prop::sample::Index>(), 1usize..12).prop_map(|(at, n)| Mutation::Delete(at, n)),
    ]
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn mutated(text: &str, mutation: &Mutation) -> String {
    let place = |index: &prop::sample::Index| floor(text, index.index(text.len() + 1));
    match mutation {
        Mutation::Cut(at) => text[..place(at)].to_owned(),
        Mutation::Insert(at, new) => format!("{}{new}{}", &text[..place(at)], &text[place(at)..]),
        Mutation::Delete(at, n) => {
            let start = place(at);
            let end = floor(text, (start + n).min(text.len()));
            format!("{}{}", &text[..start], &text[end..])
        }
    }
}

/// Tells whether the damage made a comment of the list in a file that is otherwise in order.
fn is_commented_out(text: &str, array: &str) -> bool {
    let mut kept = String::new();
    let (mut rest, mut is_text) = (text, false);
    while let Some(c) = rest.chars().next() {
        let n = match c {
            '\\' if is_text => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '/' if !is_text && rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '/' if !is_text && rest.starts_with("/*") => {
                rest = rest[2..].find("*/").map_or("", |end| &rest[end + 4..]);
                continue;
            }
            other => other.len_utf8(),
        };
        is_text ^= c == '"';
        kept.push_str(&rest[..n]);
        rest = &rest[n..];
    }
    !kept.contains(array) && jsonc::parse(text).errors.is_empty()
}

/// Checks that every rule of the list comes out and is in force in a folder that is not trusted.
fn assert_kept(text: &str, array: &str, rules: &[String]) {
    if !text.contains(array) || is_commented_out(text, array) {
        return;
    }
    let (layer, _) = Layer::parse(text, Origin::new(Scope::Project, "s"));
    let merged = merge(&[layer], false);
    let kept = merged.value("permissions.deny").and_then(Value::as_array).cloned().unwrap_or_default();
    for rule in rules {
        assert!(kept.contains(&json!(rule)), "{rule:?} is lost: {text}");
    }
}

#[test]
fn every_prefix_that_holds_the_list_keeps_its_rules() {
    let rules = ["Bash(rm *)".to_owned(), "Read(./.env)".to_owned()];
    for shape in 0..4 {
        let (text, array) = file(shape, &rules);
        let whole = text.find(&array).unwrap() + array.len();
        for end in (whole..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert_kept(&text[..end], &array, &rules);
        }
    }
}

#[test]
fn every_single_byte_may_be_missing_or_doubled() {
    let rules = ["Bash(rm *)".to_owned(), "Read(./.env)".to_owned()];
    for shape in 0..4 {
        let (text, array) = file(shape, &rules);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let end = floor(&text, at + 1).max(at + 1);
            let missing = format!("{}{}", &text[..at], &text[end..]);
            let doubled = format!("{}{}", &text[..end], &text[at..]);
            assert_kept(&missing, &array, &rules);
            assert_kept(&doubled, &array, &rules);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_damage_around_the_list_leaves_its_rules(
        shape in 0u8..4,
        rules in prop::collection::vec("[A-Za-z]{1,5}(\\([a-z*/.\"\\\\é ]{0,6}\\))?", 1..4),
        mutations in prop::collection::vec(mutation(), 1..5),
    ) {
        let (text, array) = file(shape, &rules);
        let text = mutations.iter().fold(text, |text, mutation| mutated(&text, mutation));
        assert_kept(&text, &array, &rules);
    }
}
