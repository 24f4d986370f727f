//! Sessions to choose from: a list, what was said last in one, a name for one, and a search over all of them.
//!
//! Everything here blocks and works before there is a session, too.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use loci_core::conversation::{Branches, Conversation, Leaf};
use loci_core::entry::Entry;
use loci_core::file_history::prompts_of;
use loci_core::search::{Query, snippet};
use loci_stdx::{Env, single_line};
use loci_storage::layout::{ConfigHome, Dialect, SessionPlace};
use loci_storage::project::Project;
use loci_storage::search::{IndexUse, NoObserver, SearchFilter, SearchQuery, search_sessions};
use loci_storage::sessions::{
    LabelError, SessionSummary, list_recent, list_sessions, load_live, load_transcript, rename_session,
    session_summary,
};

use crate::reports::display::{ago, minute_of_ms_in, path, written};
use crate::user_error::UserError;

/// The longest title that is shown.
const MOST_TITLE: usize = 160;
/// The most branches of a session that are shown.
const MOST_BRANCHES: usize = 100;
/// Sessions that were branched off one another are followed so far.
const MOST_DEPTH: usize = 100;
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
    /// The session that it was branched off.
    pub parent: Option<String>,
    /// How many sessions of the list it stands below: those it was branched off.
    pub depth: usize,
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

/// Lists all sessions, the newest first.
pub fn list_choices(
    env: &Env,
    home: &ConfigHome,
    scope: PickerScope,
) -> Result<Vec<SessionChoice>, UserError> {
    let describe = Describe::new(env, home);
    let project = Some(&describe.project).filter(|_| scope == PickerScope::Project);
    let listed =
        list_sessions(home, project, usize::MAX).map_err(|error| UserError::from_error(&error))?.sessions;
    Ok(describe.choices(&listed))
}

/// Lists the sessions that were written last, about so many, the newest first: of the others nothing is read, so that
/// something is seen at once, however many there are. Says whether these are all.
pub fn recent_choices(
    env: &Env,
    home: &ConfigHome,
    scope: PickerScope,
    most: usize,
) -> Result<(Vec<SessionChoice>, bool), UserError> {
    let describe = Describe::new(env, home);
    let project = Some(&describe.project).filter(|_| scope == PickerScope::Project);
    let (list, is_whole) = list_recent(home, project, most).map_err(|error| UserError::from_error(&error))?;
    Ok((describe.choices(&list.sessions), is_whole))
}

/// What sessions are described with.
struct Describe<'a> {
    env: &'a Env,
    home: &'a ConfigHome,
    project: Project,
    /// Whether sessions of a directory that began in a directory are the project's own; many have the same.
    owned: RefCell<HashMap<(PathBuf, Option<String>), bool>>,
    zone: TimeZone,
    now_ms: i64,
}

impl<'a> Describe<'a> {
    fn new(env: &'a Env, home: &'a ConfigHome) -> Self {
        let (project, zone) = (Project::repository(&env.cwd), TimeZone::system());
        let owned = RefCell::default();
        Self { env, home, project, owned, zone, now_ms: env.clock.now().as_millisecond() }
    }

    fn is_own(&self, session: &SessionSummary) -> bool {
        let dir = session.place.file().parent().map(Path::to_path_buf).unwrap_or_default();
        let mut owned = self.owned.borrow_mut();
        *owned
            .entry((dir, session.facts.cwd.clone()))
            .or_insert_with(|| self.project.owns(self.home, session))
    }

    fn choices(&self, sessions: &[SessionSummary]) -> Vec<SessionChoice> {
        let shown = sessions.iter().filter(|session| !session.facts.is_empty && !session.facts.is_sidechain);
        as_tree(shown.map(|session| self.choice(session)).collect())
    }
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
            parent: facts.forked_from.clone(),
            depth: 0,
            is_here: self.is_own(session),
            file: session.place.file().to_owned(),
            id,
        }
    }
}

/// Puts sessions that were branched off others below those, in the order of the newest of each family.
fn as_tree(sessions: Vec<SessionChoice>) -> Vec<SessionChoice> {
    if !sessions.iter().any(|session| session.is_branch) {
        return sessions;
    }
    let places: HashMap<String, usize> =
        sessions.iter().enumerate().map(|(idx, session)| (session.id.clone(), idx)).collect();
    let parent_of = |idx: usize| {
        let parent = sessions.get(idx)?.parent.as_ref()?;
        places.get(parent).copied().filter(|parent| *parent != idx)
    };
    // Whoever heads a family; two that were branched off each other head none, and stay where they are.
    let head_of = |idx: usize| {
        let mut head = idx;
        for _ in 0..MOST_DEPTH {
            match parent_of(head) {
                Some(parent) => head = parent,
                None => return Some(head),
            }
        }
        None
    };
    let heads: Vec<usize> = (0..sessions.len()).map(|idx| head_of(idx).unwrap_or(idx)).collect();
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for idx in 0..sessions.len() {
        if let Some(parent) = parent_of(idx).filter(|_| heads.get(idx) != Some(&idx)) {
            children.entry(parent).or_default().push(idx);
        }
    }
    let mut order: Vec<(usize, usize)> = Vec::with_capacity(sessions.len());
    let mut is_listed = vec![false; sessions.len()];
    for head in heads {
        let mut open = vec![(head, 0)];
        while let Some((idx, depth)) = open.pop() {
            if is_listed.get(idx).copied().unwrap_or(true) {
                continue;
            }
            is_listed[idx] = true;
            order.push((idx, depth));
            let below = children.get(&idx).into_iter().flatten().rev();
            open.extend(below.map(|child| (*child, depth + 1)));
        }
    }
    let mut sessions: Vec<Option<SessionChoice>> = sessions.into_iter().map(Some).collect();
    let taken = order.into_iter().filter_map(|(idx, depth)| {
        sessions.get_mut(idx)?.take().map(|session| SessionChoice { depth, ..session })
    });
    taken.collect()
}

/// A branch of a session's conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchChoice {
    /// Its last message.
    pub leaf: String,
    /// The last thing that was asked in it, in a line.
    pub line: String,
    /// When something was last said in it, in local time.
    pub time: String,
    /// How many entries lead to its end.
    pub n_entries: usize,
    /// Whether the session goes on with it by itself.
    pub is_current: bool,
}

/// Finds the branches of a session's conversation, the newest first.
pub fn session_branches(file: &Path) -> Result<Vec<BranchChoice>, UserError> {
    let entries = load_transcript(file).map_err(|error| UserError::from_error(&error))?.entries;
    let current = Conversation::build(entries.clone()).leaf().cloned();
    let branches = Branches::from_entries(&entries);
    let mut leaves: Vec<_> = branches.leaves().iter().collect();
    leaves.sort_by(|left, right| right.timestamp.cmp(&left.timestamp));
    let choice = |leaf: &&Leaf| {
        let lineage: Vec<_> = branches.lineage(&leaf.id).into_iter().cloned().collect();
        let asked = prompts_of(&lineage).pop().map(|prompt| prompt.text);
        BranchChoice {
            leaf: leaf.id.to_string(),
            line: single_line(asked.as_deref().unwrap_or("(no prompt)"), MOST_TITLE),
            time: written(leaf.timestamp.as_deref()),
            n_entries: leaf.n_entries,
            is_current: current
                .as_ref()
                .is_some_and(|id| lineage.iter().any(|it| it.head().uuid.as_ref() == Some(id))),
        }
    };
    Ok(leaves.iter().take(MOST_BRANCHES).map(choice).collect())
}

/// Reads the conversation of a session, as far as the model still sees it.
pub fn preview_entries(file: &Path) -> Result<Vec<std::sync::Arc<Entry>>, UserError> {
    let loaded = load_live(file).map_err(|error| UserError::from_error(&error))?;
    Ok(loaded.conversation.into_path())
}

/// Returns the entries of a session from a message on, also where it stands on a branch that was left.
pub fn entries_from(file: &Path, message: &str) -> Result<Vec<std::sync::Arc<Entry>>, UserError> {
    let is_it =
        |entry: &std::sync::Arc<Entry>| entry.head().uuid.as_ref().is_some_and(|id| id.as_str() == message);
    let mut path = preview_entries(file)?;
    if let Some(first) = path.iter().position(is_it) {
        return Ok(path.split_off(first));
    }
    let mut entries = load_transcript(file).map_err(|error| UserError::from_error(&error))?.entries;
    let first = entries.iter().position(is_it);
    Ok(first.map(|first| entries.split_off(first)).unwrap_or(path))
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
    let describe = Describe::new(env, home);
    let sessions = match scope {
        PickerScope::All => None,
        PickerScope::Project => {
            let own = list_sessions(home, Some(&describe.project), usize::MAX);
            let own = own.map_err(|error| failed(&error))?.sessions;
            Some(own.iter().map(|session| session.place.file().to_owned()).collect())
        }
    };
    let filter = SearchFilter { sessions, ..SearchFilter::default() };
    let query = SearchQuery { text: text.to_owned(), is_regex: false, filter, skip: 0, limit };
    let unique = format!("{:020}-{}", env.clock.now().as_millisecond(), env.random.uuid_v4());
    let found = search_sessions(home, &query, IndexUse::Normal, &unique, &NoObserver)
        .map_err(|error| failed(&error))?;
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
    fn preview_begins_with_the_message_that_was_found() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("0a0a0a0a-0001-4000-8000-000000000001.jsonl");
        let line = |uuid: &str, parent: Option<&str>| {
            json!({
                "type": "user", "uuid": uuid, "parentUuid": parent, "isSidechain": false,
                "sessionId": "0a0a0a0a-0001-4000-8000-000000000001", "timestamp": "2026-01-01T00:00:00.000Z",
                "message": {"role": "user", "content": uuid},
            })
        };
        let lines =
            [line("u1", None), line("left", Some("u1")), line("u2", Some("u1")), line("u3", Some("u2"))];
        std::fs::write(&file, lines.map(|line| format!("{line}\n")).concat()).unwrap();
        for (message, expected) in
            [("u2", "u2 u3"), ("u1", "u1 u2 u3"), ("left", "left u2 u3"), ("nowhere", "u1 u2 u3")]
        {
            let entries = entries_from(&file, message).unwrap();
            let ids: Vec<String> =
                entries.iter().filter_map(|it| Some(it.head().uuid.as_ref()?.to_string())).collect();
            assert_eq!(ids.join(" "), expected, "{message}");
        }
    }

    #[test]
    fn branched_sessions_stand_below_their_origin_whatever_names_what() {
        let session = |id: &str, parent: Option<&str>| SessionChoice {
            id: id.to_owned(),
            file: PathBuf::new(),
            title: String::new(),
            ago: String::new(),
            time: String::new(),
            branch: None,
            n_messages: 0,
            shown_cwd: None,
            cwd: None,
            is_branch: parent.is_some(),
            parent: parent.map(str::to_owned),
            depth: 0,
            is_here: true,
        };
        for (sessions, expected) in [
            (vec![("a", None), ("b", None)], "a0 b0"),
            // The newest of a family brings the whole family to its place.
            (vec![("c", Some("a")), ("x", None), ("a", None), ("d", Some("c"))], "a0 c1 d2 x0"),
            (vec![("c", Some("gone")), ("a", None)], "c0 a0"),
            // Two that name each other, and one that names itself, are listed once each.
            (vec![("a", Some("b")), ("b", Some("a")), ("c", Some("c"))], "a0 b0 c0"),
        ] {
            let all = sessions.into_iter().map(|(id, parent)| session(id, parent)).collect();
            let listed: Vec<String> =
                as_tree(all).iter().map(|it| format!("{}{}", it.id, it.depth)).collect();
            assert_eq!(listed.join(" "), expected);
        }
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
            let choices = list_choices(&env, &config, scope).unwrap();
            assert_eq!(recent_choices(&env, &config, scope, 10).unwrap(), (choices.clone(), true));
            assert_eq!(recent_choices(&env, &config, scope, 1).unwrap().1, choices.len() == 1);
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
        let choice = &list_choices(&env, &config, PickerScope::Project).unwrap()[0];
        assert_eq!(rename_choice(choice, " port ").unwrap(), "port");
        assert_eq!(titles(PickerScope::Project)[0].0, "port");
        assert_eq!(preview_entries(&choice.file).unwrap().len(), 1);
    }

    #[test]
    fn branches_of_a_session_are_told_apart_by_their_last_prompt() {
        let home = TestHome::new();
        let file = home.project().join("s.jsonl");
        let line = |uuid: &str, parent: Option<&str>, minute: u8, text: &str| {
            json!({
                "type": "user", "uuid": uuid, "parentUuid": parent, "isSidechain": false,
                "timestamp": format!("2026-01-01T00:{minute:02}:00.000Z"),
                "message": {"role": "user", "content": text},
            })
            .to_string()
        };
        let lines = [
            line("a", None, 0, "start"),
            line("b", Some("a"), 1, "first way"),
            line("c", Some("b"), 2, "on the first way"),
            line("d", Some("a"), 3, "second way\nmore"),
        ];
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        let branches = session_branches(&file).unwrap();
        let told: Vec<_> = branches
            .iter()
            .map(|it| (it.leaf.as_str(), it.line.as_str(), it.n_entries, it.is_current))
            .collect();
        assert_eq!(told, [("d", "second way more", 2, true), ("c", "on the first way", 3, false)]);
        assert!(session_branches(&home.project().join("none")).is_err());
    }
}
