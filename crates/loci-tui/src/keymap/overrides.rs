//! What a `keybindings.json` changes.
//!
//! ```text
//! {"bindings":[{"context":"Chat","bindings":{"ctrl+e":"chat:externalEditor","ctrl+u":null}}]}
//! ```

use serde_json::Value;

use super::action::{Action, Context};
use super::{Binding, CommandBinding, Keymap, parse_chord, show_chord};
use crate::key::Key;

/// Keys that cannot be bound: they interrupt, exit, and are Enter.
const RESERVED: &[&str] = &["ctrl+c", "ctrl+d", "ctrl+m"];

/// Keys that somebody else may take before loci sees them.
const TAKEN: &[(&str, &str)] = &[
    ("ctrl+b", "tmux takes it for itself: press it twice there"),
    ("ctrl+a", "GNU screen takes it for itself"),
    ("ctrl+z", "it suspends programs, and loci can be suspended no more"),
];

/// What stands before the name of a command that a key runs.
const COMMAND: &str = "command:";

/// Actions that are known, and do nothing here.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("attachments:", "pictures are chips in the text, which the keys of the text reach and delete"),
    ("footer:", "nothing below the prompt is chosen by keys: `/tasks` and `/agents` list what works"),
    ("plugin:favorite", "there are no favourites"),
    ("settings:retry", "what is shown of the usage is read anew with the panel"),
    ("settings:search", "whatever is typed there is searched for"),
    ("voice:", "there is no dictation"),
];

/// Changes a table as a file says, and returns a sentence for each entry that cannot be used, or may not do what is hoped.
pub(super) fn apply(json: &str, keymap: &mut Keymap) -> Vec<String> {
    let value: Value = match serde_json::from_str(json) {
        Ok(value) => value,
        Err(error) => {
            return vec![format!("keybindings.json is not JSON, and nothing of it applies: {error}")];
        }
    };
    let Some(blocks) = value.get("bindings").and_then(Value::as_array) else {
        return vec!["keybindings.json has no list `bindings`".to_owned()];
    };
    let mut warnings = Vec::new();
    for block in blocks {
        apply_block(block, keymap, &mut warnings);
    }
    warnings
}

fn apply_block(block: &Value, keymap: &mut Keymap, warnings: &mut Vec<String>) {
    let name = block.get("context").and_then(Value::as_str).unwrap_or_default();
    let Some(context) = Context::from_name(name) else {
        warnings.push(format!("keybindings.json names a context that does not exist: `{name}`"));
        return;
    };
    let Some(entries) = block.get("bindings").and_then(Value::as_object) else {
        warnings.push(format!("keybindings.json has no `bindings` for the context `{name}`"));
        return;
    };
    let mut seen: Vec<Vec<Key>> = Vec::new();
    for (keys, action) in entries {
        match entry(context, keys, action) {
            Ok((chord, action)) => {
                if seen.contains(&chord) {
                    warnings
                        .push(format!("keybindings.json binds `{}` twice in `{name}`", show_chord(&chord)));
                }
                if action.is_some()
                    && let Some((taken, why)) =
                        TAKEN.iter().find(|(taken, _)| parse_chord(taken).as_ref() == Some(&chord))
                {
                    warnings
                        .push(format!("keybindings.json, context `{name}`: `{taken}` is bound, but {why}"));
                }
                if let Some(Bound::Action(action)) = action
                    && let Some((_, why)) =
                        WITHOUT_EFFECT.iter().find(|(prefix, _)| action.name().starts_with(prefix))
                {
                    let action = action.name();
                    warnings
                        .push(format!("keybindings.json, context `{name}`: `{action}` does nothing, {why}"));
                }
                seen.push(chord.clone());
                bind(keymap, context, chord, action);
            }
            Err(warning) => warnings.push(format!("keybindings.json, context `{name}`: {warning}")),
        }
    }
}

/// Binds a chord, or unbinds it. A key that was bound to nothing loses what it does to the text.
fn bind(keymap: &mut Keymap, context: Context, chord: Vec<Key>, bound: Option<Bound>) {
    let n_before = keymap.bindings.len();
    keymap.commands.retain(|command| context != Context::Chat || command.chord != chord);
    keymap.bindings.retain(|binding| binding.context != context || binding.chord != chord);
    keymap.disabled.retain(|disabled| disabled.0 != context || disabled.1 != chord);
    match bound {
        Some(Bound::Action(action)) => keymap.bindings.push(Binding { context, chord, action }),
        Some(Bound::Command(line)) => keymap.commands.push(CommandBinding { chord, line }),
        None if keymap.bindings.len() == n_before => keymap.disabled.push((context, chord)),
        None => {}
    }
}

/// What a chord is bound to.
enum Bound {
    Action(Action),
    Command(String),
}

fn entry(context: Context, keys: &str, action: &Value) -> Result<(Vec<Key>, Option<Bound>), String> {
    let chord = parse_chord(keys).ok_or_else(|| format!("`{keys}` is no key"))?;
    if RESERVED.iter().any(|reserved| parse_chord(reserved).as_ref() == Some(&chord)) {
        return Err(format!("`{keys}` is reserved and cannot be bound"));
    }
    match action {
        Value::Null => Ok((chord, None)),
        Value::String(name) => {
            let bound = match name.strip_prefix(COMMAND) {
                Some(_) if context != Context::Chat => {
                    return Err(format!(
                        "`{name}` is a command, and keys of the context `Chat` alone run such"
                    ));
                }
                Some(command) => is_command_name(command).then(|| Bound::Command(format!("/{command}"))),
                None => Action::from_name(name).map(Bound::Action),
            };
            bound.map(|bound| (chord, Some(bound))).ok_or_else(|| format!("`{name}` is no action"))
        }
        _ => Err(format!("`{keys}` is bound to neither an action nor null")),
    }
}

fn is_command_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || matches!(char, ':' | '_' | '-'))
}
