//! What settings say about the interface itself, as values.

mod spinner_words;

use std::time::Duration;

use loci_app::interface::helper_command::HelperCommand;
use loci_app::interface::status_line::StatusLineConfig;
use loci_core::user_question::answer_timeout;
use serde_json::Value;

use crate::input::{Flavor, IgnoredFiles, VimRemap};

pub use spinner_words::SpinnerWords;
pub(crate) use spinner_words::TIP_DELAY;

/// How people are called when something waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NotificationChannel {
    /// As the terminal can.
    #[default]
    Auto,
    /// With the bell.
    Bell,
    /// As iTerm2 does (OSC 9).
    Iterm2,
    /// The same, and the bell.
    Iterm2WithBell,
    /// As kitty does (OSC 99).
    Kitty,
    /// As Ghostty does (OSC 777).
    Ghostty,
    /// Not at all.
    Off,
}

impl NotificationChannel {
    fn from_name(name: &str) -> Self {
        match name {
            "terminal_bell" => Self::Bell,
            "iterm2" => Self::Iterm2,
            "iterm2_with_bell" => Self::Iterm2WithBell,
            "kitty" => Self::Kitty,
            "ghostty" => Self::Ghostty,
            "notifications_disabled" => Self::Off,
            _ => Self::Auto,
        }
    }
}

/// How much of the conversation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ViewMode {
    /// Results of calls in part.
    #[default]
    Default,
    /// Everything whole.
    Verbose,
    /// The last prompt, a line about its calls, and the answer.
    Focus,
}

/// What settings say about the interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceSettings {
    /// Whether the model answers to what a command of the shell printed (`respondToBashCommands`).
    pub responds_to_shell: bool,
    /// The command that suggests files (`fileSuggestion`).
    pub file_suggestion: Option<HelperCommand>,
    /// Whether files that git ignores are suggested (`respectGitignore`).
    pub ignored_files: IgnoredFiles,
    /// How people are called (`preferredNotifChannel`).
    pub notification_channel: NotificationChannel,
    /// Whether the terminal's own bar shows that a turn is under way (`terminalProgressBarEnabled`).
    pub has_progress_bar: bool,
    /// Whether the window bears the name of the session (`terminalTitleFromRename`).
    pub has_session_title: bool,
    /// Whether nothing moves by itself (`prefersReducedMotion`).
    pub is_motion_reduced: bool,
    /// Whether code has no colours (`syntaxHighlightingDisabled`).
    pub is_plain_code: bool,
    /// Whether a line says how long a turn took (`showTurnDuration`).
    pub has_turn_duration: bool,
    /// Which words the keys take (`keybindingFlavor`).
    pub flavor: Flavor,
    /// The pairs of keys that mean Escape in vim's INSERT mode (`vimInsertModeRemaps`); none where the keys are not vim's
    /// (`editorMode`).
    pub vim_remaps: Option<Vec<VimRemap>>,
    /// The theme (`theme`).
    pub theme: Option<String>,
    /// Words beside the spinner (`spinnerTipsEnabled`, `spinnerTipsOverride`, `spinnerVerbs`).
    pub spinner_words: SpinnerWords,
    /// Whether everything is plain lines for a screen reader (`axScreenReader`).
    pub is_screen_reader: bool,
    /// The person's own status line (`statusLine`).
    pub status_line: Option<StatusLineConfig>,
    /// The address of pages of pull requests (`prUrlTemplate`).
    pub pr_url_template: Option<String>,
    /// Whether names of emoji become pictures (`emojiCompletionEnabled`).
    pub has_emoji: bool,
    /// Whether the model is asked what may come next (`promptSuggestionEnabled`).
    pub has_suggestions: bool,
    /// Whether somebody who was away is told what the session is about (`awaySummaryEnabled`).
    pub has_recap: bool,
    /// After how long without a key a question of the model goes on by itself (`askUserQuestionTimeout`).
    pub question_timeout: Option<Duration>,
    /// Whether the conversation is shown on the alternate screen (`tui`), where that is said.
    pub is_fullscreen: Option<bool>,
    /// How much is shown (`viewMode`, else `verbose`).
    pub view_mode: ViewMode,
    /// Whether fullscreen follows what is being said (`autoScrollEnabled`).
    pub follows_output: bool,
    /// Whether a fast wheel scrolls further (`wheelScrollAccelerationEnabled`).
    pub accelerates_wheel: bool,
    /// What an organisation has to say at the start (`companyAnnouncements`).
    pub announcements: Vec<String>,
    /// Whether there is an agent view, and `/background` (`disableAgentView`).
    pub has_agent_view: bool,
    /// Whether the model explains commands that somebody is asked about (`permissionExplainerEnabled`).
    pub explains_commands: bool,
    /// Whether a plan may be accepted so that only the plan is left of the conversation (`showClearContextOnPlanAccept`).
    pub offers_clear_with_plan: bool,
    /// Whether the last answer stands above the prompt in the person's editor (`externalEditorContext`).
    pub shows_answer_in_editor: bool,
    /// Whether the task list is shown, as it was left (`showExpandedTodos`).
    pub shows_tasks: bool,
    /// Rows for a step of the wheel, in hundredths (`CLAUDE_CODE_SCROLL_SPEED` of `env`).
    pub scroll_speed: Option<u32>,
}

impl InterfaceSettings {
    /// Reads the settings in force; what is not there, or of another kind, is as if nothing were said.
    pub fn from_value(settings: &Value) -> Self {
        let flag =
            |key: &str, otherwise: bool| settings.get(key).and_then(Value::as_bool).unwrap_or(otherwise);
        let text = |key: &str| settings.get(key).and_then(Value::as_str);
        Self {
            responds_to_shell: flag("respondToBashCommands", true),
            file_suggestion: settings.get("fileSuggestion").and_then(HelperCommand::from_setting),
            ignored_files: match flag("respectGitignore", true) {
                true => IgnoredFiles::LeftOut,
                false => IgnoredFiles::Offered,
            },
            notification_channel: text("preferredNotifChannel")
                .map(NotificationChannel::from_name)
                .unwrap_or_default(),
            has_progress_bar: flag("terminalProgressBarEnabled", true),
            has_session_title: flag("terminalTitleFromRename", true),
            is_motion_reduced: flag("prefersReducedMotion", false),
            is_plain_code: flag("syntaxHighlightingDisabled", false),
            has_turn_duration: flag("showTurnDuration", true),
            flavor: if text("keybindingFlavor") == Some("readline") {
                Flavor::Readline
            } else {
                Flavor::Classic
            },
            vim_remaps: (text("editorMode") == Some("vim"))
                .then(|| vim_remaps(settings.get("vimInsertModeRemaps"))),
            theme: text("theme").map(str::to_owned),
            spinner_words: SpinnerWords::from_settings(settings),
            is_screen_reader: flag("axScreenReader", false),
            status_line: StatusLineConfig::from_settings(settings),
            pr_url_template: text("prUrlTemplate").map(str::to_owned),
            has_emoji: flag("emojiCompletionEnabled", true),
            has_suggestions: flag("promptSuggestionEnabled", false),
            has_recap: flag("awaySummaryEnabled", true),
            question_timeout: answer_timeout(text("askUserQuestionTimeout"), None),
            is_fullscreen: text("tui").map(|tui| tui == "fullscreen"),
            view_mode: match text("viewMode") {
                Some("verbose") => ViewMode::Verbose,
                Some("focus") => ViewMode::Focus,
                Some(_) => ViewMode::Default,
                None if flag("verbose", false) => ViewMode::Verbose,
                None => ViewMode::Default,
            },
            follows_output: flag("autoScrollEnabled", true),
            accelerates_wheel: flag("wheelScrollAccelerationEnabled", true),
            announcements: announcements(settings.get("companyAnnouncements")),
            has_agent_view: !flag("disableAgentView", false),
            explains_commands: flag("permissionExplainerEnabled", true),
            offers_clear_with_plan: flag("showClearContextOnPlanAccept", false),
            shows_answer_in_editor: flag("externalEditorContext", false),
            shows_tasks: flag("showExpandedTodos", true),
            scroll_speed: settings["env"]["CLAUDE_CODE_SCROLL_SPEED"].as_str().and_then(parse_scroll_speed),
        }
    }
}

fn announcements(said: Option<&Value>) -> Vec<String> {
    let texts = said.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// Reads pairs of keys that mean Escape; what is anything else is passed over.
fn vim_remaps(said: Option<&Value>) -> Vec<VimRemap> {
    let entries = said.and_then(Value::as_object).into_iter().flatten();
    let pair = |(keys, target): (&String, &Value)| {
        let mut keys = keys.chars().filter(|_| target == "<Esc>");
        let pair = (keys.next()?, keys.next()?);
        let is_printable = !pair.0.is_control() && !pair.1.is_control();
        (keys.next().is_none() && is_printable).then_some(pair)
    };
    entries.filter_map(pair).collect()
}

/// Reads a speed of the wheel, up to 20 rows; returns hundredths.
pub(crate) fn parse_scroll_speed(text: &str) -> Option<u32> {
    let speed: f64 = text.trim().parse().ok()?;
    let hundredths = (speed.clamp(0.01, 20.0) * 100.0).round() as u32;
    (speed > 0.0).then_some(hundredths)
}

impl Default for InterfaceSettings {
    fn default() -> Self {
        Self::from_value(&Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scroll_speed_is_a_number_up_to_twenty() {
        for (text, expected) in [
            ("3", Some(300)),
            ("0.25", Some(25)),
            ("50", Some(2_000)),
            ("0", None),
            ("-1", None),
            ("fast", None),
        ] {
            assert_eq!(parse_scroll_speed(text), expected, "{text}");
        }
    }

    #[test]
    fn settings_that_say_nothing_leave_the_defaults() {
        let settings =
            InterfaceSettings::from_value(&json!({"preferredNotifChannel": 3, "fileSuggestion": "ls"}));
        assert_eq!(settings, InterfaceSettings::default());
        assert!(settings.responds_to_shell && settings.has_progress_bar && !settings.is_motion_reduced);
    }

    #[test]
    fn settings_are_read_by_their_names() {
        let settings = InterfaceSettings::from_value(&json!({
            "respondToBashCommands": false, "respectGitignore": false, "fileSuggestion": {"type": "command", "command": "find"},
            "preferredNotifChannel": "iterm2_with_bell", "terminalProgressBarEnabled": false,
            "terminalTitleFromRename": false, "prefersReducedMotion": true, "syntaxHighlightingDisabled": true,
            "showTurnDuration": false, "companyAnnouncements": ["Hello", 1, ""], "keybindingFlavor": "readline", "axScreenReader": true,
            "editorMode": "vim", "theme": "light", "spinnerTipsEnabled": false,
            "vimInsertModeRemaps": {"jj": "<Esc>", "jkl": "<Esc>", "k": "<Esc>", "kk": "x", "öl": "<Esc>"},
            "statusLine": {"type": "command", "command": "date"},
            "awaySummaryEnabled": false, "promptSuggestionEnabled": true, "emojiCompletionEnabled": false,
            "askUserQuestionTimeout": "5m",
            "tui": "fullscreen", "viewMode": "focus", "verbose": true, "autoScrollEnabled": false,
            "disableAgentView": true, "permissionExplainerEnabled": false, "externalEditorContext": true,
            "showClearContextOnPlanAccept": true, "showExpandedTodos": false,
            "wheelScrollAccelerationEnabled": false, "env": {"CLAUDE_CODE_SCROLL_SPEED": "2.5"},
        }));
        let expected = InterfaceSettings {
            announcements: vec!["Hello".into()],
            responds_to_shell: false,
            file_suggestion: Some("find".into()),
            ignored_files: IgnoredFiles::Offered,
            notification_channel: NotificationChannel::Iterm2WithBell,
            has_progress_bar: false,
            has_session_title: false,
            is_motion_reduced: true,
            is_plain_code: true,
            has_turn_duration: false,
            flavor: Flavor::Readline,
            vim_remaps: Some(vec![('j', 'j'), ('ö', 'l')]),
            theme: Some("light".into()),
            spinner_words: SpinnerWords::from_settings(&json!({"spinnerTipsEnabled": false})),
            is_screen_reader: true,
            status_line: Some(StatusLineConfig {
                command: "date".into(),
                padding: 0,
                refresh: None,
                hides_vim_mode: false,
            }),
            pr_url_template: None,
            has_emoji: false,
            has_suggestions: true,
            has_recap: false,
            question_timeout: Some(Duration::from_secs(300)),
            is_fullscreen: Some(true),
            view_mode: ViewMode::Focus,
            follows_output: false,
            accelerates_wheel: false,
            has_agent_view: false,
            explains_commands: false,
            offers_clear_with_plan: true,
            shows_answer_in_editor: true,
            shows_tasks: false,
            scroll_speed: Some(250),
        };
        assert_eq!(settings, expected);
    }
}
