//! What the server keeps: members, entries, every text they ever held, and who did what.
//!
//! A [`Store`] is one database. A write is one transaction: the entry, its version and its line in the audit log are
//! there together or not at all, and what becomes of it is [`decide`]d from what the database holds in that very
//! transaction. [`Database`] is the store that an address names.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;

use loci_context::{ContentHash, EntryName, Hashes, TEAM_ENTRIES};
use tokio::sync::mpsc::{Receiver, Sender};

use super::data_migration::{self, Inventory, RowBatch};
use super::postgres::PostgresStore;
use super::sqlite::SqliteStore;
use crate::http::RepositoryName;
use crate::remote::Expected;

/// The longest name of a member.
const MEMBER_CHARS: usize = 100;

/// Why the database could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its file could not be made.
    #[error("Failed to make the database of the team's memories")]
    Make(#[from] io::Error),
    /// SQLite said no.
    #[error("Failed to use the database of the team's memories")]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL said no.
    #[error("Failed to use the database of the team's memories")]
    Postgres(#[from] tokio_postgres::Error),
    /// Its address cannot be used.
    #[error("The address of the database cannot be used, because {0}")]
    Address(String),
    /// It does not speak TLS as its address asks for.
    #[error("The database cannot be reached over TLS, because {0}")]
    Tls(String),
    /// No connection to it became free in time.
    #[error("The database of the team's memories is busy")]
    Busy,
    /// It was made by a newer version.
    #[error("The database was made by a newer version: it is at step {found}, this program knows {known}")]
    TooNew {
        /// Its step.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// It is no name of a member.
    #[error("Not a name for a member: `{0}`")]
    NotAName(String),
    /// There is a member of that name.
    #[error("There is a member of that name for this repository: `{0}`")]
    MemberExists(String),
    /// Somebody uses it, so nothing is moved there.
    #[error("The database that is moved to is not empty: it has `{0}` already")]
    NotEmpty(&'static str),
    /// A text is not what its hash says.
    #[error("The database is damaged: the text of {0} is not what its hash says")]
    Damaged(String),
    /// Not everything came over; nothing was changed.
    #[error("The move was cut short, and nothing was changed")]
    CutShort,
    /// What came over reads differently; nothing was changed.
    #[error("What was moved and what was read back are not equal, so nothing was changed")]
    NotEqual,
}

/// Somebody who may use a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) repository: String,
}

/// What became of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    /// It was not there and is now.
    Created,
    /// It took the place of another.
    Replaced,
    /// It was there already.
    Already,
    /// Another is there, or none where one was expected.
    Conflict(Option<ContentHash>),
    /// The name differs from another only by case.
    Clash,
    /// The repository is full.
    Full,
}

impl Written {
    /// Returns its name in the audit log.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Replaced => "replaced",
            Self::Already => "already",
            Self::Conflict(_) => "conflict",
            Self::Clash => "clash",
            Self::Full => "full",
        }
    }

    /// Tells whether the database changes.
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Self::Created | Self::Replaced)
    }
}

/// A text that a member sends.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) member: Member,
    pub(super) name: EntryName,
    pub(super) text: String,
    pub(super) hash: ContentHash,
    pub(super) expected: Expected,
    pub(super) now: String,
}

/// A line of the audit log.
#[derive(Debug, Clone)]
pub(super) struct Deed {
    pub(super) member: String,
    pub(super) repository: String,
    pub(super) action: &'static str,
    pub(super) name: Option<EntryName>,
    pub(super) hash: Option<ContentHash>,
    pub(super) outcome: &'static str,
}

impl Deed {
    /// Somebody became a member, or is one no longer.
    pub(super) fn about_member(
        name: &str,
        repository: &RepositoryName,
        action: &'static str,
        outcome: &'static str,
    ) -> Self {
        let (member, repository) = (name.to_owned(), repository.as_str().to_owned());
        Self { member, repository, action, name: None, hash: None, outcome }
    }

    /// A text was sent.
    pub(super) fn about_text(sent: &Sent, written: &Written) -> Self {
        Self {
            member: sent.member.name.clone(),
            repository: sent.member.repository.clone(),
            action: "write",
            name: Some(sent.name.clone()),
            hash: Some(sent.hash.clone()),
            outcome: written.as_str(),
        }
    }
}

/// What a database answers, when it comes to it.
pub(super) type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// One database, which several servers may share.
pub(super) trait Store: Debug + Send + Sync {
    /// Adds a member, known from now on by a token of which only the hash is kept.
    fn add_member<'a>(
        &'a self,
        name: &'a str,
        repository: &'a RepositoryName,
        token: &'a ContentHash,
        now: &'a str,
    ) -> StoreFuture<'a, ()>;

    /// Has a member's token count no longer; tells whether there was one.
    fn remove_member<'a>(
        &'a self,
        name: &'a str,
        repository: &'a RepositoryName,
        now: &'a str,
    ) -> StoreFuture<'a, bool>;

    /// Finds whose token this is, by its hash.
    fn member<'a>(&'a self, token: &'a ContentHash) -> StoreFuture<'a, Option<Member>>;

    /// Returns all entries and their hashes; a row that cannot be read is left out.
    fn list<'a>(&'a self, repository: &'a str) -> StoreFuture<'a, Hashes>;

    /// Returns the text of an entry.
    fn text<'a>(&'a self, repository: &'a str, name: &'a EntryName) -> StoreFuture<'a, Option<String>>;

    /// Stores a text, if the entry is what is expected.
    fn write(&self, sent: Sent) -> StoreFuture<'_, Written>;

    /// Takes note of a request that was refused before it was tried.
    fn note<'a>(&'a self, deed: Deed, now: &'a str) -> StoreFuture<'a, ()>;

    /// Returns every text that was ever taken, as entry and hash, oldest first.
    fn versions<'a>(&'a self, repository: &'a RepositoryName) -> StoreFuture<'a, Vec<(String, String)>>;

    /// Returns the audit log, oldest first: time, member, repository, action, entry, outcome.
    fn audit_log(&self) -> StoreFuture<'_, Vec<[String; 6]>>;

    /// Sends everything there is; nobody writes meanwhile.
    fn export(&self, batches: Sender<RowBatch>) -> StoreFuture<'_, ()>;

    /// Takes everything in one transaction, if there is nothing yet and what came is what was sent.
    fn import(&self, batches: Receiver<RowBatch>) -> StoreFuture<'_, Inventory>;
}

/// The database that an address names.
#[derive(Debug)]
pub struct Database {
    store: Box<dyn Store>,
}

impl Database {
    /// Opens a SQLite file, making it or bringing it up to date.
    pub async fn open_file(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { store: Box::new(SqliteStore::open(path).await?) })
    }

    /// Connects to PostgreSQL, making the tables or bringing them up to date.
    pub async fn connect(address: &str) -> Result<Self, StoreError> {
        Ok(Self { store: Box::new(PostgresStore::connect(address).await?) })
    }

    /// Tells whether an address is one of PostgreSQL.
    pub fn is_postgres(address: &str) -> bool {
        address.starts_with("postgres://") || address.starts_with("postgresql://")
    }

    /// Adds a member, known from now on by a token of which only the hash is kept.
    pub async fn add_member(
        &self,
        name: &str,
        repository: &RepositoryName,
        token: &str,
        now: &str,
    ) -> Result<(), StoreError> {
        if name.trim().is_empty() || name.chars().count() > MEMBER_CHARS || name.contains(char::is_control) {
            return Err(StoreError::NotAName(name.to_owned()));
        }
        self.store.add_member(name, repository, &ContentHash::of(token), now).await
    }

    /// Has a member's token count no longer; tells whether there was one.
    pub async fn remove_member(
        &self,
        name: &str,
        repository: &RepositoryName,
        now: &str,
    ) -> Result<bool, StoreError> {
        self.store.remove_member(name, repository, now).await
    }

    /// Returns every text that was ever taken, as entry and hash, oldest first.
    pub async fn versions(&self, repository: &RepositoryName) -> Result<Vec<(String, String)>, StoreError> {
        self.store.versions(repository).await
    }

    /// Returns the audit log, oldest first: time, member, repository, action, entry, outcome.
    pub async fn audit_log(&self) -> Result<Vec<[String; 6]>, StoreError> {
        self.store.audit_log().await
    }

    /// Copies everything to a database that is empty; this one stays as it is.
    pub async fn move_to(&self, target: &Self) -> Result<Inventory, StoreError> {
        let (sender, receiver) = data_migration::batch_channel();
        let (sent, taken) = tokio::join!(self.store.export(sender), target.store.import(receiver));
        data_migration::outcome(sent, taken)
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }
}

/// An entry of the same name but for case: its name and its hash.
pub(super) type SimilarEntry = Option<(String, String)>;

/// Decides what becomes of a text, from the entry that is there and how many there are in all.
pub(super) fn decide(sent: &Sent, found: SimilarEntry, n_entries: usize) -> Written {
    match (found, &sent.expected) {
        (Some((other, _)), _) if other != sent.name.as_str() => Written::Clash,
        (Some((_, now)), _) if now == sent.hash.as_str() => Written::Already,
        (Some((_, now)), Expected::Hash(expected)) if now == expected.as_str() => Written::Replaced,
        (Some((_, now)), _) => Written::Conflict(ContentHash::parse(&now)),
        (None, Expected::Hash(_)) => Written::Conflict(None),
        (None, Expected::Absent) if n_entries >= TEAM_ENTRIES => Written::Full,
        (None, Expected::Absent) => Written::Created,
    }
}

/// Reads rows of entries; those that cannot be read are left out.
pub(super) fn to_hashes(rows: impl IntoIterator<Item = (String, String)>) -> Hashes {
    let read =
        |(name, hash): (String, String)| Some((EntryName::parse(&name).ok()?, ContentHash::parse(&hash)?));
    rows.into_iter().filter_map(read).collect()
}

/// Returns the steps that bring a database from its version to ours; `all` is every step there is.
pub(super) fn steps_after<'a>(all: &'a [&'a str], found: u32) -> Result<&'a [&'a str], StoreError> {
    let known = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let steps = usize::try_from(found).ok().and_then(|found| all.get(found..));
    steps.ok_or(StoreError::TooNew { found, known })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str, expected: Expected) -> Sent {
        Sent {
            member: Member { id: 1, name: "ann".to_owned(), repository: "r".to_owned() },
            name: EntryName::parse("a.md").unwrap(),
            text: text.to_owned(),
            hash: ContentHash::of(text),
            expected,
            now: "now".to_owned(),
        }
    }

    /// Invariant 2 of `docs/design/team-memory.md`.
    #[test]
    fn a_text_is_taken_only_in_the_place_of_what_was_expected() {
        let (old, new, other) = (ContentHash::of("old"), ContentHash::of("new"), ContentHash::of("other"));
        let found = |name: &str, hash: &ContentHash| Some((name.to_owned(), hash.to_string()));
        for (expected, there, n_entries, written) in [
            (Expected::Absent, None, 0, Written::Created),
            (Expected::Absent, None, TEAM_ENTRIES - 1, Written::Created),
            (Expected::Absent, None, TEAM_ENTRIES, Written::Full),
            (Expected::Absent, found("a.md", &new), 1, Written::Already),
            (Expected::Absent, found("a.md", &old), 1, Written::Conflict(Some(old.clone()))),
            (Expected::Absent, found("A.md", &new), 1, Written::Clash),
            (Expected::Hash(old.clone()), None, 0, Written::Conflict(None)),
            (Expected::Hash(old.clone()), found("a.md", &old), TEAM_ENTRIES, Written::Replaced),
            (Expected::Hash(old.clone()), found("a.md", &new), 1, Written::Already),
            (Expected::Hash(old.clone()), found("a.md", &other), 1, Written::Conflict(Some(other.clone()))),
        ] {
            assert_eq!(
                decide(&sent("new", expected.clone()), there.clone(), n_entries),
                written,
                "{expected:?} {there:?}"
            );
        }
    }

    #[test]
    fn a_database_of_a_newer_version_is_not_touched() {
        let all = ["one", "two"];
        assert_eq!(steps_after(&all, 0).unwrap(), ["one", "two"]);
        assert_eq!(steps_after(&all, 2).unwrap(), [""; 0]);
        let error = steps_after(&all, 3).unwrap_err().to_string();
        assert!(error.contains("it is at step 3, this program knows 2"), "{error}");
    }
}
