//! TLS to PostgreSQL: whose certificate is good enough, and what is said in the clear.

use std::sync::{Arc, Mutex};

use loci_team::Database;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::postgres;

/// The first thing a client says that wants TLS.
const WANTS_TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A database of the tests' own, and how to reach it over loopback.
struct Place {
    socket: String,
    name: String,
    dir: String,
    port: String,
}

impl Place {
    async fn new() -> Option<Self> {
        let socket = postgres::new_database().await?;
        let (name, query) = socket.strip_prefix("postgres://loci@/")?.split_once("?host=")?;
        let (dir, port) = query.split_once("&port=")?;
        let (name, dir, port) = (name.to_owned(), dir.to_owned(), port.to_owned());
        Some(Self { socket, name, dir, port })
    }

    /// Returns its address over loopback; the files of certificates are meant by their names.
    fn at(&self, who: &str, query: &str) -> String {
        let query = query.replace("sslrootcert=", &format!("sslrootcert={}/", self.dir));
        format!("postgres://{who}:{}/{}?{query}&hostaddr=127.0.0.1", self.port, self.name)
    }

    /// Connects, and tells whether that is TLS.
    async fn connect(&self, address: &str) -> Result<bool, String> {
        let database = Database::connect(address).await.map_err(|error| error.to_string())?;
        let (client, wire) = tokio_postgres::connect(&self.socket, tokio_postgres::NoTls).await.unwrap();
        let wire = tokio::spawn(wire);
        let sql = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                   WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
                   ORDER BY backend_start DESC LIMIT 1";
        let is_tls = client.query_one(sql, &[]).await.unwrap().get(0);
        drop((client, database));
        wire.await.unwrap().unwrap();
        Ok(is_tls)
    }
}

/// Invariant 6 of `docs/design/team-memory.md`.
#[tokio::test]
async fn a_database_is_spoken_with_over_tls_as_its_address_says() {
    let Some(place) = Place::new().await else { return };
    for (who, query, expected) in [
        ("loci@127.0.0.1", "sslmode=verify-full&sslrootcert=authority.pem", Ok(true)),
        ("loci@db.example.com", "sslmode=verify-full&sslrootcert=authority.pem", Ok(true)),
        (
            "loci@other.example.com",
            "sslmode=verify-full&sslrootcert=authority.pem",
            Err("its certificate is for another name than `other.example.com`"),
        ),
        ("loci@127.0.0.1", "sslmode=verify-full&sslrootcert=stranger.pem", Err("stranger.pem`")),
        ("loci@other.example.com", "sslmode=verify-ca&sslrootcert=authority.pem", Ok(true)),
        (
            "loci@127.0.0.1",
            "sslmode=verify-ca&sslrootcert=stranger.pem",
            Err("its certificate is not signed by `"),
        ),
        (
            "loci@127.0.0.1",
            "sslmode=require&sslrootcert=stranger.pem",
            Err("its certificate is not signed by `"),
        ),
        ("loci@127.0.0.1", "sslmode=require", Ok(true)),
        ("loci@other.example.com", "sslmode=prefer", Ok(true)),
        ("loci@127.0.0.1", "sslmode=prefer", Ok(true)),
        ("loci@127.0.0.1", "", Ok(true)),
        ("loci@127.0.0.1", "sslmode=disable", Ok(false)),
        (
            "loci@127.0.0.1",
            "sslmode=verify-full&sslrootcert=gone.pem",
            Err("gone.pem`, which cannot be read"),
        ),
        ("loci@127.0.0.1", "sslmode=verify-full&sslrootcert=hba.conf", Err("it holds no certificate")),
    ] {
        let found = place.connect(&place.at(who, query)).await;
        match (&found, expected) {
            (Err(said), Err(expected)) => assert!(said.contains(expected), "{who} {query}: {said}"),
            (found, expected) => {
                assert_eq!(found.as_ref().ok(), expected.ok().as_ref(), "{who} {query}: {found:?}");
            }
        }
    }
}

/// The proof of a password is bound to the certificate it is given under.
#[tokio::test]
async fn a_password_is_proven_to_the_owner_of_the_certificate() {
    let Some(place) = Place::new().await else { return };
    let role = "CREATE ROLE keeper LOGIN PASSWORD 'a word'; GRANT CREATE ON SCHEMA public TO keeper";
    postgres::execute(&place.socket, role).await;
    let query = "sslmode=verify-full&sslrootcert=authority.pem&channel_binding=require";
    assert_eq!(place.connect(&place.at("keeper:a%20word@127.0.0.1", query)).await, Ok(true));
    let wrong = place.at("keeper:another%20word@127.0.0.1", query);
    assert!(place.connect(&wrong).await.is_err());
    let clear = place.at("keeper:a%20word@127.0.0.1", "sslmode=disable");
    assert!(place.connect(&clear).await.is_err(), "the database lets them in over TLS alone");
}

/// Listens in the place of a database without TLS, and returns what it was told by the one connection it takes.
async fn received_bytes(address: impl Fn(u16) -> String) -> (String, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 1024];
        loop {
            let n = stream.read(&mut bytes).await.unwrap();
            hears.lock().unwrap().extend_from_slice(&bytes[..n]);
            match bytes[..n] == WANTS_TLS {
                true => stream.write_all(b"N").await.unwrap(),
                false => break,
            }
        }
    });
    let error = Database::connect(&address(port)).await.unwrap_err().to_string();
    task.await.unwrap();
    let heard = heard.lock().unwrap().clone();
    (error, heard)
}

/// Invariant 6 of `docs/design/team-memory.md`.
#[tokio::test]
async fn nothing_is_said_in_the_clear_to_another_machine_unasked() {
    let far = |query: &'static str| {
        move |port| format!("postgres://loci:hunter2@db.example.com:{port}/team?hostaddr=127.0.0.1&{query}")
    };
    for query in ["", "sslmode=prefer", "sslmode=require"] {
        let (error, heard) = received_bytes(far(query)).await;
        assert!(error.contains("because it offers none"), "{query}: {error}");
        assert_eq!(heard, WANTS_TLS, "{query}: it was asked for TLS, and told nothing else");
    }
    let has_role = |heard: &[u8]| heard.windows(4).any(|it| it == b"loci");
    let (_, heard) = received_bytes(far("sslmode=disable")).await;
    assert!(has_role(&heard) && !heard.starts_with(&WANTS_TLS), "{heard:?}");
    let near = |port| format!("postgres://loci:hunter2@127.0.0.1:{port}/team");
    let (_, heard) = received_bytes(near).await;
    assert!(
        has_role(&heard) && heard.starts_with(&WANTS_TLS),
        "on this machine it goes on without: {heard:?}"
    );
}
