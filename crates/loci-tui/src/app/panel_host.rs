//! The panel that is open in the place of the prompt: what is typed and what was asked for goes to it, and its frame.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::{Action, Effect};
use crate::key::InputEvent;
use crate::keymap::{Action as KeyAction, Keymap};
use crate::panel::{Panel, PanelContext, PanelData, PanelStep, SideThread};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::Row;

/// A panel takes at most this part of the screen, so that the conversation is seen above it.
const MOST_OF_SCREEN: (u16, u16) = (3, 4);
/// It may take so many rows in any case.
const LEAST_ROWS: u16 = 12;

/// The place of a panel.
#[derive(Debug)]
pub(super) struct PanelHost {
    pub(super) panel: Option<Box<dyn Panel>>,
    /// How much room it had when it was last drawn.
    space: Cell<Size>,
    /// When it last asked for what it shows.
    asked: Duration,
    /// What was asked on the side.
    side_thread: Rc<RefCell<SideThread>>,
}

impl Default for PanelHost {
    fn default() -> Self {
        Self {
            panel: None,
            space: Cell::new(Size { width: 80, height: 24 }),
            asked: Duration::ZERO,
            side_thread: Rc::default(),
        }
    }
}

impl PanelHost {
    /// Opens a panel in the place of whatever panel is open.
    pub(super) fn open(&mut self, panel: impl Panel + 'static, now: Duration) {
        self.panel = Some(Box::new(panel));
        self.asked = now;
    }

    /// Closes it.
    pub(super) fn close(&mut self) {
        self.panel = None;
    }

    /// Tells whether one is open.
    pub(super) fn is_open(&self) -> bool {
        self.panel.is_some()
    }

    /// Returns what was asked on the side.
    pub(super) fn side_thread(&self) -> Rc<RefCell<SideThread>> {
        Rc::clone(&self.side_thread)
    }

    /// Returns when it asks anew for what it shows.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let every = self.panel.as_ref()?.refresh_every()?;
        Some(self.asked + every)
    }

    /// Has it ask anew, where it is time.
    pub(super) fn refresh(&mut self, now: Duration) -> Vec<Action> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return Vec::new();
        }
        self.asked = now;
        self.panel.as_ref().map(|panel| panel.refresh()).unwrap_or_default()
    }

    /// Has it ask anew where a server may have been connected, or be gone, and it shows them.
    pub(super) fn servers_changed(&self) -> Vec<Action> {
        let panel = self.panel.as_ref().filter(|panel| panel.follows_servers());
        panel.map(|panel| panel.refresh()).unwrap_or_default()
    }

    /// Hands over what was typed; none where no panel is open.
    pub(super) fn typed(&mut self, event: &InputEvent, keymap: &mut Keymap) -> Option<Vec<Action>> {
        let panel = self.panel.as_mut()?;
        let Some(action) = keymap.action_of(panel.contexts(), event, panel.is_typing()) else {
            return Some(Vec::new());
        };
        if action == Some(KeyAction::AppSuspend) {
            return Some(vec![Action::Effect(Effect::Suspend)]);
        }
        let (stays, actions) = match panel.handle(event, &PanelContext { action }) {
            PanelStep::Stay => (true, Vec::new()),
            PanelStep::Act(actions) => (true, actions),
            PanelStep::Close => (false, Vec::new()),
            PanelStep::CloseWith(actions) => (false, actions),
        };
        if !stays {
            self.panel = None;
        }
        Some(actions)
    }

    /// Hands over the answer to something that was asked for.
    pub(super) fn receive(&mut self, data: PanelData) -> Vec<Action> {
        self.panel.as_mut().map(|panel| panel.receive(data)).unwrap_or_default()
    }

    /// Tells whether it waits for the answer to this request of the engine.
    pub(super) fn is_awaiting(&self, request: &str) -> bool {
        self.panel.as_ref().is_some_and(|panel| panel.is_awaiting(request))
    }

    /// Returns its rows for a screen, where the caret stands, and whether something is typed into a field there.
    pub(super) fn rows(&self, ctx: &RenderContext, screen: Size) -> Option<PanelRows> {
        let panel = self.panel.as_ref()?;
        let (part, whole) = MOST_OF_SCREEN;
        let most = (screen.height / whole * part).max(LEAST_ROWS);
        let most = most.min(screen.height.saturating_sub(1)).max(1);
        let space = Size { width: screen.width, height: most };
        self.space.set(space);
        let view = panel.view(ctx, space);
        let is_typed = view.is_typed;
        let (rows, caret) = view.fit(space);
        Some(PanelRows { rows, caret, is_typed })
    }

    /// Returns how much room it had when it was last drawn.
    pub(super) fn space(&self) -> Size {
        self.space.get()
    }

    /// Returns its rows as they were last drawn.
    pub(super) fn drawn_rows(&self, ctx: &RenderContext) -> Option<Vec<Row>> {
        let space = self.space.get();
        Some(self.panel.as_ref()?.view(ctx, space).fit(space).0)
    }
}

/// What is seen of a panel.
pub(super) struct PanelRows {
    pub(super) rows: Vec<Row>,
    pub(super) caret: Option<(usize, u16)>,
    pub(super) is_typed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, KeyCode};
    use crate::panel::{ExportPanel, McpPanel};
    use crate::theme::{Backdrop, ColorDepth, Theme};

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn panel_is_drawn_in_its_part_of_the_screen_and_closed_by_escape() {
        let mut host = PanelHost::default();
        let escape = InputEvent::Key(Key::plain(KeyCode::Esc));
        assert_eq!(host.typed(&escape, &mut Keymap::default()), None, "nothing is open");
        host.open(ExportPanel::default(), S(1));
        let ctx = RenderContext::new(40, Theme::new(ColorDepth::Ansi, Backdrop::Dark));
        let rows = host.rows(&ctx, Size { width: 40, height: 40 }).unwrap().rows;
        assert!(!rows.is_empty() && host.space().height == 30);
        assert_eq!(host.drawn_rows(&ctx), Some(rows));
        assert_eq!(host.typed(&escape, &mut Keymap::default()), Some(Vec::new()));
        assert!(!host.is_open() && host.deadline().is_none());
    }

    #[test]
    fn only_a_panel_of_servers_asks_when_they_change() {
        let mut host = PanelHost::default();
        assert!(host.servers_changed().is_empty());
        host.open(ExportPanel::default(), S(1));
        assert!(host.servers_changed().is_empty());
        host.open(McpPanel::default(), S(1));
        assert_eq!(host.servers_changed().len(), 1);
    }
}
