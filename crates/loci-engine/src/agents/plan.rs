//! From a call to a plan: which agent, with which model, mode and place, and what it begins with.

use std::sync::Arc;

use loci_core::agent::{
    AgentDefinition, AgentScope, AgentSource, AskedMode, FORK, GENERAL_PURPOSE, agent_mode,
};
use loci_core::conversation::Conversation as PastConversation;
use loci_core::ids::{AgentId, PromptId, ToolUseId};
use loci_core::message::Block;
use loci_core::permission::{Isolation, Mode};
use loci_stdx::Env;
use loci_storage::sessions::{
    AgentMeta, AgentProgressEnd, agent_end, find_agent_file, list_agent_files, load_agent,
};
use loci_tools::{AgentRequest, DISABLE_BACKGROUND, Workspace, requested_type};

use super::listing::is_offered;
use super::{AgentService, ForkStart, SpawnContext};
use crate::event::AgentRef;
use crate::extensions::skills::use_skill::TurnGrants;
use crate::models::model_name::{available_model, capped_at_opus, is_model_available, resolve_model};
use crate::session::config::ModelConfig;
use crate::tools::worktrees::WorktreeService;

/// What the ids of calls begin with that a person makes.
pub(crate) const PERSON_CALL: &str = "person_";

/// Everything that makes an agent's run what it is.
pub(crate) struct AgentPlan {
    pub(crate) agent: AgentRef,
    /// The agent that sends it out, if one does.
    pub(crate) parent_agent: Option<AgentId>,
    pub(crate) definition: Arc<AgentDefinition>,
    pub(crate) name: Option<String>,
    /// What it is told.
    pub(crate) task: String,
    /// The prompt of the conversation that sends it out.
    pub(crate) prompt: PromptId,
    pub(crate) model: ModelConfig,
    pub(crate) max_turns: Option<u32>,
    pub(crate) mode: Option<AskedMode>,
    pub(crate) is_background: bool,
    pub(crate) is_isolated: bool,
    /// The worktree that keeps it apart: its own, or that of whoever sends it out.
    pub(crate) isolation: Option<Isolation>,
    pub(crate) place: Workspace,
    pub(crate) beginning: Beginning,
    /// What a fork answers the calls of the response with that it goes on from.
    pub(crate) results: Vec<Block>,
    pub(crate) meta: AgentMeta,
    /// What the skill that it was given changes about its turns.
    pub(crate) grants: TurnGrants,
    /// The worktrees that it enters and leaves by itself.
    pub(crate) worktrees: Arc<WorktreeService>,
    /// Whether it waits for no place: a person sends it out, or it goes on.
    pub(crate) begins_at_once: bool,
}

/// What an agent begins with.
pub(crate) enum Beginning {
    /// Nothing but its task.
    New,
    /// What it said and did before.
    Past(Box<PastConversation>),
    /// What was said in the conversation that sends it out.
    Fork(Box<ForkStart>),
    /// The same, and what it said and did itself since then.
    PastFork(Box<PastConversation>, Box<ForkStart>),
}

/// Who sends an agent out.
pub(crate) struct Spawner<'a> {
    pub(crate) env: &'a Env,
    pub(crate) call: &'a ToolUseId,
    pub(crate) context: SpawnContext,
    pub(crate) depth: u32,
    /// The agent whose conversation it is; none for the main line.
    pub(crate) agent: Option<AgentId>,
    /// The worktree that keeps that agent apart.
    pub(crate) isolation: Option<Isolation>,
    pub(crate) place: Workspace,
}

impl AgentService {
    /// Says why an agent of a type cannot be sent out.
    pub(crate) fn check_type(&self, named: Option<&str>, depth: u32, is_fork: bool) -> Result<(), String> {
        let kind = named.unwrap_or(GENERAL_PURPOSE);
        if depth >= self.settings.max_depth {
            return Err(format!(
                "Agents may not be sent out from here: {depth} conversations stand above already"
            ));
        }
        let book = &self.deps.ctx.state.get().permission.rulebook;
        let spawnable = self.settings.spawnable.as_deref().filter(|_| depth == 0);
        if kind == FORK && self.registry.get().find(FORK).is_none() {
            return match (self.settings.can_fork && is_offered(FORK, spawnable, book), is_fork) {
                (true, false) => Ok(()),
                (true, true) => Err("A fork cannot fork again. Use another type of agent.".to_owned()),
                (false, _) => Err("Forks are switched off here. Use another type of agent.".to_owned()),
            };
        }
        let registry = self.registry.get();
        match registry.find(kind).filter(|agent| is_offered(&agent.name, spawnable, book)) {
            Some(_) => Ok(()),
            None => {
                let names = registry.iter().filter(|agent| is_offered(&agent.name, spawnable, book));
                let names: Vec<&str> = names.map(|agent| agent.name.as_str()).collect();
                let why = match named {
                    Some(kind) => format!("There is no agent of the type `{kind}`"),
                    None => {
                        format!("`subagent_type` is required: there is no agent of the type `{kind}` here")
                    }
                };
                Err(format!("{why}. The types are: {}", names.join(", ")))
            }
        }
    }

    /// Plans what a call of the Agent tool asks for.
    pub(crate) async fn plan(&self, request: &AgentRequest, from: Spawner<'_>) -> Result<AgentPlan, String> {
        if let Some(id) = request.resume.as_deref().filter(|id| !id.is_empty()) {
            let plan = self.plan_resumed(id, request.prompt.clone(), from).await?;
            let is_background = self.is_background(request, &plan.definition);
            return Ok(AgentPlan { is_background, ..plan });
        }
        let kind = requested_type(request);
        let definition = match self.registry.get().find(kind) {
            Some(definition) => Arc::clone(definition),
            None if kind == FORK => Arc::new(fork_definition()),
            None => return Err(format!("There is no agent of the type `{kind}`")),
        };
        let is_fork = definition.name == FORK && definition.source.scope == AgentScope::BuiltIn;
        let fork = from.context.fork.clone().filter(|_| is_fork);
        if is_fork && fork.is_none() {
            return Err("Nothing can be forked here: the conversation has no response yet".to_owned());
        }
        let model = match is_fork {
            true => ModelConfig { wants_wire_events: false, ..from.context.model.clone() },
            false => self.model(request.model.as_deref(), request.effort.as_ref(), &definition, &from)?,
        };
        self.tell_notes(&definition, request.mode);
        let is_isolated = request.isolation.as_deref() == Some("worktree") || definition.is_isolated;
        let skill = from.context.skill.clone();
        let is_background = match &skill {
            Some(skill) => skill.is_background && self.can_work_in_background(),
            None => self.is_background(request, &definition),
        };
        let agent = AgentRef {
            id: new_agent_id(from.env),
            kind: definition.name.clone(),
            parent: Some(from.call.clone()),
            description: request.description.clone(),
            depth: from.depth + 1,
        };
        Ok(AgentPlan {
            parent_agent: from.agent,
            name: request.name.clone().filter(|name| !name.trim().is_empty()),
            task: request.prompt.clone(),
            prompt: from.context.prompt,
            max_turns: request.max_turns.or(definition.max_turns),
            mode: request.mode.map(AskedMode::of_call).or_else(|| definition.asked_mode()),
            is_background,
            is_isolated,
            isolation: from.isolation,
            place: from.place,
            results: fork.as_ref().map(|fork| fork.results.clone()).unwrap_or_default(),
            meta: AgentMeta {
                agent_type: agent.kind.clone(),
                description: agent.description.clone(),
                tool_use_id: Some(from.call.to_string()),
                spawn_depth: agent.depth,
                name: request.name.clone().filter(|name| !name.trim().is_empty()),
                model: request.model.clone(),
                effort: request.effort.clone().filter(|_| !is_fork),
                permission_mode: request.mode.map(|mode| mode.to_string()),
                max_turns: request.max_turns,
                is_isolated,
                forked_from: fork.as_ref().and_then(|fork| self.forked_from(fork)),
                ..AgentMeta::default()
            },
            beginning: fork.map_or(Beginning::New, |fork| Beginning::Fork(Box::new(fork))),
            agent,
            model,
            definition,
            grants: skill.unwrap_or_default().grants,
            worktrees: Arc::new(self.deps.ctx.worktrees.for_agent(is_isolated)),
            begins_at_once: from.call.as_str().starts_with(PERSON_CALL),
        })
    }

    /// Plans how an agent goes on that has answered, or was cut off, in this run of the session or an earlier one.
    pub(crate) async fn plan_resumed(
        &self,
        id: &str,
        message: String,
        from: Spawner<'_>,
    ) -> Result<AgentPlan, String> {
        let dir = self
            .dir()
            .ok_or("Nothing of this session is saved, so no agent can go on after it has answered")?;
        let unknown = || {
            let registry = self.registry.get();
            // What works beside a conversation by itself is nobody's to be sent on.
            let is_agents = |kind: &str| kind == FORK || registry.find(kind).is_some();
            let known: Vec<String> = list_agent_files(&dir)
                .iter()
                .filter(|file| is_agents(&file.meta.agent_type))
                .map(|file| format!("{} ({})", file.id, file.meta.agent_type))
                .collect();
            match known.is_empty() {
                true => format!("There is no agent `{id}`: none has been sent out in this session"),
                false => format!("There is no agent `{id}`. There are: {}", known.join(", ")),
            }
        };
        let file = find_agent_file(&dir, id).ok_or_else(unknown)?;
        let kind = &file.meta.agent_type;
        let definition = match self.registry.get().find(kind) {
            Some(definition) => Arc::clone(definition),
            None if kind == FORK => Arc::new(fork_definition()),
            None => return Err(format!("The agent `{id}` cannot go on: there is no type `{kind}` any more")),
        };
        let past = load_agent(&file.transcript).map_err(|error| {
            format!("The transcript of the agent `{id}` cannot be read: {}", error.source)
        })?;
        let has_answered = agent_end(past.path()).0 == AgentProgressEnd::Answered;
        if has_answered && !definition.is_resumable {
            return Err(format!(
                "An agent of the type `{kind}` cannot go on after it has answered. Send out another"
            ));
        }
        let is_fork = definition.name == FORK && definition.source.scope == AgentScope::BuiltIn;
        let beginning = match is_fork {
            true => {
                let origin = self.fork_origin(&file.meta, &from, id).await?;
                Beginning::PastFork(Box::new(past), Box::new(origin))
            }
            false => Beginning::Past(Box::new(past)),
        };
        let model = match is_fork {
            true => ModelConfig { wants_wire_events: false, ..from.context.model.clone() },
            false => self.model(file.meta.model.as_deref(), file.meta.effort.as_ref(), &definition, &from)?,
        };
        let asked = file.meta.permission_mode.as_deref().and_then(|mode| mode.parse().ok());
        // One that worked apart goes on apart, where it was or in a worktree made anew.
        let is_isolated =
            definition.is_isolated || file.meta.is_isolated || file.meta.worktree_path.is_some();
        let agent = AgentRef {
            id: file.id,
            kind: definition.name.clone(),
            parent: Some(from.call.clone()),
            description: file.meta.description.clone(),
            depth: file.meta.spawn_depth.max(1),
        };
        Ok(AgentPlan {
            parent_agent: from.agent,
            name: file.meta.name.clone(),
            task: message,
            prompt: from.context.prompt,
            max_turns: file.meta.max_turns.or(definition.max_turns),
            mode: asked.map(AskedMode::of_call).or_else(|| definition.asked_mode()),
            is_background: true,
            is_isolated,
            isolation: from.isolation,
            place: from.place,
            results: Vec::new(),
            beginning,
            meta: file.meta,
            definition,
            agent,
            model,
            grants: TurnGrants::default(),
            worktrees: Arc::new(self.deps.ctx.worktrees.for_agent(is_isolated)),
            begins_at_once: true,
        })
    }

    fn can_work_in_background(&self) -> bool {
        !self.vars().is_truthy(DISABLE_BACKGROUND)
    }

    fn is_background(&self, request: &AgentRequest, definition: &AgentDefinition) -> bool {
        let is_wanted = request.run_in_background.unwrap_or(self.settings.is_background);
        let has_no_choice = self.settings.can_fork || definition.is_background;
        self.can_work_in_background() && (has_no_choice || is_wanted)
    }

    /// Chooses the model: the environment's, the call's, the definition's, or that of whoever sends the agent out; and how
    /// hard it thinks.
    fn model(
        &self,
        called: Option<&str>,
        effort: Option<&String>,
        definition: &AgentDefinition,
        from: &Spawner<'_>,
    ) -> Result<ModelConfig, String> {
        let vars = self.vars();
        let by_environment = vars.non_empty("CLAUDE_CODE_SUBAGENT_MODEL");
        let parent = from.context.model.clone();
        let settings = self.deps.ctx.state.get().settings.clone();
        let is_chosen = |name: &&str| !name.is_empty() && *name != "inherit";
        let chosen = [by_environment, called, definition.model.as_deref()];
        let chosen = chosen.into_iter().flatten().map(str::trim).find(is_chosen);
        let allowed = chosen.and_then(|name| available_model(&vars, &settings, name));
        if let Some(name) = chosen.filter(|name| allowed.as_ref() != Some(&resolve_model(&vars, name))) {
            let instead =
                allowed.as_ref().map_or("the model of the conversation".to_owned(), |id| format!("`{id}`"));
            self.tell_once(format!(
                "The agent `{}` works with {instead}: `{name}` may not be used here (`availableModels`)",
                definition.name
            ));
        }
        let may = |name: &str| is_model_available(&vars, &settings, name);
        let inherited = || match definition.is_capped_at_opus {
            true => Some(capped_at_opus(&vars, &parent.catalog, &parent.main)).filter(|model| may(model)),
            false => None,
        };
        let inherited = || inherited().unwrap_or_else(|| parent.main.clone());
        let main = allowed.map_or_else(inherited, |id| parent.catalog.stand_in(id));
        if self.deps.max_budget_usd.is_some() && parent.catalog.facts(&main).price.is_none() {
            return Err(format!(
                "The price of `{main}` is unknown, so the budget of this run could not be kept"
            ));
        }
        Ok(ModelConfig {
            main,
            effort: effort.or(definition.effort.as_ref()).cloned().or(parent.effort),
            wants_wire_events: false,
            ..parent
        })
    }

    fn vars(&self) -> loci_stdx::Vars {
        crate::conversation::host::lock(&self.deps.ctx.services.ambient).env.vars.clone()
    }

    /// Says what a definition asks for in vain.
    fn tell_notes(&self, definition: &AgentDefinition, mode: Option<Mode>) {
        let name = &definition.name;
        let session = self.deps.ctx.mode();
        let asked = mode.map(AskedMode::of_call).or_else(|| definition.asked_mode());
        let is_granted = |asked: &AskedMode| agent_mode(session, Some(*asked)) == asked.mode();
        if let Some(asked) = asked.filter(|asked| !is_granted(asked)).map(AskedMode::mode) {
            self.tell_once(format!(
                "The agent `{name}` asks for the permission mode {asked} and works in {session}: an agent has no more \
                 permissions than its session"
            ));
        }
        for note in &definition.notes {
            self.tell_once(format!("The agent `{name}`: {note}"));
        }
    }
}

/// The definition of a fork: whatever the conversation is.
pub(super) fn fork_definition() -> AgentDefinition {
    AgentDefinition::new(FORK, "", "", AgentSource::inline(AgentScope::BuiltIn))
}

/// Makes an agent's id.
pub(crate) fn new_agent_id(env: &Env) -> AgentId {
    let hex: String =
        env.random.uuid_v4().to_string().chars().filter(char::is_ascii_hexdigit).take(16).collect();
    AgentId::new(format!("a{hex}"))
}
