//! Themes within the application.

use loci_core::plugin::PluginTheme;
use loci_engine::EngineEvent;
use serde_json::json;

use super::Playing;
use crate::app::{App, AppOptions, Effect, Event, News, PanelRequest, SessionFacts};
use crate::interface_settings::InterfaceSettings;
use crate::key::KeyCode;
use crate::theme::{Backdrop, ColorDepth, Theme, ThemeFile};

fn playing() -> Playing {
    let mut it = Playing::new(100, 30);
    let theme = Theme::new(ColorDepth::True, Backdrop::Dark);
    it.app = App::new(AppOptions { theme, ..AppOptions::default() });
    it.event(Event::News(News::Started(Box::new(super::facts()))));
    it
}

fn files(claude: &str) -> Event {
    let text = json!({"overrides": {"inactive": claude}}).to_string();
    Event::News(News::Themes(vec![ThemeFile::parse("mine", &text)]))
}

/// The colour of the hint below the prompt.
fn hint_color(it: &mut Playing) -> vt100::Color {
    it.event(Event::Tick);
    let screen = it.screen.screen();
    let row = (0..30).find(|row| screen.contents_between(*row, 0, *row, 100).contains("? for")).unwrap();
    let text = screen.contents_between(row, 0, row, 100);
    let column = u16::try_from(text.find("? for").unwrap()).unwrap();
    screen.cell(row, column).unwrap().fgcolor()
}

#[test]
fn setting_and_files_count_as_soon_as_they_change() {
    let mut it = playing();
    assert_eq!(hint_color(&mut it), vt100::Color::Default, "the terminal's own colours");
    it.news(EngineEvent::SettingsChanged(json!({"theme": "custom:mine"})));
    assert!(!it.seen().contains("There is no theme"), "it is not known yet: {}", it.seen());
    it.event(files("#010203"));
    assert_eq!(hint_color(&mut it), vt100::Color::Rgb(1, 2, 3));
    it.event(files("#040506"));
    assert_eq!(hint_color(&mut it), vt100::Color::Rgb(4, 5, 6));
    it.event(Event::News(News::Themes(Vec::new())));
    assert_eq!(hint_color(&mut it), vt100::Color::Default);
    it.event(Event::News(News::Themes(Vec::new())));
    assert_eq!(it.seen().matches("There is no theme `custom:mine`").count(), 1, "{}", it.seen());
}

#[test]
fn theme_of_a_plugin_is_listed_and_counts() {
    let mut it = playing();
    it.event(Event::News(News::Themes(Vec::new())));
    let text = json!({"name": "Kit night", "overrides": {"inactive": "#010203"}}).to_string();
    let themes = vec![PluginTheme { slug: "kit:night".to_owned(), text: text.clone() }];
    let interface = InterfaceSettings::from_value(&json!({"theme": "custom:kit:night"}));
    let facts = SessionFacts { themes, interface, ..super::facts() };
    it.event(Event::News(News::Started(Box::new(facts))));
    assert_eq!(hint_color(&mut it), vt100::Color::Rgb(1, 2, 3));
    assert!(!it.seen().contains("There is no theme"), "{}", it.seen());
    assert_eq!(
        it.app.preferences.plugin_theme("kit:night"),
        Some(text.as_str()),
        "for a copy that can be edited"
    );
    it.text("/theme").key(KeyCode::Enter);
    assert!(it.seen().contains("Kit night  in use"), "{}", it.seen());
}

#[test]
fn auto_follows_the_background_of_the_terminal() {
    let mut it = playing();
    it.news(EngineEvent::SettingsChanged(json!({"theme": "auto"})));
    let dark = hint_color(&mut it);
    it.app.set_backdrop(Backdrop::Light);
    assert_ne!(hint_color(&mut it), dark);
    it.app.set_backdrop(Backdrop::Dark);
    assert_eq!(hint_color(&mut it), dark);
}

#[test]
fn picker_shows_what_is_marked_and_keeps_what_is_chosen() {
    let mut it = playing();
    it.text("/theme").key(KeyCode::Enter);
    assert!(
        it.seen().contains("the terminal's own colours") && it.seen().contains("light-ansi"),
        "{}",
        it.seen()
    );
    let before = it.app.preferences.options.theme;
    it.key(KeyCode::Down).key(KeyCode::Down).key(KeyCode::Down);
    let light = Theme::from_setting(Some("light"), &[], ColorDepth::True, Backdrop::Dark).unwrap();
    assert_eq!(it.app.preferences.options.theme, light, "{}", it.seen());
    it.key(KeyCode::Esc);
    assert_eq!(it.app.preferences.options.theme, before);
    it.text("/theme")
        .key(KeyCode::Enter)
        .key(KeyCode::Down)
        .key(KeyCode::Down)
        .key(KeyCode::Down)
        .key(KeyCode::Enter);
    let (key, value) = ("theme".to_owned(), "light".to_owned());
    assert_eq!(it.actions, [Effect::AskPanel(PanelRequest::ChangeSetting { key, value })]);
    assert_eq!(it.app.preferences.options.theme, light);
    it.text("/theme nosuch").key(KeyCode::Enter);
    assert!(it.seen().contains("There is no theme `nosuch`"), "{}", it.seen());
}

#[test]
fn no_colours_stay_none_whatever_the_theme() {
    let mut it = Playing::new(100, 30);
    let theme = Theme::new(ColorDepth::None, Backdrop::Dark);
    it.app = App::new(AppOptions { theme, ..AppOptions::default() });
    it.event(Event::News(News::Started(Box::new(super::facts()))));
    it.news(EngineEvent::SettingsChanged(json!({"theme": "dark-high-contrast"})));
    assert_eq!(hint_color(&mut it), vt100::Color::Default);
}
