//! The query engine: a pure turn machine and the drivers that perform its effects.
//!
//! Front ends see commands going in ([`Command`]), events coming out ([`EngineEvent`]) and snapshots of the
//! state. The machine in [`turn`] decides; [`Session`] performs.

mod background;
mod calls;
mod classifier;
mod client_request;
mod command;
mod compaction_hooks;
mod config;
mod event;
mod file_history;
mod host;
mod instructions;
mod judge;
mod lost_tasks;
mod memory;
mod model_name;
mod opening;
mod recorder;
mod renewal;
mod replay;
mod request;
mod restore;
mod restore_source;
mod session;
mod slash_command;
mod state;
mod state_effects;
mod task_list;
pub mod turn;

pub use classifier::{Classifier, ClassifierCall, ClassifierFuture};
pub use client_request::{ClientAnswer, ClientMessage, ClientRequest, ClientRequestError, ClientRequests};
pub use command::{Answer, Command, Prompt};
pub use compaction_hooks::{
    AfterCompaction, BeforeCompaction, CompactionHooks, CompactionLeave, LeaveFuture, ToldFuture,
};
pub use config::{
    Ambient, BackgroundConfig, CompactionConfig, ExtractionConfig, Grants, LoadedHistory, ModelConfig,
    ReadInstructions, ReloadPoint, ReloadedSettings, SaveUpdate, SessionConfig, SessionMemory,
    SettingsApplier, SettingsPoller, SettingsReload, TurnLimits,
};
pub use event::{AssistantBlock, EngineEvent, FilesRewound, Question, TurnReport, TurnStart, UserMessage};
pub use file_history::FileKeeping;
pub use instructions::shown_instructions;
pub use memory::shown_memory_indexes;
pub use model_name::resolve_model;
pub use renewal::{NewSession, RenewSession, RenewalState, RunnerEvent, SessionRunner};
pub use replay::{
    CallCheck, CallOutcome, ReplayReport, ReplayWish, RequestCheck, TakenOver, Workshop, replay,
};
pub use restore_source::RestoreSource;
pub use session::{Session, SessionHandle};
pub use slash_command::{CommandAction, CommandCall, CommandRegistry, CommandSource, SlashCommand};
pub use state::{StateEffects, change, change_identity, connect};
