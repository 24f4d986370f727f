//! A server in a process of its own, a relay that cuts connections, and people with memories.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use loci_http::Secret;
use loci_stdx::{Env, SystemClock};
use loci_storage::layout::ConfigHome;
use loci_storage::memory::MemoryJournal;
use loci_team::{Database, HttpRemote, Limits, RepositoryName, Server, check_address};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

const DATABASE: &str = "LOCI_TEAM_TEST_DATABASE";

/// The server's process; killed without warning when dropped.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl ServerProcess {
    /// Starts this very test binary anew, as a server.
    pub(crate) fn start(database: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "support::a_process_that_is_a_server", "--nocapture", "--test-threads=1"])
            .env(DATABASE, database)
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_address = |line: String| line.split_once("listening on ").map(|(_, it)| it.parse().unwrap());
        let address =
            lines.map(Result::unwrap).find_map(is_address).expect("the server says where it listens");
        Self { child, address }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Serves for as long as it lives when it is started as a server; as a test it has nothing to do.
#[tokio::test]
async fn a_process_that_is_a_server() {
    let Ok(address) = std::env::var(DATABASE) else { return };
    let database = open(&address).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("\nlistening on {}", listener.local_addr().unwrap());
    let server = Server::new(database, Arc::new(SystemClock::new()), Limits::default());
    server.serve(listener, std::future::pending()).await.unwrap();
}

/// What a relay does to one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Closes it before the server hears of it.
    Request,
    /// Lets the server answer, and closes it with half of the answer.
    Answer,
}

/// Stands between people and the server, always at the same address.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    pub(crate) n_connections: Arc<AtomicUsize>,
    cut: Arc<Mutex<Option<(usize, Cut)>>>,
    task: JoinHandle<()>,
}

impl Relay {
    pub(crate) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (server, cut) = (Arc::new(Mutex::new(server)), Arc::new(Mutex::new(None)));
        let n_connections = Arc::new(AtomicUsize::new(0));
        let shared = (server.clone(), cut.clone(), n_connections.clone());
        let task = tokio::spawn(async move {
            let (server, cut, n_connections) = shared;
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let n = n_connections.fetch_add(1, Ordering::SeqCst);
                let to = *server.lock().unwrap();
                let cut = cut.lock().unwrap().filter(|(at, _)| *at == n).map(|(_, cut)| cut);
                // A connection that fails is what this is for.
                tokio::spawn(async move { drop(relay(client, to, cut).await) });
            }
        });
        Self { address, server, n_connections, cut, task }
    }

    /// Has the connection with this number from now on cut.
    pub(crate) fn cut_after(&self, n: usize, cut: Cut) {
        *self.cut.lock().unwrap() = Some((self.n_connections.load(Ordering::SeqCst) + n, cut));
    }

    pub(crate) fn lead_to(&self, server: SocketAddr) {
        *self.server.lock().unwrap() = server;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn relay(mut client: TcpStream, to: SocketAddr, cut: Option<Cut>) -> std::io::Result<()> {
    if cut == Some(Cut::Request) {
        return Ok(());
    }
    let mut server = TcpStream::connect(to).await?;
    if cut.is_none() {
        tokio::io::copy_bidirectional(&mut client, &mut server).await?;
        return Ok(());
    }
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let mut answer = vec![0; 64 * 1024];
    tokio::select! {
        copied = tokio::io::copy(&mut from_client, &mut to_server) => drop(copied?),
        n = from_server.read(&mut answer) => to_client.write_all(&answer[..n? / 2]).await?,
    }
    Ok(())
}

/// Opens a database by its address or file.
pub(crate) async fn open(address: &str) -> Database {
    match Database::is_postgres(address) {
        true => Database::connect(address).await.unwrap(),
        false => Database::open_file(Path::new(address)).await.unwrap(),
    }
}

/// A database, and the members that were added to it.
pub(crate) struct Office {
    pub(crate) root: tempfile::TempDir,
    /// What the server is told to use.
    pub(crate) address: String,
    /// Opened beside the server.
    database: OnceCell<Database>,
}

impl Office {
    /// One with a SQLite file.
    pub(crate) fn with_file() -> Self {
        let root = tempfile::tempdir().unwrap();
        let address = root.path().join("team.db").display().to_string();
        Self { address, root, database: OnceCell::new() }
    }

    /// One with a database of PostgreSQL, if there is PostgreSQL.
    pub(crate) async fn with_postgres() -> Option<Self> {
        let address = crate::postgres::new_database().await?;
        Some(Self { root: tempfile::tempdir().unwrap(), address, database: OnceCell::new() })
    }

    /// One of each kind.
    pub(crate) async fn each() -> Vec<Self> {
        std::iter::once(Self::with_file()).chain(Self::with_postgres().await).collect()
    }

    pub(crate) async fn database(&self) -> &Database {
        self.database.get_or_init(|| open(&self.address)).await
    }

    /// Adds a member; their token is made of their name.
    pub(crate) async fn person(&self, name: &str, repository: &str, address: SocketAddr) -> Person {
        let repository = RepositoryName::parse(repository).unwrap();
        let token = token(name, repository.as_str());
        self.database().await.add_member(name, &repository, &token, "now").await.unwrap();
        Person::new(&token, repository.as_str(), address)
    }
}

pub(crate) fn token(name: &str, repository: &str) -> String {
    format!("token-of-{name}-for-{repository}")
}

/// Somebody with memories.
pub(crate) struct Person {
    root: tempfile::TempDir,
    pub(crate) env: Env,
    pub(crate) journal: MemoryJournal,
    pub(crate) remote: HttpRemote,
}

impl Person {
    pub(crate) fn new(token: &str, repository: &str, address: SocketAddr) -> Self {
        let root = tempfile::tempdir().unwrap();
        let env = Env::for_test(root.path(), root.path());
        let journal = MemoryJournal::new(&ConfigHome::from_env(&env), &root.path().join("m"));
        let address = check_address(&format!("http://{address}")).unwrap();
        let repository = RepositoryName::parse(repository).unwrap();
        let remote = HttpRemote::new(&env, &address, &repository, Secret::new(token)).unwrap();
        Self { root, env, journal, remote }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.root.path().join("m/team").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.root.path().join("m/team").join(name)).ok()
    }

    pub(crate) async fn push(&self) -> Result<Vec<String>, String> {
        render_lines(loci_team::push(&self.journal, &self.remote).await)
    }

    pub(crate) async fn pull(&self) -> Result<Vec<String>, String> {
        render_lines(loci_team::pull(&self.env, &self.journal, &self.remote).await)
    }

    pub(crate) async fn status(&self) -> Result<Vec<String>, String> {
        render_lines(loci_team::status(&self.journal, &self.remote).await)
    }
}

fn render_lines(lines: Result<Vec<loci_team::Line>, loci_team::SyncError>) -> Result<Vec<String>, String> {
    let lines = lines.map_err(|error| error.to_string())?;
    Ok(lines.into_iter().map(|line| format!("{} {:?}", line.name, line.outcome)).collect())
}
