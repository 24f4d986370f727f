//! The menu under the prompt: commands behind `/`, files and the like behind `@`, paths in commands of the shell.
//!
//! After every key it is asked anew what the caret is in. Commands are matched at once. Files are found elsewhere; until
//! the answer for what stands at the caret is there, nothing of an older answer can be chosen.

use std::sync::Arc;

use loci_engine::{CommandAction, CommandRegistry};

use super::{App, Effect};
use crate::input::{
    CommandItem, FileAnswer, FileSource, Mention, Menu, MenuItem, MenuStyles, Token, TokenKind,
    match_commands, match_emoji,
};
use crate::key::{Key, KeyCode};
use crate::layout::{faint, marked};
use crate::text::{Row, Style};

/// Commands whose argument is a directory.
const TAKE_DIRECTORIES: [&str; 2] = ["add-dir", "cd"];
/// The most items that are seen at once.
const MOST_ROWS: usize = 8;

/// The menu, and what it is about.
#[derive(Debug, Default)]
pub(super) struct Completion {
    menu: Menu,
    /// What stands at the caret.
    token: Option<Token>,
    /// The items are the answer to an older question.
    is_stale: bool,
    /// Tab was pressed before the answer was there.
    accepts_next: bool,
    /// Enter was pressed behind that Tab: what the answer makes of the prompt is sent.
    submits_next: bool,
    /// Something was chosen by hand.
    is_moved: bool,
    /// The token that no menu is wanted for: its kind and where it begins.
    dismissed: Option<(TokenKind, usize)>,
    /// Whether the project is being read for the first time.
    is_reading: bool,
    /// A file was just put in, with a blank behind it that nobody typed: where that ends in the line.
    blank_end: Option<usize>,
}

impl Completion {
    /// Tells whether the menu is seen.
    pub(super) fn is_open(&self) -> bool {
        self.token.is_some() && !self.menu.is_empty()
    }

    /// Tells whether an answer about what stands at the caret is under way.
    pub(super) fn awaits(&self) -> bool {
        self.token.is_some() && self.is_stale
    }

    /// Returns the rows of the menu.
    pub(super) fn rows(&mut self, width: u16, height: u16) -> Vec<Row> {
        if self.token.is_none() {
            return Vec::new();
        }
        let n_rows = usize::from(height / 3).clamp(1, MOST_ROWS);
        let styles = MenuStyles { label: Style::default(), detail: faint(), selected: marked() };
        let rows = self.menu.rows(usize::from(width), n_rows, &styles);
        let is_command = self.token.as_ref().is_some_and(|token| token.kind == TokenKind::Command);
        match (rows.is_empty(), self.is_reading) {
            (true, true) => vec![crate::layout::line("  reading the project…", faint())],
            (true, false) if is_command => vec![crate::layout::line("  no command is called so", faint())],
            _ => rows,
        }
    }

    fn close(&mut self) {
        *self = Self { dismissed: self.dismissed.take(), blank_end: self.blank_end, ..Self::default() };
    }
}

impl App {
    /// Looks again at what the caret is in; called after everything that may change the prompt.
    pub(super) fn refresh_completion(&mut self) -> Vec<Effect> {
        let commands = &self.session.commands;
        let is_skill = |name: &str| {
            commands.find_in_terminal(name).is_some_and(|command| command.action == CommandAction::Skill)
        };
        let is_prompt = |name: &str| {
            commands.find_in_terminal(name).is_some_and(|command| command.action == CommandAction::McpPrompt)
        };
        let takes_directory = |name: &str| {
            let command = commands.find_in_terminal(name);
            command.is_some_and(|command| TAKE_DIRECTORIES.contains(&command.name.as_str()))
        };
        let mut prompt_command = None;
        let token = match self.recall.is_searching() {
            true => None,
            false => {
                self.prompt.token(is_skill).or_else(|| self.prompt.directory(takes_directory)).or_else(|| {
                    let (command, token) = self.prompt.argument(is_prompt)?;
                    prompt_command = Some(command);
                    Some(token)
                })
            }
        };
        if token == self.completion.token && token.is_some() {
            return Vec::new();
        }
        let place = token.as_ref().map(|token| (token.kind, token.range.start));
        if self.completion.dismissed.is_some() && self.completion.dismissed == place {
            self.completion.close();
            return Vec::new();
        }
        self.completion.dismissed = None;
        let Some(token) = token else {
            self.completion.close();
            return Vec::new();
        };
        (self.completion.accepts_next, self.completion.submits_next) = (false, false);
        match token.kind {
            TokenKind::Command => {
                self.list_commands(token);
                Vec::new()
            }
            TokenKind::Emoji => {
                let found = match_emoji(&token.query).into_iter().filter(|_| self.interface.has_emoji);
                let item = |(name, picture): (&str, &str)| MenuItem {
                    label: format!(":{name}:"),
                    detail: picture.to_owned(),
                    value: picture.to_owned(),
                };
                let items: Vec<MenuItem> = found.map(item).collect();
                match items.is_empty() {
                    true => self.completion.close(),
                    false => self.completion.show(token, items, true),
                }
                Vec::new()
            }
            TokenKind::Mention | TokenKind::ShellPath | TokenKind::Directory => self.ask_files(token),
            TokenKind::Argument => {
                let (command, written) = (prompt_command.unwrap_or_default(), token.query.clone());
                self.await_answer(token);
                vec![Effect::CompleteArgument { command, written }]
            }
        }
    }

    /// Takes other commands. A menu of them shows what there is now, unless somebody is choosing in it.
    pub(super) fn take_commands(&mut self, commands: Arc<CommandRegistry>) -> Vec<Effect> {
        self.session.commands = commands;
        if self.completion.is_moved {
            return Vec::new();
        }
        self.completion.token.take_if(|token| token.kind == TokenKind::Command);
        self.refresh_completion()
    }

    fn list_commands(&mut self, token: Token) {
        let items = self.command_items();
        let matches = match_commands(&items, &token.query);
        let found = matches.places.iter().filter_map(|place| items.get(*place)).map(|item| {
            let aliases = match item.aliases.is_empty() {
                true => String::new(),
                false => format!(" ({})", item.aliases.join(", ")),
            };
            let hint = if item.argument_hint.is_empty() { "" } else { " " };
            MenuItem {
                label: format!("/{}{aliases}{hint}{}", item.name, item.argument_hint),
                detail: loci_stdx::single_line(&item.description, 200),
                value: item.name.clone(),
            }
        });
        let found: Vec<MenuItem> = found.collect();
        let selects_first = matches.is_sure && !token.query.is_empty();
        self.completion.show(token, found, selects_first);
    }

    fn command_items(&self) -> Vec<CommandItem> {
        let items = self.session.commands.iter_in_terminal().map(|command| CommandItem {
            name: command.name.clone(),
            aliases: command.aliases.clone(),
            description: command.description.clone(),
            argument_hint: command.argument_hint.clone(),
            is_hidden: false,
            is_skill: command.action == CommandAction::Skill,
        });
        items.collect()
    }

    /// Notes what stands at the caret and has no answer yet; tells whether it is something new.
    fn await_answer(&mut self, token: Token) -> bool {
        let begins = self
            .completion
            .token
            .as_ref()
            .is_none_or(|last| (last.kind, last.range.start) != (token.kind, token.range.start));
        if begins {
            self.completion.close();
        }
        self.completion.token = Some(token);
        self.completion.is_stale = true;
        begins
    }

    fn ask_files(&mut self, token: Token) -> Vec<Effect> {
        let (kind, query) = (token.kind, token.query.clone());
        let begins = self.await_answer(token);
        let source = match &self.interface.file_suggestion {
            Some(command) => FileSource::Command(command.clone()),
            None => FileSource::Project(self.interface.ignored_files),
        };
        let mut actions = vec![Effect::AskFiles { source, kind, query }];
        if begins && kind == TokenKind::Mention && self.session.is_started {
            actions.push(Effect::ListMentions);
        }
        actions
    }

    /// Takes what was found for what stands, or stood, at the caret.
    pub(super) fn files_found(&mut self, answer: FileAnswer) -> Vec<Effect> {
        let Some(token) = self.completion.token.clone() else { return Vec::new() };
        // The answer to an older question would put something in that nobody typed for.
        if token.kind != answer.kind || token.query != answer.query {
            return Vec::new();
        }
        if let Some(failure) = answer.failure {
            self.flash(failure);
        }
        let items =
            answer.found.into_iter().map(|(value, detail)| MenuItem { label: value.clone(), detail, value });
        let selects_first = token.kind == TokenKind::Mention && !token.query.is_empty();
        let items: Vec<MenuItem> = items.collect();
        let accepts = self.completion.accepts_next && !items.is_empty();
        let submits = self.completion.submits_next;
        self.completion.show(token, items, selects_first);
        self.completion.is_reading = answer.is_reading;
        let mut actions = match accepts {
            true => self.accept_completion(),
            false => Vec::new(),
        };
        if submits {
            actions.extend(self.submit_prompt());
            actions.extend(self.refresh_completion());
        }
        actions
    }

    /// Takes what else can be mentioned.
    pub(super) fn mentions_listed(&mut self, mentions: Vec<Mention>) -> Vec<Effect> {
        if self.mentions == mentions {
            return Vec::new();
        }
        self.mentions = mentions;
        // The question at hand may have another answer now.
        match self.completion.token.take().filter(|token| token.kind == TokenKind::Mention) {
            Some(token) => {
                let mut actions = vec![Effect::SetMentions(self.mentions.clone())];
                self.completion.token = Some(token.clone());
                actions.extend(self.ask_files(token));
                actions
            }
            None => vec![Effect::SetMentions(self.mentions.clone())],
        }
    }

    /// Puts in what is chosen, or the first; where the answer is still under way, as soon as it is there.
    pub(super) fn accept_completion(&mut self) -> Vec<Effect> {
        if self.completion.is_stale {
            self.completion.accepts_next = true;
            return Vec::new();
        }
        let Some(token) = self.completion.token.clone() else { return Vec::new() };
        let Some(item) = self.completion.menu.accepted() else { return Vec::new() };
        let text = token.replacement(&item.value);
        self.completion.close();
        self.prompt.replace_in_line(token.range, &text);
        let has_blank = token.kind == TokenKind::Mention && text.ends_with(' ');
        self.completion.blank_end = has_blank.then(|| self.prompt.n_bytes_before());
        self.refresh_completion()
    }

    /// Has lines of the file that was just put in stand directly behind its name: `@file#L10-20`.
    pub(super) fn join_line_range(&mut self, key: Key) {
        let blank_end = self.completion.blank_end.take();
        if key.code == KeyCode::Char('#') && blank_end == Some(self.prompt.n_bytes_before()) {
            self.prompt.remove_blank_before();
        }
    }

    /// Takes Enter while the menu is open; none where what is typed is to be sent as it stands.
    ///
    /// Behind a Tab that waits for its answer Enter waits with it; a second one sends what stands there.
    pub(super) fn enter_in_menu(&mut self) -> Option<Vec<Effect>> {
        if self.completion.accepts_next && !self.completion.submits_next {
            self.completion.submits_next = true;
            return Some(Vec::new());
        }
        if self.completion.is_stale || !self.completion.is_open() {
            return None;
        }
        let token = self.completion.token.clone()?;
        let value = self.completion.menu.selected()?.value.clone();
        match token.kind {
            TokenKind::Command => {
                let command = self.session.commands.find_in_terminal(&value);
                let needs_more = command.is_some_and(|command| command.argument_hint.starts_with('<'));
                let is_whole = command.is_some_and(|command| {
                    command.name == token.query || command.aliases.contains(&token.query)
                });
                if is_whole && !needs_more {
                    return None;
                }
                if needs_more {
                    return Some(self.accept_completion());
                }
                self.completion.close();
                self.prompt.replace_in_line(token.range, &format!("/{value}"));
                None
            }
            // What is typed whole is sent.
            TokenKind::Mention if value == token.query && !self.completion.is_moved => None,
            TokenKind::Mention | TokenKind::Emoji => Some(self.accept_completion()),
            TokenKind::ShellPath | TokenKind::Directory | TokenKind::Argument if self.completion.is_moved => {
                Some(self.accept_completion())
            }
            TokenKind::ShellPath | TokenKind::Directory | TokenKind::Argument => None,
        }
    }

    /// Puts a picture in the place of an emoji's whole name that was just typed.
    pub(super) fn replace_emoji_name(&mut self) {
        if let Some((range, picture)) = self.prompt.emoji_name().filter(|_| self.interface.has_emoji) {
            self.prompt.replace_in_line(range, picture);
        }
    }

    /// Chooses another item.
    pub(super) fn move_in_menu(&mut self, choose: impl FnOnce(&mut Menu)) -> Vec<Effect> {
        choose(&mut self.completion.menu);
        self.completion.is_moved = true;
        Vec::new()
    }

    /// Closes the menu until something else is typed.
    pub(super) fn dismiss_completion(&mut self) -> Vec<Effect> {
        let dismissed = self.completion.token.as_ref().map(|token| (token.kind, token.range.start));
        self.completion.close();
        self.completion.dismissed = dismissed;
        Vec::new()
    }

    /// Wants no menu for what stands at the caret, which was not typed: ↑ and ↓ go on to other prompts.
    pub(super) fn dismiss_completion_at_caret(&mut self) {
        let token = self.prompt.token(|_| false);
        self.completion.close();
        self.completion.dismissed = token.map(|token| (token.kind, token.range.start));
    }

    /// Completes a command of the shell from those that were run before.
    pub(super) fn complete_shell(&mut self) -> Vec<Effect> {
        if let Some(command) = self.recall.shell_command(&self.prompt.draft().display()) {
            self.prompt.set_shell_text(&command);
        }
        Vec::new()
    }

    /// Returns the row that says what a command takes, while nothing of it is typed.
    pub(super) fn argument_hint(&self) -> Option<Row> {
        if self.prompt.is_shell() || self.prompt.n_bytes() > 100 {
            return None;
        }
        let text = self.prompt.draft().display();
        let name = text.strip_prefix('/')?.strip_suffix(' ')?;
        let command = self
            .session
            .commands
            .find_in_terminal(name)
            .filter(|command| !command.argument_hint.is_empty())?;
        Some(crate::layout::line(&format!("  /{name} {}", command.argument_hint), faint()))
    }
}

impl Completion {
    fn show(&mut self, token: Token, items: Vec<MenuItem>, selects_first: bool) {
        let is_same = self.token.as_ref().is_some_and(|last| last.range.start == token.range.start);
        if self.is_moved && is_same {
            self.menu.replace_items(items);
        } else {
            self.menu = Menu::new(items, selects_first);
            self.is_moved = false;
        }
        self.token = Some(token);
        (self.is_stale, self.is_reading) = (false, false);
        (self.accepts_next, self.submits_next) = (false, false);
    }
}
