//! `/autocompact [n|auto]`: the size at which the conversation is compacted.

use loci_engine::{LocalEffect, LocalOutcome, SessionSnapshot};
use loci_settings::Scope;

use super::{SessionCommands, refused, short_tokens};
use crate::settings_editor::NamedKey;
use crate::user_error::UserError;

const KEY: &str = "autoCompactWindow";
const VARIABLE: &str = "CLAUDE_CODE_AUTO_COMPACT_WINDOW";

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands, argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    if argument.is_empty() {
        return LocalOutcome::text(describe(session));
    }
    if let Some(by) = commands.env.vars.non_empty(VARIABLE) {
        return LocalOutcome::error(format!("{VARIABLE} is set to `{by}` and wins; unset it to choose here"));
    }
    let outcome = match argument.eq_ignore_ascii_case("auto") {
        true => reset(commands),
        false => set(commands, argument),
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
    let text = "The conversation is compacted by the model's own window from now on";
    Ok(LocalOutcome::text(text).with(LocalEffect::SetCompactWindow(None)))
}

fn set(commands: &SessionCommands, argument: &str) -> Result<LocalOutcome, UserError> {
    let tokens = parse_tokens(argument).ok_or_else(|| {
        UserError::new(format!("Not a number of tokens: `{argument}`"))
            .hint("Say `/autocompact 200k`, or `/autocompact auto`.")
    })?;
    let ctx = commands.settings_context();
    let change = ctx.set(&NamedKey::parse(KEY)?, &tokens.into(), Scope::User)?;
    let no_effect = change.no_effect.map(|why| format!(". For later sessions: {why}")).unwrap_or_default();
    let text = format!(
        "The conversation is compacted by a window of {} tokens, kept in {}{no_effect}",
        short_tokens(tokens),
        change.file
    );
    Ok(LocalOutcome::text(text).with(LocalEffect::SetCompactWindow(Some(tokens))))
}

/// Reads a number of tokens: `200000`, `200k`, `1m`.
fn parse_tokens(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase().replace(['_', ','], "");
    let (digits, factor) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1_000.0),
        None => text.strip_suffix('m').map_or((text.as_str(), 1.0), |digits| (digits, 1e6)),
    };
    let number: f64 = digits.parse().ok()?;
    (number.is_finite() && number >= 0.0).then(|| (number * factor).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, expected) in [
            ("200000", Some(200_000)),
            ("200k", Some(200_000)),
            ("1M", Some(1_000_000)),
            ("0.5m", Some(500_000)),
            ("200_000", Some(200_000)),
            ("many", None),
            ("-5", None),
            ("", None),
        ] {
            assert_eq!(parse_tokens(text), expected, "{text}");
        }
    }
}
