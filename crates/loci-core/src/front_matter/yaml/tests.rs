//! What a real YAML reader understands is understood alike (`cases.jsonl`, made with PyYAML 6.0.3: a text and its value a
//! line); what it would refuse, and people write all the same, is read as they mean it.

use serde_json::json;

use super::*;

fn read(text: &str) -> Result<Value, String> {
    parse(text).map(|it| Value::Object(it.fields))
}

#[test]
fn texts_of_yaml_are_read_as_yaml_reads_them() {
    for line in include_str!("cases.jsonl").lines() {
        let (text, expected): (String, Value) = serde_json::from_str(line).unwrap();
        let found = parse(&text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!((Value::Object(found.fields), found.notes), (expected, Vec::new()), "{text:?}");
    }
}

#[test]
fn front_matter_is_read_as_people_mean_it() {
    for (text, expected) in [
        ("", json!({})),
        ("a: 1\nb: true\nc: ~\nd: -1.5\n", json!({"a": 1, "b": true, "c": null, "d": -1.5})),
        ("a: one two # three\nb: x#y", json!({"a": "one two", "b": "x#y"})),
        ("a: one\n# said aside\n  two\nb: x", json!({"a": "one two", "b": "x"})),
        ("a: Use it: when <b>x: y</b>", json!({"a": "Use it: when <b>x: y</b>"})),
        ("a: an [unclosed bracket", json!({"a": "an [unclosed bracket"})),
        ("a: [unclosed\nb: 1", json!({"a": "[unclosed", "b": 1})),
        ("a: \"half\nb: 1", json!({"a": "\"half", "b": 1})),
        ("a: \"one\" and \"two\"", json!({"a": "\"one\" and \"two\""})),
        ("a: [draft] of a thing", json!({"a": "[draft] of a thing"})),
        ("a: {x} stands for y", json!({"a": "{x} stands for y"})),
        (r#"a: "say \"hi\"\n" # c"#, json!({"a": "say \"hi\"\n"})),
        (r#"a: "\ud83d\ude00""#, json!({"a": "😀"})),
        ("a: [Bash(git add, git log), Read]", json!({"a": ["Bash(git add, git log)", "Read"]})),
        ("a: [x(, y]", json!({"a": ["x(", "y"]})),
        ("a: \"one\ntwo\"\nb: 1", json!({"a": "one two", "b": 1})),
        ("a: [\n  x,\n]\nb: 1", json!({"a": ["x"], "b": 1})),
        ("tools: *", json!({"tools": "*"})),
        ("a:\n\t- x\n\t- y\nb: 1", json!({"a": ["x", "y"], "b": 1})),
        ("a:\n  - Bash(git: *)\n  - Read", json!({"a": ["Bash(git: *)", "Read"]})),
        ("a: one\n  user: two\n  three: four\nb: 1", json!({"a": "one user: two three: four", "b": 1})),
        ("a:\n  one [two\n  three", json!({"a": "one [two three"})),
        ("a: don't\nb: 'x' y", json!({"a": "don't", "b": "'x' y"})),
    ] {
        assert_eq!(read(text), Ok(expected), "{text:?}");
    }
}

#[test]
fn what_is_not_understood_is_noted_or_named() {
    for (text, note) in [
        ("a: 1\na: 2", "line 2: `a` stands there twice"),
        ("a: &all x", "`&all` is an anchor"),
        ("a: *all", "`*all` is an alias"),
        ("a: !!str 1", "`!!str` is a tag"),
        ("<<: x", "`<<` is not read"),
        ("a:\n  - b: 1\n    b: 2", "`b` stands there twice"),
    ] {
        let notes = parse(text).unwrap().notes;
        assert!(notes.iter().any(|it| it.contains(note)), "{text:?}: {notes:?}");
    }
    for (text, line) in [("a: 1\nnonsense", 2), ("- x", 1), ("name:reviewer", 1), ("a: 1\nb:2\n", 2)] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(&format!("line {line}")), "{text:?}: {error}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(read(&format!("a: {deep}")).unwrap()["a"], json!(deep));
    let nested: String = (0..100).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert!(parse(&nested).is_err());
    assert!(parse(&format!("a:\n  {}x", "- ".repeat(10_000))).is_err());
}

#[test]
fn name_that_stands_there_twice_counts_once_however_many_there_are() {
    for n_fields in [2, FEW, FEW + 1, 10 * FEW] {
        let mut text: String = (0..n_fields).map(|n| format!("k{n}: first\n")).collect();
        text += "k1: last\nk0: last\n";
        let FrontMatter { fields, notes } = parse(&text).unwrap();
        assert_eq!((fields.len(), notes.len()), (n_fields, 2), "{n_fields}");
        assert!(fields.keys().enumerate().all(|(n, key)| *key == format!("k{n}")), "the order stays");
        let n_last = fields.values().filter(|value| **value == json!("last")).count();
        assert_eq!((n_last, &fields["k0"], &fields["k1"]), (2, &json!("last"), &json!("last")));
    }
}

proptest::proptest! {
    /// What is cut short for speed gives what the plain definition gives.
    #[test]
    fn key_and_comment_end_where_their_definitions_say(text in "[a:# \t\"'\\[é]{0,24}") {
        let ends = [text.find(": "), text.find(":\t"), text.strip_suffix(':').map(str::len)];
        let at = ends.into_iter().flatten().min();
        let expected = at.map(|at| (text[..at].trim_end(), text[at + 1..].trim())).filter(|(key, _)| !key.is_empty());
        proptest::prop_assert_eq!(split_colon(&text), expected);
        // A comment that is not there changes nothing, wherever quotes stand.
        let plain = text.replace('#', "h");
        proptest::prop_assert_eq!(without_comment(&plain), plain.trim());
    }
}
