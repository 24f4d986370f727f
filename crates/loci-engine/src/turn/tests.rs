use std::collections::{HashMap, HashSet};
use std::time::Duration;

use expect_test::{Expect, expect};
use loci_core::stream::{Delta, Failure, FailureKind, Started};
use loci_core::usage::Usage;
use loci_llm::RetryPolicy;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn limits() -> Limits {
    Limits {
        models: vec!["main".to_owned(), "spare".to_owned()],
        max_turns: None,
        max_budget_usd: None,
        max_parallel: 3,
        retry: RetryRules { policy: RetryPolicy::default(), allows_one_piece: true },
        asks_before_end: false,
        max_objections: 0,
        shows_batches: false,
        mends_calls: false,
        structured: None,
    }
}

fn started() -> Event {
    Event::Stream(StreamEvent::Started(Started {
        message_id: "msg_1".into(),
        model: "main".to_owned(),
        usage: Usage::default(),
        request_id: None,
        rate_limits: None,
    }))
}

fn block(index: usize, block: Block) -> Event {
    Event::Stream(StreamEvent::BlockDone { index, block })
}

fn text(index: usize, text: &str) -> Event {
    block(index, Block::new_text(text))
}

fn call(index: usize, id: &str) -> Event {
    block(index, Block::new_tool_use(&id.into(), "Tool", &json!({})))
}

fn ended(reason: &str) -> Event {
    let ended = Ended {
        stop_reason: Some(reason.to_owned()),
        stop_sequence: None,
        usage: Usage::default(),
        context_management: None,
    };
    Event::Ended { ended, spent_usd: 0.5 }
}

fn failed(kind: FailureKind) -> Event {
    Event::Failed { failure: Failure::new(kind, "broken"), jitter: 0.0 }
}

fn ready(lanes: &[(&str, Concurrency)]) -> Event {
    let ready = |(id, concurrency): &(&str, Concurrency)| Preparation::Ready {
        call: (*id).into(),
        concurrency: *concurrency,
    };
    Event::Prepared(lanes.iter().map(ready).collect())
}

fn run(id: &str) -> Event {
    Event::Permission { call: id.into(), permission: CallPermission::Run }
}

fn refuse(id: &str) -> Event {
    Event::Permission { call: id.into(), permission: CallPermission::Refuse(ToolOutcome::refusal("no")) }
}

fn finished(id: &str) -> Event {
    Event::Finished { call: id.into(), outcome: ToolOutcome::text("ok", json!({})) }
}

/// Plays events and shows, a line each, what the machine wanted done.
fn check(limits: Limits, events: Vec<Event>, expected: Expect) {
    let mut turn = Turn::new(limits);
    let lines: Vec<String> = events
        .into_iter()
        .map(|event| turn.handle(event).iter().filter_map(show).collect::<Vec<_>>().join(", "))
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

fn show(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Record(Record::Response { blocks, ended, .. }) => {
            let kinds: Vec<String> = blocks
                .iter()
                .map(|block| match block.tool_use() {
                    Some(call) => call.id.to_string(),
                    None => format!("{:?}", block.kind()).to_lowercase(),
                })
                .collect();
            let cut = if ended.is_none() { " cut" } else { "" };
            format!("record[{}{cut}]", kinds.join(" "))
        }
        Effect::Record(Record::ToolResult { call, outcome }) => {
            format!("result({call}{})", if outcome.is_failure() { " failed" } else { "" })
        }
        Effect::Record(Record::Nudge(_)) => "nudge".to_owned(),
        Effect::ShowBatch => "show batch".to_owned(),
        Effect::Record(Record::Objection(_)) => "objection".to_owned(),
        Effect::Record(Record::ApiError(failure)) => format!("api-error({:?})", failure.kind),
        Effect::Record(Record::Incomplete(failure)) => format!("incomplete({:?})", failure.kind),
        Effect::Record(record) => format!("{record:?}"),
        Effect::Request(plan) => {
            let pieces = if plan.is_streaming { "" } else { " in one piece" };
            format!("ask {} {:?}{pieces}", plan.model, plan.output)
        }
        Effect::OpenPrompt => "open prompt".to_owned(),
        Effect::AskBeforeEnd { has_gone_on: false } => "ask before end".to_owned(),
        Effect::AskBeforeEnd { has_gone_on: true } => "ask again before end".to_owned(),
        Effect::Compact(request) => format!("compact {:?} keeping {:?}", request.trigger, request.keep),
        Effect::StopEdits(_) => "stop edits".to_owned(),
        Effect::Prepare(calls) => format!("prepare {}", calls.len()),
        Effect::CheckPermission(call) => format!("judge {call}"),
        Effect::Run(call) => format!("run {call}"),
        Effect::Wait(_) => "wait".to_owned(),
        Effect::CancelRequest => "cancel request".to_owned(),
        Effect::CancelCalls => "cancel calls".to_owned(),
        Effect::Tell(Notice::Retry { attempt, .. }) => format!("tell retry {attempt}"),
        Effect::Tell(Notice::Fallback { from, to, .. }) => format!("tell {from} -> {to}"),
        Effect::Tell(_) => return None,
        Effect::End(end) => format!("end {:?} after {}", end.outcome, end.round_trips),
    })
}

fn compacted(end: CompactionOutcome) -> Event {
    Event::Compacted { end, spent_usd: 0.5 }
}

/// Invariant 3 of `docs/design/compaction.md`.
#[test]
fn a_conversation_that_is_too_long_is_compacted_once_for_a_request() {
    check(
        limits(),
        vec![
            Event::Begin,
            Event::TooLong,
            compacted(CompactionOutcome::Done),
            started(),
            text(0, "Hi"),
            ended("end_turn"),
        ],
        expect![[r#"
            ask main Usual
            compact Auto keeping LastRound
            ask main Usual


            record[text], end Completed after 1"#]],
    );
    // What does not fit by our count may fit by the server's.
    let failure = Failure::new(FailureKind::Server, "broken");
    check(
        limits(),
        vec![Event::Begin, Event::TooLong, compacted(CompactionOutcome::Failed(failure))],
        expect![[r#"
            ask main Usual
            compact Auto keeping LastRound
            ask main Usual"#]],
    );
    check(
        limits(),
        vec![Event::Begin, Event::TooLong, compacted(CompactionOutcome::NothingToDo)],
        expect![[r#"
            ask main Usual
            compact Auto keeping LastRound
            ask main Usual"#]],
    );
    let mut turn = Turn::new(limits());
    let may_compact = |effects: Vec<Effect>| {
        effects.iter().find_map(|effect| match effect {
            Effect::Request(plan) => Some(plan.may_compact),
            _ => None,
        })
    };
    assert_eq!(may_compact(turn.handle(Event::Begin)), Some(true));
    turn.handle(Event::TooLong);
    assert_eq!(may_compact(turn.handle(compacted(CompactionOutcome::Done))), Some(false));
}

#[test]
fn a_refusal_for_length_is_mended_once() {
    let refused = || failed(FailureKind::PromptTooLong);
    check(
        limits(),
        vec![Event::Begin, refused(), compacted(CompactionOutcome::Done), refused()],
        expect![[r#"
        ask main Usual
        compact Auto keeping NewerHalf
        ask main Usual
        api-error(PromptTooLong), end ApiError(Failure { kind: PromptTooLong, status: None, message: "broken", hint: None, retry_after: None, request_id: None, rate_limits: None }) after 1"#]],
    );
    let failure = Failure::new(FailureKind::Server, "no summary");
    check(
        limits(),
        vec![Event::Begin, refused(), compacted(CompactionOutcome::Failed(failure))],
        expect![[r#"
        ask main Usual
        compact Auto keeping NewerHalf
        api-error(PromptTooLong), end ApiError(Failure { kind: PromptTooLong, status: None, message: "broken; compacting it failed too: no summary", hint: None, retry_after: None, request_id: None, rate_limits: None }) after 1"#]],
    );
    check(
        limits(),
        vec![Event::Begin, refused(), compacted(CompactionOutcome::NothingToDo)],
        expect![[r#"
        ask main Usual
        compact Auto keeping NewerHalf
        api-error(PromptTooLong), end ApiError(Failure { kind: PromptTooLong, status: None, message: "broken", hint: None, retry_after: None, request_id: None, rate_limits: None }) after 1"#]],
    );
}

/// Blocked before the window is full, the request goes out as it is; after a refusal, that refusal is told.
/// What a summary cost counts like everything else.
/// Invariant 23 of `docs/design/compaction.md`.
#[test]
fn a_summary_that_takes_the_last_of_the_budget_ends_the_turn() {
    let limits = || Limits { max_budget_usd: Some(0.5), ..limits() };
    check(
        limits(),
        vec![Event::Begin, Event::TooLong, compacted(CompactionOutcome::Done)],
        expect![[r#"
            ask main Usual
            compact Auto keeping LastRound
            end MaxBudget(0.5) after 1"#]],
    );
    let wish = Event::Compact { focus: None };
    check(
        limits(),
        vec![wish, compacted(CompactionOutcome::NothingToDo)],
        expect![[r#"
            compact Manual keeping LastRound
            end Completed after 0"#]],
    );
}

/// Pictures are small in tokens: what is too large in bytes is compacted all the same, once.
/// Invariant 31 of `docs/design/compaction.md`.
#[test]
fn what_has_too_many_bytes_is_compacted_once() {
    check(
        limits(),
        vec![
            Event::Begin,
            failed(FailureKind::TooLarge),
            compacted(CompactionOutcome::Done),
            failed(FailureKind::TooLarge),
        ],
        expect![[r#"
            ask main Usual
            compact Auto keeping LastRound
            ask main Usual
            api-error(TooLarge), end ApiError(Failure { kind: TooLarge, status: None, message: "broken", hint: None, retry_after: None, request_id: None, rate_limits: None }) after 1"#]],
    );
}

/// A server that does not edit conversations is asked the same without, and a second no is told.
/// Invariant 24 of `docs/design/compaction.md`.
#[test]
fn a_request_is_repeated_without_edits_once() {
    let refused = || failed(FailureKind::EditingRefused);
    check(
        limits(),
        vec![Event::Begin, refused(), refused()],
        expect![[r#"
            ask main Usual
            stop edits, ask main Usual
            api-error(EditingRefused), end ApiError(Failure { kind: EditingRefused, status: None, message: "broken", hint: None, retry_after: None, request_id: None, rate_limits: None }) after 1"#]],
    );
}

/// After a fallback the conversation is to fit the model that is asked then.
#[test]
fn a_compaction_is_for_the_model_that_is_asked() {
    let mut turn = Turn::new(limits());
    turn.handle(Event::Begin);
    for _ in 0..3 {
        turn.handle(failed(FailureKind::Overloaded));
        turn.handle(Event::WaitOver);
    }
    let models = turn.handle(Event::TooLong).into_iter().filter_map(|effect| match effect {
        Effect::Compact(wish) => Some(wish.model),
        _ => None,
    });
    assert_eq!(models.collect::<Vec<_>>(), ["spare"]);
}

/// Invariant 15 of `docs/design/compaction.md`.
#[test]
fn a_blocked_compaction_leaves_things_as_they_are() {
    let blocked = || compacted(CompactionOutcome::Blocked("not now".to_owned()));
    check(
        limits(),
        vec![Event::Begin, Event::TooLong, blocked()],
        expect![[r#"
            ask main Usual
            compact Auto keeping LastRound
            ask main Usual"#]],
    );
    check(
        limits(),
        vec![Event::Begin, failed(FailureKind::PromptTooLong), blocked()],
        expect![[r#"
        ask main Usual
        compact Auto keeping NewerHalf
        api-error(PromptTooLong), end ApiError(Failure { kind: PromptTooLong, status: None, message: "broken", hint: None, retry_after: None, request_id: None, rate_limits: None }) after 1"#]],
    );
    check(
        limits(),
        vec![Event::Compact { focus: None }, blocked()],
        expect![[r#"
        compact Manual keeping LastRound
        end Completed after 0"#]],
    );
}

/// Invariant 4 of `docs/design/compaction.md`.
#[test]
fn a_compaction_at_the_users_wish_is_all_there_is_to_do() {
    let wish = || Event::Compact { focus: None };
    check(
        limits(),
        vec![wish(), compacted(CompactionOutcome::Done)],
        expect![[r#"
        compact Manual keeping LastRound
        end Completed after 0"#]],
    );
    check(
        limits(),
        vec![wish(), compacted(CompactionOutcome::NothingToDo)],
        expect![[r#"
        compact Manual keeping LastRound
        end Completed after 0"#]],
    );
    check(
        limits(),
        vec![wish(), Event::Interrupt, compacted(CompactionOutcome::Done)],
        expect![[r#"
        compact Manual keeping LastRound
        cancel request, end Interrupted(Streaming) after 0
    "#]],
    );
    check(
        limits(),
        vec![Event::Begin, Event::TooLong, Event::Interrupt],
        expect![[r#"
        ask main Usual
        compact Auto keeping LastRound
        cancel request, Interrupted(Streaming), end Interrupted(Streaming) after 1"#]],
    );
}

#[test]
fn an_answer_ends_the_turn() {
    check(
        limits(),
        vec![Event::Begin, started(), text(0, "Hi"), ended("end_turn")],
        expect![[r#"
            ask main Usual


            record[text], end Completed after 1"#]],
    );
}

#[test]
fn shared_calls_go_together_and_others_alone() {
    use Concurrency::{Exclusive, Shared};
    check(
        limits(),
        vec![
            Event::Begin,
            started(),
            call(0, "a"),
            call(1, "b"),
            call(2, "w"),
            call(3, "c"),
            ended("tool_use"),
            ready(&[("a", Shared), ("b", Shared), ("w", Exclusive), ("c", Shared)]),
            run("b"),
            run("a"),
            finished("b"),
            finished("a"),
            refuse("w"),
            run("c"),
            finished("c"),
        ],
        expect![[r#"
            ask main Usual





            record[a b w c], prepare 4
            judge a, judge b
            run b
            run a
            result(b)
            result(a), judge w
            result(w failed), judge c
            run c
            result(c), ask main Usual"#]],
    );
}

#[test]
fn no_more_calls_at_once_than_allowed() {
    let ids = ["a", "b", "c", "d"];
    let mut events = vec![Event::Begin, started()];
    events.extend(ids.iter().enumerate().map(|(idx, id)| call(idx, id)));
    events.extend([
        ended("tool_use"),
        ready(&ids.map(|id| (id, Concurrency::Shared))),
        run("b"),
        finished("b"),
    ]);
    check(
        limits(),
        events,
        expect![[r#"
            ask main Usual





            record[a b c d], prepare 4
            judge a, judge b, judge c
            run b
            result(b), judge d"#]],
    );
}

#[test]
fn refused_preparations_are_results() {
    check(
        limits(),
        vec![
            Event::Begin,
            started(),
            call(0, "a"),
            ended("tool_use"),
            Event::Prepared(vec![Preparation::Refused {
                call: "a".into(),
                outcome: ToolOutcome::refusal("unknown"),
            }]),
        ],
        expect![[r#"
            ask main Usual


            record[a], prepare 1
            result(a failed), ask main Usual"#]],
    );
}

#[test]
fn failures_before_any_block_are_repeated_from_scratch() {
    check(
        limits(),
        vec![
            Event::Begin,
            failed(FailureKind::RateLimited),
            Event::WaitOver,
            started(),
            failed(FailureKind::Cut),
            Event::WaitOver,
            started(),
            failed(FailureKind::Stalled),
            Event::WaitOver,
            started(),
            text(0, "Hi"),
            ended("end_turn"),
        ],
        expect![[r#"
            ask main Usual
            tell retry 1, wait
            ask main Usual

            tell retry 2, wait
            ask main Usual

            tell retry 3, wait
            ask main Usual in one piece


            record[text], end Completed after 1"#]],
    );
}

#[test]
fn overload_takes_the_fallback_model_then_gives_up() {
    let overload = || failed(FailureKind::Overloaded);
    let mut patient = limits();
    patient.retry.policy.max_retries = 1;
    check(
        patient,
        vec![Event::Begin, overload(), Event::WaitOver, overload(), overload(), Event::WaitOver, overload()],
        expect![[r#"
            ask main Usual
            tell retry 1, wait
            ask main Usual
            tell main -> spare, ask spare Usual
            tell retry 1, wait
            ask spare Usual
            api-error(Overloaded), end ApiError(Failure { kind: Overloaded, status: None, message: "broken", hint: None, retry_after: None, request_id: None, rate_limits: None }) after 1"#]],
    );
}

#[test]
fn our_own_fault_is_not_repeated() {
    for kind in [FailureKind::Unauthenticated, FailureKind::InvalidRequest, FailureKind::Forbidden] {
        let mut turn = Turn::new(limits());
        turn.handle(Event::Begin);
        let effects = turn.handle(failed(kind));
        assert!(matches!(effects[..], [Effect::Record(Record::ApiError(_)), Effect::End(_)]), "{kind:?}");
    }
}

#[test]
fn a_break_after_a_complete_call_runs_it_once_and_goes_on() {
    check(
        limits(),
        vec![
            Event::Begin,
            started(),
            text(0, "Looking."),
            call(1, "a"),
            failed(FailureKind::Cut),
            ready(&[("a", Concurrency::Exclusive)]),
            run("a"),
            finished("a"),
            finished("a"),
        ],
        expect![[r#"
            ask main Usual



            record[text a cut], incomplete(Cut), prepare 1
            judge a
            run a
            result(a), ask main Usual
        "#]],
    );
}

#[test]
fn a_break_after_complete_text_keeps_it_and_asks_to_go_on() {
    check(
        limits(),
        vec![Event::Begin, started(), text(0, "Half"), failed(FailureKind::Cut)],
        expect![[r#"
            ask main Usual


            record[text cut], incomplete(Cut), nudge, tell retry 1, wait"#]],
    );
}

#[test]
fn the_output_limit_is_raised_then_the_model_goes_on_a_few_times() {
    let cut = || [started(), text(0, "part"), ended("max_tokens")];
    let events = std::iter::once(Event::Begin).chain((0..4).flat_map(|_| cut())).collect();
    check(
        limits(),
        events,
        expect![[r#"
            ask main Usual


            record[text], nudge, ask main Raised


            record[text], nudge, ask main Raised


            record[text], nudge, ask main Raised


            record[text], api-error(InvalidRequest), end ApiError(Failure { kind: InvalidRequest, status: None, message: "The answer reached the output limit again and again", hint: Some("Ask for the work in smaller steps."), retry_after: None, request_id: None, rate_limits: None }) after 4"#]],
    );
}

#[test]
fn a_call_cut_by_the_output_limit_is_never_run() {
    check(
        limits(),
        vec![Event::Begin, started(), text(0, "x"), call(1, "a"), ended("max_tokens")],
        expect![[r#"
            ask main Usual



            record[text], nudge, ask main Raised"#]],
    );
}

#[test]
fn too_much_output_for_the_window_is_halved() {
    check(
        limits(),
        vec![Event::Begin, failed(FailureKind::OutputTooLong), failed(FailureKind::OutputTooLong)],
        expect![[r#"
            ask main Usual
            ask main Halved(1)
            ask main Halved(2)"#]],
    );
    assert_eq!(OutputLimit::Halved(1).tokens(32_000, 64_000), 16_000);
    assert_eq!(OutputLimit::Halved(9).tokens(32_000, 64_000), 3_000);
    assert_eq!(OutputLimit::Raised.tokens(32_000, 64_000), 64_000);
}

#[test]
fn limits_stop_with_their_reason() {
    let mut short = limits();
    short.max_turns = Some(1);
    check(
        short,
        vec![
            Event::Begin,
            started(),
            call(0, "a"),
            ended("tool_use"),
            ready(&[("a", Concurrency::Exclusive)]),
            run("a"),
            finished("a"),
        ],
        expect![[r#"
            ask main Usual


            record[a], prepare 1
            judge a
            run a
            result(a), MaxTurns { limit: 1 }, end MaxTurns(1) after 2"#]],
    );
    let mut poor = limits();
    poor.max_budget_usd = Some(0.5);
    check(
        poor,
        vec![Event::Begin, started(), call(0, "a"), ended("tool_use")],
        expect![[r#"
            ask main Usual


            record[a], result(a failed), end MaxBudget(0.5) after 1"#]],
    );
}

#[test]
fn an_interrupt_while_streaming_keeps_what_was_said() {
    let partial = Event::Stream(StreamEvent::Delta { index: 2, delta: Delta::Text("and then".to_owned()) });
    check(
        limits(),
        vec![
            Event::Begin,
            started(),
            text(0, "First"),
            call(1, "a"),
            partial,
            Event::Interrupt,
            finished("a"),
        ],
        expect![[r#"
            ask main Usual




            cancel request, record[text a cut], result(a failed), PartialText("and then"), Interrupted(Streaming), end Interrupted(Streaming) after 1
        "#]],
    );
}

#[test]
fn an_interrupt_while_tools_run_waits_for_them() {
    let events = || {
        vec![
            Event::Begin,
            started(),
            call(0, "a"),
            call(1, "b"),
            ended("tool_use"),
            ready(&[("a", Concurrency::Exclusive), ("b", Concurrency::Exclusive)]),
            run("a"),
            Event::Interrupt,
        ]
    };
    let mut patient = events();
    patient.push(finished("a"));
    check(
        limits(),
        patient,
        expect![[r#"
            ask main Usual



            record[a b], prepare 2
            judge a
            run a
            cancel calls, result(b failed)
            result(a), Interrupted(Tools), end Interrupted(Tools) after 1"#]],
    );
    let mut impatient = events();
    impatient.push(Event::Abandon);
    check(
        limits(),
        impatient,
        expect![[r#"
            ask main Usual



            record[a b], prepare 2
            judge a
            run a
            cancel calls, result(b failed)
            cancel calls, result(a failed), Interrupted(Tools), end Interrupted(Tools) after 1"#]],
    );
}

#[test]
fn an_interrupt_while_waiting_ends_at_once() {
    check(
        limits(),
        vec![Event::Begin, failed(FailureKind::Connect), Event::Interrupt, Event::WaitOver],
        expect![[r#"
            ask main Usual
            tell retry 1, wait
            Interrupted(Streaming), end Interrupted(Streaming) after 1
        "#]],
    );
}

#[test]
fn waits_grow_and_honour_the_server() {
    let mut turn = Turn::new(limits());
    turn.handle(Event::Begin);
    let mut failure = Failure::new(FailureKind::RateLimited, "slow down");
    failure.retry_after = Some(Duration::from_secs(7));
    let effects = turn.handle(Event::Failed { failure, jitter: 0.0 });
    assert!(matches!(effects[1], Effect::Wait(wait) if wait == Duration::from_secs(7)), "{effects:?}");
}

#[test]
fn prompt_is_recorded_only_after_those_who_have_a_say_let_it_pass() {
    check(
        limits(),
        vec![Event::Prompt, Event::Begin],
        expect![[r#"
        open prompt
        ask main Usual"#]],
    );
    let blocked = Event::PromptBlocked { reason: "no secrets".to_owned() };
    check(
        limits(),
        vec![Event::Prompt, blocked, Event::Begin],
        expect![[r#"
        open prompt
        end Blocked("no secrets") after 0
    "#]],
    );
}

#[test]
fn interrupt_while_a_prompt_is_opened_records_nothing() {
    for stop in [Event::Interrupt, Event::Abandon] {
        check(
            limits(),
            vec![Event::Prompt, stop, Event::Begin],
            expect![[r#"
            open prompt
            cancel request, end Interrupted(Streaming) after 0
        "#]],
        );
    }
}

#[test]
fn turn_goes_on_with_an_objection_and_ends_without_one() {
    let object = |text: &str| Event::MayEnd {
        objection: Some(Objection { text: text.to_owned(), attachments: Vec::new() }),
    };
    let answer = || [started(), text(0, "done"), ended("end_turn")];
    let events = [Event::Begin].into_iter().chain(answer()).chain([object("test it")]).chain(answer());
    let events = events.chain([Event::MayEnd { objection: None }, object("too late")]).collect();
    check(
        Limits { asks_before_end: true, ..limits() },
        events,
        expect![[r#"
        ask main Usual


        record[text], ask before end
        objection, ask main Usual


        record[text], ask again before end
        end Completed after 2
    "#]],
    );
}

#[test]
fn interrupt_while_hooks_hold_the_end_keeps_the_answer() {
    let events = vec![Event::Begin, started(), text(0, "done"), ended("end_turn"), Event::Interrupt];
    check(
        Limits { asks_before_end: true, ..limits() },
        events,
        expect![[r#"
        ask main Usual


        record[text], ask before end
        cancel request, Interrupted(Streaming), end Interrupted(Streaming) after 1"#]],
    );
}

/// A driver that feeds back random but plausible events, and checks the invariants of the module.
#[derive(Default)]
struct World {
    recorded: Vec<ToolUseId>,
    results: HashMap<ToolUseId, u32>,
    judged: HashSet<ToolUseId>,
    runs: HashSet<ToolUseId>,
}

impl World {
    fn perform(&mut self, effect: &Effect) {
        match effect {
            Effect::Record(Record::Response { blocks, .. }) => {
                self.recorded.extend(blocks.iter().filter_map(|block| block.tool_use().map(|call| call.id)));
            }
            Effect::Record(Record::ToolResult { call, .. }) => {
                *self.results.entry(call.clone()).or_default() += 1;
            }
            Effect::CheckPermission(call) => assert!(self.judged.insert(call.clone()), "{call} judged twice"),
            Effect::Run(call) => {
                assert!(self.judged.contains(call), "{call} ran unjudged");
                assert!(self.runs.insert(call.clone()), "{call} ran twice");
            }
            Effect::Request(_) | Effect::End(_) => self.assert_all_answered(),
            _ => {}
        }
    }

    fn assert_all_answered(&self) {
        for call in &self.recorded {
            assert_eq!(self.results.get(call), Some(&1), "{call} must have exactly one result");
        }
        assert_eq!(self.results.len(), self.recorded.len(), "a result without a call");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_call_has_one_result_whatever_happens(choices in prop::collection::vec((0u8..14, 0u8..6), 1..80)) {
        let mut turn = Turn::new(limits());
        let mut world = World::default();
        let mut next_id = 0u32;
        let mut index = 0;
        let mut asked: Vec<ToolUse> = Vec::new();
        for effect in turn.handle(Event::Begin) {
            world.perform(&effect);
        }
        for (choice, pick) in choices {
            let some_call = || asked.get(pick as usize % asked.len().max(1)).map_or("none".into(), |call| call.id.clone());
            let event = match choice {
                0 => started(),
                1 => { index += 1; text(index, "words") }
                2 | 3 => { index += 1; next_id += 1; call(index, &format!("t{next_id}")) }
                4 | 5 => ended(["end_turn", "tool_use", "max_tokens", "pause_turn", "refusal", "tool_use"][pick as usize]),
                6 => failed([FailureKind::Cut, FailureKind::Overloaded, FailureKind::Unauthenticated, FailureKind::Stalled, FailureKind::OutputTooLong, FailureKind::Connect][pick as usize]),
                7 => Event::WaitOver,
                8 => Event::Prepared(asked.iter().enumerate().map(|(idx, call)| if (idx as u8 + pick) % 4 == 3 {
                    Preparation::Refused { call: call.id.clone(), outcome: ToolOutcome::refusal("x") }
                } else {
                    Preparation::Ready { call: call.id.clone(), concurrency: if (idx as u8 + pick).is_multiple_of(2) { Concurrency::Shared } else { Concurrency::Exclusive } }
                }).collect()),
                9 => Event::Permission { call: some_call(), permission: CallPermission::Run },
                10 => Event::Permission { call: some_call(), permission: if pick == 0 { CallPermission::Stop(ToolOutcome::refusal("n")) } else { CallPermission::Refuse(ToolOutcome::refusal("n")) } },
                11 | 12 => Event::Finished { call: some_call(), outcome: ToolOutcome::text("ok", json!({})) },
                _ => match pick { 0 => Event::Interrupt, 1 => Event::Abandon, _ => Event::WaitOver },
            };
            let is_repeat_preparation = matches!(&event, Event::Prepared(_)) && asked.iter().any(|call| world.judged.contains(&call.id) || world.results.contains_key(&call.id));
            if is_repeat_preparation {
                continue;
            }
            for effect in turn.handle(event) {
                world.perform(&effect);
                match effect {
                    Effect::Prepare(calls) => asked = calls,
                    Effect::Request(_) => { index = 0; asked.clear(); }
                    _ => {}
                }
            }
        }
        for effect in turn.handle(Event::Abandon) {
            world.perform(&effect);
        }
    }
}

#[test]
fn call_that_is_alone_is_put_off_and_taken_up_in_another_turn() {
    let defer = |id: &str| Event::Permission { call: id.into(), permission: CallPermission::Defer };
    let mut turn = Turn::new(limits());
    for event in [Event::Begin, started(), call(0, "a"), ended("tool_use")] {
        turn.handle(event);
    }
    turn.handle(ready(&[("a", Concurrency::Exclusive)]));
    let effects = turn.handle(defer("a"));
    let [Effect::Record(Record::Deferred(waiting)), Effect::End(end)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(end.stop_reason.as_deref(), Some("tool_deferred"));
    assert_eq!(end.outcome, Outcome::Deferred(waiting.clone()));
    assert!(turn.handle(run("a")).is_empty(), "what comes later changes nothing");

    let mut next = Turn::new(limits());
    assert_eq!(next.handle(Event::TakeUp(waiting.clone())), [Effect::Prepare(vec![waiting.clone()])]);
    next.handle(ready(&[("a", Concurrency::Exclusive)]));
    assert_eq!(next.handle(run("a")), [Effect::Run("a".into())]);
    let shown: Vec<String> = next.handle(finished("a")).iter().filter_map(show).collect();
    assert_eq!(shown, ["result(a)", "ask main Usual"]);

    // Beside another it cannot be: it is refused, and the other goes on.
    let mut both = Turn::new(limits());
    for event in [Event::Begin, started(), call(0, "a"), call(1, "b"), ended("tool_use")] {
        both.handle(event);
    }
    both.handle(ready(&[("a", Concurrency::Exclusive), ("b", Concurrency::Exclusive)]));
    let shown: Vec<String> = both.handle(defer("a")).iter().filter_map(show).collect();
    assert_eq!(shown, ["result(a failed)", "judge b"]);
}
