//! Commands that become a prompt: typed skills, and skills that the model uses by itself.
//!
//! A typed one is opened like any prompt, with one step before it: hooks may refuse it, its commands run, and the words
//! that go to the model take the place of what was typed. Where any of that fails, nothing is sent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loci_core::entry::Attachment;
use loci_core::hooks::HookEvent;
use loci_core::message::{Block, Content};
use loci_core::permission::{Call, Verdict, decide};
use loci_core::skill::{SkillDefinition, SkillScope, Variables};
use loci_core::tool::{CallEffects, ToolAttachment};
use loci_tools::{Host as _, SKILL_TOOL, SkillCatalog, SkillTool, skill_name};
use serde_json::json;

use super::context_sources::ContextSources;
use super::forked_skill::ForkedSkill;
use super::permits::Permits;
use super::running_turn::{PromptOpening, TurnCalls, TurnTasks};
use super::scope::ConversationScope;
use super::tool_set::ToolSet;
use super::{Conversation, InboxMessage, Prelude};
use crate::command::{Prompt, ToolChanges};
use crate::conversation::recorder::Recorder;
use crate::event::EngineEvent;
use crate::extensions::skills::announced_skills;
use crate::extensions::skills::layer::{SkillLayer, UsedSkill};
use crate::extensions::skills::use_skill::{SkillPlace, SkillUse, TurnGrants};
use crate::extensions::skills::used::has_skill_text;
use crate::extensions::slash_command::{CommandAction, CommandCall, split_command};
use crate::extensions::{ExpansionGate, FeatureHooks, PromptExpansion};
use crate::tools::calls::CallLayer;
use crate::tools::prepared_call::PreparedCall;
use crate::turn::Event;

/// How many skills may stand at the beginning of one prompt.
const MOST_STACKED: usize = 6;

/// A typed command that has become words.
pub(crate) struct ExpandedPrompt {
    content: Content,
    /// What is recorded behind the prompt.
    attachments: Vec<Attachment>,
    grants: TurnGrants,
    /// The names of what was used.
    used: Vec<String>,
    /// What is given to an agent, in the place of a question to the model.
    forked: Option<ForkedSkill>,
}

/// Events whose hooks may have run before the first turn, or run as it begins.
const EARLY_EVENTS: [HookEvent; 8] = [
    HookEvent::SessionStart,
    HookEvent::Setup,
    HookEvent::InstructionsLoaded,
    HookEvent::UserPromptSubmit,
    HookEvent::UserPromptExpansion,
    HookEvent::ConfigChange,
    HookEvent::DirectoryAdded,
    HookEvent::FileChanged,
];

impl Conversation {
    /// Reads all skills anew; returns what to say about that.
    pub(crate) fn reload_skills(&mut self) -> String {
        let before = self.scope.ctx.skills.reload();
        self.tools.offer_skills(&self.scope, &self.sources, &self.permits);
        let now = self.scope.ctx.skills.registry();
        let named = |label: &str, names: Vec<&str>| match names.is_empty() {
            true => String::new(),
            false => format!("; {label}: {}", names.join(", ")),
        };
        let came = now.iter().filter(|it| before.find(&it.name).is_none()).map(|it| it.name.as_str());
        let went = before.iter().filter(|it| now.find(&it.name).is_none()).map(|it| it.name.as_str());
        let is_changed =
            |it: &&Arc<SkillDefinition>| before.find(&it.name).is_some_and(|old| old.as_ref() != it.as_ref());
        let changed = now.iter().filter(is_changed).map(|it| it.name.as_str());
        let parts = [
            named("new", came.collect()),
            named("changed", changed.collect()),
            named("gone", went.collect()),
        ];
        format!("{} skills{}", now.iter().count(), parts.concat())
    }

    /// Goes on with a prompt that was a command.
    pub(super) fn expanded(&mut self, expanded: Result<Box<ExpandedPrompt>, String>) {
        let expanded = match expanded {
            Ok(expanded) => *expanded,
            Err(reason) => {
                self.run.opening.prompt = None;
                self.run.tally.text.clone_from(&reason);
                return self.run.tasks.post(InboxMessage::Machine(Event::PromptBlocked { reason }));
            }
        };
        // One that came after an interrupt is not sent.
        let Some(prompt) = &mut self.run.opening.prompt else { return };
        prompt.typed = Some(prompt.content.text());
        prompt.expand(expanded.content);
        prompt.attachments.extend(expanded.attachments);
        if !expanded.grants.allow.is_empty() {
            let allowed_tools = expanded.grants.allow.clone();
            prompt.attachments.push(Attachment::CommandPermissions { allowed_tools });
        }
        self.permits.grants.join(expanded.grants);
        for name in &expanded.used {
            self.scope.skill_used(name);
        }
        self.run.opening.forked_skill = expanded.forked;
        match self.run.opening.forked_skill.is_some() {
            // What it mentions is the agent's to read.
            true => self.offer_prompt(),
            false => self.submit_prompt(),
        }
    }
}

impl ToolSet {
    /// Takes up skills that came, went or changed; called before each turn.
    pub(super) fn take_up_skills(
        &mut self,
        scope: &ConversationScope,
        sources: &ContextSources,
        permits: &Permits,
    ) {
        // What hooks did at the start may have brought skills, however short ago that was.
        let since_start = match EARLY_EVENTS.iter().any(|event| scope.ctx.hooks.has(*event)) {
            false => scope.env.clock.monotonic().saturating_sub(scope.ctx.facts.started),
            true => Duration::MAX,
        };
        if scope.agent.is_some() || !scope.ctx.skills.poll(since_start) {
            return;
        }
        self.offer_skills(scope, sources, permits);
    }

    /// Lets people type what there is, and has the next request offer the tool where the model has something to use.
    pub(super) fn offer_skills(
        &mut self,
        scope: &ConversationScope,
        sources: &ContextSources,
        permits: &Permits,
    ) {
        scope.ctx.add_skill_commands();
        let is_denied = permits.rules_now(scope).is_tool_denied(SKILL_TOOL);
        if scope.agent.is_none()
            && scope.ctx.skills.has_any_for_model()
            && !is_denied
            && !self.offers_skills(sources)
        {
            let catalog: Arc<dyn SkillCatalog> = Arc::clone(&scope.ctx.skills) as _;
            let tool = Arc::new(SkillTool::new(catalog)) as _;
            self.change_tools(ToolChanges { added: vec![tool], removed: Vec::new() });
        }
    }

    /// Returns what a file that was read or changed makes known: skills for files like it, and those of its directory.
    pub(super) fn meet_skills(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        permits: &Permits,
        files: &[PathBuf],
    ) -> Vec<ToolAttachment> {
        let project = scope.host.workspace().project;
        let cwd = std::fs::canonicalize(&project).unwrap_or(project);
        let skills = Arc::clone(&scope.ctx.skills);
        let n_met = files.iter().filter(|file| skills.meet(file, &cwd)).count();
        if n_met == 0 {
            return Vec::new();
        }
        self.offer_skills(scope, sources, permits);
        let listing =
            self.offers_skills(sources).then(|| skills.listing(announced_skills(recorder.path()).as_deref()));
        listing.flatten().map(|attachment| ToolAttachment { attachment }).into_iter().collect()
    }

    /// Tells the model which skills it can use, as far as it does not know them.
    pub(super) fn tell_skills(
        &self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        sources: &ContextSources,
    ) {
        if !self.offers_skills(sources) {
            return;
        }
        let told = announced_skills(recorder.path());
        if let Some(listing) = scope.ctx.skills.listing(told.as_deref()) {
            recorder.attachment(listing);
        }
    }

    /// Tells whether the next request offers the Skill tool, and the model is to hear what it can use.
    fn offers_skills(&self, sources: &ContextSources) -> bool {
        // A fork has read it all in the conversation that it goes on from.
        if matches!(sources.prelude, Prelude::Fork { .. }) {
            return false;
        }
        let mut coming = self.changes.iter().flat_map(|changes| &changes.added);
        self.toolbox.find(SKILL_TOOL).is_some() || coming.any(|tool| tool.descriptor().name == SKILL_TOOL)
    }

    /// Returns what wraps a call of the Skill tool; nothing for calls of others.
    pub(super) fn skill_layer(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        permits: &Permits,
        tasks: &TurnTasks,
        opening: &PromptOpening,
        call: &PreparedCall,
    ) -> Option<Arc<dyn CallLayer>> {
        if call.tool != SKILL_TOOL {
            return None;
        }
        let name = skill_name(&call.input);
        let arguments = call.input["args"].as_str().unwrap_or_default();
        let ready = match scope.ctx.skills.find(name).filter(|skill| skill.is_for_model) {
            Some(skill) => SkillUse::prepare(&skill, arguments, &self.skill_place(scope, permits, tasks)),
            None => Err(format!("There is no skill `{name}` any more.")),
        };
        if let Ok(SkillUse { skill, grants, .. }) = &ready
            && skill.fork.is_some()
        {
            scope
                .host
                .put_spawn_context(&call.id, opening.skill_spawn_context(scope, recorder, skill, grants));
        }
        let shell = self.toolbox.find_shared("Bash");
        let (registry, inbox) = (scope.ctx.skills.registry(), tasks.inbox.clone());
        Some(Arc::new(SkillLayer::new(ready, shell, registry, inbox)))
    }

    fn skill_place<'a>(
        &'a self,
        scope: &'a ConversationScope,
        permits: &Permits,
        tasks: &TurnTasks,
    ) -> SkillPlace<'a> {
        let identity = scope.ctx.identity.get();
        let mut variables = Variables::default();
        variables.set("CLAUDE_SESSION_ID", identity.id().as_str());
        variables.set("CLAUDE_PROJECT_DIR", identity.project_root().display().to_string());
        variables.set("CLAUDE_EFFORT", scope.effort_now().unwrap_or_else(|| "high".to_owned()));
        SkillPlace {
            toolbox: &self.toolbox,
            host: &scope.host,
            book: permits.rules_now(scope),
            variables,
            runs_commands: scope.ctx.skills.runs_commands,
            cancel: tasks.calls.child_token(),
        }
    }
}

impl ConversationScope {
    /// Says why a skill that is typed cannot be used; none where it can, or where it is no skill.
    pub(super) fn refusal_of_skill(&self, prompt: &Prompt) -> Option<String> {
        let text = prompt.content.text();
        let (name, _) = split_command(&text)?;
        if self.ctx.slash_commands.get().find(name).is_some_and(|it| it.action != CommandAction::Skill) {
            return None;
        }
        self.ctx.skills.registry().refusal_for_people(name)
    }

    fn skill_used(&self, name: &str) {
        self.ctx.skills.record_use(name);
        if let Some(problem) = self.ctx.register_skill_hooks(name) {
            self.tell(EngineEvent::Warning(problem));
        }
    }

    fn typed_skill(&self, name: &str) -> Result<Arc<SkillDefinition>, String> {
        let skill = self.ctx.skills.find(name).filter(|skill| skill.is_for_people);
        skill.ok_or_else(|| format!("There is no command /{name} any more."))
    }
}

impl PromptOpening {
    /// Begins to make a prompt of a typed skill; the answer comes to the inbox.
    pub(super) fn expand(
        &mut self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        tool_set: &ToolSet,
        permits: &Permits,
        tasks: &mut TurnTasks,
        call: CommandCall,
    ) {
        let typed = self.prompt.as_ref().map(|prompt| prompt.content.text()).unwrap_or_default();
        let ready = match self.prepare_typed(scope, tool_set, permits, tasks, &call) {
            Ok(ready) => ready,
            Err(why) => return tasks.post(InboxMessage::Expanded(Err(why))),
        };
        let hooks = scope.ctx.hooks.clone();
        let is_asked = hooks.has(HookEvent::UserPromptExpansion);
        if is_asked {
            self.name_prompt(scope, recorder);
        }
        let asks = is_asked.then(|| {
            let expansion = PromptExpansion {
                kind: "slash_command",
                command: call.command.name.clone(),
                arguments: call.argument.clone().unwrap_or_default(),
                source: hook_source(ready.first().map(|(skill, _)| skill.skill.as_ref())).to_owned(),
                prompt: typed,
            };
            (expansion, scope.hook_moment(recorder))
        });
        let (host, shell) = (Arc::clone(&scope.host), tool_set.toolbox.find_shared("Bash"));
        let registry = scope.ctx.skills.registry();
        tasks.wait_for(async move {
            let mut attachments = Vec::new();
            if let Some((expansion, moment)) = asks {
                match hooks.before_expansion(expansion, moment).await {
                    ExpansionGate::Go { attachments: added } => attachments = added,
                    ExpansionGate::Block { reason } => return InboxMessage::Expanded(Err(reason)),
                }
            }
            let (mut blocks, mut grants, mut used) = (Vec::new(), TurnGrants::default(), Vec::new());
            let mut forked = None;
            for (ready, arguments) in ready {
                let (skill, own) = (Arc::clone(&ready.skill), ready.grants.clone());
                blocks.push(Block::new_text(&command_tags(&skill.name, &arguments)));
                let text = match ready.render(shell.clone(), host.as_ref(), &registry).await {
                    Ok(text) => text,
                    Err(why) => return InboxMessage::Expanded(Err(why)),
                };
                used.push(skill.name.clone());
                if skill.fork.is_some() {
                    forked = Some(ForkedSkill { skill, arguments, text, grants: own });
                    break;
                }
                grants.join(own);
                blocks.push(Block::new_text(&text));
            }
            let content = Content::Blocks(blocks);
            let expanded = ExpandedPrompt { content, attachments, grants, used, forked };
            InboxMessage::Expanded(Ok(Box::new(expanded)))
        });
    }

    /// Reads the skills that a prompt begins with, each with its arguments, and decides all about them.
    fn prepare_typed(
        &self,
        scope: &ConversationScope,
        tool_set: &ToolSet,
        permits: &Permits,
        tasks: &TurnTasks,
        call: &CommandCall,
    ) -> Result<Vec<(SkillUse, String)>, String> {
        let mut rest = call.argument.clone().unwrap_or_default();
        let mut skills = vec![scope.typed_skill(&call.command.name)?];
        while skills.len() < MOST_STACKED
            && skills[0].is_stackable()
            && let Some((name, behind)) = leading_command(&rest)
            && let Ok(skill) = scope.typed_skill(name)
            && skill.is_stackable()
        {
            rest = behind.to_owned();
            skills.push(skill);
        }
        let skills: Vec<Arc<SkillDefinition>> =
            skills.into_iter().map(|it| self.as_scheduled(scope, permits, it)).collect();
        let place = tool_set.skill_place(scope, permits, tasks);
        let prepared =
            skills.iter().map(|skill| Ok((SkillUse::prepare(skill, &rest, &place)?, rest.clone())));
        prepared.collect()
    }

    /// Takes its grants from a skill that a schedule says, unless the model may use it without a question: it is the model that
    /// schedules.
    fn as_scheduled(
        &self,
        scope: &ConversationScope,
        permits: &Permits,
        skill: Arc<SkillDefinition>,
    ) -> Arc<SkillDefinition> {
        if !self.is_scheduled || skill.allowed_tools.is_empty() {
            return skill;
        }
        let effects = CallEffects { grants: skill.allowed_tools.clone(), ..CallEffects::default() };
        let input = json!({"skill": skill.name});
        let call = Call { tool: SKILL_TOOL, command: None, input: &input, effects: &effects, hook: None };
        if decide(&call, &permits.rules_now(scope)).verdict == Verdict::Allow {
            return skill;
        }
        let name = &skill.name;
        scope.tell(EngineEvent::Warning(format!(
            "The scheduled `/{name}` runs without its `allowed-tools`; a rule that allows `Skill({name})` lets it have them"
        )));
        Arc::new(SkillDefinition { allowed_tools: Vec::new(), ..skill.as_ref().clone() })
    }
}

impl Permits {
    /// Takes up a skill that a call has used: its text is recorded behind the call's result.
    pub(super) fn skill_called(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        turn_calls: &mut TurnCalls,
        used: UsedSkill,
    ) {
        let UsedSkill { call, name, text, grants } = used;
        self.grants.join(grants);
        scope.skill_used(&name);
        let Some(text) = text else { return };
        let is_held = has_skill_text(recorder.path(), &name, &text);
        let text = if is_held { already_loaded(&name) } else { text };
        turn_calls.skill_texts.insert(call, text);
    }
}

/// What stands for a text that the conversation holds already.
fn already_loaded(name: &str) -> String {
    format!("The skill {name} was used before with the same outcome, and its text stands above. Follow that.")
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
