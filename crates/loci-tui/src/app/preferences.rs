//! What was chosen: by options, by settings, and by commands of this run; and what follows from it for what is shown.

use std::time::Duration;

use loci_app::interface::helper_command::HelperSandboxes;
use loci_app::reports::display::dollars;

use super::theming::Theming;
use super::{Action, AppOptions, Effect, PanelRequest, PlainMode, UiAction};
use crate::block::{Block, NoticeLevel};
use crate::interface_settings::{InterfaceSettings, NotificationChannel, ViewMode, parse_scroll_speed};
use crate::render::{Highlighter, RenderContext};
use crate::text::Row;

/// What was chosen.
#[derive(Debug)]
pub(crate) struct Preferences {
    pub(super) options: AppOptions,
    pub(super) interface: InterfaceSettings,
    pub(super) theming: Theming,
    /// After how long without a key a question of the model goes on, whatever settings say.
    pub(super) answer_timeout: Option<Duration>,
    /// Makes the sandboxes that commands of the interface ask for.
    pub(super) helper_sandboxes: HelperSandboxes,
    /// Colours code; none where it has no colours.
    pub(super) highlighter: Option<Highlighter>,
    /// Whether settings were read.
    has_settings: bool,
    /// What `/tui` has chosen.
    chosen_fullscreen: Option<bool>,
    /// What `/focus` has chosen.
    chosen_view: Option<ViewMode>,
}

/// What is other than before once settings were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SettingsChange {
    /// They are the first of this run.
    pub(super) is_first: bool,
    pub(super) has_other_status_line: bool,
    /// More or less is shown.
    pub(super) has_other_view: bool,
}

impl Preferences {
    pub(super) fn new(options: AppOptions) -> Self {
        Self {
            interface: InterfaceSettings::default(),
            theming: Theming::default(),
            answer_timeout: None,
            helper_sandboxes: HelperSandboxes::default(),
            highlighter: None,
            has_settings: false,
            chosen_fullscreen: None,
            chosen_view: options.is_verbose.then_some(ViewMode::Verbose),
            options,
        }
    }

    /// Takes what settings say about the interface. What is changed while a session runs counts over what was chosen before.
    pub(super) fn take_settings(&mut self, settings: InterfaceSettings) -> SettingsChange {
        // What `/scroll-speed` has said stays.
        let scroll_speed = settings.scroll_speed.or(self.interface.scroll_speed);
        let settings = InterfaceSettings { scroll_speed, ..settings };
        let before = std::mem::replace(&mut self.interface, settings);
        let is_first = !std::mem::replace(&mut self.has_settings, true);
        if !is_first {
            if before.is_fullscreen != self.interface.is_fullscreen {
                self.chosen_fullscreen = self.interface.is_fullscreen;
            }
            if before.view_mode != self.interface.view_mode {
                self.chosen_view = None;
            }
        }
        SettingsChange {
            is_first,
            has_other_status_line: before.status_line != self.interface.status_line,
            has_other_view: before.view_mode != self.view_mode(),
        }
    }

    /// Tells whether somebody listens rather than looks.
    pub(super) fn is_spoken(&self) -> bool {
        matches!(self.options.plain, Some(PlainMode::ScreenReader(_)))
    }

    /// Tells whether everything is plain lines.
    pub(super) fn is_plain(&self) -> bool {
        self.options.plain.is_some()
    }

    /// Tells whether nothing moves by itself: where somebody wants that, and while the person is asked, however long that is.
    pub(super) fn is_still(&self, is_asking: bool) -> bool {
        self.options.is_still || self.interface.is_motion_reduced || is_asking
    }

    /// Tells whether there is an agent view, and sessions that go on in the background.
    pub(super) fn has_agent_view(&self) -> bool {
        self.options.has_agent_view && self.interface.has_agent_view
    }

    /// Tells whether code has colours.
    pub(super) fn colors_code(&self) -> bool {
        !self.interface.is_plain_code && !self.options.is_plain_code
    }

    /// Tells whether somebody who was away is told what the session is about.
    pub(super) fn wants_recap(&self) -> bool {
        self.options.has_recap.unwrap_or(self.interface.has_recap)
    }

    /// Tells whether the model is asked what may come next.
    pub(super) fn wants_suggestions(&self) -> bool {
        self.options.has_suggestions.unwrap_or(self.interface.has_suggestions) && !self.is_spoken()
    }

    /// Tells which renderer is wanted, by what variables, `/tui` and settings say.
    pub(super) fn wants_fullscreen(&self) -> bool {
        let wanted = self.chosen_fullscreen.or(self.options.fullscreen.forced);
        let of_settings = self.interface.is_fullscreen.unwrap_or(self.options.fullscreen.is_wanted);
        wanted.unwrap_or(of_settings) && !self.is_plain()
    }

    /// Returns how much is shown.
    pub(super) fn view_mode(&self) -> ViewMode {
        self.chosen_view.unwrap_or(self.interface.view_mode)
    }

    /// Tells whether only the last prompt, a line about its calls and the answer are shown.
    pub(super) fn is_focused(&self) -> bool {
        self.view_mode() == ViewMode::Focus
    }

    /// Returns what renderers need to know.
    pub(super) fn render_context(&self, now: Duration, is_still: bool, width: u16) -> RenderContext {
        RenderContext {
            now,
            is_motion_reduced: is_still,
            is_verbose: self.view_mode() == ViewMode::Verbose,
            highlighter: self.highlighter.clone(),
            ..match self.is_spoken() {
                true => RenderContext::screen_reader(),
                false => RenderContext::new(usize::from(width.max(1)), self.options.theme),
            }
        }
    }

    /// Gives rows that were laid out without a theme its colours.
    pub(super) fn color_rows<'a>(&self, rows: impl IntoIterator<Item = &'a mut Row>) {
        let theme = self.options.theme;
        let spans = rows.into_iter().flat_map(|row| &mut row.spans);
        spans.for_each(|span| span.style = theme.adapt(span.style));
    }

    /// Returns what is said first.
    pub(super) fn banner(&self) -> Block {
        let AppOptions { version, shown_cwd, hides_cwd, .. } = &self.options;
        let text =
            if *hides_cwd { format!("loci {version}") } else { format!("loci {version} · {shown_cwd}") };
        match self.is_spoken() {
            true => Block::Notice { level: NoticeLevel::Info, text },
            false => Block::TurnEnd { text },
        }
    }

    /// `/tui`: says which renderer is used, or chooses another and keeps that.
    pub(super) fn choose_fullscreen(&mut self, argument: Option<&str>, is_fullscreen: bool) -> Vec<Action> {
        let name = |is_fullscreen| if is_fullscreen { "fullscreen" } else { "default" };
        let wanted = match argument {
            None => {
                let why = match &self.options.plain {
                    Some(PlainMode::ScreenReader(source)) => format!(" (plain lines: {source})"),
                    Some(PlainMode::Dumb) => " (plain lines: the terminal knows no more)".to_owned(),
                    None => String::new(),
                };
                return vec![info(format!(
                    "The renderer is {}{why}. `/tui fullscreen` and `/tui default` switch",
                    name(is_fullscreen)
                ))];
            }
            Some("fullscreen") => true,
            Some("default") => false,
            Some(_) => return vec![warn("Say `/tui fullscreen` or `/tui default`")],
        };
        if wanted && self.is_plain() {
            return vec![info("Everything is plain lines here, so the renderer stays; nothing was changed")];
        }
        self.chosen_fullscreen = Some(wanted);
        let text = format!("The renderer is {} from now on, here and in new sessions", name(wanted));
        vec![Action::Ui(UiAction::Flash(text)), change_setting("tui", name(wanted))]
    }

    /// `/focus`: shows the last prompt, a line about its calls and the answer; or everything again.
    pub(super) fn toggle_focus(&mut self) -> Vec<Action> {
        let (mode, name, text) = match self.is_focused() {
            true => (ViewMode::Default, "default", "Everything is shown again"),
            false => {
                (ViewMode::Focus, "focus", "Prompt, a line about the calls, and answer · /focus shows all")
            }
        };
        self.chosen_view = Some(mode);
        vec![Action::Ui(UiAction::Flash(text.to_owned())), change_setting("viewMode", name)]
    }

    /// `/scroll-speed`: says how far the wheel scrolls, or changes it.
    pub(super) fn set_scroll_speed(&mut self, argument: Option<&str>) -> Vec<Action> {
        let known = self.interface.scroll_speed.or(self.options.fullscreen.scroll_speed).unwrap_or(300);
        let shown = |hundredths: u32| f64::from(hundredths) / 100.0;
        let Some(argument) = argument else {
            return vec![info(format!(
                "A step of the wheel scrolls {} rows in fullscreen; `/scroll-speed 5` makes it five, up to 20",
                shown(known)
            ))];
        };
        let Some(speed) = parse_scroll_speed(argument).filter(|speed| *speed > 0) else {
            return vec![warn("Say a number of rows above 0 and up to 20: `/scroll-speed 3`")];
        };
        self.interface.scroll_speed = Some(speed);
        let text = format!("A step of the wheel scrolls {} rows", shown(speed));
        let change = change_setting("env.CLAUDE_CODE_SCROLL_SPEED", &shown(speed).to_string());
        vec![Action::Ui(UiAction::Flash(text)), change]
    }

    /// Returns how people are called.
    pub(crate) fn notification_channel(&self) -> NotificationChannel {
        self.interface.notification_channel
    }

    /// Returns what makes the sandboxes that commands of the interface ask for.
    pub(crate) fn helper_sandboxes(&self) -> HelperSandboxes {
        self.helper_sandboxes.clone()
    }

    /// Tells whether each frame writes every cell.
    pub(crate) fn repaints_all(&self) -> bool {
        self.options.fullscreen.repaints_all
    }

    /// Returns what the file of a plugin's theme says.
    pub(crate) fn plugin_theme(&self, slug: &str) -> Option<&str> {
        self.theming.plugin_theme(slug)
    }

    /// Returns what whoever listens is told of the cost at the end.
    pub(crate) fn cost_farewell(&self, cost_usd: f64) -> Option<String> {
        (self.is_spoken() && cost_usd > 0.0).then(|| format!("cost: {}", dollars(cost_usd)))
    }
}

fn info(text: impl Into<String>) -> Action {
    Action::Ui(UiAction::Notice(NoticeLevel::Info, text.into()))
}

fn warn(text: impl Into<String>) -> Action {
    Action::Ui(UiAction::Notice(NoticeLevel::Warning, text.into()))
}

fn change_setting(key: &str, value: &str) -> Action {
    let (key, value) = (key.to_owned(), value.to_owned());
    Action::Effect(Effect::AskPanel(PanelRequest::ChangeSetting { key, value }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn preferences() -> Preferences {
        Preferences::new(AppOptions::default())
    }

    fn take(preferences: &mut Preferences, settings: serde_json::Value) -> SettingsChange {
        preferences.take_settings(InterfaceSettings::from_value(&settings))
    }

    #[test]
    fn setting_that_changes_counts_over_the_command_before_it() {
        let mut it = preferences();
        assert!(take(&mut it, json!({})).is_first);
        it.toggle_focus();
        assert!(it.is_focused());
        assert!(!take(&mut it, json!({})).has_other_view || it.is_focused(), "nothing was changed");
        let change = take(&mut it, json!({"viewMode": "verbose"}));
        assert!(!change.is_first && change.has_other_view);
        assert_eq!(it.view_mode(), ViewMode::Verbose);
        it.choose_fullscreen(Some("fullscreen"), false);
        assert!(it.wants_fullscreen());
        take(&mut it, json!({"viewMode": "verbose", "tui": "default"}));
        assert!(!it.wants_fullscreen());
    }

    #[test]
    fn plain_lines_are_never_given_up() {
        let options = AppOptions { plain: Some(PlainMode::Dumb), ..AppOptions::default() };
        let mut it = Preferences::new(options);
        let said = it.choose_fullscreen(Some("fullscreen"), false);
        assert!(matches!(said.as_slice(), [Action::Ui(UiAction::Notice(NoticeLevel::Info, _))]), "{said:?}");
        assert!(!it.wants_fullscreen());
    }

    #[test]
    fn scroll_speed_of_the_command_outlasts_settings_that_say_none() {
        let mut it = preferences();
        it.set_scroll_speed(Some("5"));
        take(&mut it, json!({}));
        assert_eq!(it.interface.scroll_speed, Some(500));
    }
}
