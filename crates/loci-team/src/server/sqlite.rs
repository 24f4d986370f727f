//! The store in one SQLite file, for a team on one machine.
//!
//! There are two connections: one that writes, because SQLite has one writer at a time anyway, and one that reads, which
//! never waits for a write that is on its way to the disk. Work is done on threads that may wait.

mod data_migration;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loci_context::{ContentHash, EntryName, Hashes};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::mpsc::{Receiver, Sender};

use super::data_migration::{Inventory, RowBatch};
use super::store::{
    Deed, Member, Sent, SimilarEntry, Store, StoreError, StoreFuture, Written, decide, steps_after, to_hashes,
};
use crate::http::RepositoryName;

/// Each step brings a database from the version that is its index to the next; steps are only ever added.
const STEPS: &[&str] = &[include_str!("sqlite/1.sql")];
/// How long to wait for other processes that write.
const BUSY: Duration = Duration::from_secs(10);

/// A SQLite file.
#[derive(Debug)]
pub(super) struct SqliteStore {
    writer: Arc<Mutex<Connection>>,
    reader: Arc<Mutex<Connection>>,
}

impl SqliteStore {
    /// Opens the file, making it or bringing it up to date.
    pub(super) async fn open(path: &Path) -> Result<Self, StoreError> {
        let path = path.to_owned();
        blocking(move || {
            make_private(&path)?;
            let mut writer = Connection::open(&path)?;
            writer.busy_timeout(BUSY)?;
            writer.pragma_update(None, "journal_mode", "WAL")?;
            writer.pragma_update(None, "synchronous", "FULL")?;
            migrate(&mut writer)?;
            let reader = Connection::open(&path)?;
            reader.busy_timeout(BUSY)?;
            reader.pragma_update(None, "query_only", true)?;
            Ok(Self { writer: Arc::new(Mutex::new(writer)), reader: Arc::new(Mutex::new(reader)) })
        })
        .await
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let reader = Arc::clone(&self.reader);
        Box::pin(blocking(move || work(&reader.lock().unwrap_or_else(PoisonError::into_inner))))
    }

    /// Works in one transaction, which is on disk when the answer is there, or was never begun.
    fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let writer = Arc::clone(&self.writer);
        Box::pin(blocking(move || {
            let mut connection = writer.lock().unwrap_or_else(PoisonError::into_inner);
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        }))
    }
}

impl Store for SqliteStore {
    fn add_member<'a>(
        &'a self,
        name: &'a str,
        repository: &'a RepositoryName,
        token: &'a ContentHash,
        now: &'a str,
    ) -> StoreFuture<'a, ()> {
        let deed = Deed::about_member(name, repository, "add-member", "done");
        let (token, now) = (token.to_string(), now.to_owned());
        self.change(move |connection| {
            let n = connection.execute(
                "INSERT OR IGNORE INTO members (name, repository, token_hash, added_at) VALUES (?1, ?2, ?3, ?4)",
                params![deed.member, deed.repository, token, now],
            )?;
            match n {
                0 => Err(StoreError::MemberExists(deed.member)),
                _ => audit(connection, &now, &deed),
            }
        })
    }

    fn remove_member<'a>(
        &'a self,
        name: &'a str,
        repository: &'a RepositoryName,
        now: &'a str,
    ) -> StoreFuture<'a, bool> {
        let (name, repository, now) = (name.to_owned(), repository.clone(), now.to_owned());
        self.change(move |connection| {
            let sql = "DELETE FROM members WHERE name = ?1 AND repository = ?2";
            let is_removed = connection.execute(sql, params![name, repository.as_str()])? > 0;
            let outcome = if is_removed { "done" } else { "none" };
            audit(connection, &now, &Deed::about_member(&name, &repository, "remove-member", outcome))?;
            Ok(is_removed)
        })
    }

    fn member<'a>(&'a self, token: &'a ContentHash) -> StoreFuture<'a, Option<Member>> {
        let token = token.to_string();
        self.read(move |connection| {
            let sql = "SELECT id, name, repository FROM members WHERE token_hash = ?1";
            let member = connection.prepare_cached(sql)?.query_row([token], |row| {
                Ok(Member { id: row.get(0)?, name: row.get(1)?, repository: row.get(2)? })
            });
            Ok(member.optional()?)
        })
    }

    fn list<'a>(&'a self, repository: &'a str) -> StoreFuture<'a, Hashes> {
        let repository = repository.to_owned();
        self.read(move |connection| {
            let mut rows =
                connection.prepare_cached("SELECT name, hash FROM entries WHERE repository = ?1")?;
            let rows = rows.query_map([repository], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(to_hashes(rows.collect::<Result<Vec<_>, _>>()?))
        })
    }

    fn text<'a>(&'a self, repository: &'a str, name: &'a EntryName) -> StoreFuture<'a, Option<String>> {
        let (repository, name) = (repository.to_owned(), name.clone());
        self.read(move |connection| {
            let sql = "SELECT text FROM entries WHERE repository = ?1 AND name = ?2";
            let text =
                connection.prepare_cached(sql)?.query_row([&repository, name.as_str()], |row| row.get(0));
            Ok(text.optional()?)
        })
    }

    fn write(&self, sent: Sent) -> StoreFuture<'_, Written> {
        self.change(move |connection| {
            let (found, n_entries) = find_replaced(connection, &sent)?;
            let written = decide(&sent, found, n_entries);
            if written.is_change() {
                insert_entry(connection, &sent)?;
            }
            audit(connection, &sent.now, &Deed::about_text(&sent, &written))?;
            Ok(written)
        })
    }

    fn note<'a>(&'a self, deed: Deed, now: &'a str) -> StoreFuture<'a, ()> {
        let now = now.to_owned();
        self.change(move |connection| audit(connection, &now, &deed))
    }

    fn versions<'a>(&'a self, repository: &'a RepositoryName) -> StoreFuture<'a, Vec<(String, String)>> {
        let repository = repository.as_str().to_owned();
        self.read(move |connection| {
            let sql = "SELECT name, hash FROM versions WHERE repository = ?1 ORDER BY id";
            let mut rows = connection.prepare(sql)?;
            let rows = rows.query_map([repository], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn audit_log(&self) -> StoreFuture<'_, Vec<[String; 6]>> {
        self.read(|connection| {
            let mut rows = connection.prepare(
                "SELECT at, member, repository, action, coalesce(name, ''), outcome FROM audit ORDER BY id",
            )?;
            let rows = rows.query_map([], |row| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?])
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn export(&self, batches: Sender<RowBatch>) -> StoreFuture<'_, ()> {
        self.change(move |connection| data_migration::send_all(connection, &batches))
    }

    fn import(&self, batches: Receiver<RowBatch>) -> StoreFuture<'_, Inventory> {
        let is_free = self.read(data_migration::check_empty);
        let taken = self.change(move |connection| data_migration::take_all(connection, batches));
        Box::pin(async move {
            // Looked at first without waiting, because it may be the very file that is being moved.
            is_free.await?;
            taken.await
        })
    }
}

/// Does work that waits for the disk, on a thread that may. The work goes on when nobody waits for it any more.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StoreError::Make(io::Error::other(error))))
}

/// Makes the file if there is none, for its owner alone; what SQLite lays beside it gets the same mode.
fn make_private(path: &Path) -> io::Result<()> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        loci_stdx::create_private_dir_all(dir)?;
    }
    loci_stdx::private_file().append(true).create(true).open(path).map(drop)
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let mut version = found;
    for step in steps_after(STEPS, found)? {
        transaction.execute_batch(step)?;
        version += 1;
    }
    transaction.pragma_update(None, "user_version", version)?;
    Ok(transaction.commit()?)
}

/// Returns the entry whose place a text would take, and how many there are.
fn find_replaced(connection: &Connection, sent: &Sent) -> Result<(SimilarEntry, usize), StoreError> {
    let repository = &sent.member.repository;
    let found = connection
        .prepare_cached("SELECT name, hash FROM entries WHERE repository = ?1 AND case_key = ?2")?
        .query_row([repository, &sent.name.case_key()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let n_entries: u32 = connection
        .prepare_cached("SELECT count(*) FROM entries WHERE repository = ?1")?
        .query_row([repository], |row| row.get(0))?;
    Ok((found, n_entries as usize))
}

fn insert_entry(connection: &Connection, sent: &Sent) -> Result<(), StoreError> {
    let (name, hash, by) = (sent.name.as_str(), sent.hash.as_str(), &sent.member.name);
    let (repository, now) = (&sent.member.repository, &sent.now);
    connection
        .prepare_cached(
            "INSERT INTO entries (repository, name, case_key, text, hash, changed_at, changed_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (repository, name) DO UPDATE SET text = ?4, hash = ?5, changed_at = ?6, changed_by = ?7",
        )?
        .execute(params![repository, name, sent.name.case_key(), sent.text, hash, now, by])?;
    connection
        .prepare_cached(
            "INSERT INTO versions (repository, name, text, hash, at, by) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![repository, name, sent.text, hash, now, by])?;
    Ok(())
}

fn audit(connection: &Connection, now: &str, deed: &Deed) -> Result<(), StoreError> {
    let name = deed.name.as_ref().map(EntryName::as_str);
    let hash = deed.hash.as_ref().map(ContentHash::as_str);
    connection
        .prepare_cached(
            "INSERT INTO audit (at, member, repository, action, name, hash, outcome)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![now, deed.member, deed.repository, deed.action, name, hash, deed.outcome])?;
    Ok(())
}
