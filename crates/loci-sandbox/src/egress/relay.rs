//! Carrying bytes from one connection to another, with back pressure: what cannot be sent on is not read.
//!
//! They are copied, through a buffer that grows with what one read brings: packets on a sandbox's loopback are large
//! (`linux/network.rs`), and the more is taken at once the fewer times the other two have to be woken. Moving pages without
//! copying them (`splice`) costs more: they are cold by the time they are read (`docs/benchmarks.md`).

use std::io;

use tokio::net::TcpStream;

/// How large the buffer is at first, and how large it gets where it is filled each time: by what is as fast as the loopback.
const SMALLEST_BUFFER: usize = 64 << 10;
const LARGEST_BUFFER: usize = 2 << 20;

/// Carries everything until the end, and then ends the other side too.
pub(super) async fn carry(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    copy(from, to, u64::MAX).await?;
    rustix::net::shutdown(to, rustix::net::Shutdown::Write).or_else(|error| match error {
        // It has gone already.
        rustix::io::Errno::NOTCONN => Ok(()),
        other => Err(other.into()),
    })
}

/// Copies so many bytes, or all until the end; returns how many.
pub(super) async fn copy(from: &TcpStream, to: &TcpStream, most: u64) -> io::Result<u64> {
    let mut buffer = vec![0; SMALLEST_BUFFER];
    let mut n_copied = 0;
    while n_copied < most {
        let left = usize::try_from(most - n_copied).unwrap_or(usize::MAX).min(buffer.len());
        let n = read(from, &mut buffer[..left]).await?;
        if n == 0 {
            break;
        }
        write_all(to, &buffer[..n]).await?;
        n_copied += n as u64;
        if n == buffer.len() && n < LARGEST_BUFFER {
            buffer.resize(n * 2, 0);
        }
    }
    Ok(n_copied)
}

/// Reads what is there; nothing at the end.
pub(super) async fn read(from: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        from.readable().await?;
        match from.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
    }
}

/// Writes all of it.
pub(super) async fn write_all(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
