//! Running the handlers of one event, side by side, and bringing their answers together.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use loci_core::entry::Attachment;
use loci_core::hooks::{
    Handler, HandlerEnd, HookAnswer, HookDecision, HookEntry, HookEvent, HookInput, RunMode,
};
use loci_core::permission::{Call, RuleCondition};
use loci_core::tool::CallEffects;
use loci_tools::{OnOutput, spill_preview};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::HookService;
use super::attachments::attachments;
use super::callback::failed_closed;
use crate::command::Command;
use crate::conversation::host::lock;
use crate::event::{EngineEvent, HookRunEnded, HookRunProgress, HookRunStarted};

/// The most characters of a text that are told to the model or the user; the rest goes to a file.
const TEXT_LIMIT: usize = 10_000;

/// How long the end of a session waits for handlers that were told of something.
pub(super) const LAST_WAIT: Duration = Duration::from_secs(10);

/// A run that commands wait for, until it is dropped.
struct EnvironmentRun(HookService);

impl EnvironmentRun {
    fn new(service: &HookService) -> Self {
        service.inner.environment_runs.send_modify(|n_runs| *n_runs += 1);
        Self(service.clone())
    }
}

impl Drop for EnvironmentRun {
    fn drop(&mut self) {
        self.0.inner.environment_runs.send_modify(|n_runs| *n_runs -= 1);
    }
}

/// What came of an event: one decision, and what each handler did.
#[derive(Debug, Default)]
pub(super) struct Fired {
    pub(super) decision: HookDecision,
    /// What the transcript keeps of it.
    pub(super) attachments: Vec<Attachment>,
    /// What went wrong with handlers, for events whose messages do not count.
    pub(super) errors: Vec<String>,
}

/// One handler's run.
#[derive(Debug)]
pub(super) struct HookRun {
    pub(super) entry: Arc<HookEntry>,
    pub(super) end: HandlerEnd,
    pub(super) answer: HookAnswer,
    pub(super) taken: Duration,
}

impl HookRun {
    /// Says what went wrong, if something did.
    fn error_text(&self) -> Option<String> {
        let why = self.answer.error.as_ref()?;
        Some(format!("{} hook [{}]: {why}", self.entry.event.name(), self.entry.label()))
    }
}

impl HookService {
    /// Runs every handler that an event concerns and waits for them. Dropping the future ends them.
    pub(super) async fn fire(
        &self,
        input: HookInput,
        call_id: Option<&str>,
        effects: Option<&CallEffects>,
    ) -> Fired {
        let (runs, decision) = self.run_all(&input, call_id, effects).await;
        if runs.is_empty() {
            return Fired::default();
        }
        let call_id = call_id.map_or_else(|| self.fresh_id(), str::to_owned);
        let attachments = attachments(input.event.event(), &input.hook_name(), &call_id, &runs);
        let errors = runs.iter().filter_map(HookRun::error_text).collect();
        Fired { decision, attachments, errors }
    }

    /// Runs them and returns what each did, and what their answers come to.
    pub(super) async fn run_all(
        &self,
        input: &HookInput,
        call_id: Option<&str>,
        effects: Option<&CallEffects>,
    ) -> (Vec<HookRun>, HookDecision) {
        let config = self.config_for(input.common.agent_id.as_deref());
        let entries = self.without_spent(config.matching(input, &|rule| self.fits(rule, input, effects)));
        if entries.is_empty() {
            return (Vec::new(), HookDecision::default());
        }
        let (name, json) = (input.hook_name(), Arc::<str>::from(input.to_json()));
        tracing::debug!(target: "loci::hooks", hook = name, n_handlers = entries.len(), "hooks run");
        let began = Instant::now();
        let runs = entries.into_iter().map(|entry| self.run(entry, input, Arc::clone(&json), call_id));
        let runs: Vec<HookRun> = join_all(runs).await;
        let labels: Vec<String> = runs.iter().map(|run| run.entry.label()).collect();
        let answers = labels.iter().map(String::as_str).zip(runs.iter().map(|run| run.answer.clone()));
        let decision = HookDecision::merge(input.event.event(), answers);
        self.tell_without_effect(&runs);
        let taken = began.elapsed();
        crate::session::state::change_identity(&self.world().identity, |identity| {
            identity.totals.hooks += taken;
        });
        tracing::debug!(
            target: "loci::hooks",
            hook = name,
            after_ms = taken.as_millis() as u64,
            blocks = decision.block.is_some(),
            stops = decision.stop.is_some(),
            permission = ?decision.permission.as_ref().map(|(word, _)| word),
            "hooks answered"
        );
        (runs, decision)
    }

    /// Tells the user, once each, which fields of answers nothing comes of.
    fn tell_without_effect(&self, runs: &[HookRun]) {
        for run in runs {
            for (field, why) in self.without_effect(&run.answer) {
                if lock(&self.inner.without_effect).insert(field) {
                    let (event, label) = (run.entry.event.name(), run.entry.label());
                    self.tell(EngineEvent::Warning(format!("{event} hook [{label}]: `{field}` {why}")));
                }
            }
        }
    }

    /// Returns the fields of an answer that nothing comes of, and why.
    fn without_effect(&self, answer: &HookAnswer) -> Vec<(&'static str, &'static str)> {
        let wants_files = answer.watch_paths.as_ref().is_some_and(|paths| !paths.is_empty());
        let fields = [
            (
                answer.is_terminal_refused,
                "terminalSequence",
                "holds more than titles, notifications and bells, and was not sent",
            ),
            (
                answer.classifier_context.is_some() && !self.world().has_classifier,
                "classifierContext",
                "has no effect: no classifier judges calls here",
            ),
            (
                wants_files && !self.has(HookEvent::FileChanged),
                "watchPaths",
                "has no effect: there are no `FileChanged` hooks",
            ),
        ];
        fields.into_iter().filter(|(is_there, ..)| *is_there).map(|(_, field, why)| (field, why)).collect()
    }

    /// Runs every handler that an event concerns; nobody waits for them but the end of the session.
    pub(super) fn fire_detached(&self, input: HookInput) {
        let says_environment = input.event.event() == HookEvent::CwdChanged;
        let run = says_environment.then(|| EnvironmentRun::new(self));
        self.spawn_reported(move |service| async move {
            let _run = run;
            let decision = service.fire(input, None, None).await.decision;
            service.tell_user(decision.messages);
            if let Some(paths) = decision.watch_paths {
                service.set_watch_paths(&paths);
            }
        });
    }

    /// Ends when no handler runs any more that says what the next command finds in its environment.
    pub(crate) async fn environment_ready(&self) {
        // It lives as long as the service does.
        drop(self.inner.environment_runs.subscribe().wait_for(|n_runs| *n_runs == 0).await);
    }

    /// Does something that nobody waits for but the end of the session.
    pub(super) fn spawn_reported<F: Future<Output = ()> + Send>(
        &self,
        work: impl FnOnce(Self) -> F + Send + 'static,
    ) {
        let (service, shutdown) = (self.clone(), self.inner.shutdown.clone());
        lock(&self.inner.told).spawn(async move {
            tokio::select! {
                () = work(service) => {}
                () = shutdown.cancelled() => {}
            }
        });
    }

    /// Waits for handlers that were told of something; what is not done by then goes on.
    pub(super) async fn finish_told(&self, deadline: Instant) {
        self.stop_watching();
        let mut told = std::mem::take(&mut *lock(&self.inner.told));
        let wait = async { while told.join_next().await.is_some() {} };
        drop(tokio::time::timeout_at(deadline, wait).await);
        if !told.is_empty() {
            lock(&self.inner.told).spawn(async move { while told.join_next().await.is_some() {} });
        }
    }

    /// Lets handlers that were told of something come to their end, and ends commands in the background.
    pub(super) async fn drain(&self, deadline: Instant) {
        self.finish_told(deadline).await;
        // What is not done by then is ended.
        self.inner.shutdown.cancel();
        let mut told = std::mem::take(&mut *lock(&self.inner.told));
        let mut detached = std::mem::take(&mut *lock(&self.inner.detached));
        while told.join_next().await.is_some() || detached.join_next().await.is_some() {}
    }

    /// Has the model hear of something at once, or when the turn at hand is over.
    fn wake(&self, text: String) {
        if let Some(commands) = self.world().commands.upgrade() {
            // A session that is over has nobody to wake.
            drop(commands.send(Command::Wake { text }));
        }
    }

    /// Takes what handlers in the background said since the last time.
    pub(crate) fn take_late(&self) -> Vec<Attachment> {
        std::mem::take(&mut *lock(&self.inner.late))
    }

    /// Compares the `if` of a handler with the call at hand, by the rules' own judge.
    fn fits(&self, rule: &RuleCondition, input: &HookInput, effects: Option<&CallEffects>) -> bool {
        let (Some(tool), Some(effects)) = (input.event.tool(), effects) else { return false };
        let mut book = self.world().state.get().permission.rulebook.clone();
        book.cwd.clone_from(&input.common.cwd);
        let command = tool.tool_input.get("command").and_then(Value::as_str);
        let call = Call { tool: &tool.tool_name, command, input: &tool.tool_input, effects, hook: None };
        rule.matches(&call, &book)
    }

    async fn run(
        &self,
        entry: Arc<HookEntry>,
        input: &HookInput,
        json: Arc<str>,
        call_id: Option<&str>,
    ) -> HookRun {
        if let Handler::Command { mode: RunMode::Background | RunMode::BackgroundWakes, .. } = &entry.handler
        {
            return self.run_in_background(entry, input, json);
        }
        self.run_to_end(entry, input, json, call_id, &CancellationToken::new()).await
    }

    /// Starts a command that nobody waits for; what it says is told with the next prompt.
    fn run_in_background(&self, entry: Arc<HookEntry>, input: &HookInput, json: Arc<str>) -> HookRun {
        let (service, cancel) = (self.clone(), self.inner.shutdown.clone());
        let (held, input) = (Arc::clone(&entry), input.clone());
        lock(&self.inner.detached).spawn(async move {
            let run = service.run_to_end(held, &input, json, None, &cancel).await;
            let (event, id) = (input.event.event(), service.fresh_id());
            let told = super::attachments::late(event, &input.hook_name(), &id, &run);
            let wakes = matches!(&run.entry.handler, Handler::Command { mode: RunMode::BackgroundWakes, .. });
            match wakes.then(|| super::attachments::wake_text(&input.hook_name(), &run)).flatten() {
                Some(text) => service.wake(text),
                None => lock(&service.inner.late).extend(told),
            }
            service.tell_user(run.error_text().into_iter().chain(run.answer.message).collect());
        });
        let end = HandlerEnd::Replied(Value::Null);
        HookRun { entry, end, answer: HookAnswer::default(), taken: Duration::ZERO }
    }

    async fn run_to_end(
        &self,
        entry: Arc<HookEntry>,
        input: &HookInput,
        json: Arc<str>,
        call_id: Option<&str>,
        cancel: &CancellationToken,
    ) -> HookRun {
        let (name, id) = (input.hook_name(), self.fresh_id());
        let event = input.event.event();
        let status = entry.status_message.clone();
        let started = HookRunStarted { id, name: name.clone(), event, status };
        self.tell(EngineEvent::HookStarted(started.clone()));
        tracing::debug!(target: "loci::hooks", run = started.id, hook = name, kind = entry.kind(), source = %entry.source, "hook started");
        let began = Instant::now();
        let on_output = |stdout: &str, stderr: &str| {
            let progress = HookRunProgress::new(started.clone(), stdout, stderr);
            self.tell(EngineEvent::HookProgress(progress));
        };
        let end = self.handle(&entry, input, json, call_id, cancel, &on_output).await;
        let taken = began.elapsed();
        let mut answer = HookAnswer::read(event, &name, &entry.label(), &end);
        self.shorten(&mut answer);
        if let Some(sequence) = answer.terminal.take() {
            self.tell(EngineEvent::TerminalSequence(sequence));
        }
        let what = end_name(&end);
        tracing::debug!(target: "loci::hooks", run = started.id, after_ms = taken.as_millis() as u64, end = what, is_error = answer.error.is_some(), "hook ended");
        self.tell(EngineEvent::HookEnded(HookRunEnded::new(started, &end, &answer)));
        HookRun { entry, end, answer, taken }
    }

    async fn handle(
        &self,
        entry: &HookEntry,
        input: &HookInput,
        json: Arc<str>,
        call_id: Option<&str>,
        cancel: &CancellationToken,
        on_output: OnOutput<'_>,
    ) -> HandlerEnd {
        match &entry.handler {
            Handler::Command { command, args, shell, .. } => {
                let line = (command.as_str(), args.as_deref(), *shell);
                self.run_command(entry, input, json, line, cancel, on_output).await
            }
            Handler::McpTool { server, tool, input: template } => {
                let call = (server.as_str(), tool.as_str(), template);
                self.run_mcp_tool(call, input, entry.time_limit(), cancel).await
            }
            Handler::Callback { id, blocks_on_failure } => {
                let end = self.run_callback(id, input, call_id, entry.time_limit(), cancel).await;
                if *blocks_on_failure { failed_closed(end) } else { end }
            }
            Handler::Http { url, headers, allowed_env } => {
                self.run_http(entry, json, (url, headers, allowed_env), cancel).await
            }
            Handler::Prompt { prompt, model, continues } => {
                let ask = (prompt.as_str(), model.as_deref());
                self.run_prompt(ask, json, (entry.time_limit(), *continues), cancel).await
            }
            Handler::Agent { prompt, model } => {
                let ask = (prompt.as_str(), model.as_deref());
                // Boxed: an agent is a conversation, whose hooks are run by this very function.
                Box::pin(self.run_agent(ask, &json, entry.time_limit(), cancel)).await
            }
        }
    }

    /// Moves texts that are too long to files, and leaves previews.
    fn shorten(&self, answer: &mut HookAnswer) {
        for text in
            [&mut answer.context, &mut answer.plain, &mut answer.message, &mut answer.block, &mut answer.stop]
        {
            if let Some(long) = text.as_mut().filter(|text| is_too_long(text)) {
                *long = self.spill(long);
            }
        }
        if let Some((_, why)) = answer.permission.as_mut().filter(|(_, why)| is_too_long(why)) {
            *why = self.spill(why);
        }
    }

    fn spill(&self, text: &str) -> String {
        let saved = self.spill_file().and_then(|path| std::fs::write(&path, text).map(|()| path));
        let total = text.len() as u64;
        spill_preview(text, total, saved.map(|path| (path, total)))
    }
}

fn is_too_long(text: &str) -> bool {
    text.len() > TEXT_LIMIT && text.chars().count() > TEXT_LIMIT
}

fn end_name(end: &HandlerEnd) -> String {
    match end {
        HandlerEnd::Exited { code, .. } => format!("exit code {code}"),
        HandlerEnd::Responded { status, .. } => format!("status {status}"),
        HandlerEnd::Replied(_) => "replied".to_owned(),
        HandlerEnd::Judged { is_ok, .. } => format!("judged ok={is_ok}"),
        HandlerEnd::TimedOut { .. } => "timed out".to_owned(),
        HandlerEnd::Failed(why) => format!("failed: {why}"),
        HandlerEnd::Cancelled => "cancelled".to_owned(),
    }
}
