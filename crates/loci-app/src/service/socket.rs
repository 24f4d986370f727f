//! A session over a Unix socket: the same requests, answers and events as in its own process, as lines of JSON
//! ([`loci_protocol::frame`]).
//!
//! What must stay true:
//!
//! 1. Only the user who owns the session talks to it: the directory is theirs alone, the socket has mode 0600, and the
//!    kernel is asked who is at the other end, on both sides.
//! 2. A client that does not read holds up nobody but itself; it is told what it has missed.
//! 3. A connection that breaks loses nothing: whoever comes back says what it has heard, and hears the rest.
//! 4. A line that cannot be read is answered with an error and costs nothing but itself; one that is too long ends the
//!    connection.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use loci_protocol::frame::{ClientFrame, ClientHello, PROTOCOL, ServerFrame, ServerHello, Since};
use loci_protocol::{ErrorKind, RequestError};
use serde::Serialize;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::client::{ClientName, EventLog, EventWriter, Reply, ToService};
use super::{Door, EventStream, EventsFrom, Heard, SessionClient, SessionService};

/// The longest line: a prompt with pictures fits.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The longest first line.
const MOST_HELLO: usize = 4 * 1024;
/// How long the other side may take to say who it is.
const HELLO_PATIENCE: Duration = Duration::from_secs(5);
/// The longest path that every system binds a socket at.
const MOST_PATH: usize = 100;

/// Why there is no way to a session, or for its clients.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The path is too long to bind a socket at.
    #[error("The path `{}` is longer than the {MOST_PATH} bytes that a socket may have", .0.display())]
    PathTooLong(PathBuf),
    /// The directory could be entered by others.
    #[error("The directory `{}` is not ours alone, so no socket is made in it", .0.display())]
    SharedDirectory(PathBuf),
    /// A session listens there already.
    #[error("A session listens at `{}` already", .0.display())]
    InUse(PathBuf),
    /// The socket cannot be made.
    #[error("No socket can be made at `{}`", path.display())]
    Bind {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody answers there.
    #[error("No session answers at `{}`", path.display())]
    Connect {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another user is at the other end.
    #[error("The socket `{}` belongs to another user", .0.display())]
    ForeignOwner(PathBuf),
    /// The other side speaks another protocol, or none.
    #[error("The session at `{}` was not understood: {said}", path.display())]
    Handshake {
        /// Where.
        path: PathBuf,
        /// What it said.
        said: String,
    },
}

/// A session that listens at a socket; dropping it ends the connections and removes the socket.
#[derive(Debug)]
pub struct SocketServer {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl SocketServer {
    /// Has a session listen, within the runtime at hand. The directory is made, for us alone, where it is missing.
    pub fn bind(service: &SessionService, path: &Path) -> Result<Self, SocketError> {
        if path.as_os_str().len() > MOST_PATH {
            return Err(SocketError::PathTooLong(path.to_path_buf()));
        }
        let failed = |source| SocketError::Bind { path: path.to_path_buf(), source };
        own_directory(path.parent().unwrap_or(Path::new(".")))?;
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(SocketError::InUse(path.to_path_buf()));
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let task = tokio::spawn(accept(listener, service.door.clone()));
        Ok(Self { path: path.to_path_buf(), task })
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        self.task.abort();
        // Somebody may have removed it; nobody listens there any more.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Makes sure that a directory can be entered by nobody else.
fn own_directory(directory: &Path) -> Result<(), SocketError> {
    let failed = |source| SocketError::Bind { path: directory.to_path_buf(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let found = std::fs::symlink_metadata(directory).map_err(failed)?;
    let is_ours = found.is_dir() && found.uid() == own_uid() && found.mode() & 0o077 == 0;
    if is_ours { Ok(()) } else { Err(SocketError::SharedDirectory(directory.to_path_buf())) }
}

fn own_uid() -> u32 {
    loci_stdx::effective_uid()
}

async fn accept(listener: UnixListener, door: Door) {
    // Connections end with the listener.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if is_ours(&stream) => {
                    connections.spawn(serve(stream, door.clone()));
                }
                Ok(_) => tracing::debug!(target: "loci::engine", "a foreign user was turned away from the socket"),
                // No descriptor is free, most likely: one may be soon.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

fn is_ours(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own_uid())
}

/// Serves one connection to its end.
async fn serve(stream: UnixStream, door: Door) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let Some(hello) = greeted(&mut reader, &mut writer).await else { return };
    let own = ServerHello {
        proto: PROTOCOL,
        session: door.session.clone(),
        epoch: door.log.epoch().to_owned(),
        seq: door.log.last(),
        server: concat!("loci/", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    // Read before anything else is told, so that the client's place and the first event join.
    let from = match hello.since {
        Some(since) => EventsFrom::Behind(since),
        None => EventsFrom::Behind(Since { epoch: own.epoch.clone(), seq: own.seq }),
    };
    let client = door.client(&hello.client, hello.is_viewer);
    let events = client.events(from);
    if write_line(&mut writer, &own).await.is_ok() {
        // A connection that breaks is the client's affair: it comes back.
        drop(exchange(&client, events, reader, writer).await);
    }
    client.leave();
}

/// Reads who comes; refuses who speaks another protocol.
async fn greeted(reader: &mut BufReader<OwnedReadHalf>, writer: &mut OwnedWriteHalf) -> Option<ClientHello> {
    let mut line = Vec::new();
    let read = tokio::time::timeout(HELLO_PATIENCE, read_line(reader, &mut line, MOST_HELLO)).await;
    let refusal = match read {
        Ok(Ok(true)) => match serde_json::from_slice::<ClientHello>(&line) {
            Ok(hello) if hello.proto == PROTOCOL => return Some(hello),
            Ok(hello) => format!("Protocol {} is not spoken here, but {PROTOCOL}", hello.proto),
            Err(error) => format!("The first line is not a client's: {error}"),
        },
        Ok(Ok(false) | Err(_)) | Err(_) => return None,
    };
    let error = RequestError::new(ErrorKind::Malformed, refusal);
    // Whoever is gone needs no reason.
    drop(write_line(writer, &ServerFrame::Error { id: None, error }).await);
    None
}

/// Carries requests in, answers and events out, until one side ends.
async fn exchange(
    client: &SessionClient,
    mut events: EventStream,
    mut reader: BufReader<OwnedReadHalf>,
    mut writer: OwnedWriteHalf,
) -> io::Result<()> {
    let mut replies: FuturesUnordered<BoxFuture<'static, (u64, Reply)>> = FuturesUnordered::new();
    let mut line = Vec::new();
    let mut is_over = false;
    loop {
        tokio::select! {
            read = read_line(&mut reader, &mut line, MOST_BYTES) => {
                if !read? {
                    return Ok(());
                }
                match serde_json::from_slice::<ClientFrame>(&line) {
                    Ok(ClientFrame { id, request }) => {
                        let reply = client.send(request);
                        replies.push(Box::pin(async move { (id, reply.await) }));
                    }
                    Err(error) => {
                        let error = RequestError::new(ErrorKind::Malformed, format!("The line is no request: {error}"));
                        write_line(&mut writer, &ServerFrame::Error { id: None, error }).await?;
                    }
                }
                line.clear();
            }
            Some((id, reply)) = replies.next() => {
                let frame = match reply {
                    Ok(answer) => ServerFrame::Answer { id, answer },
                    Err(error) => ServerFrame::Error { id: Some(id), error },
                };
                write_line(&mut writer, &frame).await?;
            }
            heard = events.next(), if !is_over => match heard {
                Some(Heard::Event(sequenced)) => write_line(&mut writer, &ServerFrame::Event(sequenced)).await?,
                Some(Heard::Missed { seq }) => write_line(&mut writer, &ServerFrame::Lagged { seq }).await?,
                None => is_over = true,
            },
            // What was asked last is answered before the end.
            else => return Ok(()),
        }
        if is_over && replies.is_empty() {
            return Ok(());
        }
    }
}

/// Writes a value as one line.
async fn write_line(writer: &mut OwnedWriteHalf, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
    line.push(b'\n');
    writer.write_all(&line).await
}

/// Reads a line into `line`, without its end; false when there is none any more. What was read stays in `line` when this is
/// dropped before it is done, and the next call goes on with it.
async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    most: usize,
) -> io::Result<bool> {
    loop {
        let bytes = reader.fill_buf().await?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let end = memchr::memchr(b'\n', bytes);
        let n_taken = end.unwrap_or(bytes.len());
        if line.len() + n_taken > most {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
        }
        line.extend_from_slice(&bytes[..n_taken]);
        reader.consume(n_taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Connects to the session that listens at a socket. `since` is what an earlier connection heard last.
pub async fn connect(path: &Path, hello: ClientHello) -> Result<SessionClient, SocketError> {
    let failed = |source| SocketError::Connect { path: path.to_path_buf(), source };
    let stream = UnixStream::connect(path).await.map_err(failed)?;
    if !is_ours(&stream) {
        return Err(SocketError::ForeignOwner(path.to_path_buf()));
    }
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    write_line(&mut writer, &hello).await.map_err(failed)?;
    let mut line = Vec::new();
    let read = tokio::time::timeout(HELLO_PATIENCE, read_line(&mut reader, &mut line, MOST_BYTES)).await;
    let unheard = |said: String| SocketError::Handshake { path: path.to_path_buf(), said };
    match read {
        Ok(Ok(true)) => {}
        Ok(Ok(false)) => return Err(unheard("it hung up".to_owned())),
        Ok(Err(error)) => return Err(failed(error)),
        Err(_) => return Err(unheard("it said nothing".to_owned())),
    }
    let server: ServerHello = match serde_json::from_slice(&line) {
        Ok(server) => server,
        Err(_) => return Err(unheard(String::from_utf8_lossy(&line).into_owned())),
    };
    let log = Arc::new(EventLog::new(server.epoch.clone()));
    let place = match &hello.since {
        Some(since) if since.epoch == server.epoch => since.seq,
        Some(_) => 0,
        None => server.seq,
    };
    log.skip_to(place);
    let (events, over) = EventWriter::new(Arc::clone(&log));
    let (requests, receiver) = unbounded_channel();
    let waiting = Arc::<Waiting>::default();
    tokio::spawn(receive(reader, events, Arc::clone(&waiting)));
    tokio::spawn(transmit(writer, receiver, waiting));
    let name = ClientName { number: 0, name: hello.client, is_viewer: hello.is_viewer };
    Ok(SessionClient::new(name, server.session, requests, log, over))
}

/// Who waits for answers of the other side; none, once it is gone.
#[derive(Debug)]
struct Waiting(Mutex<Option<HashMap<u64, oneshot::Sender<Reply>>>>);

impl Default for Waiting {
    fn default() -> Self {
        Self(Mutex::new(Some(HashMap::new())))
    }
}

impl Waiting {
    fn insert(&self, id: u64, reply: oneshot::Sender<Reply>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.as_mut() {
            Some(waiting) => drop(waiting.insert(id, reply)),
            None => drop(reply.send(Err(RequestError::disconnected()))),
        }
    }

    fn answer(&self, id: u64, reply: Reply) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiter) = waiting.as_mut().and_then(|waiting| waiting.remove(&id)) {
            drop(waiter.send(reply));
        }
    }

    /// Tells all of them, and whoever comes later, that nobody will answer.
    fn hang_up(&self) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        for waiter in waiting.into_iter().flatten().map(|(_, waiter)| waiter) {
            drop(waiter.send(Err(RequestError::disconnected())));
        }
    }
}

/// Takes what the session says until it says nothing more.
async fn receive(mut reader: BufReader<OwnedReadHalf>, events: EventWriter, waiting: Arc<Waiting>) {
    let mut line = Vec::new();
    while let Ok(true) = read_line(&mut reader, &mut line, usize::MAX).await {
        match serde_json::from_slice::<ServerFrame>(&line) {
            Ok(ServerFrame::Answer { id, answer }) => waiting.answer(id, Ok(answer)),
            Ok(ServerFrame::Error { id: Some(id), error }) => waiting.answer(id, Err(error)),
            Ok(ServerFrame::Error { id: None, error }) => {
                tracing::debug!(target: "loci::engine", "the session did not understand a line: {error}");
            }
            Ok(ServerFrame::Event(sequenced)) => events.0.insert(sequenced),
            Ok(ServerFrame::Lagged { seq }) => events.0.skip_to(seq),
            Err(error) => {
                tracing::debug!(target: "loci::engine", "a line of the session was not understood: {error}");
            }
        }
        line.clear();
    }
    waiting.hang_up();
}

/// Sends what is asked until nobody asks any more.
async fn transmit(
    mut writer: OwnedWriteHalf,
    mut requests: UnboundedReceiver<ToService>,
    waiting: Arc<Waiting>,
) {
    let mut id = 0;
    while let Some(ToService::Asked(asked)) = requests.recv().await {
        id += 1;
        waiting.insert(id, asked.reply);
        let frame = ClientFrame { id, request: asked.request };
        if write_line(&mut writer, &frame).await.is_err() {
            return waiting.hang_up();
        }
    }
}
