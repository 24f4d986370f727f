//! Tools that misbehave: whatever they do, their call has an outcome.

use super::*;
use crate::conversation::host::{HostParts, Spill};
use crate::event::EventSink;
use expect_test::{Expect, expect};
use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts};
use loci_stdx::Env;
use loci_storage::layout::{ConfigHome, SessionTmp};
use loci_tools::{ToolFuture, Workspace};
use serde_json::{Value, json};

/// A tool that does one odd thing.
struct Odd {
    descriptor: ToolDescriptor,
    run: fn() -> ToolFuture<'static>,
}

impl Tool for Odd {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn run<'a>(&'a self, _call: ToolCall, _host: &'a dyn Host) -> ToolFuture<'a> {
        (self.run)()
    }
}

/// Runs a tool, cancelled from the start if `is_cancelled`, and compares its result.
async fn check(run_tool: fn() -> ToolFuture<'static>, is_cancelled: bool, expected: Expect) {
    let descriptor = ToolDescriptor {
        name: "Odd".to_owned(),
        aliases: &[],
        description: String::new(),
        input_schema: json!({"type": "object"}),
        max_result_chars: Some(200),
        facts: ToolFacts::default(),
    };
    let (events, _) = tokio::sync::mpsc::unbounded_channel();
    let env = Env::for_test("/home/dev", "/p");
    let host = ConversationHost::new(HostParts {
        home: ConfigHome::from_env(&env),
        ambient: Arc::new(std::sync::Mutex::new(crate::Ambient {
            env,
            child_env: Vec::new(),
            sandbox: None,
        })),
        place: Workspace {
            cwd: "/p".into(),
            project: "/p".into(),
            extra_dirs: Vec::new(),
            home: "/home/dev".into(),
        },
        // Nothing can be made below a device, so a long result cannot be saved.
        spill: Spill::Beside("/dev/null/spill".into()),
        tmp: SessionTmp::below("/dev/null/ours".into()),
        events: EventSink::new(events, None),
        state: Arc::new(loci_stdx::Store::new(loci_core::app_state::AppState::default())),
        keeper: None,
        transcript: None,
        memory: None,
        task_store: Arc::new(loci_tools::MemoryTaskStore::default()),
        plans: None,
        worktrees: None,
        session: "s".to_owned(),
        env_dir: Arc::default(),
        tasks: loci_tools::BackgroundTasks::default(),
        agent: None,
    });
    let call = PreparedCall {
        is_approved: false,
        id: "toolu_1".into(),
        tool: "Odd".to_owned(),
        facts: ToolFacts::default(),
        input: json!({}),
        effects: CallEffects::default(),
        hook: None,
    };
    let cancel = CancellationToken::new();
    if is_cancelled {
        cancel.cancel();
    }
    let (tool, host) = (Arc::new(Odd { descriptor, run: run_tool }), Arc::new(host));
    let outcome = Next { layers: &[], tool, host: &host, cancel, to_background: CancellationToken::new() }
        .run(call)
        .await;
    let ToolContent::Text(text) = &outcome.content else { panic!("expected text: {outcome:?}") };
    expected.assert_eq(&format!("{:?} {text}", outcome.is_error));
}

#[tokio::test]
async fn a_panic_is_an_error_result() {
    check(|| Box::pin(async { panic!("index 7 out of range") }), false, expect!["Some(true) Odd failed inside loci (index 7 out of range); this is a defect of loci, not of your input. Try another way"]).await;
    check(|| panic!("before it began"), false, expect!["Some(true) Odd failed inside loci (before it began); this is a defect of loci, not of your input. Try another way"]).await;
}

#[tokio::test]
async fn a_tool_that_does_not_heed_a_cancel_is_given_up() {
    check(|| Box::pin(std::future::pending()), true, expect!["Some(true) The user interrupted this call. It may have taken effect in part; check before relying on it."]).await;
}

#[tokio::test]
async fn a_long_result_that_cannot_be_saved_is_still_a_result() {
    check(|| Box::pin(async { ToolOutcome::text("0123456789".repeat(21), json!({})) }), false, expect![[r#"
        None <persisted-output>
        Output too large (210 bytes). It could not be saved: Not a directory (os error 20)

        Preview (first 2KB):
        012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789
        ...
        </persisted-output>"#]])
        .await;
}
