//! The events that hooks are run at, and the table of what each of them can do.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment that hooks may be run at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookEvent {
    /// A session begins, goes on, or begins anew after a compaction.
    SessionStart,
    /// A project is made ready, or looked after, on request.
    Setup,
    /// A file of instructions was loaded.
    InstructionsLoaded,
    /// A prompt is about to be recorded.
    UserPromptSubmit,
    /// A typed command is about to become a prompt.
    UserPromptExpansion,
    /// A text of the model is about to be shown.
    MessageDisplay,
    /// A call is about to be judged.
    PreToolUse,
    /// A person would be asked about a call.
    PermissionRequest,
    /// A classifier refused a call.
    PermissionDenied,
    /// A call worked.
    PostToolUse,
    /// A call ran and failed.
    PostToolUseFailure,
    /// All calls of a response have their results.
    PostToolBatch,
    /// The user is notified of something.
    Notification,
    /// A subagent begins.
    SubagentStart,
    /// A subagent is about to end.
    SubagentStop,
    /// A task is about to be listed.
    TaskCreated,
    /// A task is about to be marked as done.
    TaskCompleted,
    /// A turn is about to end with an answer.
    Stop,
    /// A turn ended with a failure of the API.
    StopFailure,
    /// A teammate has nothing to do.
    TeammateIdle,
    /// A settings file changed.
    ConfigChange,
    /// The shell moved to another directory.
    CwdChanged,
    /// A directory was added to the session.
    DirectoryAdded,
    /// A watched file changed.
    FileChanged,
    /// A worktree is wanted.
    WorktreeCreate,
    /// A worktree goes.
    WorktreeRemove,
    /// A conversation is about to be compacted.
    PreCompact,
    /// A conversation was compacted.
    PostCompact,
    /// An MCP server asks the user something.
    Elicitation,
    /// The user answered an MCP server.
    ElicitationResult,
    /// Another model is about to be asked, since somebody chose it.
    PreModelSwitch,
    /// Another model is asked from now on.
    PostModelSwitch,
    /// A session ends.
    SessionEnd,
}

/// What a handler that blocks (exit code 2, or `decision: "block"`) brings about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockEffect {
    /// What was about to happen does not.
    Refuses,
    /// What was about to end goes on.
    GoesOn,
    /// The model is told; what has happened has happened.
    ToldModel,
    /// The turn ends here.
    EndsTurn,
    /// The user is told, and nothing else.
    ToldUser,
    /// Nothing.
    Ignored,
}

/// Which kinds of handlers an event takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerKinds {
    /// All of them.
    All,
    /// Those that ask no model: commands, addresses, tools of MCP servers.
    NoModel,
    /// Commands and tools of MCP servers: nothing else is there yet.
    Local,
}

/// What an event can do. One row each in [`HookEvent::facts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventFacts {
    /// What blocking brings about.
    pub block: BlockEffect,
    /// Whether `decision: "block"` counts, beside exit code 2.
    pub takes_decision: bool,
    /// Whether plain text on standard output is told to the model.
    pub plain_is_context: bool,
    /// Whether `additionalContext` is told to the model.
    pub takes_context: bool,
    /// Whether nothing of an answer counts but a block.
    pub is_discarded: bool,
    /// Which handlers it takes.
    pub kinds: HandlerKinds,
    /// Whether the matcher is compared with something.
    pub has_matcher: bool,
}

/// How long a command may take unless it says otherwise.
const USUAL: Duration = Duration::from_secs(600);

impl HookEvent {
    /// All events, in the order in which people are shown them.
    pub const ALL: [Self; 33] = [
        Self::SessionStart,
        Self::Setup,
        Self::InstructionsLoaded,
        Self::UserPromptSubmit,
        Self::UserPromptExpansion,
        Self::MessageDisplay,
        Self::PreToolUse,
        Self::PermissionRequest,
        Self::PermissionDenied,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PostToolBatch,
        Self::Notification,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::TaskCreated,
        Self::TaskCompleted,
        Self::Stop,
        Self::StopFailure,
        Self::TeammateIdle,
        Self::ConfigChange,
        Self::CwdChanged,
        Self::DirectoryAdded,
        Self::FileChanged,
        Self::WorktreeCreate,
        Self::WorktreeRemove,
        Self::PreCompact,
        Self::PostCompact,
        Self::Elicitation,
        Self::ElicitationResult,
        Self::PreModelSwitch,
        Self::PostModelSwitch,
        Self::SessionEnd,
    ];

    /// Returns the name that settings and handlers know.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::Setup => "Setup",
            Self::InstructionsLoaded => "InstructionsLoaded",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::UserPromptExpansion => "UserPromptExpansion",
            Self::MessageDisplay => "MessageDisplay",
            Self::PreToolUse => "PreToolUse",
            Self::PermissionRequest => "PermissionRequest",
            Self::PermissionDenied => "PermissionDenied",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PostToolBatch => "PostToolBatch",
            Self::Notification => "Notification",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::TaskCreated => "TaskCreated",
            Self::TaskCompleted => "TaskCompleted",
            Self::Stop => "Stop",
            Self::StopFailure => "StopFailure",
            Self::TeammateIdle => "TeammateIdle",
            Self::ConfigChange => "ConfigChange",
            Self::CwdChanged => "CwdChanged",
            Self::DirectoryAdded => "DirectoryAdded",
            Self::FileChanged => "FileChanged",
            Self::WorktreeCreate => "WorktreeCreate",
            Self::WorktreeRemove => "WorktreeRemove",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::Elicitation => "Elicitation",
            Self::ElicitationResult => "ElicitationResult",
            Self::PreModelSwitch => "PreModelSwitch",
            Self::PostModelSwitch => "PostModelSwitch",
            Self::SessionEnd => "SessionEnd",
        }
    }

    /// Returns the event of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Tells whether it is about a call of a tool, which is what `if` can be compared with.
    pub fn is_about_a_tool(self) -> bool {
        use HookEvent::{PermissionDenied, PermissionRequest, PostToolUse, PostToolUseFailure, PreToolUse};
        matches!(self, PreToolUse | PermissionRequest | PermissionDenied | PostToolUse | PostToolUseFailure)
    }

    /// Tells whether a handler can keep something from happening: one that cannot be run must not be passed over in
    /// silence.
    pub fn can_refuse(self) -> bool {
        matches!(self.facts().block, BlockEffect::Refuses | BlockEffect::GoesOn | BlockEffect::EndsTurn)
            || self == Self::PermissionRequest
    }

    /// Tells whether this version has what the event is about; handlers of others are never run, which is said.
    pub fn is_built(self) -> bool {
        self != Self::TeammateIdle
    }

    /// Returns how long a command may take unless it says otherwise.
    pub fn timeout(self) -> Duration {
        match self {
            Self::UserPromptSubmit => Duration::from_secs(30),
            Self::MessageDisplay => Duration::from_secs(10),
            Self::SessionEnd => Duration::from_millis(1500),
            _ => USUAL,
        }
    }

    /// Returns what the event can do.
    pub fn facts(self) -> EventFacts {
        use BlockEffect::{EndsTurn, GoesOn, Ignored, Refuses, ToldModel, ToldUser};
        use HandlerKinds::{All, Local, NoModel};
        let row = |block, marks: &str, kinds| EventFacts {
            block,
            takes_decision: marks.contains('d'),
            plain_is_context: marks.contains('p'),
            takes_context: marks.contains('c'),
            is_discarded: marks.contains('x'),
            has_matcher: marks.contains('m'),
            kinds,
        };
        // d: decision; p: plain text is context; c: additionalContext; x: only a block counts; m: has a matcher.
        match self {
            Self::SessionStart => row(ToldUser, "pcm", Local),
            Self::Setup => row(ToldUser, "cm", Local),
            Self::InstructionsLoaded => row(Ignored, "xm", NoModel),
            Self::UserPromptSubmit => row(Refuses, "dpc", All),
            Self::UserPromptExpansion => row(Refuses, "dpcm", All),
            Self::MessageDisplay => row(Ignored, "", NoModel),
            Self::PreToolUse => row(Refuses, "cm", All),
            Self::PermissionRequest => row(Ignored, "m", All),
            Self::PermissionDenied => row(Ignored, "m", All),
            Self::PostToolUse => row(ToldModel, "dcm", All),
            Self::PostToolUseFailure => row(ToldModel, "dcm", All),
            Self::PostToolBatch => row(EndsTurn, "dc", All),
            Self::Notification => row(Ignored, "xm", NoModel),
            Self::SubagentStart => row(ToldUser, "cm", NoModel),
            Self::SubagentStop => row(GoesOn, "dcm", All),
            Self::TaskCreated => row(Refuses, "d", All),
            Self::TaskCompleted => row(Refuses, "d", All),
            Self::Stop => row(GoesOn, "dc", All),
            Self::StopFailure => row(Ignored, "xm", NoModel),
            Self::TeammateIdle => row(GoesOn, "", All),
            Self::ConfigChange => row(Refuses, "dxm", NoModel),
            Self::CwdChanged => row(ToldUser, "", NoModel),
            Self::DirectoryAdded => row(Ignored, "m", NoModel),
            Self::FileChanged => row(ToldUser, "m", NoModel),
            Self::WorktreeCreate => row(Refuses, "", NoModel),
            Self::WorktreeRemove => row(Ignored, "x", NoModel),
            Self::PreCompact => row(Refuses, "dxm", NoModel),
            Self::PostCompact => row(ToldUser, "xm", NoModel),
            Self::Elicitation => row(Refuses, "m", NoModel),
            Self::ElicitationResult => row(Refuses, "m", NoModel),
            Self::PreModelSwitch => row(Refuses, "m", All),
            Self::PostModelSwitch => row(ToldUser, "cm", NoModel),
            Self::SessionEnd => row(ToldUser, "xm", NoModel),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_found_by_its_name_and_no_other_name_is() {
        for event in HookEvent::ALL {
            assert_eq!(HookEvent::parse(event.name()), Some(event));
        }
        for name in ["", "pretooluse", "PreToolUse ", "Status", "*"] {
            assert_eq!(HookEvent::parse(name), None, "{name}");
        }
    }

    #[test]
    fn only_events_that_can_refuse_something_are_deciding() {
        let deciding: Vec<&str> =
            HookEvent::ALL.into_iter().filter(|event| event.can_refuse()).map(HookEvent::name).collect();
        assert_eq!(
            deciding.join(" "),
            "UserPromptSubmit UserPromptExpansion PreToolUse PermissionRequest PostToolBatch SubagentStop TaskCreated \
             TaskCompleted Stop TeammateIdle ConfigChange WorktreeCreate PreCompact Elicitation ElicitationResult \
             PreModelSwitch"
        );
    }
}
