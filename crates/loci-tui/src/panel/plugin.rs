//! `/plugin`: what marketplaces offer, what is installed, the marketplaces, and what is wrong.

use loci_app::commands::plugin::{MarketplaceRow, OfferedPlugin, PluginOptions, PluginReport, PluginRow};
use loci_app::plugins::{MarketplaceRequest, PluginRequest};

use super::plugin_options::{FormStep, OptionsForm};
use super::{ItemList, ListItem, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Tabs};
use crate::app::{Action, Effect, UiAction};
use crate::block::NoticeLevel;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
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
    /// The options of one, where they are looked at.
    form: Option<OptionsForm>,
    /// The plugin that was turned on, or installed, and whose options are shown if one has no value.
    started: Option<String>,
}

/// Something that is done with plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PluginVerb {
    request: PluginRequest,
    /// The words by which it would be asked for.
    words: String,
    /// What it is, for people.
    about: String,
}

impl PluginVerb {
    /// Returns what a key does to the thing that is marked in a tab.
    fn from_key(key: char, tab: usize, name: &str) -> Option<Self> {
        let (words, about) = match (key, tab) {
            ('i', DISCOVER) => (
                "install",
                format!("install {name}: it is fetched, turned on for you, and says what it may run"),
            ),
            ('u', INSTALLED) => ("update", format!("bring {name} up to date")),
            ('x', INSTALLED) => ("uninstall", format!("remove {name} and what it kept")),
            ('u', MARKETPLACES) => ("marketplace update", format!("look at {name} again")),
            ('x', MARKETPLACES) => {
                ("marketplace remove", format!("forget {name} and remove the plugins that came from it"))
            }
            _ => return None,
        };
        let typed: Vec<&str> = words.split(' ').chain([name]).collect();
        let request = PluginRequest::parse(&typed)?.ok()?;
        Some(Self { request, words: format!("plugin {words} {name}"), about })
    }

    /// Returns the plugin that it installs, where that is named with its marketplace.
    fn installed(&self) -> Option<&String> {
        match &self.request {
            PluginRequest::Install { name, .. } => Some(name).filter(|name| name.contains('@')),
            _ => None,
        }
    }

    /// Tells whether a session has something to take up once it was done and said this.
    fn changes_sessions(&self, said: &str) -> bool {
        match &self.request {
            PluginRequest::Update { .. } => said.lines().any(|line| !line.ends_with("is up to date")),
            PluginRequest::Install { .. } | PluginRequest::Uninstall { .. } | PluginRequest::Prune { .. } => {
                true
            }
            PluginRequest::Marketplace(request) => matches!(request, MarketplaceRequest::Remove { .. }),
            PluginRequest::Details { .. } | PluginRequest::Validate { .. } => false,
        }
    }

    /// Reads what was typed behind `/plugin`; none where the session carries it out, or nobody does.
    fn typed(argument: &str) -> Option<Result<Self, String>> {
        let typed: Vec<&str> = argument.split_whitespace().collect();
        let words = format!("plugin {}", typed.join(" "));
        Some(match PluginRequest::parse(&typed)? {
            Ok(request) => Ok(Self { request, about: words.clone(), words }),
            Err(why) => Err(why.to_string()),
        })
    }

    /// Returns the action that has it done.
    fn action(&self) -> Action {
        Action::Effect(Effect::AskPanel(PanelRequest::ChangePlugins(self.request.clone())))
    }
}

impl PluginPanel {
    /// Carries out what was typed behind `/plugin`, or opens where it leads; none where the session does.
    pub(crate) fn typed(argument: &str) -> Option<(Self, Vec<Action>)> {
        let at = |tab: usize| Self { tabs: Tabs::at(TITLES, tab), ..Self::new() };
        match argument.trim() {
            "install" | "i" | "discover" | "browse" => return Some((at(DISCOVER), Self::begin())),
            "marketplace" | "market" => return Some((at(MARKETPLACES), Self::begin())),
            "manage" => return Some((at(INSTALLED), Self::begin())),
            _ => {}
        }
        let verb = match PluginVerb::typed(argument)? {
            Ok(verb) => verb,
            Err(why) => {
                let told = Action::Ui(UiAction::Notice(NoticeLevel::Warning, why));
                return Some((at(INSTALLED), Self::begin().into_iter().chain([told]).collect()));
            }
        };
        let is_market = matches!(verb.request, PluginRequest::Marketplace(_));
        let tab = if is_market { MARKETPLACES } else { INSTALLED };
        let run = verb.action();
        let note = Some("It is being done…".to_owned());
        let panel = Self { running: Some(verb), note, ..at(tab) };
        Some((panel, Self::begin().into_iter().chain([run]).collect()))
    }

    /// Shows those that are installed, once they are read.
    pub(crate) fn new() -> Self {
        Self {
            report: None,
            note: None,
            tabs: Tabs::at(TITLES, INSTALLED),
            list: ItemList::default(),
            asked: None,
            running: None,
            form: None,
            started: None,
        }
    }

    /// Returns what it asks for when it is opened.
    pub(crate) fn begin() -> Vec<Action> {
        vec![Action::Effect(Effect::AskPanel(PanelRequest::Plugins))]
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
        let options = is_on.then(|| self.ask_started(&id));
        let toggle = Action::Effect(Effect::AskPanel(PanelRequest::TogglePlugin { id, is_on }));
        PanelStep::Act([toggle].into_iter().chain(options).collect())
    }

    /// Asks for the options of a plugin that is turned on, to show them if one has no value.
    fn ask_started(&mut self, id: &str) -> Action {
        self.started = Some(id.to_owned());
        Action::Effect(Effect::AskPanel(PanelRequest::PluginOptions { id: id.to_owned() }))
    }

    /// Asks for the options of what is looked at.
    fn ask_options(&mut self) -> Option<PanelStep> {
        let is_installed = self.tabs.shown() == INSTALLED;
        let id = self.marked_name().filter(|_| is_installed)?.to_owned();
        self.started = None;
        Some(PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::PluginOptions { id }))]))
    }

    /// Shows the options of a plugin: those that were asked for, or those of one that was turned on and lacks some.
    fn receive_options(&mut self, options: PluginOptions, note: Option<String>) {
        if let Some(form) = self.form.as_mut().filter(|form| form.id() == options.id) {
            form.receive(options, note);
            return;
        }
        let is_started = self.started.take().is_some_and(|id| id == options.id);
        if is_started && options.options.iter().all(|option| option.is_set) {
            return;
        }
        if options.options.is_empty() {
            self.note = Some(format!("{} has no options", options.id));
            return;
        }
        self.form = Some(OptionsForm::new(options));
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
        let verb = PluginVerb::from_key(key, self.tabs.shown(), self.marked_name()?)?;
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
        let run = verb.action();
        self.running = Some(verb);
        Some(PanelStep::Act(vec![run]))
    }

    /// Something else is looked at: what came of the last wish is not about it.
    fn forget_note(&mut self) {
        if self.running.is_none() {
            self.note = None;
        }
    }

    /// Says what can be done with what is looked at.
    fn keys(&self) -> &'static str {
        match self.tabs.shown() {
            DISCOVER => "i install · ",
            INSTALLED => "Space on or off · o options · u update · x remove · ",
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
        if let Some(form) = &mut self.form {
            return match form.handle(event, ctx) {
                FormStep::Stay => PanelStep::Stay,
                FormStep::Act(actions) => PanelStep::Act(actions),
                FormStep::Close => {
                    self.form = None;
                    self.note = Some("`/reload-plugins` has the session take up what was changed".to_owned());
                    PanelStep::Stay
                }
            };
        }
        if self.list.opened().is_none() && self.tabs.handle(ctx.action) {
            self.list = ItemList::default();
            self.forget_note();
            self.show();
            return PanelStep::Stay;
        }
        let asked = self.asked.take();
        match ctx.action {
            Some(KeyAction::PluginToggle) => return self.toggle(),
            Some(KeyAction::PluginInstall) => {
                self.asked = asked;
                return self.run_verb('i').unwrap_or(PanelStep::Stay);
            }
            _ => {}
        }
        if let InputEvent::Key(key) = event
            && let KeyCode::Char(letter) = key.code
        {
            if letter == ' ' {
                return self.toggle();
            }
            if letter == 'o'
                && !self.is_typing()
                && let Some(step) = self.ask_options()
            {
                return step;
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
        let opened = self.list.opened();
        let step = self.list.handle_panel(event, ctx);
        if self.list.opened() != opened {
            self.forget_note();
        }
        step
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Plugins { report, note } => {
                self.report = Some(report);
                self.note = note.or(self.note.take());
                self.show();
            }
            PanelData::PluginOptions { options, note } => self.receive_options(options, note),
            PanelData::PluginsChanged { output } => {
                let done = self.running.take();
                let installed =
                    done.as_ref().filter(|_| output.is_ok()).and_then(PluginVerb::installed).cloned();
                let (is_done, text) = match &output {
                    Ok(text) => (true, text.trim()),
                    Err(why) => (false, why.trim()),
                };
                let is_news = is_done && done.as_ref().is_some_and(|verb| verb.changes_sessions(text));
                let reload = if is_news { "\n`/reload-plugins` has the session take it up" } else { "" };
                let level = if is_done { NoticeLevel::Info } else { NoticeLevel::Warning };
                self.note = done.map(|verb| match is_done {
                    true => format!("Done: {}", verb.words),
                    false => format!("Not done: {}; why is said above", verb.words),
                });
                // All that was said, what it may run above all, is to be read after the panel is closed, too.
                let told = Action::Ui(UiAction::Notice(level, format!("{text}{reload}")));
                let options = installed.map(|id| self.ask_started(&id));
                return [told].into_iter().chain(Self::begin()).chain(options).collect();
            }
            PanelData::Failed(why) => self.note = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        if let Some(form) = &self.form {
            return form.view(size);
        }
        if let Some((title, rows)) = self.detail(size) {
            let mut view = PanelView::new(&title, &format!("{}Esc back", self.keys()));
            view.head.extend(self.note.iter().flat_map(|note| paragraph("", note, warning(), size.width)));
            self.list.detail_view(&mut view, size, rows);
            return view;
        }
        let toggle = if self.tabs.shown() == INSTALLED { "Space on or off · " } else { "" };
        let mut view = PanelView::new("Plugins", &format!("{toggle}Enter look · Tab more · Esc close"));
        view.head.push(self.tabs.row(size.width));
        view.head.extend(self.note.iter().flat_map(|note| paragraph("", note, warning(), size.width)));
        let nothing = match self.tabs.shown() {
            DISCOVER => "Nothing more is offered; `/plugin marketplace add OWNER/REPOSITORY` adds a list",
            INSTALLED => "There are no plugins; Shift+Tab shows what is offered",
            MARKETPLACES => "There are none; `/plugin marketplace add OWNER/REPOSITORY` adds one",
            _ => "Nothing is wrong",
        };
        self.list.list_view(&mut view, size, nothing);
        view
    }

    fn is_typing(&self) -> bool {
        match &self.form {
            Some(form) => form.is_typing(),
            None => self.list.is_typing(),
        }
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Tabs, Context::Plugin, Context::Select, Context::Global]
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
        Ok(n) => loci_stdx::counted(*n as u64, "plugin", "plugins"),
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
    use loci_app::plugins::PluginOption;

    use super::super::testing::Shown;
    use super::*;

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
    fn session_takes_up_only_what_changed() {
        for (typed, said, expected) in [
            ("install a@b", "Installed a@b", true),
            ("uninstall a@b", "it is gone", true),
            ("update a@b", "a@b 1.0.0 is up to date", false),
            ("update a@b", "a@b 1.0.0 is up to date\nc@b: 1.0 to 1.1", true),
            ("marketplace add /x", "x: 4 plugins", false),
            ("marketplace update", "x: 4 plugins", false),
            ("marketplace remove x", "gone", true),
            ("details a@b", "about", false),
        ] {
            let verb = PluginVerb::typed(typed).unwrap().unwrap();
            assert_eq!(verb.changes_sessions(said), expected, "{typed}: {said}");
        }
    }

    #[test]
    fn plugin_is_installed_after_a_second_key_and_what_it_says_is_told() {
        let mut shown = Shown::new(PluginPanel::new(), 80, 14);
        shown.receive(PanelData::Plugins { report: report(), note: None });
        for (tab, key, args) in [
            (DISCOVER, 'i', "install new@market"),
            (INSTALLED, 'x', "uninstall kit@market"),
            (MARKETPLACES, 'u', "marketplace update market"),
        ] {
            while shown.panel.tabs.shown() != tab {
                shown.action(KeyAction::TabsNext);
            }
            shown.action(KeyAction::SelectAccept);
            assert_eq!(shown.key(KeyCode::Char(key), None), PanelStep::Stay);
            assert!(shown.text().contains("again to"), "{}", shown.text());
            shown.key(KeyCode::Char('q'), None);
            assert_eq!(shown.key(KeyCode::Char(key), None), PanelStep::Stay, "another key came between");
            assert_eq!(shown.key(KeyCode::Char(key), None), PanelStep::Act(vec![request(args)]));
            assert_eq!(shown.key(KeyCode::Char(key), None), PanelStep::Stay, "once at a time");
            let told =
                shown.receive(PanelData::PluginsChanged { output: Ok("It may run ./x\u{1b}[2J".into()) });
            assert!(
                matches!(&told[0], Action::Ui(UiAction::Notice(NoticeLevel::Info, text)) if text.contains("./x"))
            );
            shown.receive(PanelData::Plugins { report: report(), note: None });
            shown.assert_clean();
            shown.action(KeyAction::SelectCancel);
        }
        shown.action(KeyAction::SelectAccept);
        shown.key(KeyCode::Char('u'), None);
        shown.key(KeyCode::Char('u'), None);
        let told = shown.receive(PanelData::PluginsChanged { output: Err("no network\n".into()) });
        assert_eq!(told[0], Action::Ui(UiAction::Notice(NoticeLevel::Warning, "no network".into())));
        assert!(shown.text().contains("Not done: plugin"), "{}", shown.text());
        shown.action(KeyAction::SelectCancel);
        assert!(!shown.text().contains("Not done"), "nothing of it is left in the list: {}", shown.text());
    }

    fn request(words: &str) -> Action {
        let words: Vec<&str> = words.split(' ').collect();
        Action::Effect(Effect::AskPanel(PanelRequest::ChangePlugins(
            PluginRequest::parse(&words).unwrap().unwrap(),
        )))
    }

    fn options(token_is_set: bool, region: Option<&str>) -> PluginOptions {
        let declared = serde_json::json!({
            "token": {"type": "string", "title": "Token", "description": "of the API", "sensitive": true,
                      "required": true},
            "region": {"type": "string", "title": "Region\u{1b}[2J", "description": "where", "default": "eu"},
        });
        let (specs, _) = loci_core::plugin::parse_options(Some(&declared));
        let option = |spec: loci_core::plugin::OptionSpec| match spec.is_sensitive {
            true => PluginOption { spec, is_set: token_is_set, typed: None },
            false => PluginOption { spec, is_set: region.is_some(), typed: region.map(str::to_owned) },
        };
        PluginOptions { id: "kit@market".into(), options: specs.into_iter().map(option).collect() }
    }

    fn set_option(key: &str, typed: Option<&str>) -> PanelStep {
        let typed = typed.map(crate::app::SecretText::from);
        let request = PanelRequest::SetPluginOption { id: "kit@market".into(), key: key.into(), typed };
        PanelStep::Act(vec![Action::Effect(Effect::AskPanel(request))])
    }

    #[test]
    fn verbs_behind_the_command_are_carried_out_as_in_a_shell() {
        for (typed, run) in [
            ("install kit@market --scope project", "install kit@market --scope project"),
            ("market add acme/tools", "marketplace add acme/tools"),
            ("marketplace rm market", "marketplace rm market"),
            ("marketplace update", "marketplace update"),
            ("uninstall kit@market", "uninstall kit@market"),
            ("validate .", "validate ."),
        ] {
            let (panel, actions) = PluginPanel::typed(typed).unwrap();
            assert_eq!(actions.last(), Some(&request(run)), "{typed}");
            let mut shown = Shown::new(panel, 80, 14);
            shown.receive(PanelData::Plugins { report: report(), note: None });
            assert!(shown.text().contains("It is being done"), "{}", shown.text());
            let told = shown.receive(PanelData::PluginsChanged { output: Ok("It may run ./x".into()) });
            assert!(
                matches!(&told[0], Action::Ui(UiAction::Notice(NoticeLevel::Info, text)) if text.contains("./x"))
            );
            let asks = |it: &Action| {
                matches!(it, Action::Effect(Effect::AskPanel(PanelRequest::PluginOptions { .. })))
            };
            assert_eq!(told.iter().any(asks), typed.starts_with("install"), "{typed}: {told:?}");
        }
        for (typed, tab) in [("install", DISCOVER), ("marketplace", MARKETPLACES), ("manage", INSTALLED)] {
            let (panel, actions) = PluginPanel::typed(typed).unwrap();
            assert_eq!((panel.tabs.shown(), actions), (tab, PluginPanel::begin()), "{typed}");
        }
        let (panel, actions) = PluginPanel::typed("install kit --shout").unwrap();
        assert!(panel.running.is_none());
        let Some(Action::Ui(UiAction::Notice(NoticeLevel::Warning, why))) = actions.last() else {
            panic!("{actions:?}")
        };
        assert!(why.starts_with("`--shout` is not known here"), "{why}");
        for typed in ["list", "enable kit", "disable kit", "marketplace shout", "init x", "tag"] {
            assert!(PluginPanel::typed(typed).is_none(), "{typed}");
        }
    }

    #[test]
    fn options_are_typed_into_a_form_and_secrets_are_not_seen() {
        let mut shown = Shown::new(PluginPanel::new(), 60, 14);
        shown.receive(PanelData::Plugins { report: report(), note: None });
        shown.action(KeyAction::SelectAccept);
        let ask = Action::Effect(Effect::AskPanel(PanelRequest::PluginOptions { id: "kit@market".into() }));
        assert_eq!(shown.key(KeyCode::Char('o'), None), PanelStep::Act(vec![ask]));
        shown.receive(PanelData::PluginOptions { options: options(false, None), note: None });
        let seen = shown.text();
        assert!(seen.contains("❯ Token: not set, and needed") && seen.contains("\"eu\" (default)"), "{seen}");
        shown.assert_clean();
        shown.action(KeyAction::SelectAccept);
        shown.type_text("hush-hush");
        let seen = shown.text();
        assert!(seen.contains("token = •••••••••") && !seen.contains("hush"), "{seen}");
        assert!(!format!("{:?}", shown.panel).contains("hush"));
        assert_eq!(shown.key(KeyCode::Enter, None), set_option("token", Some("hush-hush")));
        shown.receive(PanelData::PluginOptions { options: options(true, None), note: Some("kept".into()) });
        assert!(shown.text().contains("Token: set, a secret"), "{}", shown.text());
        shown.action(KeyAction::SelectNext);
        shown.action(KeyAction::SelectAccept);
        shown.type_text("us");
        assert!(shown.text().contains("region = us"), "{}", shown.text());
        assert_eq!(shown.key(KeyCode::Enter, None), set_option("region", Some("us")));
        shown.receive(PanelData::PluginOptions { options: options(true, Some("us")), note: None });
        assert!(shown.text().contains("[2J: us"), "{}", shown.text());
        assert_eq!(shown.key(KeyCode::Delete, None), set_option("region", None));
        // Nothing typed changes nothing, and Esc leaves first the field, then the form.
        shown.action(KeyAction::SelectPrevious);
        shown.action(KeyAction::SelectAccept);
        assert_eq!(shown.key(KeyCode::Enter, None), PanelStep::Stay);
        shown.action(KeyAction::SelectAccept);
        shown.action(KeyAction::SelectCancel);
        assert!(shown.text().contains("Options of kit@market"), "{}", shown.text());
        shown.action(KeyAction::SelectCancel);
        assert!(shown.text().contains("/reload-plugins"), "{}", shown.text());
    }

    #[test]
    fn options_of_a_plugin_that_is_turned_on_are_shown_where_one_has_no_value() {
        for (region, opens) in [(None, true), (Some("us"), false)] {
            let mut shown = Shown::new(PluginPanel::new(), 60, 14);
            let mut off = report();
            off.installed[0].is_on = false;
            shown.receive(PanelData::Plugins { report: off, note: None });
            let PanelStep::Act(asked) = shown.key(KeyCode::Char(' '), None) else { panic!("asks") };
            let ask = PanelRequest::PluginOptions { id: "kit@market".into() };
            assert_eq!(asked.last(), Some(&Action::Effect(Effect::AskPanel(ask))));
            shown.receive(PanelData::PluginOptions { options: options(true, region), note: None });
            assert_eq!(shown.text().contains("Options of kit@market"), opens, "{}", shown.text());
        }
    }

    #[test]
    fn keys_of_ones_own_turn_plugins_on_and_install_them() {
        let mut shown = Shown::new(PluginPanel::new(), 80, 14);
        shown.receive(PanelData::Plugins { report: report(), note: None });
        let ask = PanelRequest::TogglePlugin { id: "kit@market".into(), is_on: false };
        assert_eq!(
            shown.action(KeyAction::PluginToggle),
            PanelStep::Act(vec![Action::Effect(Effect::AskPanel(ask))])
        );
        while shown.panel.tabs.shown() != DISCOVER {
            shown.action(KeyAction::TabsNext);
        }
        assert_eq!(shown.action(KeyAction::PluginInstall), PanelStep::Stay);
        let run = request("install new@market");
        assert_eq!(shown.action(KeyAction::PluginInstall), PanelStep::Act(vec![run]));
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
            assert_eq!(
                shown.key(KeyCode::Char(' '), None),
                PanelStep::Act(vec![Action::Effect(Effect::AskPanel(ask))])
            );
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
