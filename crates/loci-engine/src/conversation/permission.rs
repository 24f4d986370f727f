//! Whether a call may run: judged by rules, put to a classifier or a person, answered, remembered.

use super::permits::Permits;
use super::running_turn::{TurnCalls, TurnTasks};
use super::scope::ConversationScope;
use super::tool_set::ToolSet;
use crate::conversation::recorder::Recorder;
use loci_core::agent::agent_mode;
use loci_core::app_state::Denial;
use loci_core::hooks::HookEvent;
use loci_core::ids::ToolUseId;
use loci_core::message::ToolUse;
use loci_core::permission::{
    AskedCall, Classified, Decision, Destination, Mode, Reason, RuleList, Rulebook, Update, Verdict,
};
use loci_core::tool::{CallEffects, Interaction, PathEffect, ToolOutcome};
use loci_tools::Host;
use serde_json::Value;

use super::host::lock;
use super::{Conversation, InboxMessage};
use crate::agents::admit_memory;
use crate::agents::background::admit;
use crate::command::Answer;
use crate::event::{EngineEvent, Question, QuestionKind};
use crate::extensions::{CallGate, ClassifierCall, PermissionQuestion};
use crate::session::config::ReloadPoint;
use crate::session::state::{change, remember_mode};
use crate::tools::prepared_call::{PermissionCheck, PreparedCall, check_permission, prepare};
use crate::turn::{CallPermission, Event};

/// So many questions and answers are remembered.
const MOST_ASKED: usize = 300;

impl Conversation {
    /// Goes on with a call that hooks have seen. One whose input they changed is a new call: checked and judged as such.
    pub(super) fn call_gate_passed(&mut self, id: &ToolUseId, gate: CallGate) {
        let Some(call) = self.run.calls.prepared.get(id).cloned() else { return };
        self.run.calls.notes.entry(id.clone()).or_default().extend(gate.attachments);
        if let Some(reason) = gate.halt {
            let text = match &gate.verdict {
                Some(said) if said.verdict == Verdict::Deny && !said.reason.is_empty() => said.reason.clone(),
                _ => format!("Not run: a hook ended the turn: {reason}"),
            };
            self.run.tasks.post(InboxMessage::Machine(Event::Halt { reason }));
            return self.scope.deny(&self.run.tasks, &call, CallPermission::Refuse(ToolOutcome::error(text)));
        }
        let says_yes = gate.verdict.as_ref().is_some_and(|said| said.verdict == Verdict::Allow);
        let is_approved = says_yes && gate.input.is_some();
        let call = match gate.input.filter(|input| *input != call.input) {
            None => call,
            Some(input) => match self.tools.prepare_changed(&self.scope, &call, input) {
                Ok(changed) => changed,
                Err(outcome) => return self.run.tasks.decided(&call, CallPermission::Refuse(*outcome)),
            },
        };
        if gate.defers && self.run.calls.may_defer(&self.scope, &call) {
            return self.run.tasks.decided(&call, CallPermission::Defer);
        }
        self.permits.judge(
            &self.scope,
            &self.recorder,
            &self.tools,
            &mut self.run.calls,
            &self.run.tasks,
            PreparedCall { hook: gate.verdict, is_approved, ..call },
        );
    }

    /// Takes what the classifier said; hooks are told of a no before the model is.
    pub(super) fn classified(&mut self, id: &ToolUseId, said: Option<Classified>) {
        let hooks =
            self.scope.ctx.listeners(HookEvent::PermissionDenied).filter(|_| self.scope.reports_to_hooks());
        let (Some(hooks), Some(Classified::Block(reason))) = (hooks, said.clone()) else {
            return self.follow_classifier(id, said);
        };
        let Some(call) = self.run.calls.prepared.get(id) else { return };
        let told = call.for_hooks(&self.scope.host.workspace(), self.scope.hook_moment(&self.recorder));
        let (inbox, cancel, id) = (self.run.tasks.inbox.clone(), self.run.tasks.calls.clone(), id.clone());
        tokio::spawn(async move {
            tokio::select! {
                notes = hooks.permission_denied(told, reason.clone()) => {
                    drop(inbox.send(InboxMessage::DenialTold(id, Classified::Block(reason), notes)));
                }
                () = cancel.cancelled() => {}
            }
        });
    }

    /// Does what the classifier said. Without an answer, or after a change of mode, people are asked.
    pub(super) fn follow_classifier(&mut self, id: &ToolUseId, said: Option<Classified>) {
        let Some(call) = self.run.calls.prepared.get(id).cloned() else { return };
        let book = self.permits.rules_for(&self.scope, &call);
        let mode = book.mode;
        let mut judged = check_permission(&self.tools.toolbox, self.scope.host.as_ref(), book, &call);
        if let Some(said) = said.filter(|_| judged.decision.is_for_classifier(mode)) {
            lock(&self.scope.ctx.policy.classifier_blocks).count(&said);
            judged.decision = said.into();
        }
        self.permits.follow_verdict(&self.scope, &self.recorder, &self.run.tasks, &call, &judged);
    }

    /// Takes what hooks answered in the place of a person. Without an answer the person is waited for; where there is
    /// none, the call is refused.
    pub(super) fn hook_replied(&mut self, question: &str, reply: Option<Answer>) {
        let is_put = lock(&self.scope.ctx.policy.questions).contains_key(question);
        // A plain yes answers nothing that a person is asked.
        let asks_person =
            self.permits.questions.get(question).is_some_and(|it| it.effects.interaction.is_some());
        let is_plain = matches!(reply, Some(Answer::Allow { input: None, .. }));
        let answer = match reply.filter(|_| !(asks_person && is_plain)) {
            None if is_put => return,
            None => {
                let Some(call) = self.permits.close_question(&self.scope, question) else { return };
                let book = self.permits.rules_for(&self.scope, &call);
                let judged = check_permission(&self.tools.toolbox, self.scope.host.as_ref(), book, &call);
                return self.scope.refuse(&self.run.tasks, &call, &judged);
            }
            Some(Answer::Deny { message, stops }) if message.trim().is_empty() => {
                Answer::Deny { message: "A hook did not let this call run.".to_owned(), stops }
            }
            Some(answer) => answer,
        };
        if is_put {
            self.scope.tell(EngineEvent::QuestionWithdrawn { question: question.to_owned() });
        }
        self.answered(question, answer);
    }

    /// Takes the answer to a question; one that comes too late, or twice, changes nothing.
    pub(crate) fn answered(&mut self, question: &str, answer: Answer) {
        let Some(call) = self.permits.close_question(&self.scope, question) else { return };
        self.scope.note_answer(&call, matches!(answer, Answer::Allow { .. }));
        match answer {
            Answer::Allow { input, updates } => {
                lock(&self.scope.ctx.policy.classifier_blocks).forgive();
                let has_changed = !updates.is_empty();
                updates.into_iter().for_each(|update| self.scope.grant(update));
                match input.filter(|input| *input != call.input) {
                    Some(input) => self.permits.run_changed(
                        &self.scope,
                        &self.tools,
                        &mut self.run.calls,
                        &self.run.tasks,
                        &call,
                        input,
                    ),
                    None => self.permits.run_unless_denied(&self.scope, &self.tools, &self.run.tasks, &call),
                }
                if has_changed {
                    self.permits.judge_open_questions(&self.scope, &self.tools, &self.run.tasks);
                }
            }
            Answer::Deny { message, stops } => {
                let mut outcome = ToolOutcome::error(message);
                if stops {
                    outcome.structured = Value::from("User rejected tool use");
                }
                let permission =
                    if stops { CallPermission::Stop(outcome) } else { CallPermission::Refuse(outcome) };
                self.scope.deny(&self.run.tasks, &call, permission);
            }
        }
    }
}

impl Permits {
    /// Returns the rules in force, with what changed in the settings since the last call.
    pub(super) fn rules_now(&self, scope: &ConversationScope) -> Rulebook {
        let mut book = self.grants.apply(scope.ctx.reload_settings(ReloadPoint::Call));
        // Settings that were read anew know nothing of a worktree that was entered.
        let project = scope.host.workspace().project;
        book.dirs.iter_mut().take(1).filter(|_| scope.is_main()).for_each(|dir| dir.clone_from(&project));
        // The worktree that the conversation has entered, the agent's own, or the one that its session was in when it was
        // sent out: where the session has gone since is not where the agent works.
        let sent_to = scope.agent_limits.isolation.clone();
        let of_session = || scope.ctx.worktrees.isolation().filter(|_| !scope.host.has_worktrees());
        book.isolation = scope.host.isolation(sent_to.or_else(of_session));
        // Wherever that lies, an agent works in it.
        if !scope.is_main() && !book.dirs.contains(&project) {
            book.dirs.push(project);
        }
        book.may_bypass = lock(&scope.ctx.policy.grants).may_bypass;
        book.plan_file = match scope.is_main() {
            true => scope.ctx.plans.judged_file(),
            false => scope.host.judged_agent_plan(),
        };
        if let Some(plan) = &book.plan_file {
            book.read_dirs.extend([plan.requested.clone(), plan.real.clone()]);
        }
        book.mode = agent_mode(book.mode, scope.agent_limits.mode);
        if let Some(dir) = &scope.agent_limits.memory_dir {
            admit_memory(&mut book, dir);
        }
        book
    }

    /// Returns the rules in force for a call: of a server that is to be asked about, no mode lets it run unasked.
    fn rules_for(&self, scope: &ConversationScope, call: &PreparedCall) -> Rulebook {
        let mut book = self.rules_now(scope);
        if let Some(mode) = scope.ctx.policy.server_mode(&call.tool)
            && matches!(book.mode, Mode::BypassPermissions | Mode::Auto)
        {
            book.mode = mode;
        }
        book
    }

    /// Checks whether a call may run, as soon as hooks have said what they think of it.
    pub(super) fn check_call(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        tool_set: &ToolSet,
        turn_calls: &mut TurnCalls,
        tasks: &mut TurnTasks,
        call: &ToolUseId,
    ) {
        let Some(call) = turn_calls.prepared.get(call).cloned() else { return };
        if scope.ask_about_settings(recorder, tasks, Some(&call.id)) {
            return;
        }
        let Some(hooks) = scope.call_listeners(HookEvent::PreToolUse) else {
            return self.judge(scope, recorder, tool_set, turn_calls, tasks, call);
        };
        tracing::debug!(target: "loci::hooks", call = %call.id, "call hooks asked");
        let place = scope.host.workspace();
        let effects = tool_set.toolbox.find(&call.tool).map(|tool| tool.effects(&call.input, &place));
        let call = PreparedCall { effects: effects.unwrap_or_default(), ..call };
        let (id, told) = (call.id.clone(), call.for_hooks(&place, scope.hook_moment(recorder)));
        let (inbox, cancel) = (tasks.inbox.clone(), tasks.calls.clone());
        tokio::spawn(async move {
            tokio::select! {
                gate = hooks.before_call(told) => drop(inbox.send(InboxMessage::CallGate(id, gate))),
                () = cancel.cancelled() => {}
            }
        });
    }

    /// Judges a call; what it would do is kept with it, so that what was judged is what runs.
    fn judge(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        tool_set: &ToolSet,
        turn_calls: &mut TurnCalls,
        tasks: &TurnTasks,
        call: PreparedCall,
    ) {
        let book = self.rules_for(scope, &call);
        let mode = book.mode;
        let judged = check_permission(&tool_set.toolbox, scope.host.as_ref(), book, &call);
        let call = PreparedCall { effects: judged.effects.clone(), ..call };
        turn_calls.prepared.insert(call.id.clone(), call.clone());
        if judged.decision.is_for_classifier(mode) && self.classify(scope, tasks, &call, &judged.decision) {
            return;
        }
        self.follow_verdict(scope, recorder, tasks, &call, &judged);
    }

    fn follow_verdict(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        tasks: &TurnTasks,
        call: &PreparedCall,
        judged: &PermissionCheck,
    ) {
        let Decision { verdict, reason, .. } = &judged.decision;
        tracing::debug!(target: "loci::permissions", call = %call.id, tool = call.tool, ?verdict, %reason, "verdict");
        if let Some(policy) = &scope.policy {
            let permit = policy.permit(&call.tool, &call.input, &judged.effects);
            return match admit(permit, &judged.decision) {
                Ok(()) => tasks.decided(call, CallPermission::Run),
                Err(why) => tasks.decided(call, CallPermission::Refuse(ToolOutcome::refusal(why))),
            };
        }
        match judged.decision.verdict {
            Verdict::Allow => tasks.decided(call, CallPermission::Run),
            Verdict::Ask if scope.asks && scope.ctx.policy.can_ask() => {
                self.ask(scope, recorder, tasks, call, judged);
            }
            Verdict::Ask if self.ask_hooks_alone(scope, recorder, tasks, call, judged) => {}
            Verdict::Deny
                if judged.decision.is_prompt_denied()
                    && self.ask_hooks_alone(scope, recorder, tasks, call, judged) => {}
            Verdict::Ask | Verdict::Deny => scope.refuse(tasks, call, judged),
        }
    }

    /// Puts a call to the classifier; false when there is none, or it has blocked too much to be of use.
    fn classify(
        &self,
        scope: &ConversationScope,
        tasks: &TurnTasks,
        call: &PreparedCall,
        decision: &Decision,
    ) -> bool {
        let are_too_many = lock(&scope.ctx.policy.classifier_blocks).are_too_many();
        let Some(classifier) = scope.ctx.policy.classifier.clone().filter(|_| !are_too_many) else {
            return false;
        };
        let (inbox, id) = (tasks.inbox.clone(), call.id.clone());
        let question = ClassifierCall {
            tool: call.tool.clone(),
            input: call.input.clone(),
            reason: decision.reason.to_string(),
            notes: self.classifier_notes.clone(),
        };
        tokio::spawn(async move {
            let said = classifier.classify(question).await;
            drop(inbox.send(InboxMessage::Classified(id, said)));
        });
        true
    }

    fn ask(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        tasks: &TurnTasks,
        call: &PreparedCall,
        judged: &PermissionCheck,
    ) {
        let id = scope.env.random.uuid_v4().to_string();
        let reason = &judged.decision.reason;
        let question = Question {
            id,
            agent: scope.agent.clone(),
            tool: call.tool.clone(),
            server: scope.ctx.services.mcp.as_ref().and_then(|mcp| mcp.tool_server(&call.tool)),
            call: call.id.clone(),
            input: call.input.clone(),
            kind: QuestionKind::of(&call.input, &judged.effects),
            reason: reason.to_string(),
            reason_kind: reason.kind().into(),
            links: links(&call.effects),
            blocked_path: reason.path().map(std::path::Path::to_path_buf),
            suggestions: scope.suggestions(judged),
        };
        let id = question.id.clone();
        self.put_question(scope, tasks, question, call.clone());
        self.tell_hooks_of_question(scope, recorder, tasks, &id, &call.tool);
        self.ask_hooks(scope, recorder, tasks, id, call, judged);
    }

    /// Asks hooks in the place of a person, while nobody else can be asked; false when there are none.
    fn ask_hooks_alone(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        tasks: &TurnTasks,
        call: &PreparedCall,
        judged: &PermissionCheck,
    ) -> bool {
        let id = scope.env.random.uuid_v4().to_string();
        let is_asked = self.ask_hooks(scope, recorder, tasks, id.clone(), call, judged);
        if is_asked {
            self.questions.insert(id, call.clone());
        }
        is_asked
    }

    /// Asks hooks in the place of a person; whoever answers first counts.
    fn ask_hooks(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        tasks: &TurnTasks,
        question: String,
        call: &PreparedCall,
        judged: &PermissionCheck,
    ) -> bool {
        let Some(hooks) = scope.ctx.listeners(HookEvent::PermissionRequest) else { return false };
        let suggestions = scope.suggestions(judged);
        let call = call.for_hooks(&scope.host.workspace(), scope.hook_moment(recorder));
        // Not waited for when somebody else has answered: a hook that takes its time holds nothing up.
        let (inbox, cancel) = (tasks.inbox.clone(), self.beside_question(tasks, &question));
        tokio::spawn(async move {
            tokio::select! {
                reply = hooks.permission_question(PermissionQuestion { call, suggestions }) => {
                    drop(inbox.send(InboxMessage::HookReply(question, reply)));
                }
                () = cancel.cancelled() => {}
            }
        });
        true
    }

    /// A yes holds for what was asked about, unless a rule forbids it by now.
    fn run_unless_denied(
        &self,
        scope: &ConversationScope,
        tool_set: &ToolSet,
        tasks: &TurnTasks,
        call: &PreparedCall,
    ) {
        let book = self.rules_for(scope, call);
        let judged = check_permission(&tool_set.toolbox, scope.host.as_ref(), book, call);
        match judged.decision.verdict {
            Verdict::Deny if is_forbidden(&judged.decision) => scope.refuse(tasks, call, &judged),
            _ => tasks.decided(call, CallPermission::Run),
        }
    }

    /// An answer with other input is a new call: checked and judged again, so that a deny rule holds against it.
    fn run_changed(
        &self,
        scope: &ConversationScope,
        tool_set: &ToolSet,
        turn_calls: &mut TurnCalls,
        tasks: &TurnTasks,
        call: &PreparedCall,
        input: Value,
    ) {
        let changed = match tool_set.prepare_changed(scope, call, input) {
            Ok(changed) => PreparedCall { hook: call.hook.clone(), is_approved: call.is_approved, ..changed },
            Err(outcome) => return tasks.decided(call, CallPermission::Refuse(*outcome)),
        };
        let book = self.rules_for(scope, &changed);
        let judged = check_permission(&tool_set.toolbox, scope.host.as_ref(), book, &changed);
        let changed = PreparedCall { effects: judged.effects, ..changed };
        turn_calls.prepared.insert(changed.id.clone(), changed.clone());
        self.run_unless_denied(scope, tool_set, tasks, &changed);
    }

    /// Withdraws questions that a grant has answered.
    fn judge_open_questions(&mut self, scope: &ConversationScope, tool_set: &ToolSet, tasks: &TurnTasks) {
        let is_settled = |call: &PreparedCall| {
            let book = self.rules_for(scope, call);
            let judged = check_permission(&tool_set.toolbox, scope.host.as_ref(), book, call);
            judged.decision.verdict == Verdict::Allow
        };
        let open = self.questions.iter();
        let settled: Vec<String> =
            open.filter(|(_, call)| is_settled(call)).map(|(question, _)| question.clone()).collect();
        for question in settled {
            let Some(call) = self.close_question(scope, &question) else { continue };
            scope.tell(EngineEvent::QuestionWithdrawn { question });
            tasks.decided(&call, CallPermission::Run);
        }
    }
}

impl ConversationScope {
    /// Returns what would let a call run from now on; for a plan, the mode that its changes are made in.
    fn suggestions(&self, judged: &PermissionCheck) -> Vec<Update> {
        if judged.effects.interaction == Some(Interaction::PlanApproval) {
            // An agent carries nothing of its plan out.
            if !self.is_main() {
                return Vec::new();
            }
            let mode = match (lock(&self.ctx.policy.grants).may_bypass, self.ctx.policy.classifier.is_some())
            {
                (true, _) => Mode::BypassPermissions,
                (false, true) => Mode::Auto,
                (false, false) => Mode::AcceptEdits,
            };
            return vec![Update::SetMode(mode, Destination::Session)];
        }
        if judged.effects.interaction == Some(Interaction::Confirmation) {
            // No rule would let the next call run unasked.
            return Vec::new();
        }
        if self.may_grant() { judged.suggestions.clone() } else { Vec::new() }
    }

    /// Remembers what was asked and answered, so that rules can be learned from it. What only a person can say is not asked
    /// less by any rule.
    fn note_answer(&self, call: &PreparedCall, is_allowed: bool) {
        if call.effects.interaction.is_some() {
            return;
        }
        let command = call.input.get("command").and_then(Value::as_str).filter(|_| !call.facts.keeps_input);
        let mut asked = lock(&self.ctx.policy.asked);
        if asked.len() >= MOST_ASKED {
            asked.pop_front();
        }
        asked.push_back(AskedCall {
            tool: call.tool.clone(),
            command: command.map(str::to_owned),
            input: call.input.clone(),
            effects: call.effects.clone(),
            is_allowed,
        });
    }

    /// Makes a change that an answer asked for, and says what of it could not be made.
    pub(super) fn grant(&self, update: Update) {
        if let Err(why) = self.try_grant(update) {
            self.tell(EngineEvent::Warning(why));
        }
    }

    /// Makes a change: now, and in the settings file it is for. The error says what of it could not be made.
    pub(crate) fn try_grant(&self, update: Update) -> Result<(), String> {
        let update = match update {
            Update::AddDirectories(dirs, to) => Update::AddDirectories(self.host.real_dirs(&dirs), to),
            Update::RemoveDirectories(dirs, to) => Update::RemoveDirectories(self.host.real_dirs(&dirs), to),
            other => other,
        };
        if let Some(why) = self.refusal(&update) {
            return Err(format!("A permission was not changed: {why}"));
        }
        let mut book = self.ctx.state.get().permission.rulebook.clone();
        let complaints = update.apply(&mut book);
        self.host.set_dirs(&book.dirs);
        change(&self.ctx.state, |state| {
            let before = std::mem::replace(&mut state.permission.rulebook, book.clone()).mode;
            remember_mode(state, before);
        });
        if !complaints.is_empty() {
            let complaints: Vec<String> = complaints.iter().map(ToString::to_string).collect();
            return Err(format!("A permission was not changed: {}", complaints.join("; ")));
        }
        if update.destination() == Destination::Session {
            return Ok(());
        }
        let saved = match lock(&self.ctx.policy.grants).save.as_mut() {
            Some(save) => save(&update),
            None => Err("this session has no settings files".to_owned()),
        };
        let note =
            saved.map_err(|why| format!("A permission holds for this session and was not saved: {why}"))?;
        note.into_iter().for_each(|text| self.tell(EngineEvent::Warning(text)));
        Ok(())
    }

    /// Tells whether an answer may allow more than the one call.
    fn may_grant(&self) -> bool {
        lock(&self.ctx.policy.grants).may_grant
    }

    fn refusal(&self, update: &Update) -> Option<&'static str> {
        match update {
            Update::SetMode(Mode::BypassPermissions, _) if !lock(&self.ctx.policy.grants).may_bypass => {
                Some("the session was not started so that permissions could be bypassed")
            }
            Update::AddRules(change) | Update::ReplaceRules(change)
                if change.list == RuleList::Allow && !self.may_grant() =>
            {
                Some("only the administrator's rules may allow calls here")
            }
            _ => None,
        }
    }

    fn refuse(&self, tasks: &TurnTasks, call: &PreparedCall, judged: &PermissionCheck) {
        let message = self.refusal_text(call, judged);
        self.tell(EngineEvent::PermissionDenied {
            tool: call.tool.clone(),
            call: call.id.clone(),
            reason_kind: judged.decision.reason.kind(),
            message: message.clone(),
        });
        self.deny(tasks, call, CallPermission::Refuse(ToolOutcome::error(message)));
    }

    /// Says why a call does not run, and what would let it.
    pub(super) fn refusal_text(&self, call: &PreparedCall, judged: &PermissionCheck) -> String {
        match (&judged.decision.verdict, &judged.decision.reason) {
            // A hook has said what is to be said.
            (Verdict::Deny, Reason::Hook(said)) if !said.trim().is_empty() => said.clone(),
            _ => denial_text(call, judged, self.may_grant()),
        }
    }

    fn deny(&self, tasks: &TurnTasks, call: &PreparedCall, permission: CallPermission) {
        let denial = Denial {
            tool_name: call.tool.clone(),
            tool_use_id: call.id.to_string(),
            tool_input: call.input.clone(),
        };
        change(&self.ctx.state, |state| state.permission.deny(denial));
        tasks.decided(call, permission);
    }
}

impl ToolSet {
    /// Looks a call with other input up and checks it.
    pub(super) fn prepare_changed(
        &self,
        scope: &ConversationScope,
        call: &PreparedCall,
        input: Value,
    ) -> Result<PreparedCall, Box<ToolOutcome>> {
        let tool_use = ToolUse { id: call.id.clone(), name: call.tool.clone(), input };
        prepare(&self.toolbox, scope.host.as_ref(), &tool_use).map(|(changed, _)| changed)
    }
}

impl TurnTasks {
    fn decided(&self, call: &PreparedCall, permission: CallPermission) {
        self.post(InboxMessage::Machine(Event::Permission { call: call.id.clone(), permission }));
    }
}

/// Tells a prohibition from a mode that only does not ask.
fn is_forbidden(decision: &Decision) -> bool {
    decision.verdict == Verdict::Deny
        && !matches!(decision.reason, Reason::NotAsked(..) | Reason::PromptsDenied(_))
}

/// Returns the paths that lead elsewhere than they say, each once.
fn links(effects: &CallEffects) -> Vec<PathEffect> {
    let paths = effects.writes.iter().chain(&effects.reads).filter(|path| path.requested != path.real);
    paths.fold(Vec::new(), |mut links, path| {
        if !links.contains(path) {
            links.push(path.clone());
        }
        links
    })
}

fn denial_text(call: &PreparedCall, judged: &PermissionCheck, can_grant: bool) -> String {
    let PermissionCheck { decision, suggestions, .. } = judged;
    let rules: Vec<&str> = suggestions
        .iter()
        .filter_map(|update| match update {
            Update::AddRules(change) => Some(change.rules.iter().map(String::as_str)),
            _ => None,
        })
        .flatten()
        .collect();
    let grant = match rules[..] {
        _ if !can_grant => String::new(),
        [] => String::new(),
        [rule] => format!(" The rule `{rule}` under permissions.allow would allow it."),
        _ => format!(" The rules `{}` under permissions.allow would allow it.", rules.join("`, `")),
    };
    let next = match decision.verdict {
        Verdict::Deny => "Do not try to get around this; take another way or say what you need.",
        Verdict::Ask | Verdict::Allow => {
            "This run cannot ask anyone. Take another way, or tell the user which permission is needed."
        }
    };
    format!("Permission to use {} was not granted: {}.{grant} {next}", call.tool, decision.reason)
}
