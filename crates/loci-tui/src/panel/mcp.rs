//! `/mcp`: the servers, how they are doing, what each offers and logs, and looking after them.

use std::sync::Arc;
use std::time::Duration;

use loci_app::commands::mcp::ServerRow;
use loci_engine::{Command, McpAction};
use loci_stdx::counted;

use super::items::padded;
use super::{
    ListMark, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, Tabs, ask_snapshot,
    mark_row,
};
use crate::app::{Action, Effect};
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{cells, code, faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, Style, sanitize_line};

/// What is seen of a server.
const TITLES: &[&str] = &["Tools", "Resources", "Prompts", "Log"];
/// How often it is asked what became of servers that connect, and of a login.
const REFRESH: Duration = Duration::from_secs(1);
/// The status of a server that is used.
const CONNECTED: &str = "connected";
/// That of one that is being connected.
const PENDING: &str = "pending";
/// The tab with the log.
const LOG: usize = 3;

/// The servers, or one of them.
#[derive(Debug)]
pub(crate) struct McpPanel {
    servers: Option<Vec<ServerRow>>,
    problem: Option<String>,
    /// The page to log in at.
    page: Option<String>,
    /// The server at which a login was begun, until it is over.
    login: Option<String>,
    mark: ListMark,
    /// The one that is looked at, by name.
    open: Option<String>,
    /// What is seen of it.
    tabs: Tabs,
    /// Its log, once it was read.
    log: Option<String>,
    scroll: Scroll,
}

impl Default for McpPanel {
    fn default() -> Self {
        Self {
            servers: None,
            problem: None,
            page: None,
            login: None,
            mark: ListMark::default(),
            open: None,
            tabs: Tabs::new(TITLES),
            log: None,
            scroll: Scroll::default(),
        }
    }
}

impl McpPanel {
    fn server(&self) -> Option<&ServerRow> {
        let servers = self.servers.as_ref()?;
        match &self.open {
            Some(name) => servers.iter().find(|server| server.name == *name),
            None => servers.get(self.mark.at),
        }
    }

    /// Has the server that is looked at connected anew, or switched on or off.
    fn act(&mut self, code: KeyCode) -> PanelStep {
        let Some(server) = self.server() else { return PanelStep::Stay };
        let name = server.name.clone();
        // Nothing is known of an entry that was left out.
        let server_is_known = !server.kind.is_empty();
        let action = match code {
            KeyCode::Char('r') => McpAction::Reconnect { server: name },
            KeyCode::Char('l') => McpAction::Authenticate { server: name, redirect_uri: None },
            KeyCode::Char('o') => McpAction::ClearAuth { server: name },
            KeyCode::Char('e') => McpAction::Toggle { server: name, is_on: server.status == "disabled" },
            _ => return PanelStep::Stay,
        };
        let kept = match &action {
            McpAction::Toggle { server, is_on } if server_is_known => {
                Some(PanelRequest::KeepServerToggle { server: server.clone(), is_on: *is_on })
            }
            _ => None,
        };
        self.login = match &action {
            McpAction::Authenticate { server, .. } => Some(server.clone()),
            _ => None,
        };
        // The page to log in at is long: what is seen of one server scrolls.
        if self.login.is_some() && self.open.is_none() {
            self.look();
        }
        let sent = self.send(action);
        PanelStep::Act(
            sent.into_iter().chain(kept.map(|request| Action::Effect(Effect::AskPanel(request)))).collect(),
        )
    }

    /// Looks at the server that is marked.
    fn look(&mut self) {
        self.open = self.server().map(|server| server.name.clone());
        (self.tabs, self.log, self.scroll) = (Tabs::new(TITLES), None, Scroll::default());
    }

    fn send(&mut self, action: McpAction) -> Vec<Action> {
        (self.problem, self.page) = (Some("Working on it…".to_owned()), None);
        vec![Action::Effect(Effect::Send(Command::Mcp { request: "panel".to_owned(), action }))]
    }

    /// Takes the address that a login ended at, where the browser could not bring it here itself.
    fn take_pasted(&mut self, pasted: &str) -> PanelStep {
        let address = pasted.trim().to_owned();
        match self.login.clone().filter(|_| !address.is_empty()) {
            Some(server) => PanelStep::Act(self.send(McpAction::LoginAnswer { server, address })),
            None => PanelStep::Stay,
        }
    }

    /// What came of the last wish, in full. An address to visit is a link on each of its rows: whoever copies them gets
    /// pieces.
    fn problem_rows(&self, size: Size) -> Vec<Row> {
        let mut rows: Vec<Row> =
            self.problem.iter().flat_map(|text| paragraph("", text, warning(), size.width)).collect();
        let page = self.page.as_deref().filter(|page| !page.chars().any(char::is_control));
        for mut row in page.iter().flat_map(|page| paragraph("", page, code(), size.width)) {
            row.spans.iter_mut().for_each(|span| span.link = page.map(Arc::from));
            rows.push(row);
        }
        rows
    }

    fn server_view(&self, server: &ServerRow, size: Size) -> PanelView {
        let title = format!("{} · {}", server.name, server.status);
        let mut view = PanelView::new(
            &title,
            "Tab more · ↑↓ scroll · r reconnect · e on or off · l log in · o log out · Esc back",
        );
        view.head.push(self.tabs.row(size.width));
        let about = server.about.as_ref().map(|about| format!("; {about}")).unwrap_or_default();
        let place = match server.kind {
            "" => "Its entry cannot be used".to_owned(),
            kind => format!("From {}, reached by {kind}{about}", server.scope),
        };
        let mut body = vec![line(&place, faint())];
        if let Some(error) = server.error.as_ref().filter(|error| self.problem.as_ref() != Some(*error)) {
            body.extend(paragraph("", error, warning(), size.width));
        }
        body.extend(self.problem_rows(size));
        let items = match self.tabs.shown() {
            0 => Some((&server.tools, ("tool", "tools"), "")),
            1 => Some((&server.resources, ("resource", "resources"), "; mention one with @")),
            2 => Some((&server.prompts, ("prompt", "prompts"), "; type one as a command")),
            _ => None,
        };
        match (items, &self.log) {
            (Some((items, (one, several), use_of_it)), _) => {
                let n_items = counted(items.len() as u64, one, several);
                body.push(line(&format!("{n_items}{use_of_it}"), Style::default()));
                body.extend(items.iter().flat_map(|item| item_rows(item, size)));
            }
            (None, None) => body.push(line("Reading…", faint())),
            (None, Some(log)) if log.trim().is_empty() => body.push(line("It has no log", faint())),
            (None, Some(log)) => body.extend(log.lines().map(|text| line(text, Style::default()))),
        }
        let room = view.room(size);
        view.body = self.scroll.rows(body, room);
        view
    }

    /// Shows something else of the server; its log is read anew each time.
    fn change_tab(&mut self) -> PanelStep {
        // What was logged last is what is wanted of it.
        self.scroll = if self.tabs.shown() == LOG { Scroll::at_end() } else { Scroll::default() };
        match &self.open {
            Some(server) if self.tabs.shown() == LOG => {
                PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::ServerLog {
                    server: server.clone(),
                }))])
            }
            _ => PanelStep::Stay,
        }
    }
}

impl Panel for McpPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return match self.open.take() {
                Some(_) => PanelStep::Stay,
                None => PanelStep::Close,
            };
        }
        if self.open.is_some() && self.tabs.handle(ctx.action) {
            return self.change_tab();
        }
        if self.open.is_some() && self.scroll.handle(event) {
            return PanelStep::Stay;
        }
        match ctx.action {
            _ if self.mark.handle_event(self.servers.as_ref().map_or(0, Vec::len), event, ctx.action) => {}
            Some(KeyAction::SelectAccept) if self.open.is_none() => self.look(),
            _ => {
                return match event {
                    InputEvent::Key(key) => self.act(key.code),
                    InputEvent::Paste(text) => self.take_pasted(text),
                    _ => PanelStep::Stay,
                };
            }
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(snapshot) => {
                return vec![Action::Effect(Effect::AskPanel(PanelRequest::Servers { snapshot }))];
            }
            PanelData::Servers(servers) => {
                self.mark.at = self.mark.at.min(servers.len().saturating_sub(1));
                let is_in = |server: &ServerRow| self.login.as_ref() == Some(&server.name);
                if servers.iter().any(|server| is_in(server) && server.status == CONNECTED) {
                    (self.login, self.page) = (None, None);
                    self.problem = Some("You are logged in".to_owned());
                }
                self.servers = Some(servers);
            }
            PanelData::ServersChanged(Ok(Some(page))) => {
                let told = "Log in at this page, then come back; where the browser is elsewhere, paste the address \
                            that it ends at:";
                (self.problem, self.page) = (Some(told.to_owned()), Some(page.clone()));
                return vec![Action::Effect(Effect::OpenPage(page)), ask_snapshot()];
            }
            PanelData::ServersChanged(outcome) => {
                (self.problem, self.page) = (outcome.err(), None);
                return self.refresh();
            }
            PanelData::ServerLog { server, text } if self.open.as_ref() == Some(&server) => {
                self.log = Some(text);
            }
            PanelData::Failed(why) => self.problem = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn refresh_every(&self) -> Option<Duration> {
        let is_pending = self.servers.iter().flatten().any(|server| server.status == PENDING);
        (self.login.is_some() || is_pending).then_some(REFRESH)
    }

    fn refresh(&self) -> Vec<Action> {
        let log = self.open.iter().filter(|_| self.tabs.shown() == LOG).map(|server| {
            Action::Effect(Effect::AskPanel(PanelRequest::ServerLog { server: server.clone() }))
        });
        std::iter::once(ask_snapshot()).chain(log).collect()
    }

    fn follows_servers(&self) -> bool {
        true
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        if let Some(server) = self.server().filter(|_| self.open.is_some()) {
            return self.server_view(server, size);
        }
        let hint = match self.servers.as_ref().is_some_and(|servers| !servers.is_empty()) {
            true => "Enter look · r reconnect · e on or off · l log in · o log out · Esc close",
            false => "Esc close",
        };
        let mut view = PanelView::new("MCP servers", hint);
        view.head.extend(self.problem_rows(size));
        let room = view.room(size);
        let servers = self.servers.as_deref().unwrap_or_default();
        let widest = |text: fn(&ServerRow) -> &str, most: u16| {
            let widths = servers.iter().map(|server| cells(&sanitize_line(text(server))));
            widths.filter(|width| *width <= most).max().map_or(0, usize::from)
        };
        let columns =
            (widest(|server| &server.name, size.width / 3), widest(|server| server.status, size.width / 4));
        view.body = self.mark.rows(servers.len(), room, |idx, is_marked| {
            mark_row(
                servers.get(idx).map_or_else(Row::default, |server| server_row(server, columns)),
                is_marked,
            )
        });
        if servers.is_empty() {
            let text = if self.servers.is_some() {
                "There are none; `loci mcp add` in a shell adds one"
            } else {
                "Reading…"
            };
            view.body = vec![line(text, faint())];
        }
        view
    }

    fn contexts(&self) -> &'static [Context] {
        match self.open {
            Some(_) => &[Context::Tabs, Context::Select, Context::Global],
            None => &[Context::Select, Context::Global],
        }
    }
}

fn item_rows((name, about): &(String, String), size: Size) -> Vec<Row> {
    let mut rows = vec![line(&format!("  {name}"), code())];
    // What it does, then what it takes.
    let (first, second) = about.split_once('\n').unwrap_or((about, ""));
    for about in [first, second].map(|text| loci_stdx::single_line(text, 300)) {
        if !about.is_empty() {
            rows.extend(paragraph("    ", &about, faint(), size.width));
        }
    }
    rows
}

fn server_row(server: &ServerRow, (name_width, status_width): (usize, usize)) -> Row {
    let count = |items: &[(String, String)], one, several| counted(items.len() as u64, one, several);
    let offer = match server.kind {
        "" => loci_stdx::single_line(server.error.as_deref().unwrap_or_default(), 300),
        _ => format!(
            "{}, {}, {}, from {}",
            count(&server.tools, "tool", "tools"),
            count(&server.resources, "resource", "resources"),
            count(&server.prompts, "prompt", "prompts"),
            server.scope
        ),
    };
    let state_style = if server.error.is_some() { warning() } else { faint() };
    Row::new(vec![
        Span::plain(padded(&server.name, name_width)),
        Span::styled(format!("  {}", padded(server.status, status_width)), state_style),
        Span::styled(sanitize_line(&format!("  {offer}")), faint()),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Shown, snapshot};
    use super::*;

    fn server(name: &str, status: &'static str) -> ServerRow {
        let item = |text: &str| vec![(format!("{text}{name}\u{1b}"), "what it\u{1b}[2J is".to_owned())];
        ServerRow {
            name: name.into(),
            status,
            scope: "user",
            kind: "stdio",
            error: None,
            tools: item("tool_"),
            resources: item("@uri_"),
            prompts: item("/prompt_"),
            about: Some("calc 1".into()),
        }
    }

    #[test]
    fn entry_that_was_left_out_is_listed_with_why_and_tools_say_what_they_take() {
        let mut shown = Shown::new(McpPanel::default(), 80, 14);
        let why = "it has a `url` and no `type`\u{1b}[2J (/p/.mcp.json)".to_owned();
        let left_out = ServerRow { kind: "", scope: "", error: Some(why), ..server("bad", "left out") };
        let calc = ServerRow {
            tools: vec![("mcp__calc__add".into(), "Adds\ntakes a: number".into())],
            ..server("calc", "connected")
        };
        shown.receive(PanelData::Servers(vec![calc, left_out]));
        shown.assert_clean();
        assert!(shown.text().contains("bad   left out   it has a `url`"), "{}", shown.text());
        shown.action(KeyAction::SelectAccept);
        assert!(shown.text().contains("\n    Adds\n    takes a: number"), "{}", shown.text());
        shown.action(KeyAction::SelectCancel);
        shown.action(KeyAction::SelectNext);
        shown.action(KeyAction::SelectAccept);
        shown.assert_clean();
        assert!(shown.text().contains("Its entry cannot be used"), "{}", shown.text());
    }

    #[test]
    fn fifty_servers_are_gone_through_by_pages() {
        let mut shown = Shown::new(McpPanel::default(), 80, 12);
        let servers = (0..50).map(|idx| server(&format!("s{idx:02}"), "connected")).collect();
        shown.receive(PanelData::Servers(servers));
        for (key, expected) in [
            (KeyCode::Home, "❯ s00"),
            (KeyCode::PageDown, "❯ s10"),
            (KeyCode::PageDown, "❯ s20"),
            (KeyCode::PageUp, "❯ s10"),
            (KeyCode::End, "❯ s49"),
        ] {
            shown.key(key, None);
            assert!(shown.text().contains(expected), "{key:?}: {}", shown.text());
            shown.assert_clean();
        }
        assert!(shown.text().contains("\n↑ s40"), "{}", shown.text());
    }

    #[test]
    fn servers_are_listed_looked_at_and_looked_after() {
        for (width, height) in [(20, 8), (50, 12), (80, 14), (120, 20)] {
            let mut shown = Shown::new(McpPanel::default(), width, height);
            let snapshot = snapshot();
            let ask = PanelRequest::Servers { snapshot: snapshot.clone() };
            assert_eq!(shown.receive(PanelData::Snapshot(snapshot)), [Action::Effect(Effect::AskPanel(ask))]);
            shown.receive(PanelData::Servers(Vec::new()));
            assert!(shown.text().contains("There are none"), "{}", shown.text());
            let servers = vec![server("calc", "connected"), server("日本", "disabled")];
            shown.receive(PanelData::Servers(servers));
            shown.assert_clean();
            shown.action(KeyAction::SelectNext);
            let toggle = McpAction::Toggle { server: "日本".into(), is_on: true };
            let send = Action::Effect(Effect::Send(Command::Mcp { request: "panel".into(), action: toggle }));
            let keep = Action::Effect(Effect::AskPanel(PanelRequest::KeepServerToggle {
                server: "日本".into(),
                is_on: true,
            }));
            assert_eq!(shown.key(KeyCode::Char('e'), None), PanelStep::Act(vec![send, keep]));
            assert_eq!(shown.receive(PanelData::ServersChanged(Ok(None))), [ask_snapshot()]);
            let login = McpAction::Authenticate { server: "日本".into(), redirect_uri: None };
            let send = Action::Effect(Effect::Send(Command::Mcp { request: "panel".into(), action: login }));
            assert_eq!(shown.key(KeyCode::Char('l'), None), PanelStep::Act(vec![send]));
            let page = format!("https://as/{}", "x".repeat(100));
            let wanted = [Action::Effect(Effect::OpenPage(page.clone())), ask_snapshot()];
            assert_eq!(shown.receive(PanelData::ServersChanged(Ok(Some(page.clone())))), wanted);
            shown.assert_clean();
            assert!(height < 12 || shown.text().replace('\n', "").contains(&page), "{}", shown.text());
            let rows = shown.panel.problem_rows(Size { width, height });
            let linked = rows.iter().flat_map(|row| &row.spans).filter(|span| span.link.is_some());
            let texts: String = linked.clone().map(|span| span.text.as_str()).collect();
            assert_eq!(texts, page);
            assert!(linked.clone().all(|span| span.link.as_deref() == Some(page.as_str())));
            let address = "http://localhost:1/callback?code=c".to_owned();
            let answer = McpAction::LoginAnswer { server: "日本".into(), address };
            let send = Action::Effect(Effect::Send(Command::Mcp { request: "panel".into(), action: answer }));
            let pasted = " http://localhost:1/callback?code=c\n";
            assert_eq!(shown.paste(pasted), PanelStep::Act(vec![send]));
            assert_eq!(shown.panel.refresh_every(), Some(REFRESH), "somebody logs in elsewhere");
            assert_eq!(shown.panel.refresh(), [ask_snapshot()]);
            let servers = |status| vec![server("calc", "connected"), server("日本", status)];
            shown.receive(PanelData::Servers(servers("connected")));
            assert_eq!((shown.panel.refresh_every(), shown.text().contains("logged in")), (None, true));
            shown.receive(PanelData::Servers(servers("pending")));
            assert_eq!(shown.panel.refresh_every(), Some(REFRESH), "it connects");
            shown.receive(PanelData::Servers(servers("disabled")));
            assert_eq!(shown.panel.refresh_every(), None);
            shown.receive(PanelData::ServersChanged(Ok(None)));
            assert!(shown.text().contains("日本 · disabled"), "a login shows its server: {}", shown.text());
            shown.action(KeyAction::SelectCancel);
            shown.action(KeyAction::SelectPrevious);
            shown.action(KeyAction::SelectAccept);
            shown.assert_clean();
            assert!(shown.text().contains("calc · connected"), "{}", shown.text());
            shown.key(KeyCode::PageDown, None);
            for expected in ["@uri_calc", "/prompt_calc"] {
                shown.action(KeyAction::TabsNext);
                shown.key(KeyCode::PageDown, None);
                assert!(shown.text().contains(expected), "{}", shown.text());
                shown.assert_clean();
            }
            let ask = Action::Effect(Effect::AskPanel(PanelRequest::ServerLog { server: "calc".into() }));
            assert_eq!(shown.action(KeyAction::TabsNext), PanelStep::Act(vec![ask]));
            shown.receive(PanelData::ServerLog {
                server: "calc".into(),
                text: format!("{}not\u{1b}[2J connected", "earlier\n".repeat(40)),
            });
            shown.assert_clean();
            assert!(shown.text().contains("connected"), "{}", shown.text());
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay, "back to the list");
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
        }
    }
}
