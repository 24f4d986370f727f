//! The menu under the prompt: commands behind `/`, files and the like behind `@`, paths in commands of the shell.
//!
//! After every key it is asked anew what the caret is in. Commands are matched at once. Files are found elsewhere; until
//! the answer for what stands at the caret is there, nothing of an older answer can be chosen.

use loci_engine::{CommandAction, CommandRegistry, SlashCommand};

use super::Effect;
use super::prompt_area::PromptContext;
use super::prompt_box::PromptBox;
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
    /// What else than files can be mentioned.
    mentions: Vec<Mention>,
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
        *self = Self {
            dismissed: self.dismissed.take(),
            blank_end: self.blank_end,
            mentions: std::mem::take(&mut self.mentions),
            ..Self::default()
        };
    }
}

impl Completion {
    /// Looks again at what the caret is in; called after everything that may change the prompt.
    pub(super) fn refresh(&mut self, input: &PromptBox, ctx: &PromptContext<'_>) -> Vec<Effect> {
        let mut prompt_command = None;
        let has_action = |name: &str, action| {
            ctx.commands.find_in_terminal(name).is_some_and(|command| command.action == action)
        };
        let takes_directory = |name: &str| {
            let command = ctx.commands.find_in_terminal(name);
            command.is_some_and(|command| TAKE_DIRECTORIES.contains(&command.name.as_str()))
        };
        let token = input
            .token(|name| has_action(name, CommandAction::Skill))
            .or_else(|| input.directory(takes_directory))
            .or_else(|| {
                let (command, token) = input.argument(|name| has_action(name, CommandAction::McpPrompt))?;
                prompt_command = Some(command);
                Some(token)
            });
        if token == self.token && token.is_some() {
            return Vec::new();
        }
        let place = token.as_ref().map(|token| (token.kind, token.range.start));
        if self.dismissed.is_some() && self.dismissed == place {
            self.close();
            return Vec::new();
        }
        let Some(token) = token else {
            self.end();
            return Vec::new();
        };
        self.dismissed = None;
        (self.accepts_next, self.submits_next) = (false, false);
        match token.kind {
            TokenKind::Command => self.list_commands(token, ctx.commands),
            TokenKind::Emoji => self.list_emoji(token, ctx.interface.has_emoji),
            TokenKind::Mention | TokenKind::ShellPath | TokenKind::Directory => {
                return self.ask_files(token, ctx);
            }
            TokenKind::Argument => {
                let (command, written) = (prompt_command.unwrap_or_default(), token.query.clone());
                self.await_answer(token);
                return vec![Effect::CompleteArgument { command, written }];
            }
        }
        Vec::new()
    }

    /// Ends: the caret is in nothing that can be completed.
    pub(super) fn end(&mut self) {
        self.dismissed = None;
        self.close();
    }

    /// Other commands are there. A menu of them is to show what there is now, unless somebody is choosing in it; tells whether
    /// it is looked at again.
    pub(super) fn commands_changed(&mut self) -> bool {
        if !self.is_moved {
            self.token.take_if(|token| token.kind == TokenKind::Command);
        }
        !self.is_moved
    }

    fn list_commands(&mut self, token: Token, commands: &CommandRegistry) {
        let items: Vec<CommandItem> =
            commands.iter_in_terminal().map(|command| command_item(command)).collect();
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
        self.show(token, found, selects_first);
    }

    fn list_emoji(&mut self, token: Token, has_emoji: bool) {
        let found = match_emoji(&token.query).into_iter().filter(|_| has_emoji);
        let item = |(name, picture): (&str, &str)| MenuItem {
            label: format!(":{name}:"),
            detail: picture.to_owned(),
            value: picture.to_owned(),
        };
        let items: Vec<MenuItem> = found.map(item).collect();
        match items.is_empty() {
            true => self.close(),
            false => self.show(token, items, true),
        }
    }

    /// Notes what stands at the caret and has no answer yet; tells whether it is something new.
    fn await_answer(&mut self, token: Token) -> bool {
        let begins = self
            .token
            .as_ref()
            .is_none_or(|last| (last.kind, last.range.start) != (token.kind, token.range.start));
        if begins {
            self.close();
        }
        self.token = Some(token);
        self.is_stale = true;
        begins
    }

    fn ask_files(&mut self, token: Token, ctx: &PromptContext<'_>) -> Vec<Effect> {
        let (kind, query) = (token.kind, token.query.clone());
        let begins = self.await_answer(token);
        let source = match &ctx.interface.file_suggestion {
            Some(command) => FileSource::Command(command.clone()),
            None => FileSource::Project(ctx.interface.ignored_files),
        };
        let mut effects = vec![Effect::AskFiles { source, kind, query }];
        if begins && kind == TokenKind::Mention && ctx.is_started {
            effects.push(Effect::ListMentions);
        }
        effects
    }

    /// Takes what was found for what stands, or stood, at the caret; tells what was wanted as soon as that is there.
    pub(super) fn files_found(&mut self, answer: FileAnswer) -> Awaited {
        let Some(token) = self.token.clone() else { return Awaited::default() };
        // The answer to an older question would put something in that nobody typed for.
        if token.kind != answer.kind || token.query != answer.query {
            return Awaited::default();
        }
        let items =
            answer.found.into_iter().map(|(value, detail)| MenuItem { label: value.clone(), detail, value });
        let selects_first = token.kind == TokenKind::Mention && !token.query.is_empty();
        let items: Vec<MenuItem> = items.collect();
        let accepts = self.accepts_next && !items.is_empty();
        let submits = self.submits_next;
        self.show(token, items, selects_first);
        self.is_reading = answer.is_reading;
        Awaited { failure: answer.failure, accepts, submits }
    }

    /// Takes what else can be mentioned.
    pub(super) fn mentions_listed(&mut self, mentions: Vec<Mention>, ctx: &PromptContext<'_>) -> Vec<Effect> {
        if self.mentions == mentions {
            return Vec::new();
        }
        self.mentions = mentions;
        let mut effects = vec![Effect::SetMentions(self.mentions.clone())];
        // The question at hand may have another answer now.
        if let Some(token) = self.token.take().filter(|token| token.kind == TokenKind::Mention) {
            self.token = Some(token.clone());
            effects.extend(self.ask_files(token, ctx));
        }
        effects
    }

    /// Puts in what is chosen, or the first; where the answer is still under way, as soon as it is there.
    pub(super) fn accept(&mut self, input: &mut PromptBox, ctx: &PromptContext<'_>) -> Vec<Effect> {
        if self.is_stale {
            self.accepts_next = true;
            return Vec::new();
        }
        let Some(token) = self.token.clone() else { return Vec::new() };
        let Some(item) = self.menu.accepted() else { return Vec::new() };
        let text = token.replacement(&item.value);
        self.close();
        input.replace_in_line(token.range, &text);
        let has_blank = token.kind == TokenKind::Mention && text.ends_with(' ');
        self.blank_end = has_blank.then(|| input.n_bytes_before());
        self.refresh(input, ctx)
    }

    /// Has lines of the file that was just put in stand directly behind its name: `@file#L10-20`.
    pub(super) fn join_line_range(&mut self, key: Key, input: &mut PromptBox) {
        let blank_end = self.blank_end.take();
        if key.code == KeyCode::Char('#') && blank_end == Some(input.n_bytes_before()) {
            input.remove_blank_before();
        }
    }

    /// Takes Enter while the menu is open; none where what is typed is to be sent as it stands.
    ///
    /// Behind a Tab that waits for its answer Enter waits with it; a second one sends what stands there.
    pub(super) fn enter(&mut self, input: &mut PromptBox, ctx: &PromptContext<'_>) -> Option<Vec<Effect>> {
        if self.accepts_next && !self.submits_next {
            self.submits_next = true;
            return Some(Vec::new());
        }
        if self.is_stale || !self.is_open() {
            return None;
        }
        let token = self.token.clone()?;
        let value = self.menu.selected()?.value.clone();
        match token.kind {
            TokenKind::Command => {
                let command = ctx.commands.find_in_terminal(&value);
                let needs_more = command.is_some_and(|command| command.argument_hint.starts_with('<'));
                let is_whole = command.is_some_and(|command| {
                    command.name == token.query || command.aliases.contains(&token.query)
                });
                if is_whole && !needs_more {
                    return None;
                }
                if needs_more {
                    return Some(self.accept(input, ctx));
                }
                self.close();
                input.replace_in_line(token.range, &format!("/{value}"));
                None
            }
            // What is typed whole is sent.
            TokenKind::Mention if value == token.query && !self.is_moved => None,
            TokenKind::Mention | TokenKind::Emoji => Some(self.accept(input, ctx)),
            TokenKind::ShellPath | TokenKind::Directory | TokenKind::Argument if self.is_moved => {
                Some(self.accept(input, ctx))
            }
            TokenKind::ShellPath | TokenKind::Directory | TokenKind::Argument => None,
        }
    }

    /// Chooses another item.
    pub(super) fn choose(&mut self, choose: impl FnOnce(&mut Menu)) {
        choose(&mut self.menu);
        self.is_moved = true;
    }

    /// Closes the menu until something else is typed.
    pub(super) fn dismiss(&mut self) {
        let dismissed = self.token.as_ref().map(|token| (token.kind, token.range.start));
        self.close();
        self.dismissed = dismissed;
    }

    /// Wants no menu for what stands at the caret, which was not typed: ↑ and ↓ go on to other prompts.
    pub(super) fn dismiss_at_caret(&mut self, input: &PromptBox) {
        let token = input.token(|_| false);
        self.close();
        self.dismissed = token.map(|token| (token.kind, token.range.start));
    }
}

/// What was wanted as soon as an answer is there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Awaited {
    /// Why nothing was found.
    pub(super) failure: Option<String>,
    /// The first is put in.
    pub(super) accepts: bool,
    /// What the prompt is then is sent.
    pub(super) submits: bool,
}

/// Returns the row that says what a command takes, while nothing of it is typed.
pub(super) fn argument_hint(input: &PromptBox, commands: &CommandRegistry) -> Option<Row> {
    if input.is_shell() || input.n_bytes() > 100 {
        return None;
    }
    let text = input.draft().display();
    let name = text.strip_prefix('/')?.strip_suffix(' ')?;
    let command = commands.find_in_terminal(name).filter(|command| !command.argument_hint.is_empty())?;
    Some(crate::layout::line(&format!("  /{name} {}", command.argument_hint), faint()))
}

fn command_item(command: &SlashCommand) -> CommandItem {
    CommandItem {
        name: command.name.clone(),
        aliases: command.aliases.clone(),
        description: command.description.clone(),
        argument_hint: command.argument_hint.clone(),
        is_hidden: false,
        is_skill: command.action == CommandAction::Skill,
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
