use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use loci_core::ids::ToolUseId;
use loci_core::recall::{RecallQuery, RecallResult};
use loci_core::tool::ToolContent;
use loci_stdx::Env;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::edit::Edit;
use crate::read::Read;
use crate::testing::TestHost;
use crate::write::Write;
use crate::{BackgroundTasks, FileStates, HostFuture, TaskStore, Tool, ToolCall, ToolProgress, Workspace};

/// A host where something happens while the copy is being kept.
struct BusyHost {
    inner: TestHost,
    meanwhile: Box<dyn Fn() -> io::Result<()> + Send + Sync>,
}

impl Host for BusyHost {
    fn env(&self) -> Env {
        self.inner.env()
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

    fn checkpoint<'a>(&'a self, _call: &'a ToolUseId, _path: &'a Path) -> HostFuture<'a, io::Result<()>> {
        let result = (self.meanwhile)();
        Box::pin(async { result })
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

    fn progress(&self, call: &ToolUseId, progress: ToolProgress) {
        self.inner.progress(call, progress);
    }
}

/// Edits `old` in a file that `meanwhile` is done to; returns the answer and the content afterwards.
async fn edit_while(
    meanwhile: impl Fn(&Path) -> io::Result<()> + Send + Sync + 'static,
) -> (String, Option<String>) {
    let inner = TestHost::new();
    let path = inner.write("file", "old");
    inner.call(&Read::default(), json!({"file_path": path})).await;
    let host = {
        let path = path.clone();
        BusyHost { inner, meanwhile: Box::new(move || meanwhile(&path)) }
    };
    let input = json!({"file_path": path, "old_string": "old", "new_string": "new"});
    let call = ToolCall {
        id: ToolUseId::new("toolu_test"),
        effects: Edit::default().effects(&input, &host.workspace()),
        input,
        cancel: CancellationToken::new(),
        to_background: CancellationToken::new(),
    };
    let outcome = Edit::default().run(call, &host).await;
    let ToolContent::Text(text) = outcome.content else { panic!("blocks") };
    (text, std::fs::read_to_string(&path).ok())
}

#[tokio::test]
async fn concurrent_write_of_others_is_not_overwritten() {
    let (text, content) = edit_while(|_| Ok(())).await;
    assert!(text.starts_with("Updated") && content.as_deref() == Some("new"), "{text}");
    let (text, content) = edit_while(|path| std::fs::write(path, "theirs")).await;
    assert!(text.contains("it changed on disk while the change was being made"), "{text}");
    assert_eq!(content.as_deref(), Some("theirs"));
    let (text, content) = edit_while(|path| std::fs::remove_file(path)).await;
    assert!(text.contains("was not changed") && content.is_none(), "{text}");
}

/// Invariant 1 of `docs/design/file-history.md`.
#[tokio::test]
async fn failed_checkpoint_prevents_the_change() {
    let (text, content) = edit_while(|_| Err(io::Error::other("disk full"))).await;
    assert!(text.contains("failed to keep a copy of it: disk full"), "{text}");
    assert_eq!(content.as_deref(), Some("old"));
}

/// Lets `swap` happen between the verdict on a call and the call, and returns what the model is told.
async fn swapped(
    tool: &dyn Tool,
    input: impl Fn(&Path) -> Value,
    swap: impl Fn(&Path) + Send + 'static,
) -> (String, TestHost) {
    let host = TestHost::new();
    let secret = host.project().with_file_name("secret");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("file"), "secret").unwrap();
    host.write("sub/file", "old");
    host.call(&Read::default(), json!({"file_path": host.project().join("sub/file")})).await;
    let project = host.project();
    *host.between.lock().unwrap() = Box::new(move || swap(&project));
    let outcome = host.call(tool, input(&host.project())).await;
    let ToolContent::Text(text) = outcome.content else { panic!("blocks") };
    assert_eq!(std::fs::read_to_string(secret.join("file")).unwrap(), "secret", "{text}");
    assert_eq!(secret.read_dir().unwrap().count(), 1, "{text}");
    (text, host)
}

/// Puts a link to what lies outside in place of a name in the project.
fn link(project: &Path, name: &str, target: &str) {
    let path = project.join(name);
    if path.symlink_metadata().is_ok() {
        std::fs::rename(&path, path.with_extension("away")).unwrap();
    }
    std::os::unix::fs::symlink(target, path).unwrap();
}

/// A symlink that slips in behind the verdict leads nowhere: not for the file, not for its directory, not for a
/// file that is only being made (P-12, S-29).
#[tokio::test]
async fn symlink_made_after_the_verdict_is_not_followed() {
    let file = |project: &Path| json!({"file_path": project.join("sub/file")});
    let write = |project: &Path| json!({"file_path": project.join("sub/file"), "content": "new"});
    let make = |project: &Path| json!({"file_path": project.join("sub/new"), "content": "new"});
    let deep = |project: &Path| json!({"file_path": project.join("sub/deep/new"), "content": "new"});
    let edit = |project: &Path| json!({"file_path": project.join("sub/file"), "old_string": "old", "new_string": "new"});
    let of_dir = |project: &Path| link(project, "sub", "../secret");
    let of_file = |project: &Path| link(project, "sub/file", "../../secret/file");
    for said in [
        swapped(&Read::default(), file, of_dir).await.0,
        swapped(&Read::default(), file, of_file).await.0,
        swapped(&Write::default(), write, of_dir).await.0,
        swapped(&Write::default(), write, of_file).await.0,
        swapped(&Write::default(), make, of_dir).await.0,
        swapped(&Write::default(), deep, of_dir).await.0,
        swapped(&Edit::default(), edit, of_dir).await.0,
        swapped(&Edit::default(), edit, of_file).await.0,
    ] {
        assert!(!said.contains("secret"), "{said}");
        assert!(said.contains("leads elsewhere"), "{said}");
    }
}

/// A link that was judged is judged by where it led; pointed elsewhere since, the file it led to is read (P-12).
#[tokio::test]
async fn judged_symlink_is_written_at_its_judged_target() {
    let host = TestHost::new();
    let (first, second) = (host.write("first", "one"), host.write("second", "two"));
    let alias = host.project().join("alias");
    std::os::unix::fs::symlink(first, &alias).unwrap();
    let turned = alias.clone();
    *host.between.lock().unwrap() = Box::new(move || {
        std::fs::remove_file(&turned).unwrap();
        std::os::unix::fs::symlink(&second, &turned).unwrap();
    });
    let outcome = host.call(&Read::default(), json!({"file_path": alias})).await;
    let ToolContent::Text(text) = outcome.content else { panic!("blocks") };
    assert!(text.contains("one") && !text.contains("two"), "{text}");
}
