//! Session files as people can read and compare them.

use loci_testkit::Normaliser;
use serde_json::Value;
use std::collections::HashMap;

/// Renders a transcript, one entry a line: its number, its parent's number, its kind and what it says.
pub(crate) fn sketch(entries: &[Value], normaliser: &mut Normaliser) -> String {
    let number: HashMap<&str, usize> =
        entries.iter().enumerate().filter_map(|(n, it)| Some((it["uuid"].as_str()?, n))).collect();
    let mut line = |(n, entry): (usize, &Value)| {
        let parent =
            entry["parentUuid"].as_str().map(|it| number.get(it).map_or("?".into(), usize::to_string));
        match (entry["uuid"].as_str(), parent) {
            (Some(_), parent) => {
                let saying = normaliser.text(&saying(entry));
                format!("{n} <- {}: {}\n", parent.as_deref().unwrap_or("-"), saying)
            }
            (None, _) => {
                let leaf = entry["leafUuid"].as_str().and_then(|it| number.get(it));
                let leaf = leaf.map(|it| format!(" -> {it}")).unwrap_or_default();
                let operation = entry["operation"].as_str().map(|it| format!(" {it}")).unwrap_or_default();
                format!("{n} {}{operation}{leaf}\n", entry["type"].as_str().unwrap())
            }
        }
    };
    entries.iter().enumerate().map(&mut line).collect()
}

fn saying(entry: &Value) -> String {
    let kind = entry["type"].as_str().unwrap();
    if kind == "attachment" {
        return format!("attachment {}", entry["attachment"]);
    }
    let marks = ["isMeta", "isApiErrorMessage"].into_iter().filter(|key| entry[key] == true);
    let synthetic = (entry["message"]["model"] == "<synthetic>").then_some("synthetic");
    let marks: String = marks.chain(synthetic).map(|it| format!(" ({it})")).collect();
    let content = match &entry["message"]["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks.as_array().into_iter().flatten().map(block).collect::<Vec<_>>().join(" | "),
    };
    format!("{kind}{marks} {content}")
}

fn block(block: &Value) -> String {
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    let short = |id: &str| id.trim_start_matches("toolu_010").trim_start_matches('0').to_owned();
    match text("type") {
        "text" => text("text").to_owned(),
        "thinking" => format!("(thinks {})", text("thinking")),
        "tool_use" => format!("calls {} #{}", text("name"), short(text("id"))),
        "tool_result" => {
            let mark = if block["is_error"] == true { " (error)" } else { "" };
            let content =
                block["content"].as_str().map_or_else(|| block["content"].to_string(), str::to_owned);
            let first = content.lines().next().unwrap_or_default();
            format!("answers #{}{mark} {first}", short(text("tool_use_id")))
        }
        kind => kind.to_owned(),
    }
}

/// Asserts that every call in the transcript has exactly one result, and every result its call.
pub(crate) fn assert_calls_answered(entries: &[Value]) {
    let mut results: HashMap<&str, usize> = HashMap::new();
    for block in blocks(entries).filter(|it| it["type"] == "tool_result") {
        *results.entry(block["tool_use_id"].as_str().unwrap()).or_default() += 1;
    }
    let calls: Vec<&str> =
        blocks(entries).filter(|it| it["type"] == "tool_use").map(|it| it["id"].as_str().unwrap()).collect();
    for call in &calls {
        assert_eq!(results.remove(call), Some(1), "results of {call} in\n{}", plain(entries));
    }
    assert!(results.is_empty(), "results without calls: {results:?} in\n{}", plain(entries));
}

fn plain(entries: &[Value]) -> String {
    sketch(entries, &mut Normaliser::new())
}

fn blocks(entries: &[Value]) -> impl Iterator<Item = &Value> {
    entries.iter().filter_map(|it| it["message"]["content"].as_array()).flatten()
}
