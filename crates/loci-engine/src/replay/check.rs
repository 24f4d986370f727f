//! Whether a request has the messages that the recording says were sent.
//!
//! A transcript keeps neither the system prompt nor the tools nor the context that opens the first message (instruction
//! files and the date), so these are not compared; everything else in the messages is, byte for byte. The hash of a
//! list of messages is SHA-256 over, for each, its role, a line feed, and every block's JSON with a line feed behind it.
//!
//! Messages are shared between the requests of a conversation, so only what is new since the last one is looked at.

use std::sync::Arc;

use loci_core::diff::unified;
use loci_core::message::{Block, Message, Role};
use sha2::{Digest, Sha256};

use super::shorten::{clip_line, shorten};

/// Compares the requests of one running session.
#[derive(Default)]
pub(super) struct Checker {
    sent: Vec<Message>,
    recorded: Vec<Message>,
    /// Over the messages of `recorded` that will not change any more.
    hasher: Sha256,
    n_hashed: usize,
}

/// What a comparison came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) sha256: String,
    pub(super) recorded_sha256: String,
    pub(super) difference: Option<String>,
}

impl Checker {
    /// Compares what is sent with what the recording says; `sent` begins with the context.
    pub(super) fn compare(&mut self, sent: &[Message], recorded: Vec<Message>) -> Compared {
        let sent = without_context(sent);
        let n_known = n_shared(&self.sent, &sent).min(n_shared(&self.recorded, &recorded));
        let is_same = sent.len() == recorded.len() && sent[n_known..] == recorded[n_known..];
        let recorded_sha256 = self.hash(&recorded);
        let compared = match is_same {
            true => Compared { sha256: recorded_sha256.clone(), recorded_sha256, difference: None },
            false => Compared {
                sha256: hash_of(&sent),
                recorded_sha256,
                difference: Some(difference(&recorded, &sent)),
            },
        };
        // What was found different is looked at again each time.
        (self.sent, self.recorded) = if is_same { (sent, recorded) } else { Default::default() };
        compared
    }

    fn hash(&mut self, messages: &[Message]) -> String {
        if n_shared(&self.recorded, messages) < self.n_hashed {
            (self.hasher, self.n_hashed) = (Sha256::new(), 0);
        }
        let n_closed = messages.len().saturating_sub(1);
        for message in &messages[self.n_hashed.min(n_closed)..n_closed] {
            add(&mut self.hasher, message);
        }
        self.n_hashed = n_closed;
        let mut hasher = self.hasher.clone();
        messages.last().into_iter().for_each(|message| add(&mut hasher, message));
        hex(hasher)
    }
}

/// Counts the messages that two lists share from the beginning, without looking into them.
fn n_shared(before: &[Message], now: &[Message]) -> usize {
    before.iter().zip(now).take_while(|(before, now)| Arc::ptr_eq(&before.content, &now.content)).count()
}

fn without_context(sent: &[Message]) -> Vec<Message> {
    let mut sent = sent.to_vec();
    if let Some(first) = sent.first_mut().filter(|first| first.role == Role::User) {
        let content: Vec<Block> = first.content.iter().skip(1).cloned().collect();
        *first = Message::new(first.role, content);
    }
    sent
}

fn hash_of(messages: &[Message]) -> String {
    let mut hasher = Sha256::new();
    messages.iter().for_each(|message| add(&mut hasher, message));
    hex(hasher)
}

fn add(hasher: &mut Sha256, message: &Message) {
    hasher.update(message.role.as_str());
    hasher.update("\n");
    for block in message.content.iter() {
        hasher.update(block.json().as_str());
        hasher.update("\n");
    }
}

fn hex(hasher: Sha256) -> String {
    loci_core::hex::to_hex(&hasher.finalize())
}

fn difference(recorded: &[Message], sent: &[Message]) -> String {
    let n_same = recorded.iter().zip(sent).take_while(|(recorded, sent)| recorded == sent).count();
    let shown = |messages: &[Message]| messages.get(n_same).map(message_text).unwrap_or_default();
    let diff = shorten(&unified(&shown(recorded), &shown(sent)));
    format!("message {} of {} (recorded: {})\n{diff}", n_same + 1, sent.len(), recorded.len())
}

fn message_text(message: &Message) -> String {
    let blocks = message.content.iter().map(|block| format!("{}\n", clip_line(block.json().as_str())));
    std::iter::once(format!("{}\n", message.role.as_str())).chain(blocks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(texts: &[&str]) -> Vec<Message> {
        texts.iter().map(|text| Message::user_text(text)).collect()
    }

    /// As a session sends them: shared, the first with the context before it.
    fn sent(messages: &[Message]) -> Vec<Message> {
        let mut sent = messages.to_vec();
        let first = sent[0].content.iter().cloned();
        sent[0] = Message::new(
            Role::User,
            std::iter::once(Block::new_text("context")).chain(first).collect::<Vec<_>>(),
        );
        sent
    }

    #[test]
    fn each_hash_is_that_of_the_whole_list() {
        let all = messages(&["one", "two", "three", "four"]);
        let mut checker = Checker::default();
        for n in 1..=all.len() {
            let compared = checker.compare(&sent(&all[..n]), all[..n].to_vec());
            assert_eq!(compared.difference, None);
            assert_eq!(compared.sha256, hash_of(&all[..n]), "{n}");
        }
        // A history that changed is hashed anew.
        let other = messages(&["one", "2", "three"]);
        assert_eq!(checker.compare(&sent(&other), other.clone()).sha256, hash_of(&other));
    }

    #[test]
    fn a_byte_that_differs_is_found_wherever_it_is() {
        let all = messages(&["one", "two", "three"]);
        let mut checker = Checker::default();
        assert_eq!(checker.compare(&sent(&all), all.clone()).difference, None);
        for at in 0..all.len() {
            let mut other = all.clone();
            other[at] = Message::user_text("x");
            let compared = checker.compare(&sent(&other), all.clone());
            let difference = compared.difference.unwrap();
            assert!(
                difference.starts_with(&format!("message {} of 3 (recorded: 3)\n", at + 1)),
                "{difference}"
            );
            assert!(difference.contains("+{\"type\":\"text\",\"text\":\"x\"}"), "{difference}");
            assert_ne!(compared.sha256, compared.recorded_sha256);
        }
        let fewer = checker.compare(&sent(&all[..2]), all.clone());
        assert!(fewer.difference.unwrap().starts_with("message 3 of 2 (recorded: 3)\n"));
    }
}
