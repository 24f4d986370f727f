//! Any bytes, as the grammar of the shell reads them, anew and after an edit: its parser and its scanner are C.
//!
//! The sanitisers must see that C, so it is built with them and by the compiler whose runtime they share:
//!
//! ```text
//! CC=clang CFLAGS_x86_64_unknown_linux_gnu='-g -fsanitize=address,undefined -fno-sanitize-recover=undefined' \\
//!     cargo +nightly fuzz run grammar -- -max_len=4096
//! ```
//!
//! The product never shows the scanner a character beyond ASCII (`second_opinion.rs`); here it is shown all of them when the
//! first byte is odd, so that what it does not survive is found, too.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tree_sitter::{InputEdit, Parser, Point};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let text: String = match choice % 2 {
        0 => text.chars().map(|c| if c.is_ascii() { c } else { 'x' }).collect(),
        _ => text.into_owned(),
    };
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).expect("the grammar fits the library");
    let Some(mut tree) = parser.parse(&text, None) else { return };
    // The scanner's state is kept in the tree and read back from it when a changed text is parsed.
    let at = text.char_indices().map(|(idx, _)| idx).nth(usize::from(choice / 2)).unwrap_or(0);
    let changed = format!("{}<<A {}", &text[..at], &text[at..]);
    let position = |text: &str| Point {
        row: text.matches('\n').count(),
        column: text.len() - text.rfind('\n').map_or(0, |idx| idx + 1),
    };
    tree.edit(&InputEdit {
        start_byte: at,
        old_end_byte: at,
        new_end_byte: at + 4,
        start_position: position(&text[..at]),
        old_end_position: position(&text[..at]),
        new_end_position: position(&changed[..at + 4]),
    });
    drop(parser.parse(&changed, Some(&tree)));
});
