//! Editing as cases: the text before, the keys, the text after. `|` is the caret, `¶` a line break.

use super::*;
use crate::input::edit_command;
use crate::input::layout::N_CLUSTERS;
use crate::input::{Chip, ChipContent, InputMode};
use crate::keymap::{Action, Context, Keymap, Resolution, parse_key};

fn editor(marked: &str, flavor: Flavor) -> Editor {
    let text = marked.replace('¶', "\n");
    let caret = text.find('|').expect("a caret");
    let mut editor = Editor::new(flavor);
    editor.buffer.insert(Position::default(), &text.replacen('|', "", 1));
    editor.caret = editor.buffer.position(caret);
    editor
}

/// Shows the text with its caret, chips by their labels.
fn show(editor: &Editor) -> String {
    let mut marked = editor.buffer.text();
    marked.insert(editor.buffer.offset(editor.caret), '|');
    let chips = editor.chips.in_text(&marked);
    let draft = Draft { marked, chips, ..Draft::default() };
    draft.display().replace('\n', "¶")
}

/// Presses keys, separated by blanks.
fn press(editor: &mut Editor, keys: &str) {
    for key in keys.split_whitespace() {
        let key = parse_key(key).unwrap_or_else(|| panic!("no key: {key}"));
        // Line breaks and undo are actions of the keymap.
        let bound = match Keymap::default().resolve(&[Context::Chat], key) {
            Resolution::Action(Action::ChatNewline) => Some(EditCommand::Newline),
            Resolution::Action(Action::ChatUndo) => Some(EditCommand::Undo),
            _ => None,
        };
        let command = bound.or_else(|| edit_command(key)).unwrap_or_else(|| panic!("no command: {key:?}"));
        editor.apply(command);
    }
}

fn check_flavor(flavor: Flavor, cases: &[(&str, &str, &str)]) {
    for (before, keys, after) in cases {
        let mut editor = editor(before, flavor);
        editor.rows(11, 100, &InputStyles::default());
        press(&mut editor, keys);
        assert_eq!(show(&editor), *after, "{before} and {keys}");
    }
}

fn check(cases: &[(&str, &str, &str)]) {
    check_flavor(Flavor::Classic, cases);
}

#[test]
fn letters_are_put_in_and_deleted_by_cluster() {
    check(&[
        ("|", "a b c", "abc|"),
        ("a|c", "b", "ab|c"),
        ("e\u{301}|", "backspace", "|"),
        ("👨‍👩‍👧|", "backspace", "|"),
        ("|🇩🇪🇫🇷", "delete", "|🇫🇷"),
        ("a¶|b", "backspace", "a|b"),
        ("a|¶b", "ctrl+d", "a|b"),
        ("|", "backspace", "|"),
        ("x|", "delete", "x|"),
        ("a|", "ctrl+j b", "a¶b|"),
        ("a|", "ctrl+h", "|"),
    ]);
}

#[test]
fn caret_moves_by_cluster_word_and_line() {
    check(&[
        ("漢e\u{301}👍🏽|", "left", "漢e\u{301}|👍🏽"),
        ("漢e\u{301}👍🏽|", "left left left", "|漢e\u{301}👍🏽"),
        ("|漢e\u{301}", "right right", "漢e\u{301}|"),
        ("a¶|b", "left", "a|¶b"),
        ("a|¶b", "right", "a¶|b"),
        ("one two|", "alt+b", "one |two"),
        ("|one two", "alt+f", "one |two"),
        ("one¶|two", "alt+b", "one|¶two"),
        ("ab¶cd|¶ef", "ctrl+a", "ab¶|cd¶ef"),
        ("ab¶|cd¶ef", "ctrl+e", "ab¶cd|¶ef"),
        ("ab¶cd|", "ctrl+home", "|ab¶cd"),
        ("|ab¶cd", "ctrl+end", "ab¶cd|"),
    ]);
}

#[test]
fn up_and_down_go_by_rows_that_are_seen() {
    // Ten cells a row.
    check(&[
        ("one two three four|", "up", "one two| three four"),
        ("|one two three four", "down", "one two |three four"),
        ("0123456789abcde|f", "up", "01234|56789abcdef"),
        ("01234|56789abcdef", "down", "0123456789abcde|f"),
        ("long line¶x¶long li|ne", "up up", "long li|ne¶x¶long line"),
        ("long li|ne¶x¶long line", "down down", "long line¶x¶long li|ne"),
        ("漢字漢|字¶abcdefgh", "down", "漢字漢字¶abcdef|gh"),
        ("abcde|f¶漢字漢字", "down", "abcdef¶漢字|漢字"),
        ("|a¶b", "up", "|a¶b"),
        ("a¶b|", "down", "a¶b|"),
    ]);
}

#[test]
fn killed_text_is_yanked() {
    check(&[
        ("one |two", "ctrl+k", "one |"),
        ("one |two", "ctrl+k ctrl+y ctrl+y", "one twotwo|"),
        ("one |two", "ctrl+u", "|two"),
        ("a¶b|", "ctrl+u ctrl+u ctrl+u", "|"),
        ("a|¶b", "ctrl+k", "a|b"),
        ("fix src/utils/foo.ts|", "ctrl+w", "fix src/utils/|"),
        ("one two|", "ctrl+w ctrl+w ctrl+y", "one two|"),
        ("a b c|", "ctrl+w left right ctrl+w ctrl+y alt+y", "a c|"),
        ("a b c|", "ctrl+w left right ctrl+w ctrl+y alt+y alt+y", "a b |"),
        ("a|", "alt+y", "a|"),
        ("one |two three", "alt+d", "one |three"),
        ("one |two three", "alt+d ctrl+y", "one |three"),
        ("|", "ctrl+y", "|"),
    ]);
}

#[test]
fn readline_flavor_follows_readline() {
    check_flavor(
        Flavor::Readline,
        &[
            ("fix src/utils/foo.ts|", "ctrl+w", "fix |"),
            ("|foo.ts bar", "alt+f", "foo|.ts bar"),
            ("|foo.ts bar", "alt+d ctrl+y ctrl+y", "foofoo|.ts bar"),
            ("a¶|", "ctrl+w", "a|"),
        ],
    );
}

#[test]
fn edits_are_undone_by_the_word_and_done_again() {
    check(&[
        ("|", "a b space c d ctrl+_", "ab |"),
        ("|", "a b space c d ctrl+_ ctrl+_", "|"),
        ("|", "a b space c d ctrl+_ ctrl+_ alt+_", "ab |"),
        ("one |two", "ctrl+k ctrl+_", "one |two"),
        ("one two|", "ctrl+w ctrl+_", "one two|"),
        ("a¶b|", "ctrl+u ctrl+u ctrl+_ ctrl+_", "a¶b|"),
        ("a|", "ctrl+j b ctrl+_ ctrl+_", "a|"),
        ("|", "a left b ctrl+_", "|a"),
        ("|", "a ctrl+_ b alt+_", "b|"),
        ("x|", "ctrl+_", "x|"),
    ]);
}

#[test]
fn long_pastes_become_chips_that_are_one_unit() {
    let long = "line\n".repeat(40);
    let mut editor = editor("see | now", Flavor::Classic);
    editor.paste(&long);
    assert_eq!(show(&editor), "see [Pasted text #1 +40 lines]| now");
    assert_eq!(editor.draft().expanded(), format!("see {long} now"));
    press(&mut editor, "left");
    assert_eq!(show(&editor), "see |[Pasted text #1 +40 lines] now");
    press(&mut editor, "right backspace");
    assert_eq!(show(&editor), "see | now");
    press(&mut editor, "ctrl+_");
    assert_eq!(editor.draft().expanded(), format!("see {long} now"));
    press(&mut editor, "ctrl+u ctrl+y ctrl+y");
    assert_eq!(show(&editor), "see [Pasted text #1 +40 lines]see [Pasted text #1 +40 lines]| now");
    assert_eq!(editor.draft().chips().len(), 1);
}

#[test]
fn the_same_pasted_again_stands_there_as_text() {
    let long = "line\n".repeat(12);
    let mut editor = editor("see |", Flavor::Classic);
    editor.paste(&long);
    editor.paste(&long);
    assert_eq!(editor.text(), format!("see {long}"));
    press(&mut editor, "ctrl+_");
    assert_eq!(show(&editor), "see [Pasted text #1 +12 lines]|");
    editor.insert(" ");
    editor.paste(&long);
    assert_eq!(show(&editor), "see [Pasted text #1 +12 lines] [Pasted text #2 +12 lines]|");
    editor.paste(&"other\n".repeat(12));
    assert!(show(&editor).ends_with("[Pasted text #2 +12 lines][Pasted text #3 +12 lines]|"));
}

#[test]
fn short_pastes_are_text_at_the_caret() {
    let mut editor = editor("a|b", Flavor::Classic);
    editor.paste("1\r\n2\r3\x07\u{1b}[31m");
    assert_eq!(show(&editor), "a1¶2¶3[31m|b");
    let ten_lines = "x\n".repeat(9) + "x";
    let mut editor = Editor::default();
    editor.paste(&ten_lines);
    assert_eq!(editor.text(), ten_lines);
    editor.paste(&"y".repeat(2049));
    assert!(editor.text().ends_with("x[Pasted text #1]"));
}

#[test]
fn order_of_typing_and_pasting_is_kept() {
    let mut editor = Editor::default();
    press(&mut editor, "a");
    editor.paste("PASTED");
    press(&mut editor, "b");
    assert_eq!(editor.enter(), EnterOutcome::Submit);
    assert_eq!(editor.take().expanded(), "aPASTEDb");
    assert!(editor.is_empty());
}

#[test]
fn backslash_before_enter_breaks_the_line() {
    let mut editor = editor(r"one\|", Flavor::Classic);
    assert_eq!(editor.enter(), EnterOutcome::Newline);
    assert_eq!(show(&editor), "one¶|");
    assert_eq!(editor.enter(), EnterOutcome::Submit);
}

#[test]
fn exclamation_mark_at_the_start_is_for_the_shell() {
    let mut editor = Editor::default();
    press(&mut editor, "! l s");
    assert_eq!((editor.mode(), editor.text().as_str()), (InputMode::Shell, "ls"));
    press(&mut editor, "ctrl+u");
    assert_eq!(editor.mode(), InputMode::Shell);
    press(&mut editor, "ctrl+u");
    assert_eq!(editor.mode(), InputMode::Prompt);
    press(&mut editor, "! backspace");
    assert_eq!(editor.mode(), InputMode::Prompt);
    press(&mut editor, "!");
    assert_eq!(editor.leave_shell_mode(), EditOutcome::Changed);
    editor.paste("!git status");
    assert_eq!((editor.mode(), editor.text().as_str()), (InputMode::Shell, "git status"));
    assert_eq!(editor.take().mode, InputMode::Shell);
    press(&mut editor, "a !");
    assert_eq!((editor.mode(), editor.text().as_str()), (InputMode::Prompt, "a!"));
}

#[test]
fn stash_brings_back_text_caret_and_chips() {
    let mut editor = editor("one |two", Flavor::Classic);
    editor.paste(&"x".repeat(3000));
    let before = show(&editor);
    assert_eq!(editor.stash(), EditOutcome::Changed);
    assert!(editor.is_empty() && editor.has_stash());
    press(&mut editor, "q");
    editor.take();
    assert_eq!(editor.stash(), EditOutcome::Changed);
    assert_eq!(show(&editor), before);
    assert_eq!(editor.draft().expanded().len(), 3007);
    editor.take();
    assert_eq!(editor.stash(), EditOutcome::Nothing);
    for key in ["a", "b"] {
        press(&mut editor, key);
        editor.stash();
    }
    editor.stash();
    assert_eq!(editor.take().expanded(), "b");
    editor.stash();
    assert_eq!(editor.text(), "a", "a second one does not lose the first");
}

#[test]
fn recalled_draft_keeps_its_chips_beside_new_ones() {
    let mut editor = Editor::default();
    editor.paste(&"new\n".repeat(20));
    let chip =
        Chip { number: 1, label: "[Pasted text #1]".to_owned(), content: ChipContent::Text("old".into()) };
    let recalled = Draft::from_display(InputMode::Prompt, "see [Pasted text #1]", &[chip]);
    editor.set_draft(&recalled);
    assert_eq!(editor.draft().expanded(), "see old");
    press(&mut editor, "ctrl+_");
    assert_eq!(editor.draft().expanded(), "new\n".repeat(20));
}

#[test]
fn picture_is_a_chip() {
    let mut editor = editor("look |", Flavor::Classic);
    let number = editor.begin_image(None).unwrap();
    assert_eq!((show(&editor).as_str(), editor.draft().is_reading()), ("look [Image #1]|", true));
    editor.finish_image(number, Some(image()));
    assert_eq!(editor.draft().expanded(), "look [Image #1]");
    assert!(matches!(editor.draft().chips()[0].content, ChipContent::Image(_)));
    assert!(!editor.draft().is_reading());
}

fn image() -> PastedImage {
    PastedImage { block: loci_core::message::Block::new_image("image/png", "AA=="), path: None }
}

#[test]
fn picture_that_cannot_be_read_leaves_what_was_pasted_and_the_caret_where_it_is() {
    let mut editor = editor("look |", Flavor::Classic);
    let number = editor.begin_image(Some("/tmp/a.png")).unwrap();
    editor.insert(" now");
    editor.finish_image(number, None);
    assert_eq!(show(&editor), "look /tmp/a.png now|");
    let number = editor.begin_image(None).unwrap();
    editor.insert("!");
    press(&mut editor, "home");
    editor.finish_image(number, None);
    assert_eq!(show(&editor), "|look /tmp/a.png now!");
}

#[test]
fn picture_that_arrives_while_it_is_stashed_is_there_when_it_comes_back() {
    let mut editor = editor("look |", Flavor::Classic);
    let number = editor.begin_image(None).unwrap();
    editor.stash();
    editor.finish_image(number, Some(image()));
    editor.stash();
    assert!(matches!(editor.draft().chips()[0].content, ChipContent::Image(_)));
}

#[test]
fn suggestion_is_shown_while_nothing_is_typed_and_can_be_taken() {
    let mut editor = Editor::default();
    editor.set_ghost(Some("run the tests".to_owned()));
    let view = editor.rows(20, 5, &InputStyles::default());
    assert_eq!((view.rows[0].text().as_str(), view.caret), ("run the tests", (0, 0)));
    press(&mut editor, "a");
    assert_eq!(editor.rows(20, 5, &InputStyles::default()).rows[0].text(), "a");
    assert_eq!(editor.accept_ghost(), EditOutcome::Nothing);
    press(&mut editor, "backspace");
    assert_eq!(editor.accept_ghost(), EditOutcome::Changed);
    assert_eq!(editor.text(), "run the tests");
}

#[test]
fn replacing_in_the_line_puts_the_caret_behind() {
    let mut editor = editor("see @sr| now", Flavor::Classic);
    assert_eq!((editor.before_caret(), editor.behind_caret()), ("see @sr", " now"));
    editor.replace_in_line(4..7, "@src/main.rs");
    assert_eq!(show(&editor), "see @src/main.rs| now");
    assert_eq!(editor.replace_in_line(5..99, "x"), EditOutcome::Nothing);
}

/// The rows that are seen, with the caret in its cell.
fn view(editor: &mut Editor, width: usize, height: usize) -> String {
    let view = editor.rows(width, height, &InputStyles::default());
    let rows: Vec<String> = view.rows.iter().map(crate::text::Row::text).collect();
    for row in &rows {
        assert!(crate::text::width(row) <= (width - 1).max(1), "{row:?} is too wide");
    }
    let (row, column) = view.caret;
    assert!(usize::from(column) < width && row < rows.len());
    let cut =
        format!("{}{}", if view.is_cut_above { "^" } else { "" }, if view.is_cut_below { "v" } else { "" });
    format!("{}@{row},{column}{cut}", rows.join("/"))
}

#[test]
fn rows_are_wrapped_and_scrolled_to_the_caret() {
    let mut wrapped = editor("one two three|", Flavor::Classic);
    assert_eq!(view(&mut wrapped, 9, 5), "one two /three@1,5");
    assert_eq!(view(&mut wrapped, 8, 5), "one two/three@1,5");
    assert_eq!(view(&mut wrapped, 9, 1), "three@0,5^");
    assert_eq!(view(&mut editor("one two |", Flavor::Classic), 8, 5), "one two/@1,0");
    let mut lines = editor("1¶2¶3¶4¶5|", Flavor::Classic);
    assert_eq!(view(&mut lines, 9, 3), "3/4/5@2,1^");
    press(&mut lines, "up up");
    assert_eq!(view(&mut lines, 9, 3), "3/4/5@0,1^");
    press(&mut lines, "up");
    assert_eq!(view(&mut lines, 9, 3), "2/3/4@0,1^v");
    press(&mut lines, "ctrl+home");
    assert_eq!(view(&mut lines, 9, 3), "1/2/3@0,0v");
    press(&mut lines, "ctrl+end ctrl+u ctrl+u ctrl+u ctrl+u");
    assert_eq!(view(&mut lines, 9, 3), "1/2/3@2,1");
    assert_eq!(view(&mut lines, 1, 3), "1/2/3@2,0");
    assert_eq!(view(&mut Editor::default(), 20, 5), "@0,0");
}

#[test]
fn caret_stands_in_cells() {
    assert_eq!(view(&mut editor("漢字e\u{301}|x", Flavor::Classic), 20, 5), "漢字e\u{301}x@0,5");
    assert_eq!(view(&mut editor("\t|x", Flavor::Classic), 20, 5), "    x@0,4");
    assert_eq!(view(&mut editor("a\u{202e}|b", Flavor::Classic), 20, 5), "a<U+202E>b@0,9");
    let mut chip = Editor::default();
    chip.paste(&"x\n".repeat(50));
    press(&mut chip, "a");
    assert_eq!(view(&mut chip, 40, 5), "[Pasted text #1 +50 lines]a@0,27");
    assert_eq!(view(&mut chip, 10, 5), "[Pasted …/a@1,1");
}

/// Counts how many clusters a key and the frame after it look at.
fn cost(editor: &mut Editor, key: &str) -> usize {
    let before = N_CLUSTERS.get();
    press(editor, key);
    editor.rows(80, 10, &InputStyles::default());
    N_CLUSTERS.get() - before
}

#[test]
fn cost_of_a_key_does_not_depend_on_the_length_of_the_text() {
    for line in ["word and more words ", "0123456789abcdef0123"] {
        for separator in ["", "\n"] {
            let costs_of = |n_lines: usize| {
                let text = vec![line; n_lines].join(separator);
                let mut editor = Editor::default();
                editor.set_draft(&Draft::plain(InputMode::Prompt, &text));
                editor.rows(80, 10, &InputStyles::default());
                let mut costs = vec![cost(&mut editor, "x")];
                for _ in 0..n_lines / 2 {
                    editor.apply(EditCommand::Left);
                }
                editor.rows(80, 10, &InputStyles::default());
                costs.extend(
                    ["a", "backspace", "up", "down", "alt+b", "ctrl+w", "ctrl+_"]
                        .map(|key| cost(&mut editor, key)),
                );
                costs
            };
            let (small, large) = (costs_of(400), costs_of(10_000));
            for (small, large) in small.iter().zip(&large) {
                assert!(*large <= small + 2_000, "{line:?} {separator:?}: {small} {large}");
            }
        }
    }
}

#[test]
fn megabyte_paste_is_a_chip_and_costs_nothing_to_edit_around() {
    let mut editor = Editor::default();
    editor.paste(&"0123456789abcde\n".repeat(65_536));
    assert_eq!(editor.text(), "[Pasted text #1 +65536 lines]");
    assert!(cost(&mut editor, "x") < 10);
    assert_eq!(editor.take().expanded().len(), (1 << 20) + 1);
}
