//! What the window shows around the text: its title, its bar of progress; and how people are called.

use loci_engine::Command;

use super::{App, Effect};
use crate::interface_settings::NotificationChannel;

/// What the window shows around the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct WindowState {
    /// The title; none where it is left alone.
    pub(super) title: Option<String>,
    /// Whether the bar shows that something is under way.
    pub(super) is_working: bool,
}

impl App {
    /// Returns what the window is to show.
    pub(super) fn window(&self) -> WindowState {
        let name = self.session.title.clone().filter(|_| self.interface.has_session_title);
        let place = self.options.shown_cwd.rsplit('/').next().unwrap_or_default();
        let title = name.unwrap_or_else(|| place.to_owned());
        let mark = if self.work.is_some() { "✳ " } else { "" };
        let title = match title.is_empty() {
            true => "loci".to_owned(),
            false => format!("{mark}{} · loci", loci_stdx::single_line(&title, 80)),
        };
        WindowState { title: Some(title), is_working: self.interface.has_progress_bar && self.work.is_some() }
    }

    /// Returns how people are called.
    pub(crate) fn notification_channel(&self) -> NotificationChannel {
        self.interface.notification_channel
    }

    /// Returns what calls a person of whom hooks were just told that they seem to be away; nothing where the window is looked
    /// at.
    pub(super) fn call_person(&self, notice: &Command) -> Option<Effect> {
        match notice {
            Command::Notify { message, .. } if self.focus != Some(true) => {
                Some(Effect::CallPerson(message.clone()))
            }
            _ => None,
        }
    }
}
