//! Commands that become a prompt: typed skills, and skills that the model uses by itself.
//!
//! A typed one is opened like any prompt, with one step before it: hooks may refuse it, its commands run, and the words
//! that go to the model take the place of what was typed. Where any of that fails, nothing is sent.

use std::sync::Arc;

use loci_core::hooks::HookEvent;
use loci_core::message::{Block, Content};
use loci_core::skill::{SkillDefinition, SkillScope, Variables};
use loci_tools::{SKILL_TOOL, SkillCatalog, SkillTool, skill_name};
use serde_json::{Value, json};

use super::{Conversation, InboxMessage};
use crate::calls::CallLayer;
use crate::command::ToolChanges;
use crate::event::EngineEvent;
use crate::extension::{ExpansionGate, FeatureHooks, PromptExpansion};
use crate::prepared_call::PreparedCall;
use crate::skills::layer::{SkillLayer, UsedSkill};
use crate::skills::told_names;
use crate::skills::use_skill::{SkillPlace, SkillUse, TurnGrants};
use crate::slash_command::CommandCall;
use crate::turn::Event;

/// How many skills may stand at the beginning of one prompt.
const MOST_STACKED: usize = 6;

/// A typed command that has become words.
pub(crate) struct ExpandedPrompt {
    content: Content,
    /// What is recorded behind the prompt.
    attachments: Vec<Value>,
    grants: TurnGrants,
    /// Names and texts of what was used.
    used: Vec<(String, String)>,
}

impl Conversation {
    /// Takes up skills that came, went or changed; called before each turn.
    pub(super) fn take_up_skills(&mut self) {
        if self.agent.is_some() || !self.ctx.skills.poll() {
            return;
        }
        self.ctx.add_skill_commands();
        let is_denied = self.rules_now().is_tool_denied(SKILL_TOOL);
        if self.ctx.skills.has_any_for_model() && !is_denied && !self.offers_skills() {
            let catalog: Arc<dyn SkillCatalog> = Arc::clone(&self.ctx.skills) as _;
            let tool = Arc::new(SkillTool::new(catalog)) as _;
            self.change_tools(ToolChanges { added: vec![tool], removed: Vec::new() });
        }
    }

    /// Tells the model which skills it can use, as far as it does not know them.
    pub(super) fn tell_skills(&mut self) {
        if !self.offers_skills() {
            return;
        }
        let mut told = told_names(self.recorder.path());
        if let Some(listing) = self.ctx.skills.listing(&mut told) {
            self.recorder.attachment(listing);
        }
    }

    /// Tells whether the next request offers the Skill tool.
    fn offers_skills(&self) -> bool {
        let mut coming = self.tool_changes.iter().flat_map(|changes| &changes.added);
        self.toolbox.find(SKILL_TOOL).is_some() || coming.any(|tool| tool.descriptor().name == SKILL_TOOL)
    }

    /// Begins to make a prompt of a typed skill; the answer comes to the inbox.
    pub(super) fn expand(&mut self, call: CommandCall) {
        let typed = self.run.prompt.as_ref().map(|prompt| prompt.content.text()).unwrap_or_default();
        let ready = match self.prepare_typed(&call) {
            Ok(ready) => ready,
            Err(why) => return self.run.post(InboxMessage::Expanded(Err(why))),
        };
        let hooks = self.ctx.hooks.clone();
        let asks = hooks.has(HookEvent::UserPromptExpansion).then(|| {
            let expansion = PromptExpansion {
                kind: "slash_command",
                command: call.command.name.clone(),
                arguments: call.argument.clone().unwrap_or_default(),
                source: hook_source(ready.first().map(|(skill, _)| skill.skill.as_ref())).to_owned(),
                prompt: typed,
            };
            (expansion, self.hook_moment())
        });
        let (host, shell) = (Arc::clone(&self.host), self.toolbox.find_shared("Bash"));
        self.wait_for(async move {
            let mut attachments = Vec::new();
            if let Some((expansion, moment)) = asks {
                match hooks.before_expansion(expansion, moment).await {
                    ExpansionGate::Go { attachments: added } => attachments = added,
                    ExpansionGate::Block { reason } => return InboxMessage::Expanded(Err(reason)),
                }
            }
            let (mut blocks, mut grants, mut used) = (Vec::new(), TurnGrants::default(), Vec::new());
            for (ready, arguments) in ready {
                let name = ready.skill.name.clone();
                grants.join(ready.grants.clone());
                blocks.push(Block::new_text(&command_tags(&name, &arguments)));
                match ready.render(shell.clone(), host.as_ref()).await {
                    Ok(text) => {
                        blocks.push(Block::new_text(&text));
                        used.push((name, text));
                    }
                    Err(why) => return InboxMessage::Expanded(Err(why)),
                }
            }
            let content = Content::Blocks(blocks);
            InboxMessage::Expanded(Ok(Box::new(ExpandedPrompt { content, attachments, grants, used })))
        });
    }

    /// Goes on with a prompt that was a command.
    pub(super) fn expanded(&mut self, expanded: Result<Box<ExpandedPrompt>, String>) {
        let expanded = match expanded {
            Ok(expanded) => *expanded,
            Err(reason) => {
                self.run.prompt = None;
                self.run.tally.text.clone_from(&reason);
                return self.run.post(InboxMessage::Machine(Event::PromptBlocked { reason }));
            }
        };
        // One that came after an interrupt is not sent.
        let Some(prompt) = &mut self.run.prompt else { return };
        prompt.typed = Some(prompt.content.text());
        prompt.content = expanded.content;
        prompt.attachments.extend(expanded.attachments);
        if !expanded.grants.allow.is_empty() {
            prompt
                .attachments
                .push(json!({"type": "command_permissions", "allowedTools": expanded.grants.allow}));
        }
        self.grants.join(expanded.grants);
        for (name, text) in &expanded.used {
            self.skill_used(name, text);
        }
        self.submit_prompt();
    }

    /// Returns what wraps a call of the Skill tool; nothing for calls of others.
    pub(super) fn skill_layer(&mut self, call: &PreparedCall) -> Option<Arc<dyn CallLayer>> {
        if call.tool != SKILL_TOOL {
            return None;
        }
        let name = skill_name(&call.input);
        let arguments = call.input["args"].as_str().unwrap_or_default();
        let ready = match self.ctx.skills.find(name).filter(|skill| skill.is_for_model) {
            Some(skill) => SkillUse::prepare(&skill, arguments, &self.skill_place()),
            None => Err(format!("There is no skill `{name}` any more.")),
        };
        let shell = self.toolbox.find_shared("Bash");
        Some(Arc::new(SkillLayer::new(ready, shell, self.run.inbox.clone())))
    }

    /// Takes up a skill that a call has used: its text is recorded behind the call's result.
    pub(super) fn skill_called(&mut self, used: UsedSkill) {
        let UsedSkill { call, name, text, grants } = used;
        self.grants.join(grants);
        self.skill_used(&name, &text);
        self.run.skill_texts.insert(call, text);
    }

    fn skill_used(&mut self, name: &str, text: &str) {
        if self.agent.is_none() {
            self.ctx.skills.note_used(name, text);
        }
        if let Some(problem) = self.ctx.register_skill_hooks(name) {
            self.tell(EngineEvent::Warning(problem));
        }
    }

    /// Reads the skills that a prompt begins with, each with its arguments, and decides all about them.
    fn prepare_typed(&mut self, call: &CommandCall) -> Result<Vec<(SkillUse, String)>, String> {
        let mut rest = call.argument.clone().unwrap_or_default();
        let mut skills = vec![self.typed_skill(&call.command.name)?];
        while skills.len() < MOST_STACKED
            && let Some((name, behind)) = leading_command(&rest)
            && let Ok(skill) = self.typed_skill(name)
        {
            rest = behind.to_owned();
            skills.push(skill);
        }
        let place = self.skill_place();
        let prepared =
            skills.iter().map(|skill| Ok((SkillUse::prepare(skill, &rest, &place)?, rest.clone())));
        prepared.collect()
    }

    fn typed_skill(&self, name: &str) -> Result<Arc<SkillDefinition>, String> {
        let skill = self.ctx.skills.find(name).filter(|skill| skill.is_for_people);
        skill.ok_or_else(|| format!("There is no command /{name} any more."))
    }

    fn skill_place(&self) -> SkillPlace<'_> {
        let identity = self.ctx.identity.get();
        let mut variables = Variables::default();
        variables.set("CLAUDE_SESSION_ID", identity.id().as_str());
        variables.set("CLAUDE_PROJECT_DIR", identity.project_root().display().to_string());
        variables.set("CLAUDE_EFFORT", self.model.effort.clone().unwrap_or_else(|| "high".to_owned()));
        SkillPlace {
            toolbox: &self.toolbox,
            host: &self.host,
            book: self.rules_now(),
            variables,
            runs_commands: self.ctx.skills.runs_commands,
            cancel: self.run.calls.child_token(),
        }
    }
}

/// Splits the command that a text begins with from what follows.
fn leading_command(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    Some((word.strip_prefix('/')?, rest.trim_start()))
}

/// Returns the block that says which command was typed.
fn command_tags(name: &str, arguments: &str) -> String {
    format!(
        "<command-message>{name}</command-message>\n<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>"
    )
}

/// Returns where a command comes from, as hooks are told.
fn hook_source(skill: Option<&SkillDefinition>) -> &'static str {
    match skill.map(|skill| skill.source.scope) {
        Some(SkillScope::Managed) => "policySettings",
        Some(SkillScope::User) => "userSettings",
        Some(SkillScope::Project) => "projectSettings",
        Some(SkillScope::Plugin) => "plugin",
        Some(SkillScope::Bundled) | None => "builtin",
    }
}
