//! What the window shows around the text: its title, its bar of progress.

use super::preferences::Preferences;
use super::session_mirror::SessionMirror;

/// What the window shows around the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct WindowState {
    /// The title; none where it is left alone.
    pub(super) title: Option<String>,
    /// Whether the bar shows that something is under way.
    pub(super) is_working: bool,
}

impl WindowState {
    /// Returns what the window is to show.
    pub(super) fn new(preferences: &Preferences, session: &SessionMirror) -> Self {
        let interface = &preferences.interface;
        let name = session.title.clone().filter(|_| interface.has_session_title);
        let place = preferences.options.shown_cwd.rsplit('/').next().unwrap_or_default();
        let title = name.unwrap_or_else(|| place.to_owned());
        let mark = if session.is_working() { "✳ " } else { "" };
        let title = match title.is_empty() {
            true => "loci".to_owned(),
            false => format!("{mark}{} · loci", loci_stdx::single_line(&title, 80)),
        };
        Self { title: Some(title), is_working: interface.has_progress_bar && session.is_working() }
    }
}
