//! A step as Responses say it: items that are added, grow and are done.

use super::Ids;
use super::events::{Event, message, pieces};
use crate::recorded::Recorded;
use crate::script::Step;
use serde_json::{Value, json};

/// Returns the events of a streamed answer.
pub(crate) fn of_step(step: &Step, request: &Recorded, ids: &mut Ids) -> Vec<Event> {
    let message = message(step, request, ids);
    let response = |status: &str| json!({"id": message["id"], "object": "response", "status": status});
    let mut events = vec![named("response.created", json!({"response": response("in_progress")}))];
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let item = item(block, index);
        let added = match block["type"].as_str() {
            Some("tool_use") => {
                json!({"type": "function_call", "call_id": block["id"], "name": block["name"],
                "arguments": ""})
            }
            Some("thinking") => json!({"type": "reasoning", "id": item["id"], "summary": []}),
            _ => json!({"type": "message", "role": "assistant", "content": []}),
        };
        events.push(named("response.output_item.added", json!({"output_index": index, "item": added})));
        let (kind, text) = match block["type"].as_str() {
            Some("tool_use") => ("response.function_call_arguments.delta", item["arguments"].clone()),
            Some("thinking") => ("response.reasoning_summary_text.delta", block["thinking"].clone()),
            _ => ("response.output_text.delta", block["text"].clone()),
        };
        let deltas = pieces(&text, step.chunk);
        events.extend(
            deltas.into_iter().map(|delta| named(kind, json!({"output_index": index, "delta": delta}))),
        );
        events.push(named("response.output_item.done", json!({"output_index": index, "item": item})));
    }
    let mut end = response("completed");
    end["usage"] = usage(step);
    if message["stop_reason"] == "max_tokens" {
        end["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    events.push(named("response.completed", json!({"response": end})));
    events
}

/// Returns the whole answer, as a request without `stream` gets it.
pub(crate) fn whole(step: &Step, request: &Recorded, ids: &mut Ids) -> Value {
    let message = message(step, request, ids);
    let blocks = message["content"].as_array().into_iter().flatten().enumerate();
    let items: Vec<Value> = blocks.map(|(index, block)| item(block, index)).collect();
    json!({"id": message["id"], "object": "response", "status": "completed", "output": items, "usage": usage(step)})
}

fn item(block: &Value, index: usize) -> Value {
    match block["type"].as_str() {
        Some("tool_use") => json!({"type": "function_call", "call_id": block["id"], "name": block["name"],
            "arguments": block["input"].to_string()}),
        Some("thinking") => json!({"type": "reasoning", "id": format!("rs_{index}"),
            "summary": [{"type": "summary_text", "text": block["thinking"]}],
            "encrypted_content": block["signature"]}),
        _ => json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": block["text"]}]}),
    }
}

fn named(kind: &'static str, mut data: Value) -> Event {
    data["type"] = kind.into();
    Event::new(kind, data)
}

fn usage(step: &Step) -> Value {
    let usage = &step.usage;
    json!({"input_tokens": usage.input_tokens + usage.cache_read_input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
        "output_tokens": usage.output_tokens})
}
