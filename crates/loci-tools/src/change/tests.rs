use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use loci_core::ids::ToolUseId;
use loci_core::tool::ToolContent;
use loci_stdx::Env;
use serde_json::json;

use super::*;
use crate::edit::Edit;
use crate::read::Read;
use crate::testing::TestHost;
use crate::{FileStates, HostFuture, Place, Tasks, Tool, ToolCall, ToolProgress};

/// A host where something happens while the copy is being kept.
struct BusyHost {
    inner: TestHost,
    meanwhile: Box<dyn Fn() -> io::Result<()> + Send + Sync>,
}

impl Host for BusyHost {
    fn env(&self) -> &Env {
        self.inner.env()
    }

    fn place(&self) -> Place {
        self.inner.place()
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

    fn checkpoint<'a>(&'a self, _path: &'a Path) -> HostFuture<'a, io::Result<()>> {
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

    fn tasks(&self) -> &Tasks {
        self.inner.tasks()
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
    let call = ToolCall {
        id: ToolUseId::new("toolu_test"),
        input: json!({"file_path": path, "old_string": "old", "new_string": "new"}),
        cancel: CancellationToken::new(),
    };
    let outcome = Edit::default().run(call, &host).await;
    let ToolContent::Text(text) = outcome.content else { panic!("blocks") };
    (text, std::fs::read_to_string(&path).ok())
}

#[tokio::test]
async fn what_others_write_meanwhile_is_not_lost() {
    let (text, content) = edit_while(|_| Ok(())).await;
    assert!(text.starts_with("Updated") && content.as_deref() == Some("new"), "{text}");
    let (text, content) = edit_while(|path| std::fs::write(path, "theirs")).await;
    assert!(text.contains("it changed on disk while the change was being made"), "{text}");
    assert_eq!(content.as_deref(), Some("theirs"));
    let (text, content) = edit_while(|path| std::fs::remove_file(path)).await;
    assert!(text.contains("was not changed") && content.is_none(), "{text}");
}

#[tokio::test]
async fn without_a_copy_there_is_no_change() {
    let (text, content) = edit_while(|_| Err(io::Error::other("disk full"))).await;
    assert!(text.contains("failed to keep a copy of it: disk full"), "{text}");
    assert_eq!(content.as_deref(), Some("old"));
}
