//! A content block while it grows.
//!
//! The block that began is kept as the text it came as; when it is complete, only the fields that deltas
//! changed are replaced in their places. So keys stay in the server's order, and fields and kinds of block that
//! we do not know pass through.
//!
//! Arguments of a tool call that are no JSON object must not lose the call: the model waits for an answer to
//! it. They are kept as `{"__unparsed": "<the text>"}` (see [`UNPARSED_INPUT`]), which the caller answers with
//! an error result and which can be sent back, since the API insists on an object.

use std::borrow::Cow;

use loci_core::message::Block;
use loci_core::raw::{RawJson, RawObject};
use loci_core::stream::Delta;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::lenient_json::{HalfJoiner, with_stand_ins, without_stand_ins};

/// The one key of a tool call's `input` when the model's arguments were not a JSON object.
pub const UNPARSED_INPUT: &str = "__unparsed";

/// A block that has begun and is not yet complete.
#[derive(Debug)]
pub(crate) struct OpenBlock {
    start: RawJson,
    text: Growing,
    thinking: Growing,
    signature: Option<String>,
    input: Growing,
    citations: Vec<Box<RawValue>>,
}

/// A text that grows.
#[derive(Debug, Default)]
struct Growing {
    text: String,
    halves: HalfJoiner,
}

impl Growing {
    /// Adds a piece; returns it with whole characters.
    fn add(&mut self, piece: String, has_halves: bool) -> String {
        let piece = self.halves.join(piece, has_halves);
        self.text.push_str(&piece);
        piece
    }

    /// Returns the whole.
    fn finish(&mut self) -> &str {
        self.text.extend(self.halves.rest());
        &self.text
    }
}

/// What the wire adds to a block; one of the fields, depending on the type.
#[derive(Deserialize)]
struct WireDelta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    #[serde(default)]
    partial_json: String,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
}

impl OpenBlock {
    /// Begins with the block as the server announced it.
    pub(crate) fn new(start: RawJson) -> Self {
        Self {
            start,
            text: Growing::default(),
            thinking: Growing::default(),
            signature: None,
            input: Growing::default(),
            citations: Vec::new(),
        }
    }

    /// Adds a delta; returns what the caller should hear of it. Unknown kinds of delta change nothing.
    pub(crate) fn add(&mut self, delta: &RawValue) -> Result<Option<Delta>, serde_json::Error> {
        match serde_json::from_str(delta.get()) {
            Ok(delta) => Ok(self.grow(delta, false)),
            Err(error) => match with_stand_ins(delta.get()) {
                Some(delta) => Ok(self.grow(serde_json::from_str(&delta)?, true)),
                None => Err(error),
            },
        }
    }

    fn grow(&mut self, delta: WireDelta<'_>, has_halves: bool) -> Option<Delta> {
        match delta.kind.as_ref() {
            "text_delta" => Some(Delta::Text(self.text.add(delta.text, has_halves))),
            "thinking_delta" => Some(Delta::Thinking(self.thinking.add(delta.thinking, has_halves))),
            "input_json_delta" => Some(Delta::InputJson(self.input.add(delta.partial_json, has_halves))),
            "signature_delta" => {
                self.signature = Some(delta.signature);
                None
            }
            "citations_delta" => {
                let whole = |citation: &RawValue| match has_halves {
                    true => RawValue::from_string(without_stand_ins(citation.get())).ok(),
                    false => Some(citation.to_owned()),
                };
                self.citations.extend(delta.citation.and_then(whole));
                None
            }
            _ => None,
        }
    }

    /// Completes the block.
    pub(crate) fn finish(&mut self) -> Result<Block, serde_json::Error> {
        let mut object = RawObject::parse(self.start.as_str())?;
        append_text(&mut object, "text", self.text.finish())?;
        append_text(&mut object, "thinking", self.thinking.finish())?;
        if let Some(signature) = &self.signature {
            object.set("signature", signature)?;
        }
        if !self.citations.is_empty() {
            let mut citations: Vec<Box<RawValue>> = object.read("citations").unwrap_or_default();
            citations.extend(self.citations.iter().cloned());
            object.set("citations", &citations)?;
        }
        let input = self.input.finish();
        if !input.trim().is_empty() {
            object.set("input", &input_object(input)?)?;
        } else if object.get("input").is_some_and(|input| !input.get().starts_with('{')) {
            object.set("input", &Map::new())?;
        }
        Block::from_json(serde_json::from_str(&object.to_json())?)
    }
}

fn append_text(object: &mut RawObject<'_>, key: &str, more: &str) -> Result<(), serde_json::Error> {
    if more.is_empty() {
        return Ok(());
    }
    let begun: String = object.read(key).unwrap_or_default();
    object.set(key, &(begun + more))
}

/// Returns arguments as they were written if they are an object that others can read, else wrapped.
pub(crate) fn input_object(text: &str) -> Result<Box<RawValue>, serde_json::Error> {
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(_) => RawValue::from_string(on_one_line(text.trim()).into_owned()),
        Err(_) => serde_json::value::to_raw_value(&json!({ UNPARSED_INPUT: text })),
    }
}

/// Replaces line ends by spaces, because kept JSON is written into files of one value a line.
///
/// Inside JSON strings line ends are always escaped, so only the space between tokens changes.
pub(crate) fn on_one_line(json: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_none() {
        return Cow::Borrowed(json);
    }
    Cow::Owned(json.replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(start: &str, deltas: &[Value], expected: Expect) {
        let mut block = OpenBlock::new(serde_json::from_str(start).unwrap());
        for delta in deltas {
            block.add(&serde_json::value::to_raw_value(delta).unwrap()).unwrap();
        }
        expected.assert_eq(block.finish().unwrap().json().as_str());
    }

    fn input(parts: &[&str]) -> Vec<Value> {
        parts.iter().map(|part| json!({"type": "input_json_delta", "partial_json": part})).collect()
    }

    #[test]
    fn text_and_thinking_grow() {
        check(
            r#"{"type":"text","text":""}"#,
            &[json!({"type":"text_delta","text":"a\n"}), json!({"type":"text_delta","text":"\u{1f980}"})],
            expect![[r#"{"type":"text","text":"a\n🦀"}"#]],
        );
        check(
            r#"{"type":"thinking","thinking":"Be","signature":"","future":1.50}"#,
            &[
                json!({"type":"thinking_delta","thinking":"gun"}),
                json!({"type":"signature_delta","signature":"sig=="}),
                json!({"type":"from_the_future","text":"no"}),
            ],
            expect![[r#"{"type":"thinking","thinking":"Begun","signature":"sig==","future":1.50}"#]],
        );
        check(
            r#"{"type":"redacted_thinking","data":"abc"}"#,
            &[],
            expect![[r#"{"type":"redacted_thinking","data":"abc"}"#]],
        );
    }

    #[test]
    fn character_that_is_cut_in_two_is_joined() {
        let add = |block: &mut OpenBlock, delta: &str| {
            block.add(&RawValue::from_string(delta.to_owned()).unwrap()).unwrap()
        };
        let mut block = OpenBlock::new(serde_json::from_str(r#"{"type":"text","text":""}"#).unwrap());
        let said = [
            add(&mut block, r#"{"type":"text_delta","text":"a\ud83d"}"#),
            add(&mut block, r#"{"type":"text_delta","text":"\ude00b"}"#),
            add(&mut block, r#"{"type":"text_delta","text":"\ude00c\ud83d"}"#),
        ];
        let expected = ["a", "\u{1f600}b", "\u{fffd}c"];
        assert_eq!(said, expected.map(|text| Some(Delta::Text(text.to_owned()))));
        expect![[r#"{"type":"text","text":"a😀b�c�"}"#]].assert_eq(block.finish().unwrap().json().as_str());
        let start = r#"{"type":"tool_use","id":"t","name":"Read","input":{}}"#;
        let mut block = OpenBlock::new(serde_json::from_str(start).unwrap());
        add(&mut block, r#"{"type":"input_json_delta","partial_json":"{\"a\":\"\ud83d"}"#);
        add(&mut block, r#"{"type":"input_json_delta","partial_json":"\ude00\"}"}"#);
        expect![[r#"{"type":"tool_use","id":"t","name":"Read","input":{"a":"😀"}}"#]]
            .assert_eq(block.finish().unwrap().json().as_str());
    }

    #[test]
    fn citations_are_collected() {
        let citation = |n: u32| json!({"type":"citations_delta","citation":{"n":n}});
        check(
            r#"{"type":"text","text":"x","citations":null}"#,
            &[citation(1), citation(2)],
            expect![[r#"{"type":"text","text":"x","citations":[{"n":1},{"n":2}]}"#]],
        );
        check(
            r#"{"citations":[],"type":"text","text":"x"}"#,
            &[citation(1)],
            expect![[r#"{"citations":[{"n":1}],"type":"text","text":"x"}"#]],
        );
    }

    #[test]
    fn arguments_keep_their_own_spelling() {
        let start = r#"{"type":"tool_use","id":"t","name":"Read","input":{}}"#;
        check(
            start,
            &input(&["", "{\"b\": 1.50", ",\"a\":12345678901234567890123}"]),
            expect![[
                r#"{"type":"tool_use","id":"t","name":"Read","input":{"b": 1.50,"a":12345678901234567890123}}"#
            ]],
        );
        check(start, &[], expect![[r#"{"type":"tool_use","id":"t","name":"Read","input":{}}"#]]);
        check(start, &input(&[""]), expect![[r#"{"type":"tool_use","id":"t","name":"Read","input":{}}"#]]);
        check(
            start,
            &input(&["{\n  \"a\": \"x\\ny\"\n}\n"]),
            expect![[r#"{"type":"tool_use","id":"t","name":"Read","input":{   "a": "x\ny" }}"#]],
        );
        check(
            r#"{"type":"tool_use","id":"t","name":"Read","input":""}"#,
            &[],
            expect![[r#"{"type":"tool_use","id":"t","name":"Read","input":{}}"#]],
        );
        check(
            r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{},"caller":{"type":"direct"}}"#,
            &input(&["{\"query\":\"x\"}"]),
            expect![[
                r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"x"},"caller":{"type":"direct"}}"#
            ]],
        );
    }

    #[test]
    fn arguments_that_are_no_object_are_kept_as_text() {
        let start = r#"{"type":"tool_use","id":"t","name":"Read","input":{}}"#;
        for text in ["{\"a\":", "[1]", "nonsense", "{\"a\":\"\\ud800\"}", &"{\"a\":".repeat(500)] {
            let mut block = OpenBlock::new(serde_json::from_str(start).unwrap());
            for delta in input(&[text]) {
                block.add(&serde_json::value::to_raw_value(&delta).unwrap()).unwrap();
            }
            let call = block.finish().unwrap().tool_use().unwrap();
            assert_eq!(call.input, json!({ UNPARSED_INPUT: text }));
        }
    }
}
