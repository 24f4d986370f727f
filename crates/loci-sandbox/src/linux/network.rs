//! The network of a command: a namespace with nothing but a loopback, and the proxy's ports on it.
//!
//! To make such a namespace takes the kernel as long as all mounts together, so a thread of the first process makes it
//! meanwhile. The thread has ended, and the process is in the namespace, before anything is restricted or started: what
//! restricts a process restricts its thread alone.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::sys;
use crate::control::ProxyPort;
use crate::policy::Network;

/// Room for what the thread does.
const STACK: usize = 64 << 10;

/// A network that is being made.
pub(super) struct NewNetwork(JoinHandle<io::Result<MadeNetwork>>);

struct MadeNetwork {
    namespace: OwnedFd,
    ports: Vec<(ProxyPort, TcpListener)>,
}

impl NewNetwork {
    /// Begins to make one.
    pub(super) fn begin(network: Network) -> io::Result<Self> {
        let ports = match network {
            Network::Proxy => vec![ProxyPort::Http, ProxyPort::Socks],
            Network::Closed => Vec::new(),
        };
        let thread = std::thread::Builder::new().stack_size(STACK);
        Ok(Self(thread.spawn(move || make(&ports))?))
    }

    /// Waits for it and enters it; returns the proxy's ports.
    pub(super) fn enter(self) -> io::Result<Vec<(ProxyPort, TcpListener)>> {
        let ended = |_| io::Error::other("what makes the network has ended");
        let MadeNetwork { namespace, ports } = self.0.join().map_err(ended)??;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(ports)
    }
}

/// Makes the namespace around this thread, brings its loopback up and opens the ports.
fn make(ports: &[ProxyPort]) -> io::Result<MadeNetwork> {
    sys::unshare(UnshareFlags::NEWNET)?;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sys::bring_loopback_up(socket.as_fd())?;
    let listen = |port: &ProxyPort| Ok((*port, TcpListener::bind((Ipv4Addr::LOCALHOST, port.number()))?));
    let ports = ports.iter().map(listen).collect::<io::Result<_>>()?;
    Ok(MadeNetwork { namespace: sys::network_of(socket.as_fd())?, ports })
}
