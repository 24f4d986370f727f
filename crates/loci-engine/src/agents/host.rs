//! The tools of agents, as the host of a conversation's calls answers them.

use std::sync::Arc;
use std::time::Duration;

use loci_core::agent::{FORK, sanitize_result};
use loci_core::ids::ToolUseId;
use loci_stdx::Vars;
use loci_storage::sessions::{AgentProgressEnd, agent_end, find_agent_file, list_agent_files, load_agent};
use loci_tools::{
    AgentHost, AgentReply, AgentRequest, AgentRow, BackgroundTask, Host as _, HostFuture, LaunchedAgent,
    MAIN, MessageReceipt, NewTask, TaskHandle, TaskKind, ToolCall,
};
use tokio::sync::oneshot;

use super::plan::{AgentPlan, Spawner};
use super::run::{AgentEnd, AgentRun};
use super::{AgentService, LiveAgent, SpawnContext};
use crate::conversation::host::{ConversationHost, lock};
use crate::event::AgentLimit;

/// How long an agent that has just answered is waited for before it goes on.
const LAST_STEPS: Duration = Duration::from_secs(30);

/// How long an agent is waited for where it goes on in the background by itself.
const AUTO_BACKGROUND: Duration = Duration::from_secs(120);

/// An agent at work.
struct Started {
    task: TaskHandle,
    done: oneshot::Receiver<AgentEnd>,
    launched: LaunchedAgent,
}

impl ConversationHost {
    fn service(&self) -> Result<&Arc<AgentService>, String> {
        self.agent_service().ok_or_else(|| "No agents can be sent out from here.".to_owned())
    }

    fn spawner<'a>(&self, env: &'a loci_stdx::Env, call: &'a ToolUseId) -> Result<Spawner<'a>, String> {
        let context: Option<SpawnContext> = self.take_spawn_context(call);
        let context = context.ok_or("The call is not known to its conversation")?;
        let agent = self.agent();
        let live = agent.and_then(|agent| self.agent_service()?.live(agent.id.as_str()));
        Ok(Spawner {
            env,
            call,
            context,
            depth: agent.map_or(0, |agent| agent.depth),
            agent: agent.map(|agent| agent.id.clone()),
            isolation: self.isolation(live.and_then(|live| live.isolation())),
            place: self.workspace(),
        })
    }

    /// Begins an agent's work.
    fn start_agent(&self, plan: AgentPlan, call: &ToolUseId) -> Result<Started, String> {
        let service = self.service()?;
        let (id, is_background) = (plan.agent.id.clone(), plan.is_background);
        let dir =
            self.task_dir().map_err(|error| format!("There is no place for the agent's output: {error}"))?;
        let output = dir.join(format!("{id}.output"));
        let launched = LaunchedAgent {
            id: id.clone(),
            model: plan.model.main.clone(),
            output: output.clone(),
            is_moved: false,
            is_late: false,
        };
        let about = NewTask {
            id: id.to_string(),
            kind: TaskKind::Agent(plan.agent.kind.clone()),
            tool_use_id: call.clone(),
            command: plan.task.clone(),
            description: plan.agent.description.clone(),
            output: output.clone(),
        };
        let live = Arc::new(LiveAgent::new(&plan, self.env().clock.now()));
        {
            let mut agents = lock(&service.live);
            agents.retain(|agent| agent.id != id);
            agents.push(Arc::clone(&live));
        }
        let task = self.tasks().register(about, is_background);
        let (tell, done) = oneshot::channel();
        let waited_for_by = self.agent().filter(|_| !is_background).map(|agent| agent.id.clone());
        let run = AgentRun {
            service: Arc::clone(service),
            plan,
            task: task.clone(),
            tasks: self.tasks().of_agent(&id),
            live,
            output,
            waited_for_by,
        };
        self.tasks().keep(tokio::spawn(run.run(tell)));
        Ok(Started { task, done, launched })
    }

    /// Waits for an agent's answer, unless somebody wants it to go on in the background.
    async fn wait_for_agent(&self, started: Started, call: &ToolCall) -> Result<AgentReply, String> {
        let Started { task, mut done, launched } = started;
        let lost = || "The agent was lost; this is a defect of loci".to_owned();
        let patience = auto_background(&self.env().vars);
        let moved = async {
            tokio::select! {
                () = call.to_background.cancelled() => true,
                () = sleep_for(patience) => false,
            }
        };
        tokio::select! {
            end = &mut done => Ok(AgentReply::Finished(Box::new(end.map_err(|_| lost())?.finished))),
            is_moved = moved => {
                task.move_to_background();
                self.service()?.slots.release(&launched.id);
                Ok(AgentReply::Launched(LaunchedAgent { is_moved, is_late: !is_moved, ..launched }))
            }
            () = call.cancel.cancelled() => {
                task.stop.cancel();
                // What it had begun comes to its end first.
                let end = (&mut done).await.map_err(|_| lost())?;
                Err(format!(
                    "The user interrupted this agent before it had answered.\nagentId: {} (SendMessage lets it go on)",
                    end.finished.id
                ))
            }
        }
    }
}

/// Returns how long an agent is waited for before it goes on in the background by itself, where somebody has said that it
/// should (`CLAUDE_AUTO_BACKGROUND_TASKS`); `LOCI_AUTO_BACKGROUND_MS` changes the two minutes.
pub(crate) fn auto_background(vars: &Vars) -> Option<Duration> {
    let is_wanted = vars.is_truthy("CLAUDE_AUTO_BACKGROUND_TASKS");
    let is_possible = !vars.is_truthy("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS");
    let said = vars.get("LOCI_AUTO_BACKGROUND_MS").and_then(|text| text.trim().parse().ok());
    (is_wanted && is_possible).then(|| said.map_or(AUTO_BACKGROUND, Duration::from_millis))
}

/// Waits, or forever.
async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

impl ConversationHost {
    /// Stops a task because a person wants it: an agent does not go on then until a person says so.
    pub(crate) async fn stop_for_person(&self, id: &str) -> Option<BackgroundTask> {
        if let Some(agent) = self.agent_service().and_then(|service| service.live(id)) {
            agent.set_stopped_by_person(true);
        }
        self.tasks().stop(id).await
    }

    /// A person speaks to an agent: it may go on again.
    pub(crate) fn allow_to_go_on(&self, to: &str) {
        let id = self.resolve(to).unwrap_or_else(|| to.to_owned());
        if let Some(agent) = self.agent_service().and_then(|service| service.live(&id)) {
            agent.set_stopped_by_person(false);
        }
    }

    /// Returns what others call the agent whose calls these are.
    fn own_name(&self) -> String {
        let Some(agent) = self.agent() else { return MAIN.to_owned() };
        let live = self.agent_service().and_then(|service| service.live(agent.id.as_str()));
        let name = live.and_then(|live| live.name.clone());
        name.map_or_else(|| agent.id.to_string(), |name| format!("{name} ({})", agent.id))
    }

    /// Tells whether a message is for a fork, which goes on only with what it went on from.
    pub(crate) fn is_fork(&self, to: &str) -> bool {
        let Some(dir) = self.agent_service().and_then(|service| service.dir()) else { return false };
        let id = self.resolve(to).unwrap_or_else(|| to.to_owned());
        find_agent_file(&dir, &id).is_some_and(|file| file.meta.agent_type == FORK)
    }

    fn send_to_main(&self, message: String) -> Result<MessageReceipt, String> {
        if self.agent().is_none() {
            return Err("This is the main conversation itself. Go on without a message.".to_owned());
        }
        self.tasks().tell_main(self.own_name(), message);
        Ok(MessageReceipt::ToMain)
    }

    /// Returns whom a message is for. A name that another agent has got since it was last used is refused: the message
    /// was meant for the earlier one.
    fn addressee(&self, to: &str) -> Result<String, String> {
        let Some(id) = self.resolve(to) else { return Ok(to.to_owned()) };
        match self.note_addressee(to, &id) {
            Some(before) if before != id => Err(format!(
                "`{to}` was the agent {before} when it was last spoken to, and is the agent {id} now. Say by id which of \
                 them is meant."
            )),
            _ => Ok(id),
        }
    }
}

impl AgentHost for ConversationHost {
    fn check(&self, request: &AgentRequest) -> Result<(), String> {
        let service = self.service()?;
        if request.resume.as_deref().is_some_and(|id| !id.is_empty()) {
            return Ok(());
        }
        let agent = self.agent();
        let depth = agent.map_or(0, |agent| agent.depth);
        if depth >= service.settings.max_depth {
            self.tell_refusal(AgentLimit::Depth);
        }
        let named = request.subagent_type.as_deref().filter(|kind| !kind.trim().is_empty());
        service.check_type(named, depth, agent.is_some_and(|agent| agent.kind == FORK))
    }

    fn run<'a>(
        &'a self,
        request: AgentRequest,
        call: &'a ToolCall,
    ) -> HostFuture<'a, Result<AgentReply, String>> {
        Box::pin(async move {
            let service = Arc::clone(self.service()?);
            if service.deps.is_out_of_budget() {
                self.tell_refusal(AgentLimit::Budget);
                return Err("The budget of this run is spent, so no agent was sent out.".to_owned());
            }
            let env = self.env();
            let plan = service.plan(&request, self.spawner(&env, &call.id)?).await?;
            let is_background = plan.is_background;
            let started = self.start_agent(plan, &call.id)?;
            match is_background {
                true => Ok(AgentReply::Launched(started.launched)),
                false => self.wait_for_agent(started, call).await,
            }
        })
    }

    fn send<'a>(
        &'a self,
        to: &'a str,
        message: String,
        call: &'a ToolCall,
    ) -> HostFuture<'a, Result<MessageReceipt, String>> {
        Box::pin(async move {
            let service = Arc::clone(self.service()?);
            if to == MAIN {
                return self.send_to_main(message);
            }
            let id = self.addressee(to)?;
            let live = service.live(&id);
            let is_own = self.agent().is_some_and(|agent| agent.id.as_str() == id);
            if is_own {
                return Err("This is the agent itself. Go on without a message.".to_owned());
            }
            if live.as_ref().is_some_and(|agent| agent.is_stopped_by_person()) {
                return Err(format!(
                    "The user stopped the agent `{id}`, so it does not go on by a message of yours. Ask the user."
                ));
            }
            let message = match self.agent() {
                // What another agent says is data; the one who sent it out is known by what it asks for.
                Some(_) => format!("[from the agent {}]\n{}", self.own_name(), sanitize_result(&message)),
                None => message,
            };
            if let Some(agent) = &live {
                if agent.post(message.clone()) {
                    return Ok(MessageReceipt::Queued { id: agent.id.clone() });
                }
                // It has answered, and is about to say so.
                self.tasks().wait(&id, LAST_STEPS).await;
            }
            if service.deps.is_out_of_budget() {
                return Err("The budget of this run is spent, so the agent does not go on.".to_owned());
            }
            let env = self.env();
            let plan = service.plan_resumed(&id, message, self.spawner(&env, &call.id)?).await?;
            let started = self.start_agent(plan, &call.id)?;
            Ok(MessageReceipt::Resumed(started.launched))
        })
    }

    fn list(&self) -> Vec<AgentRow> {
        let Some(service) = self.agent_service() else { return Vec::new() };
        let running = self.tasks().list();
        let status_now =
            |id: &str| running.iter().find(|task| task.id == id).map(|task| task.status.name().to_owned());
        let files = service.dir().map(|dir| list_agent_files(&dir)).unwrap_or_default();
        let is_sent_out = |kind: &str| kind == FORK || service.registry.get().find(kind).is_some();
        let mut rows: Vec<AgentRow> = files
            .into_iter()
            .filter(|file| file.meta.tool_use_id.is_some() || is_sent_out(&file.meta.agent_type))
            .map(|file| {
                let earlier = || match load_agent(&file.transcript).map(|past| agent_end(past.path()).0) {
                    Ok(AgentProgressEnd::Answered) => "completed".to_owned(),
                    Ok(AgentProgressEnd::CutOff) | Err(_) => "cut off".to_owned(),
                };
                AgentRow {
                    status: status_now(file.id.as_str()).unwrap_or_else(earlier),
                    name: file.meta.name,
                    kind: file.meta.agent_type,
                    description: file.meta.description,
                    id: file.id,
                }
            })
            .collect();
        // Without files the table is all that is known.
        for task in &running {
            if let (Some(kind), false) =
                (task.agent_type(), rows.iter().any(|row| row.id.as_str() == task.id))
            {
                rows.push(AgentRow {
                    id: loci_core::ids::AgentId::new(task.id.as_str()),
                    name: service.live(&task.id).and_then(|agent| agent.name.clone()),
                    kind: kind.to_owned(),
                    description: task.description.clone(),
                    status: task.status.name().to_owned(),
                });
            }
        }
        rows
    }

    fn resolve(&self, name: &str) -> Option<String> {
        let service = self.agent_service()?;
        let live =
            lock(&service.live).iter().rev().find(|agent| agent.name.as_deref() == Some(name)).cloned();
        live.map(|agent| agent.id.to_string()).or_else(|| {
            let files = list_agent_files(&service.dir()?);
            let file = files.into_iter().rev().find(|file| file.meta.name.as_deref() == Some(name));
            file.map(|file| file.id.to_string())
        })
    }
}
