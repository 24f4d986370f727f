//! The badge of the branch's pull request, below the prompt.
//!
//! It is asked for when the session begins, when a turn ends, when the window gets the focus again, and at once when a call
//! has pushed something; there is no timer. `loci_app::interface::status_line::PullRequests` asks once a minute at most.

use serde_json::Value;

use super::Effect;
use super::preferences::Preferences;
use super::session_mirror::SessionMirror;
use crate::layout::faint;
use crate::render::link_target;
use crate::text::{Color, Span, Style, sanitize_line};
use crate::theme::ThemeToken;

/// A pull request that is open, or a merge request of GitLab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PullRequest {
    number: u64,
    url: String,
    /// What its reviewers say.
    review: Option<String>,
    is_merge_request: bool,
}

impl PullRequest {
    /// Reads what was found; none where it is none.
    pub(super) fn from_value(found: &Value) -> Option<Self> {
        Some(Self {
            number: found["number"].as_u64()?,
            url: found["url"].as_str()?.to_owned(),
            review: found["review_state"].as_str().map(str::to_owned),
            is_merge_request: found["kind"] == "mr",
        })
    }

    /// Returns its badge: its number, which leads to its page, and what its reviewers say. `template` is the address of
    /// pages elsewhere.
    pub(crate) fn badge(&self, template: Option<&str>, has_links: bool) -> Span {
        let number = self.number;
        let name = if self.is_merge_request { format!("MR !{number}") } else { format!("PR #{number}") };
        let review = self.review.as_deref().map(|review| review.replace('_', " "));
        let text = sanitize_line(&[Some(name), review].into_iter().flatten().collect::<Vec<_>>().join(" "));
        let color = match self.review.as_deref() {
            Some("approved") => Some(ThemeToken::Success),
            Some("pending") => Some(ThemeToken::Warning),
            Some("changes_requested") => Some(ThemeToken::Error),
            _ => None,
        };
        let style = color.map_or_else(faint, |token| Style { fg: Color::Themed(token), ..Style::default() });
        let url = template.and_then(|template| self.page(template)).unwrap_or_else(|| self.url.clone());
        let link = link_target(&url).filter(|_| has_links);
        Span { text, style: Style { is_underlined: link.is_some(), ..style }, link }
    }

    /// Returns its address by a template with `{host}`, `{owner}`, `{repo}`, `{number}` and `{url}`; none where its own address
    /// does not tell these, as that of a merge request.
    fn page(&self, template: &str) -> Option<String> {
        let rest = self.url.split_once("://")?.1.strip_suffix(&format!("/pull/{}", self.number))?;
        let mut parts = rest.split('/');
        let (host, owner, repo) = (parts.next()?, parts.next()?, parts.next()?);
        let page = template.replace("{host}", host).replace("{owner}", owner).replace("{repo}", repo);
        Some(page.replace("{number}", &self.number.to_string()).replace("{url}", &self.url))
    }
}

/// Tells whether a command may have changed a pull request.
pub(super) fn may_push(command: &str) -> bool {
    ["git push", "gh pr ", "glab mr "].iter().any(|words| command.contains(words))
}

/// Asks for the pull request of the branch, unless nobody would see it.
pub(super) fn ask_pull_request(preferences: &Preferences, session: &SessionMirror) -> Option<Effect> {
    let is_seen = !preferences.is_plain() && session.is_started;
    is_seen.then_some(Effect::AskPullRequest { is_pushed: false })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn badge_says_number_and_review_and_leads_to_the_page() {
        let url = "https://github.com/o/n/pull/446";
        let mine = "https://reviews.example.com/{owner}/{repo}/pull/{number}?at={host}";
        for (found, template, text, link) in [
            (json!({"number": 446, "url": url, "review_state": "approved"}), None, "PR #446 approved", url),
            (json!({"number": 446, "url": url}), None, "PR #446", url),
            (
                json!({"number": 446, "url": url, "review_state": "changes_requested"}),
                Some(mine),
                "PR #446 changes requested",
                "https://reviews.example.com/o/n/pull/446?at=github.com",
            ),
            (
                json!({"number": 3, "url": "https://gitlab.com/o/n/-/merge_requests/3", "kind": "mr", "review_state": "draft"}),
                Some(mine),
                "MR !3 draft",
                "https://gitlab.com/o/n/-/merge_requests/3",
            ),
        ] {
            let request = PullRequest::from_value(&found).unwrap();
            let badge = request.badge(template, true);
            assert_eq!((badge.text.as_str(), badge.link.as_deref()), (text, Some(link)), "{found}");
            assert_eq!(request.badge(template, false).link, None);
        }
        assert_eq!(PullRequest::from_value(&json!(null)), None);
        // What would end the sequence, or is no address, is text alone.
        let odd = PullRequest::from_value(&json!({"number": 1, "url": "javascript:x"})).unwrap();
        assert_eq!(odd.badge(None, true).link, None);
    }

    #[test]
    fn commands_that_push_are_known() {
        for (command, expected) in
            [("git push -u origin x", true), ("cd a && gh pr create --fill", true), ("git status", false)]
        {
            assert_eq!(may_push(command), expected, "{command}");
        }
    }
}
