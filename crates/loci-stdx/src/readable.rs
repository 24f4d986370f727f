//! Waiting for input for a while, and no longer.

use std::io;
use std::time::Duration;

/// Waits until there is something to read, or the end of it; false when neither came in time.
#[cfg(unix)]
pub fn wait_readable(input: &impl std::os::fd::AsFd, patience: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let deadline = std::time::Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&timeout)) {
            Ok(n_ready) => return Ok(n_ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Says that there is something to read: elsewhere nobody can tell without reading.
#[cfg(not(unix))]
pub fn wait_readable<T>(_input: &T, _patience: Duration) -> io::Result<bool> {
    Ok(true)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn silent_pipe_is_told_from_one_with_input_and_from_an_ended_one() {
        let (reader, mut writer) = io::pipe().unwrap();
        assert!(!wait_readable(&reader, Duration::ZERO).unwrap());
        writer.write_all(b"x").unwrap();
        assert!(wait_readable(&reader, Duration::from_secs(60)).unwrap());
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        assert!(wait_readable(&reader, Duration::from_secs(60)).unwrap(), "its end can be read");
        assert!(wait_readable(&std::fs::File::open("/dev/null").unwrap(), Duration::from_secs(60)).unwrap());
    }
}
