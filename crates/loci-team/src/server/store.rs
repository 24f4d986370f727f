//! What the server keeps, in one SQLite file: members, entries, every text they ever held, and who did what.
//!
//! A write is one transaction: the entry, its version and its line in the audit log are there together or not at all.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_context::{ContentHash, EntryName, Hashes, TEAM_ENTRIES};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::http::RepositoryName;
use crate::remote::Expected;

/// Each step brings a database from the version that is its index to the next; steps are only ever added.
const MIGRATIONS: &[&str] = &[include_str!("1.sql")];

/// Why the database could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its file could not be made.
    #[error("Failed to make the database of the team's memories")]
    Make(#[from] io::Error),
    /// It said no.
    #[error("Failed to use the database of the team's memories")]
    Database(#[from] rusqlite::Error),
    /// It was made by a newer version.
    #[error("The database was made by a newer version: it is at step {found}, this program knows {known}")]
    TooNew {
        /// Its step.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// There is a member of that name.
    #[error("There is a member of that name for this repository: `{0}`")]
    MemberExists(String),
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
    fn as_str(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Replaced => "replaced",
            Self::Already => "already",
            Self::Conflict(_) => "conflict",
            Self::Clash => "clash",
            Self::Full => "full",
        }
    }
}

/// The database.
#[derive(Debug)]
pub struct Store {
    /// The one connection; SQLite has one writer at a time anyway.
    connection: Mutex<Connection>,
}

impl Store {
    /// Opens the database, making it or bringing it up to date.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        make_private(path)?;
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        migrate(&mut connection)?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// Adds a member, known from now on by a token of which only the hash is kept.
    pub fn add_member(
        &self,
        name: &str,
        repository: &RepositoryName,
        token: &str,
        now: &str,
    ) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let n = transaction.execute(
            "INSERT OR IGNORE INTO members (name, repository, token_hash, added_at) VALUES (?1, ?2, ?3, ?4)",
            params![name, repository.as_str(), ContentHash::of(token).as_str(), now],
        )?;
        if n == 0 {
            return Err(StoreError::MemberExists(name.to_owned()));
        }
        audit(&transaction, now, &about_member(name, repository, "add-member", "done"))?;
        Ok(transaction.commit()?)
    }

    /// Has a member's token count no longer; returns whether there was one.
    pub fn remove_member(
        &self,
        name: &str,
        repository: &RepositoryName,
        now: &str,
    ) -> Result<bool, StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let is_removed = transaction.execute(
            "DELETE FROM members WHERE name = ?1 AND repository = ?2",
            params![name, repository.as_str()],
        )? > 0;
        let outcome = if is_removed { "done" } else { "none" };
        audit(&transaction, now, &about_member(name, repository, "remove-member", outcome))?;
        transaction.commit()?;
        Ok(is_removed)
    }

    /// Finds whose token this is.
    pub(super) fn member(&self, token: &str) -> Result<Option<Member>, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare("SELECT id, name, repository FROM members WHERE token_hash = ?1")?;
        let member = statement.query_row([ContentHash::of(token).as_str()], |row| {
            Ok(Member { id: row.get(0)?, name: row.get(1)?, repository: row.get(2)? })
        });
        Ok(member.optional()?)
    }

    /// Returns all entries and their hashes; a row that cannot be read is left out.
    pub(super) fn list(&self, repository: &str) -> Result<Hashes, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare("SELECT name, hash FROM entries WHERE repository = ?1")?;
        let rows = statement.query_map([repository], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut hashes = Hashes::new();
        for row in rows {
            let (name, hash): (String, String) = row?;
            if let (Ok(name), Some(hash)) = (EntryName::parse(&name), ContentHash::parse(&hash)) {
                hashes.insert(name, hash);
            }
        }
        Ok(hashes)
    }

    /// Returns the text of an entry.
    pub(super) fn text(&self, repository: &str, name: &EntryName) -> Result<Option<String>, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare("SELECT text FROM entries WHERE repository = ?1 AND name = ?2")?;
        Ok(statement.query_row([repository, name.as_str()], |row| row.get(0)).optional()?)
    }

    /// Stores a text, if the entry is what is expected.
    pub(super) fn write(
        &self,
        member: &Member,
        name: &EntryName,
        text: &str,
        expected: &Expected,
        now: &str,
    ) -> Result<Written, StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let hash = ContentHash::of(text);
        let written = decide(&transaction, &member.repository, name, &hash, expected)?;
        if matches!(written, Written::Created | Written::Replaced) {
            transaction.execute(
                "INSERT INTO entries (repository, name, case_key, text, hash, changed_at, changed_by)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (repository, name) DO UPDATE SET text = ?4, hash = ?5, changed_at = ?6, changed_by = ?7",
                params![member.repository, name.as_str(), name.case_key(), text, hash.as_str(), now, member.name],
            )?;
            transaction.execute(
                "INSERT INTO versions (repository, name, text, hash, at, by) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![member.repository, name.as_str(), text, hash.as_str(), now, member.name],
            )?;
        }
        let (name, hash) = (Some(name), Some(&hash));
        let (member, repository) = (&member.name, &member.repository);
        let deed = Deed { member, repository, action: "write", name, hash, outcome: written.as_str() };
        audit(&transaction, now, &deed)?;
        transaction.commit()?;
        Ok(written)
    }

    /// Takes note of a write that was refused before it was tried.
    pub(super) fn refused(
        &self,
        member: &Member,
        repository: &str,
        outcome: &str,
        now: &str,
    ) -> Result<(), StoreError> {
        let (member, action) = (&member.name, "request");
        audit(&self.connection(), now, &Deed { member, repository, action, name: None, hash: None, outcome })
    }

    /// Returns every text that was ever taken, as entry and hash, oldest first.
    pub fn versions(&self, repository: &RepositoryName) -> Result<Vec<(String, String)>, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare("SELECT name, hash FROM versions WHERE repository = ?1 ORDER BY id")?;
        let rows = statement.query_map([repository.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the audit log, oldest first: time, member, repository, action, entry, outcome.
    pub fn audit_log(&self) -> Result<Vec<[String; 6]>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare(
            "SELECT at, member, repository, action, coalesce(name, ''), outcome FROM audit ORDER BY id",
        )?;
        let rows = statement.query_map([], |row| {
            Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?])
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn about_member<'a>(
    member: &'a str,
    repository: &'a RepositoryName,
    action: &'a str,
    outcome: &'a str,
) -> Deed<'a> {
    Deed { member, repository: repository.as_str(), action, name: None, hash: None, outcome }
}

/// Makes the file if there is none, for its owner alone; what SQLite lays beside it gets the same mode.
fn make_private(path: &Path) -> io::Result<()> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        loci_stdx::create_private_dir_all(dir)?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(drop)
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = MIGRATIONS.iter().map(|_| 1).sum();
    if found > known {
        return Err(StoreError::TooNew { found, known });
    }
    for step in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    Ok(transaction.commit()?)
}

fn decide(
    connection: &Connection,
    repository: &str,
    name: &EntryName,
    hash: &ContentHash,
    expected: &Expected,
) -> Result<Written, StoreError> {
    let found = connection
        .query_row(
            "SELECT name, hash FROM entries WHERE repository = ?1 AND case_key = ?2",
            [repository, &name.case_key()],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
        )
        .optional()?;
    let n_entries: u32 =
        connection.query_row("SELECT count(*) FROM entries WHERE repository = ?1", [repository], |row| {
            row.get(0)
        })?;
    Ok(match (found, expected) {
        (Some((other, _)), _) if other != name.as_str() => Written::Clash,
        (Some((_, now)), _) if now == hash.as_str() => Written::Already,
        (Some((_, now)), Expected::Hash(expected)) if now == expected.as_str() => Written::Replaced,
        (Some((_, now)), _) => Written::Conflict(ContentHash::parse(&now)),
        (None, Expected::Hash(_)) => Written::Conflict(None),
        (None, Expected::Absent) if n_entries as usize >= TEAM_ENTRIES => Written::Full,
        (None, Expected::Absent) => Written::Created,
    })
}

/// A line of the audit log.
struct Deed<'a> {
    member: &'a str,
    repository: &'a str,
    action: &'a str,
    name: Option<&'a EntryName>,
    hash: Option<&'a ContentHash>,
    outcome: &'a str,
}

fn audit(connection: &Connection, now: &str, deed: &Deed<'_>) -> Result<(), StoreError> {
    let (name, hash) = (deed.name.map(EntryName::as_str), deed.hash.map(ContentHash::as_str));
    connection.execute(
        "INSERT INTO audit (at, member, repository, action, name, hash, outcome) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![now, deed.member, deed.repository, deed.action, name, hash, deed.outcome],
    )?;
    Ok(())
}
