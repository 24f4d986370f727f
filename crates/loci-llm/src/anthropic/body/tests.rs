//! Bodies as data, and the two promises: a prefix of the next one, and every block as it came.

use std::sync::Arc;

use expect_test::{Expect, expect};
use loci_core::message::{Block, Role};
use loci_core::raw::RawJson;
use proptest::prelude::*;

use super::*;
use crate::clouds::HostIds;
use crate::request::{ClearResults, SystemBlock, ToolSpec};

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
const CACHE_MARK: &str = r#","cache_control":{"type":"ephemeral"}}"#;

fn block(json: &str) -> Block {
    serde_json::from_str(json).unwrap()
}

fn text_of(request: &Request, features: Features) -> String {
    let (addressee, overrides) = (&Addressee::Api(HostIds::Same), &BTreeMap::new());
    let wording = Wording { features, addressee, overrides, betas: &[], cache_mark: Some(CACHE_MARK) };
    let body = write(request, wording);
    serde_json::from_slice::<Value>(&body).unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

fn check(change: impl FnOnce(&mut Request), expected: Expect) {
    let mut request = Request::new("m", 100, vec![Message::user_text("Hi")]);
    change(&mut request);
    expected.assert_eq(&text_of(&request, Features::Experimental).replace(MARK, "*"));
}

#[test]
fn minimal_request_has_the_smallest_body() {
    check(
        |_| {},
        expect![[
            r#"{"model":"m","max_tokens":100,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"*}]}]}"#
        ]],
    );
}

/// Servers cache a request by its beginning: tools that come later must leave what was sent of the others alone.
#[test]
fn appended_tools_leave_the_bytes_of_the_earlier_ones_alone() {
    let body = |names: &[&str]| {
        let tools = names.iter().map(|name| {
            let json = RawJson::from_value(&json!({"name": name, "input_schema": {"b": 1, "a": 2}})).unwrap();
            ToolSpec { name: (*name).to_owned(), json, uses_references: false }
        });
        let request = Request { tools: tools.collect(), ..Request::new("m", 1, Vec::new()) };
        text_of(&request, Features::Experimental)
    };
    let (before, after) = (body(&["Read", "Bash"]), body(&["Read", "Bash", "mcp__late__tool"]));
    let end = before.find("],\"messages\"").unwrap();
    assert!(before[..end].contains(r#""tools":[{"name":"Read""#));
    assert!(after.starts_with(&before[..end]), "{after}");
}

#[test]
fn the_fullest_body_has_its_keys_in_order() {
    check(
        |r| {
            r.model = "claude-opus-4-8[1m]".to_owned();
            r.thinking = Thinking::Adaptive;
            r.effort = Some("high".to_owned());
            r.user_id = Some(r#"{"device_id":"d"}"#.to_owned());
            r.is_streaming = false;
            r.system = vec![
                SystemBlock { text: "You\n".to_owned(), is_cached: false },
                SystemBlock { text: "Rules".to_owned(), is_cached: true },
            ];
            let json = RawJson::from_value(&json!({"name": "Read", "input_schema": {}})).unwrap();
            r.tools = Arc::from([ToolSpec { name: "Read".to_owned(), json, uses_references: false }]);
        },
        expect![[
            r#"{"model":"claude-opus-4-8","max_tokens":100,"thinking":{"type":"adaptive"},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"output_config":{"effort":"high"},"metadata":{"user_id":"{\"device_id\":\"d\"}"},"stream":false,"system":[{"type":"text","text":"You\n"},{"type":"text","text":"Rules"*}],"tools":[{"name":"Read","input_schema":{}}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi"*}]}]}"#
        ]],
    );
}

/// What is done to reasoning comes first, as the server wants it.
#[test]
fn the_server_is_asked_to_clear_old_results() {
    let clear = || {
        let except: Arc<[String]> = Arc::from(["Task".to_owned()]);
        Some(ClearResults { above_tokens: 160_000, keep: 5, at_least: 18_000, except })
    };
    check(
        |r| r.clear_results = clear(),
        expect![[
            r#"{"model":"m","max_tokens":100,"context_management":{"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":160000},"keep":{"type":"tool_uses","value":5},"clear_at_least":{"type":"input_tokens","value":18000},"exclude_tools":["Task"]}]},"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"*}]}]}"#
        ]],
    );
    let mut request = Request::new("m", 5000, vec![Message::user_text("Hi")]);
    request.thinking = Thinking::Adaptive;
    request.clear_results = clear();
    let body: Value = serde_json::from_str(&text_of(&request, Features::Experimental)).unwrap();
    let kinds: Vec<&Value> =
        body["context_management"]["edits"].as_array().unwrap().iter().map(|edit| &edit["type"]).collect();
    assert_eq!(kinds, ["clear_thinking_20251015", "clear_tool_uses_20250919"]);
}

#[test]
fn stable_features_leave_beta_fields_out() {
    let mut request = Request::new("m", 5000, vec![Message::user_text("Hi")]);
    request.thinking = Thinking::Budget(4000);
    request.clear_results =
        Some(ClearResults { above_tokens: 1, keep: 1, at_least: 1, except: Arc::from([]) });
    request.effort = Some("high".to_owned());
    expect![[
        r#"{"model":"m","max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":4000},"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"*}]}]}"#
    ]]
    .assert_eq(&text_of(&request, Features::StableOnly).replace(MARK, "*"));
}

#[test]
fn extra_fields_are_laid_over_ours() {
    check(
        |r| {
            r.effort = Some("low".to_owned());
            r.system = vec![SystemBlock { text: "mine".to_owned(), is_cached: false }];
            let extra = json!({"top_k": 5, "max_tokens": 7, "output_config": {"format": 1}, "messages": [], "stream": 0, "system": "theirs"});
            r.extra_body = extra.as_object().cloned();
        },
        expect![[
            r#"{"model":"m","max_tokens":7,"output_config":{"effort":"low","format":1},"stream":true,"top_k":5,"system":"theirs","messages":[{"role":"user","content":[{"type":"text","text":"Hi"*}]}]}"#
        ]],
    );
}

/// Shows where the marks are: one line a message, a star after each marked block's type.
fn check_marks(messages: Vec<Message>, expected: Expect) {
    let request = Request::new("m", 1, messages);
    let body: Value = serde_json::from_str(&text_of(&request, Features::Experimental)).unwrap();
    let show_block = |block: &Value| {
        let star = if block.get("cache_control").is_some() { "*" } else { "" };
        format!("{}{star}", block["type"].as_str().unwrap())
    };
    let show = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter().map(show_block).collect::<Vec<_>>();
        format!("{}: {}", message["role"].as_str().unwrap(), blocks.join(" "))
    };
    expected.assert_eq(&body["messages"].as_array().unwrap().iter().map(show).collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_mark_is_at_the_end_of_the_last_user_message() {
    let thinking = || block(r#"{"type":"thinking","thinking":"x","signature":"s"}"#);
    let empty = || Block::new_text("");
    let user = |blocks: Vec<Block>| Message::new(Role::User, blocks);
    let assistant = |blocks: Vec<Block>| Message::new(Role::Assistant, blocks);
    let hi = || Block::new_text("Hi");
    check_marks(
        vec![user(vec![hi()]), assistant(vec![hi()]), user(vec![hi(), Block::new_image("image/png", "AA")])],
        expect![[r#"
            user: text
            assistant: text
            user: text image*"#]],
    );
    check_marks(
        vec![user(vec![hi()]), Message::new(Role::System, vec![hi()])],
        expect![[r#"
            user: text*
            system: text"#]],
    );
    check_marks(
        vec![
            user(vec![hi()]),
            assistant(vec![thinking(), hi(), thinking()]),
            user(vec![empty(), thinking()]),
        ],
        expect![[r#"
            user: text
            assistant: thinking text* thinking
            user: text thinking"#]],
    );
    check_marks(vec![user(vec![empty()])], expect!["user: text"]);
    check_marks(vec![assistant(vec![hi()])], expect!["assistant: text"]);
}

#[test]
fn foreign_marks_are_taken_off_and_never_doubled() {
    let marked = r#"{"type":"text","cache_control":{"type":"ephemeral","ttl":"1h"},"text":"a"}"#;
    let quoted = r#"{"type":"text","text":"\"cache_control\" is a key"}"#;
    let nested = r#"{"type":"tool_use","id":"t","name":"n","input":{"cache_control": 1}}"#;
    let messages = vec![
        Message::new(Role::User, vec![block(marked), block(quoted)]),
        Message::new(Role::Assistant, vec![block(nested)]),
        Message::new(Role::User, vec![block(marked)]),
    ];
    let body = text_of(&Request::new("m", 1, messages), Features::Experimental);
    assert_eq!(body.matches(MARK).count(), 1);
    assert!(body.contains(quoted) && body.contains(nested) && !body.contains("ttl"), "{body}");
}

#[test]
fn there_are_never_more_than_four_marks() {
    let mut request = Request::new("m", 1, vec![Message::user_text("Hi")]);
    let texts = ["a", "b", "", "c", "d", "e"];
    request.system = texts.map(|text| SystemBlock { text: text.to_owned(), is_cached: true }).to_vec();
    let body = text_of(&request, Features::Experimental);
    assert_eq!(body.matches(MARK).count(), 4);
    assert!(body.contains(r#""a"},"#) && !body.contains(r#""e"},"#), "the last ones are marked: {body}");
}

fn any_block() -> impl Strategy<Value = Block> {
    prop_oneof![
        "\\PC{0,20}".prop_map(|text| Block::new_text(&text)),
        "[a-z\"\\\\]{0,9}".prop_map(|text| Block::new_tool_result(&"t".into(), &json!(text), None)),
        Just(block(r#"{ "type" : "thinking", "thinking":"x\u00e9", "signature":"s" }"#)),
        Just(block(r#"{"type":"from_the_future","n":1.50, "a":[ ]} "#.trim())),
        Just(block(
            r#"{"n":{"cache_control":null},"type":"server_tool_use","input":{"x":10000000000000000000000}}"#
        )),
    ]
}

fn any_messages() -> impl Strategy<Value = Vec<Message>> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::System)];
    let message = (role, proptest::collection::vec(any_block(), 1..4))
        .prop_map(|(role, blocks)| Message::new(role, blocks));
    proptest::collection::vec(message, 1..6)
}

proptest! {
    #[test]
    fn each_body_begins_with_the_one_before(messages in any_messages()) {
        let body = |n: usize| {
            let request = Request::new("m", 1, messages[..n].to_vec());
            text_of(&request, Features::Experimental).replace(MARK, "")
        };
        for n in 1..messages.len() {
            let before = body(n);
            let shared = before.strip_suffix("]}").unwrap();
            prop_assert!(body(n + 1).starts_with(shared), "{} / {}", before, body(n + 1));
        }
    }

    #[test]
    fn every_block_goes_out_as_it_came(messages in any_messages()) {
        let body = text_of(&Request::new("m", 1, messages.clone()), Features::Experimental);
        prop_assert!(body.matches(MARK).count() <= 1);
        let body = body.replace(MARK, "");
        let mut rest = body.as_str();
        for block in messages.iter().flat_map(|message| message.content.iter()) {
            let json = block.json().as_str();
            let at = rest.find(json);
            prop_assert!(at.is_some(), "{} is not in {}", json, rest);
            rest = &rest[at.unwrap() + json.len()..];
        }
    }
}
