//! What the engine tells, sorted: news for everybody, and answers for whoever asked.

use std::convert::Infallible;
use std::fmt::Display;

use loci_engine::EngineEvent;
use loci_protocol::event::Event;
use loci_protocol::prompt::QueuedPrompt;
use loci_protocol::request::{
    AddDirectory, AskAside, CancelPrompt, McpCall, MessageAgent, PromptCancelled, ReloadPlugins, RewindFiles,
    SetModel, StopTask,
};
use loci_protocol::{Answer, Ask, Done, RequestError};

use super::client::Reply;

/// What an event of the engine is.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are the large one, and each is passed on at once"
)]
pub(super) enum Sorted {
    /// Something happened.
    News(Event),
    /// The request of this id is answered.
    Answer(String, Reply),
    /// What was queued is taken back, as the one who asked first wanted.
    TakenBack(Vec<QueuedPrompt>),
    /// Nobody asks for it here.
    Nothing,
}

/// Sorts an event.
pub(super) fn sort(event: EngineEvent) -> Sorted {
    Sorted::News(match event {
        EngineEvent::StopAnswered { request } => return answer::<StopTask>(request, sure(Done {})),
        EngineEvent::AgentMessaged { request, outcome } => return answer::<MessageAgent>(request, outcome),
        EngineEvent::QueueTakenBack(prompts) => return Sorted::TakenBack(prompts),
        EngineEvent::FilesRewound { request, outcome } => return answer::<RewindFiles>(request, outcome),
        EngineEvent::DirectoryAdded { request, outcome } => return answer::<AddDirectory>(request, outcome),
        EngineEvent::SideAnswered { request, outcome } => return answer::<AskAside>(request, outcome),
        EngineEvent::McpAnswered { request, outcome } => {
            return answer::<McpCall>(request, outcome.map(Option::unwrap_or_default));
        }
        EngineEvent::ModelAnswered { request, outcome } => {
            return answer::<SetModel>(request, outcome);
        }
        EngineEvent::PromptCancelled { request, is_cancelled } => {
            return answer::<CancelPrompt>(request, sure(PromptCancelled { is_cancelled }));
        }
        EngineEvent::PluginsReloaded { request, outcome } => {
            return answer::<ReloadPlugins>(request, outcome);
        }
        EngineEvent::Snapshot { .. } => return Sorted::Nothing,
        EngineEvent::Agent { agent, event } => match sort(*event) {
            Sorted::News(event) => Event::Agent { agent, event: Box::new(event) },
            other => return other,
        },
        EngineEvent::Resumed(history) => Event::Resumed(history),
        EngineEvent::Task(news) => Event::Task(news),
        EngineEvent::AgentRefused(limit) => Event::AgentRefused(limit),
        EngineEvent::GoalChecked { goal, verdict, reason } => Event::GoalChecked { goal, verdict, reason },
        EngineEvent::GoalChanged(goal) => Event::GoalChanged(goal),
        EngineEvent::TurnStarted(start) => Event::TurnStarted(start),
        EngineEvent::PromptRecorded { entry, message, timestamp, attached } => {
            Event::PromptRecorded { entry, message, timestamp, attached }
        }
        EngineEvent::Dequeued { id, text, is_injected, attached } => {
            Event::Dequeued { id, text, is_injected, attached }
        }
        EngineEvent::Requesting => Event::Requesting,
        EngineEvent::Stream { event, first_after } => Event::Stream { event, first_after },
        EngineEvent::Assistant(block) => Event::Assistant(block),
        EngineEvent::User(message) => Event::User(message),
        EngineEvent::Retry { attempt, max_retries, delay, failure } => {
            Event::Retry { attempt, max_retries, delay, failure }
        }
        EngineEvent::Fallback { from, to, failure } => Event::Fallback { from, to, failure },
        EngineEvent::TurnsOver { mode } => Event::TurnsOver { mode },
        EngineEvent::ResultsCleared { n_results, freed_tokens } => {
            Event::ResultsCleared { n_results, freed_tokens }
        }
        EngineEvent::Compacting => Event::Compacting,
        EngineEvent::Compacted { metadata } => Event::Compacted { metadata },
        EngineEvent::CompactionEnded { failure } => Event::CompactionEnded { failure },
        EngineEvent::Context(fullness) => Event::Context(fullness),
        EngineEvent::QuestionAsked(question) => Event::QuestionAsked(question),
        EngineEvent::PermissionDenied { tool, call, reason_kind, message } => {
            Event::PermissionDenied { tool, call, reason_kind: reason_kind.into(), message }
        }
        EngineEvent::QuestionWithdrawn { question } => Event::QuestionWithdrawn { question },
        EngineEvent::LocalCommand(output) => Event::LocalCommand(output),
        EngineEvent::Progress { call, progress } => Event::Progress { call, progress },
        EngineEvent::ShellStarted { call, command } => Event::ShellStarted { call, command },
        EngineEvent::ShellEnded { call, output } => Event::ShellEnded { call, output },
        EngineEvent::TasksChanged(tasks) => Event::TasksChanged(tasks),
        EngineEvent::CommandsChanged(commands) => Event::CommandsChanged(commands),
        EngineEvent::ElicitationCompleted { server, id } => Event::ElicitationCompleted { server, id },
        EngineEvent::ModeChanged(mode) => Event::ModeChanged(mode),
        EngineEvent::ModelChanged(model) => Event::ModelChanged(model),
        EngineEvent::SandboxStatus(status) => Event::SandboxStatus(status),
        EngineEvent::SettingsChanged(settings) => Event::SettingsChanged(settings),
        EngineEvent::HookStarted(run) => Event::HookStarted(run),
        EngineEvent::HookProgress(run) => Event::HookProgress(run),
        EngineEvent::HookEnded(run) => Event::HookEnded(run),
        EngineEvent::TerminalSequence(sequence) => Event::TerminalSequence(sequence),
        EngineEvent::TranscriptLines { file, lines } => Event::TranscriptLines { file, lines },
        EngineEvent::Warning(text) => Event::Warning(text),
        EngineEvent::TurnEnded(report) => Event::TurnEnded(report),
    })
}

/// Answers a request with what came of it.
fn answer<Q: Ask>(request: String, outcome: Result<Q::Answer, impl Display>) -> Sorted {
    let reply: Result<Answer, RequestError> =
        outcome.map(Q::answer).map_err(|why| RequestError::failed(why.to_string()));
    Sorted::Answer(request, reply)
}

/// The outcome of a request that cannot fail.
fn sure<T>(answer: T) -> Result<T, Infallible> {
    Ok(answer)
}
