//! `/theme`: the themes there are, each shown as soon as it is marked.

use super::{ListMark, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, mark_row};
use crate::app::{Action, Effect, UiAction};
use crate::block::FileDiff;
use crate::dialog::TextField;
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{faint, line, paragraph, warning};
use crate::render::{RenderContext, render_diff};
use crate::screen::Size;
use crate::text::{Row, Span};
use crate::theme::{Preset, Role, ThemeFile};

/// The name of the setting that has the colours of code.
const PLAIN_CODE: &str = "syntaxHighlightingDisabled";
/// In less room nothing is shown of a theme but what is around.
const ROOM_FOR_SAMPLE: usize = 12;

/// The themes.
#[derive(Debug)]
pub(crate) struct ThemePanel {
    entries: Vec<ThemeEntry>,
    mark: ListMark,
    /// What settings name.
    current: Option<String>,
    is_plain_code: bool,
    /// The name of a theme that is about to be made.
    naming: Option<TextField>,
    note: Option<String>,
}

/// A theme that can be chosen.
#[derive(Debug)]
struct ThemeEntry {
    /// What settings call it; none for the terminal's own colours.
    value: Option<String>,
    label: String,
    is_custom: bool,
}

impl ThemePanel {
    /// Lists the themes that come with loci, and these.
    pub(crate) fn new(current: Option<&str>, files: &[ThemeFile], is_plain_code: bool) -> Self {
        let entry = |value: Option<&str>, label: String, is_custom| ThemeEntry {
            value: value.map(str::to_owned),
            label,
            is_custom,
        };
        let mut entries = vec![
            entry(None, "the terminal's own colours".to_owned(), false),
            entry(Some("auto"), "auto: dark or light, as the terminal is".to_owned(), false),
        ];
        entries.extend(Preset::ALL.iter().map(|it| entry(Some(it.name()), it.name().to_owned(), false)));
        entries.extend(files.iter().map(|file| {
            let value = format!("custom:{}", file.slug);
            let problem = file.problems.first().map(|why| format!(" ({why})")).unwrap_or_default();
            entry(Some(&value), format!("{}{problem}", file.name), true)
        }));
        let marked = entries.iter().position(|it| it.value.as_deref() == current).unwrap_or(0);
        let current = current.map(str::to_owned);
        Self { entries, mark: ListMark::new(marked), current, is_plain_code, naming: None, note: None }
    }

    /// Lists these in the place of those of before; what is marked stays so.
    fn take_files(&mut self, files: &[ThemeFile]) {
        let marked = self.entries.get(self.mark.at).map(|entry| entry.value.clone());
        let next = Self::new(self.current.as_deref(), files, self.is_plain_code);
        let place = |value| next.entries.iter().position(|entry| entry.value == value);
        self.mark.at = marked.map_or(next.entries.len(), |value| place(value).unwrap_or(0));
        self.entries = next.entries;
    }

    /// Behind the themes there is a way to make one.
    fn n_rows(&self) -> usize {
        self.entries.len() + 1
    }

    fn preview(&self) -> PanelStep {
        let value = self.entries.get(self.mark.at).map(|entry| entry.value.clone());
        PanelStep::Act(vec![Action::Ui(UiAction::PreviewTheme(value))])
    }

    fn choose(&mut self) -> PanelStep {
        match self.entries.get(self.mark.at) {
            Some(entry) => PanelStep::CloseWith(vec![Action::Ui(UiAction::ChooseTheme(entry.value.clone()))]),
            None => {
                self.naming = Some(TextField::default());
                PanelStep::Stay
            }
        }
    }

    /// Opens the file of the theme that is marked.
    fn edit(&self) -> PanelStep {
        let marked = self.entries.get(self.mark.at).filter(|entry| entry.is_custom);
        match marked.and_then(|entry| entry.value.as_deref()?.strip_prefix("custom:")) {
            Some(slug) => PanelStep::CloseWith(vec![
                Action::Ui(UiAction::PreviewTheme(None)),
                Action::Effect(Effect::EditTheme { slug: slug.to_owned(), name: slug.to_owned() }),
            ]),
            None => PanelStep::Stay,
        }
    }

    fn name_key(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        let Some(field) = &mut self.naming else { return PanelStep::Stay };
        match (event, ctx.action) {
            _ if ctx.is_cancel() => self.naming = None,
            (_, Some(KeyAction::SelectAccept)) => {
                let name = field.text().trim().to_owned();
                let slug = slug_of(&name);
                if !slug.is_empty() {
                    return PanelStep::CloseWith(vec![
                        Action::Ui(UiAction::PreviewTheme(None)),
                        Action::Effect(Effect::EditTheme { slug, name }),
                    ]);
                }
            }
            (InputEvent::Key(key), _) => drop(field.handle(*key)),
            (InputEvent::Paste(text), _) => field.insert(text),
            _ => {}
        }
        PanelStep::Stay
    }
}

impl Panel for ThemePanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if self.naming.is_some() {
            return self.name_key(event, ctx);
        }
        let n_rows = self.n_rows();
        match (ctx.action, event) {
            _ if self.mark.handle_event(n_rows, event, ctx.action) => return self.preview(),
            (Some(KeyAction::SelectAccept), _) => return self.choose(),
            (Some(KeyAction::ThemeToggleSyntaxHighlighting), _) => {
                let (key, value) = (PLAIN_CODE.to_owned(), (!self.is_plain_code).to_string());
                return PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::ChangeSetting {
                    key,
                    value,
                }))]);
            }
            (None, InputEvent::Key(Key { code: KeyCode::Char('e'), ctrl: true, .. })) => return self.edit(),
            _ if ctx.is_cancel() => {
                return PanelStep::CloseWith(vec![Action::Ui(UiAction::PreviewTheme(None))]);
            }
            _ => {}
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Settings { interface, note, .. } => {
                let is_switched = self.is_plain_code != interface.is_plain_code;
                self.is_plain_code = interface.is_plain_code;
                let now = if self.is_plain_code { "off" } else { "on" };
                self.note = match note {
                    Some(note) if is_switched => Some(format!("Colours of code are {now}. {note}")),
                    note => note,
                };
            }
            PanelData::Themes(files) => self.take_files(&files),
            PanelData::Failed(why) => self.note = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        let hint = match &self.naming {
            Some(_) => "Enter make its file and open it · Esc back",
            None => "↑↓ look · Enter choose · Ctrl+T colours of code · Ctrl+E edit one of yours · Esc back",
        };
        let mut view = PanelView::new("Theme", hint);
        view.head.extend(self.note.iter().flat_map(|text| paragraph("", text, warning(), size.width)));
        if let Some(field) = &self.naming {
            view.push_field("Name of the new theme: ", field);
            return view;
        }
        let room = view.room(size);
        let sample = if room >= ROOM_FOR_SAMPLE { sample(ctx, self.is_plain_code) } else { Vec::new() };
        view.body = self.mark.rows(self.n_rows(), room - sample.len(), |idx, is_marked| {
            let row = match self.entries.get(idx) {
                Some(entry) => {
                    let mut row = line(&entry.label, crate::text::Style::default());
                    if entry.value == self.current {
                        row.spans.push(Span::styled("  in use", faint()));
                    }
                    row
                }
                None => line("New custom theme…", crate::text::Style::default()),
            };
            mark_row(row, is_marked)
        });
        view.body.extend(sample);
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::ThemePicker, Context::Select, Context::Global]
    }

    fn is_typing(&self) -> bool {
        self.naming.is_some()
    }
}

/// Something of everything, in the theme that is marked.
fn sample(ctx: &RenderContext, is_plain_code: bool) -> Vec<Row> {
    let span = |text: &str, role| Span::styled(text, ctx.theme.style(role));
    let code = |text: &str, role| span(text, if is_plain_code { Role::Text } else { role });
    let mut rows = vec![
        Row::default(),
        Row::new(vec![
            code("fn ", Role::Keyword),
            code("half", Role::Function),
            code("(n: ", Role::Text),
            code("u32", Role::TypeName),
            code(") { n / ", Role::Text),
            code("2", Role::Constant),
            code(" } ", Role::Text),
            code("// a comment", Role::Comment),
        ]),
    ];
    rows.extend(render_diff(
        &FileDiff {
            path: "half.rs".to_owned(),
            before: "let half = total / 3;\n".to_owned(),
            after: "let half = total / 2;\n".to_owned(),
            first_line: 7,
        },
        ctx,
    ));
    rows.push(Row::new(vec![
        span("went well ", Role::Success),
        span("may go wrong ", Role::Warning),
        span("went wrong ", Role::Error),
        span("chosen ", Role::Selected),
        span("less important", Role::Faint),
    ]));
    rows
}

/// Makes the name of a file of what people call something.
fn slug_of(name: &str) -> String {
    let words = name.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::super::testing::Shown;
    use super::*;

    fn shown(width: u16, height: u16) -> Shown<ThemePanel> {
        let files = [ThemeFile::parse("night", r#"{"name": "Night\u001b"}"#)];
        Shown::new(ThemePanel::new(Some("light"), &files, false), width, height)
    }

    #[test]
    fn marked_theme_is_shown_at_once_and_chosen_or_left() {
        for (width, height) in [(20, 5), (80, 14), (100, 30)] {
            let mut shown = shown(width, height);
            shown.assert_clean();
            let preview = |name: &str| {
                PanelStep::Act(vec![Action::Ui(UiAction::PreviewTheme(Some(Some(name.to_owned()))))])
            };
            assert_eq!(shown.action(KeyAction::SelectNext), preview("dark-daltonized"));
            assert_eq!(shown.action(KeyAction::SelectPrevious), preview("light"));
            assert_eq!(shown.action(KeyAction::SelectPrevious), preview("dark"));
            let chosen =
                PanelStep::CloseWith(vec![Action::Ui(UiAction::ChooseTheme(Some("dark".to_owned())))]);
            assert_eq!(shown.action(KeyAction::SelectAccept), chosen);
            let left = PanelStep::CloseWith(vec![Action::Ui(UiAction::PreviewTheme(None))]);
            assert_eq!(shown.action(KeyAction::SelectCancel), left);
        }
        let text = shown(100, 30).text();
        assert!(text.contains("light  in use") && text.contains("// a comment"), "{text}");
        assert!(text.contains("+ let half") && text.contains("Night"), "{text}");
    }

    #[test]
    fn theme_that_was_just_written_is_listed_and_the_mark_stays() {
        let mut shown = shown(100, 30);
        shown.action(KeyAction::SelectNext);
        let files = ["day", "night"].map(|slug| ThemeFile::parse(slug, "{}"));
        shown.receive(PanelData::Themes(files.to_vec()));
        let text = shown.text();
        assert!(text.contains("day") && text.contains("❯ dark-daltonized"), "{text}");
        shown.panel.mark.at = shown.panel.entries.len();
        shown.receive(PanelData::Themes(Vec::new()));
        let text = shown.text();
        assert!(text.contains("❯ New custom theme") && !text.contains("night"), "{text}");
    }

    #[test]
    fn themes_of_ones_own_are_made_and_edited() {
        let mut shown = shown(100, 30);
        shown.panel.mark.at = shown.panel.entries.len();
        assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::Stay);
        shown.type_text("My Theme!");
        let edit = |slug: &str, name: &str| {
            let edit = Action::Effect(Effect::EditTheme { slug: slug.to_owned(), name: name.to_owned() });
            PanelStep::CloseWith(vec![Action::Ui(UiAction::PreviewTheme(None)), edit])
        };
        assert_eq!(shown.action(KeyAction::SelectAccept), edit("my-theme", "My Theme!"));
        let mut panel = shown.panel;
        (panel.naming, panel.mark.at) = (None, panel.entries.len() - 1);
        let ctrl_e = InputEvent::Key(Key { ctrl: true, ..Key::plain(KeyCode::Char('e')) });
        assert_eq!(panel.handle(&ctrl_e, &PanelContext::default()), edit("night", "night"));
        panel.mark.at = 0;
        assert_eq!(panel.handle(&ctrl_e, &PanelContext::default()), PanelStep::Stay);
    }

    #[test]
    fn colours_of_code_are_switched_with_a_key() {
        let mut shown = shown(100, 30);
        let change = PanelRequest::ChangeSetting { key: PLAIN_CODE.to_owned(), value: "true".to_owned() };
        let step = shown.action(KeyAction::ThemeToggleSyntaxHighlighting);
        assert_eq!(step, PanelStep::Act(vec![Action::Effect(Effect::AskPanel(change))]));
        let interface = crate::interface_settings::InterfaceSettings {
            is_plain_code: true,
            ..crate::interface_settings::InterfaceSettings::default()
        };
        shown.receive(PanelData::Settings {
            rows: Vec::new(),
            note: Some("Set `x`".to_owned()),
            interface: Box::new(interface),
        });
        assert!(shown.text().contains("Colours of code are off. Set `x`"), "{}", shown.text());
    }

    #[test]
    fn example_of_a_theme_is_seen_in_a_window_of_80_by_24() {
        assert!(shown(80, 16).text().contains("fn half"), "{}", shown(80, 16).text());
        assert!(!shown(80, 9).text().contains("fn half"));
    }
}
