//! Vim's keys, as data: the text before, the keys, the text after; `|` is the caret, which stands on the sign behind it.

use super::*;
use crate::input::chip::Draft;

/// A prompt in NORMAL mode.
struct Prompt {
    editor: Editor,
    vim: Vim,
    now: Duration,
}

impl Prompt {
    fn new(marked: &str) -> Self {
        let mut editor = Editor::default();
        let mut draft = Draft::plain(InputMode::Prompt, &marked.replacen('|', "", 1));
        draft.caret = marked.find('|').unwrap();
        editor.set_draft(&draft);
        let mut vim = Vim::new(&mut editor);
        vim.mode = VimMode::Normal;
        editor.end_undo_group();
        Self { editor, vim, now: Duration::ZERO }
    }

    fn key(&mut self, key: Key) -> VimStep {
        self.now += Duration::from_millis(10);
        let step = self.vim.key(&mut self.editor, key, self.now);
        if step == VimStep::Passed
            && let Some(command) = edit_command(key)
        {
            self.editor.apply(command);
        }
        step
    }

    /// Types keys; names stand in `<>`, as `<esc>`.
    fn keys(&mut self, keys: &str) -> VimStep {
        let mut step = VimStep::Taken;
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let named = named.and_then(|(name, rest)| Some((crate::keymap::parse_key(name)?, rest)));
            let named = named.filter(|(key, _)| key.code != KeyCode::Char(first));
            let (key, behind) =
                named.unwrap_or_else(|| (Key::plain(KeyCode::Char(first)), &rest[first.len_utf8()..]));
            step = self.key(key);
            rest = behind;
        }
        step
    }

    fn marked(&self) -> String {
        let (before, behind) = self.editor.draft().around_caret();
        format!("{before}|{behind}")
    }
}

fn check(table: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (before, keys, after) in table {
        let mut it = Prompt::new(before);
        it.keys(keys);
        let seen = it.marked();
        if seen != *after {
            wrong.push(format!("{before:?} {keys}: {seen:?}, and not {after:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn keys_that_begin_insert_mode() {
    check(&[
        ("on|e two", "iX<esc>", "on|Xe two"),
        ("  on|e", "IX<esc>", "  |Xone"),
        ("on|e two", "aX<esc>", "one|X two"),
        ("on|e two", "AX<esc>", "one two|X"),
        ("on|e\ntwo", "oX<esc>", "one\n|X\ntwo"),
        ("one\nt|wo", "OX<esc>", "one\n|X\ntwo"),
        ("|one", "i<esc>", "|one"),
        ("one| two", "a<esc>", "one| two"),
        ("|", "ihi<esc>", "h|i"),
        ("|b", "3iab<esc>", "ababa|bb"),
    ]);
}

#[test]
fn motions() {
    check(&[
        ("on|e", "h", "o|ne"),
        ("|one", "h", "|one"),
        ("o|ne", "l", "on|e"),
        ("on|e", "l", "on|e"),
        ("o|ne", "<space>", "on|e"),
        ("one|", "<left>", "on|e"),
        ("o|ne", "<right>", "on|e"),
        ("on|e", "<backspace>", "o|ne"),
        ("o|ne\ntwo", "j", "one\nt|wo"),
        ("one\nt|wo", "k", "o|ne\ntwo"),
        ("one tw|o\na\nthree four", "jj", "one two\na\nthree |four"),
        ("o|ne\n\nthree", "2j", "one\n\nt|hree"),
        ("|one two", "w", "one |two"),
        ("|one, two", "w", "one|, two"),
        ("|one, two", "W", "one, |two"),
        ("on|e\n\ntwo", "w", "one\n|\ntwo"),
        ("on|e\n  two", "w", "one\n  |two"),
        ("one |two", "w", "one tw|o"),
        ("|one two three", "2w", "one two |three"),
        ("|one two", "e", "on|e two"),
        ("on|e two", "e", "one tw|o"),
        ("|one, two", "E", "one|, two"),
        ("on|e\n\ntwo", "e", "one\n\ntw|o"),
        ("one tw|o", "b", "one |two"),
        ("one |two", "b", "|one two"),
        ("one, |two", "b", "one|, two"),
        ("one, |two", "B", "|one, two"),
        ("one\n\n|two", "b", "one\n|\ntwo"),
        ("  on|e", "0", "|  one"),
        ("  on|e", "<home>", "|  one"),
        ("  on|e", "^", "  |one"),
        ("|one", "$", "on|e"),
        ("|one", "<end>", "on|e"),
        ("|one\ntwo", "2$", "one\ntw|o"),
        ("one\ntw|o", "gg", "|one\ntwo"),
        ("|one\ntwo\nthree", "G", "one\ntwo\n|three"),
        ("|one\ntwo\nthree", "2G", "one\n|two\nthree"),
        ("one\ntwo\nthre|e", "2gg", "one\n|two\nthree"),
        ("|abcabc", "fc", "ab|cabc"),
        ("|abcabc", "2fc", "abcab|c"),
        ("|abc", "fx", "|abc"),
        ("abcab|c", "Fa", "abc|abc"),
        ("|abcabc", "tc", "a|bcabc"),
        ("abcab|c", "Ta", "abca|bc"),
        ("|abcabc", "fc;", "abcab|c"),
        ("|abcabc", "tc;", "abca|bc"),
        ("|abcabc", "2fc,", "ab|cabc"),
        ("abcab|c", "Fb;", "a|bcabc"),
        ("|a b c", "f ;", "a b| c"),
        ("|héllo wörld", "w", "héllo |wörld"),
        ("|日本 語", "w", "日本 |語"),
    ]);
}

#[test]
fn edits() {
    check(&[
        ("o|ne", "x", "o|e"),
        ("on|e", "x", "o|n"),
        ("|", "x", "|"),
        ("|one", "2x", "|e"),
        ("o|ne", "<delete>", "o|e"),
        ("on|e", "X", "o|e"),
        ("one\nt|wo\nthree", "dd", "one\n|three"),
        ("one\nt|wo", "dd", "|one"),
        ("o|ne", "dd", "|"),
        ("|one\ntwo\nthree", "2dd", "|three"),
        ("one| two", "D", "on|e"),
        ("|one two", "dw", "|two"),
        ("one |two\nthree", "dw", "one| \nthree"),
        ("|one two three", "2dw", "|three"),
        ("|one two three", "d2w", "|three"),
        ("|one two", "de", "| two"),
        ("one |two", "db", "|two"),
        ("one tw|o", "d0", "|o"),
        ("on|e two", "d$", "o|n"),
        ("  on|e", "d^", "  |e"),
        ("|abcabc", "dfc", "|abc"),
        ("|abcabc", "dtc", "|cabc"),
        ("abcab|c", "dFa", "abc|c"),
        ("abcab|c", "dTa", "abca|c"),
        ("|a,b,c", "df,d;", "|c"),
        ("one\ntw|o\nthree", "dj", "|one"),
        ("one\ntw|o\nthree", "dk", "|three"),
        ("one\ntw|o", "dgg", "|"),
        ("o|ne\ntwo", "dG", "|"),
        ("one\nt|wo\nthree", "ccX<esc>", "one\n|X\nthree"),
        ("one| two", "CX<esc>", "one|X"),
        ("|one two", "cwX<esc>", "|X two"),
        ("on|e two", "cwX<esc>", "on|X two"),
        ("|one two three", "2cwX<esc>", "|X three"),
        ("|one two", "ceX<esc>", "|X two"),
        ("one |two", "cbX<esc>", "|Xtwo"),
        ("o|ne", "sX<esc>", "o|Xe"),
        ("one\nt|wo", "SX<esc>", "one\n|X"),
        ("|one\ntwo", "yyjp", "one\ntwo\n|one"),
        ("|one\ntwo", "Yp", "one\n|one\ntwo"),
        ("|one two", "yw$p", "one twoone| "),
        ("|one two", "ye$p", "one twoon|e"),
        ("one |two", "ybP", "one| one two"),
        ("|ab", "xp", "b|a"),
        ("|ab", "xP", "|ab"),
        ("one\n|two", "ddP", "|two\none"),
        ("|a", "yl3p", "aaa|a"),
        ("|", "p", "|"),
        ("|one\ntwo", ">>", "  |one\ntwo"),
        ("|one\ntwo", "2>>", "  |one\n  two"),
        ("    o|ne", "<<", "  |one"),
        ("\to|ne", "<<", "|one"),
        (" o|ne", "<<", "|one"),
        ("o|ne\n  two", "J", "one| two"),
        ("|a\nb\nc", "3J", "a b| c"),
        ("a|\n", "J", "|a"),
        ("o|ne", "J", "o|ne"),
        ("o|ne", "rX", "o|Xe"),
        ("o|ne", "2rX", "oX|X"),
        ("o|ne", "~", "oN|e"),
        ("|one two", "dwu", "|one two"),
        ("|one two", "cwabc def<esc>u", "|one two"),
        ("|one two three", "dwdw2u", "|one two three"),
        ("|one", "oX<esc>u", "|one"),
    ]);
}

#[test]
fn text_objects() {
    check(&[
        ("one t|wo three", "diw", "one | three"),
        ("one t|wo three", "daw", "one |three"),
        ("one t|wo", "daw", "on|e"),
        ("one|   two", "diw", "one|two"),
        ("one|   two", "daw", "on|e"),
        ("one a,|b two", "diW", "one | two"),
        ("one a,|b two", "daW", "one |two"),
        ("say \"h|i\" now", "di\"", "say \"|\" now"),
        ("s|ay \"hi\" now", "di\"", "say \"|\" now"),
        ("say \"h|i\" now", "da\"", "say |now"),
        ("say \"a \\\" |b\"", "di\"", "say \"|\""),
        ("say 'h|i' now", "di'", "say '|' now"),
        ("say 'h|i' now", "da'", "say |now"),
        ("f(a, |b)", "di(", "f(|)"),
        ("f(a, (|b))", "di)", "f(a, (|))"),
        ("f(a, |b) c", "da(", "f| c"),
        ("f|(a)", "dib", "f(|)"),
        ("f(a|)", "di(", "f(|)"),
        ("a[|1]", "di[", "a[|]"),
        ("a[|1]", "da]", "|a"),
        ("{ |x }", "di{", "{|}"),
        ("{ |x }", "da}", "|"),
        ("{\n  |x\n}", "di{", "{\n|}"),
        ("o|ne", "di(", "o|ne"),
        ("one t|wo", "ciwX<esc>", "one |X"),
        ("one t|wo", "yiwP", "one tw|otwo"),
    ]);
}

#[test]
fn last_change_is_repeated() {
    check(&[
        ("|one two three", "dw.", "|three"),
        ("|one two three four", "dw2.", "|four"),
        ("|one two", "cwX<esc>w.", "X |X"),
        ("|a\nb", "Ax<esc>j.", "ax\nb|x"),
        ("|abcd", "x..", "|d"),
        ("|a", "oX<esc>.", "a\nX\n|X"),
        ("|one\ntwo", ">>j.", "  one\n  |two"),
        ("|abc", "rXl.", "X|Xc"),
        ("|one two", "yw.", "|one two"),
        ("|abcd", "vd.", "|cd"),
        ("|abcdef", "vldl.", "c|f"),
        ("|a\nb\nc\nd", "Vjd.", "|"),
        ("|", ".", "|"),
    ]);
}

#[test]
fn visual_mode() {
    check(&[
        ("|one two", "vld", "|e two"),
        ("|one two", "vlx", "|e two"),
        ("|one two", "ved", "| two"),
        ("one tw|o", "vbd", "one| "),
        ("o|ne\ntwo", "vjd", "o|o"),
        ("|one two", "vwy$p", "one twoone |t"),
        ("|one two", "vecX<esc>", "|X two"),
        ("|one two", "vesX<esc>", "|X two"),
        ("|one two", "ywwvep", "one one| "),
        ("|one two", "verX", "|XXX two"),
        ("|oNe", "v$~", "|OnE"),
        ("|ONE", "vlu", "|onE"),
        ("|one", "vlU", "|ONe"),
        ("|one\ntwo", "vj>", "  |one\n  two"),
        ("  |one\n  two", "vj<", "|one\ntwo"),
        ("|one\ntwo\nthree", "vjJ", "one| two\nthree"),
        ("one |two three", "veohd", "one| three"),
        ("one t|wo", "viwd", "one| "),
        ("one t|wo x", "vawd", "one |x"),
        ("say \"h|i\"", "vi\"d", "say \"|\""),
        ("f(|a)", "va(d", "|f"),
        ("o|ne\ntwo\nthree", "Vd", "|two\nthree"),
        ("o|ne\ntwo\nthree", "Vjd", "|three"),
        ("o|ne\ntwo", "VyP", "|one\none\ntwo"),
        ("o|ne\ntwo", "VcX<esc>", "|X\ntwo"),
        ("o|ne\ntwo", "vVd", "|two"),
        ("o|ne", "Vvd", "o|e"),
        ("o|ne", "vvx", "o|e"),
        ("o|ne", "v<esc>x", "o|e"),
        ("|one\ntwo", "yyjVp", "one\n|one"),
        ("ab|c\nd", "vggd", "|\nd"),
    ]);
}

/// What vim itself does, recorded by `recorded.py`: text, caret and register.
#[test]
fn keys_do_what_vim_does_with_them() {
    let unescape = |text: &str| {
        text.replace("\\n", "\n").replace("\\e", "\u{1b}").replace("\\r", "\r").replace("\\\\", "\\")
    };
    let mut wrong = Vec::new();
    for row in include_str!("recorded.tsv").lines() {
        let cells: Vec<String> = row.split('\t').map(unescape).collect();
        let [before, keys, after, register] = cells.as_slice() else { panic!("{row}") };
        let mut it = Prompt::new(before);
        it.vim.register = Register { text: "zz".to_owned(), is_lines: false };
        for key in keys.chars().filter(|key| *key != ' ') {
            it.key(Key::plain(match key {
                '\u{1b}' => KeyCode::Esc,
                '\r' => KeyCode::Enter,
                char => KeyCode::Char(char),
            }));
        }
        while it.vim.mode != VimMode::Normal || !it.vim.keys.is_empty() {
            it.keys("<esc>");
        }
        let Register { text, is_lines } = &it.vim.register;
        let seen = (it.marked(), format!("{text}{}", if *is_lines { "\n" } else { "" }));
        if seen != (after.clone(), register.clone()) {
            wrong.push(format!("{row}: {seen:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn modes_have_names_and_escape_leads_back() {
    let mut it = Prompt::new("|one");
    let mut modes = vec![it.vim.mode().name()];
    for keys in ["i", "<esc>", "v", "V", "<esc>"] {
        it.keys(keys);
        modes.push(it.vim.mode().name());
    }
    assert_eq!(modes, ["NORMAL", "INSERT", "NORMAL", "VISUAL", "VISUAL LINE", "NORMAL"]);
    assert_eq!(it.keys("<esc>"), VimStep::Passed, "in NORMAL mode Escape is for the application");
    assert_eq!(it.keys("d<esc>"), VimStep::Taken, "an unfinished command is given up");
    it.keys("w");
    assert_eq!(it.marked(), "on|e");
}

#[test]
fn keys_that_are_not_vims_pass_and_end_what_was_begun() {
    let mut it = Prompt::new("|one two");
    assert_eq!(it.keys("<ctrl+r>"), VimStep::Passed);
    assert_eq!(it.keys("<enter>"), VimStep::Passed);
    it.keys("d<ctrl+t>w");
    assert_eq!(it.marked(), "one |two");
    assert_eq!(it.keys("/"), VimStep::HistorySearch);
    assert_eq!(it.keys("?"), VimStep::Help);
}

#[test]
fn history_is_beyond_the_ends_of_the_text() {
    let mut it = Prompt::new("one\n|two");
    assert_eq!(it.keys("k"), VimStep::Taken);
    assert_eq!(it.keys("k"), VimStep::HistoryPrevious);
    assert_eq!(it.keys("jj"), VimStep::HistoryNext);
    assert_eq!(it.keys("vj"), VimStep::Taken, "a selection stays in the text");
}

#[test]
fn two_keys_mean_escape_within_a_second() {
    let begin = || {
        let mut it = Prompt::new("|");
        it.vim.set_remaps(&[('j', 'j'), ('j', 'k')]);
        it.keys("i");
        it
    };
    let mut it = begin();
    it.keys("ajj");
    assert_eq!((it.marked().as_str(), it.vim.mode()), ("|a", VimMode::Normal));
    let mut it = begin();
    it.keys("ajk");
    assert_eq!((it.marked().as_str(), it.vim.mode()), ("|a", VimMode::Normal));
    let mut it = begin();
    it.keys("aj");
    it.now += Duration::from_secs(2);
    it.keys("jx");
    assert_eq!((it.marked().as_str(), it.vim.mode()), ("ajjx|", VimMode::Insert));
    let mut it = begin();
    it.keys("ajxj");
    assert_eq!(it.marked(), "ajxj|", "another key between");
    it.keys("<esc>u");
    assert_eq!(it.marked(), "|");
}

#[test]
fn one_undo_takes_a_change_back_and_ctrl_y_has_what_was_deleted() {
    let mut it = Prompt::new("|one two");
    it.keys("cwa b c<esc>");
    assert_eq!(it.marked(), "a b |c two");
    it.keys("u");
    assert_eq!(it.marked(), "|one two");
    it.keys("dwi<ctrl+y>");
    assert_eq!(it.marked(), "one |two");
}

#[test]
fn text_that_is_replaced_leaves_no_selection_behind() {
    let mut it = Prompt::new("one\ntwo\nthr|ee");
    it.keys("vgg");
    it.editor.set_draft(&Draft::plain(InputMode::Prompt, "x"));
    it.vim.text_replaced(&mut it.editor);
    assert_eq!((it.marked().as_str(), it.vim.mode()), ("|x", VimMode::Normal));
    it.keys("v");
    it.vim.anchor = Position { line: 9, byte: 9 };
    it.keys("d");
    assert_eq!(it.marked(), "|");
}

proptest::proptest! {
    /// Whatever is typed, the caret stays in the text and nothing breaks.
    #[test]
    fn any_keys_leave_a_text_with_a_caret_in_it(
        text in "[a-c \"'(){}\\[\\]\n漢é]{0,24}",
        keys in "[hjklwebWEB0$^gGfFtT;,xXdDcCyYsSpPJu.rvViaIAoO<>~1-3()\"' \u{1b}]{0,24}",
    ) {
        let mut it = Prompt::new(&format!("|{text}"));
        for char in keys.chars() {
            let code = if char == '\u{1b}' { KeyCode::Esc } else { KeyCode::Char(char) };
            it.key(Key::plain(code));
            let caret = it.editor.caret();
            proptest::prop_assert_eq!(it.editor.buffer().nearest(caret), caret);
        }
    }
}
