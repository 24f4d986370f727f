//! `/plugin`: what marketplaces offer, what is installed, the marketplaces, and what is wrong.

use loci_app::commands::plugin::{MarketplaceRow, OfferedPlugin, PluginReport, PluginRow};

use super::{
    ItemList, ItemStep, ListItem, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Tabs,
};
use crate::app::Action;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::Context;
use crate::layout::{code, faint, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Style};

const TITLES: &[&str] = &["Discover", "Installed", "Marketplaces", "Errors"];
const INSTALLED: usize = 1;

/// The plugins.
#[derive(Debug)]
pub(crate) struct PluginPanel {
    report: Option<PluginReport>,
    note: Option<String>,
    tabs: Tabs,
    list: ItemList,
}

impl PluginPanel {
    /// Shows those that are installed, once they are read.
    pub(crate) fn new() -> Self {
        Self { report: None, note: None, tabs: Tabs::at(TITLES, INSTALLED), list: ItemList::default() }
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

    fn detail(&self, size: Size) -> Option<(String, Vec<Row>)> {
        let (report, idx) = (self.report.as_ref()?, self.list.opened()?);
        let width = size.width;
        Some(match self.tabs.shown() {
            0 => {
                let plugin = report.offered.get(idx)?;
                let mut rows = paragraph("", &plugin.description, Style::default(), width);
                let install = format!("loci plugin install {}", plugin.id);
                rows.extend(paragraph(
                    "",
                    "Install it in a shell, where it says what it may run:",
                    faint(),
                    width,
                ));
                rows.extend(paragraph("", &install, code(), width));
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
                let update = format!("loci plugin marketplace update {}", market.name);
                rows.extend(paragraph("", &format!("Last looked at: {}", market.updated), faint(), width));
                rows.extend(paragraph("", &update, code(), width));
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
        if matches!(event, InputEvent::Key(key) if key.code == KeyCode::Char(' ')) {
            return self.toggle();
        }
        match self.list.handle(event, ctx) {
            ItemStep::Close => PanelStep::Close,
            ItemStep::Stay | ItemStep::Unknown => PanelStep::Stay,
        }
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Plugins { report, note } => {
                self.report = Some(report);
                self.note = note;
                self.show();
            }
            PanelData::Failed(why) => self.note = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let toggle = if self.tabs.shown() == INSTALLED { "Space on or off · " } else { "" };
        if let Some((title, rows)) = self.detail(size) {
            let mut view = PanelView::new(&title, &format!("{toggle}Esc back"));
            view.head.extend(self.note.iter().flat_map(|note| paragraph("", note, warning(), size.width)));
            self.list.detail_view(&mut view, size, rows);
            return view;
        }
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
            assert!(joined.contains("plugin install") || width == 20, "{joined}");
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay);
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
        }
    }
}
