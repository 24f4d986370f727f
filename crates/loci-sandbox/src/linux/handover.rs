//! What the process outside the namespaces hands to the first one inside: the mounts of the plan as soon as it has them, those
//! on placeholders once these are there, and, when everything outside is ready, what Landlock gives inside.
//!
//! Entries are a letter and a path with a NUL behind it, as paths are bytes; a dot ends mounts, and a plus the rest. A
//! stream that ends before that comes from a process that has failed: nothing runs then.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::pipe::{PipeFlags, pipe_with};

use super::landlock::Grant;
use crate::plan::MountStep;

/// Ends the mounts.
const MOUNTS_END: u8 = b'.';
/// Says that everything outside is ready.
const READY: u8 = b'+';
/// What is kept of the directory that was reduced before it, or mounted on the one that was named.
const KEPT: u8 = b'k';

/// Makes the two ends.
pub(super) fn pair() -> io::Result<(Sender, Receiver)> {
    let (receiver, sender) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((Sender(File::from(sender)), Receiver(BufReader::new(File::from(receiver)))))
}

/// Makes the two ends of what the first process tells of its preparation: nothing, or why it failed.
pub(super) fn outcome_pair() -> io::Result<(OutcomeSender, OutcomeReceiver)> {
    let (receiver, sender) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((OutcomeSender(File::from(sender)), OutcomeReceiver(File::from(receiver))))
}

/// The end of the first process.
pub(super) struct OutcomeSender(File);

impl OutcomeSender {
    /// Says that all is made.
    pub(super) fn made(self) {}

    /// Says why not. Whoever does not read has gone.
    pub(super) fn failed(mut self, error: &io::Error) {
        drop(self.0.write_all(error.to_string().as_bytes()));
    }
}

/// The end of the process outside.
pub(super) struct OutcomeReceiver(File);

impl OutcomeReceiver {
    /// Waits until all is made, or the first process has ended; the error is what it says.
    pub(super) fn check(self) -> io::Result<()> {
        let why = io::read_to_string(self.0)?;
        if why.is_empty() { Ok(()) } else { Err(io::Error::other(why)) }
    }
}

/// The end outside.
pub(super) struct Sender(File);

impl Sender {
    /// Hands mounts over: first those of the plan, then those on placeholders. Whoever reads no more has failed, and how it
    /// ended says the rest.
    pub(super) fn send_mounts<'a>(&mut self, steps: impl Iterator<Item = &'a MountStep>) {
        self.send(steps.flat_map(entries_of), MOUNTS_END);
    }

    /// Says that everything outside is ready, and what Landlock gives of what is mounted inside.
    pub(super) fn send_ready(mut self, grants: &[(PathBuf, Grant)]) {
        self.send(grants.iter().map(|(path, grant)| (letter_of(*grant), path.as_path())), READY);
    }

    fn send<'a>(&mut self, entries: impl Iterator<Item = (u8, &'a Path)>, end: u8) {
        let mut bytes = Vec::new();
        for (letter, path) in entries {
            bytes.push(letter);
            bytes.extend_from_slice(path.as_os_str().as_bytes());
            bytes.push(0);
        }
        bytes.push(end);
        drop(self.0.write_all(&bytes));
    }
}

/// The end inside.
pub(super) struct Receiver(BufReader<File>);

impl Receiver {
    /// Waits for mounts; none where the process outside has failed.
    pub(super) fn mounts(&mut self) -> io::Result<Option<Vec<MountStep>>> {
        self.receive(MOUNTS_END)?.map(steps_of).transpose()
    }

    /// Waits until everything outside is ready; none where the process outside has failed.
    pub(super) fn ready(mut self) -> io::Result<Option<Vec<(PathBuf, Grant)>>> {
        let Some(entries) = self.receive(READY)? else { return Ok(None) };
        entries
            .into_iter()
            .map(|(letter, path)| Ok((path, grant_of(letter)?)))
            .collect::<io::Result<_>>()
            .map(Some)
    }

    fn receive(&mut self, end: u8) -> io::Result<Option<Vec<(u8, PathBuf)>>> {
        let mut entries = Vec::new();
        loop {
            let Some(&letter) = self.0.fill_buf()?.first() else { return Ok(None) };
            self.0.consume(1);
            if letter == end {
                return Ok(Some(entries));
            }
            let mut path = Vec::new();
            self.0.read_until(0, &mut path)?;
            if path.pop() != Some(0) {
                return Ok(None);
            }
            entries.push((letter, PathBuf::from(OsStr::from_bytes(&path))));
        }
    }
}

fn letter_of(grant: Grant) -> u8 {
    match grant {
        Grant::List => b'L',
        Grant::Read => b'R',
        Grant::Device => b'D',
        Grant::Write => b'W',
    }
}

fn grant_of(letter: u8) -> io::Result<Grant> {
    let all = [Grant::List, Grant::Read, Grant::Device, Grant::Write];
    all.into_iter().find(|grant| letter_of(*grant) == letter).ok_or_else(unknown)
}

fn entries_of(step: &MountStep) -> Vec<(u8, &Path)> {
    let (letter, kept): (u8, &[PathBuf]) = match step {
        MountStep::Reduce(_, kept) => (b'r', kept),
        MountStep::HideDir(_) => (b'd', &[]),
        MountStep::HideFile(_) => (b'f', &[]),
        MountStep::Open(_) => (b'o', &[]),
        MountStep::Pin(_) => (b'p', &[]),
        MountStep::Shut(_) => (b's', &[]),
        MountStep::Block(_) => (b'b', &[]),
        MountStep::Stage { from, .. } => (b'g', std::slice::from_ref(from)),
    };
    [(letter, step.path())].into_iter().chain(kept.iter().map(|path| (KEPT, path.as_path()))).collect()
}

fn steps_of(entries: Vec<(u8, PathBuf)>) -> io::Result<Vec<MountStep>> {
    let mut steps: Vec<MountStep> = Vec::with_capacity(entries.len());
    for (letter, path) in entries {
        let step = match letter {
            b'r' => MountStep::Reduce(path, Vec::new()),
            b'd' => MountStep::HideDir(path),
            b'f' => MountStep::HideFile(path),
            b'o' => MountStep::Open(path),
            b'p' => MountStep::Pin(path),
            b's' => MountStep::Shut(path),
            b'b' => MountStep::Block(path),
            b'g' => MountStep::Stage { from: PathBuf::new(), at: path },
            KEPT => {
                match steps.last_mut() {
                    Some(MountStep::Reduce(_, kept)) => kept.push(path),
                    Some(MountStep::Stage { from, .. }) => *from = path,
                    _ => return Err(unknown()),
                }
                continue;
            }
            _ => return Err(unknown()),
        };
        steps.push(step);
    }
    Ok(steps)
}

fn unknown() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the plan that was handed over cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bytes: &[u8]) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(bytes))
    }

    #[test]
    fn mounts_arrive_as_they_were_whatever_bytes_their_paths_have() {
        let steps = vec![
            MountStep::Reduce(path(b"/h\xff"), vec![path(b"/h\xff/a."), path(b"/h\xff/b+")]),
            MountStep::HideDir(path(b"/d")),
            MountStep::HideFile(path(b"/f\n")),
            MountStep::Reduce(path(b"/none"), Vec::new()),
            MountStep::Open(path(b"/o")),
            MountStep::Pin(path(b"/p")),
            MountStep::Shut(path(b"/s")),
            MountStep::Block(path(b"/b")),
        ];
        let placeholders = vec![
            MountStep::Block(path(b"/l+.")),
            MountStep::Shut(path(b"/m\xfe")),
            MountStep::Stage { from: path(b"/g/0"), at: path(b"/g") },
        ];
        let grants = vec![
            (path(b"/"), Grant::List),
            (path(b"/dev"), Grant::Read),
            (path(b"/dev/null"), Grant::Device),
            (path(b"/dev/shm"), Grant::Write),
        ];
        let (mut sender, mut receiver) = pair().unwrap();
        sender.send_mounts(steps.iter());
        sender.send_mounts(placeholders.iter());
        sender.send_ready(&grants);
        assert_eq!(receiver.mounts().unwrap(), Some(steps));
        assert_eq!(receiver.mounts().unwrap(), Some(placeholders));
        assert_eq!(receiver.ready().unwrap(), Some(grants));
    }

    #[test]
    fn stream_that_ends_too_early_or_has_unknown_letters_is_no_plan() {
        for (bytes, expected) in [
            (b"".as_slice(), Some(None)),
            (b"o/a\0", Some(None)),
            (b"o/a", Some(None)),
            (b"o/a.", Some(None)),
            (b".", Some(Some(0))),
            (b"o/a\0.", Some(Some(1))),
            (b"k/a\0.", None),
            (b"x/a\0.", None),
        ] {
            let (mut sender, mut receiver) = pair().unwrap();
            sender.0.write_all(bytes).unwrap();
            drop(sender);
            let received = receiver.mounts().ok().map(|steps| steps.map(|steps| steps.len()));
            assert_eq!(received, expected, "{}", bytes.escape_ascii());
        }
        let (mut sender, mut receiver) = pair().unwrap();
        sender.send_mounts([].iter());
        drop(sender);
        assert_eq!(receiver.mounts().unwrap(), Some(Vec::new()));
        assert_eq!(receiver.ready().unwrap(), None, "who has not said so is not ready");
    }
}
