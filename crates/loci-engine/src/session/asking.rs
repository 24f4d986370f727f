//! Whether a call may run: judged by rules, put to a classifier or a person, answered, remembered.

use loci_core::app_state::Denial;
use loci_core::ids::ToolUseId;
use loci_core::message::ToolUse;
use loci_core::permission::{
    Classified, Decision, Destination, Mode, Reason, RuleList, Rulebook, Update, Verdict,
};
use loci_core::tool::{CallEffects, PathEffect, ToolOutcome};
use serde_json::Value;

use super::{Message, Session, Underway};
use crate::classifier::ClassifierCall;
use crate::command::Answer;
use crate::config::{ReloadPoint, ReloadedSettings};
use crate::event::{EngineEvent, Question};
use crate::judge::{Judged, PreparedCall, judge, prepare};
use crate::state::change;
use crate::turn::{Event, Judgement};

impl Session {
    /// Returns the rules in force, with what changed in the settings since the last call.
    fn rules_now(&mut self) -> Rulebook {
        self.follow_settings(ReloadPoint::Call)
    }

    /// Takes up what changed in the settings and returns the rules in force.
    pub(super) fn follow_settings(&mut self, moment: ReloadPoint) -> Rulebook {
        let book = self.state.get().permission.rulebook.clone();
        match self.poll_settings.as_mut().and_then(|poll| poll(&book, moment)) {
            Some(ReloadedSettings { rulebook, settings }) => {
                change(&self.state, |state| {
                    state.permission.rulebook = rulebook.clone();
                    state.settings = settings;
                });
                rulebook
            }
            None => book,
        }
    }

    /// Judges a call; what it would do is kept with it, so that what was judged is what runs.
    pub(super) fn judge(&mut self, call: PreparedCall, underway: &mut Underway) {
        let book = self.rules_now();
        let mode = book.mode;
        let judged = judge(&self.toolbox, self.host.as_ref(), book, &call);
        let call = PreparedCall { effects: judged.effects.clone(), ..call };
        underway.prepared.insert(call.id.clone(), call.clone());
        if judged.decision.is_for_classifier(mode) && self.classify(&call, &judged.decision, underway) {
            return;
        }
        self.follow_verdict(underway, &call, &judged);
    }

    fn follow_verdict(&mut self, underway: &mut Underway, call: &PreparedCall, judged: &Judged) {
        match judged.decision.verdict {
            Verdict::Allow => self.decided(underway, call, Judgement::Run),
            Verdict::Ask if self.can_ask => self.ask(underway, call, judged),
            Verdict::Ask | Verdict::Deny => self.refuse(underway, call, judged),
        }
    }

    /// Puts a call to the classifier; false when there is none, or it has blocked too much to be of use.
    fn classify(&mut self, call: &PreparedCall, decision: &Decision, underway: &Underway) -> bool {
        let Some(classifier) = self.classifier.clone().filter(|_| !self.blocks.are_too_many()) else {
            return false;
        };
        let (inbox, id) = (underway.inbox.clone(), call.id.clone());
        let question = ClassifierCall {
            tool: call.tool.clone(),
            input: call.input.clone(),
            reason: decision.reason.to_string(),
        };
        tokio::spawn(async move {
            let said = classifier.classify(question).await;
            drop(inbox.send(Message::Classified(id, said)));
        });
        true
    }

    /// Takes what the classifier said. Without an answer, or after a change of mode, people are asked.
    pub(super) fn classified(&mut self, underway: &mut Underway, id: &ToolUseId, said: Option<Classified>) {
        let Some(call) = underway.prepared.get(id).cloned() else { return };
        let book = self.rules_now();
        let mode = book.mode;
        let mut judged = judge(&self.toolbox, self.host.as_ref(), book, &call);
        if let Some(said) = said.filter(|_| judged.decision.is_for_classifier(mode)) {
            self.blocks.count(&said);
            judged.decision = said.into();
        }
        self.follow_verdict(underway, &call, &judged);
    }

    fn ask(&mut self, underway: &mut Underway, call: &PreparedCall, judged: &Judged) {
        let id = self.env.random.uuid_v4().to_string();
        underway.questions.insert(id.clone(), call.clone());
        let reason = &judged.decision.reason;
        self.tell(EngineEvent::Asked(Question {
            id,
            tool: call.tool.clone(),
            call: call.id.clone(),
            input: call.input.clone(),
            reason: reason.to_string(),
            reason_kind: reason.kind(),
            links: links(&call.effects),
            blocked_path: reason.path().map(std::path::Path::to_path_buf),
            suggestions: if self.grants.may_grant { judged.suggestions.clone() } else { Vec::new() },
        }));
    }

    /// Takes the answer to a question; one that comes too late, or twice, changes nothing.
    pub(super) fn answered(&mut self, underway: &mut Underway, question: &str, answer: Answer) {
        let Some(call) = underway.questions.remove(question) else { return };
        match answer {
            Answer::Allow { input, updates } => {
                self.blocks.forgive();
                let has_changed = !updates.is_empty();
                updates.into_iter().for_each(|update| self.grant(update));
                match input.filter(|input| *input != call.input) {
                    Some(input) => self.run_changed(underway, &call, input),
                    None => self.run_unless_denied(underway, &call),
                }
                if has_changed {
                    self.judge_open_questions(underway);
                }
            }
            Answer::Deny { message, stops } => {
                let mut outcome = ToolOutcome::error(message);
                if stops {
                    outcome.structured = Value::from("User rejected tool use");
                }
                let judgement = if stops { Judgement::Stop(outcome) } else { Judgement::Refuse(outcome) };
                self.deny(underway, &call, judgement);
            }
        }
    }

    /// A yes holds for what was asked about, unless a rule forbids it by now.
    fn run_unless_denied(&mut self, underway: &mut Underway, call: &PreparedCall) {
        let book = self.rules_now();
        let judged = judge(&self.toolbox, self.host.as_ref(), book, call);
        match judged.decision.verdict {
            Verdict::Deny if is_forbidden(&judged.decision) => self.refuse(underway, call, &judged),
            _ => self.decided(underway, call, Judgement::Run),
        }
    }

    /// An answer with other input is a new call: checked and judged again, so that a deny rule holds against it.
    fn run_changed(&mut self, underway: &mut Underway, call: &PreparedCall, input: Value) {
        let tool_use = ToolUse { id: call.id.clone(), name: call.tool.clone(), input };
        let changed = match prepare(&self.toolbox, self.host.as_ref(), &tool_use) {
            Ok((changed, _)) => changed,
            Err(outcome) => return self.decided(underway, call, Judgement::Refuse(*outcome)),
        };
        let book = self.rules_now();
        let judged = judge(&self.toolbox, self.host.as_ref(), book, &changed);
        let changed = PreparedCall { effects: judged.effects, ..changed };
        underway.prepared.insert(changed.id.clone(), changed.clone());
        self.run_unless_denied(underway, &changed);
    }

    /// Withdraws questions that a grant has answered.
    fn judge_open_questions(&mut self, underway: &mut Underway) {
        let book = self.rules_now();
        let is_open = |call: &PreparedCall| {
            judge(&self.toolbox, self.host.as_ref(), book.clone(), call).decision.verdict != Verdict::Allow
        };
        let (open, settled): (Vec<_>, Vec<_>) =
            underway.questions.drain().partition(|(_, call)| is_open(call));
        underway.questions.extend(open);
        for (question, call) in settled {
            self.tell(EngineEvent::Unasked { question });
            self.decided(underway, &call, Judgement::Run);
        }
    }

    /// Makes a change that an answer asked for: now, and in the settings file it is for.
    fn grant(&mut self, update: Update) {
        let update = match update {
            Update::AddDirectories(dirs, to) => Update::AddDirectories(self.host.real_dirs(&dirs), to),
            Update::RemoveDirectories(dirs, to) => Update::RemoveDirectories(self.host.real_dirs(&dirs), to),
            other => other,
        };
        if let Some(why) = self.refusal(&update) {
            return self.tell(EngineEvent::Trouble(format!("A permission was not changed: {why}")));
        }
        let mut book = self.state.get().permission.rulebook.clone();
        let complaints = update.apply(&mut book);
        self.host.set_dirs(&book.dirs);
        change(&self.state, |state| state.permission.rulebook = book.clone());
        for bad in &complaints {
            self.tell(EngineEvent::Trouble(format!("A permission was not changed: {bad}")));
        }
        if update.destination() == Destination::Session || !complaints.is_empty() {
            return;
        }
        let saved = match self.grants.save.as_mut() {
            Some(save) => save(&update),
            None => Err("this session has no settings files".to_owned()),
        };
        if let Err(why) = saved {
            let text = format!("A permission holds for this session and was not saved: {why}");
            self.tell(EngineEvent::Trouble(text));
        }
    }

    fn refusal(&self, update: &Update) -> Option<&'static str> {
        match update {
            Update::SetMode(Mode::BypassPermissions, _) if !self.grants.may_bypass => {
                Some("the session was not started so that permissions could be bypassed")
            }
            Update::AddRules(change) | Update::ReplaceRules(change)
                if change.list == RuleList::Allow && !self.grants.may_grant =>
            {
                Some("only the administrator's rules may allow calls here")
            }
            _ => None,
        }
    }

    fn refuse(&mut self, underway: &mut Underway, call: &PreparedCall, judged: &Judged) {
        let can_grant = self.grants.may_grant;
        let outcome = ToolOutcome::error(denial_text(call, judged, can_grant));
        self.deny(underway, call, Judgement::Refuse(outcome));
    }

    fn deny(&mut self, underway: &mut Underway, call: &PreparedCall, judgement: Judgement) {
        let denial = Denial {
            tool_name: call.tool.clone(),
            tool_use_id: call.id.to_string(),
            tool_input: call.input.clone(),
        };
        change(&self.state, |state| state.permission.denials.push(denial));
        self.decided(underway, call, judgement);
    }

    fn decided(&self, underway: &Underway, call: &PreparedCall, judgement: Judgement) {
        drop(underway.inbox.send(Message::Other(Event::Judged { call: call.id.clone(), judgement })));
    }
}

/// Tells a prohibition from a mode that only does not ask.
fn is_forbidden(decision: &Decision) -> bool {
    decision.verdict == Verdict::Deny && !matches!(decision.reason, Reason::NotAsked(..))
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

fn denial_text(call: &PreparedCall, judged: &Judged, can_grant: bool) -> String {
    let Judged { decision, suggestions, .. } = judged;
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
