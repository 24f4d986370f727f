//! From one whole JSON answer (not streamed) to the same events a stream would have given.

use loci_core::ids::{MessageId, RequestId};
use loci_core::message::{Block, BlockKind};
use loci_core::stream::{Delta, Ended, Failure, Started, StreamEvent};
use serde::Deserialize;
use serde_json::Value;

use super::block::on_one_line;
use super::decode::read_usage;
use crate::failure;
use crate::lenient_json::whole_characters;

#[derive(Deserialize)]
struct MessageResponse {
    #[serde(default)]
    id: String,
    #[serde(default)]
    model: String,
    content: Vec<Block>,
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
    usage: Option<Value>,
    context_management: Option<Value>,
}

/// Reads a whole answer. There are no wire events: there was no stream.
pub(crate) fn read(body: &[u8], request_id: Option<RequestId>) -> Result<Vec<StreamEvent>, Failure> {
    let answer = std::str::from_utf8(body)
        .ok()
        .and_then(|body| serde_json::from_str(&on_one_line(&whole_characters(body))).ok());
    let Some(answer): Option<MessageResponse> = answer else {
        return Err(failure::not_an_answer(body, request_id));
    };
    let usage = read_usage(answer.usage);
    let mut events = vec![StreamEvent::Started(Started {
        message_id: MessageId::new(answer.id),
        model: answer.model,
        usage: usage.clone(),
        request_id,
        rate_limits: None,
    })];
    for (index, block) in answer.content.into_iter().enumerate() {
        push_block(&mut events, index, block);
    }
    events.push(StreamEvent::Ended(Ended {
        stop_reason: answer.stop_reason,
        stop_sequence: answer.stop_sequence,
        usage,
        context_management: answer.context_management.map(Box::new),
    }));
    Ok(events)
}

fn push_block(events: &mut Vec<StreamEvent>, index: usize, block: Block) {
    let value = block.to_value();
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let delta = match block.kind() {
        BlockKind::Text => text("text").map(Delta::Text),
        BlockKind::Thinking => text("thinking").map(Delta::Thinking),
        BlockKind::ToolUse => Some(Delta::InputJson(value["input"].to_string())),
        BlockKind::RedactedThinking
        | BlockKind::ToolResult
        | BlockKind::Image
        | BlockKind::Document
        | BlockKind::Other => None,
    };
    events.push(StreamEvent::BlockStarted {
        index,
        kind: text("type").unwrap_or_default(),
        name: text("name"),
    });
    events.extend(delta.map(|delta| StreamEvent::Delta { index, delta }));
    events.push(StreamEvent::BlockDone { index, block });
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_whole_answer_gives_the_events_of_a_stream() {
        let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m",
            "content":[{"type":"thinking","thinking":"Hm","signature":"s"},{"type":"text","text":"Hi"},
            {"type":"tool_use","id":"t","name":"Read","input":{"a":1.0}},{"type":"new","x":1}],
            "stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":4}}"#;
        let events = read(body.as_bytes(), Some("req_1".into())).unwrap();
        let shown: Vec<String> = events.iter().map(super::super::decode::tests::show).collect();
        expect![[r#"
            started msg_1 m in=3 out=4 req_1
            0 start thinking
            0 + thinking Hm
            0 = {"type":"thinking","thinking":"Hm","signature":"s"}
            1 start text
            1 + text Hi
            1 = {"type":"text","text":"Hi"}
            2 start tool_use Read
            2 + input {"a":1.0}
            2 = {"type":"tool_use","id":"t","name":"Read","input":{"a":1.0}}
            3 start new
            3 = {"type":"new","x":1}
            ended tool_use in=3 out=4"#]]
        .assert_eq(&shown.join("\n"));
    }

    #[test]
    fn whole_answer_of_another_shape_is_a_failure() {
        let message = |body: &str| read(body.as_bytes(), None).unwrap_err().message;
        expect![[r#"The answer is not JSON: `<html>…`"#]].assert_eq(&message("<html>…"));
        expect!["The model is overloaded: Overloaded"].assert_eq(&message(
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        ));
    }
}
