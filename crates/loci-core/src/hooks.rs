//! Hooks as values: what is configured, whom an event concerns, what handlers are told, and what their answers come to.
//!
//! Nothing here runs anything. [`HookConfig::parse`] reads settings, entry by entry; [`HookConfig::matching`] picks the
//! handlers of an event; [`HookInput`] is what each of them reads; [`HookAnswer::read`] is what one said; and
//! [`HookDecision::merge`] makes one decision of all their answers, by the table of [`EventFacts`].
//!
//! What must stay true is numbered in `docs/design/hooks.md` (H-1 to H-19).

mod answer;
mod config;
mod decision;
mod entry_reader;
mod event;
mod field_template;
mod input;
mod matcher;
mod url_pattern;

pub use answer::{HandlerEnd, HookAnswer, HookPermission, PermissionReply};
pub use config::{
    Condition, Handler, HookConfig, HookEntry, HookProblem, HookScope, HookSource, HookSwitches, RunMode,
    SettingsHooks, Shell,
};
pub use decision::HookDecision;
pub use event::{BlockEffect, EventFacts, HandlerKinds, HookEvent};
pub use field_template::fill_template;
pub use input::{
    CommonInput, EffortLevel, EventInput, HookInput, HookMcpServer, ModelSwitchFields, TaskFields,
    ToolBatchCall, ToolFields, example,
};
pub use matcher::Matcher;
