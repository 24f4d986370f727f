//! Which theme is in force: the setting's, or the one that is looked at in `/theme`.

use loci_core::plugin::PluginTheme;

use super::preferences::Preferences;
use super::{Effect, PanelRequest};
use crate::panel::ThemePanel;
use crate::theme::{Backdrop, Theme, ThemeFile};

/// Themes of the person's own, and what the terminal stands on.
#[derive(Debug, Default)]
pub(super) struct Theming {
    /// The themes of the person's own, once they were read.
    files: Option<Vec<ThemeFile>>,
    /// Those of plugins, and the same as their files have them.
    of_plugins: Vec<ThemeFile>,
    plugin_files: Vec<PluginTheme>,
    backdrop: Backdrop,
    /// The theme that is only looked at.
    preview: Option<Option<String>>,
    /// The theme that was told to be missing.
    missing: Option<String>,
}

impl Theming {
    /// Returns the themes that are not loci's: the person's own, then those of plugins.
    fn all(&self) -> Vec<ThemeFile> {
        self.files.iter().flatten().chain(&self.of_plugins).cloned().collect()
    }
}

impl Theming {
    /// Returns what the file of a plugin's theme says.
    pub(super) fn plugin_theme(&self, slug: &str) -> Option<&str> {
        let mut themes = self.plugin_files.iter();
        themes.find(|theme| theme.slug == slug).map(|theme| theme.text.as_str())
    }

    /// Takes the themes of the session's plugins.
    pub(super) fn take_plugin_themes(&mut self, themes: Vec<PluginTheme>) {
        self.of_plugins = themes.iter().map(|it| ThemeFile::parse(&it.slug, &it.text)).collect();
        self.plugin_files = themes;
    }

    /// Takes what the terminal says of its backdrop.
    pub(super) fn set_backdrop(&mut self, backdrop: Backdrop) {
        self.backdrop = backdrop;
    }

    /// Shows a theme, or no other than the setting's, once it is put in force.
    pub(super) fn set_preview(&mut self, preview: Option<Option<String>>) {
        self.preview = preview;
    }

    /// Takes the themes of the person's own, as their files have them now; returns all there are.
    pub(super) fn take_files(&mut self, files: Vec<ThemeFile>) -> Vec<ThemeFile> {
        self.files = Some(files);
        self.all()
    }
}

impl Preferences {
    /// Puts the theme in force that is wanted. Of one that is not there it returns what is wrong, once, as soon as that is sure.
    pub(super) fn apply_theme(&mut self, is_started: bool) -> Option<String> {
        let name = match &self.theming.preview {
            Some(preview) => preview.as_deref(),
            None => self.interface.theme.as_deref(),
        };
        let depth = self.options.theme.depth();
        let files = self.theming.all();
        match Theme::from_setting(name, &files, depth, self.theming.backdrop) {
            Ok(theme) => {
                self.options.theme = theme;
                None
            }
            Err(why) => {
                let name = name.map(str::to_owned);
                self.options.theme = Theme::new(depth, self.theming.backdrop);
                let is_news = self.theming.files.is_some() && is_started && self.theming.missing != name;
                is_news.then(|| {
                    self.theming.missing = name;
                    why
                })
            }
        }
    }

    /// Chooses a theme from now on, once it is put in force; the setting is written.
    pub(super) fn choose_theme(&mut self, name: Option<String>) -> Effect {
        self.theming.preview = None;
        self.interface.theme.clone_from(&name);
        let (key, value) = ("theme".to_owned(), name.unwrap_or_default());
        Effect::AskPanel(PanelRequest::ChangeSetting { key, value })
    }

    /// Returns the panel in which a theme is chosen.
    pub(super) fn theme_panel(&self) -> ThemePanel {
        let files = self.theming.all();
        ThemePanel::new(self.interface.theme.as_deref(), &files, self.interface.is_plain_code)
    }

    /// Says what is wrong with the name of a theme; none where it is one.
    pub(super) fn theme_problem(&self, name: &str) -> Option<String> {
        let (depth, backdrop) = (self.options.theme.depth(), self.theming.backdrop);
        Theme::from_setting(Some(name), &self.theming.all(), depth, backdrop).err()
    }
}
