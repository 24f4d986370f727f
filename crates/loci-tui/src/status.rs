//! The status area: what goes on, and how things stand.

mod agent_rows;
mod command_line;

use std::time::Duration;

use loci_core::permission::Mode;
use loci_engine::{Fullness, Level};

pub(crate) use agent_rows::{AGENTS_REQUEST, AgentRows};
pub(crate) use command_line::{STATUS_REQUEST, StatusLine};

use crate::interface_settings::TIP_DELAY;
use crate::layout::{faint, line, warning};
use crate::text::{self, Color, Row, Span, Style, sanitize_line, truncate};
use crate::theme::ThemeToken;

/// The pictures of the spinner.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// The fewest cells that what goes on is cut to.
const LEAST_ACTIVITY: usize = 12;
/// How long each of them is shown.
pub(crate) const SPINNER_STEP: Duration = Duration::from_millis(100);

/// A turn that is under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Work {
    /// When it began.
    pub(crate) since: Duration,
    /// What is being done.
    pub(crate) activity: Activity,
    /// Letters that arrived in the response at hand; tokens are estimated from them until the server counts.
    pub(crate) letters: usize,
    /// Tokens that earlier responses of the turn had.
    pub(crate) tokens: u64,
    /// Whether it is being stopped.
    pub(crate) is_stopping: bool,
    /// When the calls at hand began.
    pub(crate) calls_since: Option<Duration>,
    /// What is said in the place of what the model does.
    pub(crate) verb: Option<String>,
    /// What is said to whoever waits.
    pub(crate) tip: Option<String>,
    /// Whether the model was asked and has said nothing since, no word and no call.
    pub(crate) is_unanswered: bool,
    /// Whether a prompt that was sent has yet to be recorded.
    pub(crate) is_prompt_awaited: bool,
    /// What went wrong, where it was told already.
    pub(crate) told: Option<String>,
}

/// What is being done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Activity {
    /// The model was asked and has said nothing yet.
    #[default]
    Waiting,
    /// The model thinks.
    Thinking,
    /// The model answers.
    Answering,
    /// A call runs: what it is.
    Running(String),
    /// A person is asked something.
    Asking,
    /// The conversation is being made shorter.
    Compacting,
    /// A request failed and will be repeated: what is told of it, and when.
    Retrying {
        /// What failed.
        text: String,
        /// Which attempt comes next, of how many.
        attempt: (u32, u32),
        /// When it comes.
        at: Duration,
    },
}

impl Work {
    /// Returns the row of the spinner. What goes on is cut before what is known of it and how to stop it.
    pub(crate) fn row(&self, now: Duration, is_still: bool, width: u16) -> Row {
        let elapsed = now.saturating_sub(self.since);
        let step = usize::try_from(elapsed.as_millis() / SPINNER_STEP.as_millis()).unwrap_or(0);
        let picture = if is_still { "*" } else { SPINNER[step % SPINNER.len()] };
        let mut when = String::new();
        let what = match (&self.activity, self.is_stopping) {
            (_, true) => "Stopping".to_owned(),
            (Activity::Waiting | Activity::Thinking | Activity::Answering, _) if self.verb.is_some() => {
                self.verb.as_deref().map(sanitize_line).unwrap_or_default()
            }
            (Activity::Waiting, _) => "Waiting for the model".to_owned(),
            (Activity::Thinking, _) => "Thinking".to_owned(),
            (Activity::Answering, _) => "Answering".to_owned(),
            (Activity::Running(what), _) => format!("Running {}", sanitize_line(what)),
            (Activity::Asking, _) => "Waiting for you".to_owned(),
            (Activity::Compacting, _) => "Compacting the conversation".to_owned(),
            (Activity::Retrying { text, attempt: (attempt, most), at }, _) => {
                let left = at.saturating_sub(now).as_secs_f64().ceil();
                when = format!(", attempt {attempt} of {most}, again in {left:.0} s");
                sanitize_line(&text.replace('`', ""))
            }
        };
        let tokens = self.tokens + self.letters as u64 / 4;
        let mut facts = vec![spent(elapsed)];
        if tokens > 0 {
            facts.push(format!("↓ {} tokens", short_count(tokens)));
        }
        // To a question, Escape says no.
        if !self.is_stopping && self.activity != Activity::Asking {
            facts.push("esc to interrupt".to_owned());
        }
        let facts = format!("({})", facts.join(" · "));
        let what = what.trim_end_matches('…');
        let room = usize::from(width).saturating_sub(4 + text::width(&when) + text::width(&facts));
        let what = if room < LEAST_ACTIVITY {
            what.to_owned()
        } else {
            truncate(&Row::new(vec![Span::plain(what)]), room).text()
        };
        let what = if when.is_empty() { what.trim_end_matches('…') } else { &what };
        Row::new(vec![
            Span::styled(picture, Style { fg: Color::Themed(ThemeToken::Claude), ..Style::default() }),
            Span::plain(format!(" {what}{when}… ")),
            Span::styled(facts, faint()),
        ])
    }
}

impl Work {
    /// Returns the row of the tip, once whoever waits has waited a while.
    pub(crate) fn tip_row(&self, now: Duration) -> Option<Row> {
        let has_waited = now.saturating_sub(self.since) >= TIP_DELAY;
        let tip = self.tip.as_ref().filter(|_| has_waited && self.activity != Activity::Asking)?;
        Some(line(&format!("  Tip: {tip}"), faint()))
    }
}

/// Says how long something took.
pub(crate) fn spent(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m {s}s"),
        (h, m, _) => format!("{h}h {m}m"),
    }
}

/// Says a count in few letters.
pub(crate) fn short_count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1}k", n as f64 / 1_000.0),
        _ => format!("{:.1}M", n as f64 / 1_000_000.0),
    }
}

/// Names a mode for people; nothing for the usual one.
pub(crate) fn mode_name(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Default => None,
        Mode::AcceptEdits => Some("accept edits on"),
        Mode::Plan => Some("plan mode on"),
        Mode::Auto => Some("auto mode on"),
        Mode::DontAsk => Some("don't ask on"),
        Mode::BypassPermissions => Some("bypass permissions on"),
    }
}

/// Modes that are in the circle only where the session may have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OptionalModes {
    /// Everything runs unasked.
    pub(crate) bypass: bool,
    /// A classifier decides; without one the mode is there for those who began in it.
    pub(crate) auto: bool,
}

/// Returns the mode that follows in the circle.
pub(crate) fn next_mode(mode: Mode, optional: OptionalModes) -> Mode {
    match mode {
        Mode::Default => Mode::AcceptEdits,
        Mode::AcceptEdits => Mode::Plan,
        Mode::Plan if optional.bypass => Mode::BypassPermissions,
        Mode::Plan | Mode::BypassPermissions if optional.auto => Mode::Auto,
        Mode::Plan | Mode::Auto | Mode::DontAsk | Mode::BypassPermissions => Mode::Default,
    }
}

/// What stands below the prompt.
#[derive(Debug, Default)]
pub(crate) struct Footer<'a> {
    pub(crate) mode: Mode,
    /// The mode of vim's keys, where it is shown.
    pub(crate) vim: Option<&'a str>,
    /// Something that was just said, which takes the place of all else but the modes: what a key does depends on those.
    pub(crate) flash: Option<&'a str>,
    /// The keys of a chord that has begun.
    pub(crate) chord: Option<String>,
    pub(crate) context: Option<Fullness>,
    /// For how long a goal has been worked towards.
    pub(crate) goal: Option<Duration>,
    /// Agents and commands that work beside the conversation.
    pub(crate) n_background: usize,
    /// How the sandbox stands, where there is one.
    pub(crate) sandbox: Option<&'a str>,
    /// The badge of the branch's pull request.
    pub(crate) pull_request: Option<Span>,
    pub(crate) model: &'a str,
    /// Whether keys are explained.
    pub(crate) has_hint: bool,
}

impl Footer<'_> {
    /// Returns its row.
    pub(crate) fn row(&self) -> Row {
        let mut spans = vec![Span::plain("  ")];
        let mut add_span = |span: Span| {
            if spans.len() > 1 {
                spans.push(Span::styled(" · ", faint()));
            }
            spans.push(span);
        };
        let mut add = |text: String, style: Style| add_span(Span::styled(text, style));
        if let Some(mode) = self.vim {
            add(format!("-- {mode} --"), Style::default());
        }
        if let Some(name) = mode_name(self.mode) {
            let token = match self.mode {
                Mode::BypassPermissions => ThemeToken::Warning,
                Mode::Plan => ThemeToken::PlanMode,
                _ => ThemeToken::AutoAccept,
            };
            let is_bold = self.mode != Mode::BypassPermissions;
            let style = Style { fg: Color::Themed(token), is_bold, ..Style::default() };
            add(name.to_owned(), style);
        }
        let chord = self.chord.as_ref().map(|chord| format!("{chord} …"));
        if let Some(said) = chord.or(self.flash.map(str::to_owned)) {
            add(sanitize_line(&said), faint());
            return Row::new(spans);
        }
        if let Some((text, style)) = self.context.as_ref().and_then(context_text) {
            add(text, style);
        }
        if let Some(time) = self.goal {
            add(format!("◎ /goal active ({})", spent(time)), Style::default());
        }
        if self.n_background > 0 {
            add(format!("{} in the background", self.n_background), faint());
        }
        if let Some(sandbox) = self.sandbox {
            add(sandbox.to_owned(), faint());
        }
        if let Some(badge) = &self.pull_request {
            add_span(badge.clone());
        }
        let mut add = |text: String, style: Style| add_span(Span::styled(text, style));
        if !self.model.is_empty() {
            add(sanitize_line(self.model), faint());
        }
        if self.has_hint {
            add("? for shortcuts".to_owned(), faint());
        }
        Row::new(spans)
    }
}

/// Says how much room is left, from the moment on that it matters.
fn context_text(fullness: &Fullness) -> Option<(String, Style)> {
    let left = fullness.thresholds.compact.saturating_sub(fullness.tokens);
    let percent = left * 100 / fullness.thresholds.compact.max(1);
    match fullness.level {
        Level::Fine if percent > 40 => None,
        Level::Fine => Some((format!("{percent}% until compaction"), faint())),
        _ => Some((format!("context nearly full: {percent}% until compaction"), warning())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_go_round_and_optional_ones_come_after_plan() {
        use Mode::{AcceptEdits, Auto, BypassPermissions, Default, Plan};
        for (bypass, auto, expected) in [
            (false, false, vec![Default, AcceptEdits, Plan, Default]),
            (true, false, vec![Default, AcceptEdits, Plan, BypassPermissions, Default]),
            (false, true, vec![Auto, Default, AcceptEdits, Plan, Auto]),
            (true, true, vec![Auto, Default, AcceptEdits, Plan, BypassPermissions, Auto]),
        ] {
            let mut modes = vec![expected[0]];
            while modes.len() < expected.len() {
                modes.push(next_mode(modes[modes.len() - 1], OptionalModes { bypass, auto }));
            }
            assert_eq!(modes, expected);
        }
    }

    #[test]
    fn modes_are_seen_beside_what_is_said_for_a_moment() {
        let row = |chord: Option<&str>| {
            let footer = Footer {
                mode: Mode::AcceptEdits,
                vim: Some("NORMAL"),
                flash: Some("said"),
                chord: chord.map(str::to_owned),
                model: "m",
                ..Footer::default()
            };
            footer.row().text()
        };
        assert_eq!(row(None), "  -- NORMAL -- · accept edits on · said");
        assert_eq!(row(Some("Ctrl+K")), "  -- NORMAL -- · accept edits on · Ctrl+K …");
    }

    #[test]
    fn spinner_row_tells_time_tokens_and_activity() {
        let work =
            Work { activity: Activity::Running("cargo test".into()), letters: 4_800, ..Work::default() };
        let row = work.row(Duration::from_secs(75), true, 100);
        assert_eq!(row.text(), "* Running cargo test… (1m 15s · ↓ 1.2k tokens · esc to interrupt)");
        let asking = Work { activity: Activity::Asking, tip: Some("a tip".into()), ..Work::default() };
        assert_eq!(asking.row(Duration::ZERO, true, 100).text(), "* Waiting for you… (0s)", "Escape says no");
        assert_eq!(asking.tip_row(Duration::from_secs(60)), None, "tips are for those who wait");
        let text = "The connection to `api.example.com` broke in the middle: unexpected EOF".to_owned();
        let (attempt, at) = ((2, 10), Duration::from_secs(3));
        let retrying = Work { activity: Activity::Retrying { text, attempt, at }, ..Work::default() };
        let row = retrying.row(Duration::ZERO, true, 80).text();
        assert_eq!(
            row, "* The connection to api…, attempt 2 of 10, again in 3 s… (0s · esc to interrupt)",
            "what failed is cut, and not how often"
        );
        let work = Work { activity: Activity::Running("cut here…".into()), ..Work::default() };
        assert_eq!(work.row(Duration::ZERO, true, 100).text(), "* Running cut here… (0s · esc to interrupt)");
    }
}
