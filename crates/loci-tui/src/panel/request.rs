//! What panels and commands ask for off the thread that draws, and the answers.

use std::path::PathBuf;
use std::sync::Arc;

use loci_app::UserError;
use loci_app::commands::config::{self, SettingRow};
use loci_app::commands::context;
use loci_app::commands::diff::{self, ChangedFile};
use loci_app::commands::fewer_prompts::{self, LearnedRules};
use loci_app::commands::hooks::{self, HookRow};
use loci_app::commands::mcp::{self, ServerRow, server_log};
use loci_app::commands::memory::{self, MemoryNote, MemoryReport, MemoryRequest};
use loci_app::commands::model::{self, ModelRow};
use loci_app::commands::plugin::{self, PluginOptions, PluginReport};
use loci_app::commands::sandbox::{self, SandboxChange, SandboxReport};
use loci_app::commands::skills::{self, SkillRow};
use loci_app::commands::{ReportTopic, SessionCommands};
use loci_app::credentials::login::{forget_key, keep_key};
use loci_app::mcp::toggles::keep_server_toggle;
use loci_app::plugins::PluginRequest;
use loci_app::reports::stats::{UsagePlots, usage_plots};
use loci_app::sessions::command::{
    self as session_command, CommandContext, ContextPoint, PastAgent, RewindPoints, RewindPreview,
    RewindRequest, TurnChanges,
};
use loci_app::sessions::picker::{
    BranchChoice, FoundMessage, PickerScope, SessionChoice, entries_from, find_messages, list_choices,
    preview_entries, recent_choices, rename_choice, session_branches,
};
use loci_core::skill::SkillOverride;
use loci_engine::{BackgroundTask, SessionSnapshot};
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;

use crate::app::{SecretText, all_blocks, history_blocks};
use crate::block::Block;
use crate::interface_settings::InterfaceSettings;
use crate::theme::ThemeFile;

/// How many entries of a session a preview shows.
const MOST_PREVIEW: usize = 40;

/// Something that is found out beside the thread that draws.
#[derive(Debug, Clone, PartialEq)]
pub enum PanelRequest {
    /// Write the conversation to a file.
    Export {
        /// Which; one is made of the day and the title where there is none.
        file: Option<String>,
    },
    /// Make Markdown of the conversation.
    ExportText,
    /// Write a text to a file that does not exist.
    WriteText {
        /// Which.
        file: String,
        /// The text.
        text: String,
    },
    /// Read all of the session.
    Transcript,
    /// List the agents that earlier runs of the session sent out.
    PastAgents,
    /// Read what an agent of the session said and did.
    AgentTranscript {
        /// Its id.
        agent: String,
    },
    /// List the prompts that one can go back to.
    RewindPoints,
    /// Find out what a rewind would do to files.
    RewindPreview {
        /// The prompt; none to undo the last rewind.
        prompt: Option<String>,
    },
    /// Take files back.
    RewindFiles(RewindRequest),
    /// List sessions, the newest first.
    Sessions {
        /// Where.
        scope: PickerScope,
        /// About so many of those that were written last; all of them, where nothing is said.
        most: Option<usize>,
    },
    /// Find the branches of a session's conversation.
    Branches {
        /// Its transcript.
        file: PathBuf,
    },
    /// Find messages of sessions by their words.
    FindMessages {
        /// The words.
        text: String,
        /// Where.
        scope: PickerScope,
        /// So many at most.
        limit: usize,
    },
    /// Read some of what was said in a session.
    Preview {
        /// Its transcript.
        file: PathBuf,
        /// The message that it begins with; the last of it, where there is none.
        from: Option<String>,
    },
    /// Give a session a name.
    RenameSession {
        /// Which.
        choice: Box<SessionChoice>,
        /// The name.
        title: String,
    },
    /// Read what a background task printed.
    TaskOutput {
        /// Its id.
        task: String,
        /// The file that collects it.
        file: PathBuf,
    },
    /// Say something about the session, as text.
    Report {
        /// What about.
        topic: ReportTopic,
        /// How it stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// Read instruction files and memories.
    Memory {
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// Do something with memories.
    ChangeMemory {
        /// What.
        wish: MemoryRequest,
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// Switch memories on or off.
    SwitchMemory {
        /// Whether they are kept from now on.
        is_on: bool,
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// Compare the working tree with the last commit.
    Diff,
    /// Find out what each turn changed.
    TurnChanges,
    /// Find out whether the session may move to a directory.
    MoveTarget {
        /// The directory, as it was typed.
        path: String,
    },
    /// List the settings.
    Settings,
    /// Change a setting in the file that it usually goes to; an empty value removes it.
    ChangeSetting {
        /// Which.
        key: String,
        /// To what.
        value: String,
    },
    /// Keep whether the task list is shown, for later sessions.
    KeepTaskView {
        /// Whether it is.
        is_shown: bool,
    },
    /// Keep an API key.
    StoreKey(SecretText),
    /// Forget the API key that is kept.
    ForgetKey,
    /// Say what there is of skills.
    Skills {
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// Write down how a skill may be used.
    SetSkillVisibility {
        /// Which.
        name: String,
        /// How.
        visibility: SkillOverride,
    },
    /// Keep for later sessions whether a server is used in the project.
    KeepServerToggle {
        /// Which.
        server: String,
        /// Whether it is.
        is_on: bool,
    },
    /// List the hooks.
    Hooks {
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// List the MCP servers.
    Servers {
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// Read the log of an MCP server.
    ServerLog {
        /// Which.
        server: String,
    },
    /// Find out how the sandbox stands.
    Sandbox,
    /// Change something about the sandbox.
    ChangeSandbox(SandboxChange),
    /// List plugins and marketplaces.
    Plugins,
    /// Turn a plugin on or off.
    TogglePlugin {
        /// Which.
        id: String,
        /// Whether it is on from now on.
        is_on: bool,
    },
    /// Install, update or remove plugins, or look at one; the answer is [`PanelData::PluginsChanged`].
    ChangePlugins(PluginRequest),
    /// Find out which options a plugin has, and what they are set to.
    PluginOptions {
        /// Which.
        id: String,
    },
    /// Set an option of a plugin.
    SetPluginOption {
        /// Which plugin.
        id: String,
        /// Which option.
        key: String,
        /// What was typed, which may be a secret; none forgets its value.
        typed: Option<SecretText>,
    },
    /// Find out how the context has filled over the session.
    ContextHistory {
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// Count what all sessions have used.
    Statistics,
    /// Find out which rules the person's settings for the project have.
    SavedRules {
        /// Those that were to be saved there.
        rules: Vec<String>,
    },
    /// Learn rules from what was asked and answered.
    LearnedRules {
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// List the models that can be chosen.
    Models {
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
}

/// The answer to a request.
#[derive(Debug, PartialEq)]
pub enum PanelData {
    /// Where the conversation was written.
    Exported(PathBuf),
    /// The conversation as Markdown.
    ExportText(String),
    /// Where a text was written.
    Written(PathBuf),
    /// All that was said in the session, as blocks.
    Transcript(Vec<Block>),
    /// The agents that earlier runs of the session sent out, oldest first.
    PastAgents(Vec<PastAgent>),
    /// What an agent of the session said and did.
    AgentTranscript {
        /// Its id.
        agent: String,
        /// All of it, as blocks.
        blocks: Vec<Block>,
    },
    /// The prompts that one can go back to.
    RewindPoints(RewindPoints),
    /// What a rewind would do to files.
    RewindPreview {
        /// The prompt; none to undo the last rewind.
        prompt: Option<String>,
        /// What it would do.
        preview: RewindPreview,
    },
    /// Something was done, in words.
    Done(Vec<String>),
    /// Sessions, the newest first.
    Sessions {
        /// Where they were looked for.
        scope: PickerScope,
        /// They.
        sessions: Vec<SessionChoice>,
        /// Whether these are all.
        is_whole: bool,
    },
    /// The branches of a session's conversation.
    Branches {
        /// Its transcript.
        file: PathBuf,
        /// The newest first.
        branches: Vec<BranchChoice>,
    },
    /// Messages that have the words.
    FoundMessages {
        /// The words.
        text: String,
        /// The best first.
        found: Vec<FoundMessage>,
    },
    /// What was said last in a session.
    Preview {
        /// Its transcript.
        file: PathBuf,
        /// The last of it, as blocks.
        blocks: Vec<Block>,
    },
    /// A session has its name.
    Renamed,
    /// The background tasks as they are now.
    Tasks(Vec<BackgroundTask>),
    /// The end of what a task printed.
    TaskOutput {
        /// Its id.
        task: String,
        /// What it printed.
        text: String,
    },
    /// How the session stands.
    Snapshot(Arc<SessionSnapshot>),
    /// An agent was spoken to, and what becomes of it.
    AgentMessaged(Result<String, String>),
    /// The skills.
    Skills(Vec<SkillRow>),
    /// How a skill may be used was written down, or why not.
    SkillChanged(Result<String, String>),
    /// Whether a server is used was written down.
    ServerToggleKept,
    /// The hooks.
    Hooks(Vec<HookRow>),
    /// The MCP servers.
    Servers(Vec<ServerRow>),
    /// What a server complained about, and what was noticed of it.
    ServerLog {
        /// Which.
        server: String,
        /// The text.
        text: String,
    },
    /// How the sandbox stands.
    Sandbox {
        /// All of it.
        report: SandboxReport,
        /// What became of a change, if one was asked for.
        note: Option<String>,
    },
    /// A request about plugins was carried out.
    PluginsChanged {
        /// What is to be said of it, or why it was not done.
        output: Result<String, String>,
    },
    /// Plugins and marketplaces.
    Plugins {
        /// All of them.
        report: PluginReport,
        /// What became of a change, if one was asked for.
        note: Option<String>,
    },
    /// The options of a plugin.
    PluginOptions {
        /// All of them.
        options: PluginOptions,
        /// What became of a change, if one was asked for.
        note: Option<String>,
    },
    /// How the context has filled, after each answer.
    ContextHistory(Vec<ContextPoint>),
    /// What all sessions have used.
    Statistics(UsagePlots),
    /// Rules that would have answered questions.
    LearnedRules(LearnedRules),
    /// Rules that were to be saved.
    SavedRules {
        /// Those that are.
        saved: Vec<String>,
        /// Those that are not.
        missing: Vec<String>,
    },
    /// Servers have changed: whoever shows them asks again. There may be a page to log in at.
    ServersChanged(Result<Option<String>, String>),
    /// What is said about the session.
    Report {
        /// What about.
        topic: ReportTopic,
        /// What is said.
        markdown: String,
    },
    /// Instruction files and memories as they are now.
    Memory {
        /// All of them.
        report: MemoryReport,
        /// What became of what was asked for, if anything was.
        note: Option<String>,
        /// The change that was made, by which it can be taken back.
        change: Option<u64>,
    },
    /// A text comes back from the person's editor, or why not.
    EditedText {
        /// What it is of.
        name: String,
        /// The text.
        text: Result<String, String>,
    },
    /// A file was open in the person's editor; why not, where it was not.
    EditedFile(Option<String>),
    /// What changed since the last commit, or why that cannot be told.
    Diff(Result<Vec<ChangedFile>, String>),
    /// What the turns changed, the newest first.
    TurnChanges(Vec<TurnChanges>),
    /// The session may move to this directory.
    MoveTarget(PathBuf),
    /// The settings as they are now.
    Settings {
        /// All of them.
        rows: Vec<SettingRow>,
        /// What became of a change, if one was asked for.
        note: Option<String>,
        /// What those in force say about the interface.
        interface: Box<InterfaceSettings>,
    },
    /// The models that can be chosen.
    Models(Vec<ModelRow>),
    /// The themes that are not loci's, as their files have them now.
    Themes(Vec<ThemeFile>),
    /// What the model says to a question on the side, or why it says nothing.
    SideAnswer {
        /// The request's id.
        request: String,
        /// What came of it.
        outcome: Result<String, String>,
    },
    /// It could not be done, and why.
    Failed(String),
}

/// Answers a request. Blocks: it reads and writes files.
pub(crate) fn answer(request: PanelRequest, ctx: &CommandContext) -> PanelData {
    let answer = match request {
        PanelRequest::Export { file } => {
            session_command::export(ctx, file.as_deref()).map(PanelData::Exported)
        }
        PanelRequest::ExportText => session_command::export_text(ctx).map(PanelData::ExportText),
        PanelRequest::WriteText { file, text } => {
            session_command::write_text(ctx, &file, &text).map(PanelData::Written)
        }
        PanelRequest::Transcript => session_command::entries(ctx)
            .map(|entries| PanelData::Transcript(all_blocks(&entries, &ctx.env.cwd))),
        PanelRequest::PastAgents => Ok(PanelData::PastAgents(session_command::past_agents(ctx))),
        PanelRequest::AgentTranscript { agent } => {
            session_command::agent_entries(ctx, &agent).map(|entries| {
                let blocks = all_blocks(&entries, &ctx.env.cwd);
                PanelData::AgentTranscript { agent, blocks }
            })
        }
        PanelRequest::TaskOutput { task, file } => {
            session_command::task_output(&file).map(|text| PanelData::TaskOutput { task, text })
        }
        PanelRequest::Report { topic, snapshot } => {
            let markdown = SessionCommands::from(ctx).report(topic, &snapshot);
            Ok(PanelData::Report { topic, markdown })
        }
        PanelRequest::Memory { snapshot } => memory_data(ctx, &snapshot, None, None),
        PanelRequest::ChangeMemory { wish, snapshot } => {
            match memory::carry_out(&SessionCommands::from(ctx), &wish) {
                Ok(MemoryNote { text, change }) => memory_data(ctx, &snapshot, Some(text), Some(change)),
                Err(error) => memory_data(ctx, &snapshot, Some(error.to_string()), None),
            }
        }
        PanelRequest::SwitchMemory { is_on, snapshot } => {
            let said = memory::switch(&SessionCommands::from(ctx), is_on);
            memory_data(ctx, &snapshot, Some(said.unwrap_or_else(|error| error.to_string())), None)
        }
        PanelRequest::TurnChanges => session_command::turn_changes(ctx).map(PanelData::TurnChanges),
        PanelRequest::MoveTarget { path } => {
            session_command::move_target(ctx, &path).map(PanelData::MoveTarget)
        }
        PanelRequest::Diff => Ok(PanelData::Diff(diff::changed_files(&SessionCommands::from(ctx)))),
        PanelRequest::Settings => Ok(settings_data(ctx, None)),
        PanelRequest::ChangeSetting { key, value } => {
            let changed = config::change(&ctx.settings(), &key, &value, None);
            Ok(settings_data(ctx, Some(changed.unwrap_or_else(|error| error.to_string()))))
        }
        PanelRequest::KeepTaskView { is_shown } => {
            let kept = config::keep_task_view(&ctx.settings(), is_shown);
            Ok(settings_data(ctx, kept.err().map(|error| error.to_string())))
        }
        PanelRequest::StoreKey(_) | PanelRequest::ForgetKey if ctx.settings().is_demo() => {
            Err(UserError::new("The demo keeps nothing").hint("Leave it and run `loci`, or `loci login`."))
        }
        PanelRequest::StoreKey(key) => keep_key(&ctx.env.vars, &ctx.home, key.reveal())
            .map(|text| PanelData::Done(text.lines().map(str::to_owned).collect())),
        PanelRequest::ForgetKey => forget_key(&ctx.home).map(|text| PanelData::Done(vec![text.to_owned()])),
        PanelRequest::Skills { snapshot } => Ok(PanelData::Skills(skills::rows(&snapshot))),
        PanelRequest::SetSkillVisibility { name, visibility } => {
            let changed = skills::set_visibility(&ctx.settings(), &name, visibility);
            Ok(PanelData::SkillChanged(changed.map_err(|error| error.to_string())))
        }
        PanelRequest::KeepServerToggle { server, is_on } => {
            keep_server_toggle(&ctx.env, &ctx.home, &server, is_on).map(|()| PanelData::ServerToggleKept)
        }
        PanelRequest::Hooks { snapshot } => {
            Ok(PanelData::Hooks(hooks::rows(&SessionCommands::from(ctx), &snapshot)))
        }
        PanelRequest::Servers { snapshot } => Ok(PanelData::Servers(mcp::rows_of_all(&snapshot))),
        PanelRequest::ServerLog { server } => {
            server_log(&ctx.home, &server).map(|text| PanelData::ServerLog { server, text })
        }
        PanelRequest::Sandbox => Ok(sandbox_data(ctx, None)),
        PanelRequest::ChangeSandbox(wish) => {
            let said = sandbox::carry_out(&ctx.settings(), wish);
            Ok(sandbox_data(ctx, Some(said.unwrap_or_else(|error| error.to_string()))))
        }
        PanelRequest::Plugins => Ok(plugin_data(ctx, None)),
        PanelRequest::TogglePlugin { id, is_on } => {
            let said = plugin::set_enabled(&ctx.settings(), &id, is_on);
            Ok(plugin_data(ctx, Some(said.unwrap_or_else(|error| error.to_string()))))
        }
        PanelRequest::ChangePlugins(request) => {
            let output = match request.carry_out_unasked(&ctx.settings()) {
                Ok(answer) if answer.is_wrong => Err(answer.said),
                Ok(answer) => Ok(answer.said),
                Err(error) => Err(error.to_string()),
            };
            Ok(PanelData::PluginsChanged { output })
        }
        PanelRequest::PluginOptions { id } => plugin_options(ctx, &id, None),
        PanelRequest::SetPluginOption { id, key, typed } => {
            let typed = typed.as_ref().map(SecretText::reveal);
            let said = plugin::set_option(&ctx.settings(), &id, &key, typed);
            plugin_options(ctx, &id, Some(said.unwrap_or_else(|error| error.to_string())))
        }
        PanelRequest::ContextHistory { snapshot } => {
            context::history(&snapshot).map(PanelData::ContextHistory)
        }
        PanelRequest::Statistics => usage_plots(&ctx.env, &ctx.home).map(PanelData::Statistics),
        PanelRequest::SavedRules { rules } => {
            let known = fewer_prompts::saved_rules(&ctx.settings());
            let (saved, missing) = rules.into_iter().partition(|rule| known.contains(rule));
            Ok(PanelData::SavedRules { saved, missing })
        }
        PanelRequest::LearnedRules { snapshot } => Ok(PanelData::LearnedRules(LearnedRules::new(&snapshot))),
        PanelRequest::Models { snapshot } => {
            Ok(PanelData::Models(model::rows(&SessionCommands::from(ctx), &snapshot)))
        }
        PanelRequest::RewindPoints => session_command::rewind_points(ctx).map(PanelData::RewindPoints),
        PanelRequest::RewindPreview { prompt } => session_command::preview_rewind(ctx, prompt.as_deref())
            .map(|preview| PanelData::RewindPreview { prompt, preview }),
        PanelRequest::RewindFiles(request) => {
            session_command::rewind_files(ctx, &request).map(PanelData::Done)
        }
        request => return answer_at_start(request, &ctx.env, &ctx.home),
    };
    answer.unwrap_or_else(|error| PanelData::Failed(error.to_string()))
}

/// Answers a request that needs no session.
pub(crate) fn answer_at_start(request: PanelRequest, env: &Env, home: &ConfigHome) -> PanelData {
    let answer = match request {
        PanelRequest::Sessions { scope, most } => {
            let listed = match most {
                Some(most) => recent_choices(env, home, scope, most),
                None => list_choices(env, home, scope).map(|sessions| (sessions, true)),
            };
            listed.map(|(sessions, is_whole)| PanelData::Sessions { scope, sessions, is_whole })
        }
        PanelRequest::Branches { file } => {
            session_branches(&file).map(|branches| PanelData::Branches { file, branches })
        }
        PanelRequest::FindMessages { text, scope, limit } => find_messages(env, home, &text, scope, limit)
            .map(|found| PanelData::FoundMessages { text, found }),
        PanelRequest::Preview { file, from } => {
            let entries = match &from {
                Some(message) => entries_from(&file, message).map(|mut entries| {
                    entries.truncate(MOST_PREVIEW);
                    entries
                }),
                None => preview_entries(&file)
                    .map(|mut entries| entries.split_off(entries.len().saturating_sub(MOST_PREVIEW))),
            };
            entries.map(|entries| {
                let blocks = history_blocks(&entries, &env.cwd);
                PanelData::Preview { file, blocks }
            })
        }
        PanelRequest::RenameSession { choice, title } => {
            rename_choice(&choice, &title).map(|_| PanelData::Renamed)
        }
        PanelRequest::PastAgents => Ok(PanelData::PastAgents(Vec::new())),
        PanelRequest::Export { .. }
        | PanelRequest::AgentTranscript { .. }
        | PanelRequest::ExportText
        | PanelRequest::WriteText { .. }
        | PanelRequest::Transcript
        | PanelRequest::TaskOutput { .. }
        | PanelRequest::RewindPoints
        | PanelRequest::RewindPreview { .. }
        | PanelRequest::RewindFiles(_)
        | PanelRequest::Report { .. }
        | PanelRequest::Memory { .. }
        | PanelRequest::ChangeMemory { .. }
        | PanelRequest::SwitchMemory { .. }
        | PanelRequest::Diff
        | PanelRequest::TurnChanges
        | PanelRequest::MoveTarget { .. }
        | PanelRequest::Settings
        | PanelRequest::ChangeSetting { .. }
        | PanelRequest::KeepTaskView { .. }
        | PanelRequest::StoreKey(_)
        | PanelRequest::ForgetKey
        | PanelRequest::Skills { .. }
        | PanelRequest::SetSkillVisibility { .. }
        | PanelRequest::KeepServerToggle { .. }
        | PanelRequest::Hooks { .. }
        | PanelRequest::Servers { .. }
        | PanelRequest::ServerLog { .. }
        | PanelRequest::Sandbox
        | PanelRequest::ChangeSandbox(_)
        | PanelRequest::Plugins
        | PanelRequest::TogglePlugin { .. }
        | PanelRequest::ChangePlugins(_)
        | PanelRequest::PluginOptions { .. }
        | PanelRequest::SetPluginOption { .. }
        | PanelRequest::ContextHistory { .. }
        | PanelRequest::Statistics
        | PanelRequest::SavedRules { .. }
        | PanelRequest::LearnedRules { .. }
        | PanelRequest::Models { .. } => Err(UserError::new("There is no session yet")),
    };
    answer.unwrap_or_else(|error| PanelData::Failed(error.to_string()))
}

fn sandbox_data(ctx: &CommandContext, note: Option<String>) -> PanelData {
    PanelData::Sandbox { report: SandboxReport::new(&ctx.settings()), note }
}

fn plugin_data(ctx: &CommandContext, note: Option<String>) -> PanelData {
    PanelData::Plugins { report: PluginReport::new(&ctx.settings()), note }
}

fn plugin_options(ctx: &CommandContext, id: &str, note: Option<String>) -> Result<PanelData, UserError> {
    Ok(PanelData::PluginOptions { options: PluginOptions::new(&ctx.settings(), id)?, note })
}

fn settings_data(ctx: &CommandContext, note: Option<String>) -> PanelData {
    let settings = ctx.settings();
    let interface = Box::new(InterfaceSettings::from_value(&settings.in_force()));
    PanelData::Settings { rows: config::rows(&settings), note, interface }
}

fn memory_data(
    ctx: &CommandContext,
    session: &SessionSnapshot,
    note: Option<String>,
    change: Option<u64>,
) -> Result<PanelData, UserError> {
    let report = MemoryReport::new(&SessionCommands::from(ctx), session)?;
    Ok(PanelData::Memory { report, note, change })
}
