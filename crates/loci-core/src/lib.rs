//! What is true in loci, as values: ids, messages, transcript entries, application state, permission
//! decisions, tool descriptors, usage and cost.
//!
//! The crate is pure: no file, network, process, environment, clock or randomness. Whatever comes from the
//! world arrives as an argument, so every rule here can be tested with plain data.

pub mod agent;
pub mod app_state;
pub mod background_task;
pub mod conversation;
pub mod cost_state;
pub mod diff;
pub mod entry;
pub mod file_history;
pub mod front_matter;
pub mod git_index;
pub mod hex;
pub mod hooks;
pub mod ids;
pub mod inbox;
mod lenient;
pub mod message;
pub mod model;
pub mod output_style;
pub mod passage;
pub mod path;
pub mod permission;
pub mod plugin;
pub mod raw;
pub mod recall;
pub mod sandbox_profile;
pub mod sandbox_status;
pub mod schedule;
pub mod search;
pub mod serde_form;
pub mod session;
pub mod skill;
pub mod slug_words;
pub mod stream;
pub mod task_list;
pub mod tool;
pub mod usage;
pub mod user_question;
pub mod web;
pub mod window;
