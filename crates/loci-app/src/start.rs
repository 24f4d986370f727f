//! Starting a session for a person at a terminal: step by step, each of which may ask them something first.
//!
//! A front end calls [`SessionStart::proceed`] off the thread that draws. It gets a session, a question, or an error. A
//! question is put to the person, the answer is handed in, and the start proceeds from there. Whoever does not want to go
//! on drops the start: nothing of the folder was run or applied before its trust was settled.

pub mod approvals;
pub(crate) mod bypass_warning;
mod prepare;
pub mod renewal;
pub(crate) mod trace;
pub mod trust;

pub use prepare::{PreparedSession, StartFailure, StartInputs};

use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_core::entry::Entry;
use loci_core::permission::Mode;
use loci_core::plugin::PluginTheme;
use loci_engine::{ClientMessage, ClientRequests, McpConfig, NewSession, RenewSession};
use loci_llm::Client;
use loci_stdx::Env;
use loci_storage::config::SkillsPrefetch;
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::ConversationTail;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::compose::needs_credentials;
use crate::credentials::login::keep_key;
use crate::interface::helper_command::HelperSandboxes;
use crate::mcp::approvals::ServerDecision;
use crate::options::{RunOptions, SessionSource};
use crate::sessions::resume;
use crate::settings::unknown::unknown_settings;
use crate::start::approvals::{
    API_KEY, UnapprovedKey, UnapprovedServer, answer_key, answer_servers, is_key_rejected, settings_errors,
    unapproved_key, unapproved_servers,
};
use crate::start::bypass_warning::{accept_warning, is_warning_due, refuse_flags_of_root};
use crate::start::trace::TraceOptions;
use crate::start::trust::{
    TrustQuestion, accept_trust, answer_external_imports, external_imports_question, trust_question,
};
use crate::user_error::UserError;

/// What a person is asked before there is a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartQuestion {
    /// Whether they trust the folder.
    Trust(TrustQuestion),
    /// Whether instructions may import these files from outside the folder.
    ExternalImports(Vec<String>),
    /// Whether to go on with settings files that cannot be read; what is wrong with them.
    SettingsErrors(Vec<String>),
    /// Whether to go on with keys of settings that this version does not know and that may restrict the session.
    UnknownSettings(Vec<String>),
    /// Whether these servers of the project may be used.
    McpServers(Vec<UnapprovedServer>),
    /// Whether the key of the environment is used.
    ApiKey(UnapprovedKey),
    /// Whether everything may run unasked, as the options say.
    Bypass,
    /// There are no credentials; the key of the environment, where the person said no to it.
    NoCredentials(Option<UnapprovedKey>),
    /// Which session goes on.
    ChooseSession,
    /// Another process uses the session; what is known of it.
    InUse(String),
}

/// An answer with which the start goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartAnswer {
    /// The folder is trusted.
    Trust,
    /// Whether files from outside may be imported.
    ExternalImports(bool),
    /// Settings files that cannot be read are left aside.
    SettingsErrors,
    /// Settings that this version does not know may go unheeded.
    UnknownSettings,
    /// What is said of servers of the project.
    McpServers(ServerDecision),
    /// Whether the key of the environment is used.
    ApiKey(bool),
    /// Everything may run unasked.
    Bypass,
    /// Credentials are there now.
    Credentials,
    /// This session goes on.
    Session {
        /// Its id.
        id: String,
        /// The message it goes on from, where that is not the last.
        at: Option<String>,
    },
    /// A copy of the session goes on.
    Fork,
    /// The session is taken from the other process.
    TakeOver,
    /// The session is only looked at.
    View,
}

/// What came of a step.
pub enum StartStep {
    /// Something is to be asked first.
    Ask(StartQuestion),
    /// The session is there.
    Ready(Box<StartedSession>),
    /// The session is only looked at: what was said in it.
    View(Vec<Arc<Entry>>),
    /// There will be none.
    Failed(UserError),
}

/// A session that can be run, and what the front end should know about it.
pub struct StartedSession {
    /// The session.
    pub session: NewSession,
    /// Makes the one that takes its place.
    pub renew: RenewSession,
    /// The MCP servers of the session: whoever runs it starts them within its runtime, and shuts them down at the end.
    pub mcp: Option<McpConfig>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// The main model, and those that may take its place.
    pub models: Vec<String>,
    /// The mode it begins in.
    pub mode: Mode,
    /// Whether it may switch to running everything unasked.
    pub may_bypass: bool,
    /// The environment as the process was given it.
    pub inherited: Env,
    /// What the run was asked to be; a session that takes this one's place is made of it, too.
    pub options: RunOptions,
    /// The provider, where it is not the environment's own.
    pub client: Option<Client>,
    /// The environment with the settings' variables.
    pub env: Env,
    /// Where the user's things lie.
    pub home: ConfigHome,
    /// How long it may wait for its user before hooks hear of it.
    pub idle_notice: Duration,
    /// How many days sessions are kept, where they are.
    pub cleanup_period_days: Option<u64>,
    /// The settings in force, for what concerns the front end itself.
    pub settings: Value,
    /// What the agent that a new conversation runs as begins with; whoever shows the session says it.
    pub initial_prompt: Option<String>,
    /// The colour themes of its plugins.
    pub themes: Vec<PluginTheme>,
    /// Makes the sandboxes that commands of the front end ask for.
    pub helper_sandboxes: HelperSandboxes,
}

/// A start under way.
pub struct SessionStart {
    inherited: Env,
    options: RunOptions,
    client: Option<Client>,
    started: Instant,
    is_trusted: bool,
    has_accepted_bypass: bool,
    has_seen_errors: bool,
    is_viewing: bool,
    /// What was answered in this run, which counts also where it could not be kept.
    has_said_of_imports: bool,
    has_said_of_servers: bool,
    may_use_key: Option<bool>,
    /// The key of the environment, where the person does not want it used.
    rejected_key: Option<String>,
    /// Answers that could not be kept, for people.
    unkept: Vec<String>,
    /// Whether the session's own worktree was entered already.
    is_in_worktree: bool,
    /// What is traced, if anything is.
    trace: Option<TraceOptions>,
    /// Whether nobody can be asked: the folder counts as far as it is trusted already.
    is_unattended: bool,
    /// Shows the end of a session that goes on before the rest of it is read.
    show_tail: Option<ShowTail>,
    /// The user's skills, where they are being read already.
    skills: Option<SkillsPrefetch>,
    /// Whether the session takes the place of another of this process, which has looked after what was left behind.
    is_renewal: bool,
}

/// Takes the end of a session that goes on.
pub type ShowTail = Box<dyn FnOnce(ConversationTail) + Send>;

impl SessionStart {
    /// Prepares to start; `client` stands in for the environment's own provider, `started` is when the process did.
    pub fn new(inherited: Env, options: RunOptions, client: Option<Client>, started: Instant) -> Self {
        Self {
            inherited,
            options,
            client,
            started,
            is_trusted: false,
            has_accepted_bypass: false,
            has_seen_errors: false,
            is_viewing: false,
            has_said_of_imports: false,
            has_said_of_servers: false,
            may_use_key: None,
            rejected_key: None,
            unkept: Vec::new(),
            is_in_worktree: false,
            trace: None,
            is_unattended: false,
            show_tail: None,
            skills: None,
            is_renewal: false,
        }
    }

    /// Takes the user's skills from whoever began to read them.
    pub fn with_skills(self, skills: Option<SkillsPrefetch>) -> Self {
        Self { skills, ..self }
    }

    /// Begins a new session in the place of another of this process.
    pub(crate) fn renewal(self) -> Self {
        Self { is_renewal: true, ..self }
    }

    /// Has a session that was in a worktree go on here.
    pub(crate) fn here(self) -> Self {
        Self { is_in_worktree: true, ..self }
    }

    /// Has the end of a session that goes on shown as soon as it is read: long before the session is there.
    pub fn show_tail(&mut self, show: ShowTail) {
        self.show_tail = Some(show);
    }

    /// Has requests to the session's client go to the caller, who sits before the person.
    pub fn connect_client(&mut self) -> UnboundedReceiver<ClientMessage> {
        let (requests, receiver) = ClientRequests::channel(Arc::clone(&self.inherited.random));
        self.options.client_requests = requests;
        receiver
    }

    /// Has what loci does traced.
    pub fn traced(self, trace: Option<TraceOptions>) -> Self {
        Self { trace, ..self }
    }

    /// Does without the user's settings and asks nothing: the folder is our own, and so is the model.
    pub fn demo(self) -> Self {
        Self { options: RunOptions { is_demo: true, ..self.options }, ..self }
    }

    /// Asks nothing of a person before there is a session, as a run without a terminal does: a folder that is not trusted
    /// stays so, and what waits for trust does not count. What cannot be without an answer is still a question.
    pub fn unattended(self) -> Self {
        Self { is_unattended: true, ..self }
    }

    /// Goes on as far as possible. Blocks: reads settings, files and the past.
    pub fn proceed(&mut self) -> StartStep {
        if let Err(error) = refuse_flags_of_root(&self.inherited, &self.options) {
            return StartStep::Failed(error);
        }
        self.show_tail_of_session();
        match self.next_question() {
            Some(question) => StartStep::Ask(question),
            None => self.start().unwrap_or_else(StartStep::Failed),
        }
    }

    /// Takes an answer; the start can proceed after it. One that cannot be kept, as where nothing can be written, counts for
    /// this run as far as that is safe, and the session says so.
    pub fn answer(&mut self, answer: StartAnswer) {
        match answer {
            StartAnswer::Trust => {
                self.is_trusted = true;
                self.options.has_given_trust = true;
                let kept = accept_trust(&self.inherited);
                self.note_unkept(
                    kept,
                    "Trust in this folder lasts for this session, and for your own settings alone",
                );
            }
            StartAnswer::ExternalImports(may_import) => {
                self.has_said_of_imports = true;
                let kept = answer_external_imports(&self.inherited, may_import);
                self.note_unkept(kept, "Files from outside this folder are not imported");
            }
            StartAnswer::SettingsErrors => self.has_seen_errors = true,
            StartAnswer::UnknownSettings => self.options.accepts_unknown_settings = true,
            StartAnswer::McpServers(decision) => {
                self.has_said_of_servers = true;
                let kept = answer_servers(&self.inherited, &self.options, &decision);
                self.note_unkept(kept, "The MCP servers of this project are not used");
            }
            StartAnswer::ApiKey(may_use) => self.answer_key(may_use),
            StartAnswer::Bypass => {
                self.has_accepted_bypass = true;
                let kept = accept_warning(&self.inherited);
                self.note_unkept(kept, "The warning about the mode comes again");
            }
            StartAnswer::Credentials => {}
            StartAnswer::Session { id, at } => {
                self.options.session.source = SessionSource::Named(id);
                self.options.session.at = at;
            }
            StartAnswer::Fork => self.options.session.is_fork = true,
            StartAnswer::TakeOver => self.options.session.takes_over = true,
            StartAnswer::View => self.is_viewing = true,
        }
    }

    /// Takes whether the key of the environment is used; who has said no may say yes after all.
    fn answer_key(&mut self, may_use: bool) {
        if let Some(key) = self.rejected_key.take() {
            self.inherited.vars = self.inherited.vars.clone().with(API_KEY, key);
        }
        self.may_use_key = Some(may_use);
        let kept = answer_key(&self.inherited, may_use);
        self.note_unkept(kept, "What you said of ANTHROPIC_API_KEY counts for this session");
    }

    /// Notes that an answer is forgotten at the end, and what follows.
    fn note_unkept(&mut self, kept: Result<(), UserError>, so: &str) {
        if let Err(error) = kept {
            self.unkept.push(format!("Your answer could not be kept: {}. {so}", error.message()));
        }
    }

    /// Keeps an API key for this and later runs.
    pub fn store_key(&mut self, key: &str) -> Result<(), UserError> {
        keep_key(&self.inherited.vars, &ConfigHome::from_env(&self.inherited), key).map(drop)
    }

    /// Shows the end of the session that was asked for, once, before anything else is looked at.
    fn show_tail_of_session(&mut self) {
        let is_named = self.options.session.source != SessionSource::Named(String::new());
        if self.show_tail.is_none() || self.options.is_demo || !is_named {
            return;
        }
        let (env, home) = self.world();
        if let Some((id, tail)) = resume::read_tail(env, &home, &self.options)
            && let Some(show) = self.show_tail.take()
        {
            // It is not looked for twice.
            self.options.session.source = SessionSource::Named(id.to_string());
            show(tail);
        }
    }

    fn next_question(&self) -> Option<StartQuestion> {
        if self.options.is_demo || self.is_unattended {
            return None;
        }
        if !self.is_trusted
            && let Some(question) = trust_question(&self.inherited)
        {
            return Some(StartQuestion::Trust(question));
        }
        if !self.has_said_of_imports
            && let Some(files) = external_imports_question(&self.inherited)
        {
            return Some(StartQuestion::ExternalImports(files));
        }
        if self.options.is_interactive {
            let errors = if self.has_seen_errors { Vec::new() } else { settings_errors(&self.inherited) };
            if !errors.is_empty() {
                return Some(StartQuestion::SettingsErrors(errors));
            }
            if !self.options.accepts_unknown_settings {
                let unknown = unknown_settings(&self.inherited, self.options.setting_sources);
                if !unknown.is_empty() {
                    return Some(StartQuestion::UnknownSettings(unknown));
                }
            }
            if self.client.is_none()
                && self.may_use_key.is_none()
                && let Some(key) = unapproved_key(&self.inherited)
            {
                return Some(StartQuestion::ApiKey(key));
            }
            if !self.has_said_of_servers {
                let servers = unapproved_servers(&self.inherited, &self.options);
                if !servers.is_empty() {
                    return Some(StartQuestion::McpServers(servers));
                }
            }
        }
        if !self.has_accepted_bypass && is_warning_due(&self.inherited, &self.options) {
            return Some(StartQuestion::Bypass);
        }
        let is_unnamed = self.options.session.source == SessionSource::Named(String::new());
        is_unnamed.then_some(StartQuestion::ChooseSession)
    }

    /// Returns the environment, as it is before any settings are read, and where the user's things lie.
    pub fn world(&self) -> (&Env, ConfigHome) {
        (&self.inherited, ConfigHome::from_env(&self.inherited))
    }

    /// Does without the key of the environment where the person does not want it used.
    fn leave_out_rejected_key(&mut self) {
        let is_rejected =
            self.may_use_key.map_or_else(|| is_key_rejected(&self.inherited), |may_use| !may_use);
        if self.options.is_interactive && is_rejected {
            self.rejected_key = self.inherited.vars.non_empty(API_KEY).map(str::to_owned);
            self.inherited.vars = self.inherited.vars.clone().without(API_KEY);
        }
    }

    fn start(&mut self) -> Result<StartStep, UserError> {
        self.leave_out_rejected_key();
        let inputs = self.read_settings()?;
        if self.is_viewing {
            let read = resume::read_named(&inputs.run.env, &inputs.run.home, &self.options)?;
            return Ok(StartStep::View(read.map(|read| read.history.path).unwrap_or_default()));
        }
        let mut past = match self.find_past(&inputs) {
            Ok(past) => past,
            Err(StartFailure::Past { holder: Some(holder), .. }) => {
                return Ok(StartStep::Ask(StartQuestion::InUse(holder)));
            }
            Err(failure) => return Err(failure.into()),
        };
        if self.client.is_none() && needs_credentials(&inputs.run, &self.options, past.model.as_deref())? {
            let rejected = self.rejected_key.as_deref().map(UnapprovedKey::alone);
            return Ok(StartStep::Ask(StartQuestion::NoCredentials(rejected)));
        }
        if self.moves_to_worktree(&inputs, &mut past) {
            // There may be questions about that place, too.
            drop(past);
            return Ok(self.proceed());
        }
        Ok(StartStep::Ready(Box::new(self.compose(inputs, past)?.begin())))
    }
}

#[cfg(test)]
mod tests {
    use loci_testkit::TestHome;

    use super::*;

    fn step(start: &mut SessionStart) -> String {
        match start.proceed() {
            StartStep::Ask(question) => format!("{question:?}").chars().take(15).collect(),
            StartStep::Ready(_) => "ready".to_owned(),
            StartStep::View(entries) => format!("view {}", entries.len()),
            StartStep::Failed(error) => error.to_string(),
        }
    }

    /// Options that ask for everything to run unasked.
    fn bypassing() -> RunOptions {
        let mut options = RunOptions { is_interactive: true, ..RunOptions::default() };
        options.permissions.mode = Some(Mode::BypassPermissions);
        options.permissions.may_bypass = true;
        options
    }

    #[test]
    fn root_is_refused_to_bypass_permissions_before_anything_is_asked() {
        if !loci_stdx::is_root() {
            return;
        }
        let refusal = "Permissions cannot be bypassed as root";
        let home = TestHome::new();
        let env = Env::for_test(home.home(), home.project());
        let mut start = SessionStart::new(env.clone(), bypassing(), None, Instant::now());
        assert!(step(&mut start).starts_with(refusal));
        home.write_config("settings.json", r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#);
        let options = RunOptions { is_interactive: true, ..RunOptions::default() };
        let mut start = SessionStart::new(env, options, None, Instant::now());
        assert_eq!(step(&mut start), "Trust(TrustQues");
        start.answer(StartAnswer::Trust);
        assert_ne!(
            step(&mut start),
            "Bypass",
            "settings that ask for it are no reason to warn who is refused"
        );
    }

    #[test]
    fn answer_that_cannot_be_kept_counts_for_this_run_and_is_told() {
        let home = TestHome::new();
        // Nothing can be written where a file stands in the place of the directory.
        home.write_home("file", "");
        let mut env = Env::for_test(home.home().join("file"), home.project());
        env.vars = [("IS_SANDBOX", "1"), ("ANTHROPIC_API_KEY", "sk-key")].into_iter().collect();
        let mut start = SessionStart::new(env, bypassing(), None, Instant::now());
        for (expected, answer) in [
            ("Trust(TrustQues", StartAnswer::Trust),
            ("ApiKey(Unapprov", StartAnswer::ApiKey(false)),
            ("Bypass", StartAnswer::Bypass),
        ] {
            assert_eq!(step(&mut start), expected);
            start.answer(answer);
        }
        assert_eq!(step(&mut start), "NoCredentials(S", "the key that was rejected is not used");
        assert_eq!(start.unkept.len(), 3, "{:?}", start.unkept);
        start.answer(StartAnswer::ApiKey(true));
        assert_eq!(start.inherited.vars.get("ANTHROPIC_API_KEY"), Some("sk-key"), "who says yes after all");
    }

    #[test]
    fn start_asks_for_trust_imports_and_bypass_in_turn() {
        let home = TestHome::new();
        home.write("CLAUDE.md", "@~/outside.md");
        home.write_home("outside.md", "x");
        let mut env = Env::for_test(home.home(), home.project());
        env.vars = [("IS_SANDBOX", "1")].into_iter().collect();
        let mut start = SessionStart::new(env, bypassing(), None, Instant::now());
        for (expected, answer) in [
            ("Trust(TrustQues", StartAnswer::Trust),
            ("ExternalImports", StartAnswer::ExternalImports(true)),
            ("Bypass", StartAnswer::Bypass),
            ("NoCredentials(N", StartAnswer::Credentials),
        ] {
            assert_eq!(step(&mut start), expected);
            assert_eq!(step(&mut start), expected, "asking twice changes nothing");
            start.answer(answer);
        }
    }
}
