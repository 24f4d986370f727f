//! The modes of a terminal that loci changes, each with the bytes that switch it on and off.
//!
//! Which are on is a set of bits in an atomic number, since a signal handler must be able to undo them.

/// A mode: its bit and its bytes.
struct Mode {
    bit: u16,
    on: &'static [u8],
    off: &'static [u8],
}

/// Wheel and buttons, in the form that has no limit on columns.
pub(super) const MOUSE: u16 = 1;
/// The kitty keyboard protocol: unambiguous keys, with their places on a US keyboard.
pub(super) const KITTY: u16 = 1 << 1;
/// xterm's modifyOtherKeys, where the kitty protocol is not known.
pub(super) const OTHER_KEYS: u16 = 1 << 2;
/// Reports that the window got or lost the focus.
pub(super) const FOCUS: u16 = 1 << 3;
/// Bracketed paste.
pub(super) const PASTE: u16 = 1 << 4;
/// Reports that the system's colours changed.
pub(super) const COLORS: u16 = 1 << 5;
/// The title was saved by the terminal, to be brought back.
pub(super) const TITLE: u16 = 1 << 6;
/// The alternate screen.
pub(super) const ALTERNATE: u16 = 1 << 7;

/// In the order in which they are undone before [`NEUTRAL`]; they are set up in the reverse order.
const BEFORE_NEUTRAL: &[Mode] = &[
    Mode { bit: MOUSE, on: b"\x1b[?1000h\x1b[?1002h\x1b[?1006h", off: b"\x1b[?1006l\x1b[?1002l\x1b[?1000l" },
    Mode { bit: KITTY, on: b"\x1b[>5u", off: b"\x1b[<u" },
    Mode { bit: OTHER_KEYS, on: b"\x1b[>4;2m", off: b"\x1b[>4;0m" },
    Mode { bit: FOCUS, on: b"\x1b[?1004h", off: b"\x1b[?1004l" },
    Mode { bit: PASTE, on: b"\x1b[?2004h", off: b"\x1b[?2004l" },
    Mode { bit: COLORS, on: b"\x1b[?2031h", off: b"\x1b[?2031l" },
];

/// Synchronized output off, scroll region reset (which moves the cursor, so it is saved), attributes reset, cursor
/// shown with its default shape.
const NEUTRAL: &[u8] = b"\x1b[?2026l\x1b7\x1b[r\x1b8\x1b[0m\x1b[?25h\x1b[0 q";

/// Undone behind [`NEUTRAL`].
const AFTER_NEUTRAL: &[Mode] = &[
    Mode { bit: TITLE, on: b"\x1b[22;0t", off: b"\x1b[23;0t" },
    Mode { bit: ALTERNATE, on: b"\x1b[?1049h", off: b"\x1b[?1049l" },
];

/// Puts a terminal right whose program was killed: every mode off, without knowing which were on.
///
/// `loci reset-terminal` prints it. The cursor stays where it is.
pub const RESET_TERMINAL: &str = "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[=0;1u\x1b[<9u\x1b[>4;0m\x1b[?1004l\
    \x1b[?2004l\x1b[?2031l\x1b[?2026l\x1b7\x1b[r\x1b[?1049l\x1b8\x1b[0m\x1b[?25h\x1b[0 q";

/// What a start sends for the same reason: without the keyboard protocols, which terminals that do not know them may
/// take for something else, and whose leftovers an answer tells.
pub(super) const RESET_AT_START: &[u8] = b"\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?2026l";

/// Clears keyboard flags that somebody else left behind.
pub(super) const CLEAR_KITTY: &[u8] = b"\x1b[=0;1u";

/// No undoing is longer.
pub(super) const UNDO_LIMIT: usize = 192;

/// Returns the bytes that switch these modes on.
pub(super) fn set_up(modes: u16) -> Vec<u8> {
    let order = BEFORE_NEUTRAL.iter().chain(AFTER_NEUTRAL).rev();
    order.filter(|mode| modes & mode.bit != 0).flat_map(|mode| mode.on).copied().collect()
}

/// Writes the bytes that undo these modes, and what is undone always, into a buffer and returns how many they are.
///
/// Does not allocate: a signal handler calls it.
pub(super) fn undo(modes: u16, buffer: &mut [u8; UNDO_LIMIT]) -> usize {
    let mut n_written = 0;
    let mut put = |bytes: &[u8]| {
        if let Some(place) = buffer.get_mut(n_written..n_written + bytes.len()) {
            place.copy_from_slice(bytes);
            n_written += bytes.len();
        }
    };
    BEFORE_NEUTRAL.iter().filter(|mode| modes & mode.bit != 0).for_each(|mode| put(mode.off));
    put(NEUTRAL);
    AFTER_NEUTRAL.iter().filter(|mode| modes & mode.bit != 0).for_each(|mode| put(mode.off));
    n_written
}

/// Returns the bytes that switch one mode on or off.
pub(super) fn switch(mode: u16, is_on: bool) -> &'static [u8] {
    let found = BEFORE_NEUTRAL.iter().chain(AFTER_NEUTRAL).find(|row| row.bit == mode);
    found.map_or(b"", |row| if is_on { row.on } else { row.off })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(modes: u16) -> String {
        let mut buffer = [0; UNDO_LIMIT];
        let n_written = undo(modes, &mut buffer);
        String::from_utf8(buffer[..n_written].to_vec()).unwrap()
    }

    #[test]
    fn modes_are_undone_in_the_stated_order() {
        let order = [
            "?1000l", "[<u", "[>4;0m", "?1004l", "?2004l", "?2031l", "?2026l", "[r", "[0m", "?25h", "[0 q",
            "[23;0t", "?1049l",
        ];
        let undone = undone(u16::MAX);
        let places: Vec<_> = order.iter().map(|piece| undone.find(piece).expect(piece)).collect();
        assert!(places.is_sorted(), "{undone:?}");
    }

    #[test]
    fn only_modes_that_are_on_are_undone() {
        let undone = undone(PASTE | FOCUS);
        assert!(undone.contains("?2004l") && undone.contains("?1004l"));
        for other in ["[<u", "[>4", "?1000l", "?1049l", "23;0t"] {
            assert!(!undone.contains(other), "{other}");
        }
    }

    #[test]
    fn reset_string_undoes_every_mode() {
        for mode in BEFORE_NEUTRAL.iter().chain(AFTER_NEUTRAL).filter(|mode| mode.bit & (KITTY | TITLE) == 0)
        {
            for piece in mode.off.split_inclusive(|byte| byte.is_ascii_alphabetic()) {
                let piece = std::str::from_utf8(piece).unwrap();
                assert!(RESET_TERMINAL.contains(piece), "{piece:?}");
            }
        }
    }

    #[test]
    fn set_up_is_the_reverse_of_undoing() {
        assert_eq!(set_up(PASTE | FOCUS | KITTY), b"\x1b[?2004h\x1b[?1004h\x1b[>5u");
    }
}
