//! Splits `<think>…</think>` at the beginning of an answer off its text, for models that write their reasoning there.
//!
//! Pieces may be cut anywhere, inside a tag too. Only the beginning counts: an answer that talks about the tag keeps it.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Where in the answer we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first letter.
    Beginning,
    Thinking,
    Answering,
}

/// Splits one answer.
#[derive(Debug)]
pub(super) struct ThinkTags {
    state: State,
    /// What may turn out to be a tag.
    held: String,
}

/// A piece of the answer, sorted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Split {
    Thinking(String),
    Text(String),
}

impl ThinkTags {
    pub(super) fn new() -> Self {
        Self { state: State::Beginning, held: String::new() }
    }

    /// Sorts a piece.
    pub(super) fn push(&mut self, piece: &str) -> Vec<Split> {
        let mut out = Vec::new();
        self.held.push_str(piece);
        loop {
            match self.state {
                State::Beginning => {
                    let begun = self.held.trim_start();
                    if let Some(rest) = begun.strip_prefix(OPEN) {
                        self.held = rest.to_owned();
                        self.state = State::Thinking;
                    } else if OPEN.starts_with(begun) {
                        return out;
                    } else {
                        self.state = State::Answering;
                    }
                }
                State::Thinking => {
                    if let Some((thought, rest)) = self.held.split_once(CLOSE) {
                        push(&mut out, Split::Thinking(thought.to_owned()));
                        self.held = rest.trim_start().to_owned();
                        self.state = State::Answering;
                    } else {
                        let kept = tail_of_tag(&self.held);
                        let sure = self.held.len() - kept;
                        push(&mut out, Split::Thinking(self.held[..sure].to_owned()));
                        self.held.drain(..sure);
                        return out;
                    }
                }
                State::Answering => {
                    push(&mut out, Split::Text(std::mem::take(&mut self.held)));
                    return out;
                }
            }
        }
    }

    /// Returns what was held back when the answer ended.
    pub(super) fn end(&mut self) -> Option<Split> {
        let held = std::mem::take(&mut self.held);
        let split = match self.state {
            State::Thinking => Split::Thinking(held),
            State::Beginning | State::Answering => Split::Text(held),
        };
        (!matches!(&split, Split::Thinking(text) | Split::Text(text) if text.is_empty())).then_some(split)
    }
}

fn push(out: &mut Vec<Split>, split: Split) {
    if !matches!(&split, Split::Thinking(text) | Split::Text(text) if text.is_empty()) {
        out.push(split);
    }
}

/// Returns how many bytes at the end may be the beginning of the closing tag.
fn tail_of_tag(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|n| text.ends_with(&CLOSE[..*n])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&str]) -> (String, String) {
        let mut tags = ThinkTags::new();
        let (mut thinking, mut text) = (String::new(), String::new());
        let mut take = |split: Split| match split {
            Split::Thinking(more) => thinking.push_str(&more),
            Split::Text(more) => text.push_str(&more),
        };
        for chunk in chunks {
            tags.push(chunk).into_iter().for_each(&mut take);
        }
        tags.end().into_iter().for_each(&mut take);
        (thinking, text)
    }

    #[test]
    fn think_tags_are_split_off_wherever_the_pieces_are_cut() {
        for (answer, thinking, text) in [
            ("<think>why</think>\n\nbecause", "why", "because"),
            ("\n<think>a < b </ c</think>d", "a < b </ c", "d"),
            ("plain <think>no</think>", "", "plain <think>no</think>"),
            ("<thinking>", "", "<thinking>"),
            ("<think>never ends", "never ends", ""),
            ("<thi", "", "<thi"),
        ] {
            let whole = split(&[answer]);
            assert_eq!((whole.0.as_str(), whole.1.as_str()), (thinking, text), "{answer}");
            let chars: Vec<String> = answer.chars().map(String::from).collect();
            let pieces: Vec<&str> = chars.iter().map(String::as_str).collect();
            let cut = split(&pieces);
            assert_eq!((cut.0.as_str(), cut.1.trim_start()), (thinking, text), "{answer}");
        }
    }
}
