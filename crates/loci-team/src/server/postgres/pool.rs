//! A few connections to PostgreSQL, lent out one at a time and made anew when they are lost.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::super::store::StoreError;
use super::address::Address;
use super::tls::{Connector, TlsFailure};

/// Connections at the same time; more would wait for the same disk.
const MOST: usize = 16;
/// How long a request waits for one, and for a new one to be made.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the client library says of a database that has no TLS, where it has to.
const NO_TLS: &str = "server does not support TLS";
/// A role may have been told to answer before a text is on disk, or to wait for a lock for ever; here it may not.
const OPTIONS: &str = "SET synchronous_commit = on; SET lock_timeout = '10s'; SET statement_timeout = '30s'";

/// The connections of one database.
#[derive(Debug)]
pub(super) struct Pool {
    config: Config,
    /// Where there is none, all is in the clear.
    tls: Option<Connector>,
    /// Those that nobody uses, the one used last on top.
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

/// A connection and the statements it knows.
pub(super) struct Connection {
    client: Client,
    known: HashMap<&'static str, Statement>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("is_closed", &self.client.is_closed()).finish()
    }
}

/// A connection that is in use; it goes back when this is dropped, with what it was asked still under way.
#[derive(Debug)]
pub(super) struct Lent<'a> {
    /// There until it is given back.
    connection: Option<Connection>,
    pool: &'a Pool,
    _permit: SemaphorePermit<'a>,
}

impl Pool {
    /// Makes a pool, reading the certificates that an address names; nothing is connected yet.
    pub(super) async fn new(address: Address) -> Result<Self, StoreError> {
        let Address { config, trust } = address;
        let read = move || trust.as_ref().map(Connector::new).transpose();
        let tls = tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other)??;
        Ok(Self { config, tls, idle: Mutex::default(), permits: Semaphore::new(MOST) })
    }

    /// Lends a connection, making one where none is idle.
    pub(super) async fn lend(&self) -> Result<Lent<'_>, StoreError> {
        let permit = timeout(PATIENCE, self.permits.acquire()).await;
        let permit = permit.ok().and_then(Result::ok).ok_or(StoreError::Busy)?;
        let connection = match self.take() {
            Some(connection) => connection,
            None => timeout(PATIENCE, self.connect()).await.map_err(|_| StoreError::Busy)??,
        };
        Ok(Lent { connection: Some(connection), pool: self, _permit: permit })
    }

    async fn connect(&self) -> Result<Connection, StoreError> {
        let client = match &self.tls {
            None => driven(self.config.connect(NoTls).await?),
            Some(tls) => driven(self.config.connect(tls.clone()).await.map_err(explained)?),
        };
        client.batch_execute(OPTIONS).await?;
        Ok(Connection { client, known: HashMap::new() })
    }

    /// Returns an idle connection that still stands.
    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| !connection.client.is_closed());
        idle.pop()
    }
}

/// Has a connection do its work beside us. It ends with the client; what is wrong with it the next query says.
fn driven<S, T>((client, wire): (Client, tokio_postgres::Connection<S, T>)) -> Client
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move { drop(wire.await) });
    client
}

/// Tells a connection that does not speak TLS as it should from one that fails otherwise.
fn explained(error: tokio_postgres::Error) -> StoreError {
    match std::error::Error::source(&error) {
        Some(cause) if cause.is::<TlsFailure>() => StoreError::Tls(cause.to_string()),
        Some(cause) if cause.to_string() == NO_TLS => StoreError::Tls(
            "it offers none, and nothing is sent in the clear unless that is asked for".to_owned(),
        ),
        _ => StoreError::Postgres(error),
    }
}

impl Lent<'_> {
    /// Returns statements that the database has parsed and planned, once a connection.
    pub(super) async fn statements<const N: usize>(
        &mut self,
        texts: [&'static str; N],
    ) -> Result<[Statement; N], StoreError> {
        let connection = self.connection_mut();
        for text in texts {
            if !connection.known.contains_key(text) {
                let statement = connection.client.prepare(text).await?;
                connection.known.insert(text, statement);
            }
        }
        Ok(texts.map(|text| connection.known[text].clone()))
    }

    #[expect(clippy::expect_used, reason = "only `drop` takes it")]
    fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("it is there until this is dropped")
    }

    #[expect(clippy::expect_used, reason = "only `drop` takes it")]
    fn connection_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("it is there until this is dropped")
    }
}

impl Deref for Lent<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.connection().client
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.connection_mut().client
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take().filter(|it| !it.client.is_closed()) else { return };
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}
