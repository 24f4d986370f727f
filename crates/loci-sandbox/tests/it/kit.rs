//! A project with a home around it, and the sandbox to run things in.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use loci_sandbox::policy::{
    FileRules, Layers, Namespaces, Network, PathSettings, Preparation, SessionPlaces,
};
use loci_sandbox::{Policy, ProgramStart, SandboxReport, launch, waiting_helper};

/// The program that is the helper and has the probes.
pub(crate) const PROBE: &str = env!("CARGO_BIN_EXE_sandbox-probe");

/// The layers alone and together.
pub(crate) const LAYERINGS: [(&str, Layers); 5] = [
    ("landlock", Layers { namespaces: Namespaces::None, landlock: true, seccomp: false }),
    ("namespaces", Layers { namespaces: Namespaces::Full, landlock: false, seccomp: false }),
    ("seccomp", Layers { namespaces: Namespaces::None, landlock: false, seccomp: true }),
    ("full", Layers::FULL),
    ("weak", Layers::WEAK),
];

/// A world: `home`, the project `home/p`, `outside` of everything, and a scratch directory.
pub(crate) struct World {
    /// Not below the temporary directory, which a sandbox might let through.
    dir: tempfile::TempDir,
    pub(crate) settings: PathSettings,
    /// Who runs programs, where that is not who runs the tests.
    user: Option<u32>,
}

/// Runs a program under a policy.
pub(crate) type Run = fn(&World, &Policy, &str, &[&str]) -> (Output, SandboxReport);

/// A user whom nobody is called by.
pub(crate) const ORDINARY_USER: u32 = 61_234;

/// Tells whether the tests can be somebody else; says so by name where they cannot.
pub(crate) fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: the tests run as an ordinary user as it is");
    }
    is_root
}

impl World {
    pub(crate) fn new() -> Self {
        let target = Path::new(PROBE).parent().unwrap();
        // Like no name that the sandbox makes: what is looked for in a message is not to be found in the path.
        let dir = tempfile::Builder::new().prefix("world-").tempdir_in(target).unwrap();
        let world = Self { dir, settings: PathSettings::default(), user: None };
        for name in ["home/p", "home/.ssh", "home/.aws", "outside", "scratch", "home/.claude"] {
            std::fs::create_dir_all(world.path(name)).unwrap();
        }
        for name in
            ["home/.ssh/id", "home/.ssh/id.pub", "home/.aws/credentials", "home/.claude/.credentials.json"]
        {
            world.write(name, "secret");
        }
        world.write("outside/file", "outside");
        world.write("home/p/file", "inside");
        world
    }

    /// Gives what lies below a name to another user.
    pub(crate) fn give(&self, name: &str, user: u32) {
        let mut pending = vec![self.path(name)];
        while let Some(path) = pending.pop() {
            std::os::unix::fs::lchown(&path, Some(user), Some(user)).unwrap();
            if path.symlink_metadata().unwrap().is_dir() {
                pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
    }

    /// Makes everything here another user's, who runs programs from then on.
    pub(crate) fn of_user(mut self, user: u32) -> Self {
        self.give("", user);
        self.user = Some(user);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Makes the project a repository, with nothing of the user's own configuration in it.
    pub(crate) fn repository(&self) -> &Self {
        for args in [&["init", "-q"][..], &["config", "user.email", "a@b"], &["config", "user.name", "a"]] {
            assert!(self.outside("git", args).status.success());
        }
        self
    }

    pub(crate) fn places(&self) -> SessionPlaces {
        let project = self.path("home/p");
        SessionPlaces {
            git_dirs: loci_sandbox::git_dirs(&project),
            dirs: vec![project],
            scratch: self.path("scratch"),
            home: self.path("home"),
            config_home: self.path("home/.claude"),
        }
    }

    pub(crate) fn policy(&self, layers: Layers) -> Policy {
        Policy {
            layers,
            files: Some(FileRules::new(&self.places(), &self.settings)),
            network: Network::Closed,
            allows_unix_sockets: false,
            fault: None,
        }
    }

    /// Runs a program under a policy.
    pub(crate) fn run(&self, policy: &Policy, program: &str, args: &[&str]) -> (Output, SandboxReport) {
        let (mut command, helper_handle) =
            launch(Path::new(PROBE), policy, OsStr::new(program), args).unwrap();
        command.current_dir(self.path("home/p")).env_clear().envs(self.env());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let child = command.spawn().unwrap();
        drop(command);
        let waiting = std::thread::spawn(move || helper_handle.wait().unwrap());
        let output = child.wait_with_output().unwrap();
        (output, waiting.join().unwrap())
    }

    /// Runs a program under a policy, by a helper that waited for it.
    pub(crate) fn run_by_waiting_helper(
        &self,
        policy: &Policy,
        program: &str,
        args: &[&str],
    ) -> (Output, SandboxReport) {
        let (mut command, helper) = waiting_helper(Path::new(PROBE), &Preparation::of(policy)).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let child = command.spawn().unwrap();
        drop(command);
        // Of a process that keeps to itself nobody else sees what it does; one that is to fail does nothing for long.
        if policy.layers.has_mounts() && policy.fault.is_none() && is_root() {
            wait_until_prepared(first_process(&child));
        }
        let env = self.env().into_iter().map(|(name, value)| (name.into(), value.into()));
        let start = ProgramStart {
            words: std::iter::once(&program).chain(args).map(Into::into).collect(),
            cwd: self.path("home/p"),
            env: env.collect(),
        };
        // One that has died while it prepared takes no program.
        let Ok(helper_handle) = helper.hand_over(policy, &start) else {
            return (child.wait_with_output().unwrap(), SandboxReport::default());
        };
        let waiting = std::thread::spawn(move || helper_handle.wait().unwrap());
        (child.wait_with_output().unwrap(), waiting.join().unwrap())
    }

    /// Runs a program inside, with all layers; it must work.
    pub(crate) fn inside(&self, program: &str, args: &[&str]) -> String {
        let (output, report) = self.run(&self.policy(Layers::FULL), program, args);
        assert_eq!(report.why_not_run(), None);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{program} {args:?}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }

    /// Runs a program without a sandbox.
    pub(crate) fn outside(&self, program: &str, args: &[&str]) -> Output {
        let mut command = std::process::Command::new(program);
        command.args(args).current_dir(self.path("home/p")).env_clear().envs(self.env());
        command.output().unwrap()
    }

    /// Runs a script outside; it must work.
    pub(crate) fn script_outside(&self, script: &str) -> String {
        let output = self.outside("sh", &["-ec", script]);
        let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{script}: {printed}");
        printed
    }

    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        vec![
            ("PATH".to_owned(), path),
            ("HOME".to_owned(), self.text("home")),
            ("TMPDIR".to_owned(), self.text("scratch")),
            ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        ]
    }

    /// Runs probes in one sandbox, in one way or another; returns a line for each.
    pub(crate) fn probe(&self, run: Run, policy: &Policy, probes: &[String]) -> Vec<String> {
        let mut args = vec!["all"];
        args.extend(probes.iter().map(String::as_str));
        let (output, report) = run(self, policy, PROBE, &args);
        assert_eq!(report.why_not_run(), None, "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    /// Lists the project's names, placeholders included.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path("home/p"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Tells whether this kernel lets namespaces be made; says so by name where it does not.
pub(crate) fn has_full() -> bool {
    let found = loci_sandbox::check(Path::new(PROBE), false);
    let is_full = found.level == loci_sandbox::Level::Full;
    if !is_full {
        eprintln!("skipped: this machine's sandbox is {}: {:?}", found.level, found.problem());
    }
    is_full
}

/// Waits until the helper has a first process inside, and returns it.
pub(crate) fn first_process(helper: &Child) -> u32 {
    let children = format!("/proc/{0}/task/{0}/children", helper.id());
    loop {
        let text = std::fs::read_to_string(&children).unwrap();
        if let Some(pid) = text.split_whitespace().next() {
            return pid.parse().unwrap();
        }
        std::thread::yield_now();
    }
}

/// Waits until a process blocks in a read: until it has prepared all that it can.
pub(crate) fn wait_until_prepared(pid: u32) {
    let is_waiting = || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        let name = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        state.starts_with("0 ") && name.contains("Threads:\t1\n")
    };
    while !is_waiting() {
        std::thread::yield_now();
    }
}
