//! Questions of `loci plugin` at a terminal: the options of a plugin that is turned on, and whether something is to go.
//!
//! They are asked on standard error and read from standard input; where either is no terminal, nothing is asked, and what is
//! missing is said.

use std::io::{self, IsTerminal};

use loci_app::UserError;
use loci_app::plugins::{needed_options, parse_option_value, store_options, unset_options};
use loci_core::plugin::{OptionSpec, PluginId};
use serde_json::Value;

use crate::config::{SettingsContext, write};
use crate::print::{self, print_message};

/// How often one option is asked for.
const MOST_TRIES: usize = 3;

/// Asks for the options of a plugin that nobody has set, once `said` is written; elsewhere names those that it needs.
pub(super) fn ask_options(ctx: &SettingsContext, id: &PluginId, said: String) -> Result<String, UserError> {
    let unset = unset_options(ctx, id);
    if unset.is_empty() || !is_terminal() {
        return Ok(said + &needed_options(ctx, id));
    }
    write(&said)?;
    let mut out = String::new();
    for spec in &unset {
        match ask_option(spec)
            .map_err(|error| UserError::new(format!("The terminal cannot be read: {error}")))?
        {
            Answer::Value(value) => out += &store_options(ctx, id, &[(spec.clone(), value)])?,
            Answer::Nothing => {}
            Answer::GaveUp => {
                out += &needed_options(&SettingsContext::new(&ctx.env), id);
                break;
            }
        }
    }
    Ok(out)
}

enum Answer {
    Value(Value),
    /// An empty line: the default counts, or nothing.
    Nothing,
    GaveUp,
}

fn ask_option(spec: &OptionSpec) -> io::Result<Answer> {
    print_message(&question(spec));
    for _ in 0..MOST_TRIES {
        let Some(word) = read_word(spec)? else { break };
        if word.is_empty() {
            if !spec.is_required || spec.default.is_some() {
                return Ok(Answer::Nothing);
            }
            print_message("It is needed; Ctrl+D leaves it for later");
            continue;
        }
        match parse_option_value(spec, &word) {
            Ok(value) => return Ok(Answer::Value(value)),
            Err(why) => print_message(&format!("What was typed {why}")),
        }
    }
    Ok(Answer::GaveUp)
}

/// Returns what is asked: the title, what it is for, and what counts where nothing is typed.
fn question(spec: &OptionSpec) -> String {
    let about = if spec.description.is_empty() { String::new() } else { format!(": {}", spec.description) };
    let several = if spec.is_multiple { ", several with commas between them" } else { "" };
    let otherwise = match (&spec.default, spec.is_required) {
        (Some(_), _) if spec.is_sensitive => "; Enter leaves its default".to_owned(),
        (Some(default), _) => format!("; Enter leaves {default}"),
        (None, true) => String::new(),
        (None, false) => "; Enter leaves it out".to_owned(),
    };
    format!("{}{about} ({}{several}{otherwise})", spec.title, spec.kind.as_str())
}

fn read_word(spec: &OptionSpec) -> io::Result<Option<String>> {
    match spec.is_sensitive {
        true => Ok(read_secret(&format!("{} (it is not shown): ", spec.key))?.map(|it| it.trim().to_owned())),
        false => read_line(&format!("{}: ", spec.key)),
    }
}

#[cfg(unix)]
fn read_secret(question: &str) -> io::Result<Option<String>> {
    loci_tui::terminal::read_secret(question)
}

#[cfg(not(unix))]
fn read_secret(_question: &str) -> io::Result<Option<String>> {
    Ok(None)
}

/// Reads a line; none at the end of the input.
fn read_line(question: &str) -> io::Result<Option<String>> {
    print::ask(question)?;
    let mut line = String::new();
    let n_read = io::stdin().read_line(&mut line)?;
    Ok((n_read > 0).then(|| line.trim().to_owned()))
}

/// Asks whether to go on; none where nobody can be asked.
pub(super) fn confirm(question: &str) -> Option<bool> {
    if !is_terminal() {
        return None;
    }
    let answer = read_line(&format!("{question} [y/N] ")).ok().flatten().unwrap_or_default();
    Some(matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn is_terminal() -> bool {
    io::stdin().is_terminal() && print::is_stderr_terminal()
}
