//! Requests and frames as people can read and compare them.

use loci_testkit::{Normaliser, Recorded};
use serde_json::Value;

/// Renders the conversation of a request, one block a line; the context that opens it is left out.
pub(crate) fn conversation(request: &Recorded, normaliser: &mut Normaliser) -> String {
    let mut lines = Vec::new();
    for message in request.messages() {
        let role = message["role"].as_str().unwrap();
        match &message["content"] {
            Value::String(text) => lines.push(format!("{role}: {text}")),
            blocks => lines.extend(
                blocks.as_array().unwrap().iter().filter_map(block).map(|it| format!("{role}: {it}")),
            ),
        }
    }
    normaliser.text(&(lines.join("\n") + "\n"))
}

/// Cuts long lines, and of those that begin alike, numbers aside, leaves the first, so that a long conversation can be read.
pub(crate) fn brief(text: &str) -> String {
    const MOST_CHARS: usize = 110;
    const SAME_CHARS: usize = 20;
    let cut = |line: &str| match line.chars().count() {
        n if n > MOST_CHARS => format!("{} (… {} more)", line.chars().take(60).collect::<String>(), n - 60),
        _ => line.to_owned(),
    };
    let beginning = |line: &str| -> String {
        line.chars().filter(|char| !char.is_ascii_digit()).take(SAME_CHARS).collect()
    };
    let mut lines: Vec<&str> = text.lines().collect();
    lines.dedup_by_key(|line| beginning(line));
    lines.into_iter().map(cut).collect::<Vec<_>>().join("\n") + "\n"
}

fn block(block: &Value) -> Option<String> {
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    Some(match text("type") {
        "text" if text("text").starts_with("<system-reminder>\nContext for this") => return None,
        "text" => text("text").to_owned(),
        "thinking" => format!("(thinks {}; signed {})", text("thinking"), text("signature")),
        "tool_use" => format!("{} {} {}", text("name"), block["input"], text("id")),
        "tool_result" => {
            let mark = if block["is_error"] == true { " error" } else { "" };
            let content = match &block["content"] {
                Value::String(text) => text.clone(),
                blocks => blocks.to_string(),
            };
            format!("{}{mark}: {content}", text("tool_use_id"))
        }
        _ => {
            let mut block = block.clone();
            block.as_object_mut().unwrap().remove("cache_control");
            block.to_string()
        }
    })
}

/// Renders frames one a line, with what differs from run to run replaced.
pub(crate) fn frames(frames: &[Value], normaliser: &mut Normaliser) -> String {
    let mut frames = frames.to_vec();
    frames.iter_mut().for_each(blank_times);
    normaliser.transcript(&frames)
}

/// Replaces durations by 0 and amounts that come from lists of prices by 1.
fn blank_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_time = key.ends_with("_ms") || key == "durationMs" || key == "pid";
                if is_time && value.is_number() {
                    *value = 0.into();
                } else {
                    blank_times(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(blank_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Renders what frames there were, in order, one a line: type, subtype and what is inside.
pub(crate) fn shape(frames: &[Value]) -> String {
    frames.iter().map(|frame| shape_of(frame) + "\n").collect()
}

fn shape_of(frame: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&frame["type"]);
    match kind.as_str() {
        "system" => system_shape(frame),
        "result" => {
            let marks = [
                text(&frame["subtype"]),
                if frame["is_error"] == true { "(error)".to_owned() } else { String::new() },
                frame["api_error_status"].as_u64().map(|it| it.to_string()).unwrap_or_default(),
                text(&frame["terminal_reason"]),
            ];
            let marks: Vec<String> = marks.into_iter().filter(|it| !it.is_empty()).collect();
            format!("result {}", marks.join(" "))
        }
        "assistant" | "user" => match &frame["message"]["content"] {
            Value::String(text) => format!("{kind} {text}"),
            blocks => {
                let blocks = blocks.as_array().unwrap().iter().filter_map(block);
                format!("{kind} {}", blocks.collect::<Vec<_>>().join(" | "))
            }
        },
        "stream_event" => {
            let event = &frame["event"];
            let delta = event["delta"]["type"].as_str().map(|it| format!(" {it}")).unwrap_or_default();
            format!("stream_event {}{delta}", text(&event["type"]))
        }
        "control_request" => format!("{kind} {}", text(&frame["request"]["subtype"])),
        "control_response" => {
            let response = &frame["response"];
            format!("{kind} {} {}", text(&response["request_id"]), text(&response["subtype"]))
        }
        _ => kind,
    }
}

fn system_shape(frame: &Value) -> String {
    let text = |key: &str| frame[key].as_str().unwrap_or_default();
    match text("subtype") {
        "api_retry" => format!(
            "system api_retry {}/{} status {} {}",
            frame["attempt"],
            frame["max_retries"],
            frame["error_status"],
            text("error")
        ),
        "model_fallback" => format!(
            "system model_fallback {} {} -> {}",
            text("trigger"),
            text("original_model"),
            text("fallback_model")
        ),
        "status" => format!("system status {}{}", text("status"), text("permissionMode")),
        subtype => format!("system {subtype}"),
    }
}
