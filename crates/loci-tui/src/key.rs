//! What comes from the terminal, as values.

/// Something the terminal sent, in the order it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputEvent {
    /// A key.
    Key(Key),
    /// Pasted text: line ends are `\n`, other control characters are gone.
    Paste(String),
    /// The window got or lost the focus.
    Focus(bool),
    /// The wheel or a button of the mouse, where that is asked for.
    Mouse(Mouse),
    /// An answer to a question put to the terminal, whenever it came.
    Reply(Reply),
    /// The window has another size now.
    Resize {
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
    },
    /// The process was told something from outside.
    Signal(TerminalSignal),
    /// The terminal is gone.
    Closed,
}

/// What the system, or another process, told this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalSignal {
    /// SIGTERM: end, and lose nothing. Told a second time, the process ends at once.
    Terminate,
    /// SIGHUP: the window or the connection is gone; there is a second left to end in.
    HangUp,
    /// SIGINT, which no key sends while the terminal is ours.
    Interrupt,
    /// SIGTSTP: the answer is `Terminal::suspend`.
    Suspend,
    /// SIGCONT after a stop that was not ours: the answer is `Terminal::set_up_again` and a repaint.
    Continued,
}

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Which.
    pub code: KeyCode,
    /// Control was held.
    pub ctrl: bool,
    /// Alt, Option or Meta was held.
    pub alt: bool,
    /// Shift was held; letters that Shift changes come changed, without this.
    pub shift: bool,
    /// Super, Command or Windows was held.
    pub sup: bool,
}

impl Key {
    /// A key with no modifier.
    pub fn plain(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false, shift: false, sup: false }
    }
}

/// Which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// A letter, digit or sign.
    Char(char),
    /// Enter.
    Enter,
    /// Tab; with `shift` it is the one that goes back.
    Tab,
    /// Backspace.
    Backspace,
    /// Escape.
    Esc,
    /// Arrow.
    Up,
    /// Arrow.
    Down,
    /// Arrow.
    Left,
    /// Arrow.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Insert.
    Insert,
    /// Delete.
    Delete,
    /// F1 and on.
    F(u8),
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mouse {
    /// What.
    pub action: MouseAction,
    /// Column, from zero.
    pub column: u16,
    /// Row, from zero.
    pub row: u16,
    /// Whether Control was held, or the key that stands for it with the mouse (Alt).
    pub has_control: bool,
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseAction {
    /// A button went down.
    Press(u8),
    /// A button went up.
    Release(u8),
    /// The mouse moved with a button held.
    Drag(u8),
    /// The wheel, up.
    WheelUp,
    /// The wheel, down.
    WheelDown,
}

/// An answer of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Where the cursor is, from zero: row and column.
    CursorPosition {
        /// Row.
        row: u16,
        /// Column.
        column: u16,
    },
    /// How large the text area is (`CSI 18 t`): rows and columns. tmux before 3.4 says them the other way round.
    TextArea {
        /// Rows, by most.
        first: u16,
        /// Columns, by most.
        second: u16,
    },
    /// Whether a private mode is known, and its state as DECRQM says it.
    Mode {
        /// Which.
        mode: u16,
        /// 0 unknown, 1 set, 2 reset, 3 and 4 permanently so.
        state: u8,
    },
    /// The kitty keyboard flags in force.
    KeyboardFlags(u8),
    /// A colour, by the number of the OSC question (10 letters, 11 background): red, green, blue.
    Color {
        /// Which question.
        osc: u16,
        /// The colour.
        rgb: (u8, u8, u8),
    },
    /// Whether the system's colours are dark or light now, told whenever they change.
    ColorScheme {
        /// They are dark.
        is_dark: bool,
    },
    /// What the terminal is (DA1, XTVERSION), as it says it.
    Identity(String),
}
