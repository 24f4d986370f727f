//! A project, a session that changes it, and somebody else who does.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use loci_core::ids::{EntryId, SessionId};
use loci_stdx::{Env, FixedClock, SystemClock};
use loci_storage::history::{
    BlobStore, ChangeOrigin, OnConflict, RewindContext, RewindError, RewindPlan, RewindReport, TreeHistory,
    TreeLimits, apply_rewind, blame_file, plan_rewind, plan_undo, recover_rewinds,
};
use loci_storage::layout::ConfigHome;
use sha2::{Digest, Sha256};

pub(super) struct Lab {
    directory: Arc<tempfile::TempDir>,
    env: Env,
    home: ConfigHome,
    session: SessionId,
    history: Option<TreeHistory>,
    watched_from: Option<usize>,
    limits: TreeLimits,
    store_limit: Option<u64>,
    n_points: usize,
}

impl Lab {
    /// A repository with one commit, and a session that has not done anything.
    pub(super) fn new() -> Self {
        // In memory, where there is such a place: every rewind is synced several times.
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let directory = Arc::new(directory.unwrap());
        let lab = Self::session(directory, 1);
        fs::create_dir_all(lab.project()).unwrap();
        fs::create_dir_all(lab.outside()).unwrap();
        lab.shell("git init -q -b main && echo hello > README && git add -A && git commit -qm start");
        lab
    }

    /// The same, where the system is asked what changed.
    pub(super) fn watching() -> Self {
        Self { watched_from: Some(0), ..Self::new() }
    }

    /// A lab whose tree has other limits.
    pub(super) fn within(limits: TreeLimits) -> Self {
        Self { limits, ..Self::new() }
    }

    /// A lab whose store holds no more than so many bytes.
    pub(super) fn with_store_of(n_bytes: u64) -> Self {
        Self { store_limit: Some(n_bytes), ..Self::new() }
    }

    /// A lab whose session runs in another directory of it.
    pub(super) fn standing_in(self, cwd: PathBuf) -> Self {
        Self { env: Env { cwd, ..self.env }, ..self }
    }

    pub(super) fn user_home(&self) -> PathBuf {
        self.env.home.clone()
    }

    pub(super) fn blame(&self, name: &str) -> Vec<(String, Option<String>)> {
        let lines = blame_file(&self.home, &self.env, &self.project().join(name)).unwrap();
        lines.into_iter().map(|it| (it.line, it.by.map(|(_, prompt, _)| prompt.to_string()))).collect()
    }

    /// Looks until the system's word is all that is relied upon.
    pub(super) fn settle(&mut self) {
        for _ in 0..3 {
            self.run("true");
        }
    }

    /// From here on all rewinds happen in one moment.
    pub(super) fn stop_clock(&mut self) {
        self.env.clock = Arc::new(FixedClock::new(self.env.clock.now()));
    }

    fn session(directory: Arc<tempfile::TempDir>, n: usize) -> Self {
        let root = directory.path().canonicalize().unwrap();
        let mut env = Env::for_test(root.join("home"), root.join("project"));
        env.clock = Arc::new(SystemClock::new());
        env.vars = [("PATH", std::env::var("PATH").unwrap().as_str())].into_iter().collect();
        let home = ConfigHome::from_env(&env);
        let session = SessionId::parse(&format!("0a0a0a0a-0001-4000-8000-00000000000{n}")).unwrap();
        let limits = TreeLimits::default();
        Self {
            directory,
            env,
            home,
            session,
            history: None,
            watched_from: None,
            limits,
            store_limit: None,
            n_points: 0,
        }
    }

    /// Another session in the same project.
    pub(super) fn second_session(&self) -> Self {
        Self::session(Arc::clone(&self.directory), 2)
    }

    pub(super) fn project(&self) -> PathBuf {
        self.env.cwd.clone()
    }

    pub(super) fn outside(&self) -> PathBuf {
        self.env.cwd.with_file_name("outside")
    }

    pub(super) fn home(&self) -> &ConfigHome {
        &self.home
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project().join(name)).unwrap()
    }

    pub(super) fn name(&self, path: &Path) -> String {
        path.strip_prefix(self.project()).unwrap().display().to_string()
    }

    fn history(&mut self) -> &mut TreeHistory {
        let (home, session, env) = (&self.home, &self.session, &self.env);
        let (watched_from, limits, store_limit) = (self.watched_from, self.limits, self.store_limit);
        self.history.get_or_insert_with(|| {
            let history = TreeHistory::new(home, session, &env.cwd, env).with_limits(limits);
            let history = match store_limit {
                Some(n_bytes) => history.with_store(BlobStore::new(home).with_limit(n_bytes)),
                None => history,
            };
            match watched_from {
                Some(n_files) => history.watched_from(n_files),
                None => history,
            }
        })
    }

    /// Forgets what was seen, as a new process has.
    pub(super) fn end_session(&mut self) {
        self.history = None;
    }

    /// Begins a prompt.
    pub(super) fn point(&mut self) -> EntryId {
        self.n_points += 1;
        let id = EntryId::new(format!("u-{}", self.n_points));
        self.history().begin_prompt(&id).unwrap();
        id
    }

    /// Runs a command as somebody else would.
    pub(super) fn shell(&self, command: &str) {
        let mut shell = Command::new("bash");
        shell.args(["-c", command]).current_dir(self.project()).env_clear();
        shell.env("PATH", std::env::var("PATH").unwrap()).env("HOME", &self.env.home);
        for who in ["AUTHOR", "COMMITTER"] {
            shell.env(format!("GIT_{who}_NAME"), "T").env(format!("GIT_{who}_EMAIL"), "t@example.com");
        }
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs a command as the session does.
    pub(super) fn run(&mut self, command: &str) {
        assert_eq!(self.warnings_of(command), [""; 0]);
    }

    /// Does the same and returns what the user is told.
    pub(super) fn warnings_of(&mut self, command: &str) -> Vec<String> {
        self.history().scan_before_call();
        self.shell(command);
        let origin = ChangeOrigin { call: None, by: "Bash".to_owned() };
        self.history().record_changes(&origin).unwrap();
        self.history().take_warnings()
    }

    /// Writes a file as a tool of the session does.
    pub(super) fn edit(&mut self, path: &Path, text: &str) {
        let before = self.history().state_before(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        let origin = ChangeOrigin { call: None, by: "Write".to_owned() };
        self.history().record_file_change(&origin, before).unwrap();
    }

    fn scene(&self) -> RewindContext<'_> {
        RewindContext { home: &self.home, env: &self.env, session: &self.session, cwd: &self.env.cwd }
    }

    pub(super) fn try_plan(&self, point: &EntryId) -> Result<RewindPlan, RewindError> {
        plan_rewind(&self.scene(), &[], point)
    }

    pub(super) fn plan(&self, point: &EntryId) -> RewindPlan {
        self.try_plan(point).unwrap()
    }

    pub(super) fn apply(
        &self,
        plan: RewindPlan,
        on_conflict: OnConflict,
    ) -> Result<RewindReport, RewindError> {
        apply_rewind(&self.scene(), plan, on_conflict, None)
    }

    /// Goes back, which must meet no conflict.
    pub(super) fn rewind(&self, point: &EntryId) {
        let plan = self.plan(point);
        assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
        self.apply(plan, OnConflict::Refuse).unwrap();
    }

    pub(super) fn undo(&self) {
        let plan = plan_undo(&self.scene()).unwrap();
        assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
        self.apply(plan, OnConflict::Refuse).unwrap();
    }

    /// Finishes what was cut short, as the next start of loci does.
    pub(super) fn recover(&self) -> Vec<String> {
        recover_rewinds(&self.home, &self.env)
    }

    pub(super) fn store_bytes(&self) -> u64 {
        BlobStore::new(&self.home).usage().unwrap().n_bytes
    }

    /// Waits until the clock of the file system has surely moved on.
    pub(super) fn wait_a_tick(&self) {
        std::thread::sleep(Duration::from_millis(30));
    }

    /// A digest of everything in the project but `.git`: names, kinds, modes, contents.
    pub(super) fn hash(&self) -> String {
        digest(&self.project(), |name| name != ".git")
    }

    pub(super) fn git_hash(&self) -> String {
        digest(&self.project().join(".git"), |_| true)
    }

    /// What the project holds, for messages.
    pub(super) fn listing(&self) -> String {
        let mut lines = Vec::new();
        walk(&self.project(), &|name| name != ".git", &mut |path, _| lines.push(format!("{path:?}")));
        lines.join(" ")
    }
}

fn digest(root: &Path, is_wanted: impl Fn(&OsStr) -> bool) -> String {
    let mut hasher = Sha256::new();
    walk(root, &is_wanted, &mut |path, metadata| {
        hasher.update(path.strip_prefix(root).unwrap().as_os_str().as_bytes());
        hasher.update(metadata.permissions().mode().to_le_bytes());
        if metadata.is_symlink() {
            hasher.update(fs::read_link(path).unwrap().as_os_str().as_bytes());
        } else if metadata.is_file() {
            hasher.update(fs::read(path).unwrap());
        }
        hasher.update([0]);
    });
    format!("{:x?}", hasher.finalize())
}

fn walk(dir: &Path, is_wanted: &impl Fn(&OsStr) -> bool, take: &mut impl FnMut(&Path, &fs::Metadata)) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if !is_wanted(path.file_name().unwrap()) {
            continue;
        }
        let metadata = fs::symlink_metadata(&path).unwrap();
        take(&path, &metadata);
        if metadata.is_dir() {
            walk(&path, is_wanted, take);
        }
    }
}
