//! Making an agent's conversation from its plan.

use std::path::PathBuf;
use std::sync::Arc;

use loci_context::{AgentPrompt, EnvironmentContext, PromptParts, Replaced};
use loci_core::agent::{AgentPlace, AskedMode, FORK, ToolAccess, agent_mode, preloaded_skills};
use loci_core::entry::Attachment;
use loci_core::entry::draft::Stamp;
use loci_core::ids::AgentId;
use loci_core::message::{Block, Message};
use loci_core::permission::Mode;
use loci_core::skill::Variables;
use loci_storage::config::LazyInstructions;
use loci_storage::memory::Author;
use loci_storage::sessions::{SessionLog, agent_log, write_agent_meta};
use loci_tools::{BackgroundTasks, MAIN, Tool, Toolbox};
use serde_json::Value;

use super::memory::{agent_memory, memory_dir};
use super::plan::{AgentPlan, Beginning};
use super::servers::server_prefixes;
use super::{AgentService, AgentWork};
use crate::conversation::host::{ConversationHost, HostParts, Spill, lock};
use crate::conversation::recorder::Recorder;
use crate::conversation::request_base::RequestBase;
use crate::conversation::{AgentLimits, Conversation, ConversationParts, Helpers, InstructionState, Prelude};
use crate::event::EventSink;
use crate::session::config::{CompactionConfig, LoadedHistory, ModelConfig, TurnLimits};
use crate::session::file_history::Checkpoints;
use crate::session::plan::agent_reminder;

/// What stands before an agent's own entries, and what it is asked with.
struct Basis {
    base: Arc<RequestBase>,
    toolbox: Toolbox,
    prelude: Prelude,
    instructions: InstructionState,
    compaction: CompactionConfig,
}

impl AgentService {
    /// Makes the conversation of an agent; `tasks` are its own. The error says why it cannot work.
    pub(crate) fn conversation(
        self: &Arc<Self>,
        plan: &mut AgentPlan,
        tasks: BackgroundTasks,
        work: AgentWork,
        server_tools: &[Arc<dyn Tool>],
    ) -> Result<Conversation, String> {
        let ctx = &self.deps.ctx;
        let memory = match self.settings.keeps_memory {
            true => memory_dir(&plan.definition, &ctx.services.home, &self.settings.memory_root),
            false => None,
        };
        let beginning = std::mem::replace(&mut plan.beginning, Beginning::New);
        let basis = match &beginning {
            Beginning::Fork(fork) | Beginning::PastFork(_, fork) => self.fork_basis(plan, fork),
            Beginning::New | Beginning::Past(_) => self.own_basis(plan, memory.as_deref(), server_tools)?,
        };
        let past = match beginning {
            Beginning::Past(past) | Beginning::PastFork(past, _) => LoadedHistory {
                leaf: past.leaf().cloned(),
                repairs: past.repairs().to_vec(),
                replaced: Replaced::default(),
                path: past.into_path(),
                ..LoadedHistory::default()
            },
            Beginning::New | Beginning::Fork(_) => LoadedHistory::default(),
        };
        let events = EventSink::new(ctx.events.clone(), Some(plan.agent.clone()));
        let stamp = Stamp {
            agent: Some(plan.agent.id.clone()),
            agent_type: Some(plan.agent.kind.clone()),
            cwd: plan.place.cwd.display().to_string(),
            ..self.deps.stamp.clone()
        };
        let past_path = past.path.clone();
        let mut recorder = Recorder::new(ctx.services.env.clone(), self.log(plan), stamp, past);
        recorder.find_lost_tasks(self.dir().as_deref());
        let can_exit = basis.toolbox.find("ExitPlanMode").is_some();
        let plan_file = self.plan_file(plan);
        if let Some(file) = &plan_file {
            recorder.add_before_prompt(vec![agent_reminder(file, can_exit, !past_path.is_empty())]);
        }
        if past_path.is_empty() && plan.agent.kind != FORK && basis.toolbox.find("SendMessage").is_some() {
            recorder.add_before_prompt(self.roster(&plan.agent.id).into_iter().collect());
        }
        let host = ConversationHost::new(HostParts {
            home: ctx.services.home.clone(),
            ambient: Arc::clone(&ctx.services.ambient),
            place: plan.place.clone(),
            spill: match self.dir() {
                Some(dir) => Spill::Beside(dir.with_file_name("tool-results")),
                None => Spill::Temporary,
            },
            tmp: ctx.services.tmp.clone(),
            events: events.clone(),
            state: Arc::clone(&ctx.state),
            // A worktree of its own is no part of the project's tree: git has what was in it.
            keeper: self.base.file_history.clone().filter(|_| !plan.is_isolated),
            transcript: None,
            memory: None,
            task_store: Arc::clone(&self.base.task_store),
            // The session's plan is the main line's.
            plans: None,
            worktrees: Some(Arc::clone(&plan.worktrees)),
            session: ctx.identity.get().id().to_string(),
            env_dir: Arc::clone(&ctx.services.env_dir),
            tasks,
            agent: Some(plan.agent.clone()),
        });
        let host = host.with_agents(Arc::clone(self)).with_schedule(ctx.schedule.clone());
        let host = host
            .with_web(&ctx.services.web)
            .with_editor(ctx.services.editor.clone())
            .with_agent_plan(plan_file);
        let mut conversation = Conversation::new(ConversationParts {
            host: Arc::new(host),
            agent: Some(plan.agent.clone()),
            events,
            recorder,
            toolbox: basis.toolbox,
            base: basis.base,
            model: plan.model.clone(),
            limits: TurnLimits { max_turns: plan.max_turns, ..self.base.limits.clone() },
            asks: true,
            policy: None,
            author: Author::Model,
            compaction: basis.compaction,
            instructions: basis.instructions,
            prelude: basis.prelude,
            past: Some(past_path).filter(|path| !path.is_empty()),
            checkpoints: Checkpoints::new(&ctx.services.env, None),
            helpers: Helpers::default(),
            ctx: Arc::clone(ctx),
        });
        let grants = std::mem::take(&mut plan.grants);
        let isolation = plan.isolation.clone();
        let limits = AgentLimits { mode: plan.mode, memory_dir: memory, isolation, grants };
        conversation.scope.set_agent_limits(limits, work);
        Ok(conversation)
    }

    /// Tells whether an agent is sent out to make a plan. Those of a session that plans itself only help with its plan.
    fn makes_plan(&self, plan: &AgentPlan) -> bool {
        plan.mode.map(AskedMode::mode) == Some(Mode::Plan)
            && agent_mode(self.deps.ctx.mode(), plan.mode) == Mode::Plan
    }

    /// Returns the file of an agent that makes a plan.
    fn plan_file(&self, plan: &AgentPlan) -> Option<PathBuf> {
        let file = self.makes_plan(plan).then(|| self.deps.ctx.plans.agent_file(&plan.agent.id))?;
        file.inspect_err(|error| {
            self.tell_once(format!("Plan mode has no file to plan in: {error}; see `plansDirectory`"));
        })
        .ok()
    }

    /// Returns what an agent is told of those it can speak to by name; nothing where no other agent has one.
    fn roster(&self, own: &AgentId) -> Option<Attachment> {
        let live = lock(&self.live);
        let named = live.iter().filter(|agent| agent.id != *own).filter_map(|agent| agent.name.clone());
        let mut names: Vec<String> = named.collect();
        names.sort();
        names.dedup();
        (!names.is_empty()).then(|| {
            names.insert(0, MAIN.to_owned());
            Attachment::AgentRoster { names }
        })
    }

    /// The same bytes as the conversation that it goes on from; tools that are not for agents only look available.
    fn fork_basis(&self, plan: &AgentPlan, fork: &super::ForkStart) -> Basis {
        let mut toolbox = fork.point.toolbox.clone();
        let place = AgentPlace {
            is_background: false,
            may_spawn: true,
            makes_plan: self.makes_plan(plan),
            is_apart: plan.is_isolated,
            has_memory: false,
        };
        let definition = super::plan::fork_definition();
        let access = ToolAccess::new(&definition, place);
        let names: Vec<String> = toolbox.available().map(|tool| tool.name.clone()).collect();
        for name in names.iter().filter(|name| !access.has(name)) {
            toolbox.retire(name);
        }
        Basis {
            base: Arc::new(fork.point.base.for_agent(&plan.agent.id, plan.parent_agent.as_ref())),
            toolbox,
            prelude: Prelude::Fork {
                messages: fork.point.messages.clone(),
                tokens: fork.point.tokens,
                results: fork.results.clone(),
            },
            instructions: InstructionState::default(),
            // Its own part is made shorter; what it goes on from stays as it is.
            compaction: CompactionConfig { collapses: false, ..self.base.compaction },
        }
    }

    fn own_basis(
        &self,
        plan: &AgentPlan,
        memory: Option<&std::path::Path>,
        server_tools: &[Arc<dyn Tool>],
    ) -> Result<Basis, String> {
        let ctx = &self.deps.ctx;
        let toolbox = self.tools(plan, memory.is_some(), server_tools)?;
        let base = &self.base;
        let has_context = plan.definition.has_project_context;
        let mut place = Variables::default();
        place.set("CLAUDE_SESSION_ID", ctx.identity.get().id().as_str());
        place.set("CLAUDE_PROJECT_DIR", ctx.identity.get().project_root().display().to_string());
        let (skills, problems) = preloaded_skills(&ctx.skills.registry(), &plan.definition, &place);
        for problem in problems {
            self.tell_once(format!("The agent `{}`: {problem}", plan.definition.name));
        }
        let prompt = PromptParts {
            replacement: None,
            // A style is the main conversation's.
            style: None,
            preferences: base.prompt.preferences.clone(),
            agent: Some(AgentPrompt {
                text: format!("{}{skills}", plan.definition.prompt),
                memory: memory.map(agent_memory),
                is_sent_out: true,
            }),
            surroundings: EnvironmentContext {
                cwd: plan.place.cwd.display().to_string(),
                model: plan.model.main.clone(),
                ..base.prompt.surroundings.clone()
            },
            memory_dir: None,
            git: base.prompt.git.clone().filter(|_| has_context),
            excludes_dynamic: false,
            snapshot: Vec::new(),
            is_small: false,
            appendix: joined(base.prompt.appendix.as_deref(), self.settings.appended_prompt.as_deref()),
        };
        let window_cap = plan.definition.compact_window;
        let compaction = CompactionConfig { collapses: false, window_cap, ..base.compaction };
        let session = ctx.identity.get().id().to_string();
        let model: &ModelConfig = &plan.model;
        let request = RequestBase::new(&prompt, &toolbox, model, compaction, &session)
            .for_agent(&plan.agent.id, plan.parent_agent.as_ref());
        let mut instructions = InstructionState::default();
        if has_context {
            instructions.files = base.instructions.clone();
            instructions.lazy = base.lazy_instructions.clone();
        }
        if plan.definition.omits_instructions {
            instructions.files.keep_managed();
            instructions.lazy.iter_mut().for_each(LazyInstructions::keep_managed);
        }
        Ok(Basis {
            base: Arc::new(request),
            toolbox,
            prelude: Prelude::Opening(None),
            instructions,
            compaction,
        })
    }

    /// Returns the tools of an agent; an agent whose list names none that there are cannot work.
    fn tools(
        &self,
        plan: &AgentPlan,
        has_memory: bool,
        server_tools: &[Arc<dyn Tool>],
    ) -> Result<Toolbox, String> {
        let mut toolbox = self.toolbox();
        let name = &plan.definition.name;
        let place = AgentPlace {
            is_background: plan.is_background,
            may_spawn: plan.agent.depth < self.settings.max_depth,
            makes_plan: self.makes_plan(plan),
            is_apart: plan.is_isolated,
            has_memory,
        };
        let access = ToolAccess::new(&plan.definition, place).with_servers(server_prefixes(&plan.definition));
        toolbox.drop_retired();
        let book = &self.deps.ctx.state.get().permission.rulebook;
        for tool in server_tools {
            let tool_name = &tool.descriptor().name;
            if book.is_tool_denied(tool_name) {
                continue;
            }
            // What the agent brings along wins over what the session has of that name.
            if toolbox.find(tool_name).is_some() {
                toolbox.replace(Arc::clone(tool));
            } else if let Err(problem) = toolbox.append(Arc::clone(tool)) {
                self.tell_once(format!("A tool of the agent `{name}` is not offered: {problem}"));
            }
        }
        let all: Vec<String> = toolbox.available().map(|tool| tool.name.clone()).collect();
        let unknown = access.unknown_entries(all.iter().map(String::as_str));
        toolbox.retain(|tool| access.has(&tool.name));
        let has_list = plan.definition.tools.as_ref().is_some_and(|list| !list.is_empty());
        if has_list && toolbox.available().next().is_none() {
            let entries = plan.definition.tools.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
            return Err(format!(
                "The agent `{name}` has no tools: its list names none that it can have here ({entries})"
            ));
        }
        if !unknown.is_empty() {
            self.tell_once(format!(
                "The agent `{name}` lists tools that there are not: {}",
                unknown.join(", ")
            ));
        }
        Ok(toolbox)
    }

    /// Opens the agent's transcript. What cannot be written is told by the log; the agent works all the same.
    fn log(&self, plan: &AgentPlan) -> SessionLog {
        let Some(dir) = self.dir() else { return SessionLog::in_memory() };
        if let Err(error) = write_agent_meta(&dir, &plan.agent.id, &plan.meta) {
            self.tell_once(format!("What is known of an agent could not be saved: {error}"));
        }
        agent_log(&dir, &plan.agent.id).with_mirror(self.deps.ctx.services.mirror.clone())
    }
}

/// Joins what is added to a prompt.
fn joined(first: Option<&str>, second: Option<&str>) -> Option<String> {
    let parts: Vec<&str> = [first, second].into_iter().flatten().filter(|text| !text.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Cuts a conversation behind the response that made a call; returns it with the calls of that response.
pub(crate) fn fork_messages(
    mut messages: Vec<Message>,
) -> Option<(Vec<Message>, Vec<loci_core::message::ToolUse>)> {
    let has_calls = |message: &Message| message.content.iter().any(|block| block.tool_use().is_some());
    let at = messages.iter().rposition(has_calls)?;
    messages.truncate(at + 1);
    let calls = messages[at].content.iter().filter_map(|block| block.tool_use()).collect();
    Some((messages, calls))
}

/// What the calls of a response are answered with in a fork.
const FORKED: &str =
    "(This conversation was forked here: the call goes on elsewhere, and what it brings is not known.)";

/// Answers the calls of the response that a fork goes on from.
pub(crate) fn forked_results(calls: &[loci_core::message::ToolUse]) -> Vec<Block> {
    let answer = Value::from(FORKED);
    calls.iter().map(|call| Block::new_tool_result(&call.id, &answer, None)).collect()
}
