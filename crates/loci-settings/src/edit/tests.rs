//! Edits as before and after, and for any text at all.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn check_set(before: &str, path: &str, value: Value, after: &str) {
    let path: Vec<&str> = path.split('/').collect();
    assert_eq!(set(before, &path, &value).as_deref(), Ok(after), "{before}");
}

fn check_unset(before: &str, path: &str, after: &str) {
    let path: Vec<&str> = path.split('/').collect();
    assert_eq!(unset(before, &path).as_deref(), Ok(after), "{before}");
}

#[test]
fn a_new_file_is_laid_out_as_others_are() {
    check_set("", "model", json!("opus"), "{\n  \"model\": \"opus\"\n}\n");
    check_set("{}", "a/b", json!([1]), "{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  }\n}");
    check_set("// mine\n", "a", json!(1), "// mine\n{\n  \"a\": 1\n}\n");
    check_set("{ // empty\n}\n", "a", json!(1), "{ // empty\n  \"a\": 1\n}\n");
}

#[test]
fn a_value_is_replaced_in_its_place() {
    let before = "{\n\t\"a\": 1, // one\n\t\"b\" : [ 1,2 ],\n\t\"c\": {\"x\": 1}\n}\n";
    check_set(before, "a", json!(2), &before.replace("1, // one", "2, // one"));
    check_set(before, "b", json!([3]), &before.replace("[ 1,2 ]", "[\n\t\t3\n\t]"));
    check_set(before, "c/x", json!(null), &before.replace("{\"x\": 1}", "{\"x\": null}"));
    check_set("{\"a\":1,\"a\":2}", "a", json!(3), "{\"a\":1,\"a\":3}");
}

#[test]
fn a_new_key_goes_behind_its_last_neighbour() {
    check_set("{\n    \"a\": 1\n}", "b", json!(2), "{\n    \"a\": 1,\n    \"b\": 2\n}");
    check_set("{\n  \"a\": 1, // why\n}", "b", json!(2), "{\n  \"a\": 1, // why\n  \"b\": 2\n}");
    check_set("{\n  \"a\": 1 // why\n}", "b", json!(2), "{\n  \"a\": 1, // why\n  \"b\": 2\n}");
    check_set("{\n  \"a\": 1 /* x */\n}", "b", json!(2), "{\n  \"a\": 1, /* x */\n  \"b\": 2\n}");
    check_set("{\"a\": 1}", "b", json!({"c": 2}), "{\"a\": 1, \"b\": {\"c\":2}}");
    check_set("{\"a\": 1,}", "b", json!(2), "{\"a\": 1, \"b\": 2}");
    check_set(
        "{\r\n  \"a\": 1\r\n}\r\n",
        "b",
        json!([2]),
        "{\r\n  \"a\": 1,\r\n  \"b\": [\r\n    2\r\n  ]\r\n}\r\n",
    );
    check_set(
        "{\n  \"p\": {\n    \"deny\": []\n  }\n}",
        "p/allow",
        json!(["Read"]),
        "{\n  \"p\": {\n    \"deny\": [],\n    \"allow\": [\n      \"Read\"\n    ]\n  }\n}",
    );
    check_set("{\n  \"p\": {}\n}", "p/x", json!(1), "{\n  \"p\": {\n    \"x\": 1\n  }\n}");
}

#[test]
fn a_removed_key_takes_its_line_with_it() {
    let before = "{\n  // first\n  \"a\": 1,\n  \"b\": 2, // two\n  \"c\": {\n    \"x\": 1\n  }\n}\n";
    check_unset(before, "a", &before.replace("  \"a\": 1,\n", ""));
    check_unset(before, "b", &before.replace("\"b\": 2, // two", "// two"));
    check_unset(before, "c", "{\n  // first\n  \"a\": 1,\n  \"b\": 2 // two\n}\n");
    check_unset(before, "c/x", &before.replace("    \"x\": 1\n", ""));
    check_unset(before, "nothing", before);
    check_unset("{\"a\": 1, \"b\": 2}", "a", "{\"b\": 2}");
    check_unset("{\"a\": 1, \"b\": 2}", "b", "{\"a\": 1}");
    check_unset("{\"a\": 1, \"b\": 2, \"a\": 3}", "a", "{\"b\": 2}");
    check_unset("{\"p\": {\"a\": 1}, \"p\": {\"b\": 2}}", "p/a", "{\"p\": {}, \"p\": {\"b\": 2}}");
}

#[test]
fn lists_grow_by_what_they_do_not_have() {
    let add = |text: &str, rule: &str| append(text, &["permissions", "allow"], &json!(rule)).unwrap();
    let first = add("{}\n", "Read");
    assert_eq!(first, "{\n  \"permissions\": {\n    \"allow\": [\n      \"Read\"\n    ]\n  }\n}\n");
    let second = add(&first, "Edit");
    assert_eq!(second, first.replace("\"Read\"\n", "\"Read\",\n      \"Edit\"\n"));
    assert_eq!(add(&second, "Read"), second);
    assert_eq!(
        add("{\"permissions\":{\"allow\":[\"A\"]}}", "B"),
        "{\"permissions\":{\"allow\":[\"A\", \"B\"]}}"
    );
}

#[test]
fn edit_refuses_broken_text_and_wrong_shapes() {
    let broken = set("{\n  \"a\": \n}", &["b"], &json!(1)).unwrap_err();
    assert_eq!(broken.to_string(), "Not valid JSON on line 3: a value is missing");
    let shape = set("{\"a\": 1}", &["a", "b"], &json!(1)).unwrap_err();
    assert_eq!(shape.to_string(), "Expected an object under `a`");
    let list = append("{\"a\": 1}", &["a"], &json!(1)).unwrap_err();
    assert_eq!(list.to_string(), "Expected a list under `a`");
}

/// Any JSON value, small.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\/*,\n{}é]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner).prop_map(Value::Object),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = serde_json::Map<String, Value>> {
    prop::collection::vec(("[a-d]", inner), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

/// Writes a value with spaces, line breaks and comments wherever they may stand.
fn written(value: &Value, gaps: &mut dyn FnMut() -> &'static str, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (idx, item) in items.iter().enumerate() {
                out.push_str(if idx > 0 { "," } else { "" });
                out.push_str(gaps());
                written(item, gaps, out);
                out.push_str(gaps());
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (idx, (key, item)) in map.iter().enumerate() {
                out.push_str(if idx > 0 { "," } else { "" });
                out.push_str(gaps());
                out.push_str(&format!("{}:{}", Value::from(key.as_str()), gaps()));
                written(item, gaps, out);
                out.push_str(gaps());
            }
            out.push_str(gaps());
            out.push('}');
        }
        leaf => out.push_str(&leaf.to_string()),
    }
}

const GAPS: &[&str] = &["", "", " ", "\n  ", "\r\n\t", "// note\n", "/* note */", " /* two\nlines */ "];

fn text() -> impl Strategy<Value = (Value, String)> {
    (object(value()), prop::collection::vec(0..GAPS.len(), 1..20)).prop_map(|(map, choices)| {
        let mut next = choices.iter().cycle();
        let mut out = String::new();
        let root = Value::Object(map);
        written(&root, &mut || next.next().map_or("", |idx| GAPS[*idx]), &mut out);
        (root, out)
    })
}

fn read(text: &str) -> Value {
    let document = jsonc::parse(text);
    assert_eq!(document.errors, [], "{text}");
    document.root.unwrap().to_value().unwrap()
}

proptest! {
    #[test]
    fn jsonc_reader_reads_generated_documents((root, text) in text()) {
        prop_assert_eq!(read(&text), root);
    }

    #[test]
    fn setting_a_key_changes_that_key_alone((root, text) in text(), key in "[a-f]", new in value()) {
        let after = set(&text, &[&key], &new).unwrap();
        let mut expected = root.clone();
        expected[&key] = new;
        prop_assert_eq!(&read(&after), &expected);
        match jsonc::parse(&text).root.unwrap().member(&key) {
            Some(old) => {
                let (start, end) = (old.value.start, old.value.end);
                prop_assert!(after.starts_with(&text[..start]) && after.ends_with(&text[end..]), "{}", after);
            }
            None => {
                let is_space = |byte: &u8| byte.is_ascii_whitespace() && root.as_object().unwrap().is_empty();
                let mut rest = after.bytes();
                let all_left = text.bytes().filter(|b| !is_space(b)).all(|byte| rest.any(|other| other == byte));
                prop_assert!(all_left, "{} -> {}", text, after);
            }
        }
    }

    #[test]
    fn removing_a_key_removes_that_key_alone((root, text) in text(), key in "[a-d]") {
        let after = unset(&text, &[&key]).unwrap();
        let mut expected = root;
        expected.as_object_mut().unwrap().shift_remove(&key);
        prop_assert_eq!(read(&after), expected);
    }

    #[test]
    fn adding_to_a_list_adds_that_alone((root, text) in text(), rule in "[A-Z]{3}") {
        let text = set(&text, &["list"], &json!(["X"])).unwrap();
        let after = append(&text, &["list"], &json!(rule)).unwrap();
        let mut expected = root;
        expected["list"] = json!(["X", rule]);
        prop_assert_eq!(read(&after), expected);
        prop_assert_eq!(comments(&text), comments(&after));
    }

    #[test]
    fn jsonc_reader_never_panics(text in "[\\[\\]{},:\"'a-c1 \n\\\\/*é-]{0,60}", key in "[a-c]") {
        let document = jsonc::parse(&text);
        if document.errors.is_empty() {
            set(&text, &[&key], &json!(1)).ok();
            unset(&text, &[&key]).ok();
        }
    }
}

fn comments(text: &str) -> usize {
    text.matches("// note").count() + text.matches("/* note */").count() + text.matches("/* two").count()
}
