//! EnterWorktree: moves the session into a working copy of its own.

use std::path::Path;

use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use crate::{Host, Tool, ToolCall, ToolFuture, Workspace, WorktreeRequest};

/// The EnterWorktree tool.
pub(crate) struct EnterWorktree {
    descriptor: ToolDescriptor,
}

impl Default for EnterWorktree {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "EnterWorktree".to_owned(),
            aliases: &[],
            description: include_str!("enter_worktree.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "What a new worktree is called"},
                    "path": {"type": "string", "description": "A worktree that is there already"},
                },
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts {
                runs_code: true,
                needs_conversation: true,
                is_deferrable: true,
                ..ToolFacts::default()
            },
        };
        Self { descriptor }
    }
}

impl Tool for EnterWorktree {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// A copy of one's own needs nobody's leave; a place elsewhere becomes one that the session may write to, so a person
    /// is asked about it whatever rules allow.
    fn effects(&self, input: &Value, place: &Workspace) -> CallEffects {
        match input["path"].as_str().map(|path| place.resolve(path)) {
            Some(path) if !is_own_copy(&place.project, &path.real) => CallEffects::session_move(path.real),
            _ => CallEffects::default(),
        }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        match input["name"].is_string() && input["path"].is_string() {
            true => Err(Box::new(ToolOutcome::refusal("Give `name` or `path`, not both."))),
            false => Ok(()),
        }
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let text =
                |key: &str| call.input[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
            let request = match text("path") {
                Some(path) => WorktreeRequest::Existing(host.workspace().resolve(&path).real),
                None => WorktreeRequest::New(text("name")),
            };
            let entered = match host.enter_worktree(request).await {
                Ok(entered) => entered,
                Err(why) => return ToolOutcome::error(why),
            };
            let path = entered.path.display().to_string();
            let on =
                entered.branch.as_ref().map(|branch| format!(", on the branch {branch}")).unwrap_or_default();
            let what = if entered.is_new { "A worktree was made" } else { "The worktree was there already" };
            let message = format!("{what}: {path}{on}. The session works there from now on.");
            let mut structured = json!({"worktreePath": path, "message": message});
            if let Some(branch) = entered.branch {
                structured["worktreeBranch"] = Value::from(branch);
            }
            ToolOutcome::text(message, structured)
        })
    }
}

/// Tells whether a path is a working copy among those of the session's repository.
fn is_own_copy(project: &Path, path: &Path) -> bool {
    let beside = project.parent().filter(|dir| dir.ends_with(".claude/worktrees"));
    let dir = beside.map_or_else(|| project.join(".claude/worktrees"), Path::to_path_buf);
    path.parent() == Some(dir.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;

    #[tokio::test]
    async fn entering_a_worktree_elsewhere_needs_permission() {
        let (tool, host) = (EnterWorktree::default(), TestHost::new());
        let place = host.workspace();
        for (input, is_free) in [
            (json!({}), true),
            (json!({"name": "calm"}), true),
            (json!({"path": ".claude/worktrees/calm"}), true),
            (json!({"path": "../elsewhere"}), false),
            (json!({"path": ".claude/worktrees/calm/sub"}), false),
        ] {
            assert_eq!(tool.effects(&input, &place).is_read_only(), is_free, "{input}");
        }
        let within = Workspace { project: place.project.join(".claude/worktrees/calm"), ..place };
        let other = json!({"path": "../other"});
        let within = Workspace { cwd: within.project.clone(), ..within };
        assert!(tool.effects(&other, &within).is_read_only(), "from one to another");
        assert!(host.call(&tool, json!({"name": "a", "path": "b"})).await.is_failure());
        assert!(host.call(&tool, json!({"name": "a"})).await.is_failure(), "this host has none");
    }
}
