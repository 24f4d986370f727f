use loci_core::tool::{ToolFactTable, ToolFacts};
use serde_json::json;

use super::*;

const WINDOW: Window = Window { tokens: 200_000, max_output: 20_000, percent: None };

/// Calls of tools with results of so many tokens, one round each, one a minute from noon on.
fn path(results: &[(&str, usize)]) -> Vec<Arc<Entry>> {
    let mut lines = vec![json!({"type": "user", "message": {"content": "go"}})];
    for (idx, (tool, tokens)) in results.iter().enumerate() {
        let id = format!("t{idx}");
        lines.push(json!({"type": "assistant", "timestamp": format!("2026-01-01T12:{idx:02}:00.000Z"), "message":
            {"id": format!("m{idx}"), "content": [{"type": "tool_use", "id": id, "name": tool, "input": {}}]}}));
        let words = "word".repeat(*tokens);
        lines.push(json!({"type": "user", "message": {"content":
            [{"type": "tool_result", "tool_use_id": id, "content": words}]}}));
    }
    lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect()
}

fn cleared(clearing: Option<&Clearing>) -> Vec<&str> {
    let replacements = clearing.map_or(&[][..], |clearing| &clearing.replacements);
    replacements.iter().map(|replacement| replacement.call.as_str()).collect()
}

/// The trigger is at 167,000 tokens: a sixth of the newest is kept, and an eighth must be gained.
#[test]
fn old_results_go_when_that_frees_enough() {
    for (results, expected) in [
        (&[("Read", 20_000); 6][..], &["t0", "t1", "t2", "t3", "t4"][..]),
        (&[("Read", 20_000); 3], &["t0", "t1"]),
        (&[("Read", 20_000); 2], &[]),
        (&[("Agent", 40_000), ("Mcp", 90), ("Read", 20_000), ("Read", 10)], &["t0"]),
        // What came last stays, whatever its size.
        (&[("Read", 10), ("Read", 150_000)], &[]),
    ] {
        let clearing = snip(&path(results), &Replaced::default(), &WINDOW);
        assert_eq!(cleared(clearing.as_ref()), expected, "{results:?}");
    }
}

/// What was cleared once is not cleared again, and what it freed is not counted again.
#[test]
fn a_result_is_cleared_once() {
    let path = path(&[("Read", 20_000); 6]);
    let clearing = snip(&path, &Replaced::default(), &WINDOW).unwrap();
    assert_eq!(clearing.freed, 5 * (20_004 - MARKER_TOKENS));
    let mut replaced = Replaced::default();
    replaced.add(&clearing, None);
    assert_eq!(snip(&path, &replaced, &WINDOW), None);
}

fn tools() -> ToolFactTable {
    ToolFactTable::from_iter([("Read", ToolFacts { is_clearable: true, ..ToolFacts::default() })])
}

#[test]
fn after_a_pause_the_newest_of_the_compactable_are_kept() {
    let mut results = vec![("Read", 9_000); 9];
    results.insert(1, ("Agent", 9_000));
    let path = path(&results);
    // The model spoke last nine minutes past noon.
    let noon = millis("2026-01-01T12:00:00.000Z").unwrap();
    let after = |minutes: i64| {
        clear_cold(&path, &Replaced::default(), &tools(), &WINDOW, noon + (9 + minutes) * 60_000)
            .map(|it| it.replacements.len())
    };
    assert_eq!((after(10), after(60), after(61)), (None, None, Some(3)));
    let clearing = clear_cold(&path, &Replaced::default(), &tools(), &WINDOW, noon + 100 * 60_000);
    assert_eq!(
        cleared(clearing.as_ref()),
        ["t0", "t2", "t3"],
        "another tool's result and the newest five stay"
    );
}

#[test]
fn a_pause_that_would_free_little_changes_nothing() {
    let noon = millis("2026-01-01T12:00:00.000Z").unwrap();
    let path = path(&[("Read", 500); 12]);
    assert_eq!(clear_cold(&path, &Replaced::default(), &tools(), &WINDOW, noon + 1_000 * 60_000), None);
}
