//! `/plugin`: what marketplaces offer, what is installed, the marketplaces, and what is wrong.

use loci_app::commands::plugin::{MarketplaceRow, OfferedPlugin, PluginReport, PluginRow};

use super::{ItemList, ListItem, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Tabs};
use crate::app::Action;
use crate::block::NoticeLevel;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::Context;
use crate::layout::{faint, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Style};

const TITLES: &[&str] = &["Discover", "Installed", "Marketplaces", "Errors"];
const DISCOVER: usize = 0;
const INSTALLED: usize = 1;
const MARKETPLACES: usize = 2;

/// The plugins.
#[derive(Debug)]
pub(crate) struct PluginPanel {
    report: Option<PluginReport>,
    note: Option<String>,
    tabs: Tabs,
    list: ItemList,
    /// What is done when its key is pressed once more.
    asked: Option<PluginVerb>,
    /// What is being done.
    running: Option<PluginVerb>,
}

/// Something that `loci plugin` does.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PluginVerb {
    key: char,
    args: Vec<String>,
    /// What it is, for people.
    about: String,
}

impl PluginVerb {
    /// Returns what a key does to the thing that is marked in a tab.
    fn of(key: char, tab: usize, name: &str) -> Option<Self> {
        let (args, about): (&[&str], String) = match (key, tab) {
            ('i', DISCOVER) => (
                &["install"],
                format!("install {name}: it is fetched, turned on for you, and says what it may run"),
            ),
            ('u', INSTALLED) => (&["update"], format!("bring {name} up to date")),
            ('x', INSTALLED) => (&["uninstall"], format!("remove {name}")),
            ('u', MARKETPLACES) => (&["marketplace", "update"], format!("look at {name} again")),
            ('x', MARKETPLACES) => (&["marketplace", "remove"], format!("forget {name}")),
            _ => return None,
        };
        let args = ["plugin"].iter().chain(args).map(|word| (*word).to_owned()).chain([name.to_owned()]);
        Some(Self { key, args: args.collect(), about })
    }
}

impl PluginPanel {
    /// Shows those that are installed, once they are read.
    pub(crate) fn new() -> Self {
        Self {
            report: None,
            note: None,
            tabs: Tabs::at(TITLES, INSTALLED),
            list: ItemList::default(),
            asked: None,
            running: None,
        }
    }

    /// Returns what it asks for when it is opened.
    pub(crate) fn begin() -> Vec<Action> {
        vec![Action::AskPanel(PanelRequest::Plugins)]
    }

    fn show(&mut self) {
        let Some(report) = &self.report else { return };
        self.list.set(match self.tabs.shown() {
            0 => report.offered.iter().map(offered_item).collect(),
            1 => report.installed.iter().map(plugin_item).collect(),
            2 => report.marketplaces.iter().map(marketplace_item).collect(),
            _ => report.problems.iter().map(|problem| problem_item(problem)).collect(),
        });
    }

    /// Turns the marked plugin on or off.
    fn toggle(&mut self) -> PanelStep {
        let is_installed = self.tabs.shown() == INSTALLED;
        let plugins = self.report.as_ref().filter(|_| is_installed).map(|report| &report.installed);
        let Some(plugin) = self.list.marked().and_then(|idx| plugins?.get(idx)) else {
            return PanelStep::Stay;
        };
        if plugin.is_forced {
            self.note = Some("Your administrator has turned it on".to_owned());
            return PanelStep::Stay;
        }
        let (id, is_on) = (plugin.id.clone(), !plugin.is_on);
        self.note = Some("Writing it down…".to_owned());
        PanelStep::Act(vec![Action::AskPanel(PanelRequest::TogglePlugin { id, is_on })])
    }

    /// Returns what is marked, or looked at, by its name.
    fn marked_name(&self) -> Option<&str> {
        let (report, idx) = (self.report.as_ref()?, self.list.opened().or_else(|| self.list.marked())?);
        match self.tabs.shown() {
            DISCOVER => report.offered.get(idx).map(|plugin| plugin.id.as_str()),
            INSTALLED => report.installed.get(idx).map(|plugin| plugin.id.as_str()),
            MARKETPLACES => report.marketplaces.get(idx).map(|market| market.name.as_str()),
            _ => None,
        }
    }

    /// Asks before something is done with what is marked, and does it when the key comes again.
    fn run_verb(&mut self, key: char) -> Option<PanelStep> {
        let verb = PluginVerb::of(key, self.tabs.shown(), self.marked_name()?)?;
        if self.running.is_some() {
            return Some(PanelStep::Stay);
        }
        if self.asked.as_ref() != Some(&verb) {
            self.note = Some(format!("Press {key} again to {}", verb.about));
            self.asked = Some(verb);
            return Some(PanelStep::Stay);
        }
        self.asked = None;
        self.note = Some("It is being done…".to_owned());
        let args = verb.args.clone();
        self.running = Some(verb);
        Some(PanelStep::Act(vec![Action::RunVerb(args)]))
    }

    /// Says what can be done with what is looked at.
    fn keys(&self) -> &'static str {
        match self.tabs.shown() {
            DISCOVER => "i install · ",
            INSTALLED => "Space on or off · u update · x remove · ",
            MARKETPLACES => "u update · x forget · ",
            _ => "",
        }
    }

    fn detail(&self, size: Size) -> Option<(String, Vec<Row>)> {
        let (report, idx) = (self.report.as_ref()?, self.list.opened()?);
        let width = size.width;
        Some(match self.tabs.shown() {
            0 => {
                let plugin = report.offered.get(idx)?;
                let mut rows = paragraph("", &plugin.description, Style::default(), width);
                let install = format!("i, twice, installs it, as `loci plugin install {}` does", plugin.id);
                rows.extend(paragraph("", &install, faint(), width));
                (plugin.id.clone(), rows)
            }
            1 => {
                let plugin = report.installed.get(idx)?;
                let mut rows = paragraph("", &plugin.description, Style::default(), width);
                rows.extend(paragraph("", &format!("From {}", plugin.source), faint(), width));
                rows.extend(
                    plugin.brings.iter().flat_map(|text| paragraph("- ", text, Style::default(), width)),
                );
                if !plugin.is_on {
                    rows.extend(paragraph(
                        "",
                        "It is off: what it brings is read when it is on",
                        faint(),
                        width,
                    ));
                }
                (plugin.id.clone(), rows)
            }
            2 => {
                let market = report.marketplaces.get(idx)?;
                let mut rows = paragraph("", &format!("From {}", market.source), Style::default(), width);
                rows.extend(paragraph("", &format!("Last looked at: {}", market.updated), faint(), width));
                (market.name.clone(), rows)
            }
            _ => ("What is wrong".to_owned(), paragraph("", report.problems.get(idx)?, warning(), width)),
        })
    }
}

impl Panel for PluginPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if self.list.opened().is_none() && self.tabs.handle(ctx.action) {
            self.list = ItemList::default();
            self.show();
            return PanelStep::Stay;
        }
        let asked = self.asked.take();
        if let InputEvent::Key(key) = event
            && let KeyCode::Char(letter) = key.code
        {
            if letter == ' ' {
                return self.toggle();
            }
            // In the list letters narrow it down.
            self.asked = asked.filter(|_| !self.is_typing());
            if !self.is_typing()
                && let Some(step) = self.run_verb(letter)
            {
                return step;
            }
            self.asked = None;
        }
        self.list.handle_panel(event, ctx)
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Plugins { report, note } => {
                self.report = Some(report);
                self.note = note.or(self.note.take());
                self.show();
            }
            PanelData::VerbEnded { output } => {
                let done = self.running.take();
                let (is_done, text) = match &output {
                    Ok(text) => (true, text.trim().to_owned()),
                    Err(why) => (false, why.trim().to_owned()),
                };
                let reload = if is_done { "\n`/reload-plugins` has the session take it up" } else { "" };
                let level = if is_done { NoticeLevel::Info } else { NoticeLevel::Warning };
                self.note = done.map(|verb| match is_done {
                    true => format!("Done: {}", verb.about),
                    false => format!("Not done: {}", verb.about),
                });
                // All that was said, what it may run above all, is to be read after the panel is closed, too.
                let told = Action::Notice(level, format!("{text}{reload}"));
                return [told].into_iter().chain(Self::begin()).collect();
            }
            PanelData::Failed(why) => self.note = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        if let Some((title, rows)) = self.detail(size) {
            let mut view = PanelView::new(&title, &format!("{}Esc back", self.keys()));
            view.head.extend(self.note.iter().flat_map(|note| paragraph("", note, warning(), size.width)));
            self.list.detail_view(&mut view, size, rows);
            return view;
        }
        let toggle = if self.tabs.shown() == INSTALLED { "Space on or off · " } else { "" };
        let mut view = PanelView::new("Plugins", &format!("{toggle}Enter look · Tab more · Esc close"));
        view.head.push(self.tabs.row());
        view.head.extend(self.note.iter().flat_map(|note| paragraph("", note, warning(), size.width)));
        let nothing = match self.tabs.shown() {
            0 => "Nothing more is offered; `loci plugin marketplace add` adds a list",
            1 => "There are no plugins",
            2 => "There are no marketplaces; `loci plugin marketplace add` adds one",
            _ => "Nothing is wrong",
        };
        self.list.list_view(&mut view, size, nothing);
        view
    }

    fn is_typing(&self) -> bool {
        self.list.is_typing()
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Tabs, Context::Select, Context::Global]
    }
}

fn offered_item(plugin: &OfferedPlugin) -> ListItem {
    ListItem { title: plugin.id.clone(), note: plugin.description.clone(), ..ListItem::default() }
}

fn plugin_item(plugin: &PluginRow) -> ListItem {
    let state = if plugin.is_on { "on" } else { "off" };
    ListItem {
        title: plugin.id.clone(),
        state: state.to_owned(),
        is_bad: false,
        note: format!("{}  {}", plugin.version, plugin.description),
    }
}

fn marketplace_item(market: &MarketplaceRow) -> ListItem {
    let state = match &market.plugins {
        Ok(n) => format!("{n} plugins"),
        Err(why) => why.clone(),
    };
    ListItem {
        title: market.name.clone(),
        state,
        is_bad: market.plugins.is_err(),
        note: market.source.clone(),
    }
}

fn problem_item(problem: &str) -> ListItem {
    ListItem { title: problem.to_owned(), is_bad: true, ..ListItem::default() }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Shown;
    use super::*;
    use crate::keymap::Action as KeyAction;

    fn report() -> PluginReport {
        PluginReport {
            offered: vec![OfferedPlugin { id: "new@market".into(), description: "helps\u{1b}[2J".into() }],
            installed: vec![PluginRow {
                id: "kit@market".into(),
                version: "1.0".into(),
                is_on: true,
                is_forced: false,
                source: "user, /p".into(),
                description: "a kit 日本".into(),
                brings: vec!["runs ./x\u{1b}[2J".into()],
            }],
            marketplaces: vec![MarketplaceRow {
                name: "market".into(),
                source: "owner/repo".into(),
                updated: String::new(),
                plugins: Err("no file".into()),
            }],
            problems: vec!["Plugin `kit`: bad".into()],
        }
    }

    #[test]
    fn plugin_is_installed_after_a_second_key_and_what_it_says_is_told() {
        let mut shown = Shown::new(PluginPanel::new(), 80, 14);
        shown.receive(PanelData::Plugins { report: report(), note: None });
        for (tab, key, args) in [
            (DISCOVER, 'i', vec!["plugin", "install", "new@market"]),
            (INSTALLED, 'x', vec!["plugin", "uninstall", "kit@market"]),
            (MARKETPLACES, 'u', vec!["plugin", "marketplace", "update", "market"]),
        ] {
            while shown.panel.tabs.shown() != tab {
                shown.action(KeyAction::TabsNext);
            }
            shown.action(KeyAction::SelectAccept);
            assert_eq!(shown.key(KeyCode::Char(key), None), PanelStep::Stay);
            assert!(shown.text().contains("again to"), "{}", shown.text());
            shown.key(KeyCode::Char('q'), None);
            assert_eq!(shown.key(KeyCode::Char(key), None), PanelStep::Stay, "another key came between");
            let run = Action::RunVerb(args.into_iter().map(str::to_owned).collect());
            assert_eq!(shown.key(KeyCode::Char(key), None), PanelStep::Act(vec![run]));
            assert_eq!(shown.key(KeyCode::Char(key), None), PanelStep::Stay, "once at a time");
            let told = shown.receive(PanelData::VerbEnded { output: Ok("It may run ./x\u{1b}[2J".into()) });
            assert!(matches!(&told[0], Action::Notice(NoticeLevel::Info, text) if text.contains("./x")));
            shown.receive(PanelData::Plugins { report: report(), note: None });
            shown.assert_clean();
            shown.action(KeyAction::SelectCancel);
        }
        shown.action(KeyAction::SelectAccept);
        shown.key(KeyCode::Char('u'), None);
        shown.key(KeyCode::Char('u'), None);
        let told = shown.receive(PanelData::VerbEnded { output: Err("no network".into()) });
        assert!(matches!(&told[0], Action::Notice(NoticeLevel::Warning, _)), "{told:?}");
        assert!(shown.text().contains("Not done"), "{}", shown.text());
    }

    #[test]
    fn tabs_show_what_is_offered_installed_listed_and_wrong() {
        for (width, height) in [(20, 8), (50, 12), (80, 14), (120, 20)] {
            let mut shown = Shown::new(PluginPanel::new(), width, height);
            assert!(shown.text().contains("Reading…"), "{}", shown.text());
            shown.receive(PanelData::Plugins { report: report(), note: None });
            shown.assert_clean();
            assert!(shown.text().contains("❯ kit@market"), "{}", shown.text());
            let ask = PanelRequest::TogglePlugin { id: "kit@market".into(), is_on: false };
            assert_eq!(shown.key(KeyCode::Char(' '), None), PanelStep::Act(vec![Action::AskPanel(ask)]));
            shown.receive(PanelData::Plugins { report: report(), note: None });
            for expected in ["❯ market", "❯ Plugin `kit`", "❯ new@market"] {
                shown.action(KeyAction::TabsNext);
                assert!(shown.text().contains(expected), "{width}: {}", shown.text());
                shown.assert_clean();
            }
            shown.action(KeyAction::SelectAccept);
            shown.assert_clean();
            let joined = shown.text().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains("plugin install") || width == 20 || height < 12, "{joined}");
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay);
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
        }
    }
}
