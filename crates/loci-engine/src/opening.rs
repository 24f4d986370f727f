//! What opens a conversation: instruction files, memories and the date, made and weighed once.
//!
//! Instruction files may be long, and how full the context is gets asked several times for every request. So the words are
//! counted where they are made, and whoever asks gets the figure.

use loci_context::prose_tokens;
use loci_core::message::Block;

/// The first words of a conversation, and about how many tokens they are.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    block: Block,
    tokens: u64,
}

impl Opening {
    /// Makes the opening of a text, and weighs it.
    pub(crate) fn new(text: &str) -> Self {
        Self { block: Block::new_text(text), tokens: prose_tokens(text) }
    }

    /// Returns it as it is sent.
    pub(crate) fn block(&self) -> &Block {
        &self.block
    }

    /// Returns about how many tokens it is.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figure is the one that the words would be estimated at, whatever they are.
    #[test]
    fn an_opening_weighs_what_its_words_do() {
        for text in ["", "Say please.", "Bitte \"höflich\" sein.\nImmer.", &"Say please. ".repeat(4_000)] {
            let opening = Opening::new(text);
            let sent = opening.block().text().unwrap();
            assert_eq!((sent.as_str(), opening.tokens()), (text, prose_tokens(text)));
        }
    }
}
