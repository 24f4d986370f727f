//! Real commands in a temporary project.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use loci_core::ids::ToolUseId;
use loci_core::recall::{RecallQuery, RecallResult};
use loci_core::tool::{ToolContent, ToolOutcome};
use loci_stdx::Env;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Bash;
use crate::background_tasks::BackgroundStatus;
use crate::testing::TestHost;
use crate::{
    BackgroundTasks, FileStates, Host, HostFuture, InputCheck, TaskStore, Tool, ToolCall, ToolProgress,
    Workspace,
};

/// A test host with variables of its own that remembers progress.
pub(crate) struct ShellHost {
    pub(crate) inner: TestHost,
    env: Env,
    progress: Mutex<Vec<String>>,
}

impl ShellHost {
    pub(crate) fn new() -> Self {
        Self::with_vars(&[])
    }

    pub(crate) fn with_vars(vars: &[(&str, &str)]) -> Self {
        let inner = TestHost::new();
        let mut env = inner.env();
        for (name, value) in vars {
            env.vars = env.vars.with(*name, *value);
        }
        Self { inner, env, progress: Mutex::default() }
    }

    pub(crate) async fn call(&self, tool: &dyn Tool, input: Value) -> ToolOutcome {
        self.call_with(tool, input, CancellationToken::new()).await
    }

    async fn call_with(&self, tool: &dyn Tool, input: Value, cancel: CancellationToken) -> ToolOutcome {
        let input = match InputCheck::new(&tool.descriptor().input_schema).check(&input) {
            Ok(input) => input,
            Err(problem) => return ToolOutcome::invalid_input(problem),
        };
        if let Err(outcome) = tool.validate(&input, self) {
            return *outcome;
        }
        let effects = tool.effects(&input, &self.workspace());
        tool.run(
            ToolCall {
                id: ToolUseId::new("toolu_test"),
                input,
                effects,
                cancel,
                to_background: CancellationToken::new(),
            },
            self,
        )
        .await
    }

    pub(crate) async fn bash(&self, command: &str) -> ToolOutcome {
        self.call(&Bash::default(), json!({"command": command})).await
    }

    /// Makes a pipe in the project, for commands and tests to wait for each other.
    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.inner.project().join(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        path
    }
}

/// The reading end of a pipe that commands write lines to. It is held open from the start: a process that another
/// test is just starting may hold a copy of an end for a moment, and would otherwise be taken for the reader.
pub(crate) struct Ready(tokio::net::unix::pipe::Receiver);

impl Ready {
    pub(crate) fn new(host: &ShellHost) -> Self {
        let mut options = tokio::net::unix::pipe::OpenOptions::new();
        Self(options.read_write(true).open_receiver(host.fifo("ready")).unwrap())
    }

    /// Waits for the next line.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            line.push(tokio::io::AsyncReadExt::read_u8(&mut self.0).await.unwrap());
        }
        String::from_utf8(line).unwrap()
    }
}

impl Host for ShellHost {
    fn env(&self) -> Env {
        self.env.clone()
    }
    fn workspace(&self) -> Workspace {
        self.inner.workspace()
    }
    fn set_cwd(&self, cwd: PathBuf) {
        self.inner.set_cwd(cwd);
    }
    fn child_env(&self) -> Vec<(String, String)> {
        self.inner.child_env()
    }
    fn files(&self) -> &Mutex<FileStates> {
        self.inner.files()
    }
    fn checkpoint<'a>(&'a self, call: &'a ToolUseId, path: &'a Path) -> HostFuture<'a, io::Result<()>> {
        self.inner.checkpoint(call, path)
    }
    fn is_read_denied(&self, path: &Path) -> bool {
        self.inner.is_read_denied(path)
    }
    fn spill_path(&self, call: &ToolUseId) -> io::Result<PathBuf> {
        self.inner.spill_path(call)
    }
    fn task_dir(&self) -> io::Result<PathBuf> {
        self.inner.task_dir()
    }
    fn tasks(&self) -> &BackgroundTasks {
        self.inner.tasks()
    }
    fn recall(&self, wish: RecallQuery) -> HostFuture<'_, Result<RecallResult, String>> {
        self.inner.recall(wish)
    }
    fn task_store(&self) -> Arc<dyn TaskStore> {
        self.inner.task_store()
    }
    fn progress(&self, _call: &ToolUseId, progress: ToolProgress) {
        if let ToolProgress::Output(text) = progress {
            self.progress.lock().unwrap().push(text);
        }
    }
}

pub(crate) fn text(outcome: &ToolOutcome) -> &str {
    match &outcome.content {
        ToolContent::Text(text) => text,
        ToolContent::Blocks(blocks) => panic!("blocks: {blocks:?}"),
    }
}

/// Returns true when a process has ended, collected or not.
pub(crate) fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ") || stat.contains(") X ")
}

#[track_caller]
pub(crate) fn assert_all_gone(pids: &str) {
    assert!(!pids.trim().is_empty());
    for pid in pids.split_whitespace() {
        assert!(is_gone(pid), "process {pid} still runs");
    }
}

/// Runs commands one by one and compares text and the error flag.
async fn check(cases: &[(&str, &str, bool)]) {
    let host = ShellHost::new();
    for (command, expected, is_error) in cases {
        let outcome = host.bash(command).await;
        assert_eq!((text(&outcome), outcome.is_error), (*expected, Some(*is_error)), "{command}");
        if *is_error {
            assert_eq!(outcome.structured, json!(format!("Error: {expected}")), "{command}");
        }
    }
}

#[tokio::test]
async fn results_of_commands_that_work() {
    check(&[
        ("echo beta", "beta", false),
        ("echo out; echo err >&2", "out\nerr", false),
        ("echo err >&2", "err", false),
        ("true", "(no output)", false),
        ("printf '\\n\\n  a\\n\\n'", "  a", false),
        ("printf 'a\\0b\\377c'", "ab\u{fffd}c", false),
        ("printf '\\033[31mred\\033[0m'", "\u{1b}[31mred\u{1b}[0m", false),
        ("echo 'grüße 日本 😀'", "grüße 日本 😀", false),
        ("cat", "(no output)", false),
        ("read x; echo \"got <$x>\"", "got <>", false),
        ("echo \"$# $0\"", "0 bash", false),
        ("set -x; true", "++ true", false),
        ("shopt expand_aliases | grep -c off", "1", false),
        ("echo a\necho b", "a\nb", false),
        ("cat <<'X'\nhere\nX", "here", false),
    ])
    .await;
}

#[tokio::test]
async fn showing_a_file_counts_as_reading_it() {
    let edit = crate::edit::Edit::default();
    for (command, may_edit) in [
        ("cat a.txt", true),
        ("cat -n a.txt", true),
        ("sed -n '1,1p' a.txt", true),
        ("grep -n two a.txt", true),
        ("head -n 1 ./a.txt", true),
        ("cat a.txt | head", false),
        ("cat b.txt; cat a.txt", false),
        ("ls a.txt", false),
        ("cat missing a.txt", false),
    ] {
        let host = ShellHost::new();
        host.inner.write("a.txt", "one\ntwo\n");
        host.inner.write("b.txt", "three\n");
        host.bash(command).await;
        let input = json!({"file_path": "a.txt", "old_string": "two", "new_string": "zwei"});
        let outcome = host.call(&edit, input).await;
        assert_eq!(outcome.is_error != Some(true), may_edit, "{command}: {}", text(&outcome));
    }
}

#[tokio::test]
async fn a_part_that_was_shown_does_not_let_the_rest_be_overwritten() {
    for (command, may_write) in [("cat a.txt", true), ("head -n 1 a.txt", false)] {
        let host = ShellHost::new();
        host.inner.write("a.txt", "one\ntwo\n");
        host.bash(command).await;
        let input = json!({"file_path": "a.txt", "content": "new\n"});
        let outcome = host.call(&crate::write::Write::default(), input).await;
        assert_eq!(outcome.is_error != Some(true), may_write, "{command}: {}", text(&outcome));
    }
}

#[tokio::test]
async fn exit_codes_decide_error_and_text() {
    check(&[
        ("echo partial; exit 7", "Exit code 7\npartial", true),
        ("echo out; echo err >&2; false", "Exit code 1\nout\nerr", true),
        ("set -e; echo a; false; echo b", "Exit code 1\na", true),
        ("set -eu; echo $NOT_SET", "Exit code 1\nbash: line 1: NOT_SET: unbound variable", true),
        (
            "no_such_program_here",
            "Exit code 127\nbash: line 1: no_such_program_here: command not found",
            true,
        ),
        ("trap 'echo bye' EXIT; exit 3", "Exit code 3\nbye", true),
        ("kill -9 $$", "Exit code 137\n(ended by signal 9: SIGKILL, perhaps for lack of memory)", true),
        ("exec sh -c 'exit 4'", "Exit code 4", true),
        ("grep x /dev/null", "(No matches found)", false),
        ("test 1 = 2", "(The condition is false)", false),
        ("echo a | grep b", "(No matches found)", false),
        ("(exit 1)", "Exit code 1", true),
    ])
    .await;
    let host = ShellHost::new();
    let syntax = host.bash("echo 'open").await;
    assert!(
        text(&syntax).starts_with("Exit code 2\n") && text(&syntax).contains("unexpected EOF"),
        "{syntax:?}"
    );
    let syntax = host.bash("if true; then").await;
    assert!(syntax.is_failure() && text(&syntax).contains("syntax error"), "{syntax:?}");
}

#[tokio::test]
async fn the_structured_result_has_its_shape() {
    let host = ShellHost::new();
    for (command, expected) in [
        (
            "echo out; echo err >&2",
            json!({"stdout": "out", "stderr": "err", "interrupted": false, "isImage": false, "noOutputExpected": false}),
        ),
        (
            "mkdir x",
            json!({"stdout": "", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": true}),
        ),
        (
            "diff /dev/null /etc/passwd >/dev/null",
            json!({"stdout": "", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
                "returnCodeInterpretation": "The files differ"}),
        ),
    ] {
        assert_eq!(host.bash(command).await.structured, expected, "{command}");
    }
}

#[tokio::test]
async fn the_environment_is_the_hosts_and_nothing_else() {
    let host = ShellHost::new();
    let path = host.child_env()[0].1.clone();
    host.inner.child_env.lock().unwrap().extend([
        ("GREETING".to_owned(), "hello world".to_owned()),
        ("BASH_ENV".to_owned(), "/nonexistent/evil".to_owned()),
        ("BASH_FUNC_ls%%".to_owned(), "() { echo evil; }".to_owned()),
        ("SHELLOPTS".to_owned(), "xtrace".to_owned()),
    ]);
    let outcome = host.bash("env | grep -v '^BASH_\\|^SHELLOPTS\\|^}' | sort").await;
    let mut names: Vec<&str> =
        text(&outcome).lines().map(|line| line.split_once('=').map_or(line, |pair| pair.0)).collect();
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    assert_eq!(names, ["CLAUDECODE", "GIT_EDITOR", "GREETING", "LOCI_PROCESS_MARK", "PATH"]);
    let outcome = host.bash("echo \"$GREETING|$CLAUDECODE|$PATH\"").await;
    assert_eq!(text(&outcome), format!("hello world|1|{path}"));
    assert_eq!(text(&host.bash("type -t ls").await), "file");
}

#[tokio::test]
async fn the_directory_carries_over_inside_only() {
    let host = ShellHost::new();
    let project = host.inner.project();
    std::fs::create_dir_all(project.join("sub dir/deep")).unwrap();
    let reset = format!("Shell cwd was reset to {}", project.join("sub dir").display());
    for (command, expected_text, expected_cwd) in [
        ("cd 'sub dir'", "(no output)".to_owned(), "sub dir"),
        ("pwd; cd deep; exit 0", project.join("sub dir").display().to_string(), "sub dir/deep"),
        ("cd ..; false", "Exit code 1".to_owned(), "sub dir"),
        ("(cd deep)", "(no output)".to_owned(), "sub dir"),
        ("cd /", reset.clone(), "sub dir"),
        ("cd / && exit 3", format!("Exit code 3\n{reset}"), "sub dir"),
        ("echo a; cd /", format!("a\n{reset}"), "sub dir"),
        ("set -o noclobber; set -e; cd deep", "(no output)".to_owned(), "sub dir/deep"),
        ("trap 'echo bye' EXIT; cd ..", "bye".to_owned(), "sub dir"),
        ("rmdir deep; cd ..; rmdir 'sub dir'", "(no output)".to_owned(), ""),
    ] {
        let outcome = host.bash(command).await;
        assert_eq!(text(&outcome), expected_text, "{command}");
        assert_eq!(
            host.workspace().cwd,
            project.join(expected_cwd).components().collect::<PathBuf>(),
            "{command}"
        );
    }
    assert_eq!(std::fs::read_dir(host.task_dir().unwrap()).unwrap().count(), 0, "files are left");
}

#[tokio::test]
async fn a_lost_directory_is_replaced() {
    let host = ShellHost::new();
    let project = host.inner.project();
    host.set_cwd(project.join("gone"));
    let outcome = host.bash("pwd").await;
    let project = project.display();
    assert_eq!(text(&outcome), format!("{project}\nShell cwd was reset to {project}"));
    assert_eq!(host.workspace().cwd, host.inner.project());
    std::fs::remove_dir(host.inner.project()).unwrap();
    let outcome = host.bash("pwd").await;
    assert!(outcome.is_failure() && text(&outcome).contains("does not exist any more"), "{outcome:?}");
}

#[tokio::test]
async fn the_directory_stays_when_told_to() {
    let host = ShellHost::with_vars(&[("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "1")]);
    std::fs::create_dir(host.inner.project().join("sub")).unwrap();
    assert!(text(&host.bash("cd sub").await).starts_with("Shell cwd was reset"));
    assert_eq!(host.workspace().cwd, host.inner.project());
}

#[tokio::test]
async fn long_output_is_saved_and_previewed() {
    let host = ShellHost::new();
    let spill = host.spill_path(&ToolUseId::new("toolu_test")).unwrap();
    let outcome = host.bash("seq 1 9000").await;
    let preview: Vec<String> = (1..=527).map(|n: u32| n.to_string()).collect();
    let expected = format!(
        "<persisted-output>\nOutput too large (42.9KB). Full output saved to: {}\n\nPreview (first 2KB):\n{}\n...\n</persisted-output>",
        spill.display(),
        preview.join("\n")
    );
    assert_eq!((text(&outcome), outcome.is_error), (expected.as_str(), Some(false)));
    let whole: String = (1..=9000).map(|n: u32| format!("{n}\n")).collect();
    assert_eq!(std::fs::read_to_string(&spill).unwrap(), whole);
    assert_eq!(outcome.structured["stdout"], json!(whole[..30_000]));
    assert_eq!(outcome.structured["persistedOutputSize"], json!(43_893));
    assert_eq!(outcome.structured["persistedOutputPath"], json!(spill.display().to_string()));
}

#[tokio::test]
async fn the_limit_counts_characters() {
    let host = ShellHost::with_vars(&[("BASH_MAX_OUTPUT_LENGTH", "100")]);
    let spill = host.spill_path(&ToolUseId::new("toolu_test")).unwrap();
    for (command, is_saved) in [
        ("printf '%0100d\\n' 0", false),
        ("printf '%0101d\\n' 0", true),
        ("printf 'é%.0s' {1..100}", false),
        ("printf 'é%.0s' {1..101}", true),
        ("printf '%060d' 0; printf '%060d' 0 >&2", true),
    ] {
        let outcome = host.bash(command).await;
        assert_eq!(text(&outcome).starts_with("<persisted-output>"), is_saved, "{command}");
        assert_eq!(spill.exists(), is_saved, "{command}");
        if is_saved {
            std::fs::remove_file(&spill).unwrap();
        }
    }
}

#[tokio::test]
async fn long_failures_are_excerpts() {
    let host = ShellHost::new();
    let outcome = host.bash("echo first; seq 1 20000; echo last; echo problem >&2; exit 2").await;
    let shown = text(&outcome);
    assert!(shown.starts_with("Exit code 2\nfirst\n1\n2\n"), "{}", &shown[..100]);
    assert!(
        shown.contains("bytes left out] ...") && shown.contains("\n20000\nlast\nproblem\n[whole output: ")
    );
    assert!(shown.chars().count() < 10_500, "{}", shown.chars().count());
    let saved = std::fs::read_to_string(host.spill_path(&ToolUseId::new("toolu_test")).unwrap()).unwrap();
    assert!(saved.starts_with("first\n1\n") && saved.contains("problem") && saved.len() > 100_000);
}

#[tokio::test]
async fn a_small_limit_loses_nothing_of_a_failure() {
    let host = ShellHost::with_vars(&[("BASH_MAX_OUTPUT_LENGTH", "100")]);
    let spill = host.spill_path(&ToolUseId::new("toolu_test")).unwrap();
    for (count, is_saved) in [(500, false), (100_000, true)] {
        let outcome = host.bash(&format!("seq 1 {count}; exit 1")).await;
        let shown = text(&outcome);
        assert!(shown.starts_with("Exit code 1\n1\n2\n") && shown.contains(&format!("\n{count}")), "{count}");
        assert_eq!((shown.contains("[whole output: "), spill.exists()), (is_saved, is_saved), "{count}");
    }
}

#[tokio::test]
async fn flood_of_output_is_saved_within_the_byte_limit() {
    let host = ShellHost::new();
    let outcome = host.bash("yes | head -c 50000000").await;
    assert_eq!(outcome.structured["persistedOutputSize"], json!(50_000_000));
    assert!(
        text(&outcome).starts_with("<persisted-output>\nOutput too large (47.7MB). Full output saved to: ")
    );
    let outcome = host.bash("yes | head -c 80000000").await;
    assert!(text(&outcome).contains("Output too large (76.3MB). First 64MB saved to: "));
    assert_eq!(outcome.structured["persistedOutputSize"], json!(64 << 20));
}

#[tokio::test]
async fn endless_output_is_stopped() {
    let host = ShellHost::new();
    let bash = Bash { max_bytes: Some(1_000_000), ..Bash::default() };
    let outcome = host.call(&bash, json!({"command": "yes"})).await;
    assert!(
        text(&outcome).starts_with("The command was stopped: it wrote more than 1000000 bytes"),
        "{outcome:?}"
    );
}

/// Starts processes that are hard to end: one in a session of its own, one that ignores SIGTERM, one that nobody
/// waits for any more, and one without environment; tells their numbers through a pipe.
const STUBBORN: &str = "setsid sleep 1000 & a=$!
bash -c 'trap \"\" TERM; sleep 1000; sleep 1000' & b=$!
c=$( (setsid sleep 1000 >/dev/null 2>&1 & echo $!) )
env -i setsid sleep 1000 & d=$!
echo $$ $a $b $c $d > ready
wait";

#[tokio::test]
async fn an_interrupt_ends_the_whole_tree() {
    let host = ShellHost::new();
    let mut ready = Ready::new(&host);
    let cancel = CancellationToken::new();
    let bash = Bash::default();
    let call = host.call_with(&bash, json!({"command": format!("echo before; {STUBBORN}")}), cancel.clone());
    let (outcome, pids) = tokio::join!(call, async {
        let pids = ready.line().await;
        cancel.cancel();
        pids
    });
    assert_eq!(text(&outcome), "The command was interrupted before it ended.\nbefore");
    assert!(outcome.is_failure());
    assert_eq!(pids.split_whitespace().count(), 5);
    assert_all_gone(&pids);
}

#[tokio::test]
async fn a_dropped_call_ends_the_whole_tree() {
    let host = ShellHost::new();
    let mut ready = Ready::new(&host);
    let pids = {
        let call = host.bash(STUBBORN);
        tokio::select! {
            outcome = call => panic!("{outcome:?}"),
            pids = ready.line() => pids,
        }
    };
    for pid in pids.split_whitespace() {
        while !is_gone(pid) {
            std::thread::yield_now();
        }
    }
}

#[tokio::test]
async fn a_timeout_ends_the_whole_tree() {
    let host = ShellHost::with_vars(&[("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")]);
    let mut ready = Ready::new(&host);
    let bash = Bash::default();
    let outcome = host.call(&bash, json!({"command": STUBBORN, "timeout": 1000})).await;
    // On a busy machine it may have been stopped before it said anything.
    let pids =
        tokio::time::timeout(std::time::Duration::from_secs(1), ready.line()).await.unwrap_or_default();
    assert_eq!(
        text(&outcome),
        "The command did not end within 1 s and was stopped, with everything it had started."
    );
    assert!(host.tasks().list().is_empty());
    for pid in pids.split_whitespace() {
        assert!(is_gone(pid), "process {pid} still runs");
    }
}

#[tokio::test]
async fn timed_out_command_becomes_a_background_task_where_allowed() {
    let host = ShellHost::new();
    let go = host.fifo("go");
    let outcome = host
        .call(&Bash::default(), json!({"command": "echo started; cat go; echo done; exit 3", "timeout": 200}))
        .await;
    assert_eq!(outcome.is_error, Some(false));
    let id = outcome.structured["backgroundTaskId"].as_str().unwrap().to_owned();
    assert!(text(&outcome).starts_with("After 0.2 s the command goes on in the background as task "));
    assert!(text(&outcome).contains(&id));
    tokio::fs::write(go, "went\n").await.unwrap();
    let task = host.tasks().wait(&id, std::time::Duration::from_secs(60)).await.unwrap();
    assert_eq!(task.status, BackgroundStatus::Failed(3));
    assert_eq!(std::fs::read_to_string(&task.output).unwrap(), "started\nwent\ndone\n");
    for command in ["sleep 1000", "git() { sleep 1000; }; git status"] {
        let outcome = host.call(&Bash::default(), json!({"command": command, "timeout": 100})).await;
        assert!(text(&outcome).starts_with("The command did not end within 0.1 s"), "{command}: {outcome:?}");
    }
}

#[tokio::test]
async fn processes_left_behind_do_not_hold_the_call() {
    let host = ShellHost::new();
    let outcome = host.bash("sleep 1000 & echo $!").await;
    assert_eq!(outcome.is_error, Some(false));
    let pid = text(&outcome).to_owned();
    assert!(!is_gone(&pid));
    host.tasks().shutdown().await;
    assert_all_gone(&pid);
    // With output of its own it is nobody's business.
    let outcome = host.bash("sleep 1000 >/dev/null 2>&1 & echo $!").await;
    let pid = text(&outcome).to_owned();
    host.tasks().shutdown().await;
    assert!(!is_gone(&pid));
    host.bash(&format!("kill {pid}")).await;
}

#[tokio::test]
async fn progress_is_told_while_a_command_runs() {
    let host = ShellHost::new();
    let go = host.fifo("go");
    let call = host.bash("echo early; cat go; echo late");
    tokio::pin!(call);
    let outcome = loop {
        tokio::select! {
            outcome = &mut call => break outcome,
            () = tokio::task::yield_now() => {
                let is_told = host.progress.lock().unwrap().iter().any(|text| text == "early\n");
                if is_told && go.exists() {
                    std::fs::OpenOptions::new().write(true).open(&go).unwrap();
                    std::fs::remove_file(&go).unwrap();
                }
            }
        }
    };
    assert_eq!(text(&outcome), "early\nlate");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_commands_at_once() {
    let host = ShellHost::new();
    let commands: Vec<String> =
        (0..20).map(|n| format!("echo start {n}; seq 1 1000 | tail -1; echo end {n}")).collect();
    let outcomes = futures_util::future::join_all(commands.iter().map(|command| host.bash(command))).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        assert_eq!(text(outcome), format!("start {n}\n1000\nend {n}"));
    }
}

#[tokio::test]
async fn invalid_bash_input_is_refused_before_running() {
    let host = ShellHost::with_vars(&[("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")]);
    for (input, needle) in [
        (json!({"command": "  "}), "empty"),
        (json!({"command": "echo a\rb"}), "control character '\\r'"),
        (json!({"command": "echo a\u{0}b"}), "control character"),
        (json!({}), "command"),
        (json!({"command": "ls", "surprise": 1}), "surprise"),
    ] {
        let outcome = host.call(&Bash::default(), input.clone()).await;
        assert!(text(&outcome).starts_with("<tool_use_error>") && text(&outcome).contains(needle), "{input}");
    }
}

/// Where nothing runs in the background a command that is to run there runs in the foreground.
#[tokio::test]
async fn background_that_is_switched_off_is_ignored() {
    let host = ShellHost::with_vars(&[("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")]);
    let input = json!({"command": "echo hi", "run_in_background": true});
    let outcome = host.call(super::foreground_bash().as_ref(), input).await;
    assert_eq!(text(&outcome), "hi");
    assert!(host.tasks().list().is_empty());
}

#[test]
fn effects_follow_the_shell_analysis() {
    let host = TestHost::new();
    let outside = host.project().with_file_name("outside");
    std::fs::create_dir_all(host.project().join("dir")).unwrap();
    std::fs::create_dir_all(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, host.project().join("link")).unwrap();
    let bash = Bash::default();
    for (input, is_read_only, is_safe, all_inside) in [
        (json!({"command": "ls"}), true, true, true),
        (json!({"command": "cat a.txt | sort"}), true, true, true),
        (json!({"command": "cat ../outside/x"}), true, true, false),
        (json!({"command": "cat link/x"}), true, true, false),
        (json!({"command": "cat /etc/passwd"}), true, true, false),
        (json!({"command": "rm x"}), false, false, true),
        (json!({"command": "cat $X"}), false, false, true),
        (json!({"command": "ls", "run_in_background": true}), false, false, true),
        (json!({"command": "ls", "dangerouslyDisableSandbox": true}), false, false, true),
        (json!({"command": "git status"}), true, true, true),
        (json!({"command": "diff a b"}), true, true, true),
        (json!({"command": "diff dir b"}), false, true, true),
    ] {
        let effects = bash.effects(&input, &host.workspace());
        assert_eq!(effects.is_read_only(), is_read_only, "{input}: {effects:?}");
        assert_eq!(bash.is_concurrency_safe(&input), is_safe, "{input}");
        assert_eq!(effects.reads.iter().all(|path| host.workspace().contains(path)), all_inside, "{input}");
        assert!(!effects.commands.is_empty());
    }
    std::fs::create_dir(host.project().join(".git")).unwrap();
    std::fs::write(host.project().join(".git/config"), "[core]\n fsmonitor = ./evil\n").unwrap();
    assert!(!bash.effects(&json!({"command": "git status"}), &host.workspace()).is_read_only());
}

#[tokio::test]
async fn user_moves_a_running_command_to_the_background() {
    let host = ShellHost::new();
    let mut ready = Ready::new(&host);
    let to_background = CancellationToken::new();
    let input = json!({"command": "echo started; echo > ready; cat go; echo done"});
    let go = host.fifo("go");
    let bash = Bash::default();
    let call = ToolCall {
        id: ToolUseId::new("toolu_test"),
        effects: bash.effects(&input, &host.workspace()),
        input,
        cancel: CancellationToken::new(),
        to_background: to_background.clone(),
    };
    let (outcome, ()) = tokio::join!(bash.run(call, &host), async {
        ready.line().await;
        to_background.cancel();
    });
    assert_eq!(outcome.structured["backgroundedByUser"], json!(true), "{outcome:?}");
    let id = outcome.structured["backgroundTaskId"].as_str().unwrap();
    assert_eq!(host.tasks().running().len(), 1);
    tokio::fs::write(go, "went\n").await.unwrap();
    let task = host.tasks().wait(id, std::time::Duration::from_secs(60)).await.unwrap();
    assert_eq!(task.status, BackgroundStatus::Completed);
    assert_eq!(std::fs::read_to_string(&task.output).unwrap(), "started\nwent\ndone\n");
}
