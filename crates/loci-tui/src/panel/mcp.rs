//! `/mcp`: the servers, how they are doing, what they offer, and looking after them.

use loci_app::commands::mcp::{ServerRow, rows};
use loci_engine::{Command, McpAction};

use super::{
    Panel, PanelContext, PanelData, PanelStep, PanelView, Scroll, ask_snapshot, list_rows, mark_row,
};
use crate::app::Action;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{code, faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, Style, sanitize_line};

/// The servers, or one of them.
#[derive(Debug, Default)]
pub(crate) struct McpPanel {
    servers: Option<Vec<ServerRow>>,
    problem: Option<String>,
    marked: usize,
    /// The one that is looked at, by name.
    open: Option<String>,
    scroll: Scroll,
}

impl McpPanel {
    fn server(&self) -> Option<&ServerRow> {
        let servers = self.servers.as_ref()?;
        match &self.open {
            Some(name) => servers.iter().find(|server| server.name == *name),
            None => servers.get(self.marked),
        }
    }

    /// Has the server that is looked at connected anew, or switched on or off.
    fn act(&mut self, code: KeyCode) -> PanelStep {
        let Some(server) = self.server() else { return PanelStep::Stay };
        let name = server.name.clone();
        let action = match code {
            KeyCode::Char('r') => McpAction::Reconnect { server: name },
            KeyCode::Char('l') => McpAction::Authenticate { server: name, redirect_uri: None },
            KeyCode::Char('o') => McpAction::ClearAuth { server: name },
            KeyCode::Char('e') => McpAction::Toggle { server: name, is_on: server.status == "disabled" },
            _ => return PanelStep::Stay,
        };
        self.problem = Some("Working on it…".to_owned());
        PanelStep::Act(vec![Action::Send(Command::Mcp { request: "panel".to_owned(), action })])
    }

    /// What came of the last wish, in full: it may be an address to visit.
    fn problem_rows(&self, size: Size) -> Vec<Row> {
        self.problem.iter().flat_map(|text| paragraph("", text, warning(), size.width)).collect()
    }

    fn server_view(&self, server: &ServerRow, size: Size) -> PanelView {
        let title = format!("{} · {}", server.name, server.status);
        let mut view =
            PanelView::new(&title, "↑↓ scroll · r reconnect · e on or off · l log in · o log out · Esc back");
        let mut body = Vec::new();
        body.push(line(&format!("From {}, reached by {}", server.scope, server.kind), faint()));
        if let Some(error) = &server.error {
            body.extend(paragraph("", error, warning(), size.width));
        }
        body.extend(self.problem_rows(size));
        body.push(line(&format!("{} tools", server.tools.len()), Style::default()));
        body.extend(server.tools.iter().map(|tool| line(&format!("  {tool}"), code())));
        let room = view.room(size);
        view.body = self.scroll.rows(body, room);
        view
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
        if self.open.is_some() && self.scroll.handle(event) {
            return PanelStep::Stay;
        }
        let last = self.servers.as_ref().map_or(0, |servers| servers.len().saturating_sub(1));
        match ctx.action {
            Some(KeyAction::SelectNext) => {
                self.marked = if self.marked == last { 0 } else { self.marked + 1 }
            }
            Some(KeyAction::SelectPrevious) => self.marked = self.marked.checked_sub(1).unwrap_or(last),
            Some(KeyAction::SelectAccept) => {
                self.open = self.server().map(|server| server.name.clone());
                self.scroll = Scroll::default();
            }
            _ => {
                if let InputEvent::Key(key) = event {
                    return self.act(key.code);
                }
            }
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(session) => {
                let servers = rows(&session);
                self.marked = self.marked.min(servers.len().saturating_sub(1));
                self.servers = Some(servers);
            }
            PanelData::ServersChanged(Ok(Some(page))) => {
                self.problem = Some(format!("Log in at this page, then come back: {page}"));
                return vec![Action::OpenPage(page), ask_snapshot()];
            }
            PanelData::ServersChanged(outcome) => {
                self.problem = outcome.err();
                return vec![ask_snapshot()];
            }
            PanelData::Failed(why) => self.problem = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        if let Some(server) = self.server().filter(|_| self.open.is_some()) {
            return self.server_view(server, size);
        }
        let mut view = PanelView::new(
            "MCP servers",
            "Enter look · r reconnect · e on or off · l log in · o log out · Esc close",
        );
        view.head.extend(self.problem_rows(size));
        let room = view.room(size);
        let servers = self.servers.as_deref().unwrap_or_default();
        view.body = list_rows(servers.len(), self.marked, room, |idx, is_marked| {
            mark_row(servers.get(idx).map_or_else(Row::default, server_row), is_marked)
        });
        if servers.is_empty() {
            let text =
                if self.servers.is_some() { "There are none; `loci mcp add` adds one" } else { "Reading…" };
            view.body = vec![line(text, faint())];
        }
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }
}

fn server_row(server: &ServerRow) -> Row {
    Row::new(vec![
        Span::plain(sanitize_line(&server.name)),
        Span::styled(
            format!("  {}", server.status),
            if server.error.is_some() { warning() } else { faint() },
        ),
        Span::styled(format!("  {} tools, from {}", server.tools.len(), server.scope), faint()),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Shown, snapshot};
    use super::*;

    fn server(name: &str, status: &'static str) -> ServerRow {
        let tools = vec![format!("mcp__{name}__add\u{1b}")];
        ServerRow { name: name.into(), status, scope: "user", kind: "stdio", error: None, tools }
    }

    #[test]
    fn servers_are_listed_looked_at_and_looked_after() {
        for (width, height) in [(20, 5), (80, 14)] {
            let mut shown = Shown::new(McpPanel::default(), width, height);
            shown.receive(PanelData::Snapshot(snapshot()));
            assert!(shown.text().contains("There are none"), "{}", shown.text());
            shown.panel.servers = Some(vec![server("calc", "connected"), server("日本", "disabled")]);
            shown.assert_clean();
            shown.action(KeyAction::SelectNext);
            let toggle = McpAction::Toggle { server: "日本".into(), is_on: true };
            let send = Action::Send(Command::Mcp { request: "panel".into(), action: toggle });
            assert_eq!(shown.key(KeyCode::Char('e'), None), PanelStep::Act(vec![send]));
            assert_eq!(shown.receive(PanelData::ServersChanged(Ok(None))), [ask_snapshot()]);
            let login = McpAction::Authenticate { server: "日本".into(), redirect_uri: None };
            let send = Action::Send(Command::Mcp { request: "panel".into(), action: login });
            assert_eq!(shown.key(KeyCode::Char('l'), None), PanelStep::Act(vec![send]));
            let page = format!("https://as/{}", "x".repeat(100));
            let wanted = [Action::OpenPage(page.clone()), ask_snapshot()];
            assert_eq!(shown.receive(PanelData::ServersChanged(Ok(Some(page)))), wanted);
            shown.assert_clean();
            shown.receive(PanelData::ServersChanged(Ok(None)));
            shown.action(KeyAction::SelectPrevious);
            shown.action(KeyAction::SelectAccept);
            shown.assert_clean();
            assert!(shown.text().contains("calc · connected"), "{}", shown.text());
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay, "back to the list");
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
        }
    }
}
