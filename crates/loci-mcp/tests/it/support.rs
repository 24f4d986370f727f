//! A world with servers in it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_mcp::config::{Approvals, PlanInputs, ServerPolicy, ServerScope, plan_servers};
use loci_mcp::{
    ClientSide, ElicitFuture, Elicitation, ElicitationAnswer, Limits, Logins, ServerStatus, ServerView,
    ServerWorld, Servers,
};
use loci_stdx::Vars;
use loci_testkit::PythonVenv;
use serde_json::{Value, json};

/// Returns a Python that has the official SDK, or none if there is no Python at all.
pub(crate) fn official_sdk() -> Option<PythonVenv> {
    PythonVenv::new(env!("CARGO_TARGET_TMPDIR"), "mcp-sdk", &["mcp"])
}

/// Returns a script of this folder.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(name)
}

/// The servers of a configuration, in a folder of their own.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) servers: Servers,
}

impl World {
    /// Starts servers by their entries and waits until none is pending.
    pub(crate) async fn start(entries: Value, vars: &[(&str, &str)]) -> Self {
        let world = Self::new(entries, vars);
        world.servers.start();
        world.servers.wait(&[], Duration::from_secs(60)).await;
        world
    }

    pub(crate) fn new(entries: Value, vars: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::within(dir, entries, vars)
    }

    /// Starts servers with a store of logins, and waits until none is pending.
    pub(crate) async fn start_with_logins(entries: Value, logins: Logins) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = Self::make(dir, entries, &[], Some(Arc::new(logins)));
        world.servers.start();
        world.servers.wait(&[], Duration::from_secs(60)).await;
        world
    }

    pub(crate) fn within(dir: tempfile::TempDir, entries: Value, vars: &[(&str, &str)]) -> Self {
        Self::make(dir, entries, vars, None)
    }

    fn make(
        dir: tempfile::TempDir,
        entries: Value,
        vars: &[(&str, &str)],
        logins: Option<Arc<Logins>>,
    ) -> Self {
        let vars: Vars = vars.iter().copied().collect();
        let plan = plan_servers(PlanInputs {
            written: vec![(ServerScope::User, "test".to_owned(), entries)],
            is_strict: false,
            policy: &ServerPolicy::default(),
            approvals: &Approvals::default(),
            vars: &|_, _| None,
        });
        assert_eq!(plan.problems, []);
        let cwd = dir.path().canonicalize().unwrap();
        let servers = Servers::new(
            &plan,
            ServerWorld {
                project: cwd.clone(),
                log_dir: cwd.join("logs"),
                cwd,
                session: "s1".to_owned(),
                child_env: vec![
                    ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
                    ("OURS".to_owned(), "1".to_owned()),
                ],
                limits: Limits::from_vars(&vars),
                clock: Arc::new(loci_stdx::SystemClock::new()),
                version: "0.0.0".to_owned(),
                bridge: None,
                clients: Arc::new(|_| client()),
                logins,
                program_watch: None,
                sandbox_maker: None,
                sampling: vec!["sampling".to_owned()],
                on_connected: None,
                config_dir: dir.path().to_owned(),
                may_run_helpers: true,
            },
        );
        Self { dir, servers }
    }

    pub(crate) fn view(&self, name: &str) -> ServerView {
        self.servers.view(name).unwrap()
    }

    /// Returns how a server is doing, and why.
    pub(crate) fn status(&self, name: &str) -> (ServerStatus, String) {
        let view = self.view(name);
        (view.status, view.error.unwrap_or_default())
    }

    pub(crate) fn tools(&self, name: &str) -> Vec<String> {
        self.view(name).offer.tools.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Calls a tool and returns its text, or what went wrong.
    pub(crate) async fn call(&self, server: &str, tool: &str, arguments: Value) -> Result<String, String> {
        let called = self.servers.call(server, tool, arguments, Value::Null, None).await;
        called.map(|result| result.text()).map_err(|error| error.to_string())
    }

    pub(crate) fn log(&self, server: &str) -> String {
        loci_mcp::read_log(&self.dir.path().canonicalize().unwrap().join("logs"), server)
            .unwrap()
            .unwrap_or_default()
    }
}

/// Makes a client as the product does: it follows nothing by itself.
pub(crate) fn client() -> Result<reqwest::Client, String> {
    // Installed by whichever test comes first.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    builder.build().map_err(|error| error.to_string())
}

/// The entry of a faulty server.
pub(crate) fn faulty(fault: &str, more: &[&str]) -> Value {
    let mut args = vec![script("faulty_server.py").display().to_string(), fault.to_owned()];
    args.extend(more.iter().map(|&arg| arg.to_owned()));
    json!({"command": "python3", "args": args})
}

/// Answers everything that is asked with one answer.
pub(crate) struct Answering {
    pub(crate) answer: ElicitationAnswer,
    pub(crate) asked: Mutex<Vec<Elicitation>>,
}

impl Answering {
    pub(crate) fn new(answer: ElicitationAnswer) -> Arc<Self> {
        Arc::new(Self { answer, asked: Mutex::default() })
    }
}

impl ClientSide for Answering {
    fn roots(&self) -> Vec<PathBuf> {
        vec!["/first".into(), "/second place".into()]
    }

    fn elicit(&self, elicitation: Elicitation) -> ElicitFuture {
        self.asked.lock().unwrap().push(elicitation);
        let answer = self.answer.clone();
        Box::pin(async move { answer })
    }
}

/// Waits until something is so; the test fails when it never is.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}
