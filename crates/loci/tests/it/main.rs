//! The whole program from outside: the real binary, a scripted model on loopback, a home of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

mod accounts;
mod acp;
mod agent_sdk;
mod agent_sdk_types;
mod agent_sdk_typescript;
mod agent_sdk_typescript_options;
mod agents;
mod archive;
#[cfg(unix)]
mod asking;
mod build;
mod clear;
mod client_flags;
mod client_frames;
mod codex;
mod collapse;
mod compaction;
mod compaction_steps;
mod context;
mod context_editing;
mod control;
mod control_queries;
mod credentials;
mod environment;
mod exit_codes;
mod failures;
#[cfg(unix)]
mod fifos;
mod file_history;
mod forks;
#[cfg(target_os = "linux")]
mod full_disk;
mod headless;
mod hooks;
mod initialize;
mod instructions;
#[cfg(unix)]
mod interrupts;
#[cfg(target_os = "linux")]
mod killed;
mod local_commands;
mod login;
mod mcp;
mod memory;
mod memory_verbs;
mod mentions;
mod newest_reference;
mod notes;
mod outgrowing;
mod permission_verbs;
#[cfg(unix)]
mod permissions;
mod plan_mode;
#[cfg(unix)]
mod plugins;
mod prefix;
mod printing;
mod private_files;
mod protocol_frames;
mod providers;
mod recall;
mod recovery;
mod regressions;
mod replay;
mod resume;
mod rewind;
#[cfg(target_os = "linux")]
mod sandbox;
mod scripts;
mod sdk_sessions;
mod search;
mod search_processes;
mod session_file;
mod session_mirror;
mod session_panels;
mod sessions;
mod sessions_doctor;
mod settings;
#[cfg(unix)]
mod shell_mode;
mod skills;
mod stats;
mod stream_frames;
mod structured_output;
mod summarising;
mod support;
mod task_list;
#[cfg(unix)]
mod team_memory;
mod terminal_agents;
mod terminal_background;
mod terminal_commands;
mod terminal_fullscreen;
mod terminal_interface;
#[cfg(unix)]
mod terminal_manners;
mod terminal_panels;
mod terminal_questions;
mod terminal_status_line;
mod tool_search;
mod torture;
mod trace;
mod trust;
mod turn;
mod unknown_price;
mod unreadable;
mod user_questions;
mod web;
mod worktrees;
