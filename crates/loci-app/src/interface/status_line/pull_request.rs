//! The open pull request of the branch at hand, for the footer and the status line.
//!
//! It is asked of `gh`, or of `glab` where the remote is a GitLab, with the login that they have: beside everything else, and
//! not more often than once a minute, unless something was pushed. Only a terminal asks. What was found stands until something else
//! is; without either program nothing ever is.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_stdx::Env;
use serde_json::{Value, json};

use super::repository::{branch, origin};
use super::script::{ScriptRun, StatusScript};
use crate::compose::child_env::child_env;
use crate::interface::helper_command::HelperSandboxes;

/// How long an answer counts.
const FRESH: Duration = Duration::from_secs(60);
/// Variables that would log `glab` in as somebody else than its own login does.
const TOKENS: [&str; 3] = ["GITLAB_TOKEN", "GITLAB_ACCESS_TOKEN", "OAUTH_TOKEN"];

/// What is known of pull requests; clones share it.
#[derive(Debug, Clone, Default)]
pub struct PullRequests {
    /// Held to look, and to begin a question.
    state: Arc<Mutex<LookupState>>,
}

#[derive(Debug, Default)]
struct LookupState {
    /// Of which directory and branch.
    subject: Option<(PathBuf, String)>,
    asked_at: Option<Duration>,
    found: Option<Value>,
    script: StatusScript,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forge {
    GitHub,
    GitLab,
}

impl PullRequests {
    /// Returns what is known of the branch that is checked out in a directory. Where that is old it is asked anew, and `changed`
    /// is called with the answer when it is another one. It looks at files of git.
    pub fn current(
        &self,
        env: &Env,
        dir: &Path,
        changed: impl FnOnce(Option<Value>) + Send + 'static,
    ) -> Option<Value> {
        let subject = branch(dir).map(|branch| (dir.to_owned(), branch));
        let host = subject.as_ref().and_then(|_| origin(dir)?["host"].as_str().map(str::to_owned));
        let mut state = self.lock();
        if state.subject != subject {
            (state.found, state.asked_at) = (None, None);
            state.subject.clone_from(&subject);
        }
        let (Some(subject), Some(host)) = (subject, host) else { return None };
        let now = env.clock.monotonic();
        let is_fresh = state.asked_at.is_some_and(|at| now.saturating_sub(at) < FRESH);
        if let Some((forge, run)) = (!is_fresh)
            .then(|| Forge::of_host(&host))
            .and_then(|forge| Some((forge, forge.question(env, dir)?)))
        {
            state.asked_at = Some(now);
            let shared = self.clone();
            let done = move |said: Result<String, String>| {
                let found = said.ok().and_then(|text| forge.parse(&text));
                if shared.take(subject, found.clone()) {
                    changed(found);
                }
            };
            state.script.start(run, String::new, done);
        }
        state.found.clone()
    }

    /// Notes that what is known may have changed, so that it is asked anew.
    pub fn expire(&self) {
        self.lock().asked_at = None;
    }

    /// Takes an answer; true when it is news of what is still asked about.
    fn take(&self, subject: (PathBuf, String), found: Option<Value>) -> bool {
        let mut state = self.lock();
        let is_news = state.subject == Some(subject) && state.found != found;
        if is_news {
            state.found = found;
        }
        is_news
    }

    fn lock(&self) -> MutexGuard<'_, LookupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Forge {
    fn of_host(host: &str) -> Self {
        if host.contains("gitlab") { Self::GitLab } else { Self::GitHub }
    }

    /// Returns the question; none where its program is not installed.
    fn question(self, env: &Env, dir: &Path) -> Option<ScriptRun> {
        let (program, arguments) = match self {
            Self::GitHub => ("gh", "pr view --json number,url,state,isDraft,reviewDecision"),
            Self::GitLab => ("glab", "mr view --output json"),
        };
        // What is not absolute could be the repository's own.
        let dirs = std::env::split_paths(env.vars.get("PATH")?).filter(|dir| dir.is_absolute());
        let program = dirs.map(|dir| dir.join(program)).find(|path| path.is_file())?;
        let quoted = program.display().to_string().replace('\'', "'\\''");
        let mut vars = child_env(env);
        vars.retain(|(name, _)| self != Self::GitLab || !TOKENS.contains(&name.as_str()));
        vars.extend(
            [("GH_PROMPT_DISABLED", "1"), ("NO_PROMPT", "1")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let command = format!("exec '{quoted}' {arguments}");
        Some(ScriptRun {
            label: "The question for a pull request",
            command: command.as_str().into(),
            sandboxes: HelperSandboxes::default(),
            cwd: dir.to_owned(),
            vars,
        })
    }

    /// Reads an answer; none where there is no open request.
    fn parse(self, text: &str) -> Option<Value> {
        let said: Value = serde_json::from_str(text).ok()?;
        let keys = match self {
            Self::GitHub => ("number", "url", "OPEN"),
            Self::GitLab => ("iid", "web_url", "opened"),
        };
        let (number, url) = (said[keys.0].as_u64()?, said[keys.1].as_str()?);
        if said["state"].as_str() != Some(keys.2) {
            return None;
        }
        let is_draft = said["isDraft"] == true || said["draft"] == true;
        let state = match self {
            _ if is_draft => Some("draft"),
            Self::GitLab if said["detailed_merge_status"] == "mergeable" => Some("approved"),
            Self::GitLab => Some("pending"),
            Self::GitHub => match said["reviewDecision"].as_str() {
                Some("APPROVED") => Some("approved"),
                Some("CHANGES_REQUESTED") => Some("changes_requested"),
                Some("REVIEW_REQUIRED") => Some("pending"),
                _ => None,
            },
        };
        let mut found = json!({"number": number, "url": url});
        if let Some(state) = state {
            found["review_state"] = json!(state);
        }
        if self == Self::GitLab {
            found["kind"] = json!("mr");
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn answers_of_both_programs_are_read() {
        let url = "https://h/1";
        for (forge, said, expected) in [
            (
                Forge::GitHub,
                json!({"number": 7, "url": url, "state": "OPEN", "isDraft": false, "reviewDecision": "APPROVED"}),
                json!({"number": 7, "url": url, "review_state": "approved"}),
            ),
            (
                Forge::GitHub,
                json!({"number": 7, "url": url, "state": "OPEN", "isDraft": true, "reviewDecision": "REVIEW_REQUIRED"}),
                json!({"number": 7, "url": url, "review_state": "draft"}),
            ),
            (
                Forge::GitHub,
                json!({"number": 7, "url": url, "state": "OPEN", "reviewDecision": "CHANGES_REQUESTED"}),
                json!({"number": 7, "url": url, "review_state": "changes_requested"}),
            ),
            (
                Forge::GitHub,
                json!({"number": 7, "url": url, "state": "OPEN", "reviewDecision": ""}),
                json!({"number": 7, "url": url}),
            ),
            (Forge::GitHub, json!({"number": 7, "url": url, "state": "MERGED"}), Value::Null),
            (
                Forge::GitLab,
                json!({"iid": 3, "web_url": url, "state": "opened", "draft": false, "detailed_merge_status": "mergeable"}),
                json!({"number": 3, "url": url, "review_state": "approved", "kind": "mr"}),
            ),
            (
                Forge::GitLab,
                json!({"iid": 3, "web_url": url, "state": "opened", "detailed_merge_status": "checking"}),
                json!({"number": 3, "url": url, "review_state": "pending", "kind": "mr"}),
            ),
            (Forge::GitLab, json!({"iid": 3, "web_url": url, "state": "closed"}), Value::Null),
        ] {
            assert_eq!(forge.parse(&said.to_string()).unwrap_or_default(), expected, "{said}");
        }
        assert_eq!(Forge::GitHub.parse("no pull requests found"), None);
        assert_eq!(
            (Forge::of_host("gitlab.example.com"), Forge::of_host("github.com")),
            (Forge::GitLab, Forge::GitHub)
        );
    }

    #[test]
    fn open_request_of_the_branch_is_found_beside_and_forgotten_with_the_branch() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (repository, bin) = (root.join("p"), root.join("bin"));
        std::fs::create_dir_all(repository.join(".git")).unwrap();
        std::fs::create_dir_all(&bin).unwrap();
        let config = "[remote \"origin\"]\n\turl = git@github.com:o/n.git\n";
        std::fs::write(repository.join(".git/config"), config).unwrap();
        std::fs::write(repository.join(".git/HEAD"), "ref: refs/heads/topic\n").unwrap();
        let answer = r#"{"number":12,"url":"https://github.com/o/n/pull/12","state":"OPEN","isDraft":false,"reviewDecision":"REVIEW_REQUIRED"}"#;
        let script = format!("#!/bin/sh\n[ \"$1 $2\" = 'pr view' ] && echo '{answer}'\n");
        std::fs::write(bin.join("gh"), script).unwrap();
        std::fs::set_permissions(bin.join("gh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut env = Env::for_test(&root, &repository);
        env.vars = [("PATH", format!("{}:/usr/bin:/bin", bin.display()).as_str())].into_iter().collect();
        let pulls = PullRequests::default();
        let (sender, receiver) = mpsc::channel();
        assert_eq!(
            pulls.current(&env, &repository, move |found| sender.send(found).unwrap()),
            None,
            "not known yet"
        );
        assert_eq!(receiver.recv().unwrap().unwrap()["number"], json!(12));
        let found = pulls.current(&env, &repository, |_| panic!("it is asked once a minute")).unwrap();
        assert_eq!((&found["number"], &found["review_state"]), (&json!(12), &json!("pending")));
        std::fs::write(bin.join("gh"), "#!/bin/sh\nexit 1\n").unwrap();
        pulls.expire();
        let (sender, receiver) = mpsc::channel();
        pulls.current(&env, &repository, move |found| sender.send(found).unwrap());
        assert_eq!(receiver.recv().unwrap(), None, "something was pushed: it is asked again, and gone");
        std::fs::write(repository.join(".git/HEAD"), "0123abcd\n").unwrap();
        assert_eq!(pulls.current(&env, &repository, |_| {}), None, "no branch is checked out");
    }
}
