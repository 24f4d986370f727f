//! A program that is to run inside, as it is handed to a helper that waits for one.
//!
//! Everything is bytes, each with a NUL behind it: the policy as JSON, the directory, how many words there are, the words, and
//! what is left are variables, `NAME=value`. A text that ends before that is none, and nothing runs then.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
#[cfg(any(test, target_os = "linux"))]
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::policy::Policy;

/// A program, with all that it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramStart {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment; of two with one name the last counts.
    pub env: Vec<(OsString, OsString)>,
}

impl ProgramStart {
    /// Writes it down, with the policy that is to hold it.
    pub(crate) fn to_bytes(&self, policy: &Policy) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(policy).map_err(io::Error::other)?;
        bytes.push(0);
        push(&mut bytes, &[self.cwd.as_os_str()])?;
        push(&mut bytes, &[OsStr::new(&self.words.len().to_string())])?;
        for word in &self.words {
            push(&mut bytes, &[word])?;
        }
        for (name, value) in &self.env {
            push(&mut bytes, &[name, OsStr::new("="), value])?;
        }
        Ok(bytes)
    }

    /// Reads what was written down.
    #[cfg(any(test, target_os = "linux"))]
    pub(crate) fn from_bytes(bytes: &[u8]) -> io::Result<(Policy, Self)> {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let policy = serde_json::from_slice(bytes.get(..end).unwrap_or_default())
            .map_err(|error| unreadable(&format!("its policy: {error}")))?;
        Ok((policy, Self::without_policy(bytes)?))
    }

    /// Reads what was written down, and leaves the policy to whoever keeps it.
    #[cfg(any(test, target_os = "linux"))]
    pub(crate) fn without_policy(bytes: &[u8]) -> io::Result<Self> {
        let bytes = bytes.strip_suffix(&[0]).ok_or_else(|| unreadable("it is cut off"))?;
        let mut parts = bytes.split(|byte| *byte == 0).skip(1);
        let mut next = || parts.next().ok_or_else(|| unreadable("it is cut off"));
        let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let cwd = PathBuf::from(owned(next()?));
        let n_words = std::str::from_utf8(next()?).ok().and_then(|it| it.parse::<usize>().ok());
        let n_words = n_words.filter(|n| *n > 0).ok_or_else(|| unreadable("it has no words"))?;
        let words = (0..n_words).map(|_| next().map(owned)).collect::<io::Result<_>>()?;
        // A variable without a name is none.
        let split = |entry: &[u8]| {
            let at = entry.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
            Some((owned(entry.get(..at)?), owned(entry.get(at + 1..)?)))
        };
        let env = parts.filter_map(split).collect();
        Ok(Self { words, cwd, env })
    }
}

#[cfg(any(test, target_os = "linux"))]
fn unreadable(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the program cannot be read: {why}"))
}

/// Adds texts as one, and the NUL behind it, which none of them may have.
fn push(bytes: &mut Vec<u8>, texts: &[&OsStr]) -> io::Result<()> {
    if texts.iter().any(|text| text.as_bytes().contains(&0)) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "there is a NUL in the command or its variables",
        ));
    }
    texts.iter().for_each(|text| bytes.extend_from_slice(text.as_bytes()));
    bytes.push(0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Layers, Network};

    fn policy() -> Policy {
        Policy {
            layers: Layers::FULL,
            files: None,
            network: Network::Closed,
            allows_unix_sockets: false,
            fault: None,
        }
    }

    fn text(bytes: &[u8]) -> OsString {
        OsString::from_vec(bytes.to_vec())
    }

    fn start(words: &[&[u8]], env: &[(&[u8], &[u8])]) -> ProgramStart {
        ProgramStart {
            words: words.iter().map(|it| text(it)).collect(),
            cwd: PathBuf::from(text(b"/p\xff \n")),
            env: env.iter().map(|(name, value)| (text(name), text(value))).collect(),
        }
    }

    #[test]
    fn program_arrives_as_it_was_whatever_bytes_it_has() {
        for (words, env) in [
            (&[b"sh".as_slice()][..], &[][..]),
            (&[b"sh", b"", b"-c", b"a=b\n\xfe"], &[(b"A".as_slice(), b"".as_slice()), (b"B", b"=1=2\xff")]),
        ] {
            let start = start(words, env);
            let bytes = start.to_bytes(&policy()).unwrap();
            assert_eq!(ProgramStart::without_policy(&bytes).unwrap(), start);
            assert_eq!(ProgramStart::from_bytes(&bytes).unwrap(), (policy(), start));
        }
        let unnamed = start(&[b"sh"], &[(b"", b"1"), (b"A", b"2")]).to_bytes(&policy()).unwrap();
        assert_eq!(ProgramStart::from_bytes(&unnamed).unwrap().1.env, [(text(b"A"), text(b"2"))]);
    }

    #[test]
    fn program_that_is_cut_off_or_has_a_nul_is_none() {
        let whole = start(&[b"sh", b"-c", b"true"], &[]).to_bytes(&policy()).unwrap();
        for n_bytes in 0..whole.len() {
            assert!(ProgramStart::from_bytes(&whole[..n_bytes]).is_err(), "{n_bytes}");
        }
        assert!(start(&[], &[]).to_bytes(&policy()).is_ok_and(|it| ProgramStart::from_bytes(&it).is_err()));
        assert!(start(&[b"a\0b"], &[]).to_bytes(&policy()).is_err());
        assert!(start(&[b"a"], &[(b"A", b"\0")]).to_bytes(&policy()).is_err());
    }
}
