//! `/autocompact [n|auto]`: the size at which the conversation is compacted.

use loci_engine::{LocalEffect, LocalOutcome, SessionSnapshot};
use loci_settings::{Scope, Settings};

use super::{SessionCommands, refused, short_tokens};
use crate::compose::compaction::{CompactWindow, WINDOW_VARIABLE};
use crate::settings::editor::NamedKey;
use crate::user_error::UserError;

const KEY: &str = "autoCompactWindow";

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands, argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    if argument.is_empty() {
        return LocalOutcome::text(describe(session));
    }
    let vars = &commands.env.vars;
    if let Some(by) = vars.non_empty(WINDOW_VARIABLE).filter(|_| CompactWindow::of_variable(vars).is_some()) {
        return LocalOutcome::error(format!(
            "{WINDOW_VARIABLE} is set to `{by}` and wins; unset it to choose here"
        ));
    }
    let outcome = match CompactWindow::parse(argument) {
        Some(CompactWindow::Model) => reset(commands),
        Some(CompactWindow::Tokens(tokens)) => set(commands, tokens),
        None => Err(UserError::new(format!("Not a size to compact within: `{argument}`"))
            .hint("It is 100000 tokens or more: say `/autocompact 200k`, or `/autocompact auto`.")),
    };
    outcome.unwrap_or_else(|error| refused(&error))
}

fn describe(session: &SessionSnapshot) -> String {
    let usage = &session.context;
    let from = short_tokens(usage.fullness.thresholds.compact);
    let window = match session.compact_window {
        Some(window) => format!("a window of {} tokens, as chosen", short_tokens(window)),
        None => format!("the model's window of {} tokens", short_tokens(usage.fullness.window)),
    };
    match usage.is_automatic {
        true => format!(
            "The conversation is compacted from {from} tokens on, by {window}. Choose with `/autocompact 200k`, or `/autocompact auto`"
        ),
        false => "Automatic compaction is off (`autoCompactEnabled`, DISABLE_AUTO_COMPACT)".to_owned(),
    }
}

fn reset(commands: &SessionCommands) -> Result<LocalOutcome, UserError> {
    commands.settings_context().unset(&[KEY], Scope::User)?;
    // Another file may still name a window.
    let left = Settings::from(&commands.settings_context().loaded.merged).auto_compact_window;
    let text = match left {
        None => "The conversation is compacted by the model's own window from now on".to_owned(),
        Some(tokens) => format!(
            "Your own settings name no window any more; other settings still name one of {} tokens, which stays",
            short_tokens(tokens)
        ),
    };
    Ok(LocalOutcome::text(text).with(LocalEffect::SetCompactWindow(left)))
}

fn set(commands: &SessionCommands, tokens: u64) -> Result<LocalOutcome, UserError> {
    let ctx = commands.settings_context();
    let change = ctx.set(&NamedKey::parse(KEY)?, &tokens.into(), Scope::User)?;
    let window = format!("a window of {} tokens", short_tokens(tokens));
    Ok(match change.no_effect {
        None => {
            let text = format!("The conversation is compacted by {window}, kept in {}", change.file);
            LocalOutcome::text(text).with(LocalEffect::SetCompactWindow(Some(tokens)))
        }
        Some(why) => LocalOutcome::text(format!(
            "{window} is kept in {}; this session keeps its own. {why}",
            change.file
        )),
    })
}
