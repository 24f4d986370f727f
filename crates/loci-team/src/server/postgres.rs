//! The store in PostgreSQL, for teams that outgrow one machine: several servers may share one database.
//!
//! Transactions run at the level "read committed". A text that takes the place of another holds that entry's row from
//! the moment it is looked at; a new entry holds a lock of its repository, so that two of one name, or one too many, are
//! never made at the same time. Replacements of different entries do not wait for each other.

mod address;
mod binding;
mod data_migration;
mod pool;
mod tls;

use loci_context::{ContentHash, EntryName, Hashes};
use tokio::sync::mpsc::{Receiver, Sender};
use tokio_postgres::{GenericClient, Statement, Transaction};

use super::data_migration::{Inventory, RowBatch};
use super::store::{
    Deed, Member, Sent, SimilarEntry, Store, StoreError, StoreFuture, Written, decide, steps_after, to_hashes,
};
use crate::http::RepositoryName;
use address::Address;
use pool::{Lent, Pool};

/// Each step brings a database from the version that is its index to the next; steps are only ever added.
const STEPS: &[&str] = &[include_str!("postgres/1.sql")];
/// The lock that is held while steps are taken; any number that nobody else uses.
const STEPS_LOCK: i64 = 0x6c6f_6369_7465_616d;

const MEMBER: &str = "SELECT id, name, repository FROM members WHERE token_hash = $1";
const LIST: &str = "SELECT name, hash FROM entries WHERE repository = $1";
const TEXT: &str = "SELECT text FROM entries WHERE repository = $1 AND name = $2";
const FIND: &str = "SELECT name, hash FROM entries WHERE repository = $1 AND case_key = $2 FOR UPDATE";
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
const COUNT: &str = "SELECT count(*) FROM entries WHERE repository = $1";
const PUT: &str = "INSERT INTO entries (repository, name, case_key, text, hash, changed_at, changed_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (repository, name) DO UPDATE SET text = $4, hash = $5, changed_at = $6, changed_by = $7";
const VERSION: &str =
    "INSERT INTO versions (repository, name, text, hash, at, by) VALUES ($1, $2, $3, $4, $5, $6)";
const AUDIT: &str = "INSERT INTO audit (at, member, repository, action, name, hash, outcome)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

/// A PostgreSQL database.
#[derive(Debug)]
pub(super) struct PostgresStore {
    pool: Pool,
}

impl PostgresStore {
    /// Connects, making the tables or bringing them up to date.
    pub(super) async fn connect(address: &str) -> Result<Self, StoreError> {
        let pool = Pool::new(Address::parse(address)?).await?;
        let mut connection = pool.lend().await?;
        check_encoding(&connection).await?;
        migrate(&mut connection).await?;
        drop(connection);
        Ok(Self { pool })
    }

    async fn write_text(&self, sent: Sent) -> Result<Written, StoreError> {
        let mut connection = self.pool.lend().await?;
        let [find, lock, count, put, version, audit] =
            connection.statements([FIND, LOCK, COUNT, PUT, VERSION, AUDIT]).await?;
        let transaction = connection.transaction().await?;
        let (found, n_entries) = find_replaced(&transaction, &sent, [&find, &lock, &count]).await?;
        let written = decide(&sent, found, n_entries);
        let deed = Deed::about_text(&sent, &written);
        let noted = note(&transaction, &audit, &deed, &sent.now);
        match written.is_change() {
            // Sent together, answered together.
            true => drop(tokio::try_join!(keep(&transaction, &sent, [&put, &version]), noted)?),
            false => noted.await?,
        }
        transaction.commit().await?;
        Ok(written)
    }
}

impl Store for PostgresStore {
    fn add_member<'a>(
        &'a self,
        name: &'a str,
        repository: &'a RepositoryName,
        token: &'a ContentHash,
        now: &'a str,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut connection = self.pool.lend().await?;
            let [audit] = connection.statements([AUDIT]).await?;
            let transaction = connection.transaction().await?;
            let n = transaction
                .execute(
                    "INSERT INTO members (name, repository, token_hash, added_at) VALUES ($1, $2, $3, $4)
                     ON CONFLICT DO NOTHING",
                    &[&name, &repository.as_str(), &token.as_str(), &now],
                )
                .await?;
            if n == 0 {
                return Err(StoreError::MemberExists(name.to_owned()));
            }
            let deed = Deed::about_member(name, repository, "add-member", "done");
            note(&transaction, &audit, &deed, now).await?;
            Ok(transaction.commit().await?)
        })
    }

    fn remove_member<'a>(
        &'a self,
        name: &'a str,
        repository: &'a RepositoryName,
        now: &'a str,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut connection = self.pool.lend().await?;
            let [audit] = connection.statements([AUDIT]).await?;
            let transaction = connection.transaction().await?;
            let sql = "DELETE FROM members WHERE name = $1 AND repository = $2";
            let is_removed = transaction.execute(sql, &[&name, &repository.as_str()]).await? > 0;
            let outcome = if is_removed { "done" } else { "none" };
            let deed = Deed::about_member(name, repository, "remove-member", outcome);
            note(&transaction, &audit, &deed, now).await?;
            transaction.commit().await?;
            Ok(is_removed)
        })
    }

    fn member<'a>(&'a self, token: &'a ContentHash) -> StoreFuture<'a, Option<Member>> {
        Box::pin(async move {
            let mut connection = self.pool.lend().await?;
            let [member] = connection.statements([MEMBER]).await?;
            let Some(row) = connection.query_opt(&member, &[&token.as_str()]).await? else { return Ok(None) };
            Ok(Some(Member { id: row.try_get(0)?, name: row.try_get(1)?, repository: row.try_get(2)? }))
        })
    }

    fn list<'a>(&'a self, repository: &'a str) -> StoreFuture<'a, Hashes> {
        Box::pin(async move {
            let mut connection = self.pool.lend().await?;
            let [list] = connection.statements([LIST]).await?;
            let rows = connection.query(&list, &[&repository]).await?;
            let rows: Result<Vec<_>, _> =
                rows.iter().map(|row| Ok::<_, StoreError>((row.try_get(0)?, row.try_get(1)?))).collect();
            Ok(to_hashes(rows?))
        })
    }

    fn text<'a>(&'a self, repository: &'a str, name: &'a EntryName) -> StoreFuture<'a, Option<String>> {
        Box::pin(async move {
            let mut connection = self.pool.lend().await?;
            let [text] = connection.statements([TEXT]).await?;
            let row = connection.query_opt(&text, &[&repository, &name.as_str()]).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?)
        })
    }

    fn write(&self, sent: Sent) -> StoreFuture<'_, Written> {
        Box::pin(self.write_text(sent))
    }

    fn note<'a>(&'a self, deed: Deed, now: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut connection = self.pool.lend().await?;
            let [audit] = connection.statements([AUDIT]).await?;
            note(&*connection, &audit, &deed, now).await
        })
    }

    fn versions<'a>(&'a self, repository: &'a RepositoryName) -> StoreFuture<'a, Vec<(String, String)>> {
        Box::pin(async move {
            let connection = self.pool.lend().await?;
            let sql = "SELECT name, hash FROM versions WHERE repository = $1 ORDER BY id";
            let rows = connection.query(sql, &[&repository.as_str()]).await?;
            rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
        })
    }

    fn audit_log(&self) -> StoreFuture<'_, Vec<[String; 6]>> {
        Box::pin(async move {
            let connection = self.pool.lend().await?;
            let sql =
                "SELECT at, member, repository, action, coalesce(name, ''), outcome FROM audit ORDER BY id";
            let rows = connection.query(sql, &[]).await?;
            rows.iter()
                .map(|row| {
                    let get = |idx: usize| row.try_get::<_, String>(idx);
                    Ok([get(0)?, get(1)?, get(2)?, get(3)?, get(4)?, get(5)?])
                })
                .collect()
        })
    }

    fn export(&self, batches: Sender<RowBatch>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut connection = self.pool.lend().await?;
            let transaction = connection.transaction().await?;
            data_migration::send_all(&transaction, &batches).await?;
            Ok(transaction.commit().await?)
        })
    }

    fn import(&self, batches: Receiver<RowBatch>) -> StoreFuture<'_, Inventory> {
        Box::pin(async move {
            let mut connection = self.pool.lend().await?;
            let transaction = connection.transaction().await?;
            let taken = data_migration::take_all(&transaction, batches).await?;
            transaction.commit().await?;
            Ok(taken)
        })
    }
}

/// Returns the entry whose place a text would take, held until the transaction ends, and how many there are. Where there
/// is none, the repository is held, and looked at once more.
async fn find_replaced(
    transaction: &Transaction<'_>,
    sent: &Sent,
    [find, lock, count]: [&Statement; 3],
) -> Result<(SimilarEntry, usize), StoreError> {
    let (repository, key) = (&sent.member.repository, sent.name.case_key());
    let found = async || {
        let row = transaction.query_opt(find, &[repository, &key]).await?;
        row.map(|row| Ok::<_, StoreError>((row.try_get(0)?, row.try_get(1)?))).transpose()
    };
    if let Some(there) = found().await? {
        return Ok((Some(there), 0));
    }
    transaction.query_one(lock, &[repository]).await?;
    let n_entries: i64 = transaction.query_one(count, &[repository]).await?.try_get(0)?;
    Ok((found().await?, usize::try_from(n_entries).unwrap_or(usize::MAX)))
}

async fn keep(
    transaction: &Transaction<'_>,
    sent: &Sent,
    [put, version]: [&Statement; 2],
) -> Result<(), StoreError> {
    let (repository, name, hash) = (&sent.member.repository, sent.name.as_str(), sent.hash.as_str());
    let (text, now, by, key) = (&sent.text, &sent.now, &sent.member.name, sent.name.case_key());
    let entry = async { transaction.execute(put, &[repository, &name, &key, text, &hash, now, by]).await };
    let version = async { transaction.execute(version, &[repository, &name, text, &hash, now, by]).await };
    tokio::try_join!(entry, version)?;
    Ok(())
}

async fn note(
    client: &(impl GenericClient + Sync),
    audit: &Statement,
    deed: &Deed,
    now: &str,
) -> Result<(), StoreError> {
    let name = deed.name.as_ref().map(EntryName::as_str);
    let hash = deed.hash.as_ref().map(ContentHash::as_str);
    let (member, repository) = (&deed.member, &deed.repository);
    client.execute(audit, &[&now, member, repository, &deed.action, &name, &hash, &deed.outcome]).await?;
    Ok(())
}

/// Texts are UTF-8, and come back byte for byte only from a database that is, too.
async fn check_encoding(connection: &Lent<'_>) -> Result<(), StoreError> {
    let encoding: String = connection.query_one("SHOW server_encoding", &[]).await?.try_get(0)?;
    match encoding.as_str() {
        "UTF8" => Ok(()),
        other => {
            let why = format!("it keeps text as {other}; make one with `createdb -E UTF8 -T template0`");
            Err(StoreError::Address(why))
        }
    }
}

async fn migrate(connection: &mut Lent<'_>) -> Result<(), StoreError> {
    let transaction = connection.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&STEPS_LOCK]).await?;
    transaction.batch_execute("CREATE TABLE IF NOT EXISTS loci_team_steps (n INTEGER NOT NULL)").await?;
    let row = transaction.query_one("SELECT coalesce(max(n), 0) FROM loci_team_steps", &[]).await?;
    let found = u32::try_from(row.try_get::<_, i32>(0)?).unwrap_or_default();
    for (step, n) in steps_after(STEPS, found)?.iter().zip(found + 1..) {
        transaction.batch_execute(step).await?;
        let n = i32::try_from(n).unwrap_or(i32::MAX);
        transaction.execute("INSERT INTO loci_team_steps (n) VALUES ($1)", &[&n]).await?;
    }
    Ok(transaction.commit().await?)
}
