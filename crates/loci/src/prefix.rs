//! What stands before every conversation: the parts of the system prompt.

use std::path::Path;

use loci_context::{GitContext, PromptParts, Surroundings};
use loci_core::permission::Rulebook;
use loci_stdx::Env;
use loci_storage::{GitSnapshot, head_branch};

use crate::args::Args;
use crate::complaint::Complaint;

/// Collects the parts of the system prompt.
pub(crate) fn prompt_parts(
    env: &Env,
    args: &Args,
    rulebook: &Rulebook,
    model: &str,
    git: Option<GitSnapshot>,
    memory_dir: Option<&Path>,
) -> Result<PromptParts, Complaint> {
    let surroundings = Surroundings {
        cwd: env.cwd.display().to_string(),
        extra_dirs: rulebook.dirs.iter().skip(1).map(|dir| dir.display().to_string()).collect(),
        is_repository: head_branch(&env.cwd).is_some(),
        platform: std::env::consts::OS.to_owned(),
        model: model.to_owned(),
    };
    Ok(PromptParts {
        replacement: text_or_file(args.system_prompt.as_deref(), args.system_prompt_file.as_deref())?,
        appendix: text_or_file(
            args.append_system_prompt.as_deref(),
            args.append_system_prompt_file.as_deref(),
        )?,
        surroundings,
        memory_dir: memory_dir.map(|dir| dir.display().to_string()),
        git: git.map(git_context),
    })
}

fn git_context(git: GitSnapshot) -> GitContext {
    GitContext {
        branch: git.branch,
        main_branch: git.main_branch,
        status: git.status,
        log: git.log,
        user: git.user,
    }
}

fn text_or_file(text: Option<&str>, file: Option<&Path>) -> Result<Option<String>, Complaint> {
    match (text, file) {
        (Some(text), _) => Ok(Some(text.to_owned())),
        (None, Some(path)) => std::fs::read_to_string(path).map(Some).map_err(|error| {
            Complaint::new(format!("Failed to read prompt file: `{}`: {error}", path.display()))
        }),
        (None, None) => Ok(None),
    }
}
