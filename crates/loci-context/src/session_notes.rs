//! Running notes of one conversation: their form, their bounds, and what their writer is asked.
//!
//! The notes are one Markdown file of ten sections, kept by a background agent. A compaction can go on from them at
//! once, without asking a model for a summary. They stay small: a section and the whole have a bound, and what is
//! over it is cut with a word about it.

mod pace;

use crate::tokens::prose_tokens;
pub use pace::{NotesPace, SinceNotes};

/// The file as it begins.
pub const NOTES_TEMPLATE: &str = include_str!("session_notes/template.md");
const INSTRUCTION: &str = include_str!("session_notes/instruction.md");

/// Tokens of one section.
pub const SECTION_TOKENS: u64 = 2_000;
/// Tokens of all sections.
pub const NOTES_TOKENS: u64 = 12_000;

/// The section that is read from its end: what happened last is what matters.
const WORKLOG: &str = "Worklog";

/// Returns what the writer of the notes is asked; `path` is the file and `notes` its text.
pub fn notes_instruction(path: &str, notes: &str) -> String {
    let over: Vec<String> = sections(notes)
        .filter(|section| section.tokens() > SECTION_TOKENS)
        .map(|section| format!("\"{}\" has about {} tokens", section.title(), section.tokens()))
        .collect();
    let total = prose_tokens(notes);
    let mut warning = String::new();
    if !over.is_empty() {
        warning = format!("Too long, shorten first: {}. ", over.join(", "));
    }
    if total > NOTES_TOKENS {
        warning.push_str(&format!("The whole has about {total} tokens, also too many. "));
    }
    INSTRUCTION
        .trim_end()
        .replace("{path}", path)
        .replace("{section}", &SECTION_TOKENS.to_string())
        .replace("{total}", &NOTES_TOKENS.to_string())
        .replace("{warning}", &warning)
        .replace("{notes}", notes.trim_end())
}

/// Returns the notes within their bounds, or `None` when they are within them already.
pub fn bounded_notes(notes: &str) -> Option<String> {
    let mut parts: Vec<Section<'_>> = sections(notes).collect();
    let is_fine = |parts: &[Section<'_>]| {
        parts.iter().all(|part| part.tokens() <= SECTION_TOKENS) && total(parts) <= NOTES_TOKENS
    };
    if is_fine(&parts) {
        return None;
    }
    for part in &mut parts {
        part.cut(SECTION_TOKENS);
    }
    // Each step takes an eighth off the longest; ten sections within their bound are twenty thousand at most.
    for _ in 0..200 {
        if total(&parts) <= NOTES_TOKENS {
            break;
        }
        if let Some(longest) = parts.iter_mut().max_by_key(|part| part.tokens()) {
            let less = longest.tokens() - longest.tokens() / 8 - 1;
            longest.cut(less);
        }
    }
    let bounded: String = parts.into_iter().map(|part| part.text.into_owned()).collect();
    // Thousands of headings have no lines to spare; then the end goes.
    let room = usize::try_from(NOTES_TOKENS * 4).unwrap_or(usize::MAX);
    Some(if prose_tokens(&bounded) > NOTES_TOKENS { first_lines(&bounded, room) } else { bounded })
}

/// Returns what notes say, without the hints of the template; `None` when nothing was noted.
pub fn notes_content(notes: &str) -> Option<String> {
    let hints: Vec<&str> = NOTES_TEMPLATE.lines().filter(|line| line.starts_with('_')).collect();
    let lines = notes.lines().filter(|line| !hints.contains(line)).collect::<Vec<_>>().join("\n");
    let says_something =
        lines.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    says_something.then(|| lines.trim().to_owned())
}

fn total(parts: &[Section<'_>]) -> u64 {
    parts.iter().map(Section::tokens).sum()
}

/// A heading and what stands under it; what precedes the first heading is one too.
struct Section<'a> {
    text: std::borrow::Cow<'a, str>,
}

fn sections(notes: &str) -> impl Iterator<Item = Section<'_>> {
    let starts = notes.match_indices("# ").map(|(at, _)| at);
    let mut starts: Vec<usize> = starts.filter(|at| *at == 0 || notes.as_bytes()[at - 1] == b'\n').collect();
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([notes.len()]).collect();
    let ranges = starts.into_iter().zip(ends).filter(|(start, end)| start < end);
    ranges.map(|(start, end)| Section { text: notes[start..end].into() })
}

impl Section<'_> {
    fn title(&self) -> &str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ").trim()
    }

    fn tokens(&self) -> u64 {
        prose_tokens(&self.text)
    }

    /// Cuts whole lines until the section is within `limit`, and says so; one long line is cut inside.
    fn cut(&mut self, limit: u64) {
        if self.tokens() <= limit {
            return;
        }
        let (head, body) = match self.text.split_once('\n') {
            Some((head, body)) => (head.to_owned(), body.trim_end().to_owned()),
            None => (String::new(), self.text.clone().into_owned()),
        };
        let notice = "[older lines were cut here to keep the notes short]";
        let room = usize::try_from(limit.saturating_mul(4)).unwrap_or(usize::MAX);
        let room = room.saturating_sub(head.chars().count() + notice.chars().count() + 8);
        let kept = if self.title() == WORKLOG {
            format!("{notice}\n{}", last_lines(&body, room))
        } else {
            format!("{}\n{notice}", first_lines(&body, room))
        };
        let head = if head.is_empty() { head } else { format!("{head}\n") };
        self.text = format!("{head}{kept}\n\n").into();
    }
}

fn first_lines(body: &str, room: usize) -> String {
    let end = body.char_indices().nth(room).map_or(body.len(), |(at, _)| at);
    let kept = &body[..end];
    kept.rfind('\n').filter(|_| end < body.len()).map_or(kept, |at| &kept[..at]).to_owned()
}

fn last_lines(body: &str, room: usize) -> String {
    let n_chars = body.chars().count();
    let start = body.char_indices().nth(n_chars.saturating_sub(room)).map_or(0, |(at, _)| at);
    let kept = &body[start..];
    kept.find('\n').filter(|_| start > 0).map_or(kept, |at| &kept[at + 1..]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_ten_sections_and_says_nothing() {
        let titles: Vec<String> = sections(NOTES_TEMPLATE).map(|part| part.title().to_owned()).collect();
        assert_eq!(
            titles,
            [
                "Title",
                "Current state",
                "Task specification",
                "Files and functions",
                "Workflow",
                "Errors and corrections",
                "Codebase documentation",
                "Learnings",
                "Key results",
                "Worklog"
            ]
        );
        assert_eq!(notes_content(NOTES_TEMPLATE), None);
        assert_eq!(notes_content(""), None);
        let filled = NOTES_TEMPLATE.replace("# Workflow\n", "# Workflow\ncargo test\n");
        assert!(
            notes_content(&filled).is_some_and(|text| text.contains("# Workflow\ncargo test")),
            "{filled}"
        );
    }

    /// Invariant 3 of `docs/design/memory.md`.
    #[test]
    fn a_section_and_the_whole_stay_within_their_bounds() {
        let line = |n: usize| format!("line {n} {}\n", "word ".repeat(15));
        let long: String = (0..400).map(line).collect();
        let notes: String = sections(NOTES_TEMPLATE).map(|part| format!("{}{long}", part.text)).collect();
        let bounded = bounded_notes(&notes).unwrap();
        for section in sections(&bounded) {
            assert!(section.tokens() <= SECTION_TOKENS, "{}: {}", section.title(), section.tokens());
        }
        assert!(prose_tokens(&bounded) <= NOTES_TOKENS + 10, "{}", prose_tokens(&bounded));
        assert_eq!(sections(&bounded).count(), 10, "no section is lost");
        let worklog = sections(&bounded).last().unwrap();
        assert!(worklog.text.contains("line 399") && !worklog.text.contains("line 0 "), "the newest stays");
        let state = sections(&bounded).nth(1).unwrap();
        assert!(state.text.contains("line 0 ") && !state.text.contains("line 399"));
        assert!(bounded.contains("were cut here"));
        assert_eq!(bounded_notes(&bounded), None, "once is enough");
        assert_eq!(bounded_notes(NOTES_TEMPLATE), None);
    }

    #[test]
    fn odd_texts_are_bounded_too() {
        for text in ["no heading at all ".repeat(2_000), "# A\n".repeat(20_000), "ü".repeat(60_000)] {
            let bounded = bounded_notes(&text).unwrap();
            assert!(prose_tokens(&bounded) <= NOTES_TOKENS + 10);
        }
    }

    #[test]
    fn the_writer_is_told_what_is_too_long() {
        let plain = notes_instruction("/n/summary.md", NOTES_TEMPLATE);
        assert!(plain.contains("/n/summary.md") && plain.contains("# Worklog"), "{plain}");
        assert!(!plain.contains('{') && !plain.contains("Too long"), "{plain}");
        let long = format!("# Workflow\n{}", "word ".repeat(2_000));
        assert!(notes_instruction("/n", &long).contains("\"Workflow\" has about 2503 tokens"));
    }
}
