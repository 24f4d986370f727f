//! What stands before every conversation: the parts of the system prompt.

use std::path::Path;

use loci_context::{EnvironmentContext, GitContext, PromptParts};
use loci_core::permission::Rulebook;
use loci_stdx::Env;
use loci_storage::project::{GitSnapshot, head_branch};

use crate::options::{RunOptions, TextSource};
use crate::user_error::UserError;

/// Collects the parts of the system prompt.
pub fn prompt_parts(
    env: &Env,
    options: &RunOptions,
    rulebook: &Rulebook,
    model: &str,
    git: Option<GitSnapshot>,
    memory_dir: Option<&Path>,
) -> Result<PromptParts, UserError> {
    let surroundings = EnvironmentContext {
        cwd: env.cwd.display().to_string(),
        extra_dirs: rulebook.dirs.iter().skip(1).map(|dir| dir.display().to_string()).collect(),
        is_repository: head_branch(&env.cwd).is_some(),
        platform: std::env::consts::OS.to_owned(),
        model: model.to_owned(),
    };
    Ok(PromptParts {
        agent: None,
        style: None,
        replacement: text_of(options.system_prompt.as_ref())?,
        appendix: text_of(options.appended_prompt.as_ref())?,
        surroundings,
        memory_dir: memory_dir.map(|dir| dir.display().to_string()),
        git: git.map(git_context),
        excludes_dynamic: options.excludes_dynamic_sections,
    })
}

/// Takes up what a client's `initialize` made of the options after the parts were collected.
pub fn change_prompts(parts: &mut PromptParts, options: &RunOptions) -> Result<(), UserError> {
    parts.replacement = text_of(options.system_prompt.as_ref())?;
    parts.appendix = text_of(options.appended_prompt.as_ref())?;
    parts.excludes_dynamic = options.excludes_dynamic_sections;
    Ok(())
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

fn text_of(source: Option<&TextSource>) -> Result<Option<String>, UserError> {
    match source {
        Some(TextSource::Text(text)) => Ok(Some(text.clone())),
        Some(TextSource::File(path)) => std::fs::read_to_string(path).map(Some).map_err(|error| {
            UserError::new(format!("Failed to read prompt file: `{}`: {error}", path.display()))
        }),
        None => Ok(None),
    }
}
