//! Which key does what, where: a table from context and keys to an action.
//!
//! Contexts and actions have the names that `keybindings.json` uses. A key is looked up in the contexts that are active,
//! the innermost first; a key that begins a chord in any of them waits for the next one. Keys that edit the text
//! (`input::edit_command`) are not here: they cannot be bound to anything else.

use std::time::{Duration, Instant};

use crate::key::{InputEvent, Key, KeyCode};

mod action;
mod defaults;
mod keystroke;
mod overrides;
#[cfg(test)]
mod tests;

pub use action::{Action, Context};
pub use keystroke::{parse_chord, parse_key, show_chord};

/// Within this time a second Ctrl+D exits.
pub const EXIT_TIME: Duration = Duration::from_millis(800);
/// Within this time a second Escape clears the input or opens the rewind menu.
pub const ESCAPE_TIME: Duration = Duration::from_millis(800);
/// Within this time a second Ctrl+X Ctrl+K stops all agents.
pub const KILL_AGENTS_TIME: Duration = Duration::from_secs(3);

/// What a file of key bindings begins with.
pub const KEY_BINDINGS_TEMPLATE: &str = r#"{
  "$schema": "https://www.schemastore.org/claude-code-keybindings.json",
  "bindings": [
    {
      "context": "Chat",
      "bindings": {
        "ctrl+g": "chat:externalEditor"
      }
    }
  ]
}
"#;

/// The table, and a chord that has begun.
#[derive(Debug, Clone)]
pub struct Keymap {
    bindings: Vec<Binding>,
    /// Commands that keys of the prompt run, as they would be typed.
    commands: Vec<CommandBinding>,
    /// Keys that edit the text by themselves and were unbound: they do nothing.
    disabled: Vec<(Context, Vec<Key>)>,
    pending: Vec<Key>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Binding {
    context: Context,
    chord: Vec<Key>,
    action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CommandBinding {
    chord: Vec<Key>,
    line: String,
}

/// What a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// It does this.
    Action(Action),
    /// It runs a command: [`Keymap::command`] has it.
    Command(usize),
    /// It begins a chord: the next key says what it does.
    Pending,
    /// It ended a chord that nothing is bound to, or was unbound, and does nothing.
    Nothing,
    /// Nothing is bound to it.
    Unbound,
}

impl Default for Keymap {
    fn default() -> Self {
        Self {
            bindings: defaults::bindings(),
            commands: Vec::new(),
            disabled: Vec::new(),
            pending: Vec::new(),
        }
    }
}

impl Keymap {
    /// Makes the default table with what a `keybindings.json` changes in it. What cannot be used is told, one sentence
    /// each, and everything else applies.
    pub fn with_overrides(json: &str) -> (Self, Vec<String>) {
        let mut keymap = Self::default();
        let warnings = overrides::apply(json, &mut keymap);
        (keymap, warnings)
    }

    /// Says what a key does in these contexts, the innermost first.
    pub fn resolve(&mut self, contexts: &[Context], key: Key) -> Resolution {
        self.pending.push(key);
        let is_active = |binding: &&Binding| contexts.contains(&binding.context);
        let begins = |binding: &Binding| {
            binding.chord.len() > self.pending.len() && binding.chord.starts_with(&self.pending)
        };
        let is_command_begun = |command: &CommandBinding| {
            command.chord.len() > self.pending.len() && command.chord.starts_with(&self.pending)
        };
        let has_commands = contexts.contains(&Context::Chat);
        if self.bindings.iter().filter(is_active).any(begins)
            || has_commands && self.commands.iter().any(is_command_begun)
        {
            return Resolution::Pending;
        }
        let pending = std::mem::take(&mut self.pending);
        let in_context = |context: &Context| {
            let bound =
                self.bindings.iter().find(|binding| binding.context == *context && binding.chord == pending);
            let action = bound.map(|binding| Resolution::Action(binding.action));
            let command = || self.commands.iter().position(|command| command.chord == pending);
            action.or_else(|| (*context == Context::Chat).then(command).flatten().map(Resolution::Command))
        };
        match contexts.iter().find_map(in_context) {
            Some(resolution) => resolution,
            None if pending.len() > 1 => Resolution::Nothing,
            None => {
                let is_disabled = self
                    .disabled
                    .iter()
                    .any(|(context, chord)| contexts.contains(context) && *chord == pending);
                if is_disabled { Resolution::Nothing } else { Resolution::Unbound }
            }
        }
    }

    /// Says what something typed is bound to, for dialogs and panels: none where it does nothing, or begins a chord. While
    /// somebody types into a field, letters are letters.
    pub(crate) fn action_of(
        &mut self,
        contexts: &[Context],
        event: &InputEvent,
        is_typing: bool,
    ) -> Option<Option<Action>> {
        let InputEvent::Key(key) = event else { return Some(None) };
        if is_typing && is_letter(*key) {
            return Some(None);
        }
        match self.resolve(contexts, *key) {
            Resolution::Action(action) => Some(Some(action)),
            Resolution::Command(_) | Resolution::Pending | Resolution::Nothing => None,
            Resolution::Unbound => Some(None),
        }
    }

    /// Returns a command that a key runs, as it would be typed.
    pub fn command(&self, idx: usize) -> Option<&str> {
        self.commands.get(idx).map(|command| command.line.as_str())
    }

    /// Returns the keys of a chord that has begun, to be shown while the next one is waited for.
    pub fn pending(&self) -> Option<String> {
        (!self.pending.is_empty()).then(|| show_chord(&self.pending))
    }

    /// Forgets a chord that has begun.
    pub fn cancel_chord(&mut self) {
        self.pending.clear();
    }

    /// Takes what the file of the person's own keys says, none where there is no such file; returns what cannot be used. Where it
    /// cannot be read, keys stay as they are.
    pub(crate) fn take_overrides(&mut self, read: Result<Option<String>, String>) -> Vec<String> {
        let (keymap, warnings) = match read {
            Ok(Some(text)) => Self::with_overrides(&text),
            Ok(None) => (Self::default(), Vec::new()),
            Err(why) => return vec![why],
        };
        *self = keymap;
        warnings
    }

    /// Returns the keys that do something, as people read them, for hints and help.
    pub fn keys_of(&self, context: Context, action: Action) -> Vec<String> {
        let bound =
            self.bindings.iter().filter(|binding| binding.context == context && binding.action == action);
        bound.map(|binding| show_chord(&binding.chord)).collect()
    }
}

/// Tells whether a key is a character to be typed.
pub(crate) fn is_letter(key: Key) -> bool {
    matches!(key.code, KeyCode::Char(_)) && !key.ctrl && !key.alt && !key.sup
}

/// Something that takes two presses within a time.
#[derive(Debug, Clone, Default)]
pub struct DoublePress {
    first: Option<Instant>,
}

impl DoublePress {
    /// Notes a press and tells whether it is the second within this time.
    pub fn press(&mut self, now: Instant, time: Duration) -> bool {
        let is_second = self.first.is_some_and(|first| now.saturating_duration_since(first) <= time);
        self.first = (!is_second).then_some(now);
        is_second
    }

    /// Forgets a first press, since something else was pressed.
    pub fn forget(&mut self) {
        self.first = None;
    }
}
