//! What the helper tells the process that started it, over a socket pair that both hold as long as they live.
//!
//! A packet is a letter and what belongs to it: `R` the program is about to start, `E` why it will not (text), `H` and
//! `S` a connection to the HTTP and the SOCKS port (a descriptor), `X` a file that was removed after the command (its
//! path), `D` that everything has ended and is cleaned up (the program's code): nobody need wait for the helper's own end. The socket is the lifeline as well: when its other end is gone, everything in the sandbox ends. A helper that waits
//! for its program is told by one packet, `G`, that it can read it, over a pair of its own, which only the process that was
//! started has: when that has died, so that nobody would go on, the packet cannot be sent.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// The packet that says that the program is about to start.
pub(crate) const READY: u8 = b'R';

/// The packet that tells a helper that its program can be read.
const GO: u8 = b'G';

/// The longest packet.
const PACKET: usize = 4096;

/// What is told.
#[derive(Debug)]
pub(crate) enum Message {
    /// All layers hold; the program is about to start. Sent as the letter alone, by what becomes the program.
    Ready,
    /// The program does not run.
    Failed(String),
    /// A connection to one of the proxy's ports.
    Connection(ProxyPort, OwnedFd),
    /// A file was removed that a command must not leave.
    Removed(String),
    /// Everything in the sandbox has ended, with this code of the program's.
    Done(u8),
}

/// The ports of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyPort {
    /// HTTP, with CONNECT.
    Http,
    /// SOCKS5.
    Socks,
}

impl ProxyPort {
    /// Returns its number on the sandbox's own loopback.
    pub fn number(self) -> u16 {
        match self {
            Self::Http => 3128,
            Self::Socks => 1080,
        }
    }
}

/// Makes the two ends: ours and the helper's.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Tells a helper that waits that its program can be read.
pub(crate) fn send_go(socket: BorrowedFd<'_>) -> io::Result<()> {
    rustix::net::send(socket, &[GO], SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits until the program can be read; false when nobody is left to tell.
#[cfg(target_os = "linux")]
pub(crate) fn wait_for_go(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let mut letter = [0; 1];
    loop {
        match rustix::net::recv(socket, &mut letter, RecvFlags::empty()) {
            Ok((_, 0)) => return Ok(false),
            Ok(_) if letter == [GO] => return Ok(true),
            Ok(_) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the helper was told something else"));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

/// Sends a message; one that is too long is cut.
pub(crate) fn send(socket: BorrowedFd<'_>, message: &Message) -> io::Result<()> {
    let (letter, text, fd): (_, &[u8], _) = match message {
        Message::Ready => (READY, b"", None),
        Message::Failed(why) => (b'E', why.as_bytes(), None),
        Message::Connection(ProxyPort::Http, fd) => (b'H', b"", Some(fd.as_fd())),
        Message::Connection(ProxyPort::Socks, fd) => (b'S', b"", Some(fd.as_fd())),
        Message::Removed(path) => (b'X', path.as_bytes(), None),
        Message::Done(code) => (b'D', std::slice::from_ref(code), None),
    };
    let bytes = [&[letter], &text[..text.len().min(PACKET - 1)]].concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message; none at the end.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Message>> {
    let mut bytes = [0; PACKET];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fd = fds.next().and_then(|mut fds| fds.next());
    let packet = bytes.get(..received.bytes).unwrap_or_default();
    let Some((letter, rest)) = packet.split_first() else { return Ok(None) };
    let text = || String::from_utf8_lossy(rest).into_owned();
    let connection = |port| fd.map(|fd| Message::Connection(port, fd));
    let message = match letter {
        &READY => Some(Message::Ready),
        b'E' => Some(Message::Failed(text())),
        b'H' => connection(ProxyPort::Http),
        b'S' => connection(ProxyPort::Socks),
        b'X' => Some(Message::Removed(text())),
        b'D' => rest.first().copied().map(Message::Done),
        _ => None,
    };
    message.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a message of the helper"))
}
