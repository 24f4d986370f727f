//! Sessions to choose from: a list, what was said last in one, a name for one, and a search over all of them.
//!
//! Everything here blocks and works before there is a session, too.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use loci_core::entry::Entry;
use loci_core::search::{Query, snippet};
use loci_stdx::{Env, single_line};
use loci_storage::layout::{ConfigHome, Dialect, SessionPlace};
use loci_storage::project::Project;
use loci_storage::search::{IndexUse, NoObserver, SearchFilter, SearchQuery, search_sessions};
use loci_storage::sessions::{
    LabelError, SessionSummary, list_sessions, load_live, rename_session, session_summary,
};

use crate::display::{ago, minute_of_ms_in, path, written};
use crate::user_error::UserError;

/// The longest title that is shown.
const MOST_TITLE: usize = 160;
/// How many bytes of a message are shown.
const MOST_SNIPPET: usize = 240;

/// Where sessions are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PickerScope {
    /// This project: its repository with all working copies, or the directory.
    Project,
    /// Everywhere.
    All,
}

/// A session that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionChoice {
    /// Its id.
    pub id: String,
    /// Its transcript.
    pub file: PathBuf,
    /// What it is about, in a line.
    pub title: String,
    /// How long ago something was said, in words.
    pub ago: String,
    /// The same as a time.
    pub time: String,
    /// The branch of git it was on.
    pub branch: Option<String>,
    /// How many messages it has, about.
    pub n_messages: u64,
    /// Where it ran, with `~`.
    pub shown_cwd: Option<String>,
    /// The same, as it is.
    pub cwd: Option<PathBuf>,
    /// Whether it was branched off another.
    pub is_branch: bool,
    /// Whether it belongs to this project.
    pub is_here: bool,
}

impl SessionChoice {
    /// Returns what a filter looks at.
    pub fn searched(&self) -> String {
        let branch = self.branch.as_deref().unwrap_or_default();
        let cwd = self.shown_cwd.as_deref().unwrap_or_default();
        format!("{} {branch} {cwd} {}", self.title, self.id)
    }
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMessage {
    /// The session it was said in.
    pub session: SessionChoice,
    /// Its id.
    pub message: Option<String>,
    /// Who said it.
    pub voice: &'static str,
    /// When, in local time.
    pub time: String,
    /// The words around what was found, in a line.
    pub snippet: String,
}

/// Lists sessions, the newest first, no more than so many.
pub fn list_choices(
    env: &Env,
    home: &ConfigHome,
    scope: PickerScope,
    most: usize,
) -> Result<Vec<SessionChoice>, UserError> {
    let failed = |error| UserError::from_error(&error);
    let project = Project::repository(&env.cwd);
    let own = list_sessions(home, Some(&project), usize::MAX).map_err(failed)?.sessions;
    let sessions = match scope {
        PickerScope::Project => own.iter().take(most).cloned().collect(),
        PickerScope::All => list_sessions(home, None, most).map_err(failed)?.sessions,
    };
    let own: HashSet<&str> = own.iter().map(|session| session.place.id().as_str()).collect();
    let describe = Describe { env, own, zone: TimeZone::system(), now_ms: env.clock.now().as_millisecond() };
    Ok(sessions
        .iter()
        .filter(|session| !session.facts.is_empty && !session.facts.is_sidechain)
        .map(|session| describe.choice(session))
        .collect())
}

/// What sessions are described with.
struct Describe<'a> {
    env: &'a Env,
    own: HashSet<&'a str>,
    zone: TimeZone,
    now_ms: i64,
}

impl Describe<'_> {
    fn choice(&self, session: &SessionSummary) -> SessionChoice {
        let facts = &session.facts;
        let id = session.place.id().to_string();
        SessionChoice {
            title: single_line(facts.headline().unwrap_or("(no prompt)"), MOST_TITLE),
            ago: ago(self.now_ms, facts.newest_ms()),
            time: minute_of_ms_in(&self.zone, facts.newest_ms()),
            branch: facts.git_branch.clone().filter(|branch| !branch.is_empty() && branch != "HEAD"),
            n_messages: facts.messages.number(),
            shown_cwd: facts.cwd.as_ref().map(|cwd| path(&self.env.home, cwd)),
            cwd: facts.cwd.as_ref().map(PathBuf::from),
            is_branch: facts.forked_from.is_some(),
            is_here: self.own.contains(id.as_str()),
            file: session.place.file().to_owned(),
            id,
        }
    }
}

/// Reads the conversation of a session, as far as the model still sees it.
pub fn preview_entries(file: &Path) -> Result<Vec<std::sync::Arc<Entry>>, UserError> {
    let loaded = load_live(file).map_err(|error| UserError::from_error(&error))?;
    Ok(loaded.conversation.into_path())
}

/// Gives a session a name; returns it as it was kept.
pub fn rename_choice(choice: &SessionChoice, title: &str) -> Result<String, UserError> {
    let id = loci_core::ids::SessionId::parse(&choice.id).map_err(|error| UserError::from_error(&error))?;
    let place = SessionPlace::new(choice.file.clone(), id);
    rename_session(&place, title).map_err(|error: LabelError| UserError::from_error(&error))
}

/// Finds messages of all sessions by their words, the best first.
pub fn find_messages(
    env: &Env,
    home: &ConfigHome,
    text: &str,
    scope: PickerScope,
    limit: usize,
) -> Result<Vec<FoundMessage>, UserError> {
    let failed = |error: &dyn std::error::Error| UserError::from_error(error);
    let project = Project::repository(&env.cwd);
    let own = list_sessions(home, Some(&project), usize::MAX).map_err(|error| failed(&error))?.sessions;
    let sessions = match scope {
        PickerScope::All => None,
        PickerScope::Project => Some(own.iter().map(|session| session.place.file().to_owned()).collect()),
    };
    let filter = SearchFilter { sessions, ..SearchFilter::default() };
    let query = SearchQuery { text: text.to_owned(), is_regex: false, filter, skip: 0, limit };
    let unique = format!("{:020}-{}", env.clock.now().as_millisecond(), env.random.uuid_v4());
    let found = search_sessions(home, &query, IndexUse::Normal, &unique, &NoObserver)
        .map_err(|error| failed(&error))?;
    let own: HashSet<&str> = own.iter().map(|session| session.place.id().as_str()).collect();
    let describe = Describe { env, own, zone: TimeZone::system(), now_ms: env.clock.now().as_millisecond() };
    let parsed = Query::parse(text);
    let hits = found.hits.iter().filter(|hit| !hit.is_archived && hit.session.dialect() == Dialect::Own);
    Ok(hits
        .filter_map(|hit| {
            let session = session_summary(&hit.session).ok().flatten()?;
            let words = &hit.passage.text;
            let found = snippet(&parsed, words, MOST_SNIPPET);
            Some(FoundMessage {
                session: describe.choice(&session),
                message: hit.message.clone().filter(|_| hit.agent.is_none()),
                voice: hit.passage.voice.name(),
                time: written(hit.time.as_deref()),
                snippet: single_line(words.get(found.range).unwrap_or_default(), MOST_SNIPPET),
            })
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use loci_testkit::TestHome;
    use serde_json::json;

    use super::*;

    fn write_session(home: &TestHome, config: &ConfigHome, cwd: &Path, id: &str, text: &str) -> PathBuf {
        let id = loci_core::ids::SessionId::parse(id).unwrap();
        let file = config.session(cwd, &id).file().to_owned();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let line = json!({
            "type": "user", "uuid": format!("u-{id}"), "parentUuid": null, "sessionId": id.as_str(),
            "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd, "gitBranch": "main", "isSidechain": false,
            "message": {"role": "user", "content": text},
        });
        std::fs::write(&file, format!("{line}\n")).unwrap();
        let _ = home;
        file
    }

    #[test]
    fn sessions_of_the_project_come_first_and_all_are_told_apart() {
        let home = TestHome::new();
        let env = Env::for_test(home.home(), home.project());
        let config = ConfigHome::from_env(&env);
        let here = "0a0a0a0a-0001-4000-8000-000000000001";
        let there = "0a0a0a0a-0002-4000-8000-000000000002";
        write_session(&home, &config, &env.cwd, here, "fix the port");
        write_session(&home, &config, Path::new("/elsewhere"), there, "write a poem");
        let titles = |scope| {
            let choices = list_choices(&env, &config, scope, usize::MAX).unwrap();
            let mut told: Vec<_> =
                choices.iter().map(|it| (it.title.clone(), it.is_here, it.branch.clone())).collect();
            told.sort();
            told
        };
        let main = Some("main".to_owned());
        assert_eq!(titles(PickerScope::Project), [("fix the port".to_owned(), true, main.clone())]);
        let all = [("fix the port".to_owned(), true, main.clone()), ("write a poem".to_owned(), false, main)];
        assert_eq!(titles(PickerScope::All), all);
        let found = find_messages(&env, &config, "poem", PickerScope::All, 10).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].session.id.as_str(), found[0].snippet.as_str()), (there, "write a poem"));
        assert!(find_messages(&env, &config, "poem", PickerScope::Project, 10).unwrap().is_empty());
        let choice = &list_choices(&env, &config, PickerScope::Project, 10).unwrap()[0];
        assert_eq!(rename_choice(choice, " port ").unwrap(), "port");
        assert_eq!(titles(PickerScope::Project)[0].0, "port");
        assert_eq!(preview_entries(&choice.file).unwrap().len(), 1);
    }
}
