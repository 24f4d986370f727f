//! How a conversation is spoken to: prompts, commands, tasks of agents and notices of work that ended, each with what
//! precedes it in the transcript.
//!
//! Whatever opens a turn goes through [`Recorder::opening`]: its way through the queue, a fork's past, what mends a
//! conversation that was cut short, and the pointer where a branch begins.

use std::path::Path;
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::entry::draft::{Draft, Metadata};
use loci_core::ids::{EntryId, PromptId};
use loci_core::message::Block;
use loci_storage::sessions::{last_prompt_text, list_agent_files};
use serde_json::{Value, json};

use super::Recorder;
use crate::command::Prompt;
use crate::extensions::local_command::LocalCommandOutput;
use crate::session::lost_tasks::{self, LostTask};

impl Recorder {
    /// Records a prompt: queued, taken, said.
    pub(crate) fn prompt(&mut self, prompt: &Prompt, mode: &str) -> Option<Arc<Entry>> {
        let text = prompt.typed_text();
        let mut entries = self.opening(&text);
        self.last_prompt = Some(last_prompt_text(&text));
        let value = serde_json::to_value(&prompt.content).unwrap_or_else(|_| Value::from(text));
        let draft = Draft::prompt(self.prompt.clone(), value, mode, "sdk");
        let entry = self.seal(&draft, prompt.id.clone());
        entries.extend(entry.clone());
        self.write(&entries);
        entry
    }

    /// Records that a command of the user is carried out, in a conversation that is there already.
    pub(crate) fn command(&mut self, text: &str) {
        let entries = self.opening(text);
        self.write(&entries);
    }

    /// Records a command that needed no model, and what was said.
    pub(crate) fn local_command(&mut self, output: &LocalCommandOutput) {
        let name = &output.name;
        let argument = output.argument.as_deref().unwrap_or_default();
        let typed = format!("/{name} {argument}");
        let mut entries = self.opening(typed.trim());
        let tags = format!(
            "<command-name>/{name}</command-name>\n<command-message>{name}</command-message>\n\
             <command-args>{argument}</command-args>"
        );
        for content in [tags, command_output(&output.text, output.is_error)] {
            entries.extend(self.seal(&local_command(content), None));
        }
        self.write(&entries);
    }

    /// Records what was said by a command whose prompt stands in the conversation.
    pub(crate) fn command_output(&mut self, text: &str, is_error: bool) {
        self.append(&local_command(command_output(text, is_error)));
    }

    /// Records a command of the shell that the person runs.
    pub(crate) fn shell_input(&mut self, command: &str) -> Option<Arc<Entry>> {
        let mut entries = self.opening(&format!("!{command}"));
        let content = Value::from(format!("<bash-input>{command}</bash-input>"));
        let entry = self.seal(&Draft::marker(self.prompt.clone(), content), None);
        entries.extend(entry.clone());
        self.write(&entries);
        entry
    }

    /// Records what it printed.
    pub(crate) fn shell_output(&mut self, stdout: &str, stderr: &str) -> Option<Arc<Entry>> {
        // What it printed must not end the marks around it.
        let inner = |text: &str| text.replace("</bash-", "</ bash-");
        let (stdout, stderr) = (inner(stdout), inner(stderr));
        let text = format!("<bash-stdout>{stdout}</bash-stdout><bash-stderr>{stderr}</bash-stderr>");
        self.append(&Draft::marker(self.prompt.clone(), Value::from(text)))
    }

    /// Records what an agent is to do.
    pub(crate) fn instruction(&mut self, text: &str) {
        self.prompt = PromptId::new(self.env.random.uuid_v4().to_string());
        for attachment in std::mem::take(&mut self.before_prompt) {
            self.append(&Draft::attachment(attachment));
        }
        self.append(&Draft::meta(Some(self.prompt.clone()), Value::from(text)));
    }

    /// Records what an agent is told: that which another conversation answers its calls with, then the task.
    pub(crate) fn task(&mut self, text: &str, prompt: &PromptId, results: &[Block]) -> Option<Arc<Entry>> {
        if !prompt.as_str().is_empty() || self.prompt.as_str().is_empty() {
            self.prompt = prompt.clone();
        }
        let mut entries = self.mend();
        for attachment in std::mem::take(&mut self.before_prompt) {
            entries.extend(self.seal(&Draft::attachment(attachment), None));
        }
        entries.extend(self.lost_tasks_entry());
        let content = match results.is_empty() {
            true => Value::from(text),
            false => {
                let results = results.iter().map(Block::to_value);
                results.chain([json!({"type": "text", "text": text})]).collect()
            }
        };
        let entry = self.seal(&Draft::marker(self.prompt.clone(), content), None);
        entries.extend(entry.clone());
        self.write(&entries);
        entry
    }

    /// Records that work beside the conversation has ended: queued, taken, said.
    pub(crate) fn notification(&mut self, text: &str, mode: &str) {
        if self.stamp.agent.is_some() {
            let prompt = self.prompt.clone();
            self.append(&Draft::task_notification(prompt, json!([{"type": "text", "text": text}])));
            return;
        }
        let mut entries = self.opening(text);
        entries.extend(
            self.seal(&Draft::notification_prompt(self.prompt.clone(), Value::from(text), mode), None),
        );
        self.write(&entries);
    }

    /// Takes note of what is to be said to the model of tasks that ended with the session; returns them.
    pub(crate) fn find_lost_tasks(&mut self, agents_dir: Option<&Path>) -> Vec<LostTask> {
        let lost = lost_tasks::find(&self.path, || agents_dir.map(list_agent_files).unwrap_or_default());
        self.lost_tasks = lost.notice;
        lost.tasks
    }

    fn lost_tasks_entry(&mut self) -> Option<Arc<Entry>> {
        let notice = self.lost_tasks.take()?;
        let content = json!([{"type": "text", "text": notice}]);
        self.seal(&Draft::task_notification(self.prompt.clone(), content), None)
    }

    /// Returns what precedes a prompt or a command: its way through the queue, before the first one the session's
    /// name, and what mends a past that was cut short.
    ///
    /// A fork begins here: what it takes over is written now, and is in the projection already.
    fn opening(&mut self, prompt: &str) -> Vec<Arc<Entry>> {
        let fresh = || PromptId::new(self.env.random.uuid_v4().to_string());
        self.prompt = self.next_prompt.take().unwrap_or_else(fresh);
        let inherited = std::mem::take(&mut self.inherited);
        let queued = [Metadata::Enqueue { content: prompt.to_owned() }, Metadata::Dequeue];
        let mut entries: Vec<Arc<Entry>> = queued.iter().filter_map(|line| self.metadata(line)).collect();
        if !inherited.is_empty() {
            let mode = self.metadata(&Metadata::Mode);
            let fork: Vec<Arc<Entry>> = mode.into_iter().chain(entries.drain(..)).chain(inherited).collect();
            self.log(&fork);
        }
        let title = self.title.take().map(|title| Metadata::CustomTitle { title });
        entries.extend(title.and_then(|title| self.metadata(&title)));
        let agent = self.agent.take().map(|agent| Metadata::AgentSetting { agent });
        entries.extend(agent.and_then(|agent| self.metadata(&agent)));
        let left = self.tail.clone();
        let mended = self.mend();
        let fork_point = mended.first().map_or(left.as_ref(), |first| first.head().parent.as_ref());
        let begins_branch = std::mem::take(&mut self.begins_branch) || fork_point != left.as_ref();
        entries.extend(fork_point.filter(|_| begins_branch).and_then(|leaf| self.branch_pointer(leaf)));
        entries.extend(mended);
        for attachment in std::mem::take(&mut self.before_prompt) {
            entries.extend(self.seal(&Draft::attachment(attachment), None));
        }
        entries.extend(self.lost_tasks_entry());
        entries
    }

    /// Writes down which branch the conversation goes on with. A person who has chosen one has said all there is to say:
    /// the session is found there again, even if nothing follows.
    pub(crate) fn point_at_chosen_branch(&mut self) {
        if let Some(tail) = self.tail.clone().filter(|_| std::mem::take(&mut self.begins_branch)) {
            let pointer = self.branch_pointer(&tail);
            self.write(pointer.as_slice());
        }
    }

    /// Returns the line that says that the conversation goes on from an entry which others hang from already: a reader
    /// would take the branch that was pointed at last for the one that goes on.
    fn branch_pointer(&self, fork_point: &EntryId) -> Option<Arc<Entry>> {
        self.metadata(&Metadata::LastPrompt { prompt: None, leaf: fork_point.clone() })
    }
}

/// Returns the words of a command as an entry.
fn local_command(content: String) -> Draft {
    let fields = json!({"subtype": "local_command", "content": content, "level": "info", "isMeta": false});
    Draft::system(fields.as_object().cloned().unwrap_or_default())
}

/// Puts a mark around what a command said, which it cannot end itself.
fn command_output(text: &str, is_error: bool) -> String {
    let stream = if is_error { "stderr" } else { "stdout" };
    let said = text.replace("</local-command-", "</ local-command-");
    format!("<local-command-{stream}>{said}</local-command-{stream}>")
}
