//! What works beside the conversation: agents and commands of the background, and the command at the front.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use loci_engine::{AgentRef, BackgroundStatus, BackgroundTask, Command, EngineEvent, TaskNews, task_summary};

use super::front_task::FrontTask;
use super::{AgentLogs, Effect};
use crate::keymap::KILL_AGENTS_TIME;

/// How many tasks are named before the terminal is left.
const MOST_NAMED: usize = 5;

/// Work beside the conversation.
#[derive(Debug)]
pub(super) struct BackgroundWork {
    /// All that was heard of, oldest first.
    tasks: Vec<BackgroundTask>,
    /// Agents that work beside the conversation, by id.
    agents: Vec<String>,
    /// What the agents of the session say and do; the agent view looks at it.
    logs: Rc<RefCell<AgentLogs>>,
    /// What has ended, until it can be told.
    ended: Vec<String>,
    /// The command that was brought to the front.
    pub(super) front: FrontTask,
    /// When all agents were asked to stop, for the first time.
    kill_armed: Option<Duration>,
}

impl BackgroundWork {
    pub(super) fn new(cwd: &Path) -> Self {
        Self {
            tasks: Vec::new(),
            agents: Vec::new(),
            logs: Rc::new(RefCell::new(AgentLogs::new(cwd))),
            ended: Vec::new(),
            front: FrontTask::default(),
            kill_armed: None,
        }
    }

    /// Returns what the agents say and do, for the agent view.
    pub(super) fn logs(&self) -> Rc<RefCell<AgentLogs>> {
        Rc::clone(&self.logs)
    }

    /// Another session runs now, with work of its own.
    pub(super) fn clear(&mut self) {
        self.tasks.clear();
        self.front.clear();
        self.logs.borrow_mut().clear();
    }

    /// Notes a step of a task; returns the task as it is now.
    pub(super) fn take(&mut self, news: TaskNews) -> BackgroundTask {
        self.logs.borrow_mut().take_task(&news);
        let task = match news {
            TaskNews::Started(task)
            | TaskNews::Backgrounded(task)
            | TaskNews::Ended(task)
            | TaskNews::Progress { task, .. } => task,
        };
        let is_over = !matches!(task.status, BackgroundStatus::Running | BackgroundStatus::Killed(_));
        if is_over && task.is_background && task.owner.is_none() && !self.front.is(&task.id) {
            self.ended.push(task_summary(&task));
        }
        match self.tasks.iter_mut().find(|known| known.id == task.id) {
            Some(known) => known.clone_from(&task),
            None => self.tasks.push(task.clone()),
        }
        task
    }

    /// Notes what an agent says or does.
    pub(super) fn take_agent_event(&mut self, agent: &AgentRef, event: &EngineEvent, now: Duration) {
        self.logs.borrow_mut().take_event(agent, event, now);
        let id = agent.id.as_str();
        match event {
            EngineEvent::TurnStarted(_) if !self.agents.iter().any(|known| known == id) => {
                self.agents.push(id.to_owned());
            }
            EngineEvent::TurnEnded(_) => self.agents.retain(|known| known != id),
            _ => {}
        }
    }

    /// A question of an agent was answered.
    pub(super) fn close_question(&mut self, question: &str) {
        self.logs.borrow_mut().close_question(question);
    }

    /// Takes what has ended and was not told yet.
    pub(super) fn take_ended(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ended)
    }

    /// Finds a task.
    pub(super) fn find(&self, id: &str) -> Option<&BackgroundTask> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// Returns the work that its conversation does not wait for.
    pub(super) fn tasks(&self) -> Vec<BackgroundTask> {
        self.tasks.iter().filter(|task| task.is_background).cloned().collect()
    }

    /// Counts the agents and commands at work that the conversation does not wait for.
    pub(super) fn n_working(&self) -> usize {
        let is_agents = |task: &BackgroundTask| self.agents.contains(&task.about.id);
        let running = self.tasks.iter().filter(|task| task.status == BackgroundStatus::Running);
        let (beside, waited_for): (Vec<_>, Vec<_>) = running.partition(|task| task.is_background);
        let n_others = beside.iter().filter(|task| !is_agents(task)).count();
        let n_waited_for = waited_for.iter().filter(|task| is_agents(task)).count();
        (self.agents.len() + n_others).saturating_sub(n_waited_for)
    }

    /// Returns a line for each of the first tasks that run, and how many more there are.
    pub(super) fn running_lines(&self) -> Vec<String> {
        let is_running =
            |task: &&BackgroundTask| task.is_background && task.status == BackgroundStatus::Running;
        let mut lines: Vec<String> =
            self.tasks.iter().filter(is_running).take(MOST_NAMED).map(task_summary).collect();
        let n_more = self.tasks.iter().filter(is_running).skip(MOST_NAMED).count();
        if n_more > 0 {
            lines.push(format!("and {n_more} more"));
        }
        lines
    }

    /// Ctrl+X Ctrl+K, twice: stops the agents that work in the background. Returns what is said, and what is done.
    pub(super) fn stop_agents(&mut self, now: Duration) -> (String, Vec<Effect>) {
        let is_agent = |task: &&BackgroundTask| {
            task.is_background
                && task.agent_type().is_some()
                && matches!(task.status, BackgroundStatus::Running)
        };
        let agents: Vec<&BackgroundTask> = self.tasks.iter().filter(is_agent).collect();
        if agents.is_empty() {
            return ("No agent works in the background".to_owned(), Vec::new());
        }
        let is_second = self.kill_armed.is_some_and(|since| now.saturating_sub(since) <= KILL_AGENTS_TIME);
        self.kill_armed = (!is_second).then_some(now);
        if !is_second {
            let text = "Press Ctrl+X Ctrl+K again to stop all agents in the background";
            return (text.to_owned(), Vec::new());
        }
        let stop = |task: &&BackgroundTask| {
            let (request, task) = (format!("stop-{}", task.id), task.id.clone());
            Effect::Send(Command::StopTask { request, task })
        };
        let n_agents = loci_stdx::counted(agents.len() as u64, "agent", "agents");
        (format!("Stopping {n_agents}"), agents.iter().map(stop).collect())
    }
}

#[cfg(test)]
mod tests {
    use loci_core::ids::ToolUseId;
    use loci_engine::{NewTask, TaskKind};

    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn task(id: &str, kind: TaskKind, status: BackgroundStatus) -> BackgroundTask {
        let about = NewTask {
            id: id.to_owned(),
            kind,
            tool_use_id: ToolUseId::new("t"),
            command: format!("make {id}"),
            description: format!("build {id}"),
            output: format!("/tmp/{id}").into(),
        };
        BackgroundTask { about, owner: None, status, is_background: true, report: None }
    }

    fn working() -> BackgroundWork {
        let mut work = BackgroundWork::new(Path::new("/p"));
        let agent = TaskKind::Agent("Explore".into());
        work.take(TaskNews::Started(task("a", agent, BackgroundStatus::Running)));
        work.take(TaskNews::Started(task("b", TaskKind::Shell, BackgroundStatus::Running)));
        work
    }

    #[test]
    fn agents_are_stopped_by_the_second_press_and_commands_are_left_alone() {
        assert!(BackgroundWork::new(Path::new("/p")).stop_agents(S(0)).1.is_empty());
        let mut work = working();
        assert_eq!((work.n_working(), work.running_lines().len()), (2, 2));
        assert!(work.stop_agents(S(1)).1.is_empty(), "the first press asks");
        let (said, effects) = work.stop_agents(S(2));
        assert_eq!((said.as_str(), effects.len()), ("Stopping 1 agent", 1));
    }

    #[test]
    fn end_of_a_command_is_told_unless_it_was_looked_at() {
        for is_in_front in [false, true] {
            let mut work = working();
            let over = || task("b", TaskKind::Shell, BackgroundStatus::Completed);
            if is_in_front {
                let shown = work.find("b").cloned().unwrap();
                work.front.show(shown, S(1));
                assert_eq!(work.front.deadline(), Some(S(2)));
            }
            let task = work.take(TaskNews::Ended(over()));
            assert_eq!(work.take_ended().len(), usize::from(!is_in_front));
            assert_eq!(work.front.take(&task, S(3)).is_some(), is_in_front, "its end is read");
            let block = work.front.take_output("b", "done\n");
            assert_eq!(block.is_some(), is_in_front, "and goes into the conversation");
            assert!(work.front.is_none() && work.front.deadline().is_none());
        }
    }
}
