//! What stands before every conversation: the parts of the system prompt.

use std::path::Path;

use loci_context::{EnvironmentContext, GitContext, PromptParts};
use loci_core::permission::Rulebook;
use loci_settings::Settings;
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
        preferences: None,
        replacement: text_of(options.system_prompt.as_ref())?,
        appendix: text_of(options.appended_prompt.as_ref())?,
        surroundings,
        memory_dir: memory_dir.map(|dir| dir.display().to_string()),
        git: git.map(git_context),
        excludes_dynamic: options.excludes_dynamic_sections,
        snapshot: Vec::new(),
        is_small: false,
    })
}

/// The longest name of a language, and the longest attribution, in characters.
const MOST_LANGUAGE: usize = 100;
const MOST_ATTRIBUTION: usize = 2_000;

/// Returns what settings ask of every answer and commit (`language`, `attribution`), if they do.
pub fn preferences(settings: &Settings) -> Option<String> {
    let given = |text: &Option<String>, most: usize| -> Option<String> {
        let text: String = text.as_deref()?.trim().chars().take(most).collect();
        (!text.is_empty()).then_some(text)
    };
    let language = given(&settings.language, MOST_LANGUAGE).map(|language| {
        format!("Always answer in this language: {language}. Code, names and quotations stay as they are.")
    });
    let commit = given(&settings.commit_attribution, MOST_ATTRIBUTION)
        .map(|text| format!("End the message of every commit you make with these lines:\n{text}"));
    let pull_request = given(&settings.pull_request_attribution, MOST_ATTRIBUTION)
        .map(|text| format!("End the description of every pull request you open with these lines:\n{text}"));
    let lines: Vec<String> = language.into_iter().chain(commit).chain(pull_request).collect();
    (!lines.is_empty()).then(|| format!("# Preferences\n{}", lines.join("\n")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_and_attribution_are_asked_for_where_settings_name_them() {
        let text = |text: &str| Some(text.to_owned());
        for (language, commit, pull_request, expected) in [
            (None, None, None, None),
            (text(" "), text(""), text(""), None),
            (
                text("Welsh"),
                None,
                None,
                Some(
                    "# Preferences\nAlways answer in this language: Welsh. Code, names and quotations stay as they are.",
                ),
            ),
            (
                None,
                text("Reviewed-by: a robot"),
                text("Made by a robot"),
                Some(
                    "# Preferences\nEnd the message of every commit you make with these lines:\nReviewed-by: a robot\n\
                     End the description of every pull request you open with these lines:\nMade by a robot",
                ),
            ),
        ] {
            let settings = Settings {
                language,
                commit_attribution: commit,
                pull_request_attribution: pull_request,
                ..Settings::default()
            };
            assert_eq!(preferences(&settings).as_deref(), expected);
        }
    }
}
