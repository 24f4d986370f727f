//! What a conversation is to hear from others, as values: messages with a sender, an id, a time and a kind, and which of
//! them were read.
//!
//! An inbox is the sum of its records in the order in which they were kept: messages, and marks that say which were read.
//! A message that is posted twice under one id is there once, whether or not it was read between, so a sender that heard
//! nothing may repeat it. A kind that is not known here is kept as it was written.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A message to a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboxMessage {
    /// Its id: unique in its inbox, chosen by the sender.
    #[serde(rename = "msg_id")]
    pub id: String,
    /// Whose message it is.
    pub from: InboxSender,
    /// What it is about.
    pub kind: MessageKind,
    /// What is said.
    pub text: String,
    /// When it was sent: an ISO time.
    pub at: String,
    /// What belongs to it beside its text; fields that are none of ours are kept here too.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Who sent a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxSender {
    /// The id: of a session or an agent; `user` for the person, `loci` for the program itself.
    pub id: String,
    /// What people and models call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl InboxSender {
    /// The person whose session it is.
    pub fn user() -> Self {
        Self { id: "user".to_owned(), name: None }
    }

    /// The program itself.
    pub fn program() -> Self {
        Self { id: "loci".to_owned(), name: None }
    }

    /// Somebody with an id and a name.
    pub fn named(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: Some(name.into()) }
    }
}

/// What a message is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum MessageKind {
    /// A prompt that waits while a turn is under way.
    Prompt,
    /// What an agent says.
    Agent,
    /// News of work in the background.
    TaskNews,
    /// A prompt that was scheduled.
    Schedule,
    /// What a hook said late.
    Hook,
    /// What another session says.
    Session,
    /// A kind that is not known here.
    Other(String),
}

impl MessageKind {
    /// Returns the word for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Prompt => "prompt",
            Self::Agent => "agent",
            Self::TaskNews => "task-news",
            Self::Schedule => "schedule",
            Self::Hook => "hook",
            Self::Session => "session",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for MessageKind {
    fn from(word: String) -> Self {
        match word.as_str() {
            "prompt" => Self::Prompt,
            "agent" => Self::Agent,
            "task-news" => Self::TaskNews,
            "schedule" => Self::Schedule,
            "hook" => Self::Hook,
            "session" => Self::Session,
            _ => Self::Other(word),
        }
    }
}

impl From<MessageKind> for String {
    fn from(kind: MessageKind) -> Self {
        kind.as_str().to_owned()
    }
}

/// A line of an inbox as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub enum InboxRecord {
    /// A message came.
    Message(InboxMessage),
    /// Messages were read: they are in the transcript, or whoever sent them took them back.
    Read {
        /// Their ids.
        msg_ids: Vec<String>,
    },
}

/// What came, and what of it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inbox {
    /// Every message once, in the order in which they came.
    messages: Vec<InboxMessage>,
    /// Where each stands among them.
    places: HashMap<String, usize>,
    read: HashSet<String>,
}

impl Inbox {
    /// Takes a record up; false when it says nothing new.
    pub fn apply(&mut self, record: InboxRecord) -> bool {
        match record {
            InboxRecord::Message(message) => self.post(message),
            InboxRecord::Read { msg_ids } => {
                let n_before = self.read.len();
                self.read.extend(msg_ids);
                self.read.len() > n_before
            }
        }
    }

    /// Adds a message; false when one of its id has come before.
    pub fn post(&mut self, message: InboxMessage) -> bool {
        if self.places.contains_key(&message.id) {
            return false;
        }
        self.places.insert(message.id.clone(), self.messages.len());
        self.messages.push(message);
        true
    }

    /// Returns the messages that nobody has read, in the order in which they came.
    pub fn unread(&self) -> impl Iterator<Item = &InboxMessage> {
        self.messages.iter().filter(|message| !self.read.contains(&message.id))
    }

    /// Returns a message, whether or not it was read.
    pub fn find(&self, id: &str) -> Option<&InboxMessage> {
        self.places.get(id).map(|place| &self.messages[*place])
    }

    /// Tells whether everything was read.
    pub fn is_read(&self) -> bool {
        self.unread().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(id: &str, kind: MessageKind) -> InboxMessage {
        InboxMessage {
            id: id.to_owned(),
            from: InboxSender::named("a1", "scout"),
            kind,
            text: format!("text of {id}"),
            at: "2026-01-02T03:04:05Z".to_owned(),
            more: Map::new(),
        }
    }

    fn unread(inbox: &Inbox) -> Vec<&str> {
        inbox.unread().map(|message| message.id.as_str()).collect()
    }

    #[test]
    fn unread_messages_keep_their_order() {
        let mut inbox = Inbox::default();
        for id in ["c", "a", "b"] {
            assert!(inbox.apply(InboxRecord::Message(message(id, MessageKind::Agent))));
        }
        assert_eq!(unread(&inbox), ["c", "a", "b"]);
        assert!(inbox.apply(InboxRecord::Read { msg_ids: vec!["a".to_owned()] }));
        assert_eq!(unread(&inbox), ["c", "b"]);
        assert!(!inbox.apply(InboxRecord::Read { msg_ids: vec!["a".to_owned()] }), "it was read before");
    }

    #[test]
    fn repeated_message_is_there_once_also_after_it_was_read() {
        let mut inbox = Inbox::default();
        assert!(inbox.post(message("a", MessageKind::Session)));
        assert!(!inbox.post(message("a", MessageKind::Session)));
        assert_eq!(unread(&inbox), ["a"]);
        inbox.apply(InboxRecord::Read { msg_ids: vec!["a".to_owned()] });
        assert!(!inbox.post(message("a", MessageKind::Session)));
        assert!(inbox.is_read() && inbox.find("a").is_some());
    }

    #[test]
    fn mark_that_stands_before_its_message_counts() {
        let mut inbox = Inbox::default();
        inbox.apply(InboxRecord::Read { msg_ids: vec!["a".to_owned()] });
        inbox.post(message("a", MessageKind::Prompt));
        assert!(inbox.is_read());
    }

    #[test]
    fn record_keeps_kinds_and_fields_that_are_not_known() {
        let line = json!({
            "record": "message", "msg_id": "m1", "from": {"id": "s2"}, "kind": "poll", "text": "?",
            "at": "2026-01-02T03:04:05Z", "choices": ["a", "b"],
        });
        let record: InboxRecord = serde_json::from_value(line.clone()).unwrap();
        let InboxRecord::Message(message) = &record else { panic!("{record:?}") };
        assert_eq!(message.kind, MessageKind::Other("poll".to_owned()));
        assert_eq!(serde_json::to_value(&record).unwrap(), line);
    }

    #[test]
    fn every_kind_has_a_word_of_its_own() {
        use MessageKind::{Agent, Hook, Prompt, Schedule, Session, TaskNews};
        for kind in [Prompt, Agent, TaskNews, Schedule, Hook, Session] {
            assert_eq!(MessageKind::from(kind.as_str().to_owned()), kind);
        }
    }
}
