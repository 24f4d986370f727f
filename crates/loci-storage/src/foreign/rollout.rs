//! Sessions of Codex, which are read and never written: rollouts.
//!
//! ```text
//! <codex home>/sessions/<year>/<month>/<day>/rollout-<time>-<thread>.jsonl          or .jsonl.zst
//! <codex home>/archived_sessions/rollout-<time>-<thread>.jsonl
//! <codex home>/session_index.jsonl                                   {"id","thread_name","updated_at"} a line
//! ```
//!
//! The Codex home is `$CODEX_HOME` or `~/.codex`. A file name may go on with `_<rollout>` after a thread was taken back; of
//! several files of a thread the one written last counts. A line is `{"timestamp","ordinal"?,"type","payload"}`:
//!
//! | type | what is taken from it |
//! |---|---|
//! | `session_meta` | the first one: thread, directory, branch, program; `history_base` names the file it goes on from |
//! | `response_item` | messages, reasoning, calls and outputs, as the model was sent them |
//! | `compacted` | the summary, and the person's messages that were kept beside it |
//! | `turn_context` | the model |
//! | `event_msg` | `thread_rolled_back`: so many turns were taken back. The rest repeats what is known from elsewhere |
//!
//! [`item`] reads a line, [`words`] tells a person's words from those that Codex says in their name, [`telling`] makes a
//! conversation of it in the form of our own sessions: that is the one seam through which rollouts are listed, shown,
//! searched and imported. Files may be compressed ([`compressed`]); those of before September 2025, which have no `payload`, are
//! not read.

mod compressed;
mod convert;
mod item;
mod load;
mod place;
mod words;

pub(crate) use compressed::{is_compressed, rollout_bytes};
pub(crate) use convert::{ConvertedSession, convert};
pub(crate) use item::entries_of;
pub use load::{RolloutError, load_rollout, rollout_text};
pub(crate) use load::{head_of, read_rollout_observed};
pub use place::find_rollout;
pub(crate) use place::{rollouts, titles};
