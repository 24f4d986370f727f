//! The grammar of vim's keys: what was typed in NORMAL or VISUAL mode, as a command. Pure: it knows no text.

/// What keys mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VimCommand {
    /// Moves the caret.
    Move(Motion),
    /// Does something to a part of the text.
    Operate(Operator, Target),
    /// Goes to INSERT mode.
    Insert(InsertAt),
    /// Puts another character in the place of those at hand.
    Replace(char),
    /// Changes the case of letters.
    ChangeCase(Case),
    /// Puts in what was deleted or yanked, behind the caret or before it.
    Paste { is_behind: bool },
    /// Makes one line of several.
    Join,
    /// Takes the last change back.
    Undo,
    /// Makes the last change again.
    Repeat,
    /// Begins to select, ends it, or selects otherwise.
    Select(Selecting),
    /// Selects a part of the text.
    SelectObject { object: TextObject, is_around: bool },
    /// Exchanges the ends of the selection.
    SwapEnds,
    /// Searches earlier prompts.
    HistorySearch,
    /// Explains the keys.
    Help,
}

/// A way through the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Motion {
    Left,
    Right,
    Up,
    Down,
    Word(WordKind),
    WordEnd(WordKind),
    WordBack(WordKind),
    LineStart,
    LineEnd,
    FirstNonBlank,
    TextStart,
    TextEnd,
    Find(Find),
    RepeatFind { is_reversed: bool },
}

/// A search for a character in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Find {
    pub(super) char: char,
    pub(super) is_back: bool,
    /// Stops before it.
    pub(super) is_till: bool,
}

/// What counts as a word: letters and signs apart, or everything between blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordKind {
    Word,
    Blank,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Delete,
    Change,
    Yank,
    Indent,
    Dedent,
}

/// What an operator works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Motion(Motion),
    Object {
        object: TextObject,
        is_around: bool,
    },
    /// The line of the caret, and those below as counted.
    Lines,
    /// What is selected.
    Selection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextObject {
    Word(WordKind),
    Quotes(char),
    Brackets(char, char),
}

/// Where INSERT mode begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InsertAt {
    Caret,
    BehindCaret,
    FirstNonBlank,
    LineEnd,
    LineBelow,
    LineAbove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Toggled,
    Lower,
    Upper,
}

/// How a selection is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selecting {
    Characters,
    Lines,
}

/// What came of keys so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsed {
    /// More must follow.
    Incomplete,
    /// They mean nothing.
    Unknown,
    /// They mean this, so many times where a count was typed.
    Command(VimCommand, Option<usize>),
}

/// A larger count is taken for this one.
const MOST: usize = 9_999;

/// Reads keys of NORMAL mode, or of VISUAL mode.
pub(super) fn parse(keys: &[char], is_visual: bool) -> Parsed {
    let mut rest = Keys(keys);
    let mut count = rest.count();
    let read = rest.next().and_then(|key| match is_visual {
        true => visual(key, &mut rest),
        false => normal(key, &mut rest, &mut count),
    });
    match read {
        Ok(command) => Parsed::Command(command, count),
        Err(Stop::More) => Parsed::Incomplete,
        Err(Stop::Unknown) => Parsed::Unknown,
    }
}

/// Why there is no command.
enum Stop {
    More,
    Unknown,
}

/// The keys that were not read yet.
struct Keys<'a>(&'a [char]);

impl Keys<'_> {
    fn next(&mut self) -> Result<char, Stop> {
        let (first, rest) = self.0.split_first().ok_or(Stop::More)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Reads a count; a zero at its beginning is a motion.
    fn count(&mut self) -> Option<usize> {
        if self.0.first() == Some(&'0') {
            return None;
        }
        let n_digits = self.0.iter().take_while(|key| key.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(n_digits);
        self.0 = rest;
        let add = |count: usize, digit: &char| {
            (count * 10 + digit.to_digit(10).map_or(0, |digit| digit as usize)).min(MOST)
        };
        (n_digits > 0).then(|| digits.iter().fold(0, add))
    }
}

fn normal(key: char, rest: &mut Keys<'_>, count: &mut Option<usize>) -> Result<VimCommand, Stop> {
    use VimCommand as V;
    let on = |operator, motion| V::Operate(operator, Target::Motion(motion));
    Ok(match key {
        'i' => V::Insert(InsertAt::Caret),
        'I' => V::Insert(InsertAt::FirstNonBlank),
        'a' => V::Insert(InsertAt::BehindCaret),
        'A' => V::Insert(InsertAt::LineEnd),
        'o' => V::Insert(InsertAt::LineBelow),
        'O' => V::Insert(InsertAt::LineAbove),
        'v' => V::Select(Selecting::Characters),
        'V' => V::Select(Selecting::Lines),
        'x' => on(Operator::Delete, Motion::Right),
        'X' => on(Operator::Delete, Motion::Left),
        'D' => on(Operator::Delete, Motion::LineEnd),
        'C' => on(Operator::Change, Motion::LineEnd),
        's' => on(Operator::Change, Motion::Right),
        'S' => V::Operate(Operator::Change, Target::Lines),
        'Y' => V::Operate(Operator::Yank, Target::Lines),
        'r' => V::Replace(rest.next()?),
        '~' => V::ChangeCase(Case::Toggled),
        'p' => V::Paste { is_behind: true },
        'P' => V::Paste { is_behind: false },
        'J' => V::Join,
        'u' => V::Undo,
        '.' => V::Repeat,
        '/' => V::HistorySearch,
        '?' => V::Help,
        'd' | 'c' | 'y' | '>' | '<' => operated(key, rest, count)?,
        key => V::Move(motion(key, rest)?),
    })
}

fn visual(key: char, rest: &mut Keys<'_>) -> Result<VimCommand, Stop> {
    use VimCommand as V;
    let on_selection = |operator| V::Operate(operator, Target::Selection);
    Ok(match key {
        'd' | 'x' => on_selection(Operator::Delete),
        'y' => on_selection(Operator::Yank),
        'c' | 's' => on_selection(Operator::Change),
        '>' => on_selection(Operator::Indent),
        '<' => on_selection(Operator::Dedent),
        'p' | 'P' => V::Paste { is_behind: true },
        'r' => V::Replace(rest.next()?),
        '~' => V::ChangeCase(Case::Toggled),
        'u' => V::ChangeCase(Case::Lower),
        'U' => V::ChangeCase(Case::Upper),
        'J' => V::Join,
        'o' => V::SwapEnds,
        'v' => V::Select(Selecting::Characters),
        'V' => V::Select(Selecting::Lines),
        'i' | 'a' => V::SelectObject { object: text_object(rest.next()?)?, is_around: key == 'a' },
        '?' => V::Help,
        key => V::Move(motion(key, rest)?),
    })
}

fn operated(key: char, rest: &mut Keys<'_>, count: &mut Option<usize>) -> Result<VimCommand, Stop> {
    let operator = match key {
        'd' => Operator::Delete,
        'c' => Operator::Change,
        'y' => Operator::Yank,
        '>' => Operator::Indent,
        _ => Operator::Dedent,
    };
    if let Some(second) = rest.count() {
        *count = Some((count.unwrap_or(1) * second).min(MOST));
    }
    let target = match rest.next()? {
        again if again == key => Target::Lines,
        which @ ('i' | 'a') => Target::Object { object: text_object(rest.next()?)?, is_around: which == 'a' },
        other => Target::Motion(motion(other, rest)?),
    };
    Ok(VimCommand::Operate(operator, target))
}

fn motion(key: char, rest: &mut Keys<'_>) -> Result<Motion, Stop> {
    Ok(match key {
        'h' => Motion::Left,
        'l' | ' ' => Motion::Right,
        'j' => Motion::Down,
        'k' => Motion::Up,
        'w' => Motion::Word(WordKind::Word),
        'W' => Motion::Word(WordKind::Blank),
        'e' => Motion::WordEnd(WordKind::Word),
        'E' => Motion::WordEnd(WordKind::Blank),
        'b' => Motion::WordBack(WordKind::Word),
        'B' => Motion::WordBack(WordKind::Blank),
        '0' => Motion::LineStart,
        '$' => Motion::LineEnd,
        '^' => Motion::FirstNonBlank,
        'G' => Motion::TextEnd,
        'g' if rest.next()? == 'g' => Motion::TextStart,
        'f' | 'F' | 't' | 'T' => Motion::Find(Find {
            char: rest.next()?,
            is_back: key.is_ascii_uppercase(),
            is_till: key.eq_ignore_ascii_case(&'t'),
        }),
        ';' => Motion::RepeatFind { is_reversed: false },
        ',' => Motion::RepeatFind { is_reversed: true },
        _ => return Err(Stop::Unknown),
    })
}

fn text_object(key: char) -> Result<TextObject, Stop> {
    Ok(match key {
        'w' => TextObject::Word(WordKind::Word),
        'W' => TextObject::Word(WordKind::Blank),
        '"' | '\'' | '`' => TextObject::Quotes(key),
        '(' | ')' | 'b' => TextObject::Brackets('(', ')'),
        '[' | ']' => TextObject::Brackets('[', ']'),
        '{' | '}' | 'B' => TextObject::Brackets('{', '}'),
        '<' | '>' => TextObject::Brackets('<', '>'),
        _ => return Err(Stop::Unknown),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_multiply_and_unfinished_keys_wait() {
        let read = |keys: &str| parse(&keys.chars().collect::<Vec<_>>(), false);
        let word = VimCommand::Operate(Operator::Delete, Target::Motion(Motion::Word(WordKind::Word)));
        assert_eq!(read("dw"), Parsed::Command(word, None));
        assert_eq!(read("2d3w"), Parsed::Command(word, Some(6)));
        assert_eq!(read("99999d99999w"), Parsed::Command(word, Some(MOST)));
        assert_eq!(read("0"), Parsed::Command(VimCommand::Move(Motion::LineStart), None));
        for unfinished in ["", "3", "d", "d2", "di", "f", "df", "g", "r", "2d"] {
            assert_eq!(read(unfinished), Parsed::Incomplete, "{unfinished}");
        }
        for unknown in ["q", "dq", "diq", "gx", "\u{1b}"] {
            assert_eq!(read(unknown), Parsed::Unknown, "{unknown}");
        }
    }
}
