use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;

const BOOK: &str = "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 7,\n   \"id\": \"aa\",\n   \
                    \"metadata\": {\"x\": 1.50},\n   \"outputs\": [{\"big\": 123456789012345678901234567890}],\n   \
                    \"source\": [\n    \"a = 1\\n\",\n    \"b\"\n   ]\n  },\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"bb\",\n   \
                    \"metadata\": {},\n   \"source\": \"# T\"\n  }\n ],\n \"metadata\": {\"kernelspec\": {\"language\": \"julia\"}},\n \
                    \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";

fn check(text: &str, id: Option<&str>, asked: Change<'_>, expected: &Expect) -> Changed {
    let changed = change(text, id, asked).unwrap();
    expected.assert_eq(&changed.text);
    serde_json::from_str::<Value>(&changed.text).unwrap();
    changed
}

#[test]
fn a_cell_gets_another_source_and_forgets_what_it_printed() {
    let changed = check(
        BOOK,
        Some("aa"),
        Change::Replace { source: "c = 3\nd \"q\"", kind: None },
        &expect![[r##"
            {
             "cells": [
              {
               "cell_type": "code",
               "execution_count": null,
               "id": "aa",
               "metadata": {"x": 1.50},
               "outputs": [],
               "source": [
                "c = 3\n",
                "d \"q\""
               ]
              },
              {
               "cell_type": "markdown",
               "id": "bb",
               "metadata": {},
               "source": "# T"
              }
             ],
             "metadata": {"kernelspec": {"language": "julia"}},
             "nbformat": 4,
             "nbformat_minor": 5
            }
        "##]],
    );
    assert_eq!((changed.old_source.as_str(), changed.language.as_str()), ("a = 1\nb", "julia"));
}

#[test]
fn a_cell_is_put_behind_another_or_first() {
    let new = Change::Insert { source: "x", kind: "code", new_id: "n1" };
    let short = "{\n  \"cells\": [\n    {\n      \"id\": \"bb\"\n    }\n  ],\n  \"nbformat\": 4,\n  \"nbformat_minor\": 5\n}";
    check(
        short,
        Some("bb"),
        new,
        &expect![[r#"
        {
          "cells": [
            {
              "id": "bb"
            },
            {
              "cell_type": "code",
              "execution_count": null,
              "id": "n1",
              "metadata": {},
              "outputs": [],
              "source": [
                "x"
              ]
            }
          ],
          "nbformat": 4,
          "nbformat_minor": 5
        }"#]],
    );
    let first: Value = serde_json::from_str(&change(BOOK, None, new).unwrap().text).unwrap();
    assert_eq!(first["cells"][0]["id"], "n1");
    assert_eq!(first["cells"].as_array().unwrap().len(), 3);
}

#[test]
fn a_cell_goes_with_its_comma() {
    for id in ["aa", "bb"] {
        let changed = change(BOOK, Some(id), Change::Delete).unwrap();
        let value: Value = serde_json::from_str(&changed.text).unwrap();
        assert_eq!(value["cells"].as_array().unwrap().len(), 1);
    }
    let one = change(BOOK, Some("aa"), Change::Delete).unwrap().text;
    let none = change(&one, Some("bb"), Change::Delete).unwrap().text;
    assert!(none.contains("\"cells\": []"), "{none}");
    let again =
        change(&none, None, Change::Insert { source: "", kind: "markdown", new_id: "z" }).unwrap().text;
    let value: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(value["cells"], json!([{"cell_type": "markdown", "id": "z", "metadata": {}, "source": []}]));
}

#[test]
fn a_notebook_on_one_line_stays_on_one_line() {
    let text = r#"{"cells":[{"cell_type":"markdown","source":["a"]}],"nbformat":4,"nbformat_minor":2}"#;
    check(
        text,
        Some("cell-0"),
        Change::Replace { source: "b\nc", kind: Some("code") },
        &expect![[
            r#"{"cells":[{"cell_type":"code","source":["b\n", "c"], "outputs": [], "execution_count": null}],"nbformat":4,"nbformat_minor":2}"#
        ]],
    );
    let changed = check(
        text,
        Some("cell-0"),
        Change::Insert { source: "b", kind: "markdown", new_id: "n" },
        &expect![[
            r#"{"cells":[{"cell_type":"markdown","source":["a"]}, {"cell_type": "markdown", "metadata": {}, "source": ["b"]}],"nbformat":4,"nbformat_minor":2}"#
        ]],
    );
    assert_eq!(changed.cell_id.as_deref(), Some("cell-1"), "old formats have no ids");
}

#[test]
fn impossible_cell_changes_are_errors() {
    for (text, id, says) in [
        ("[]", Some("a"), "it is no notebook"),
        ("{\"cells\": {}}", Some("a"), "its cells are no list"),
        ("{\"cells\": [1]}", Some("a"), "one of its cells is none"),
        ("{\"cells\": [{\"source\": \"\"}]}", Some("a"), "it has no cell `a`; the first are: cell-0"),
        ("{\"cells\": [{\"cell_type\": \"raw\"}]}", Some("cell-0"), "the cell has no source"),
        (BOOK, Some("cell-0"), "it has no cell `cell-0`; the first are: aa, bb"),
        (BOOK, None, "`cell_id` is missing"),
    ] {
        let error = change(text, id, Change::Replace { source: "x", kind: None }).unwrap_err();
        assert!(error.starts_with(says), "{text}: {error}");
    }
}

proptest! {
    /// Whatever is written, it comes back, and nothing else changes.
    #[test]
    fn written_cell_source_is_read_back(source in "[ -~\n\u{e9}]{0,60}", cell in 0usize..2) {
        let id = ["aa", "bb"][cell];
        let changed = change(BOOK, Some(id), Change::Replace { source: &source, kind: None }).unwrap();
        let back = change(&changed.text, Some(id), Change::Delete).unwrap();
        prop_assert_eq!(&back.old_source, &source);
        let (before, after): (Value, Value) =
            (serde_json::from_str(BOOK).unwrap(), serde_json::from_str(&changed.text).unwrap());
        prop_assert_eq!(&before["cells"][1 - cell], &after["cells"][1 - cell]);
        prop_assert_eq!(&before["metadata"], &after["metadata"]);
    }
}
