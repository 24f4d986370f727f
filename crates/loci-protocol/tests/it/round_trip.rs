//! Values of the protocol, written and read back; and how some of them look, which other programs rely on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loci_core::entry::Entry;
use loci_core::hooks::PermissionReply;
use loci_core::ids::SessionId;
use loci_core::message::{Block, Content};
use loci_core::permission::{Mode, Update};
use loci_core::stream::{Delta, Failure, FailureKind, StreamEvent};
use loci_protocol::event::{AgentRef, AssistantBlock, Event, ResumedHistory};
use loci_protocol::frame::{ClientFrame, Sequenced, ServerFrame};
use loci_protocol::prompt::Prompt;
use loci_protocol::question::{Question, QuestionKind};
use loci_protocol::request::{AnswerQuestion, Interrupt, PromptTiming, SendPrompt, SetModel, SetThinking};
use loci_protocol::{Answer, Ask, Done, ErrorKind, Request, RequestError, SessionView};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Writes a value and reads it back; returns what was written.
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> String {
    let text = serde_json::to_string(value).unwrap();
    let read: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(&read, value, "{text}");
    text
}

fn check_request(request: impl Into<Request>, expected: Value) {
    let request = request.into();
    let text = round_trip(&request);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    assert_eq!(expected.as_object().unwrap().keys().next().unwrap(), request.method());
}

#[test]
fn requests_are_objects_with_their_method_as_key() {
    check_request(Interrupt, json!({"turn/interrupt": null}));
    check_request(SetModel { model: Some("opus".into()) }, json!({"model/set": {"model": "opus"}}));
    let reply = PermissionReply::Deny { message: "no".into(), stops: true };
    check_request(
        AnswerQuestion { question: "q".into(), reply },
        json!({"question/answer": {"question": "q", "reply": {"behavior": "deny", "message": "no", "interrupt": true}}}),
    );
}

#[test]
fn null_and_absent_are_told_apart_where_they_mean_different_things() {
    check_request(SetThinking::default(), json!({"model/set_thinking": {}}));
    check_request(
        SetThinking { max_tokens: Some(None), display: None },
        json!({"model/set_thinking": {"max_tokens": null}}),
    );
    check_request(
        SetThinking { max_tokens: Some(Some(0)), display: Some(None) },
        json!({"model/set_thinking": {"max_tokens": 0, "display": null}}),
    );
}

#[test]
fn prompt_of_blocks_keeps_their_bytes_in_any_order_of_keys() {
    let block = r#"{"text":"a\u0041",  "type":"text"}"#;
    for line in [
        format!(r#"{{"id":1,"request":{{"prompt/send":{{"prompt":{{"content":[{block}]}}}}}}}}"#),
        format!(
            r#"{{"request":{{"prompt/send":{{"timing":"during_turn","prompt":{{"content":[{block}]}}}}}},"id":1}}"#
        ),
    ] {
        let frame: ClientFrame =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let Request::SendPrompt(SendPrompt {
            prompt: Prompt { content: Content::Blocks(blocks), .. }, ..
        }) = &frame.request
        else {
            panic!("{frame:?}")
        };
        assert_eq!(serde_json::to_string(&blocks[0]).unwrap(), block);
        round_trip(&frame);
    }
    let plain = SendPrompt { prompt: Prompt::text("hi"), timing: PromptTiming::AfterTurn };
    round_trip(&Request::from(plain));
}

#[test]
fn events_are_read_back_with_the_bytes_of_entries_and_blocks() {
    let line = r#"{"type":"user",  "uuid":"u1","x":1.50}"#;
    let history = ResumedHistory { entries: vec![Arc::new(Entry::parse(line).unwrap())], lost: Vec::new() };
    let text = round_trip(&Event::Resumed(history));
    assert!(text.contains(line), "{text}");
    let agent = AgentRef {
        id: "a1".into(),
        kind: "Explore".into(),
        parent: None,
        description: String::new(),
        depth: 1,
    };
    let block = StreamEvent::BlockDone { index: 0, block: Block::new_text("x") };
    for event in [
        Event::Requesting,
        Event::ModeChanged(Mode::Plan),
        Event::Stream {
            event: StreamEvent::Delta { index: 1, delta: Delta::Thinking("hm".into()) },
            first_after: Some(Duration::from_millis(7)),
        },
        Event::Agent { agent, event: Box::new(Event::Stream { event: block, first_after: None }) },
        Event::Retry {
            attempt: 1,
            max_retries: 10,
            delay: Duration::from_millis(1500),
            failure: Failure::new(FailureKind::Overloaded, "busy"),
        },
        Event::Assistant(AssistantBlock {
            entry: "e".into(),
            message: json!({"content": []}),
            request: None,
            error: Some("server_error".into()),
            is_aborted: false,
        }),
    ] {
        round_trip(&ServerFrame::Event(Sequenced { seq: 3, event: Arc::new(event) }));
    }
}

#[test]
fn question_suggestions_have_the_words_of_the_sdk() {
    let update = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    let question = Question {
        id: "q".into(),
        agent: None,
        tool: "Bash".into(),
        server: None,
        call: "toolu_1".into(),
        input: json!({"command": "ls"}),
        kind: QuestionKind::Permission,
        reason: "a rule asks".into(),
        reason_kind: "rule".into(),
        blocked_path: Some(PathBuf::from("/x")),
        links: Vec::new(),
        suggestions: vec![Update::parse(&update).unwrap()],
    };
    let text = round_trip(&Event::QuestionAsked(question));
    assert!(text.contains(&update.to_string()), "{text}");
}

#[test]
fn answer_opens_for_its_own_request_alone() {
    let answer = Interrupt::answer(Done {});
    round_trip(&answer);
    assert_eq!(Interrupt::open(answer.clone()), Ok(Done {}));
    assert_eq!(SetModel::open(answer.clone()), Err(answer));
}

#[test]
fn errors_keep_kind_and_hint() {
    let error = RequestError::new(ErrorKind::NotWriter, "`phone` writes").hint("Take the seat first");
    let text = round_trip(&ServerFrame::Error { id: Some(1), error });
    assert!(text.contains(r#""kind":"not_writer""#), "{text}");
}

#[test]
fn view_follows_events_and_is_read_back() {
    let session = SessionId::parse("01234567-89ab-4cde-8f01-23456789abcd").unwrap();
    let mut view = SessionView::new(session, "/p".into(), "m".into(), Mode::Default);
    view.apply(1, &Event::ModeChanged(Mode::Plan));
    view.apply(
        2,
        &Event::Stream {
            event: StreamEvent::BlockStarted { index: 0, kind: "text".into(), name: None },
            first_after: None,
        },
    );
    view.apply(
        3,
        &Event::Stream {
            event: StreamEvent::Delta { index: 0, delta: Delta::Text("half".into()) },
            first_after: None,
        },
    );
    assert_eq!((view.seq, view.mode, view.partial[0].text.as_str()), (3, Mode::Plan, "half"));
    let text = round_trip(&view);
    let answer: Answer = serde_json::from_str(&format!(r#"{{"session/view":{text}}}"#)).unwrap();
    assert_eq!(answer, Answer::LookAt(Box::new(view)));
}
