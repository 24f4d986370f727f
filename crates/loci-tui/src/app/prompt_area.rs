//! The place where is typed: the prompt, what completes it, and what was typed before.
//!
//! It knows nothing of the session but what [`PromptContext`] says, and sends nothing itself: drafts that are complete are taken
//! from it.

use std::path::Path;
use std::time::Duration;

use loci_engine::CommandRegistry;

use super::Effect;
use super::completion::{Awaited, Completion, argument_hint};
use super::preferences::Preferences;
use super::prompt_box::PromptBox;
use super::recall::{Recall, SearchKind, SearchStep};
use super::session_mirror::SessionMirror;
use crate::input::{
    Draft, EditCommand, EditOutcome, FileAnswer, HistoryNews, InputMode, Mention, PastedImage, PictureSource,
    VimMode, VimStep, edit_command, image_paths,
};
use crate::interface_settings::InterfaceSettings;
use crate::key::{Key, KeyCode};
use crate::keymap::{Context, EXIT_TIME, Keymap, Resolution};
use crate::layout::{cells, cut, faint, line};
use crate::screen::Size;
use crate::text::Row;

/// What the prompt has to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct PromptContext<'a> {
    pub(super) commands: &'a CommandRegistry,
    pub(super) interface: &'a InterfaceSettings,
    pub(super) cwd: &'a Path,
    pub(super) home: &'a Path,
    /// The id of the session.
    pub(super) session: Option<&'a str>,
    /// Whether the session is there.
    pub(super) is_started: bool,
}

impl<'a> PromptContext<'a> {
    pub(super) fn new(preferences: &'a Preferences, session: &'a SessionMirror) -> Self {
        Self {
            commands: &session.commands,
            interface: &preferences.interface,
            cwd: &preferences.options.cwd,
            home: &preferences.options.home,
            session: session.id(),
            is_started: session.is_started,
        }
    }
}

/// The prompt, and what is around it.
#[derive(Debug, Default)]
pub(super) struct PromptArea {
    pub(super) input: PromptBox,
    pub(super) completion: Completion,
    pub(super) recall: Recall,
    /// Whether what is typed is sent as soon as its pictures are read.
    submits_when_read: bool,
    /// Whether the keys are explained below.
    pub(super) is_help_shown: bool,
    /// The key that would do something if it were pressed again, and when it was pressed.
    armed: Option<(Key, Duration)>,
}

impl PromptArea {
    /// Waits for a key to be pressed again.
    pub(super) fn arm(&mut self, key: Key, now: Duration) {
        self.armed = Some((key, now));
    }

    /// Waits for no key any more.
    pub(super) fn disarm(&mut self) {
        self.armed = None;
    }

    /// Tells whether this key is waited for.
    pub(super) fn is_armed(&self, key: Key) -> bool {
        self.armed.is_some_and(|(armed, _)| armed == key)
    }

    /// Returns the code of the key that is waited for.
    pub(super) fn armed_code(&self) -> Option<KeyCode> {
        self.armed.map(|(key, _)| key.code)
    }

    /// Forgets a key that was waited for too long.
    pub(super) fn forget_old(&mut self, now: Duration) {
        self.armed = self.armed.filter(|(_, since)| now < *since + EXIT_TIME);
    }

    /// Returns when it wants to hear of the time.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.armed.map(|(_, since)| since + EXIT_TIME)
    }

    /// Looks again at what the caret is in; called after everything that may change the prompt.
    pub(super) fn refresh(&mut self, ctx: &PromptContext<'_>) -> Vec<Effect> {
        match self.recall.is_searching() {
            true => {
                self.completion.end();
                Vec::new()
            }
            false => self.completion.refresh(&self.input, ctx),
        }
    }

    /// Puts in what is chosen of the menu.
    pub(super) fn accept_completion(&mut self, ctx: &PromptContext<'_>) -> Vec<Effect> {
        self.completion.accept(&mut self.input, ctx)
    }

    /// Takes Enter while the menu is open; none where what is typed is to be sent as it stands.
    pub(super) fn enter_in_menu(&mut self, ctx: &PromptContext<'_>) -> Option<Vec<Effect>> {
        self.completion.enter(&mut self.input, ctx)
    }

    /// Takes what was found for what stands, or stood, at the caret.
    pub(super) fn files_found(
        &mut self,
        answer: FileAnswer,
        ctx: &PromptContext<'_>,
    ) -> (Awaited, Vec<Effect>) {
        let awaited = self.completion.files_found(answer);
        let effects = if awaited.accepts { self.accept_completion(ctx) } else { Vec::new() };
        (awaited, effects)
    }

    /// Takes what else can be mentioned.
    pub(super) fn mentions_listed(&mut self, mentions: Vec<Mention>, ctx: &PromptContext<'_>) -> Vec<Effect> {
        self.completion.mentions_listed(mentions, ctx)
    }

    /// Takes up that there are other commands.
    pub(super) fn commands_changed(&mut self, ctx: &PromptContext<'_>) -> Vec<Effect> {
        match self.completion.commands_changed() {
            true => self.refresh(ctx),
            false => Vec::new(),
        }
    }

    /// What is typed ends the help, and what waits for something else.
    fn begin_edit(&mut self) {
        self.armed = None;
        self.is_help_shown = false;
        self.submits_when_read = false;
        self.recall.forget_early_steps();
    }

    /// Takes a key that nothing else wants.
    pub(super) fn edit(&mut self, key: Key, ctx: &PromptContext<'_>) -> Vec<Effect> {
        self.begin_edit();
        if self.accept_suggestion(key) {
            return Vec::new();
        }
        match key == Key::plain(KeyCode::Tab) {
            true if self.completion.awaits() => return self.accept_completion(ctx),
            true if self.input.is_shell() => {
                self.complete_shell();
                return Vec::new();
            }
            _ => {}
        }
        self.completion.join_line_range(key, &mut self.input);
        self.input.edit(key);
        if key.code == KeyCode::Char(':') {
            self.replace_emoji_name(ctx.interface.has_emoji);
        }
        if !self.input.is_empty() {
            self.input.suggest(None);
        }
        Vec::new()
    }

    /// Edits the text, whichever key means it.
    pub(super) fn edit_by(&mut self, command: EditCommand) {
        self.begin_edit();
        self.input.type_command(command);
    }

    /// Puts what is typed aside, or brings it back; returns what is said.
    pub(super) fn stash(&mut self) -> Option<&'static str> {
        let had_text = !self.input.is_empty();
        self.input.stash();
        match (had_text, self.input.is_empty()) {
            (true, _) => Some("The prompt is put aside · it comes back once something else was sent"),
            (false, true) => Some("Nothing is put aside · Ctrl+S puts what is typed aside"),
            (false, false) => None,
        }
    }

    /// Hands the prompt to the person's editor, below an answer where one is wanted; or says why not.
    pub(super) fn edit_elsewhere(&self, answer: Option<&str>) -> Result<Effect, &'static str> {
        let draft = self.input.draft();
        if draft.is_reading() {
            return Err("The picture is still being read");
        }
        let answer = answer.filter(|_| draft.mode == InputMode::Prompt).map(str::to_owned);
        Ok(Effect::EditDraft { draft, answer })
    }

    /// Takes a key that puts a suggestion into the prompt; false where there is none, or the key is another.
    fn accept_suggestion(&mut self, key: Key) -> bool {
        let is_accepting = key == Key::plain(KeyCode::Tab) || key == Key::plain(KeyCode::Right);
        is_accepting && self.input.accept_suggestion()
    }

    /// Completes a command of the shell from those that were run before.
    fn complete_shell(&mut self) {
        if let Some(command) = self.recall.shell_command(&self.input.draft().display()) {
            self.input.set_shell_text(&command);
        }
    }

    /// Puts a picture in the place of an emoji's whole name that was just typed.
    fn replace_emoji_name(&mut self, has_emoji: bool) {
        if let Some((range, picture)) = self.input.emoji_name().filter(|_| has_emoji) {
            self.input.replace_in_line(range, picture);
        }
    }

    /// Takes a key for vim; none where it is for the keymap, or there is no vim.
    pub(super) fn vim_key(&mut self, key: Key, now: Duration) -> Option<VimKey> {
        let before = self.input.vim_mode()?;
        let is_menu_escape = key == Key::plain(KeyCode::Esc)
            && before == VimMode::Insert
            && (self.completion.is_open() || self.is_help_shown);
        if is_menu_escape {
            return None;
        }
        let step = self.input.vim_key(key, now);
        let mode = self.input.vim_mode().filter(|mode| *mode != before);
        if step != VimStep::Passed {
            self.armed = None;
            self.submits_when_read = false;
            self.is_help_shown = step == VimStep::Help && !self.is_help_shown;
            if step != VimStep::HistoryPrevious {
                self.recall.forget_early_steps();
            }
        }
        Some(VimKey { step, mode })
    }

    /// A row up in the text; false at its top.
    pub(super) fn up(&mut self) -> bool {
        self.input.apply(EditCommand::Up) != EditOutcome::Nothing
    }

    /// Goes to the prompt before; where there is none yet, as soon as there is.
    pub(super) fn step_back(&mut self) {
        if let Some(draft) = self.recall.previous(&self.input.draft()) {
            self.input.set_draft(&draft);
            self.completion.dismiss_at_caret(&self.input);
        }
    }

    /// Down: a row down in the text; at its bottom the prompt behind.
    pub(super) fn down(&mut self) {
        if self.input.apply(EditCommand::Down) == EditOutcome::Nothing
            && let Some(draft) = self.recall.next(&self.input.draft())
        {
            self.input.set_draft(&draft);
            self.completion.dismiss_at_caret(&self.input);
        }
    }

    /// Takes what the history file says; returns what is wrong with it, once.
    pub(super) fn take_history(&mut self, news: HistoryNews) -> Option<String> {
        match news {
            HistoryNews::Project(prompts) => {
                for _ in 0..self.recall.take_project(prompts) {
                    self.step_back();
                }
                None
            }
            HistoryNews::Everywhere { prompts, .. } => {
                self.recall.take_everywhere(prompts);
                None
            }
            HistoryNews::Failed(why) => self.recall.note_trouble().then_some(why),
        }
    }

    /// Begins to search what was typed before.
    pub(super) fn begin_search(&mut self, ctx: &PromptContext<'_>) -> Effect {
        self.recall.begin_search(self.input.draft(), ctx);
        Effect::LoadHistory
    }

    /// Takes a key of a search; tells whether it is for the prompt after all.
    pub(super) fn search_key(&mut self, key: Key, keymap: &mut Keymap, kind: SearchKind) -> bool {
        let action = match keymap.resolve(&[Context::HistorySearch, Context::Global], key) {
            Resolution::Action(action) => Some(action),
            Resolution::Command(_) | Resolution::Pending | Resolution::Nothing => return false,
            Resolution::Unbound => None,
        };
        match self.recall.search_key(action, key, kind) {
            Some(SearchStep::Ended(draft)) => self.input.set_draft(&draft),
            Some(SearchStep::Passed(draft)) => {
                self.input.set_draft(&draft);
                return true;
            }
            Some(SearchStep::GoesOn) | None => {}
        }
        false
    }

    /// Notes what is still typed, or was put aside: nobody said that it is to be thrown away.
    pub(super) fn remember_drafts(&mut self, ctx: &PromptContext<'_>) -> Vec<Effect> {
        self.input.take_all().iter().filter_map(|draft| self.recall.remember(draft, ctx)).collect()
    }

    /// Empties the prompt. What stood there comes back with ↑, and is in no file.
    pub(super) fn set_aside(&mut self, ctx: &PromptContext<'_>) {
        let draft = self.input.take();
        self.armed = None;
        self.recall.set_aside(draft, ctx);
    }

    /// Empties the prompt, and keeps what stood there in the history.
    pub(super) fn put_away(&mut self, ctx: &PromptContext<'_>) -> Option<Effect> {
        let draft = self.input.take();
        self.armed = None;
        self.recall.remember(&draft, ctx)
    }

    /// Takes pasted text, for a search where one is under way; paths of pictures alone, as files that are dropped on the window, become pictures.
    pub(super) fn paste(&mut self, text: &str, ctx: &PromptContext<'_>) -> Vec<Effect> {
        if self.recall.search_paste(text) {
            return Vec::new();
        }
        (self.armed, self.submits_when_read) = (None, false);
        let paths = match self.input.is_shell() {
            true => None,
            false => image_paths(text, ctx.cwd, ctx.home),
        };
        let Some(paths) = paths else {
            self.input.paste(text);
            return Vec::new();
        };
        let mut effects = Vec::new();
        for (idx, (written, path)) in paths.into_iter().enumerate() {
            if idx > 0 {
                self.input.insert(" ");
            }
            match self.input.begin_image(Some(&written)) {
                Some(number) => {
                    effects.push(Effect::ReadPicture { number, source: PictureSource::File(path) });
                }
                None => self.input.insert(&written),
            }
        }
        effects
    }

    /// Pastes the picture that is on the clipboard.
    pub(super) fn paste_picture(&mut self) -> Option<Effect> {
        self.submits_when_read = false;
        let number = self.input.begin_image(None)?;
        Some(Effect::ReadPicture { number, source: PictureSource::Clipboard })
    }

    /// Keeps a draft whose pictures are still being read; it is sent as soon as they are.
    pub(super) fn submit_when_read(&mut self, draft: &Draft) {
        self.input.set_draft(draft);
        self.submits_when_read = true;
    }

    /// Takes a picture that was read, or that there is none; returns what is to be sent now.
    pub(super) fn picture_read(&mut self, number: u32, image: Option<PastedImage>) -> Option<Draft> {
        // What was to be sent with it is not sent without it.
        self.submits_when_read &= image.is_some();
        self.input.finish_image(number, image);
        if !self.submits_when_read || self.input.draft().is_reading() {
            return None;
        }
        self.submits_when_read = false;
        Some(self.input.take())
    }

    /// Returns the prompt as it is before a key that deletes.
    pub(super) fn before_deleting(&self, key: Key) -> Option<String> {
        deletes(key).then(|| self.input.draft().display())
    }

    /// Returns what was deleted since.
    pub(super) fn deleted_since(&self, before: &str) -> Option<String> {
        let after = self.input.draft().display();
        let start = common(before.chars(), after.chars());
        let end = common(before[start..].chars().rev(), after[start..].chars().rev());
        let deleted = &before[start..before.len() - end];
        let named = if deleted == " " { "space" } else { deleted };
        (!deleted.is_empty()).then(|| named.to_owned())
    }

    /// Returns its rows, and where the caret stands.
    pub(super) fn rows(
        &mut self,
        size: Size,
        commands: &CommandRegistry,
        kind: SearchKind,
    ) -> (Vec<Row>, (usize, u16)) {
        let Size { width, height } = size;
        if kind == SearchKind::List
            && let Some(shown) = self.recall.search_rows(width, height)
        {
            return shown;
        }
        if let Some((row, column)) = self.recall.search_row(width) {
            let mut rows = vec![row];
            if self.input.vim_mode().is_some() && self.recall.has_empty_query() {
                rows.push(cut(&line("  Esc, then i, then / opens the commands instead", faint()), width));
            }
            return (rows, (0, column));
        }
        let (mut rows, caret) = self.input.rows(width, usize::from(height / 3).max(1));
        rows.extend(argument_hint(&self.input, commands).map(|row| cut(&row, width)));
        rows.extend(self.completion.rows(width, height));
        if self.is_help_shown {
            let more = if kind == SearchKind::List { HELP_FULLSCREEN } else { &[] };
            rows.extend(HELP.iter().chain(more).flat_map(|keys| help_rows(keys, width)));
        }
        (rows, caret)
    }

    /// Tells whether it takes the room of what stands below it.
    pub(super) fn is_tall(&self) -> bool {
        self.completion.is_open() || self.is_help_shown
    }
}

/// What came of a key for vim.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct VimKey {
    pub(super) step: VimStep,
    /// The mode, where it is another now.
    pub(super) mode: Option<VimMode>,
}

/// What `?` shows, a group of keys a row.
const HELP: &[&[&str]] = &[
    &["/ commands", "! run a shell command", "!! give it the terminal", "@ name a file"],
    &["Enter send", "\\ Enter or Shift+Enter newline", "↑ earlier prompts", "Ctrl+R search them"],
    &["Esc interrupt", "Esc Esc clear, or go back", "Shift+Tab change the mode", "Ctrl+T tasks"],
    &["Ctrl+O transcript", "Ctrl+B to the background", "Ctrl+V picture", "Alt+P model", "Alt+T thinking"],
    &["Ctrl+G editor", "Ctrl+S stash", "Ctrl+L redraw", "Ctrl+Z suspend", "Ctrl+D leave"],
];

/// What `?` shows beside it in fullscreen.
const HELP_FULLSCREEN: &[&[&str]] = &[
    &["PgUp PgDn scroll", "Ctrl+Home beginning", "Ctrl+End end", "Ctrl+O transcript, search"],
    &["wheel scroll", "click expand", "drag select and copy", "Shift+drag as your terminal does"],
];

/// Returns a group of keys in as many rows as it needs.
fn help_rows(keys: &[&str], width: u16) -> Vec<Row> {
    let mut rows: Vec<String> = Vec::new();
    for key in keys {
        match rows.last_mut() {
            Some(row) if cells(row) + 3 + cells(key) <= width => row.push_str(&format!(" · {key}")),
            _ => rows.push(format!("  {key}")),
        }
    }
    rows.iter().map(|row| cut(&line(row, faint()), width)).collect()
}

fn deletes(key: Key) -> bool {
    matches!(
        edit_command(key),
        Some(
            EditCommand::DeleteLeft
                | EditCommand::DeleteRight
                | EditCommand::DeleteWordRight
                | EditCommand::KillWordLeft
                | EditCommand::KillToLineStart
                | EditCommand::KillToLineEnd
        )
    )
}

/// Returns how many bytes two texts have in common at their beginnings.
fn common(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::AppOptions;
    use crate::input::TokenKind;

    /// A prompt without an application around it.
    struct Typing {
        area: PromptArea,
        preferences: Preferences,
        session: SessionMirror,
    }

    impl Typing {
        fn new() -> Self {
            Self {
                area: PromptArea::default(),
                preferences: Preferences::new(AppOptions::default()),
                session: SessionMirror::new(),
            }
        }

        fn key(&mut self, code: KeyCode) -> Vec<Effect> {
            let ctx = PromptContext::new(&self.preferences, &self.session);
            let mut effects = self.area.edit(Key::plain(code), &ctx);
            effects.extend(self.area.refresh(&ctx));
            effects
        }

        fn text(&mut self, text: &str) -> Vec<Effect> {
            text.chars().flat_map(|c| self.key(KeyCode::Char(c))).collect()
        }

        fn enter(&mut self) -> Option<Vec<Effect>> {
            let ctx = PromptContext::new(&self.preferences, &self.session);
            self.area.enter_in_menu(&ctx)
        }
    }

    #[test]
    fn menu_of_commands_follows_what_is_typed_and_enter_puts_in_what_is_chosen() {
        let mut it = Typing::new();
        it.text("/keyb");
        assert!(it.area.completion.is_open() && it.area.is_tall());
        assert_eq!(it.enter(), None, "it is sent as it stands then");
        assert_eq!(it.area.input.marked_text(), "/keybindings|");
    }

    #[test]
    fn file_that_tab_waits_for_is_put_in_once_it_is_found() {
        let mut it = Typing::new();
        let asked = it.text("@ma");
        assert!(matches!(asked.last(), Some(Effect::AskFiles { query, .. }) if query == "ma"), "{asked:?}");
        it.key(KeyCode::Tab);
        let answer = FileAnswer {
            kind: TokenKind::Mention,
            query: "ma".to_owned(),
            found: vec![("main.rs".to_owned(), String::new())],
            is_reading: false,
            failure: None,
        };
        let ctx = PromptContext::new(&it.preferences, &it.session);
        let (awaited, _) = it.area.files_found(answer, &ctx);
        assert!(awaited.accepts && !awaited.submits);
        assert_eq!(it.area.input.marked_text(), "@main.rs |");
    }

    #[test]
    fn prompt_with_a_picture_waits_for_it_and_is_not_sent_without() {
        let mut it = Typing::new();
        let number = it.area.input.begin_image(None).unwrap();
        let draft = it.area.input.take();
        it.area.submit_when_read(&draft);
        assert_eq!(it.area.picture_read(number, None), None);
    }

    #[test]
    fn second_press_counts_for_a_while_and_not_behind_other_keys() {
        let mut it = Typing::new();
        let escape = Key::plain(KeyCode::Esc);
        it.area.arm(escape, Duration::ZERO);
        assert_eq!(it.area.deadline(), Some(EXIT_TIME));
        it.key(KeyCode::Char('x'));
        assert!(!it.area.is_armed(escape), "something was typed");
        it.area.arm(escape, Duration::ZERO);
        it.area.forget_old(EXIT_TIME);
        assert_eq!((it.area.is_armed(escape), it.area.deadline()), (false, None));
    }

    #[test]
    fn what_a_key_deleted_is_named() {
        let mut it = Typing::new();
        it.text("one two");
        let before = it.area.before_deleting(Key::plain(KeyCode::Backspace)).unwrap();
        it.key(KeyCode::Backspace);
        assert_eq!(it.area.deleted_since(&before).as_deref(), Some("o"));
        assert_eq!(it.area.before_deleting(Key::plain(KeyCode::Char('x'))), None);
    }
}
