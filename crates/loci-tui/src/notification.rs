//! Calling a person who looks elsewhere: the bell, or the terminal's own notifications; and the bar that shows progress.
//!
//! Pure: what is known of the terminal comes in, bytes go out. Within tmux such sequences reach the terminal only where the
//! person allows it (`allow-passthrough`); where they do not, the bell is left, which tmux knows.

use loci_stdx::Vars;

use crate::interface_settings::NotificationChannel;

/// What is known of the terminal that concerns calling people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalFacts {
    /// Which it is, as far as that matters.
    pub kind: TerminalKind,
    /// Whether tmux stands between.
    pub is_tmux: bool,
    /// Whether tmux lets sequences through.
    pub may_pass: bool,
}

/// Terminals that know more than the bell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TerminalKind {
    /// iTerm2.
    Iterm2,
    /// kitty.
    Kitty,
    /// Ghostty.
    Ghostty,
    /// WezTerm.
    Wezterm,
    /// Windows Terminal, or ConEmu.
    Windows,
    /// Any other.
    #[default]
    Other,
}

impl TerminalFacts {
    /// Reads what the environment says.
    pub fn from_vars(vars: &Vars) -> Self {
        let program = vars.get("TERM_PROGRAM").unwrap_or_default();
        let term = vars.get("TERM").unwrap_or_default();
        let has = |name: &str| vars.non_empty(name).is_some();
        let kind = if program == "ghostty" || term == "xterm-ghostty" || has("GHOSTTY_RESOURCES_DIR") {
            TerminalKind::Ghostty
        } else if has("KITTY_WINDOW_ID") || term == "xterm-kitty" {
            TerminalKind::Kitty
        } else if program == "iTerm.app" || vars.get("LC_TERMINAL") == Some("iTerm2") {
            TerminalKind::Iterm2
        } else if program == "WezTerm" || has("WEZTERM_PANE") {
            TerminalKind::Wezterm
        } else if has("WT_SESSION") || vars.get("ConEmuANSI") == Some("ON") {
            TerminalKind::Windows
        } else {
            TerminalKind::Other
        };
        Self { kind, is_tmux: has("TMUX"), may_pass: false }
    }

    /// Returns the bytes that call the person.
    pub fn notification(self, channel: NotificationChannel, message: &str) -> Vec<u8> {
        let message: String = message.chars().filter(|char| !char.is_control()).take(200).collect();
        let (form, has_bell) = match (channel, self.kind) {
            (NotificationChannel::Off, _) => return Vec::new(),
            (NotificationChannel::Bell, _) => (Form::None, true),
            (NotificationChannel::Iterm2, _) => (Form::Osc9, false),
            (NotificationChannel::Iterm2WithBell, _) => (Form::Osc9, true),
            (NotificationChannel::Kitty, _) | (NotificationChannel::Auto, TerminalKind::Kitty) => {
                (Form::Osc99, false)
            }
            (NotificationChannel::Ghostty, _)
            | (NotificationChannel::Auto, TerminalKind::Ghostty | TerminalKind::Wezterm) => {
                (Form::Osc777, false)
            }
            (NotificationChannel::Auto, TerminalKind::Iterm2) => (Form::Osc9, false),
            (NotificationChannel::Auto, TerminalKind::Windows | TerminalKind::Other) => (Form::None, true),
        };
        let sequence = match form {
            Form::None => String::new(),
            Form::Osc9 => format!("\x1b]9;{message}\x07"),
            Form::Osc99 => {
                format!("\x1b]99;i=loci:d=0:p=title;loci\x1b\\\x1b]99;i=loci:d=1:p=body;{message}\x1b\\")
            }
            Form::Osc777 => format!("\x1b]777;notify;loci;{}\x07", message.replace(';', ",")),
        };
        let mut bytes = match (sequence.is_empty(), self.is_tmux, self.may_pass) {
            (true, _, _) => Vec::new(),
            (false, false, _) => sequence.into_bytes(),
            (false, true, true) => through_tmux(&sequence),
            (false, true, false) => b"\x07".to_vec(),
        };
        if has_bell && bytes != b"\x07" {
            bytes.push(7);
        }
        bytes
    }

    /// Returns the bytes that switch the terminal's bar of progress on or off; none where the terminal would take them for
    /// something else.
    pub fn progress(self, is_working: bool) -> Vec<u8> {
        let knows = matches!(
            self.kind,
            TerminalKind::Ghostty | TerminalKind::Wezterm | TerminalKind::Windows | TerminalKind::Iterm2
        );
        let sequence = if is_working { "\x1b]9;4;3;\x07" } else { "\x1b]9;4;0;\x07" };
        match (knows, self.is_tmux, self.may_pass) {
            (false, _, _) | (true, true, false) => Vec::new(),
            (true, false, _) => sequence.as_bytes().to_vec(),
            (true, true, true) => through_tmux(sequence),
        }
    }
}

enum Form {
    None,
    Osc9,
    Osc99,
    Osc777,
}

/// Wraps a sequence so that tmux hands it on.
fn through_tmux(sequence: &str) -> Vec<u8> {
    format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")).into_bytes()
}

/// Asks tmux whether sequences may pass; blocks for a moment.
pub fn tmux_passes(vars: &Vars) -> bool {
    let mut command = std::process::Command::new("tmux");
    command.args(["show-options", "-gqv", "allow-passthrough"]);
    if let Some(path) = vars.get("PATH") {
        command.env("PATH", path);
    }
    let limits = crate::input::CommandLimits { patience: std::time::Duration::from_secs(2), output: 1024 };
    let output = crate::input::run_bounded(command, b"", limits);
    output.is_ok_and(|output| matches!(String::from_utf8_lossy(&output.bytes).trim(), "on" | "all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> TerminalFacts {
        let vars = pairs.iter().fold(Vars::default(), |vars, (name, value)| vars.with(*name, *value));
        TerminalFacts::from_vars(&vars)
    }

    fn shown(facts: TerminalFacts, channel: NotificationChannel) -> String {
        String::from_utf8(facts.notification(channel, "a;b\x1b]0;c")).unwrap()
    }

    #[test]
    fn notification_has_the_form_that_the_terminal_knows() {
        use NotificationChannel as C;
        let (iterm, kitty) = (facts(&[("TERM_PROGRAM", "iTerm.app")]), facts(&[("KITTY_WINDOW_ID", "1")]));
        let (ghostty, other) = (facts(&[("TERM", "xterm-ghostty")]), facts(&[("TERM", "xterm-256color")]));
        for (facts, channel, expected) in [
            (iterm, C::Auto, "\x1b]9;a;b]0;c\x07"),
            (other, C::Iterm2WithBell, "\x1b]9;a;b]0;c\x07\x07"),
            (ghostty, C::Auto, "\x1b]777;notify;loci;a,b]0,c\x07"),
            (other, C::Auto, "\x07"),
            (kitty, C::Bell, "\x07"),
            (kitty, C::Off, ""),
        ] {
            assert_eq!(shown(facts, channel), expected, "{facts:?} {channel:?}");
        }
        assert!(shown(kitty, C::Auto).contains("p=body;a;b]0;c\x1b\\"));
    }

    #[test]
    fn tmux_is_passed_only_where_that_is_allowed() {
        let closed = facts(&[("TMUX", "/tmp/x"), ("TERM_PROGRAM", "iTerm.app")]);
        assert_eq!(shown(closed, NotificationChannel::Auto), "\x07");
        assert_eq!(closed.progress(true), b"");
        let open = TerminalFacts { may_pass: true, ..closed };
        assert!(shown(open, NotificationChannel::Auto).starts_with("\x1bPtmux;\x1b\x1b]9;"));
        assert!(open.progress(true).starts_with(b"\x1bPtmux;"));
    }

    #[test]
    fn progress_is_shown_only_where_the_terminal_knows_it() {
        assert_eq!(facts(&[("TERM", "xterm")]).progress(true), b"");
        assert_eq!(facts(&[("WT_SESSION", "x")]).progress(true), b"\x1b]9;4;3;\x07");
        assert_eq!(facts(&[("WT_SESSION", "x")]).progress(false), b"\x1b]9;4;0;\x07");
    }
}
