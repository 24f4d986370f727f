//! Measures the server of a team's memories: fifty members at once, each on a connection of their own.
//!
//! `cargo xtask bench team` runs it, with the seconds that each kind of work is to last. Each line of output is a database,
//! a kind of work, requests a second, and the time within which half and 99 of 100 requests are answered, in
//! microseconds. The server has a runtime of its own; members are played in the same process.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measurement talks, and stops when it cannot go on"
)]

#[path = "../tests/it/postgres.rs"]
mod postgres;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use loci_context::ContentHash;
use loci_stdx::SystemClock;
use loci_team::{Database, Limits, RepositoryName, Server};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

const MEMBERS: usize = 50;
const ENTRIES: usize = 200;
const ENTRY_BYTES: usize = 2_000;
/// A run is never longer than this, whatever was asked for.
const MOST_SECONDS: u64 = 60;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|it| it.parse().ok()).unwrap_or(5).clamp(1, MOST_SECONDS);
    let dir = tempfile::tempdir().unwrap();
    let members = runtime(1);
    let file = dir.path().join("team.db").display().to_string();
    measure(&members, "sqlite", &file, Duration::from_secs(seconds));
    if let Some(address) = members.block_on(postgres::new_database()) {
        measure(&members, "postgres", &address, Duration::from_secs(seconds));
    }
}

fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

fn measure(members: &Runtime, name: &str, database: &str, time: Duration) {
    let house = runtime(2);
    let address = house.block_on(serve(database));
    members.block_on(async {
        let mut clients = join_all((0..MEMBERS).map(|n| MemberClient::connect(address, n))).await;
        for n in 0..ENTRIES {
            clients[n % MEMBERS].create(&format!("e{n}.md"), &text(n, 0)).await;
        }
        for work in [Work::Read, Work::List, Work::Write, Work::Mixed] {
            report(name, work, time, &mut clients).await;
        }
    });
    house.shutdown_background();
}

/// Opens the database, adds the members and serves for as long as the runtime lives.
async fn serve(address: &str) -> SocketAddr {
    let database = match Database::is_postgres(address) {
        true => Database::connect(address).await.unwrap(),
        false => Database::open_file(Path::new(address)).await.unwrap(),
    };
    let repository = RepositoryName::parse("bench").unwrap();
    for n in 0..MEMBERS {
        database.add_member(&format!("m{n}"), &repository, &token(n), "now").await.unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits { requests_per_minute: u32::MAX };
    let server = Server::new(database, Arc::new(SystemClock::new()), limits);
    tokio::spawn(server.serve(listener, std::future::pending()));
    address
}

fn token(n: usize) -> String {
    format!("token-of-member-{n}")
}

fn text(n: usize, version: usize) -> String {
    let line = format!("Entry {n}, version {version}: what was decided, why, and how to apply it.\n");
    line.repeat(ENTRY_BYTES / line.len())
}

/// What members do.
#[derive(Debug, Clone, Copy)]
enum Work {
    /// Fetch an entry.
    Read,
    /// Fetch the list of all entries.
    List,
    /// Replace an entry of their own.
    Write,
    /// Four times the first, then the third.
    Mixed,
}

async fn report(database: &str, work: Work, time: Duration, clients: &mut [MemberClient]) {
    let began = Instant::now();
    let mut taken =
        join_all(clients.iter_mut().map(|client| client.keep_at(work, began + time))).await.concat();
    let rate = taken.len() as f64 / began.elapsed().as_secs_f64();
    taken.sort_unstable();
    let within = |percent: usize| taken[(taken.len() * percent / 100).min(taken.len() - 1)].as_micros();
    println!("{database} {} {rate:.0} {} {}", format!("{work:?}").to_lowercase(), within(50), within(99));
}

/// A member and their connection.
struct MemberClient {
    stream: BufReader<TcpStream>,
    member: usize,
    n_asked: usize,
    n_written: usize,
}

impl MemberClient {
    async fn connect(address: SocketAddr, member: usize) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), member, n_asked: 0, n_written: 0 }
    }

    /// Does work until a moment; returns how long each request took.
    async fn keep_at(&mut self, work: Work, until: Instant) -> Vec<Duration> {
        let mut taken = Vec::new();
        while Instant::now() < until {
            let began = Instant::now();
            match work {
                Work::Read => self.read().await,
                Work::List => self.ask("GET", "", "", "").await,
                Work::Write => self.write().await,
                Work::Mixed if taken.len() % 5 < 4 => self.read().await,
                Work::Mixed => self.write().await,
            }
            taken.push(began.elapsed());
        }
        taken
    }

    async fn read(&mut self) {
        let name = format!("/e{}.md", (self.member * 31 + self.n_asked * 7) % ENTRIES);
        self.ask("GET", &name, "", "").await;
    }

    async fn create(&mut self, name: &str, text: &str) {
        self.ask("PUT", &format!("/{name}"), "if-none-match: *\r\n", text).await;
    }

    /// The first so many entries belong to one member each.
    async fn write(&mut self) {
        let before = ContentHash::of(&text(self.member, self.n_written));
        self.n_written += 1;
        let name = format!("/e{}.md", self.member);
        let now = text(self.member, self.n_written);
        self.ask("PUT", &name, &format!("if-match: \"{before}\"\r\n"), &now).await;
    }

    /// Sends a request and reads its answer, which must be a good one.
    async fn ask(&mut self, method: &str, name: &str, header: &str, body: &str) {
        self.n_asked += 1;
        let request = format!(
            "{method} /v1/repositories/bench/entries{name} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\
             content-length: {}\r\n{header}\r\n{body}",
            token(self.member),
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await.unwrap();
        let mut n_bytes = 0;
        let mut line = String::new();
        let mut status = String::new();
        while self.stream.read_line(&mut line).await.unwrap() > 2 {
            if status.is_empty() {
                status.clone_from(&line);
            }
            if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                n_bytes = n.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut answer = vec![0; n_bytes];
        self.stream.read_exact(&mut answer).await.unwrap();
        if !status.contains(" 200 ") && !status.contains(" 201 ") {
            panic!("{method} {name}: {status}{}", String::from_utf8_lossy(&answer));
        }
    }
}
