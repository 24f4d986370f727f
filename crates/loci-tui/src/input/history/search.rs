//! Searching the history while typing, as Ctrl+R does.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::PastPrompt;
use crate::input::chip::Draft;
use crate::text::{Row, Span, Style, sanitize_line, truncate};

/// Whose prompts are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchScope {
    /// Those of this session.
    Session,
    /// Those of this directory.
    Project,
    /// All.
    #[default]
    Everywhere,
}

impl SearchScope {
    /// The next one, in a ring.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Session => Self::Project,
            Self::Project => Self::Everywhere,
            Self::Everywhere => Self::Session,
        }
    }

    /// Returns its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "this session",
            Self::Project => "this project",
            Self::Everywhere => "all projects",
        }
    }
}

/// So many matches are listed on each side of the one that is shown.
const MOST_LISTED: usize = 20;

/// A search that is under way.
#[derive(Debug)]
pub struct HistorySearch {
    query: String,
    scope: SearchScope,
    project: PathBuf,
    session_id: Option<String>,
    /// All prompts that are known so far, the latest first.
    prompts: Arc<[PastPrompt]>,
    /// The place of the prompt that is shown.
    found: Option<usize>,
    /// Places of prompts around it that match, too, the latest first, each text once.
    listed: Vec<usize>,
    /// What was in the input before.
    original: Draft,
}

impl HistorySearch {
    /// Begins a search; `original` comes back when it is cancelled.
    pub fn new(original: Draft, project: &Path, session_id: Option<&str>) -> Self {
        Self {
            query: String::new(),
            scope: SearchScope::default(),
            project: project.to_owned(),
            session_id: session_id.map(str::to_owned),
            prompts: Arc::new([]),
            found: None,
            listed: Vec::new(),
            original,
        }
    }

    /// Takes in prompts, the latest first; more may come later. A prompt that is shown stays, where it still is there.
    pub fn set_prompts(&mut self, prompts: Arc<[PastPrompt]>) {
        let shown = self.found.and_then(|at| self.prompts.get(at)).cloned();
        self.prompts = prompts;
        self.found = shown.and_then(|shown| self.prompts.iter().position(|prompt| *prompt == shown));
        if self.found.is_none() {
            self.find_from(0);
        }
        self.list_matches();
    }

    /// Adds a character to what is searched for; the match that is shown stays if it still is one.
    pub fn push(&mut self, char: char) {
        self.query.push(char);
        self.find_from(self.found.unwrap_or(0));
    }

    /// Takes the last character away; returns whether there was one, since without one the search is over.
    pub fn pop(&mut self) -> bool {
        let had_one = self.query.pop().is_some();
        self.find_from(0);
        had_one
    }

    /// Goes to the next newer match, if there is one.
    pub fn newer(&mut self) {
        let place = self.listed.iter().position(|at| Some(*at) == self.found);
        if let Some(at) = place.and_then(|place| self.listed.get(place.checked_sub(1)?)).copied() {
            self.found = Some(at);
            self.list_matches();
        }
    }

    /// Goes to the next older match, if there is one; before anything was searched for, to the last prompt.
    pub fn older(&mut self) {
        self.step_older();
        self.list_matches();
    }

    fn step_older(&mut self) {
        let Some(at) = self.found else {
            self.found = self.listed.first().copied();
            return;
        };
        let shown = self.prompts[at].draft.display();
        let is_other = |prompt: &PastPrompt| prompt.draft.display() != shown;
        let next = (at + 1..self.prompts.len()).find(|at| self.matches(*at) && is_other(&self.prompts[*at]));
        self.found = next.or(Some(at));
    }

    /// Searches the prompts of the next scope.
    pub fn cycle_scope(&mut self) {
        self.scope = self.scope.next();
        self.find_from(0);
    }

    /// Tells whether nothing is searched for yet.
    pub fn is_empty(&self) -> bool {
        self.query.is_empty()
    }

    /// Returns whose prompts are searched.
    pub fn scope(&self) -> SearchScope {
        self.scope
    }

    /// Returns what is searched for.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Returns prompts that match, the latest first, at most so many and with the one that is shown among them; and whether
    /// each is that one.
    pub fn matches_around(&self, most: usize) -> impl Iterator<Item = (bool, &PastPrompt)> {
        let place = self.listed.iter().position(|at| Some(*at) == self.found).unwrap_or(0);
        let first = (place + 1).saturating_sub(most);
        let shown = self.listed.iter().skip(first).take(most);
        shown.filter_map(|at| Some((Some(*at) == self.found, self.prompts.get(*at)?)))
    }

    /// Finds the matches up to the one that is shown, and some behind it.
    fn list_matches(&mut self) {
        let mut texts = std::collections::HashSet::new();
        let mut listed: Vec<usize> = Vec::new();
        let mut n_behind = 0;
        for at in 0..self.prompts.len() {
            if !(self.matches(at) && texts.insert(self.prompts[at].draft.display())) {
                continue;
            }
            listed.push(at);
            n_behind += usize::from(self.found.is_none_or(|found| at > found));
            if n_behind == MOST_LISTED {
                break;
            }
        }
        let first = listed.len().saturating_sub(2 * MOST_LISTED);
        self.listed = listed.split_off(first);
    }

    /// Returns the prompt that is shown.
    pub fn current(&self) -> Option<&PastPrompt> {
        self.found.and_then(|at| self.prompts.get(at))
    }

    /// Ends the search with the prompt that is shown, or with what was there before.
    pub fn accept(self) -> Draft {
        self.current().map_or(self.original.clone(), |prompt| prompt.draft.clone())
    }

    /// Ends the search with what was there before.
    pub fn cancel(self) -> Draft {
        self.original
    }

    /// Shows the search in a row: what is searched for, and the match with the searched text marked.
    pub fn row(&self, width: usize, styles: &SearchStyles) -> Row {
        let fails = self.found.is_none() && !self.query.is_empty();
        let label = format!(
            "search {}{}: {}",
            self.scope.name(),
            if fails { ", no match" } else { "" },
            sanitize_line(&self.query)
        );
        let mut spans = vec![Span::styled(label, styles.label)];
        if let Some(prompt) = self.current() {
            let text = prompt.draft.display();
            let place = find_ignoring_case(&text, &self.query).unwrap_or(0..0);
            spans.push(Span::plain("  "));
            for (part, style) in [
                (&text[..place.start], styles.text),
                (&text[place.clone()], styles.found),
                (&text[place.end..], styles.text),
            ] {
                spans.push(Span::styled(sanitize_line(part), style));
            }
        }
        truncate(&Row::new(spans), width)
    }

    fn find_from(&mut self, from: usize) {
        self.found = if self.query.is_empty() {
            None
        } else {
            (from..self.prompts.len()).find(|at| self.matches(*at))
        };
        self.list_matches();
    }

    fn matches(&self, at: usize) -> bool {
        let prompt = &self.prompts[at];
        let is_in_scope = match self.scope {
            SearchScope::Session => self.session_id.is_some() && prompt.session_id == self.session_id,
            SearchScope::Project => prompt.project == self.project,
            SearchScope::Everywhere => true,
        };
        let is_found = || find_ignoring_case(&prompt.draft.display(), &self.query).is_some();
        is_in_scope && (self.query.is_empty() || is_found())
    }
}

/// How the parts of a search look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SearchStyles {
    /// What is searched for.
    pub label: Style,
    /// The prompt that was found.
    pub text: Style,
    /// The searched text in it.
    pub found: Style,
}

/// Finds a text in another, whatever the case of its letters.
fn find_ignoring_case(text: &str, query: &str) -> Option<Range<usize>> {
    let query: Vec<char> = query.chars().flat_map(char::to_lowercase).collect();
    if query.is_empty() {
        return None;
    }
    text.char_indices().find_map(|(start, _)| {
        let mut wanted = query.iter();
        let mut end = start;
        for char in text[start..].chars() {
            if wanted.len() == 0 {
                break;
            }
            for lower in char.to_lowercase() {
                if wanted.next().is_some_and(|wanted| *wanted != lower) {
                    return None;
                }
            }
            end += char.len_utf8();
        }
        (wanted.len() == 0).then_some(start..end)
    })
}
