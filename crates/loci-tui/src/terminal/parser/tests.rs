//! What terminals send, as tables: each encoding of a key, answers whenever they come, pastes however they are cut.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::key::{MouseAction, Reply};

fn parser() -> Parser {
    Parser::new(Duration::from_millis(25))
}

/// Parses bytes, and what is pending when nothing more comes, and tells the events in short words.
fn parse(bytes: &[u8]) -> String {
    let mut parser = parser();
    let mut events = parser.feed(bytes);
    events.extend(parser.time_out());
    show(&events)
}

fn show(events: &[InputEvent]) -> String {
    events.iter().map(show_event).collect::<Vec<_>>().join(" ")
}

fn show_event(event: &InputEvent) -> String {
    match event {
        InputEvent::Key(key) => show_key(*key),
        InputEvent::Paste(text) => format!("paste{text:?}"),
        InputEvent::Focus(is_focused) => format!("focus:{is_focused}"),
        InputEvent::Mouse(mouse) => {
            let action = match mouse.action {
                MouseAction::Press(button) => format!("press{button}"),
                MouseAction::Release(button) => format!("release{button}"),
                MouseAction::Drag(button) => format!("drag{button}"),
                MouseAction::WheelUp => "wheelup".to_owned(),
                MouseAction::WheelDown => "wheeldown".to_owned(),
            };
            format!("{action}@{},{}", mouse.column, mouse.row)
        }
        InputEvent::Reply(reply) => match reply {
            Reply::CursorPosition { row, column } => format!("cursor:{row},{column}"),
            Reply::TextArea { first, second } => format!("area:{first},{second}"),
            Reply::Mode { mode, state } => format!("mode:{mode}={state}"),
            Reply::KeyboardFlags(flags) => format!("flags:{flags}"),
            Reply::Color { osc, rgb: (red, green, blue) } => {
                format!("color:{osc}={red:02x}{green:02x}{blue:02x}")
            }
            Reply::ColorScheme { is_dark } => format!("dark:{is_dark}"),
            Reply::Identity(identity) => format!("identity:{identity}"),
        },
        InputEvent::Resize { .. } | InputEvent::Signal(_) | InputEvent::Closed => "?".to_owned(),
    }
}

fn show_key(key: Key) -> String {
    let name = match key.code {
        KeyCode::Char(' ') => "space".to_owned(),
        KeyCode::Char(char) => char.to_string(),
        KeyCode::F(number) => format!("f{number}"),
        code => format!("{code:?}").to_lowercase(),
    };
    let held = [(key.ctrl, "C-"), (key.alt, "A-"), (key.shift, "S-"), (key.sup, "D-")];
    let held: String = held.iter().filter(|(is_held, _)| *is_held).map(|(_, name)| *name).collect();
    format!("{held}{name}")
}

/// Rows of `bytes => events`, bytes with `\e` for Escape and `^X` for a control byte.
fn check(table: &str) {
    for row in table.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let (bytes, expected) = row.split_once(" =>").unwrap_or_else(|| panic!("no arrow: {row}"));
        assert_eq!(parse(&unescape(bytes)), expected.trim(), "{row}");
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('e') => bytes.push(0x1b),
                Some('x') => {
                    let digits: String = chars.by_ref().take(2).collect();
                    bytes.push(u8::from_str_radix(&digits, 16).unwrap());
                }
                Some('\\') => bytes.push(b'\\'),
                other => panic!("no such escape: {other:?}"),
            },
            '^' => bytes.push(chars.next().unwrap() as u8 & 0x1f),
            _ => bytes.extend(char.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes
}

#[test]
fn escape_right_before_an_answer_is_a_key() {
    check(
        r#"
        \e\e[8;100;30t => esc area:100,30
        \e\e[4;7R => esc cursor:3,6
        \e\e[?2026;2$y => esc mode:2026=2
        \e\e[I => esc focus:true
        \e\e[<0;3;4M => esc press0@2,3
        \e\e[200~a\e[201~ => esc paste"a"
        \e\e[A => A-up
        "#,
    );
}

#[test]
fn plain_and_control_bytes_are_keys() {
    check(
        r"
        aZ5 => a Z 5
        é漢🎉 => é 漢 🎉
        ^@ => C-space
        ^A^Z => C-a C-z
        ^H => C-h
        \x7f => backspace
        ^I => tab
        ^J => C-j
        ^M => enter
        \x1c\x1d\x1e\x1f => C-\ C-] C-^ C-_
        ",
    );
}

#[test]
fn lone_escape_is_told_by_silence() {
    check(
        r"
        \e => esc
        \e\e => esc esc
        \e\e\e => esc esc esc
        ",
    );
}

#[test]
fn alt_comes_as_an_escape_before() {
    check(
        r"
        \eb => A-b
        \eP => A-P
        \eé => A-é
        \e^M => A-enter
        \e\x7f => A-backspace
        \e^A => C-A-a
        \e\x09 => A-tab
        \e[ => A-[
        \eO => A-O
        \e] => A-]
        \e\eb => esc A-b
        ",
    );
}

#[test]
fn arrows_and_editing_keys_of_all_terminals() {
    check(
        r"
        \e[A\e[B\e[C\e[D => up down right left
        \eOA\eOB\eOC\eOD => up down right left
        \e[H\e[F\eOH\eOF => home end home end
        \e[1~\e[4~\e[7~\e[8~ => home end home end
        \e[2~\e[3~\e[5~\e[6~ => insert delete pageup pagedown
        \e[Z => S-tab
        \e[1;2A => S-up
        \e[1;3D => A-left
        \e[1;5C => C-right
        \e[1;6B => C-S-down
        \e[1;9A => D-up
        \e[1;33A => A-up
        \e[3;5~ => C-delete
        \e\e[A => A-up
        \e[a\e[d => S-up S-left
        \eOa\eOd => C-up C-left
        \e[3$\e[3\x5e\e[3@ => S-delete C-delete C-S-delete
        \e[5\x5e => C-pageup
        ",
    );
}

#[test]
fn function_keys_of_all_terminals() {
    check(
        r"
        \eOP\eOQ\eOR\eOS => f1 f2 f3 f4
        \e[P\e[Q\e[S => f1 f2 f4
        \e[11~\e[15~\e[17~\e[21~\e[23~\e[24~ => f1 f5 f6 f10 f11 f12
        \e[25~\e[26~\e[28~\e[29~\e[31~\e[34~ => f13 f14 f15 f16 f17 f20
        \e[[A\e[[E => f1 f5
        \e[1;5P => C-f1
        \e[15;2~ => S-f5
        \eO5P => C-f1
        ",
    );
}

#[test]
fn keypad_in_application_mode() {
    check(
        r"
        \eOM => enter
        \eOj\eOk\eOm\eOn\eOo => * + - . /
        \eOp\eOy => 0 9
        \eOX => =
        ",
    );
}

#[test]
fn kitty_keys() {
    check(
        r"
        \e[27u => esc
        \e[13;2u => S-enter
        \e[13;5u => C-enter
        \e[9;2u => S-tab
        \e[127;5u => C-backspace
        \e[97;5u => C-a
        \e[97;6u => C-S-a
        \e[112;3u => A-p
        \e[112;4u => A-P
        \e[112:80;4u => A-P
        \e[97;2u => A
        \e[45:95;6u => C-_
        \e[45;6u => C-S--
        \e[1089::99;5u => C-c
        \e[1089::99;3u => A-c
        \e[1089u => с
        \e[109;5u => enter
        \e[91;5u => esc
        \e[105;5u => tab
        \e[32;5u => C-space
        \e[107;9u => D-k
        \e[97;1:3u =>
        \e[97;1:2u => a
        \e[1;1:3A =>
        \e[57399u\e[57414u\e[57419u\e[57376u => 0 enter up f13
        \e[57441;2u =>
        \e[97;5;97u => C-a
        ",
    );
}

#[test]
fn keys_of_modify_other_keys() {
    check(
        r"
        \e[27;2;13~ => S-enter
        \e[27;5;13~ => C-enter
        \e[27;5;99~ => C-c
        \e[27;6;67~ => C-S-c
        \e[27;2;65~ => A
        \e[27;6;95~ => C-_
        \e[27;5;9~ => C-tab
        \e[27;3;112~ => A-p
        \e[27;5;109~ => enter
        ",
    );
}

#[test]
fn focus_and_mouse() {
    check(
        r"
        \e[I\e[O => focus:true focus:false
        \e[<0;10;5M\e[<0;10;5m => press0@9,4 release0@9,4
        \e[<64;1;1M\e[<65;1;1M => wheelup@0,0 wheeldown@0,0
        \e[<32;500;300M => drag0@499,299
        \e[<35;5;5M =>
        \e[M !! => press0@0,0
        \e[M`!! => wheelup@0,0
        \e[M#!! => release3@0,0
        ",
    );
}

#[test]
fn answers_are_told_and_never_text() {
    check(
        r"
        \e[12;40R => cursor:11,39
        \e[1;2R => cursor:0,1
        \e[?5;7R => cursor:4,6
        \e[8;24;80t => area:24,80
        \e[8;24t =>
        \e[?2026;2$y => mode:2026=2
        \e[?2026;0$y => mode:2026=0
        \e[?0u\e[?5u => flags:0 flags:5
        \e[?62;22c => identity:?62;22
        \e[>41;354;0c => identity:>41;354;0
        \eP>|XTerm(370)\e\\ => identity:XTerm(370)
        \e]11;rgb:1e1e/2020/ffff\x07 => color:11=1e20ff
        \e]10;rgb:f/0/8\e\\ => color:10=ff0088
        \e]11;#102030\e\\ => color:11=102030
        \e[?997;1n\e[?997;2n => dark:true dark:false
        a\e[?2026;2$yb => a mode:2026=2 b
        \e]52;c;SGVsbG8=\x07x => x
        \e]11;nonsense\e\\x => x
        \eP1$r0m\e\\x => x
        \e[4;24;80tx => x
        \e[0nx => x
        \e[?12345zx => x
        ",
    );
}

#[test]
fn sequences_that_do_not_end_are_given_up() {
    check(
        r"
        \e]11;rgb:^M => enter
        \e]11;rgb:\e[A => up
        \e]1x => A-] 1 x
        \e]x => A-] x
        \e]11 => A-] 1 1
        \ePx => A-P x
        \e[12;^Mx => enter x
        \e[1;\e[A => up
        \e[é => é
        \eO^M => enter
        ",
    );
    let mut long = b"\x1b[".to_vec();
    long.extend(vec![b'1'; 5000]);
    long.extend(b"Ax");
    assert_eq!(parse(&long), "x");
    let mut endless = b"\x1b]11;".to_vec();
    endless.extend(vec![b'y'; SEQUENCE_LIMIT + 2]);
    assert!(parse(&endless).len() < 10, "most of it was passed over");
}

#[test]
fn bytes_that_are_no_utf8_are_marked() {
    check(
        r"
        \xffa => � a
        \xc3a => � a
        \xc3 => �
        \x85 => �
        \xc2\x85a => a
        \xe2\x82\xac => €
        \xed\xa0\x80 => �
        ",
    );
}

#[test]
fn pastes_are_text_whatever_is_in_them() {
    check(
        r#"
        \e[200~hello\e[201~ => paste"hello"
        \e[200~\e[201~ => paste""
        \e[200~a^Mb^M^Jc^Jd^Ie\e[201~ => paste"a\nb\nc\nd\te"
        \e[200~x\e[31my^C^@\x7f\e[201~ => paste"x[31my"
        \e[200~\e[200~\e[201~ => paste"[200~"
        a\e[200~b\e[201~c^M => a paste"b" c enter
        \e[201~a => a
        \e[200~never ended => paste"never ended"
        \e[200~\xff\e[201~ => paste"�"
        "#,
    );
}

#[test]
fn waiting_is_short_where_a_key_may_be_complete_and_bounded_everywhere() {
    let patience = |bytes: &[u8]| {
        let mut parser = parser();
        parser.feed(bytes);
        parser.patience()
    };
    let short = Some(Duration::from_millis(25));
    for (bytes, expected) in [
        (&b"a"[..], None),
        (b"\x1b", short),
        (b"\x1b[", short),
        (b"\x1bO", short),
        (b"\x1b]", short),
        (b"\x1b[1", Some(SEQUENCE_PATIENCE)),
        (b"\x1b]11;", Some(SEQUENCE_PATIENCE)),
        (b"\xe2", Some(SEQUENCE_PATIENCE)),
        (b"\x1b[200~x", Some(PASTE_PATIENCE)),
        (b"\x1b[A", None),
    ] {
        assert_eq!(patience(bytes), expected, "{bytes:?}");
    }
}

#[test]
fn cost_of_a_large_paste_is_linear() {
    let examined = |n_bytes: usize| {
        let mut parser = parser();
        let mut n_pastes = parser.feed(b"\x1b[200~").len();
        let chunk = b"0123456789abcde\n".repeat(256);
        (0..n_bytes / chunk.len()).for_each(|_| n_pastes += parser.feed(&chunk).len());
        let events = parser.feed(b"\x1b[201~");
        assert!(n_pastes == 0 && matches!(&events[..], [InputEvent::Paste(text)] if text.len() == n_bytes));
        parser.n_examined
    };
    let (one, ten) = (examined(1 << 20), examined(10 << 20));
    assert!(one < (1 << 20) * 101 / 100, "{one}");
    assert!(ten < one * 10 + 10_000, "{ten}");
}

/// Pieces of input, whole and broken.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&'static [u8]> = vec![
        b"a",
        b"\r",
        b"\x1b",
        b"\x1b[",
        b"\x1b[A",
        b"\x1b[1;5C",
        b"\x1b[200~",
        b"\x1b[201~",
        b"\x1b]11;rgb:1/2/3\x07",
        b"\x1b]",
        b"\x1b\\",
        b"\x1b[?62c",
        b"\x1b[?2026;2$y",
        b"\x1bP>|x",
        b"\x1bOA",
        b"\xe2\x82\xac",
        b"\xe2",
        b"\x1b[M",
        b"\x1b[[A",
        b"\x1b[3$",
        b"\n",
        b"\x07",
        b";",
        b"1",
        b"\x1b[27;5;99~",
        b"\x1b[97;5u",
    ];
    let piece = prop_oneof![
        4 => proptest::sample::select(known).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 1..6),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_cutting_gives_the_same_events(bytes in pieces(), cuts in proptest::collection::vec(1_usize..9, 1..64)) {
        let mut parser = parser();
        let mut events = Vec::new();
        let mut rest = &bytes[..];
        for n_bytes in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at((*n_bytes).min(rest.len()));
            events.extend(parser.feed(chunk));
            rest = after;
        }
        events.extend(parser.time_out());
        prop_assert_eq!(show(&events), parse(&bytes));
        prop_assert_eq!(parser.patience(), None);
    }

    #[test]
    fn control_characters_never_come_out_as_text(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut parser = parser();
        let mut events = parser.feed(&bytes);
        events.extend(parser.time_out());
        for event in events {
            match event {
                InputEvent::Key(Key { code: KeyCode::Char(char), .. }) => prop_assert!(!char.is_control()),
                InputEvent::Paste(text) => {
                    prop_assert!(text.chars().all(|char| !char.is_control() || "\n\t".contains(char)));
                }
                _ => {}
            }
        }
    }
}
