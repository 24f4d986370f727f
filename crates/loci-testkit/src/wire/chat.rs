//! A step as Chat Completions say it: chunks without names, and `[DONE]`.

use super::Ids;
use super::events::{Event, message, pieces};
use crate::recorded::Recorded;
use crate::script::Step;
use serde_json::{Value, json};

/// Returns the chunks of a streamed answer.
pub(crate) fn of_step(step: &Step, request: &Recorded, ids: &mut Ids) -> Vec<Event> {
    let message = message(step, request, ids);
    let chunk = |choices: Value| json!({"id": message["id"], "object": "chat.completion.chunk", "model": message["model"], "choices": choices});
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let mut events = vec![Event::chunk(&delta(json!({"role": "assistant", "content": null})))];
    let mut n_calls = 0;
    for block in message["content"].as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("text") => {
                let texts = pieces(&block["text"], step.chunk);
                events.extend(texts.into_iter().map(|it| Event::chunk(&delta(json!({"content": it})))));
            }
            Some("thinking") => {
                let texts = pieces(&block["thinking"], step.chunk);
                events.extend(
                    texts.into_iter().map(|it| Event::chunk(&delta(json!({"reasoning_content": it})))),
                );
            }
            Some("tool_use") => {
                events
                    .push(Event::chunk(&delta(json!({"tool_calls": [{"index": n_calls, "id": block["id"],
                    "type": "function", "function": {"name": block["name"], "arguments": ""}}]}))));
                let arguments = pieces(&arguments(block), step.chunk);
                events.extend(arguments.into_iter().map(|it| {
                    Event::chunk(&delta(
                        json!({"tool_calls": [{"index": n_calls, "function": {"arguments": it}}]}),
                    ))
                }));
                n_calls += 1;
            }
            _ => {}
        }
    }
    events.push(Event::chunk(&chunk(
        json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(&message)}]),
    )));
    let mut last = chunk(json!([]));
    last["usage"] = usage(step);
    events.push(Event::chunk(&last));
    events.push(Event::done());
    events
}

/// Returns the whole answer, as a request without `stream` gets it.
pub(crate) fn whole(step: &Step, request: &Recorded, ids: &mut Ids) -> Value {
    let message = message(step, request, ids);
    let blocks = || message["content"].as_array().into_iter().flatten();
    let text: String = blocks().filter_map(|block| block["text"].as_str()).collect();
    let calls: Vec<Value> = blocks()
        .filter(|block| block["type"] == "tool_use")
        .map(|block| {
            json!({"id": block["id"], "type": "function",
                "function": {"name": block["name"], "arguments": arguments(block)}})
        })
        .collect();
    json!({"id": message["id"], "object": "chat.completion", "model": message["model"], "usage": usage(step),
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "tool_calls": calls},
            "finish_reason": finish_reason(&message)}]})
}

/// A text stands for itself, so that a test can have arguments that are no JSON.
fn arguments(block: &Value) -> Value {
    match &block["input"] {
        Value::String(text) => text.clone().into(),
        input => input.to_string().into(),
    }
}

fn finish_reason(message: &Value) -> &'static str {
    match message["stop_reason"].as_str() {
        Some("tool_use") => "tool_calls",
        Some("max_tokens") => "length",
        Some("refusal") => "content_filter",
        _ => "stop",
    }
}

fn usage(step: &Step) -> Value {
    let usage = &step.usage;
    let prompt = usage.input_tokens + usage.cache_read_input_tokens;
    json!({"prompt_tokens": prompt, "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_input_tokens}})
}
