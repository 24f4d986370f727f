//! A small host for the tools' own tests.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use loci_core::entry::Attachment;
use loci_core::ids::ToolUseId;
use loci_core::recall::{RecallQuery, RecallResult};
use loci_core::task_list::Todo;
use loci_core::tool::ToolOutcome;
use loci_stdx::Env;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    BackgroundTasks, FileStates, Host, HostFuture, MemoryTaskStore, PlanView, TaskStore, Tool, ToolCall,
    ToolProgress, Workspace,
};

/// A project in a temporary directory, and everything a tool asks for.
pub(crate) struct TestHost {
    _root: tempfile::TempDir,
    env: Env,
    place: Mutex<Workspace>,
    files: Mutex<FileStates>,
    tasks: BackgroundTasks,
    task_store: Arc<MemoryTaskStore>,
    /// Paths the tool asked to be kept before changing them.
    pub(crate) checkpoints: Mutex<Vec<PathBuf>>,
    /// Paths that rules forbid reading.
    pub(crate) denied: Mutex<Vec<PathBuf>>,
    /// Environment of children.
    pub(crate) child_env: Mutex<Vec<(String, String)>>,
    is_planning: Mutex<bool>,
    todos: Mutex<Vec<Todo>>,
    schedule: crate::schedule::tests::TestSchedule,
    /// The web.
    pub(crate) web: crate::web_fetch::tests::TestWeb,
    /// What was said earlier; nothing is kept unless it is set.
    pub(crate) recalled: Mutex<Option<RecallResult>>,
    /// What happens between the verdict and the run.
    pub(crate) between: Mutex<Box<dyn FnMut() + Send>>,
}

impl TestHost {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let (home, project) = (base.join("home"), base.join("project"));
        for dir in [&home, &project, &base.join("spill"), &base.join("tasks")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        let place = Workspace {
            cwd: project.clone(),
            project: project.clone(),
            extra_dirs: Vec::new(),
            home: home.clone(),
        };
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
        Self {
            _root: root,
            env: Env::for_test(home, project),
            place: Mutex::new(place),
            files: Mutex::default(),
            tasks: BackgroundTasks::default(),
            task_store: Arc::default(),
            checkpoints: Mutex::default(),
            denied: Mutex::default(),
            child_env: Mutex::new(vec![("PATH".to_owned(), path)]),
            is_planning: Mutex::default(),
            todos: Mutex::default(),
            schedule: crate::schedule::tests::TestSchedule::default(),
            web: crate::web_fetch::tests::TestWeb::default(),
            recalled: Mutex::default(),
            between: Mutex::new(Box::new(|| {})),
        }
    }

    /// The world of the test, to set a variable or a clock before the first call.
    pub(crate) fn env_mut(&mut self) -> &mut Env {
        &mut self.env
    }

    /// Puts another web in the place of the empty one.
    pub(crate) fn with_web(self, web: crate::web_fetch::tests::TestWeb) -> Self {
        Self { web, ..self }
    }

    /// The project directory.
    pub(crate) fn project(&self) -> PathBuf {
        self.place.lock().unwrap().project.clone()
    }

    /// Writes a file of the project and returns its path.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Runs a call as the engine would: schema check, validation, run.
    pub(crate) async fn call(&self, tool: &dyn Tool, input: Value) -> ToolOutcome {
        self.call_with(tool, input, CancellationToken::new()).await
    }

    pub(crate) async fn call_with(
        &self,
        tool: &dyn Tool,
        input: Value,
        cancel: CancellationToken,
    ) -> ToolOutcome {
        let checked = match crate::InputCheck::new(&tool.descriptor().input_schema).check(&input) {
            Ok(checked) => checked,
            Err(problem) => return ToolOutcome::invalid_input(problem),
        };
        if let Err(outcome) = tool.validate(&checked, self) {
            return *outcome;
        }
        let effects = tool.effects(&checked, &self.workspace());
        let call = ToolCall {
            id: ToolUseId::new("toolu_test"),
            input: checked,
            effects,
            cancel,
            to_background: CancellationToken::new(),
        };
        (self.between.lock().unwrap())();
        tool.run(call, self).await
    }
}

impl Host for TestHost {
    fn schedule(&self) -> Option<&dyn crate::ScheduleHost> {
        Some(&self.schedule)
    }

    fn web(&self) -> Option<&dyn crate::WebHost> {
        Some(&self.web)
    }

    fn env(&self) -> Env {
        self.env.clone()
    }

    fn workspace(&self) -> Workspace {
        self.place.lock().unwrap().clone()
    }

    fn set_cwd(&self, cwd: PathBuf) {
        self.place.lock().unwrap().cwd = cwd;
    }

    fn child_env(&self) -> Vec<(String, String)> {
        self.child_env.lock().unwrap().clone()
    }

    fn files(&self) -> &Mutex<FileStates> {
        &self.files
    }

    fn checkpoint<'a>(&'a self, _call: &'a ToolUseId, path: &'a Path) -> HostFuture<'a, io::Result<()>> {
        self.checkpoints.lock().unwrap().push(path.to_path_buf());
        Box::pin(async { Ok(()) })
    }

    fn is_read_denied(&self, path: &Path) -> bool {
        self.denied.lock().unwrap().iter().any(|denied| path.starts_with(denied))
    }

    fn spill_path(&self, call: &ToolUseId) -> io::Result<PathBuf> {
        Ok(self.env.home.with_file_name("spill").join(format!("{call}.txt")))
    }

    fn task_dir(&self) -> io::Result<PathBuf> {
        Ok(self.env.home.with_file_name("tasks"))
    }

    fn tasks(&self) -> &BackgroundTasks {
        &self.tasks
    }

    fn recall(&self, _wish: RecallQuery) -> HostFuture<'_, Result<RecallResult, String>> {
        let recalled = self.recalled.lock().unwrap().clone();
        Box::pin(async { recalled.ok_or_else(|| "nothing is kept".to_owned()) })
    }

    fn task_store(&self) -> Arc<dyn TaskStore> {
        Arc::clone(&self.task_store) as Arc<dyn TaskStore>
    }

    fn set_todos(&self, todos: Vec<Todo>) -> Vec<Todo> {
        std::mem::replace(&mut *self.todos.lock().unwrap(), todos)
    }

    fn plan(&self) -> PlanView {
        let is_active = *self.is_planning.lock().unwrap();
        PlanView { is_active, file: Some(self.env.home.join("plan.md")), is_agents: false }
    }

    fn begin_plan(&self) -> Result<Attachment, String> {
        *self.is_planning.lock().unwrap() = true;
        Ok(Attachment::parse(r#"{"type":"plan_mode"}"#))
    }

    fn end_plan(&self, _plan: &str) -> Option<Attachment> {
        *self.is_planning.lock().unwrap() = false;
        None
    }

    fn progress(&self, _call: &ToolUseId, _progress: ToolProgress) {}
}
