//! ExitWorktree: leads the session back from a working copy, which stays or goes.

use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The ExitWorktree tool.
pub(crate) struct ExitWorktree {
    descriptor: ToolDescriptor,
}

impl Default for ExitWorktree {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "ExitWorktree".to_owned(),
            aliases: &[],
            description: include_str!("exit_worktree.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": ["keep", "remove"], "description": "What becomes of it"},
                    "discard_changes": {
                        "type": "boolean",
                        "description": "Remove it even with work in it that is nowhere else",
                    },
                },
                "required": ["action"],
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

impl Tool for ExitWorktree {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// Only what the session made itself is removed, and only when nothing is lost; discarding work is asked about.
    fn effects(&self, input: &Value, _place: &Workspace) -> CallEffects {
        match input["action"] == "remove" && input["discard_changes"] == true {
            true => CallEffects::unknown("it may discard the work in the worktree"),
            false => CallEffects::default(),
        }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let removes = call.input["action"] == "remove";
            let left = match host.exit_worktree(removes, call.input["discard_changes"] == true).await {
                Ok(left) => left,
                Err(why) => return ToolOutcome::error(why),
            };
            let (path, back) = (left.path.display().to_string(), left.original_cwd.display().to_string());
            let what = match (removes, &left.kept_as) {
                (false, _) => format!("The worktree {path} stays as it is."),
                (true, None) => format!("The worktree {path} is removed."),
                (true, Some(kept)) => {
                    format!(
                        "The worktree {path} is removed; what was in it is kept as {kept}, for `git show`."
                    )
                }
            };
            let message = format!("{what} The session works in {back} again.");
            let mut structured = json!({
                "action": call.input["action"],
                "originalCwd": back,
                "worktreePath": path,
                "message": message,
            });
            if let Some(branch) = left.branch {
                structured["worktreeBranch"] = Value::from(branch);
            }
            if left.kept_as.is_some() {
                structured["discardedFiles"] = Value::from(left.discarded_files);
                structured["discardedCommits"] = Value::from(left.discarded_commits);
            }
            ToolOutcome::text(message, structured)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;

    #[tokio::test]
    async fn discarding_work_needs_leave_and_outside_a_worktree_there_is_nothing_to_leave() {
        let (tool, host) = (ExitWorktree::default(), TestHost::new());
        for (input, is_free) in [
            (json!({"action": "keep"}), true),
            (json!({"action": "remove"}), true),
            (json!({"action": "remove", "discard_changes": true}), false),
        ] {
            assert_eq!(tool.effects(&input, &host.workspace()).is_read_only(), is_free, "{input}");
            assert!(host.call(&tool, input).await.is_failure());
        }
        assert!(host.call(&tool, json!({})).await.is_failure());
    }
}
