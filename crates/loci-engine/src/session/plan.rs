//! Plans of a session: its plan file, and what beginning and ending to plan mean.
//!
//! A session has one plan file, `<plans>/<three words>.md`. The words are made when the first plan is begun, and every
//! later entry of the transcript carries them (`slug`), so that a resumed session finds its plan again. A fork makes a
//! file of its own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use loci_core::app_state::AppState;
use loci_core::entry::{Attachment, AttachmentKind, Entry};
use loci_core::ids::AgentId;
use loci_core::permission::Mode;
use loci_core::slug_words::{is_slug, slug_words};
use loci_core::tool::PathEffect;
use loci_stdx::{Env, Store};
use loci_tools::real_path;
use serde_json::json;

use crate::conversation::host::lock;
use crate::session::state::{change, set_mode};

/// How many names are tried before a plan of another session is shared.
const MOST_TRIES: usize = 20;
/// The longest title that a plan gives a session, in characters.
const LONGEST_TITLE: usize = 80;

/// How plans are made, as the configuration says.
#[derive(Debug, Clone, Default)]
pub struct PlanConfig {
    /// Where plan files lie.
    pub dir: PathBuf,
    /// What the model is told in the place of the usual workflow.
    pub instructions: Option<String>,
}

/// The plan of a session.
pub(crate) struct PlanService {
    config: PlanConfig,
    env: Env,
    state: Arc<Store<AppState>>,
    /// The name of the plan file, once there is one; held to look or to make it.
    slug: Mutex<Option<String>>,
    /// What the model was told last; held to look or to note it.
    told: Mutex<PlanModeNews>,
    /// Whether the model can end planning itself.
    can_exit: bool,
    /// What a plan that was approved is called, until the session is; held to look or to note it.
    title: Mutex<Option<String>>,
}

/// What the model knows of plan mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PlanModeNews {
    /// That it is off, or nothing.
    #[default]
    Off,
    /// That it is on.
    On,
}

impl PlanService {
    /// Takes up the plan of a conversation that goes on.
    pub(crate) fn new(
        config: PlanConfig,
        env: Env,
        state: Arc<Store<AppState>>,
        past: &[Arc<Entry>],
        can_exit: bool,
    ) -> Self {
        let slug = past.iter().rev().find_map(|entry| entry.fields().read::<String>("slug"));
        let told = if was_told_on(past) { PlanModeNews::On } else { PlanModeNews::Off };
        Self {
            config,
            env,
            state,
            slug: Mutex::new(slug.filter(|slug| is_slug(slug))),
            told: Mutex::new(told),
            can_exit,
            title: Mutex::default(),
        }
    }

    /// Tells whether a plan is being made.
    pub(crate) fn is_active(&self) -> bool {
        self.state.get().permission.rulebook.mode == Mode::Plan
    }

    /// Returns the name that entries carry.
    pub(crate) fn slug(&self) -> Option<String> {
        lock(&self.slug).clone()
    }

    /// Returns the plan file, once it has a name.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        Some(self.path(&self.slug()?))
    }

    /// Returns the plan file as calls are judged by it.
    pub(crate) fn judged_file(&self) -> Option<PathEffect> {
        let requested = self.file()?;
        let real = real_path(&requested);
        Some(PathEffect { requested, real })
    }

    /// Returns the file that an agent makes a plan of its own in, beside the session's.
    pub(crate) fn agent_file(&self, agent: &AgentId) -> io::Result<PathBuf> {
        loci_stdx::create_private_dir_all(&self.config.dir)?;
        Ok(self.config.dir.join(format!("agent-{agent}.md")))
    }

    /// Begins to plan; returns what the model is told.
    pub(crate) fn begin(&self) -> io::Result<Attachment> {
        let reminder = self.reminder("full")?;
        set_mode(&self.state, Mode::Plan);
        *lock(&self.told) = PlanModeNews::On;
        Ok(reminder)
    }

    /// Ends planning, since the plan was approved. Unless the approval chose a mode, the one before counts again.
    pub(crate) fn end(&self, plan: &str) -> Attachment {
        *lock(&self.title) = plan_title(plan);
        let back = self.state.get().permission.before_plan.unwrap_or_default();
        if self.is_active() {
            change(&self.state, |state| state.permission.rulebook.mode = back);
        }
        *lock(&self.told) = PlanModeNews::Off;
        self.exit_notice()
    }

    /// Returns what the model is to be told of the mode beside a prompt, if anything.
    pub(crate) fn news(&self) -> io::Result<Option<Attachment>> {
        let mut told = lock(&self.told);
        let was_on = *told == PlanModeNews::On;
        match (self.is_active(), was_on) {
            (false, false) => Ok(None),
            (false, true) => {
                *told = PlanModeNews::Off;
                Ok(Some(self.exit_notice()))
            }
            (true, _) => {
                let reminder = self.reminder(if was_on { "sparse" } else { "full" })?;
                *told = PlanModeNews::On;
                Ok(Some(reminder))
            }
        }
    }

    /// Takes what a plan that was approved is called.
    pub(crate) fn take_title(&self) -> Option<String> {
        lock(&self.title).take()
    }

    /// What was said is gone: the model knows nothing of the mode any more.
    pub(crate) fn forget_announced(&self) {
        *lock(&self.told) = PlanModeNews::Off;
    }

    fn reminder(&self, kind: &str) -> io::Result<Attachment> {
        let file = self.make_file()?;
        Ok(Attachment::PlanMode {
            reminder_type: kind.to_owned(),
            is_sub_agent: false,
            plan_exists: file.exists(),
            plan_file_path: file.display().to_string(),
            // What is usual is not said, so that entries look like those of other programs.
            can_exit: (!self.can_exit).then_some(false),
            instructions: self.config.instructions.clone().filter(|_| kind == "full"),
        })
    }

    fn exit_notice(&self) -> Attachment {
        let file = self.file();
        let exists = file.as_ref().is_some_and(|file| file.exists());
        let path = file.map(|file| file.display().to_string()).unwrap_or_default();
        Attachment::PlanModeExit { plan_file_path: path, plan_exists: exists }
    }

    /// Returns the plan file; its directory is there.
    fn make_file(&self) -> io::Result<PathBuf> {
        loci_stdx::create_private_dir_all(&self.config.dir)?;
        let mut slug = lock(&self.slug);
        let name = slug.get_or_insert_with(|| {
            let fresh = || slug_words(self.env.random.uuid_v4().as_u64_pair().0);
            let is_free = |name: &String| !self.path(name).exists();
            (0..MOST_TRIES).map(|_| fresh()).find(is_free).unwrap_or_else(fresh)
        });
        Ok(self.path(name))
    }

    fn path(&self, slug: &str) -> PathBuf {
        self.config.dir.join(format!("{slug}.md"))
    }
}

/// Returns what an agent that makes a plan is told of it.
pub(crate) fn agent_reminder(file: &Path, can_exit: bool, is_known: bool) -> Attachment {
    Attachment::PlanMode {
        reminder_type: if is_known { "sparse" } else { "full" }.to_owned(),
        is_sub_agent: true,
        plan_file_path: file.display().to_string(),
        plan_exists: file.exists(),
        can_exit: (!can_exit).then_some(false),
        instructions: None,
    }
}

/// Returns the plan for those who lost sight of it.
pub(crate) fn plan_attachment(file: &Path) -> Option<Attachment> {
    let content = loci_stdx::read_regular_to_string(file).ok().filter(|text| !text.trim().is_empty())?;
    let (name, n_lines) = (file.display().to_string(), content.lines().count());
    let file = json!({"filePath": name, "content": content, "numLines": n_lines, "startLine": 1, "totalLines": n_lines});
    let content = json!({"type": "text", "file": file});
    Some(Attachment::File { filename: name.clone(), content, display_path: Some(name) })
}

/// Returns what a plan is called: its first heading, or its first line.
fn plan_title(plan: &str) -> Option<String> {
    let mut lines = plan.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.clone().find(|line| line.starts_with('#')).or_else(|| lines.next())?;
    let title = line.trim_start_matches(['#', '-', '*', ' ']).trim();
    let title = title.strip_prefix("Plan:").unwrap_or(title).trim();
    (!title.is_empty()).then(|| title.chars().take(LONGEST_TITLE).collect())
}

/// Tells whether the model was last told that plan mode is on.
fn was_told_on(past: &[Arc<Entry>]) -> bool {
    let told = past.iter().rev().filter(|entry| entry.line().contains(AttachmentKind::PlanMode.name()));
    let mut kinds = told.filter_map(|entry| entry.attachment()?.kind());
    let is_plans =
        |kind: &AttachmentKind| matches!(kind, AttachmentKind::PlanMode | AttachmentKind::PlanModeExit);
    kinds.find(is_plans) == Some(AttachmentKind::PlanMode)
}
