//! The places of hooks in a turn: before a prompt is recorded, before a call is judged, after it ran, before the end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_core::entry::Attachment;
use loci_core::hooks::{EventInput, HookEvent};
use loci_core::ids::ToolUseId;
use loci_core::message::{Block, Role};
use loci_core::permission::{HookVerdict, Mode, RuleList, RuleOrigin, RuleSource, Rulebook, Verdict};
use loci_core::tool::ToolOutcome;
use loci_engine::turn::{Objection, Outcome};
use loci_engine::{
    AfterCall, Answer, BatchGate, BatchResults, BeforeEnd, BeforePrompt, CallGate, Command, EngineEvent,
    HookCall, HookFuture, HookMoment, PermissionQuestion, Prompt, PromptGate, Session, SessionAdditions,
    SessionBegin, SessionConfig, TurnHooks, TurnReport,
};
use loci_llm::Client;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::auto_mode::config;

/// Answers from what it was made with, and remembers what it was asked.
#[derive(Default, Clone)]
struct Hooks {
    blocks_prompt: Option<&'static str>,
    verdict: Option<Verdict>,
    input: Option<Value>,
    objection: Option<&'static str>,
    /// Whether it objects for ever.
    objects_always: bool,
    /// Whether it ends the turn after a call.
    halts_after: Option<&'static str>,
    /// Whether it looks at batches, and ends the turn behind them unless this is empty.
    halts_batch: Option<&'static str>,
    /// What it answers in the place of a person, where it listens to that.
    reply: Option<Option<Answer>>,
    /// Where it never answers, but tells that it was asked.
    hangs: Option<(&'static str, Arc<Notify>)>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Hooks {
    /// Answers, unless this is where it hangs.
    fn answer<T: Send + 'static>(&self, at: &'static str, asked: String, answer: T) -> HookFuture<T> {
        self.asked.lock().unwrap().push(format!("{at} {asked}"));
        let hangs = self.hangs.clone().filter(|(place, _)| *place == at);
        Box::pin(async move {
            if let Some((_, reached)) = hangs {
                reached.notify_one();
                std::future::pending::<()>().await;
            }
            answer
        })
    }
}

impl TurnHooks for Hooks {
    fn before_prompt(&self, prompt: BeforePrompt) -> HookFuture<PromptGate> {
        let gate = match self.blocks_prompt {
            Some(reason) => PromptGate::Block { reason: reason.to_owned() },
            None => PromptGate::Go { attachments: Vec::new(), title: None },
        };
        self.answer("prompt", prompt.prompt, gate)
    }

    fn before_call(&self, call: HookCall) -> HookFuture<CallGate> {
        let verdict = self.verdict.map(|verdict| HookVerdict { verdict, reason: "policy".to_owned() });
        let gate = CallGate { verdict, input: self.input.clone(), ..CallGate::default() };
        self.answer("call", call.input["command"].to_string(), gate)
    }

    fn after_call(&self, call: HookCall, outcome: ToolOutcome, _taken: Duration) -> HookFuture<AfterCall> {
        let halt = self.halts_after.map(str::to_owned);
        self.answer(
            "after",
            call.input["command"].to_string(),
            AfterCall { outcome, halt, classifier_note: None },
        )
    }

    fn before_end(&self, end: BeforeEnd) -> HookFuture<Option<Objection>> {
        let objection = self.objection.filter(|_| !end.has_gone_on || self.objects_always);
        let objection = objection.map(|text| Objection { text: text.to_owned(), attachments: Vec::new() });
        self.answer("end", end.text, objection)
    }

    fn listens_to(&self, event: HookEvent) -> bool {
        let batches = self.halts_batch.is_some();
        match event {
            HookEvent::PostToolBatch => batches,
            HookEvent::PermissionRequest => self.reply.is_some(),
            _ => true,
        }
    }

    fn session_begins(&self, begin: SessionBegin) -> HookFuture<SessionAdditions> {
        self.answer("begin", begin.source.to_owned(), SessionAdditions::default())
    }

    fn set_up(&self, trigger: &'static str, _moment: HookMoment) -> HookFuture<Vec<Attachment>> {
        self.answer("setup", trigger.to_owned(), Vec::new())
    }

    fn session_ends(&self, reason: &'static str, _moment: HookMoment) -> HookFuture<()> {
        self.answer("over", reason.to_owned(), ())
    }

    fn permission_question(&self, question: PermissionQuestion) -> HookFuture<Option<Answer>> {
        self.answer("question", question.call.tool, self.reply.clone().flatten())
    }

    fn after_batch(&self, batch: BatchResults) -> HookFuture<BatchGate> {
        let halt = self.halts_batch.filter(|text| !text.is_empty()).map(str::to_owned);
        let told = batch.calls.iter().map(|call| format!("{} {}", call.tool_name, call.tool_response));
        let told = told.collect::<Vec<_>>().join(", ");
        self.answer("batch", told, BatchGate { attachments: Vec::new(), halt })
    }

    fn notify(&self, _event: EventInput, _moment: HookMoment) {}
}

/// What became of a turn.
struct Seen {
    report: TurnReport,
    hooks: Vec<String>,
    /// What the user's side of each request says, the newest message last.
    requests: Vec<String>,
    questions: usize,
    made: Vec<String>,
}

/// Lets the model run `touch a` and then answer; questions are answered with yes.
async fn play(hooks: Hooks, mode: Mode, rules: &[(RuleList, &str)]) -> Seen {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().canonicalize().unwrap();
    let mut book = Rulebook {
        mode,
        dirs: vec![cwd.clone()],
        cwd: cwd.clone(),
        home: cwd.join("home"),
        ..Rulebook::default()
    };
    for (list, rule) in rules {
        book.add(*list, rule, &RuleOrigin::new(RuleSource::Session, cwd.as_path()));
    }
    let requests = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&requests);
    let client = Client::scripted(
        move |request| {
            let last = request.messages.last().map(|message| format!("{:?}", message.content));
            log.lock().unwrap().push(last.unwrap_or_default());
            let n_answers = request.messages.iter().filter(|it| it.role == Role::Assistant).count();
            vec![match n_answers {
                0 => Block::new_tool_use(&ToolUseId::new("toolu_1"), "Bash", &json!({"command": "touch a"})),
                _ => Block::new_text("Done."),
            }]
        },
        Duration::ZERO,
    );
    let hangs = hooks.hangs.clone().map(|(_, reached)| reached);
    let asked = Arc::clone(&hooks.asked);
    // Where hooks answer, nobody else does: whoever is first would count.
    let can_ask = !matches!(hooks.reply, Some(Some(_)));
    let base = config(&cwd, book, client);
    let (session, handle, mut events) =
        Session::new(SessionConfig { turn_hooks: Some(Arc::new(hooks)), max_objections: 3, can_ask, ..base });
    let engine = tokio::spawn(session.run());
    handle.send(Command::Prompt(Prompt::text("go")));
    if let Some(reached) = hangs {
        reached.notified().await;
        handle.send(Command::Interrupt);
    }
    let mut questions = 0;
    let report = loop {
        match events.recv().await.unwrap() {
            EngineEvent::QuestionAsked(question) => {
                questions += 1;
                let answer = Answer::Allow { input: None, updates: Vec::new() };
                handle.send(Command::Answer { question: question.id, answer });
            }
            EngineEvent::TurnEnded(report) => break *report,
            _ => {}
        }
    };
    handle.send(Command::Close);
    engine.await.unwrap();
    let names =
        cwd.read_dir().unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let made = names.filter(|name| name.len() == 1).collect();
    let hooks = asked.lock().unwrap().clone();
    let requests = requests.lock().unwrap().clone();
    Seen { report, hooks, requests, questions, made }
}

#[tokio::test]
async fn hooks_are_asked_once_each_in_the_order_of_the_turn() {
    let seen = play(Hooks::default(), Mode::BypassPermissions, &[]).await;
    assert_eq!(
        seen.hooks,
        ["begin startup", "prompt go", r#"call "touch a""#, r#"after "touch a""#, "end Done.", "over other"]
    );
    assert_eq!((seen.report.outcome, seen.made), (Outcome::Completed, vec!["a".to_owned()]));
}

#[tokio::test]
async fn blocked_prompt_reaches_neither_transcript_nor_model() {
    let hooks = Hooks { blocks_prompt: Some("no secrets"), ..Hooks::default() };
    let seen = play(hooks, Mode::BypassPermissions, &[]).await;
    assert_eq!(seen.report.outcome, Outcome::Blocked("no secrets".to_owned()));
    assert_eq!((seen.report.text.as_str(), seen.requests.len()), ("no secrets", 0));
}

/// Rules that deny or ask stand above a hook's allow; its deny stands above everything.
#[tokio::test]
async fn hook_verdict_is_seen_by_every_check_of_the_call() {
    const DENY: (RuleList, &str) = (RuleList::Deny, "Bash(touch *)");
    const ASK: (RuleList, &str) = (RuleList::Ask, "Bash(touch *)");
    for (verdict, mode, rules, questions, runs) in [
        (Some(Verdict::Deny), Mode::BypassPermissions, &[][..], 0, false),
        (Some(Verdict::Allow), Mode::Default, &[][..], 0, true),
        (None, Mode::Default, &[][..], 1, true),
        (Some(Verdict::Ask), Mode::BypassPermissions, &[][..], 1, true),
        (Some(Verdict::Allow), Mode::Default, &[DENY][..], 0, false),
        (Some(Verdict::Allow), Mode::Default, &[ASK][..], 1, true),
    ] {
        let seen = play(Hooks { verdict, ..Hooks::default() }, mode, rules).await;
        let case = format!("{verdict:?} {mode:?} {rules:?}");
        assert_eq!((seen.questions, !seen.made.is_empty()), (questions, runs), "{case}");
    }
}

#[tokio::test]
async fn input_changed_by_a_hook_is_judged_as_a_new_call() {
    let hooks = |command: &str| Hooks { input: Some(json!({"command": command})), ..Hooks::default() };
    let seen = play(hooks("touch b"), Mode::BypassPermissions, &[]).await;
    assert_eq!(seen.made, ["b"]);
    let deny = [(RuleList::Deny, "Bash(touch b)")];
    let seen = play(hooks("touch b"), Mode::BypassPermissions, &deny).await;
    assert!(seen.made.is_empty() && seen.requests[1].contains("not granted"), "{:?}", seen.requests);
}

#[tokio::test]
async fn objection_to_the_end_is_told_to_the_model_once() {
    let hooks = Hooks { objection: Some("Run the tests first."), ..Hooks::default() };
    let seen = play(hooks, Mode::BypassPermissions, &[]).await;
    assert_eq!((seen.report.outcome, seen.requests.len()), (Outcome::Completed, 3));
    assert!(seen.requests[2].contains("Run the tests first."), "{:?}", seen.requests);
    assert_eq!(seen.hooks.iter().filter(|asked| asked.starts_with("end")).count(), 2);
}

#[tokio::test]
async fn hooks_that_object_for_ever_are_overruled_at_the_limit() {
    let hooks = Hooks { objection: Some("Once more."), objects_always: true, ..Hooks::default() };
    let seen = play(hooks, Mode::BypassPermissions, &[]).await;
    assert_eq!(seen.report.outcome, Outcome::Completed);
    // The call, the answer, and one more for each of the three objections that count.
    assert_eq!(seen.requests.len(), 5);
}

#[tokio::test]
async fn hook_ends_the_turn_after_a_call_or_behind_all_of_them() {
    for hooks in [
        Hooks { halts_after: Some("enough"), ..Hooks::default() },
        Hooks { halts_batch: Some("enough"), ..Hooks::default() },
    ] {
        let seen = play(hooks, Mode::BypassPermissions, &[]).await;
        assert_eq!(seen.report.outcome, Outcome::Halted("enough".to_owned()));
        assert_eq!(
            (seen.requests.len(), seen.made),
            (1, vec!["a".to_owned()]),
            "the model is not asked again"
        );
    }
}

#[tokio::test]
async fn hooks_see_all_results_of_a_response_together() {
    let seen = play(Hooks { halts_batch: Some(""), ..Hooks::default() }, Mode::BypassPermissions, &[]).await;
    assert_eq!(seen.report.outcome, Outcome::Completed);
    let batch = seen.hooks.iter().find(|asked| asked.starts_with("batch")).unwrap();
    assert!(batch.starts_with("batch Bash \""), "{batch}");
}

#[tokio::test]
async fn hook_answers_in_the_place_of_a_person() {
    let allow = Answer::Allow { input: Some(json!({"command": "touch b"})), updates: Vec::new() };
    let deny = Answer::Deny { message: "not today".to_owned(), stops: false };
    let seen = play(Hooks { reply: Some(Some(allow)), ..Hooks::default() }, Mode::Default, &[]).await;
    assert_eq!(seen.made, ["b"]);
    let seen = play(Hooks { reply: Some(Some(deny)), ..Hooks::default() }, Mode::Default, &[]).await;
    assert!(seen.made.is_empty() && seen.requests[1].contains("not today"), "{:?}", seen.requests);
    let seen = play(Hooks { reply: Some(None), ..Hooks::default() }, Mode::Default, &[]).await;
    assert_eq!((seen.questions, seen.made), (1, vec!["a".to_owned()]), "the person is asked all the same");
}

#[tokio::test]
async fn interrupt_ends_the_wait_for_a_hook_that_hangs() {
    for at in ["prompt", "call", "after", "batch", "end"] {
        let hangs = Some((at, Arc::new(Notify::new())));
        let hooks = Hooks { hangs, halts_batch: Some(""), ..Hooks::default() };
        let seen = play(hooks, Mode::BypassPermissions, &[]).await;
        assert!(matches!(seen.report.outcome, Outcome::Interrupted(_)), "{at}: {:?}", seen.report.outcome);
    }
}
