//! The repository as it was when the session began.

use super::{Fragment, bounded};

/// The status part is cut at this many characters.
const STATUS_LIMIT: usize = 2_000;

/// What git said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitContext {
    /// The current branch.
    pub branch: String,
    /// The branch that work is merged into.
    pub main_branch: Option<String>,
    /// `status --short`.
    pub status: String,
    /// The last commits, one a line.
    pub log: String,
    /// `user.name`.
    pub user: Option<String>,
}

pub(super) fn fragment(git: &GitContext) -> Fragment {
    let mut lines = vec![
        "# Git".to_owned(),
        "The repository when this session began; it does not update by itself.".to_owned(),
        format!("Branch: {}", git.branch),
    ];
    lines.extend(git.main_branch.as_ref().map(|branch| format!("Main branch: {branch}")));
    lines.extend(git.user.as_ref().map(|user| format!("User: {user}")));
    let status = git.status.trim_end();
    let notice = "(cut at 2,000 characters: run `git status` for the rest)";
    lines.push(match status {
        "" => "Status: clean".to_owned(),
        status => format!("Status:\n{}", bounded(status, STATUS_LIMIT, notice)),
    });
    if !git.log.trim().is_empty() {
        lines.push(format!("Recent commits:\n{}", git.log.trim_end()));
    }
    Fragment { name: "git", text: lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_status_is_cut_and_says_so() {
        let git = GitContext { status: "?? file\n".repeat(1_000), ..GitContext::default() };
        let text = fragment(&git).text;
        assert!(text.len() < 2_300 && text.contains("cut at 2,000 characters"), "{}", text.len());
    }
}
