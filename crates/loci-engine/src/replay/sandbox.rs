//! Running recorded calls for real, in a copy of the project.
//!
//! A call is judged by the rules in force as what it does to the copy, and as what it would be in the project itself. It
//! runs only when all say that it may without a question; nobody is there to answer one. Paths of the project in the
//! arguments become paths of the copy, and paths of the copy in the result become paths of the project; nothing else
//! is changed before results are compared.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use loci_core::diff::unified;
use loci_core::ids::ToolUseId;
use loci_core::message::ToolUse;
use loci_core::permission::{Decision, Rulebook, Verdict};
use loci_core::recall::{RecallQuery, RecallResult};
use loci_core::tool::ToolOutcome;
use loci_sandbox::Sandbox;
use loci_stdx::Env;
use loci_storage::layout::SessionTmp;
use loci_tools::{
    BackgroundTasks, FileStates, Host, HostFuture, MemoryTaskStore, TaskStore, ToolCall, ToolProgress,
    Toolbox, Workspace,
};
use serde_json::Value;

use super::paths::Paths;
use super::report::CallOutcome;
use super::shorten::{outcome_lines, shorten};
use crate::conversation::host::{file_name, lock};
use crate::tools::calls::spill;
use crate::tools::prepared_call::{PreparedCall, check_permission, check_permission_at, prepare};

/// What running calls for real needs.
pub struct ReplaySandbox {
    /// The world, standing in the copy.
    pub env: Env,
    /// Environment of child processes.
    pub child_env: Vec<(String, String)>,
    /// What commands run in, where settings ask for it.
    pub os_sandbox: Option<Arc<Sandbox>>,
    /// The tools.
    pub toolbox: Toolbox,
    /// The rules in force, for the copy.
    pub rulebook: Rulebook,
    /// The project, as the recording names it.
    pub project: PathBuf,
    /// The same rules, for each place that the project has or had.
    pub places: Vec<(PathBuf, Rulebook)>,
    /// Where the recorded session keeps results that are too long for it.
    pub tool_results: PathBuf,
    /// Where long results and background commands write now.
    pub tmp: SessionTmp,
    /// The recording, for lookups.
    pub transcript: PathBuf,
}

/// A sandbox at work.
pub(super) struct SandboxRunner {
    toolbox: Toolbox,
    host: SandboxHost,
}

impl SandboxRunner {
    pub(super) fn new(sandbox: ReplaySandbox) -> Self {
        let place = Workspace {
            cwd: sandbox.env.cwd.clone(),
            project: sandbox.env.cwd.clone(),
            extra_dirs: sandbox.rulebook.dirs.iter().skip(1).cloned().collect(),
            home: sandbox.env.home.clone(),
        };
        let results = sandbox.tmp.tool_results_dir();
        let paths = Paths::new([
            (sandbox.project.as_path(), sandbox.env.cwd.as_path()),
            (sandbox.tool_results.as_path(), results.as_path()),
        ]);
        let host = SandboxHost {
            env: sandbox.env,
            child_env: sandbox.child_env,
            os_sandbox: sandbox.os_sandbox,
            place: Mutex::new(place),
            files: Mutex::default(),
            tasks: BackgroundTasks::default(),
            task_store: Arc::new(MemoryTaskStore::default()),
            rulebook: sandbox.rulebook,
            elsewhere: sandbox.places.into_iter().map(|it| Elsewhere::new(&sandbox.project, it)).collect(),
            paths,
            tmp: sandbox.tmp,
            transcript: sandbox.transcript,
        };
        Self { toolbox: sandbox.toolbox, host }
    }

    /// Runs a recorded call, if it may run, and compares what comes of it.
    pub(super) async fn perform(&self, tool: &str, call: &ToolCall, recorded: &ToolOutcome) -> CallOutcome {
        let Some(found) = self.toolbox.find_shared(tool) else {
            return CallOutcome::NotRun { reason: format!("there is no tool `{tool}` here") };
        };
        let input = self.host.paths.to_here(&call.input);
        let tool_use = ToolUse { id: call.id.clone(), name: tool.to_owned(), input };
        let prepared = match prepare(&self.toolbox, &self.host, &tool_use) {
            Ok((prepared, _)) => prepared,
            Err(refusal) => return self.compared(recorded, &refusal),
        };
        let judged = check_permission(&self.toolbox, &self.host, self.host.rulebook.clone(), &prepared);
        let elsewhere = self.host.elsewhere.iter().map(|it| self.judge_elsewhere(it, &prepared.tool, call));
        if let Some(reason) = elsewhere.chain([judged.decision]).find_map(|decision| refusal(&decision)) {
            return CallOutcome::NotRun { reason };
        }
        let limit = found.descriptor().max_result_chars;
        let here = ToolCall {
            id: call.id.clone(),
            input: prepared.input,
            effects: judged.effects,
            cancel: call.cancel.clone(),
            to_background: call.to_background.clone(),
        };
        let outcome = found.run(here, &self.host).await;
        self.compared(recorded, &spill(outcome, limit, &self.host, &call.id))
    }

    /// Judges a call as if it were made in the project itself.
    fn judge_elsewhere(&self, elsewhere: &Elsewhere, tool: &str, call: &ToolCall) -> Decision {
        let here = self.host.workspace();
        let place = Workspace {
            cwd: elsewhere.path(&self.host.paths, &here.cwd),
            project: elsewhere.project.clone(),
            ..here
        };
        let there = PreparedCall {
            is_approved: false,
            id: call.id.clone(),
            tool: tool.to_owned(),
            facts: self.toolbox.facts().facts(tool),
            input: elsewhere.paths.to_here(&call.input),
            effects: call.effects.clone(),
            hook: None,
        };
        check_permission_at(&self.toolbox, place, elsewhere.rulebook.clone(), &there).decision
    }

    fn compared(&self, recorded: &ToolOutcome, now: &ToolOutcome) -> CallOutcome {
        let (recorded, now) = (outcome_lines(recorded), self.host.paths.to_recorded(&outcome_lines(now)));
        match recorded == now {
            true => CallOutcome::Same,
            false => {
                let diff = unified(&format!("{recorded}\n"), &format!("{now}\n"));
                CallOutcome::Differs { diff: shorten(&diff) }
            }
        }
    }

    /// Ends what calls have left running.
    pub(super) async fn close(&self) {
        self.host.tasks.shutdown().await;
    }
}

/// A place of the project, with the rules as they hold there.
struct Elsewhere {
    project: PathBuf,
    rulebook: Rulebook,
    /// Recorded paths, and those of this place.
    paths: Paths,
}

impl Elsewhere {
    fn new(recorded: &Path, (project, rulebook): (PathBuf, Rulebook)) -> Self {
        let paths = Paths::new([(recorded, project.as_path())]);
        Self { project, rulebook, paths }
    }

    /// Returns what a path of the copy is here.
    fn path(&self, copied: &Paths, path: &Path) -> PathBuf {
        let recorded = copied.to_recorded(&path.to_string_lossy());
        match self.paths.to_here(&Value::from(recorded.as_str())) {
            Value::String(path) => PathBuf::from(path),
            _ => PathBuf::from(recorded),
        }
    }
}

/// Says why a call does not run, unless it does.
fn refusal(decision: &Decision) -> Option<String> {
    match decision.verdict {
        Verdict::Allow => None,
        Verdict::Ask => Some(format!("it would have to be asked about: {}", decision.reason)),
        Verdict::Deny => Some(format!("it is forbidden: {}", decision.reason)),
    }
}

/// The house as replayed calls see it; it outlasts the sessions of a replay.
struct SandboxHost {
    env: Env,
    child_env: Vec<(String, String)>,
    os_sandbox: Option<Arc<Sandbox>>,
    place: Mutex<Workspace>,
    files: Mutex<FileStates>,
    tasks: BackgroundTasks,
    task_store: Arc<MemoryTaskStore>,
    rulebook: Rulebook,
    elsewhere: Vec<Elsewhere>,
    paths: Paths,
    tmp: SessionTmp,
    transcript: PathBuf,
}

impl Host for SandboxHost {
    fn env(&self) -> Env {
        self.env.clone()
    }

    fn workspace(&self) -> Workspace {
        lock(&self.place).clone()
    }

    fn set_cwd(&self, cwd: PathBuf) {
        lock(&self.place).cwd = cwd;
    }

    fn child_env(&self) -> Vec<(String, String)> {
        self.child_env.clone()
    }

    fn sandbox(&self) -> Option<Arc<Sandbox>> {
        self.os_sandbox.clone()
    }

    fn files(&self) -> &Mutex<FileStates> {
        &self.files
    }

    /// The copy is thrown away, so nothing of it is kept.
    fn checkpoint<'a>(&'a self, _: &'a ToolUseId, _: &'a Path) -> HostFuture<'a, io::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn is_read_denied(&self, path: &Path) -> bool {
        let is_denied = |it: &Elsewhere| it.rulebook.is_read_denied(&it.path(&self.paths, path));
        self.rulebook.is_read_denied(path) || self.elsewhere.iter().any(is_denied)
    }

    fn spill_path(&self, call: &ToolUseId) -> io::Result<PathBuf> {
        Ok(self.tmp.create_tool_results_dir()?.join(format!("{}.txt", file_name(call.as_str()))))
    }

    fn task_dir(&self) -> io::Result<PathBuf> {
        Ok(self.tmp.create_tasks_dir()?)
    }

    fn tasks(&self) -> &BackgroundTasks {
        &self.tasks
    }

    fn recall(&self, wish: RecallQuery) -> HostFuture<'_, Result<RecallResult, String>> {
        let file = self.transcript.clone();
        Box::pin(async move {
            if matches!(wish, RecallQuery::SearchProject(_) | RecallQuery::QuoteFrom { .. }) {
                return Err("A replay has no other sessions to look in".to_owned());
            }
            let look = move || loci_storage::search::recall(&file, &wish, &AtomicBool::new(false));
            let told = |error: loci_storage::sessions::LoadError| format!("{error}: {}", error.source);
            let looked = tokio::task::spawn_blocking(look).await;
            looked.map_err(|error| format!("The lookup broke off: {error}"))?.map_err(told)
        })
    }

    fn task_store(&self) -> Arc<dyn TaskStore> {
        Arc::clone(&self.task_store) as Arc<dyn TaskStore>
    }

    fn progress(&self, _: &ToolUseId, _: ToolProgress) {}
}
