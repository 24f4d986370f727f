//! Carrying bytes from one connection to another, with back pressure: what cannot be sent on is not read.
//!
//! What a program sends begins with copies through a small buffer. One that goes on is worth a pipe, through which the kernel moves
//! its pages without copying them (`splice`). What a program receives is copied to the end: packets on its loopback are
//! large (`linux/network.rs`), and pages that were spliced into those are cold by the time they are read, which costs more
//! than a copy that stays in the processor's cache (`docs/benchmarks.md`).

use std::io;

use tokio::net::TcpStream;

/// How much is copied at once.
const BUFFER: usize = 64 << 10;

/// Carries everything that a program sends until the end, and then ends the other side too.
pub(super) async fn upload(program: &TcpStream, server: &TcpStream) -> io::Result<()> {
    if copy(program, server, splice::AFTER).await? == splice::AFTER {
        match splice::carry(program, server).await {
            // Nothing has been moved then.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                copy(program, server, u64::MAX).await?;
            }
            done => done?,
        }
    }
    end(server)
}

/// Carries everything that a program receives until the end, and then ends the other side too.
pub(super) async fn download(server: &TcpStream, program: &TcpStream) -> io::Result<()> {
    copy(server, program, u64::MAX).await?;
    end(program)
}

fn end(to: &TcpStream) -> io::Result<()> {
    rustix::net::shutdown(to, rustix::net::Shutdown::Write).or_else(|error| match error {
        // It has gone already.
        rustix::io::Errno::NOTCONN => Ok(()),
        other => Err(other.into()),
    })
}

/// Copies so many bytes, or all until the end; returns how many.
pub(super) async fn copy(from: &TcpStream, to: &TcpStream, most: u64) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER];
    let mut n_copied = 0;
    while n_copied < most {
        let left = usize::try_from(most - n_copied).unwrap_or(BUFFER).min(BUFFER);
        let n = read(from, &mut buffer[..left]).await?;
        if n == 0 {
            break;
        }
        write_all(to, &buffer[..n]).await?;
        n_copied += n as u64;
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

#[cfg(target_os = "linux")]
mod splice {
    use std::io;

    use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
    use tokio::io::Interest;
    use tokio::net::TcpStream;

    /// After how many bytes a pipe is worth its making.
    pub(super) const AFTER: u64 = 256 << 10;
    /// How large the pipe is to be: what every user may have.
    const PIPE_BYTES: usize = 1 << 20;

    /// Carries everything until the end; `Unsupported` where the kernel would not, and nothing was carried.
    pub(super) async fn carry(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
        let unsupported = |_| io::Error::from(io::ErrorKind::Unsupported);
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(unsupported)?;
        // A smaller one does as well.
        let size = fcntl_setpipe_size(&into, PIPE_BYTES).unwrap_or(64 << 10);
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let mut is_first = true;
        loop {
            let take = || Ok(splice(from, None, &into, None, size, flags)?);
            let n = match from.async_io(Interest::READABLE, take).await {
                Err(error) if is_first && error.raw_os_error() == Some(libc::EINVAL) => {
                    return Err(io::ErrorKind::Unsupported.into());
                }
                other => other?,
            };
            if n == 0 {
                return Ok(());
            }
            is_first = false;
            let mut left = n;
            while left > 0 {
                let give = || Ok(splice(&out, None, to, None, left, flags)?);
                left -= to.async_io(Interest::WRITABLE, give).await?;
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod splice {
    /// Everything is copied.
    pub(super) const AFTER: u64 = u64::MAX;

    pub(super) async fn carry(_: &tokio::net::TcpStream, _: &tokio::net::TcpStream) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}
