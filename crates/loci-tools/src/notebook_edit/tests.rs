use super::*;
use crate::read::Read;
use crate::testing::TestHost;
use loci_core::tool::ToolContent;

const BOOK: &str = "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"source\": [\"a\"]\n  }\n ],\n \"nbformat\": 4\n}\n";

fn text(outcome: &ToolOutcome) -> &str {
    match &outcome.content {
        ToolContent::Text(text) => text,
        ToolContent::Blocks(blocks) => panic!("blocks: {blocks:?}"),
    }
}

#[tokio::test]
async fn a_notebook_is_changed_after_it_was_read() {
    let host = TestHost::new();
    let path = host.write("n.ipynb", BOOK.replace('\n', "\r\n"));
    let edit = NotebookEdit::default();
    let ask = json!({"notebook_path": path, "cell_id": "cell-0", "new_source": "b"});
    let outcome = host.call(&edit, ask.clone()).await;
    assert!(outcome.is_failure() && text(&outcome).contains("was not read"), "{}", text(&outcome));
    host.call(&Read::default(), json!({"file_path": path})).await;
    let outcome = host.call(&edit, ask.clone()).await;
    assert_eq!(text(&outcome), format!("Cell `cell-0` of `{}` has its new source.", path.display()));
    assert_eq!(
        (outcome.structured["old_source"].as_str(), outcome.structured["edit_mode"].as_str()),
        (Some("a"), Some("replace"))
    );
    assert_eq!(*host.checkpoints.lock().unwrap(), std::slice::from_ref(&path));
    let now = std::fs::read_to_string(&path).unwrap();
    assert!(now.contains("\"b\"\r\n") && !now.replace("\r\n", "").contains('\n'), "{now:?}");
    // What it wrote it has seen; what others write it has not.
    let more = json!({"notebook_path": path, "new_source": "c", "cell_type": "code", "edit_mode": "insert"});
    assert!(!host.call(&edit, more).await.is_failure());
    std::fs::write(&path, BOOK.replace("\"a\"", "\"theirs\"")).unwrap();
    let outcome = host.call(&edit, ask).await;
    assert!(outcome.is_failure() && text(&outcome).contains("has changed on disk"), "{}", text(&outcome));
}

#[tokio::test]
async fn impossible_notebook_edits_are_refused() {
    let host = TestHost::new();
    let book = host.write("n.ipynb", BOOK);
    let broken = host.write("broken.ipynb", "{\"cells\": 1}");
    for path in [&book, &broken] {
        host.call(&Read::default(), json!({"file_path": path})).await;
    }
    let edit = NotebookEdit::default();
    for (input, says) in [
        (json!({"notebook_path": "/p/a.txt", "new_source": ""}), "does not name a notebook"),
        (json!({"notebook_path": book, "new_source": ""}), "`cell_id` is missing"),
        (json!({"notebook_path": book, "new_source": "", "edit_mode": "insert"}), "`cell_type` is missing"),
        (json!({"notebook_path": book, "new_source": "", "cell_id": "x"}), "it has no cell `x`"),
        (json!({"notebook_path": broken, "new_source": "", "cell_id": "x"}), "its cells are no list"),
        (
            json!({"notebook_path": host.project().join("no.ipynb"), "new_source": "", "cell_id": "x"}),
            "does not exist",
        ),
    ] {
        let outcome = host.call(&edit, input).await;
        assert!(outcome.is_failure() && text(&outcome).contains(says), "{}", text(&outcome));
    }
}
