//! What was typed before: recalled with Up and Down, searched with Ctrl+R.

use std::sync::Arc;

use super::Effect;
use super::prompt_area::PromptContext;
use crate::input::{Draft, HistorySearch, PastPrompt, PromptHistory, SearchStyles, past_prompt};
use crate::key::{Key, KeyCode};
use crate::keymap::Action as KeyAction;
use crate::layout::{bold, cells, cut, faint, line, marked};
use crate::text::{Row, Style, sanitize_line};

/// The most prompts that a search lists.
const MOST_FOUND: usize = 10;

/// The prompts of the past, and a search among them.
#[derive(Debug, Default)]
pub(super) struct Recall {
    history: PromptHistory,
    search: Option<HistorySearch>,
    /// Whether the prompts of the project are there.
    is_loaded: bool,
    /// How many steps back were asked for before they were; any other key forgets them.
    n_early: usize,
    /// Whether it was told that the history file makes trouble; once is enough.
    has_told_trouble: bool,
}

impl Recall {
    /// Tells whether a search is under way.
    pub(super) fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// Returns the latest command of the shell that begins with what is typed and goes on.
    pub(super) fn shell_command(&self, typed: &str) -> Option<String> {
        self.history.complete_shell_command(typed)
    }

    /// Tells whether nothing is searched for yet.
    pub(super) fn has_empty_query(&self) -> bool {
        self.search.as_ref().is_some_and(HistorySearch::is_empty)
    }

    /// Returns the row of a search that is under way, and the column of the caret in it.
    pub(super) fn search_row(&self, width: u16) -> Option<(Row, u16)> {
        let search = self.search.as_ref()?;
        let styles = SearchStyles { label: faint(), text: Style::default(), found: marked() };
        let row = search.row(usize::from(width), &styles);
        let column = row.spans.first().map_or(0, |label| crate::layout::cells(&label.text));
        Some((row, column.min(width.saturating_sub(1))))
    }
}

impl Recall {
    /// Returns the rows of a search as a dialog, and where the caret stands in them.
    pub(super) fn search_rows(&self, width: u16, height: u16) -> Option<(Vec<Row>, (usize, u16))> {
        let search = self.search.as_ref()?;
        let query = format!("Search: {}", sanitize_line(search.query()));
        let title = format!("Earlier prompts · {}", search.scope().name());
        let mut rows = vec![cut(&line(&title, bold()), width), cut(&line(&query, Style::default()), width)];
        let most = usize::from(height / 3).clamp(1, MOST_FOUND);
        let n_before = rows.len();
        rows.extend(search.matches_around(most).map(|(is_shown, prompt)| {
            let text = loci_stdx::single_line(&prompt.draft.display(), 400);
            let (mark, style) = if is_shown { ("❯ ", marked()) } else { ("  ", Style::default()) };
            cut(&line(&format!("{mark}{text}"), style), width)
        }));
        if rows.len() == n_before {
            rows.push(line("  nothing matches", faint()));
        }
        let hint = "Enter puts it into the prompt · ↑ ↓ move · Ctrl+S other scope · Esc cancel";
        rows.push(cut(&line(hint, faint()), width));
        Some((rows, (1, cells(&query).min(width.saturating_sub(1)))))
    }
}

impl Recall {
    /// Notes a draft that was sent, or put away, for the time it is wanted again.
    pub(super) fn remember(&mut self, draft: &Draft, ctx: &PromptContext<'_>) -> Option<Effect> {
        // When it was is noted by whoever has a clock.
        let prompt = past_prompt(draft.clone(), 0, ctx.cwd, ctx.session);
        self.history.add(prompt.clone()).then_some(Effect::Remember(prompt))
    }

    /// Notes a draft that was thrown away, for as long as this session runs: it is in no file.
    pub(super) fn set_aside(&mut self, draft: Draft, ctx: &PromptContext<'_>) {
        self.history.set_aside(past_prompt(draft, 0, ctx.cwd, ctx.session));
    }

    /// Takes the prompts of the project; returns how many steps back were asked for before they were there.
    pub(super) fn take_project(&mut self, prompts: Vec<PastPrompt>) -> usize {
        self.history.set_earlier(prompts);
        self.is_loaded = true;
        std::mem::take(&mut self.n_early)
    }

    /// Takes the prompts of all projects, for a search that is under way.
    pub(super) fn take_everywhere(&mut self, prompts: Arc<[PastPrompt]>) {
        if let Some(search) = &mut self.search {
            search.set_prompts(prompts);
        }
    }

    /// Notes that the history file makes trouble; tells whether that is news.
    pub(super) fn note_trouble(&mut self) -> bool {
        !std::mem::replace(&mut self.has_told_trouble, true)
    }

    /// Goes to the prompt before; where there is none yet, as soon as there is.
    pub(super) fn previous(&mut self, draft: &Draft) -> Option<Draft> {
        let found = self.history.previous(draft);
        if found.is_none() && !self.is_loaded {
            self.n_early += 1;
        }
        found
    }

    /// Goes to the prompt behind, if there is one.
    pub(super) fn next(&mut self, draft: &Draft) -> Option<Draft> {
        self.history.next(draft)
    }

    /// Forgets steps back that wait for the history: something else was pressed.
    pub(super) fn forget_early_steps(&mut self) {
        self.n_early = 0;
    }

    /// Begins to search what was typed before.
    pub(super) fn begin_search(&mut self, draft: Draft, ctx: &PromptContext<'_>) {
        self.search = Some(HistorySearch::new(draft, ctx.cwd, ctx.session));
    }

    /// Takes a key while a search is under way; `action` is what it is bound to, `kind` how the search is shown.
    pub(super) fn search_key(
        &mut self,
        action: Option<KeyAction>,
        key: Key,
        kind: SearchKind,
    ) -> Option<SearchStep> {
        let is_dialog = kind == SearchKind::List;
        let search = self.search.as_mut()?;
        match (action, key) {
            (_, Key { code: KeyCode::Esc, .. }) if is_dialog => return self.cancel(),
            (Some(KeyAction::HistorySearchNext | KeyAction::HistorySearch), _) => search.older(),
            (Some(KeyAction::HistorySearchCycleScope), _) => search.cycle_scope(),
            // A prompt of the past is looked at before it is sent: what it did once it need not do again.
            (Some(KeyAction::HistorySearchAccept | KeyAction::HistorySearchExecute), _) => {
                return self.accept();
            }
            (Some(KeyAction::HistorySearchCancel | KeyAction::AppInterrupt), _) => return self.cancel(),
            (None, Key { code: KeyCode::Up, .. }) if is_dialog => search.newer(),
            (None, Key { code: KeyCode::Down, .. }) if is_dialog => search.older(),
            (_, Key { code: KeyCode::Char(char), ctrl: false, alt: false, sup: false, .. }) => {
                search.push(char);
            }
            (_, Key { code: KeyCode::Backspace, .. }) => {
                if !search.pop() {
                    return self.cancel();
                }
            }
            // Whoever moves the caret, or edits, has found what was looked for.
            _ => return Some(SearchStep::Passed(self.search.take()?.accept())),
        }
        Some(SearchStep::GoesOn)
    }

    fn accept(&mut self) -> Option<SearchStep> {
        Some(SearchStep::Ended(self.search.take()?.accept()))
    }

    fn cancel(&mut self) -> Option<SearchStep> {
        Some(SearchStep::Ended(self.search.take()?.cancel()))
    }

    /// Takes text that was pasted while a search is under way; false where there is no search.
    pub(super) fn search_paste(&mut self, text: &str) -> bool {
        let Some(search) = &mut self.search else { return false };
        text.chars().filter(|char| !char.is_control()).take(200).for_each(|char| search.push(char));
        true
    }
}

/// How a search is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchKind {
    /// In the row of the prompt.
    Row,
    /// As a list, in fullscreen.
    List,
}

/// What came of a key in a search.
#[derive(Debug)]
pub(super) enum SearchStep {
    /// It goes on.
    GoesOn,
    /// It is over, and this is the prompt.
    Ended(Draft),
    /// The same, and the key is for the prompt.
    Passed(Draft),
}
