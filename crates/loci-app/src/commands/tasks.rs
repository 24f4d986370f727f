//! `/tasks`, `/stop [task]`, `/agents [message|stop …]`, `/list-agents`, `/subtask <task>`: work beside the conversation, and
//! what a person may want of it.

use loci_engine::{BackgroundStatus, BackgroundTask, LocalEffect, LocalOutcome, SessionSnapshot, TaskKind};

use super::{cell, format_duration, short_tokens};

/// Says how a task is doing, in words.
pub fn status(task: &BackgroundTask) -> String {
    match &task.status {
        BackgroundStatus::Running => "running".to_owned(),
        BackgroundStatus::Completed => "done".to_owned(),
        BackgroundStatus::Failed(code) => format!("failed ({code})"),
        BackgroundStatus::Broken(why) => format!("failed: {}", loci_stdx::single_line(why, 200)),
        BackgroundStatus::Killed(_) => "stopped".to_owned(),
    }
}

/// Says what kind of work a task is, in a word.
pub fn kind(task: &BackgroundTask) -> &str {
    match &task.about.kind {
        TaskKind::Shell => "shell",
        TaskKind::Monitor => "monitor",
        TaskKind::Agent(kind) => kind,
        TaskKind::McpCall => "mcp",
    }
}

/// Tells whether a task is an agent.
pub fn is_agent(task: &BackgroundTask) -> bool {
    task.agent_type().is_some()
}

/// Lists the tasks.
pub(super) fn run_tasks(session: &SessionSnapshot) -> LocalOutcome {
    let background = session.tasks.iter().filter(|task| task.is_background);
    LocalOutcome::text(
        table("Background tasks", background).unwrap_or_else(|| "Nothing runs in the background".into()),
    )
}

/// Lists the agents, or does something with one of them.
pub(super) fn run_agents(argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    let (verb, rest) = split(argument);
    match (verb, split(rest)) {
        ("", _) => LocalOutcome::text(agents_text(session)),
        ("message", (agent, text)) if !agent.is_empty() && !text.is_empty() => LocalOutcome::default()
            .with(LocalEffect::MessageAgent { agent: agent.to_owned(), text: text.to_owned() }),
        ("stop", (agent, "")) if !agent.is_empty() => {
            LocalOutcome::default().with(LocalEffect::StopTask(agent.to_owned()))
        }
        _ => LocalOutcome::error(format!(
            "`/agents {argument}`: say `/agents`, `/agents message AGENT TEXT` or `/agents stop AGENT`"
        )),
    }
}

/// Lists those that can be spoken to.
pub(super) fn run_list_agents(session: &SessionSnapshot) -> LocalOutcome {
    let agents = session.tasks.iter().filter(|task| is_agent(task));
    let title = "Agents that can be spoken to";
    let none = "No agent was sent out in this session";
    LocalOutcome::text(table(title, agents).unwrap_or_else(|| none.to_owned()))
}

/// Stops one, or says which there are.
pub(super) fn run_stop(argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    if !argument.is_empty() {
        return LocalOutcome::default().with(LocalEffect::StopTask(argument.to_owned()));
    }
    let running = || session.tasks.iter().filter(|task| task.status == BackgroundStatus::Running);
    match (running().next(), running().count()) {
        (None, _) => LocalOutcome::text("Nothing runs in the background"),
        (Some(only), 1) => LocalOutcome::default().with(LocalEffect::StopTask(only.id.clone())),
        _ => LocalOutcome::text(format!(
            "{}\nName the one to stop: `/stop ID`\n",
            table("What runs", running()).unwrap_or_default()
        )),
    }
}

/// Gives a side task away.
pub(super) fn run_subtask(argument: &str) -> LocalOutcome {
    match argument {
        "" => LocalOutcome::error("Say what is to be done: `/subtask look for other callers of parse()`"),
        task => LocalOutcome::default().with(LocalEffect::Subtask(task.to_owned())),
    }
}

fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    (word, rest.trim())
}

fn agents_text(session: &SessionSnapshot) -> String {
    let sent = session.tasks.iter().filter(|task| is_agent(task));
    let none = || "## Agents\n\nNo agent was sent out in this session.\n".to_owned();
    let mut text = table("Agents", sent).unwrap_or_else(none);
    text.push_str(&format!(
        "\nCan be sent out: {}. `loci agents list` says more.\n",
        session.agents.iter().map(|name| cell(name)).collect::<Vec<_>>().join(", ")
    ));
    text
}

/// Tells tasks as a table; none where there are none.
fn table<'a>(title: &str, tasks: impl Iterator<Item = &'a BackgroundTask>) -> Option<String> {
    let mut text = format!("## {title}\n\n| Id | What | Kind | Status | Used |\n|---|---|---|---|---|\n");
    let mut n_tasks = 0;
    for task in tasks {
        n_tasks += 1;
        let used = task.report.as_ref().map_or_else(String::new, |report| {
            let usage = report.usage;
            format!("{} tokens, {}", short_tokens(usage.total_tokens), format_duration(usage.duration))
        });
        let (label, kind, status) = (cell(task.label()), cell(kind(task)), cell(&status(task)));
        text.push_str(&format!("| {} | {label} | {kind} | {status} | {used} |\n", cell(&task.id)));
    }
    (n_tasks > 0).then_some(text)
}

#[cfg(test)]
mod tests {
    use loci_core::ids::{SessionId, ToolUseId};
    use loci_engine::NewTask;

    use super::*;

    fn session(tasks: &[(&str, TaskKind, BackgroundStatus)]) -> SessionSnapshot {
        let id = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
        let task = |(id, kind, status): &(&str, TaskKind, BackgroundStatus)| BackgroundTask {
            about: NewTask {
                id: (*id).to_owned(),
                kind: kind.clone(),
                tool_use_id: ToolUseId::new("t"),
                command: format!("do {id}"),
                description: String::new(),
                output: "/o".into(),
            },
            owner: None,
            status: status.clone(),
            is_background: true,
            report: None,
        };
        SessionSnapshot { tasks: tasks.iter().map(task).collect(), ..SessionSnapshot::empty(id, "m") }
    }

    #[test]
    fn tasks_and_agents_are_listed_and_acted_upon() {
        let agent = || TaskKind::Agent("Explore".into());
        let (running, done) = (BackgroundStatus::Running, BackgroundStatus::Completed);
        let two = session(&[("a1", agent(), running.clone()), ("b2", TaskKind::Shell, done)]);
        assert!(run_tasks(&two).text.contains("| b2 | do b2 | shell | done |"), "{}", run_tasks(&two).text);
        let agents = run_agents("", &two).text;
        assert!(agents.contains("| a1 | do a1 | Explore | running |") && !agents.contains("b2"), "{agents}");
        let stop = |id: &str| vec![LocalEffect::StopTask(id.into())];
        assert_eq!(run_stop("", &two).effects, stop("a1"), "the only one that runs");
        assert_eq!(run_stop("b2", &two).effects, stop("b2"));
        assert_eq!(run_agents("stop a1", &two).effects, stop("a1"));
        let message = LocalEffect::MessageAgent { agent: "a1".into(), text: "look at b too".into() };
        assert_eq!(run_agents("message a1 look at b too", &two).effects, [message]);
        for wrong in ["message a1", "message", "stop", "stop a b", "other"] {
            assert!(run_agents(wrong, &two).is_error, "{wrong}");
        }
        let both = session(&[("a1", agent(), running.clone()), ("b2", TaskKind::Shell, running)]);
        let asked = run_stop("", &both);
        assert!(asked.effects.is_empty() && asked.text.contains("/stop ID"), "{}", asked.text);
        assert!(run_tasks(&session(&[])).text.contains("Nothing runs"));
        assert!(run_subtask("").is_error);
    }
}
