//! Which theme is in force: the setting's, or the one that is looked at in `/theme`.

use loci_core::plugin::PluginTheme;

use super::{App, Effect};
use crate::block::NoticeLevel;
use crate::panel::{PanelData, PanelRequest, ThemePanel};
use crate::text::Row;
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

impl App {
    /// Takes what the terminal says of its backdrop.
    pub fn set_backdrop(&mut self, backdrop: Backdrop) {
        self.theming.backdrop = background;
        self.apply_theme();
    }

    /// Takes the themes of the person's own, as their files have them now.
    pub(super) fn take_themes(&mut self, files: Vec<ThemeFile>) {
        self.theming.files = Some(files);
        self.apply_theme();
        if let Some(panel) = &mut self.panel {
            // It asks for nothing more.
            drop(panel.receive(PanelData::Themes(self.theming.all())));
        }
    }

    /// Takes the themes of the session's plugins.
    pub(super) fn take_plugin_themes(&mut self, themes: Vec<PluginTheme>) {
        self.theming.of_plugins = themes.iter().map(|it| ThemeFile::parse(&it.slug, &it.text)).collect();
        self.theming.plugin_files = themes;
    }

    /// Returns what the file of a plugin's theme says.
    pub(super) fn plugin_theme(&self, slug: &str) -> Option<&str> {
        let mut themes = self.theming.plugin_files.iter();
        themes.find(|theme| theme.slug == slug).map(|theme| theme.text.as_str())
    }

    /// Puts the theme in force that is wanted. One that is not there is told once, as soon as that is sure.
    pub(super) fn apply_theme(&mut self) {
        let name = match &self.theming.preview {
            Some(preview) => preview.as_deref(),
            None => self.interface.theme.as_deref(),
        };
        let depth = self.options.theme.depth();
        let files = self.theming.all();
        match Theme::from_setting(name, &files, depth, self.theming.backdrop) {
            Ok(theme) => self.options.theme = theme,
            Err(why) => {
                let name = name.map(str::to_owned);
                self.options.theme = Theme::new(depth, self.theming.backdrop);
                let is_sure = self.theming.files.is_some() && self.session.is_started;
                if is_sure && self.theming.missing != name {
                    self.theming.missing = name;
                    self.notice(NoticeLevel::Warning, why);
                }
            }
        }
    }

    /// Shows a theme, or no other than the setting's.
    pub(super) fn preview_theme(&mut self, preview: Option<Option<String>>) {
        self.theming.preview = preview;
        self.apply_theme();
    }

    /// Chooses a theme from now on: it counts at once, and the setting is written.
    pub(super) fn choose_theme(&mut self, name: Option<String>) -> Effect {
        self.theming.preview = None;
        self.interface.theme.clone_from(&name);
        self.apply_theme();
        let (key, value) = ("theme".to_owned(), name.unwrap_or_default());
        Effect::AskPanel(PanelRequest::ChangeSetting { key, value })
    }

    /// `/theme`: lets one be chosen, or takes the one that is named.
    pub(super) fn theme_command(&mut self, name: Option<&str>) -> Vec<Effect> {
        let files = self.theming.all();
        let Some(name) = name else {
            let panel =
                ThemePanel::new(self.interface.theme.as_deref(), &files, self.interface.is_plain_code);
            self.open_panel(panel);
            // One may have been written since the window had the focus, which not every terminal tells.
            return vec![Effect::ReadOwnFiles];
        };
        match Theme::from_setting(Some(name), &files, self.options.theme.depth(), self.theming.backdrop) {
            Ok(_) => vec![self.choose_theme(Some(name.to_owned()))],
            Err(why) => {
                self.notice(NoticeLevel::Warning, why);
                Vec::new()
            }
        }
    }

    /// Gives rows that were laid out without a theme its colours.
    pub(super) fn color_rows<'a>(&self, rows: impl IntoIterator<Item = &'a mut Row>) {
        let theme = self.options.theme;
        let spans = rows.into_iter().flat_map(|row| &mut row.spans);
        spans.for_each(|span| span.style = theme.adapt(span.style));
    }
}
