//! `/help`: the commands, and the keys.

use std::sync::Arc;

use loci_engine::{CommandRegistry, CommandSource, SlashCommand};

use super::{FilteredList, ListStep, Panel, PanelContext, PanelStep, PanelView, Tabs};
use crate::app::{Action, UiAction};
use crate::key::InputEvent;
use crate::keymap::{Action as KeyAction, Context, Keymap};
use crate::layout::{code, faint, line};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, Style, sanitize_line, width};

/// Commands and keys, each with a filter.
#[derive(Debug)]
pub(crate) struct HelpPanel {
    version: String,
    tabs: Tabs,
    commands: Vec<Entry>,
    keys: Vec<Entry>,
    lists: [FilteredList; 2],
}

/// A name, and what it does.
#[derive(Debug)]
struct Entry {
    name: String,
    text: String,
    /// What the filter looks at.
    searched: String,
    /// What is put into the prompt when it is chosen.
    typed: Option<String>,
}

impl HelpPanel {
    /// Shows what there is.
    pub(crate) fn new(version: &str, registry: &CommandRegistry, keymap: &Keymap) -> Self {
        let commands: Vec<Entry> = registry.iter_in_terminal().map(command_entry).collect();
        let keys: Vec<Entry> = key_entries(keymap);
        Self {
            version: version.to_owned(),
            tabs: Tabs::new(&["Commands", "Keys"]),
            lists: [FilteredList::new(commands.len()), FilteredList::new(keys.len())],
            commands,
            keys,
        }
    }

    fn entries(&self) -> &[Entry] {
        if self.tabs.shown() == 0 { &self.commands } else { &self.keys }
    }

    fn refilter(&mut self) {
        let (entries, list) = match self.tabs.shown() {
            0 => (&self.commands, &mut self.lists[0]),
            _ => (&self.keys, &mut self.lists[1]),
        };
        list.refilter(entries.iter().map(|entry| entry.searched.as_str()));
    }
}

impl Panel for HelpPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return PanelStep::Close;
        }
        if self.tabs.handle(ctx.action) {
            return PanelStep::Stay;
        }
        match self.lists[self.tabs.shown()].handle(event, ctx) {
            ListStep::Filtered => self.refilter(),
            ListStep::Chosen(place) => {
                let typed = self.entries().get(place).and_then(|entry| entry.typed.clone());
                return typed.map_or(PanelStep::Stay, |text| {
                    PanelStep::CloseWith(vec![Action::Ui(UiAction::SetPrompt(text))])
                });
            }
            ListStep::Moved | ListStep::Unknown => {}
        }
        PanelStep::Stay
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let hint = match self.tabs.shown() {
            0 => "type to search · Enter to put it into the prompt · Tab keys · Esc close",
            _ => "type to search · Tab commands · Esc close",
        };
        let mut view = PanelView::new(&format!("loci {} · help", self.version), hint);
        view.head.push(self.tabs.row(size.width));
        let list = &self.lists[self.tabs.shown()];
        view.push_field("Search: ", list.field());
        let room = view.room(size);
        let entries = self.entries();
        let longest = entries.iter().map(|entry| width(&entry.name)).max().unwrap_or(0);
        let column = longest.min(usize::from(size.width) / 2);
        view.body =
            list.rows(room, |place| entries.get(place).map_or_else(Row::default, |entry| entry.row(column)));
        if list.len() == 0 {
            view.body = vec![line("Nothing fits", faint())];
        }
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Help, Context::Tabs, Context::Select, Context::Global]
    }

    fn is_typing(&self) -> bool {
        true
    }
}

impl Entry {
    fn row(&self, column: usize) -> Row {
        let blanks = (column + 2).saturating_sub(width(&self.name)).max(1);
        Row::new(vec![
            Span::styled(self.name.clone(), code()),
            Span::plain(" ".repeat(blanks)),
            Span::styled(self.text.clone(), Style::default()),
        ])
    }
}

fn command_entry(command: &Arc<SlashCommand>) -> Entry {
    let aliases: String = command.aliases.iter().map(|alias| format!(", /{alias}")).collect();
    let hint = match command.argument_hint.is_empty() {
        true => String::new(),
        false => format!(" {}", command.argument_hint),
    };
    let source = match command.source {
        CommandSource::Builtin => "",
        CommandSource::Managed => " (managed)",
        CommandSource::User => " (yours)",
        CommandSource::Project => " (project)",
        CommandSource::Plugin => " (plugin)",
        CommandSource::Mcp => " (MCP)",
    };
    let name = sanitize_line(&format!("/{}{aliases}{hint}", command.name));
    let text = sanitize_line(&format!("{}{source}", command.description));
    Entry { searched: format!("{name} {text}"), typed: Some(format!("/{} ", command.name)), name, text }
}

/// The keys that can be bound, and those that are fixed.
fn key_entries(keymap: &Keymap) -> Vec<Entry> {
    let bound = KEYS.iter().map(|(context, action, text)| {
        let keys = keymap.keys_of(*context, *action).join(", ");
        (if keys.is_empty() { "(unbound)".to_owned() } else { keys }, *text)
    });
    let fixed = FIXED.iter().map(|(keys, text)| ((*keys).to_owned(), *text));
    bound
        .chain(fixed)
        .map(|(name, text)| Entry {
            searched: format!("{name} {text}"),
            name,
            text: text.to_owned(),
            typed: None,
        })
        .collect()
}

/// Keys that `keybindings.json` can move, with what they do.
const KEYS: &[(Context, KeyAction, &str)] = &[
    (Context::Chat, KeyAction::ChatSubmit, "Send the prompt; while loci works it is queued"),
    (Context::Chat, KeyAction::ChatNewline, "Begin a new line; \\ before Enter does the same"),
    (
        Context::Chat,
        KeyAction::ChatCancel,
        "Interrupt; twice: clear the prompt, or go back to an earlier one",
    ),
    (Context::Global, KeyAction::AppInterrupt, "Interrupt; else clear the prompt; twice: leave"),
    (Context::Global, KeyAction::AppExit, "Leave, when pressed twice on an empty prompt"),
    (Context::Chat, KeyAction::ChatCycleMode, "Change what runs without asking"),
    (Context::Chat, KeyAction::HistoryPrevious, "Earlier prompts; takes queued messages back"),
    (Context::Chat, KeyAction::HistorySearch, "Search earlier prompts"),
    (Context::Chat, KeyAction::ChatStash, "Put the prompt aside, or bring it back"),
    (Context::Chat, KeyAction::ChatExternalEditor, "Write the prompt in your editor"),
    (Context::Global, KeyAction::AppToggleTodos, "Show or hide the task list"),
    (Context::Global, KeyAction::AppToggleTranscript, "Read the whole transcript"),
    (Context::Chat, KeyAction::ChatUndo, "Undo the last edit"),
    (Context::Chat, KeyAction::ChatClearInput, "Redraw; twice: with all that was said lately"),
    (Context::Global, KeyAction::AppSuspend, "Suspend; `fg` brings loci back"),
];

/// Keys of the editor, which are not bound.
const FIXED: &[(&str, &str)] = &[
    ("?", "Explain the keys, on an empty prompt"),
    ("/", "Commands, at the beginning of the prompt"),
    ("@", "Name a file"),
    ("Ctrl+A, Ctrl+E", "Beginning and end of the line"),
    ("Alt+B, Alt+F", "A word back, a word on"),
    ("Ctrl+K, Ctrl+U, Ctrl+W", "Cut to the end, to the beginning, the word before"),
    ("Ctrl+Y, Alt+Y", "Put back what was cut; what was cut before that"),
];

#[cfg(test)]
mod tests {
    use super::super::testing::Shown;
    use super::*;

    fn panel() -> HelpPanel {
        let mut registry = CommandRegistry::builtin();
        let hostile = SlashCommand {
            name: "evil".into(),
            description: "a\u{1b}]0;owned\u{7}b 日本語".into(),
            source: CommandSource::Project,
            ..SlashCommand::clone(registry.find("compact").unwrap())
        };
        registry.append(hostile);
        HelpPanel::new("1", &registry, &Keymap::default())
    }

    #[test]
    fn commands_and_keys_are_listed_at_every_width() {
        for width in [20, 50, 80, 120] {
            let mut shown = Shown::new(panel(), width, 12);
            shown.assert_clean();
            assert!(shown.text().contains("/clear"), "{width}: {}", shown.text());
            shown.type_text("evil");
            assert!(shown.text().contains("/evil"), "{width}: {}", shown.text());
            shown.assert_clean();
            shown.action(KeyAction::TabsNext);
            assert!(shown.text().contains("Enter"), "{width}: {}", shown.text());
        }
    }

    #[test]
    fn chosen_command_is_put_into_the_prompt() {
        let mut shown = Shown::new(panel(), 80, 12);
        shown.type_text("summary");
        let step = shown.action(KeyAction::SelectAccept);
        assert_eq!(step, PanelStep::CloseWith(vec![Action::Ui(UiAction::SetPrompt("/compact ".into()))]));
        assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
    }

    #[test]
    fn tiny_window_keeps_the_marked_command() {
        let mut shown = Shown::new(panel(), 20, 4);
        shown.type_text("exit");
        assert!(shown.text().contains("❯ /exit"), "{}", shown.text());
    }
}
