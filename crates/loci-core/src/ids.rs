//! Newtypes for every id, so that a session id can never stand where a message id is meant.
//!
//! Ids come from files and servers that we do not control, so any text is accepted; the one id we choose
//! a place on disk by, [`SessionId`], is checked to be a UUID. Clones are cheap: the text is shared.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps any text as this kind of id.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// Returns the id's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

text_id!(
    /// A transcript entry's `uuid`.
    EntryId
);
text_id!(
    /// The id the model gave a tool call (`toolu_…`).
    ToolUseId
);
text_id!(
    /// One submitted prompt; the tool results of its turn repeat it.
    PromptId
);
text_id!(
    /// An API response's message id (`msg_…`); shared by the entries split from it.
    MessageId
);
text_id!(
    /// The API's `request-id` header.
    RequestId
);
text_id!(
    /// An agent beside the main line: `a` and sixteen hexadecimal digits.
    AgentId
);
text_id!(
    /// A background task: nine lower-case letters and digits.
    TaskId
);

/// A session's id: a UUID, because it names a file.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(Arc<str>);

/// Says that a text was not a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Not a valid session id (a UUID is needed): `{0}`")]
pub struct BadSessionId(pub String);

impl SessionId {
    /// Parses the hyphenated form of a UUID; upper-case digits are accepted and lowered.
    pub fn parse(text: &str) -> Result<Self, BadSessionId> {
        let is_uuid = text.len() == 36
            && text.bytes().enumerate().all(|(idx, byte)| match idx {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            _ if !is_uuid => Err(BadSessionId(text.to_owned())),
            true => Ok(Self(text.to_ascii_lowercase().into())),
            false => Ok(Self(text.into())),
        }
    }

    /// Returns the id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", self.0)
    }
}

impl TryFrom<String> for SessionId {
    type Error = BadSessionId;

    fn try_from(text: String) -> Result<Self, BadSessionId> {
        Self::parse(&text)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_uuids() {
        for (text, ok) in [
            ("0a0a0a0a-0001-4000-8000-000000000001", true),
            ("0A0A0A0A-0001-4000-8000-00000000000F", true),
            ("0a0a0a0a00014000800000000000000001", false),
            ("0a0a0a0a-0001-4000-8000-00000000000", false),
            ("../../etc/passwd-0000-0000-0000-0000", false),
            ("", false),
        ] {
            assert_eq!(SessionId::parse(text).is_ok(), ok, "{text}");
        }
        assert_eq!(
            SessionId::parse("0A0A0A0A-0001-4000-8000-00000000000F").unwrap().as_str(),
            "0a0a0a0a-0001-4000-8000-00000000000f"
        );
    }
}
