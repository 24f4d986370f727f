//! What was typed before: recalled with Up and Down, searched with Ctrl+R.

use super::{App, Effect};
use crate::block::NoticeLevel;
use crate::input::{
    Draft, EditCommand, EditOutcome, HistoryNews, HistorySearch, PromptHistory, SearchStyles, past_prompt,
};
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

impl App {
    /// Notes a draft that was sent, or put away, for the time it is wanted again.
    pub(super) fn remember(&mut self, draft: &Draft) -> Option<Effect> {
        let session = self.session.id.as_deref();
        // When it was is noted by whoever has a clock.
        let prompt = past_prompt(draft.clone(), 0, &self.options.cwd, session);
        self.recall.history.add(prompt.clone()).then_some(Effect::Remember(prompt))
    }

    /// Notes a draft that was thrown away, for as long as this session runs: it is in no file.
    pub(super) fn set_aside(&mut self, draft: Draft) {
        let session = self.session.id.as_deref();
        self.recall.history.set_aside(past_prompt(draft, 0, &self.options.cwd, session));
    }

    /// Notes what is still typed, or was put aside: nobody said that it is to be thrown away.
    pub(super) fn remember_drafts(&mut self) -> Vec<Effect> {
        self.prompt.take_all().iter().filter_map(|draft| self.remember(draft)).collect()
    }

    /// Takes what the history file says.
    pub(super) fn history_news(&mut self, news: HistoryNews) {
        match news {
            HistoryNews::Project(prompts) => {
                self.recall.history.set_earlier(prompts);
                self.recall.is_loaded = true;
                for _ in 0..std::mem::take(&mut self.recall.n_early) {
                    self.step_back();
                }
            }
            HistoryNews::Everywhere { prompts, .. } => {
                if let Some(search) = &mut self.recall.search {
                    search.set_prompts(prompts);
                }
            }
            HistoryNews::Failed(why) => {
                if !std::mem::replace(&mut self.recall.has_told_trouble, true) {
                    self.notice(NoticeLevel::Warning, format!("The input history is not kept: {why}"));
                }
            }
        }
    }

    /// Up: a row up in the text; at its top what is queued comes back, else the prompt before.
    pub(super) fn go_up(&mut self) -> Vec<Effect> {
        if self.prompt.apply(EditCommand::Up) != EditOutcome::Nothing {
            return Vec::new();
        }
        if self.queue.is_waiting() {
            return self.take_back_queue();
        }
        if !self.step_back() && !self.recall.is_loaded {
            self.recall.n_early += 1;
        }
        Vec::new()
    }

    /// Goes to the prompt before, if there is one.
    fn step_back(&mut self) -> bool {
        let found = self.recall.history.previous(&self.prompt.draft());
        let is_found = found.map(|draft| self.prompt.set_draft(&draft)).is_some();
        if is_found {
            self.dismiss_completion_at_caret();
        }
        is_found
    }

    /// Forgets steps back that wait for the history: something else was pressed.
    pub(super) fn forget_early_steps(&mut self) {
        self.recall.n_early = 0;
    }

    /// Down: a row down in the text; at its bottom the prompt behind.
    pub(super) fn go_down(&mut self) -> Vec<Effect> {
        if self.prompt.apply(EditCommand::Down) == EditOutcome::Nothing
            && let Some(draft) = self.recall.history.next(&self.prompt.draft())
        {
            self.prompt.set_draft(&draft);
            self.dismiss_completion_at_caret();
        }
        Vec::new()
    }

    /// Begins to search what was typed before.
    pub(super) fn begin_search(&mut self) -> Vec<Effect> {
        let session = self.session.id.as_deref();
        let search = HistorySearch::new(self.prompt.draft(), &self.options.cwd, session);
        self.recall.search = Some(search);
        vec![Effect::LoadHistory]
    }

    /// Takes a key while a search is under way; `action` is what it is bound to.
    pub(super) fn search_key(&mut self, action: Option<KeyAction>, key: Key) -> Vec<Effect> {
        let is_dialog = self.is_fullscreen();
        let Some(search) = &mut self.recall.search else { return Vec::new() };
        match (action, key) {
            // The list gives a prompt to be looked at again, and never sends one.
            (_, Key { code: KeyCode::Esc, .. }) if is_dialog => self.end_search(HistorySearch::cancel),
            (Some(KeyAction::HistorySearchExecute), _) if is_dialog => {
                self.end_search(HistorySearch::accept);
            }
            (Some(KeyAction::HistorySearchNext | KeyAction::HistorySearch), _) => search.older(),
            (Some(KeyAction::HistorySearchCycleScope), _) => search.cycle_scope(),
            (Some(KeyAction::HistorySearchAccept), _) => self.end_search(HistorySearch::accept),
            (Some(KeyAction::HistorySearchCancel | KeyAction::AppInterrupt), _) => {
                self.end_search(HistorySearch::cancel);
            }
            (Some(KeyAction::HistorySearchExecute), _) => {
                let has_found = search.current().is_some();
                self.end_search(HistorySearch::accept);
                if has_found && let Some(draft) = self.prompt.enter() {
                    return self.submit_draft(draft);
                }
            }
            (None, Key { code: KeyCode::Up, .. }) if is_dialog => search.newer(),
            (None, Key { code: KeyCode::Down, .. }) if is_dialog => search.older(),
            (_, Key { code: KeyCode::Char(char), ctrl: false, alt: false, sup: false, .. }) => {
                search.push(char);
            }
            (_, Key { code: KeyCode::Backspace, .. }) => {
                if !search.pop() {
                    self.end_search(HistorySearch::cancel);
                }
            }
            // Whoever moves the caret, or edits, has found what was looked for.
            _ => {
                self.end_search(HistorySearch::accept);
                return self.chat_key(key);
            }
        }
        Vec::new()
    }

    /// Takes text that was pasted while a search is under way; none where there is no search.
    pub(super) fn search_paste(&mut self, text: &str) -> bool {
        let Some(search) = &mut self.recall.search else { return false };
        text.chars().filter(|char| !char.is_control()).take(200).for_each(|char| search.push(char));
        true
    }

    fn end_search(&mut self, end: impl FnOnce(HistorySearch) -> Draft) {
        if let Some(search) = self.recall.search.take() {
            self.prompt.set_draft(&end(search));
        }
    }
}
