//! Turns that do not go straight: broken answers, silence, plans, and what is said while somebody is asked.

use super::*;

fn broken(text: &str) -> EngineEvent {
    let failure = Failure::new(FailureKind::Cut, text);
    EngineEvent::Retry { attempt: 1, max_retries: 10, delay: Duration::from_secs(3), failure }
}

fn started(kind: &str) -> StreamEvent {
    StreamEvent::BlockStarted { index: 0, kind: kind.into(), name: None }
}

fn said(text: &str) -> StreamEvent {
    StreamEvent::BlockDone { index: 0, block: MessageBlock::new_text(text) }
}

#[test]
fn what_a_broken_answer_had_begun_is_said_once() {
    let mut it = Playing::new(60, 20);
    it.begin_turn();
    for _ in 0..2 {
        it.stream(started("thinking"));
        it.stream(StreamEvent::Delta { index: 0, delta: Delta::Thinking("Hm.".into()) });
        it.stream(started("text")).stream(delta("It begins and"));
        assert!(it.seen().contains("It begins and"), "{}", it.seen());
        it.news(broken("The connection broke"));
        assert!(!it.seen().contains("It begins") && !it.seen().contains("Thinking…\n"), "{}", it.seen());
    }
    it.stream(started("text")).stream(delta("It begins and ends.")).stream(said("It begins and ends."));
    it.end_turn();
    assert_eq!(it.seen().matches("It begins").count(), 1, "{}", it.seen());
    assert!(!it.seen().contains("Thought"), "{}", it.seen());
}

#[test]
fn answer_that_breaks_behind_final_paragraphs_is_told_to_begin_again() {
    let mut it = Playing::new(60, 20);
    it.begin_turn().stream(started("text")).stream(delta("One.\n\nTwo.\n\nThr"));
    it.news(broken("The connection broke"));
    assert!(it.seen().contains("The answer broke off here and is asked for again"), "{}", it.seen());
    let whole = "One.\n\nTwo.\n\nThree.";
    it.stream(started("text")).stream(delta(whole)).stream(said(whole));
    it.end_turn();
    assert!(it.seen().contains("Three."), "{}", it.seen());
}

#[test]
fn answer_of_a_model_that_gives_way_to_another_is_dropped_too() {
    let mut it = Playing::new(60, 20);
    it.begin_turn().stream(started("text")).stream(delta("Half of"));
    let failure = Failure::new(FailureKind::Overloaded, "overloaded");
    it.news(EngineEvent::Fallback { from: "a".into(), to: "b".into(), failure });
    assert!(!it.seen().contains("Half of") && it.seen().contains("b takes over"), "{}", it.seen());
}

#[test]
fn turn_without_a_word_is_told_and_one_that_only_called_is_not() {
    let silence = "ended without an answer";
    let mut it = Playing::new(90, 20);
    it.begin_turn().news(EngineEvent::Requesting).stream(started("text")).stream(delta(" \n"));
    it.end_turn();
    assert!(it.seen().contains(silence), "{}", it.seen());
    let mut it = Playing::new(90, 20);
    it.begin_turn().news(EngineEvent::Requesting).stream(started("text")).stream(delta("Yes."));
    it.stream(said("Yes.")).end_turn();
    assert!(!it.seen().contains(silence), "{}", it.seen());
    // Nobody asked the model: a command that answers by itself.
    let mut it = Playing::new(90, 20);
    it.begin_turn().end_turn();
    assert!(!it.seen().contains(silence), "{}", it.seen());
}

#[test]
fn failure_of_the_server_is_labelled_once() {
    let mut it = Playing::new(90, 20);
    let block = AssistantBlock {
        entry: "e".into(),
        message: json!({"content": [{"type": "text", "text": "API Error: The server failed (500)"}]}),
        request: None,
        error: Some("server_error".into()),
        is_aborted: false,
    };
    it.begin_turn().news(EngineEvent::Assistant(block));
    assert!(it.seen().contains("Error: The server failed (500)"), "{}", it.seen());
    assert!(!it.seen().contains("API Error"), "{}", it.seen());
}

#[test]
fn search_of_earlier_prompts_says_its_keys() {
    let mut it = Playing::new(90, 20);
    it.ctrl('r');
    assert!(it.seen().contains("Enter puts it into the prompt · Ctrl+R older"), "{}", it.seen());
    it.key(KeyCode::Esc);
    assert!(!it.seen().contains("Ctrl+R older"), "{}", it.seen());
}
