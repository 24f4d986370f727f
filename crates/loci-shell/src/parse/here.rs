//! Here-documents: announced in a line, read after it, put where they belong at the end.

use super::Parser;
use crate::syntax::{Command, Redirect, Word};

/// A here-document whose text is still to come.
pub(super) struct Pending {
    number: usize,
    delimiter: String,
    is_literal: bool,
    strips_tabs: bool,
}

/// Marks a redirection whose body is filled in when the line is parsed.
fn body_mark(number: usize) -> Word {
    Word { source: format!("\0{number}"), ..Word::default() }
}

impl Parser<'_> {
    /// Notes that a here-document follows the line.
    pub(super) fn announce(&mut self, delimiter: &Word, strips_tabs: bool) -> Result<Word, String> {
        let text = delimiter.literal().ok_or("an odd end of a here-document")?;
        let number = self.bodies.len();
        self.bodies.push(Word::default());
        let is_literal = delimiter.source.contains(['\'', '"', '\\']);
        self.pending.push(Pending { number, delimiter: text, is_literal, strips_tabs });
        Ok(body_mark(number))
    }

    pub(super) fn here_documents(&mut self) -> Result<(), String> {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.at;
            let mut body = String::new();
            loop {
                let rest = self.rest();
                if rest.is_empty() {
                    return Err("a here-document has no end".to_owned());
                }
                let (line, length) = match rest.find('\n') {
                    Some(end) => (&rest[..end], end + 1),
                    None => (rest, rest.len()),
                };
                let shown = if pending.strips_tabs { line.trim_start_matches('\t') } else { line };
                if shown == pending.delimiter {
                    // The line break belongs to the list, unless the line ends here.
                    self.at += line.len();
                    break;
                }
                let n_backslashes = line.len() - line.trim_end_matches('\\').len();
                if !pending.is_literal && n_backslashes % 2 == 1 {
                    return Err("a line continued in a here-document".to_owned());
                }
                self.at += length;
                body.push_str(shown);
                body.push('\n');
            }
            self.skipped.push((start, self.at));
            self.note_text(&body);
            self.bodies[pending.number] = if pending.is_literal {
                Word::quoted(&body)
            } else {
                let mut inner = Parser::new(&body, self.depth);
                let text = inner.here_text()?;
                self.notes = self.notes.and(inner.notes);
                if !inner.bodies.is_empty() {
                    return Err("a here-document in a here-document".to_owned());
                }
                text
            };
        }
        Ok(())
    }
}

/// Puts the texts of here-documents where their marks are.
pub(super) fn fill_bodies(command: &mut Command, bodies: &mut [Word]) {
    let fill = |redirects: &mut Vec<Redirect>, bodies: &mut [Word]| {
        for body in redirects.iter_mut().filter_map(|redirect| redirect.body.as_mut()) {
            let number = body.source.strip_prefix('\0').and_then(|text| text.parse::<usize>().ok());
            if let Some(text) = number.and_then(|number| bodies.get_mut(number)) {
                *body = std::mem::take(text);
            }
        }
    };
    let in_words = |words: &mut [Word], bodies: &mut [Word]| {
        for script in words.iter_mut().flat_map(|word| &mut word.scripts) {
            fill_bodies(script, bodies);
        }
    };
    match command {
        Command::Simple(simple) => {
            fill(&mut simple.redirects, bodies);
            in_words(&mut simple.words, bodies);
            for assignment in &mut simple.assignments {
                in_words(std::slice::from_mut(&mut assignment.word), bodies);
            }
            for redirect in &mut simple.redirects {
                in_words(std::slice::from_mut(&mut redirect.target), bodies);
            }
        }
        Command::Sequence(commands) | Command::Pipeline(commands) => {
            commands.iter_mut().for_each(|command| fill_bodies(command, bodies));
        }
        Command::And(left, right) | Command::Or(left, right) => {
            fill_bodies(left, bodies);
            fill_bodies(right, bodies);
        }
        Command::Compound { body, words, redirects, .. } => {
            body.iter_mut().for_each(|command| fill_bodies(command, bodies));
            in_words(words, bodies);
            fill(redirects, bodies);
            for redirect in redirects {
                in_words(std::slice::from_mut(&mut redirect.target), bodies);
            }
        }
    }
}
