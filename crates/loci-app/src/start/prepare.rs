//! The steps of a start behind all questions: settings are read, the past is found, a configuration is made of both, and
//! the session begins. Every session goes this way, whoever shows it.

use loci_engine::{Session, SessionConfig};
use loci_llm::Client;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use serde_json::Value;

use super::{SessionStart, StartedSession, renewal};
use crate::compose::{ComposeInputs, Composed, Prefetch, compose};
use crate::interface::helper_command::HelperSandboxes;
use crate::options::{RunOptions, SessionSource};
use crate::permissions::sandbox::sandbox_maker;
use crate::sessions::resume::{self, Resume};
use crate::sessions::worktree::worktree_of_session;
use crate::settings::RunSettings;
use crate::start::trace::start_trace;
use crate::user_error::UserError;

/// The settings of a start, and what of the project is being read beside it.
pub struct StartInputs {
    pub(super) run: RunSettings,
    pub(super) prefetch: Prefetch,
}

impl StartInputs {
    /// Returns the environment with the settings' variables.
    pub fn env(&self) -> &Env {
        &self.run.env
    }
}

/// Why a session cannot be prepared.
#[derive(Debug)]
pub enum StartFailure {
    /// The session that was to go on cannot.
    Past {
        /// Why.
        error: UserError,
        /// What is known of the process that uses it, if one does.
        holder: Option<String>,
    },
    /// Anything else.
    Failed(UserError),
}

impl From<UserError> for StartFailure {
    fn from(error: UserError) -> Self {
        Self::Failed(error)
    }
}

impl From<StartFailure> for UserError {
    fn from(failure: StartFailure) -> Self {
        match failure {
            StartFailure::Past { error, .. } | StartFailure::Failed(error) => error,
        }
    }
}

/// A session that is composed and has not begun: what it is made of may still be changed.
pub struct PreparedSession {
    /// Its configuration.
    pub composed: Composed,
    /// What the run was asked to be.
    pub options: RunOptions,
    /// The environment with the settings' variables.
    pub env: Env,
    /// Where the user's things lie.
    pub home: ConfigHome,
    /// How many days sessions are kept, where they are.
    pub cleanup_period_days: Option<u64>,
    inherited: Env,
    client: Option<Client>,
    settings: Value,
    helper_sandboxes: HelperSandboxes,
    /// Answers that could not be kept, for people.
    unkept: Vec<String>,
}

impl PreparedSession {
    /// Begins it.
    pub fn begin(self) -> StartedSession {
        let Composed { config, warnings, models, may_bypass, .. } = self.composed;
        let mcp = config.mcp.clone();
        let options = RunOptions { mcp_servers: mcp.clone(), ..self.options };
        StartedSession {
            mcp,
            initial_prompt: initial_prompt(&config),
            themes: config.plugins.themes.clone(),
            mode: config.rulebook.mode,
            idle_notice: config.idle_notice,
            session: Session::new(config).into(),
            renew: renewal::fresh_sessions(self.inherited.clone(), options.clone(), self.client.clone()),
            inherited: self.inherited,
            client: self.client,
            options,
            warnings: self.unkept.into_iter().chain(warnings).collect(),
            models,
            may_bypass,
            env: self.env,
            home: self.home,
            cleanup_period_days: self.cleanup_period_days,
            settings: self.settings,
            helper_sandboxes: self.helper_sandboxes,
        }
    }
}

fn initial_prompt(config: &SessionConfig) -> Option<String> {
    let main = config.agents.main.as_ref().filter(|_| config.history.path.is_empty());
    main.and_then(|agent| agent.initial_prompt.clone())
}

impl SessionStart {
    /// Prepares a session where nobody is asked anything.
    pub fn prepare(&mut self) -> Result<PreparedSession, StartFailure> {
        let inputs = self.read_settings()?;
        self.prepare_from(inputs)
    }

    /// Reads the settings, and begins to read what of the project is surely needed.
    pub fn read_settings(&mut self) -> Result<StartInputs, UserError> {
        let run = RunSettings::load_with(&self.inherited, &self.options, self.skills.take())?;
        let prefetch = Prefetch::start(&self.options, &run);
        Ok(StartInputs { run, prefetch })
    }

    /// Prepares a session from settings that are read, nobody being asked anything. One that goes on does so where it was:
    /// with the settings, instructions and files of its own working copy.
    pub fn prepare_from(&mut self, mut inputs: StartInputs) -> Result<PreparedSession, StartFailure> {
        let mut past = self.find_past(&inputs)?;
        if self.moves_to_worktree(&inputs, &mut past) {
            drop(past);
            inputs = self.read_settings()?;
            past = self.find_past(&inputs)?;
        }
        Ok(self.compose(inputs, past)?)
    }

    /// Finds the session that goes on, or makes the place of a new one.
    pub(super) fn find_past(&self, inputs: &StartInputs) -> Result<Resume, StartFailure> {
        let (env, home) = (&inputs.run.env, &inputs.run.home);
        if self.is_renewal {
            return Ok(resume::begin_new(env, home, &self.options)?);
        }
        resume::find(env, home, &self.options)
            .map_err(|error| StartFailure::Past { error, holder: resume::holder(env, home, &self.options) })
    }

    /// Goes where the session was, if that is a worktree and another place than the one at hand; everything is to be read anew
    /// then, once the lease on what was found is given back.
    pub(super) fn moves_to_worktree(&mut self, inputs: &StartInputs, past: &mut Resume) -> bool {
        if self.is_in_worktree {
            return false;
        }
        let Some(worktree) = worktree_of_session(&inputs.run.env, &self.options, past) else { return false };
        self.is_in_worktree = true;
        self.options.session.source = SessionSource::Named(past.place.id().to_string());
        self.inherited.cwd = worktree;
        true
    }

    /// Makes the configuration.
    pub(super) fn compose(
        &mut self,
        inputs: StartInputs,
        past: Resume,
    ) -> Result<PreparedSession, UserError> {
        let StartInputs { run, prefetch } = inputs;
        let (env, home) = (run.env.clone(), run.home.clone());
        if let Some(trace) = self.trace.take() {
            let file = home.root().join("debug").join(format!("{}.txt", past.place.id()));
            start_trace(&trace, &env, &file)?;
        }
        let cleanup_period_days = run.settings.cleanup_period_days.filter(|_| self.options.is_persistent);
        let settings = run.in_force.clone();
        let helper_sandboxes = HelperSandboxes::new(sandbox_maker(&run, past.place.id().as_str()));
        let composed = compose(ComposeInputs {
            options: &self.options,
            run,
            resume: past,
            prefetch,
            client: self.client.clone(),
            started: self.started,
        })?;
        Ok(PreparedSession {
            composed,
            options: self.options.clone(),
            env,
            home,
            cleanup_period_days,
            inherited: self.inherited.clone(),
            client: self.client.clone(),
            settings,
            helper_sandboxes,
            unkept: std::mem::take(&mut self.unkept),
        })
    }
}
