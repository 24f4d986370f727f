//! The network of a command: a namespace with nothing but a loopback, and the proxy's ports on it.
//!
//! To make such a namespace takes the kernel as long as all mounts together, so a thread of the first process makes it
//! meanwhile. The thread has ended, and the process is in the namespace, before anything is restricted or started: what
//! restricts a process restricts its thread alone.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::sys;
use crate::control::ProxyPort;
use crate::policy::Network;

/// Room for what the thread does.
const STACK: usize = 64 << 10;

/// How large packets are on the loopback, headers included: what the kernel has it take at most (`GSO_MAX_SIZE`).
const PACKET_BYTES: u32 = 524_280;

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
    if !ports.is_empty() {
        // One with smaller packets does as well: kernels before 6.3 know no others.
        enlarge_packets().ok();
    }
    let listen = |port: &ProxyPort| Ok((*port, TcpListener::bind((Ipv4Addr::LOCALHOST, port.number()))?));
    let ports = ports.iter().map(listen).collect::<io::Result<_>>()?;
    Ok(MadeNetwork { namespace: sys::network_of(socket.as_fd())?, ports })
}

/// Has IPv4 of the loopback use large packets. What a program sends to the proxy costs it half the time then, which is what
/// the proxy takes of it where both share a processor.
fn enlarge_packets() -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &packet_size_request(PACKET_BYTES), SendFlags::empty())?;
    Ok(())
}

/// Returns the request of `rtnetlink(7)` that sets the size: a header, the first link, which is the loopback, and one attribute.
fn packet_size_request(size: u32) -> Vec<u8> {
    const LENGTH: u32 = 16 + 16 + 8;
    const FIRST_LINK: u32 = 1;
    // `IFLA_GSO_IPV4_MAX_SIZE`, which libc has no name for.
    const IPV4_PACKET_SIZE: u32 = 63;
    let halves = |low: u32, high: u32| (low | high << 16).to_ne_bytes();
    let header = [
        LENGTH.to_ne_bytes(),
        halves(u32::from(libc::RTM_NEWLINK), u32::try_from(libc::NLM_F_REQUEST).unwrap_or_default()),
        [0; 4],
        [0; 4],
    ];
    let link = [[0; 4], FIRST_LINK.to_ne_bytes(), [0; 4], [0; 4]];
    let attribute = [halves(8, IPV4_PACKET_SIZE), size.to_ne_bytes()];
    [&header[..], &link, &attribute].concat().concat()
}
