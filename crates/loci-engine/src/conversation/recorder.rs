//! The transcript as the engine keeps it: what is recorded is written first, then seen.
//!
//! Every entry goes through [`Recorder::append`]: sealed, written to the log, pushed to the projection that the
//! next request is made from. There is no second road to the model, so a resumed session sends what this one sent.

mod compaction;
mod prompts;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::session::config::{DeferredCall, LoadedHistory, resume_prompt};
use loci_context::{Clearing, Fold, Projection, Replaced};
use loci_core::conversation::Repair;
use loci_core::cost_state::CostState;
use loci_core::entry::draft::{ApiErrorFields, Draft, Metadata, Stamp};
use loci_core::entry::{Attachment, Entry};
use loci_core::file_history::SnapshotEntry;
use loci_core::ids::{EntryId, PromptId, ToolUseId};
use loci_core::message::{Block, Message};
use loci_core::stream::{Ended, Failure, Started};
use loci_core::tool::ToolOutcome;
use loci_stdx::{Env, rfc3339_millis};
use loci_storage::sessions::{LabelWatch, LogWarning, SessionLog};
use serde_json::{Map, Value, json};

pub(crate) use compaction::Shortened;

/// The text that stands for the user when a response was stopped.
const INTERRUPTED: &str = "[Request interrupted by user]";
/// The same, when tools were stopped.
const INTERRUPTED_TOOLS: &str = "[Request interrupted by user for tool use]";

/// Writes one session's transcript and knows what the model is to see.
pub(crate) struct Recorder {
    env: Env,
    log: SessionLog,
    stamp: Stamp,
    tail: Option<EntryId>,
    /// Whether the next entry begins a branch that nothing points at yet.
    begins_branch: bool,
    /// The call that an earlier run put off, until it is taken up.
    deferred: Option<DeferredCall>,
    repairs: Vec<Repair>,
    /// What is to be said of tasks that ended with the session.
    lost_tasks: Option<String>,
    projection: Projection,
    /// The entries behind the projection.
    path: Vec<Arc<Entry>>,
    /// Results among them that are sent as something else.
    replaced: Replaced,
    prompt: PromptId,
    /// The id of the prompt that is about to be recorded.
    next_prompt: Option<PromptId>,
    /// Context that stands before the next prompt.
    before_prompt: Vec<Attachment>,
    last_prompt: Option<String>,
    inherited: Vec<Arc<Entry>>,
    title: Option<String>,
    agent: Option<String>,
    /// The goal that the transcript tells.
    goal: Option<String>,
    labels: LabelWatch,
    /// What was last said of the session's cost.
    told_cost: Map<String, Value>,
    calls: HashMap<ToolUseId, EntryId>,
    reserved: HashMap<usize, EntryId>,
    trouble: Vec<String>,
}

impl Recorder {
    /// Starts where the past ends; nothing is written before the next prompt.
    pub(crate) fn new(env: Env, log: SessionLog, stamp: Stamp, past: LoadedHistory) -> Self {
        let deferred = past.deferred_call();
        let path = past.replaced.view(past.path);
        Self {
            projection: Projection::with_replaced(path.iter().map(Arc::as_ref), &past.replaced),
            lost_tasks: None,
            path,
            replaced: past.replaced,
            env,
            log,
            stamp,
            tail: past.leaf,
            begins_branch: past.begins_branch,
            repairs: if deferred.is_some() { Vec::new() } else { past.repairs },
            deferred,
            prompt: PromptId::new(""),
            next_prompt: None,
            before_prompt: Vec::new(),
            last_prompt: None,
            inherited: past.inherited,
            title: past.title,
            agent: past.agent,
            goal: past.goal,
            labels: past.labels,
            told_cost: Map::new(),
            calls: HashMap::new(),
            reserved: HashMap::new(),
            trouble: Vec::new(),
        }
    }

    /// Returns the conversation as it is sent; `opening`, where there is one, opens the first message.
    pub(crate) fn messages(&self, opening: Option<&Block>) -> Vec<Message> {
        self.projection.messages(opening)
    }

    /// Returns the entries that the conversation is made from, oldest first.
    pub(crate) fn path(&self) -> &[Arc<Entry>] {
        &self.path
    }

    /// Tells whether the conversation can be sent as it stands: something was said, and nothing has to be mended.
    pub(crate) fn is_open(&self) -> bool {
        !self.path.is_empty() && self.repairs.is_empty()
    }

    /// Returns which of their results are sent as something else.
    pub(crate) fn replaced(&self) -> &Replaced {
        &self.replaced
    }

    /// Takes what went wrong with writing, to be told once.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trouble)
    }

    /// Returns what entries are stamped with.
    pub(crate) fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// Notes the branch that later entries are stamped with.
    pub(crate) fn set_branch(&mut self, branch: String) {
        self.stamp.git_branch = branch;
    }

    /// Notes where later entries of an agent say that it works.
    pub(crate) fn set_cwd(&mut self, cwd: &Path) {
        if Path::new(&self.stamp.cwd) != cwd {
            self.stamp.cwd = cwd.display().to_string();
        }
    }

    /// Records that the session works elsewhere from now on: in a worktree, or no longer.
    pub(crate) fn moved(&mut self, cwd: &Path, worktree: Value) {
        self.stamp.cwd = cwd.display().to_string();
        if let Some(branch) = loci_storage::project::head_branch(cwd) {
            self.stamp.git_branch = branch;
        }
        let entry = self.metadata(&Metadata::WorktreeState { worktree });
        self.log(entry.as_slice());
    }

    /// Notes the session's name of three words, which later entries carry.
    pub(crate) fn set_slug(&mut self, slug: String) {
        self.stamp.slug = Some(slug);
    }

    /// Takes the call that an earlier run put off; what comes next is its result. A fork writes what it takes over now.
    pub(crate) fn take_deferred(&mut self) -> Option<DeferredCall> {
        let deferred = self.deferred.take()?;
        self.prompt = deferred.prompt.clone().unwrap_or_else(|| PromptId::new(deferred.source.as_str()));
        self.calls.insert(deferred.call.id.clone(), deferred.source.clone());
        self.write_inherited();
        Some(deferred)
    }

    /// Writes what a fork takes over, which else waits for its first prompt.
    pub(crate) fn write_inherited(&mut self) {
        let inherited = std::mem::take(&mut self.inherited);
        if inherited.is_empty() {
            return;
        }
        let title = self.title.take().map(|title| Metadata::CustomTitle { title });
        let title = title.and_then(|title| self.metadata(&title));
        let mode = self.metadata(&Metadata::Mode);
        let fork: Vec<Arc<Entry>> = mode.into_iter().chain(inherited).chain(title).collect();
        self.log(&fork);
    }

    /// Tells whether an earlier run put a call off.
    pub(crate) fn has_deferred(&self) -> bool {
        self.deferred.is_some()
    }

    /// Takes the context that was to stand before the next prompt.
    pub(crate) fn take_before_prompt(&mut self) -> Vec<Attachment> {
        std::mem::take(&mut self.before_prompt)
    }

    /// Adds context that is recorded before the next prompt.
    pub(crate) fn add_before_prompt(&mut self, attachments: Vec<Attachment>) {
        self.before_prompt.extend(attachments);
    }

    /// Returns the id of the prompt at hand, once there was one.
    pub(crate) fn prompt_id(&self) -> Option<&PromptId> {
        self.next_prompt.as_ref().or(Some(&self.prompt)).filter(|id| !id.as_str().is_empty())
    }

    /// Gives the prompt that is about to be recorded its id, so that it can be spoken of.
    pub(crate) fn reserve_prompt(&mut self) {
        self.next_prompt = Some(PromptId::new(self.env.random.uuid_v4().to_string()));
    }

    /// Reserves the id of a block that is complete but not yet recorded, so that front ends can name it.
    pub(crate) fn reserve(&mut self, index: usize) -> EntryId {
        let id = self.fresh_id();
        self.reserved.insert(index, id.clone());
        id
    }

    /// Records a response, one entry per block, in one write.
    pub(crate) fn response(&mut self, started: &Started, blocks: &[Block], ended: Option<&Ended>) {
        let entries: Vec<Arc<Entry>> = blocks
            .iter()
            .enumerate()
            .filter_map(|(index, block)| {
                let message = assistant_message(started, block, ended);
                let id = self.reserved.remove(&index);
                let entry = self.seal(&Draft::assistant(message, started.request_id.clone()), id)?;
                if let (Some(call), Some(id)) = (block.tool_use(), &entry.head().uuid) {
                    self.calls.insert(call.id, id.clone());
                }
                Some(entry)
            })
            .collect();
        self.reserved.clear();
        self.write(&entries);
    }

    /// Records the answer to a call, under the entry that holds the call.
    pub(crate) fn tool_result(&mut self, call: &ToolUseId, outcome: &ToolOutcome) -> Option<Arc<Entry>> {
        let source = self.calls.remove(call).or_else(|| self.tail.clone())?;
        let block = Block::new_tool_result(call, &outcome.content.to_value(), outcome.is_error).to_value();
        let draft = Draft::tool_result(self.prompt.clone(), block, outcome.structured.clone(), source);
        let mut entries: Vec<Arc<Entry>> = self.seal(&draft, None).into_iter().collect();
        for note in &outcome.attachments {
            entries.extend(self.seal(&Draft::attachment(note.attachment.clone()), None));
        }
        self.write(&entries);
        entries.into_iter().next()
    }

    /// Records the text of a skill behind the result of the call that used it.
    pub(crate) fn skill_text(&mut self, call: &ToolUseId, text: &str) {
        let content = json!([{"type": "text", "text": text}]);
        self.append(&Draft::skill_text(self.prompt.clone(), content, call.clone()));
    }

    /// Records words to the model that no person wrote.
    pub(crate) fn nudge(&mut self, text: &str) {
        let content = json!([{"type": "text", "text": text}]);
        self.append(&Draft::meta(Some(self.prompt.clone()), content));
    }

    /// Records what was said before an interrupt.
    pub(crate) fn partial_text(&mut self, text: &str) -> Option<Arc<Entry>> {
        let id = self.env.random.uuid_v4().to_string();
        self.append(&Draft::synthetic(&id, text))
    }

    /// Records a failure of the API.
    pub(crate) fn api_error(&mut self, text: &str, failure: &Failure) -> Option<Arc<Entry>> {
        let id = self.env.random.uuid_v4().to_string();
        let error = ApiErrorFields { category: failure.category().to_owned(), status: failure.status };
        self.append(&Draft::api_error(&id, text, error))
    }

    /// Records that the user stopped it.
    pub(crate) fn interrupted(&mut self, while_tools_ran: bool) -> Option<Arc<Entry>> {
        let text = if while_tools_ran { INTERRUPTED_TOOLS } else { INTERRUPTED };
        let content = json!([{"type": "text", "text": text}]);
        self.append(&Draft::marker(self.prompt.clone(), content))
    }

    /// Records which backups belong to a prompt.
    pub(crate) fn snapshot(&mut self, snapshot: &SnapshotEntry) {
        match snapshot.seal() {
            Ok(entry) => self.log(&[Arc::new(entry)]),
            Err(error) => self.trouble.push(format!("A snapshot could not be written as JSON: {error}")),
        }
    }

    /// Returns the entry that holds a call which has no result yet.
    pub(crate) fn entry_of(&self, call: &ToolUseId) -> Option<EntryId> {
        self.calls.get(call).cloned()
    }

    /// Records context behind what was said last.
    pub(crate) fn attachment(&mut self, attachment: Attachment) {
        self.append(&Draft::attachment(attachment));
    }

    /// Records that results are sent as something else from now on.
    pub(crate) fn clear(&mut self, clearing: &Clearing) {
        let replacements = clearing.replacements.iter();
        let line = Metadata::ContentReplacement {
            replacements: replacements.map(|it| (it.call.clone(), it.content.clone())).collect(),
            after: self.tail.clone(),
            freed_tokens: clearing.freed,
        };
        let Some(entry) = self.metadata(&line) else { return };
        self.log(&[entry]);
        self.replaced.add(clearing, self.tail.clone());
        self.project();
    }

    /// Records that a stretch is sent as its summary from now on; nothing happens when it is not on the path.
    pub(crate) fn fold(&mut self, fold: Fold) -> bool {
        let mut path = self.path.clone();
        let Some(freed_tokens) = fold.apply(&mut path, &self.replaced) else { return false };
        let Fold { id, first, last, summary, said_tokens } = fold.clone();
        let after = self.tail.clone();
        let line = Metadata::ContextCollapse { id, first, last, summary, said_tokens, after, freed_tokens };
        let Some(entry) = self.metadata(&line) else { return false };
        self.log(&[entry]);
        self.path = path;
        self.replaced.add_fold(fold, self.tail.clone(), freed_tokens);
        self.project();
        true
    }

    /// Makes the messages anew from the path.
    fn project(&mut self) {
        self.projection = Projection::with_replaced(self.path.iter().map(Arc::as_ref), &self.replaced);
    }

    /// Mends a session that ended in the middle of something, before it goes on.
    fn mend(&mut self) -> Vec<Arc<Entry>> {
        let mut previous = None;
        let mut entries = Vec::new();
        for repair in std::mem::take(&mut self.repairs) {
            self.tail = repair.parent(previous.as_ref()).cloned().or_else(|| self.tail.clone());
            let id = self.env.random.uuid_v4().to_string();
            let draft = repair.draft(&id, resume_prompt(&self.env.vars));
            entries.extend(self.seal(&draft, None));
            previous.clone_from(&self.tail);
        }
        entries
    }

    /// Marks where the conversation stands and what the session used, and makes all of it safe on disk.
    pub(crate) fn settle(&mut self, cost: Option<&CostState>) {
        // An agent's transcript has one line of conversation and no names, so nothing points into it.
        if let Some(leaf) = self.tail.clone().filter(|_| self.stamp.agent.is_none()) {
            let mut lines = self.overdue_labels();
            // Whoever goes on with the session reads the end of it alone.
            lines.extend(self.goal.clone().map(|goal| Metadata::Goal { condition: Some(goal) }));
            lines.extend(cost.and_then(|cost| self.cost_line(cost)));
            lines.push(Metadata::LastPrompt { prompt: self.last_prompt.clone(), leaf });
            let entries: Vec<Arc<Entry>> = lines.iter().filter_map(|line| self.metadata(line)).collect();
            self.write(&entries);
        }
        // What could not be synced is kept by the log, which says so in its own words.
        drop(self.log.sync());
        self.collect_warnings();
    }

    /// Records what the session used since that was last said.
    pub(crate) fn cost(&mut self, cost: &CostState) {
        if self.tail.is_some() {
            let entry = self.cost_line(cost).and_then(|line| self.metadata(&line));
            self.write(entry.as_slice());
        }
    }

    fn cost_line(&mut self, cost: &CostState) -> Option<Metadata> {
        let fields = cost.to_fields();
        let is_news = self.told_cost != fields;
        self.told_cost.clone_from(&fields);
        is_news.then_some(Metadata::CostState { fields })
    }

    /// Returns true while entries wait for a disk that takes them.
    pub(crate) fn has_unsaved(&self) -> bool {
        self.log.has_unsaved()
    }

    /// Tries to write what is waiting.
    pub(crate) fn save_again(&mut self) {
        // What still cannot be written goes on waiting; the log has said so.
        drop(self.log.sync());
        self.collect_warnings();
    }

    /// Writes what is waiting for the last time, or keeps it elsewhere; returns false when some of it is lost.
    pub(crate) fn close(&mut self) -> bool {
        // The log has said what became of it.
        drop(self.log.close());
        self.collect_warnings();
        !self.log.has_lost_lines()
    }

    /// Records a name for the session: with its first prompt, if that is yet to come.
    pub(crate) fn name(&mut self, title: String) {
        if self.tail.is_none() {
            self.title = Some(title);
            return;
        }
        let entry = self.metadata(&Metadata::CustomTitle { title });
        self.write(entry.as_slice());
    }

    /// Records the goal that the session works towards, where that is news; tells whether it is.
    pub(crate) fn note_goal(&mut self, condition: Option<&str>) -> bool {
        if self.goal.as_deref() == condition || self.tail.is_none() {
            return false;
        }
        self.goal = condition.map(str::to_owned);
        let entry = self.metadata(&Metadata::Goal { condition: self.goal.clone() });
        self.write(entry.as_slice());
        true
    }

    /// Records a name that nobody chose.
    pub(crate) fn generated_title(&mut self, title: String) {
        let entry = self.metadata(&Metadata::GeneratedTitle { title });
        self.write(entry.as_slice());
    }

    /// Returns the names that have moved out of sight of those who read only the end of the file.
    fn overdue_labels(&mut self) -> Vec<Metadata> {
        let Some(path) = self.log.path() else { return Vec::new() };
        // A file that cannot be read now is looked at again after the next turn.
        self.labels.overdue(path).unwrap_or_default()
    }

    fn append(&mut self, draft: &Draft) -> Option<Arc<Entry>> {
        let entry = self.seal(draft, None)?;
        self.write(std::slice::from_ref(&entry));
        Some(entry)
    }

    /// Gives a draft its id, place and time; the next entry hangs under it.
    fn seal(&mut self, draft: &Draft, id: Option<EntryId>) -> Option<Arc<Entry>> {
        let id = id.unwrap_or_else(|| self.fresh_id());
        let parent = draft.fixed_parent().cloned().or_else(|| self.tail.clone());
        let timestamp = rfc3339_millis(self.env.clock.now());
        match draft.seal(&self.stamp, &id, parent.as_ref(), &timestamp) {
            Ok(entry) => {
                self.tail = Some(id);
                Some(Arc::new(entry))
            }
            Err(error) => {
                self.trouble.push(format!("An entry could not be written as JSON: {error}"));
                None
            }
        }
    }

    fn metadata(&self, metadata: &Metadata) -> Option<Arc<Entry>> {
        let timestamp = rfc3339_millis(self.env.clock.now());
        metadata.seal(&self.stamp.session_id, &timestamp).ok().map(Arc::new)
    }

    /// Writes entries in one go, then lets the model see them. What cannot be written now is kept by the log and
    /// written later; the conversation goes on.
    fn write(&mut self, entries: &[Arc<Entry>]) {
        self.log(entries);
        for entry in entries {
            self.projection.push(entry);
            if entry.head().kind.is_chain() {
                self.path.push(Arc::clone(entry));
            }
        }
    }

    fn log(&mut self, entries: &[Arc<Entry>]) {
        let lines: Vec<&Entry> = entries.iter().map(Arc::as_ref).collect();
        drop(self.log.append(&lines));
        self.collect_warnings();
    }

    fn collect_warnings(&mut self) {
        self.trouble.extend(self.log.take_warning().map(|trouble| match trouble {
            LogWarning::Began { message, hint } => format!("{message}\n{hint}"),
            LogWarning::Ended => "The session is being saved again".to_owned(),
            LogWarning::Kept { message } | LogWarning::Replaced { message } => message,
        }));
    }

    fn fresh_id(&self) -> EntryId {
        EntryId::new(self.env.random.uuid_v4().to_string())
    }
}

/// Returns the message object of one block, as the transcript has it.
pub(crate) fn assistant_message(started: &Started, block: &Block, ended: Option<&Ended>) -> Value {
    let usage = ended.map_or(&started.usage, |ended| &ended.usage);
    let mut message = json!({
        "id": started.message_id.as_str(),
        "type": "message",
        "role": "assistant",
        "model": started.model,
        "content": [block.to_value()],
        "stop_reason": ended.and_then(|ended| ended.stop_reason.as_deref()),
        "stop_sequence": ended.and_then(|ended| ended.stop_sequence.as_deref()),
        "usage": usage.to_full_value(),
        "stop_details": null,
    });
    if let Some(done) = ended.and_then(|ended| ended.context_management.clone()) {
        message["context_management"] = *done;
    }
    message
}
