//! Chips: pasted text and pictures that stand in the input as one unit, such as `[Pasted text #1 +39 lines]`.
//!
//! In the text a chip is one character of a private plane, so that moving, deleting, killing and undoing take it whole
//! without knowing of it. Such characters never come in from outside: [`without_chip_marks`] replaces them. What a chip
//! stands for is kept in [`Chips`], by its number, for as long as the editor lives: undo may bring any of them back.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use loci_core::message::{Block, Content};

/// The character of chip 0; the plane has room for all that a session can paste.
const FIRST_MARK: u32 = 0x10_0000;
/// What each of them begins with as UTF-8.
const FIRST_BYTE_OF_MARKS: u8 = 0xf4;
/// Behind the last one: the end of the plane's private characters.
const END_OF_MARKS: u32 = 0x10_FFFE;

/// What a chip stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChipContent {
    /// Pasted text.
    Text(Arc<str>),
    /// A picture.
    Image(Arc<PastedImage>),
    /// A picture that is still being read.
    Reading {
        /// What was pasted and names the picture: it stays text where there is no picture behind it.
        pasted: Option<Arc<str>>,
    },
    /// Something that was pasted once and is not to be found any more.
    Missing,
}

/// A picture that was pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastedImage {
    /// The picture as the model takes it: checked, and scaled down where it was large.
    pub block: Block,
    /// Where it came from, if it was a file.
    pub path: Option<String>,
}

/// A chip: its number, how it is shown and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chip {
    /// The number that is shown.
    pub number: u32,
    /// How it is shown.
    pub label: String,
    /// What it stands for.
    pub content: ChipContent,
}

/// All chips of an editor, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Chips {
    by_number: BTreeMap<u32, Chip>,
    /// The highest number that was given; none is given twice.
    last_number: u32,
}

impl Chips {
    /// Adds pasted text and returns the character that stands for it; none when there are too many.
    pub(super) fn add_text(&mut self, text: &str) -> Option<char> {
        let number = self.next_number();
        let n_breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let label = if n_breaks == 0 {
            format!("[Pasted text #{number}]")
        } else {
            format!("[Pasted text #{number} +{n_breaks} lines]")
        };
        self.add(Chip { number, label, content: ChipContent::Text(text.into()) })
    }

    /// Adds a picture that is being read and returns the character that stands for it, and its number.
    pub(super) fn add_image(&mut self, pasted: Option<&str>) -> Option<(char, u32)> {
        let number = self.next_number();
        let content = ChipContent::Reading { pasted: pasted.map(Arc::from) };
        let mark = self.add(Chip { number, label: format!("[Image #{number}]"), content })?;
        Some((mark, number))
    }

    /// Says what a chip stands for now.
    pub(super) fn set_content(&mut self, number: u32, content: ChipContent) {
        if let Some(chip) = self.by_number.get_mut(&number) {
            chip.content = content;
        }
    }

    /// Tells whether a picture is still being read.
    pub(super) fn reading(&self, number: u32) -> Option<&ChipContent> {
        let content = &self.by_number.get(&number)?.content;
        matches!(content, ChipContent::Reading { .. }).then_some(content)
    }

    /// Takes in a chip of another draft, under its own number if that is free, and returns its character.
    pub(super) fn adopt(&mut self, chip: &Chip) -> Option<char> {
        match self.by_number.get(&chip.number) {
            Some(known) if known == chip => mark(chip.number),
            None => self.add(chip.clone()),
            Some(_) => {
                let number = self.next_number();
                let label = chip.label.replacen(&format!("#{}", chip.number), &format!("#{number}"), 1);
                self.add(Chip { number, label, content: chip.content.clone() })
            }
        }
    }

    /// Returns the chip that a character stands for.
    pub(super) fn of(&self, mark: char) -> Option<&Chip> {
        self.by_number.get(&number_of(mark)?)
    }

    /// Forgets chips that nothing refers to any more.
    pub(super) fn retain(&mut self, is_needed: impl Fn(char) -> bool) {
        self.by_number.retain(|number, _| mark(*number).is_some_and(&is_needed));
    }

    /// Returns the chips of a text, each once.
    pub(super) fn in_text(&self, text: &str) -> Vec<Chip> {
        let mut found: Vec<Chip> = Vec::new();
        for chip in text.chars().filter_map(|char| self.of(char)) {
            if !found.iter().any(|known| known.number == chip.number) {
                found.push(chip.clone());
            }
        }
        found
    }

    fn add(&mut self, chip: Chip) -> Option<char> {
        let mark = mark(chip.number)?;
        self.last_number = self.last_number.max(chip.number);
        self.by_number.insert(chip.number, chip);
        Some(mark)
    }

    fn next_number(&self) -> u32 {
        self.last_number + 1
    }
}

pub(super) fn mark(number: u32) -> Option<char> {
    Some(FIRST_MARK + number).filter(|code| *code < END_OF_MARKS).and_then(char::from_u32)
}

pub(super) fn number_of(mark: char) -> Option<u32> {
    is_chip_mark(mark).then(|| u32::from(mark) - FIRST_MARK)
}

/// Tells whether a character stands for a chip.
pub(super) fn is_chip_mark(char: char) -> bool {
    (FIRST_MARK..END_OF_MARKS).contains(&u32::from(char))
}

/// Replaces characters of foreign text that would be taken for chips.
pub(super) fn without_chip_marks(text: &str) -> Cow<'_, str> {
    // All of them begin with this byte, which hardly anything else does.
    if memchr::memchr(FIRST_BYTE_OF_MARKS, text.as_bytes()).is_some() && text.contains(is_chip_mark) {
        Cow::Owned(text.replace(is_chip_mark, "\u{FFFD}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// How the input is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum InputMode {
    /// For the model, or a command with `/`.
    #[default]
    Prompt,
    /// For the shell: what stands behind `!`.
    Shell,
}

/// What was typed, with its chips: what is sent, stashed, recalled and brought to an editor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// How it is meant.
    pub mode: InputMode,
    /// The text, with characters that stand for chips.
    pub(super) marked: String,
    /// The chips in it, in the order of their characters.
    pub(super) chips: Vec<Chip>,
    /// Where the caret stood: so many bytes of `marked` before it.
    pub(super) caret: usize,
}

impl Draft {
    /// Makes a draft of plain text, with the caret behind it.
    pub fn plain(mode: InputMode, text: &str) -> Self {
        let marked = without_chip_marks(text).into_owned();
        Self { mode, caret: marked.len(), marked, chips: Vec::new() }
    }

    /// Makes a draft of a text in which chips stand by their labels, as a history keeps it.
    ///
    /// A label that none of the chips has is a chip that misses its content, so that the label is never sent for what it
    /// stood for.
    pub fn from_display(mode: InputMode, display: &str, chips: &[Chip]) -> Self {
        let mut draft = Self { mode, ..Self::default() };
        let mut rest = display;
        while let Some((before, label, number, after)) = next_label(rest) {
            draft.marked.push_str(&without_chip_marks(before));
            let known = chips.iter().find(|chip| chip.number == number).cloned();
            let missing = || Chip { number, label: label.to_owned(), content: ChipContent::Missing };
            let chip = known.unwrap_or_else(missing);
            match mark(number) {
                Some(mark) => {
                    draft.marked.push(mark);
                    draft.chips.push(Chip { label: label.to_owned(), ..chip });
                }
                None => draft.marked.push_str(label),
            }
            rest = after;
        }
        draft.marked.push_str(&without_chip_marks(rest));
        draft.caret = draft.marked.len();
        draft
    }

    /// Tells whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.marked.is_empty()
    }

    /// Returns the text as it was seen: chips by their labels.
    pub fn display(&self) -> String {
        self.with_chips(|chip| Cow::Borrowed(&chip.label))
    }

    /// Returns the text with what was pasted in the place of the chips. Pictures keep their labels; text that is
    /// missing leaves nothing behind.
    pub fn expanded(&self) -> String {
        self.with_chips(|chip| match &chip.content {
            ChipContent::Text(text) => Cow::Borrowed(text),
            ChipContent::Image(_) | ChipContent::Reading { .. } => Cow::Borrowed(&chip.label),
            ChipContent::Missing => Cow::Borrowed(""),
        })
    }

    /// Returns what is sent: the text, and behind it the pictures that its labels name.
    pub fn content(&self) -> Content {
        let text = self.expanded();
        let pictures: Vec<Block> = self
            .chips
            .iter()
            .filter_map(|chip| match &chip.content {
                ChipContent::Image(image) => Some(image.block.clone()),
                ChipContent::Text(_) | ChipContent::Reading { .. } | ChipContent::Missing => None,
            })
            .collect();
        match pictures.is_empty() {
            true => Content::Text(text.trim().to_owned()),
            false => Content::Blocks(std::iter::once(Block::new_text(text.trim())).chain(pictures).collect()),
        }
    }

    /// Tells whether a picture in it is still being read.
    pub fn is_reading(&self) -> bool {
        self.chips.iter().any(|chip| matches!(chip.content, ChipContent::Reading { .. }))
    }

    /// Puts another draft behind this one, on a line of its own.
    pub fn append(&mut self, other: &Self) {
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        let mut behind = other.marked.clone();
        for chip in &other.chips {
            let is_taken = |known: &Chip| known.number == chip.number && known != chip;
            let number = match self.chips.iter().any(is_taken) {
                true => self.chips.iter().chain(&other.chips).map(|chip| chip.number).max().unwrap_or(0) + 1,
                false => chip.number,
            };
            if let (Some(old), Some(new)) = (mark(chip.number), mark(number)) {
                behind = behind.replace(old, new.encode_utf8(&mut [0; 4]));
            }
            if !self.chips.iter().any(|known| known.number == number) {
                let label = chip.label.replacen(&format!("#{}", chip.number), &format!("#{number}"), 1);
                self.chips.push(Chip { number, label, content: chip.content.clone() });
            }
        }
        self.marked.push('\n');
        self.caret = self.marked.len() + other.caret;
        self.marked.push_str(&behind);
    }

    /// Returns what stands before and behind the caret, as it is seen.
    #[cfg(test)]
    pub(crate) fn around_caret(&self) -> (String, String) {
        let part = |marked: &str| Self { marked: marked.to_owned(), ..self.clone() }.display();
        (part(&self.marked[..self.caret]), part(&self.marked[self.caret..]))
    }

    /// Returns the chips in it, in order.
    pub fn chips(&self) -> &[Chip] {
        &self.chips
    }

    /// Returns the labels of what was pasted and is not to be found any more.
    ///
    /// A prompt is sent without them, with a notice that names them; a command, or a prompt of which nothing would be
    /// left, is not sent at all, since their removal would change what it does.
    pub fn missing(&self) -> Vec<&str> {
        let is_missing = |chip: &&Chip| chip.content == ChipContent::Missing;
        self.chips.iter().filter(is_missing).map(|chip| chip.label.as_str()).collect()
    }

    fn with_chips<'a>(&'a self, show: impl Fn(&'a Chip) -> Cow<'a, str>) -> String {
        let mut text = String::with_capacity(self.marked.len());
        for char in self.marked.chars() {
            match number_of(char).and_then(|number| self.chips.iter().find(|chip| chip.number == number)) {
                Some(chip) => text.push_str(&show(chip)),
                None => text.push(char),
            }
        }
        text
    }
}

/// Finds the next label of a chip: what is before it, itself, its number, and what is behind it.
fn next_label(text: &str) -> Option<(&str, &str, u32, &str)> {
    let mut from = 0;
    while let Some(at) = text[from..].find('[').map(|at| from + at) {
        let label = text[at..].find(']').map(|end| &text[at..=at + end]);
        let number = label.and_then(|label| {
            let inner = label.strip_prefix("[Pasted text #").or_else(|| label.strip_prefix("[Image #"))?;
            let digits = inner.find(|char: char| !char.is_ascii_digit()).map(|end| &inner[..end])?;
            let tail = &inner[digits.len()..];
            let is_whole = tail == "]" || (tail.starts_with(" +") && tail.ends_with(" lines]"));
            digits.parse().ok().filter(|_| is_whole)
        });
        match (label, number) {
            (Some(label), Some(number)) => {
                return Some((&text[..at], label, number, &text[at + label.len()..]));
            }
            _ => from = at + 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_chip(number: u32, label: &str, text: &str) -> Chip {
        Chip { number, label: label.to_owned(), content: ChipContent::Text(text.into()) }
    }

    #[test]
    fn draft_of_a_display_finds_its_chips() {
        let chips = [text_chip(1, "", "a\nb"), text_chip(12, "", "c")];
        let display = "see [Pasted text #1 +1 lines] and [Pasted text #12] [x] [Image #3";
        let draft = Draft::from_display(InputMode::Prompt, display, &chips);
        assert_eq!(draft.display(), display);
        assert_eq!(draft.expanded(), "see a\nb and c [x] [Image #3");
        assert_eq!(draft.chips().len(), 2);
    }

    #[test]
    fn pasted_text_that_is_gone_is_told_and_never_sent_by_its_label() {
        let draft =
            Draft::from_display(InputMode::Prompt, "fix [Pasted text #2 +9 lines] now [Image #1]", &[]);
        assert_eq!(draft.missing(), ["[Pasted text #2 +9 lines]", "[Image #1]"]);
        assert_eq!(draft.expanded(), "fix  now ");
    }

    #[test]
    fn pictures_follow_the_text_that_names_them() {
        let image = PastedImage { block: Block::new_image("image/png", "AA=="), path: None };
        let content = ChipContent::Image(Arc::new(image.clone()));
        let chip = Chip { number: 2, label: String::new(), content };
        let draft = Draft::from_display(InputMode::Prompt, "what is [Image #2]?", &[chip]);
        assert_eq!(
            draft.content(),
            Content::Blocks(vec![Block::new_text("what is [Image #2]?"), image.block])
        );
        assert_eq!(Draft::plain(InputMode::Prompt, " x ").content(), Content::Text("x".into()));
    }

    #[test]
    fn draft_behind_another_keeps_its_chips() {
        let one = Draft::from_display(InputMode::Prompt, "a [Pasted text #1]", &[text_chip(1, "", "one")]);
        let two = Draft::from_display(InputMode::Prompt, "b [Pasted text #1]", &[text_chip(1, "", "two")]);
        let mut both = one.clone();
        both.append(&two);
        assert_eq!(both.display(), "a [Pasted text #1]\nb [Pasted text #2]");
        assert_eq!(both.expanded(), "a one\nb two");
        let mut twice = one.clone();
        twice.append(&one);
        assert_eq!(twice.expanded(), "a one\na one");
    }

    #[test]
    fn adopted_chip_gets_another_number_when_its_own_is_taken() {
        let mut chips = Chips::default();
        chips.add_text("mine").unwrap();
        let mark = chips.adopt(&text_chip(1, "[Pasted text #1]", "another")).unwrap();
        assert_eq!(chips.of(mark).unwrap().label, "[Pasted text #2]");
        let same = chips.adopt(&text_chip(1, "[Pasted text #1]", "mine")).unwrap();
        assert_eq!(chips.of(same).unwrap().number, 1);
    }

    #[test]
    fn foreign_text_cannot_name_a_chip() {
        let mark = mark(1).unwrap();
        assert_eq!(without_chip_marks(&format!("a{mark}b")), "a\u{FFFD}b");
        assert_eq!(Draft::plain(InputMode::Prompt, &mark.to_string()).display(), "\u{FFFD}");
    }
}
