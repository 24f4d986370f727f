//! A few connections to PostgreSQL, lent out one at a time and made anew when they are lost.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::super::store::StoreError;

/// Connections at the same time; more would wait for the same disk.
const MOST: usize = 16;
/// How long a request waits for one, and for a new one to be made.
const PATIENCE: Duration = Duration::from_secs(10);
/// A role may have been told to answer before a text is on disk, or to wait for a lock for ever; here it may not.
const OPTIONS: &str = "SET synchronous_commit = on; SET lock_timeout = '10s'; SET statement_timeout = '30s'";

/// Reads an address. There is no TLS here, so what leaves this machine has to be asked for by name.
pub(super) fn config(address: &str) -> Result<Config, StoreError> {
    let config: Config = address.parse::<Config>().map_err(|error| refused(in_words(&error)))?;
    let is_near =
        config.get_hosts().iter().all(is_near) && config.get_hostaddrs().iter().all(IpAddr::is_loopback);
    match config.get_ssl_mode() {
        _ if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() => {
            Err(refused("it names no host".to_owned()))
        }
        SslMode::Disable => Ok(config),
        SslMode::Prefer if is_near => Ok(config),
        _ => Err(refused(
            "TLS to the database is not part of this version; with `sslmode=disable` it is used in the clear, which \
             is for a network that nobody else reads, or through a tunnel"
                .to_owned(),
        )),
    }
}

fn is_near(host: &Host) -> bool {
    match host {
        Host::Tcp(host) => host == "localhost" || host.parse().is_ok_and(|it: IpAddr| it.is_loopback()),
        Host::Unix(_) => true,
    }
}

fn refused(why: String) -> StoreError {
    StoreError::Address(why)
}

fn in_words(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("it cannot be read ({error}{cause})")
}

/// The connections of one database.
#[derive(Debug)]
pub(super) struct Pool {
    config: Config,
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
    /// Makes a pool; nothing is connected yet.
    pub(super) fn new(config: Config) -> Self {
        Self { config, idle: Mutex::default(), permits: Semaphore::new(MOST) }
    }

    /// Lends a connection, making one where none is idle.
    pub(super) async fn lend(&self) -> Result<Lent<'_>, StoreError> {
        let permit = timeout(PATIENCE, self.permits.acquire()).await;
        let permit = permit.ok().and_then(Result::ok).ok_or(StoreError::Busy)?;
        let connection = match self.take() {
            Some(connection) => connection,
            None => timeout(PATIENCE, connect(&self.config)).await.map_err(|_| StoreError::Busy)??,
        };
        Ok(Lent { connection: Some(connection), pool: self, _permit: permit })
    }

    /// Returns an idle connection that still stands.
    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| !connection.client.is_closed());
        idle.pop()
    }
}

async fn connect(config: &Config) -> Result<Connection, StoreError> {
    let (client, wire) = config.connect(NoTls).await?;
    // It ends with the client; what is wrong with it the next query says.
    tokio::spawn(async move { drop(wire.await) });
    client.batch_execute(OPTIONS).await?;
    Ok(Connection { client, known: HashMap::new() })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariant 6 of `docs/design/team-memory.md`.
    #[test]
    fn an_address_on_another_machine_is_used_in_the_clear_only_by_name() {
        for (address, is_fine) in [
            ("postgres://loci@localhost/team", true),
            ("postgres://loci:pw@127.0.0.1:5433/team", true),
            ("postgresql:///team?host=/run/postgresql&user=loci", true),
            ("postgres://loci@db.example.com/team?sslmode=disable", true),
            ("postgres://loci@db.example.com/team", false),
            ("postgres://loci@localhost,db.example.com/team", false),
            ("postgres://loci@localhost/team?hostaddr=192.0.2.1", false),
            ("postgres://loci@localhost/team?sslmode=require", false),
            ("postgres:///team", false),
            ("postgres://loci@localhost:port/team", false),
        ] {
            assert_eq!(config(address).is_ok(), is_fine, "{address}");
        }
        let said = config("postgres://loci:hunter2@localhost:port/team").unwrap_err().to_string();
        assert!(
            said.starts_with("The address of the database cannot be used") && !said.contains("hunter2"),
            "{said}"
        );
    }
}
