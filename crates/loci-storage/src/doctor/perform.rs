//! Performing cures: each is a few steps, none of which loses anything, and all of which may be done again.

use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_core::ids::SessionId;
use loci_stdx::{Env, create_private, create_private_dir_all, rfc3339_millis};

use super::aside::{Aside, OWN_TEMPORARY};
use super::cure::Cure;
use super::half_done::whole_lines;
use super::hands::Hands;
use super::transcript::{Whose, read};
use crate::history::tree_history::BlobStore;
use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::lease::Lease;
use crate::sessions::remove::{audit_record, move_path, process_on};

/// One repair.
pub(super) struct Surgery<'a> {
    home: &'a ConfigHome,
    env: &'a Env,
    hands: &'a Hands,
    aside: Aside<'a>,
    time: String,
}

impl<'a> Surgery<'a> {
    pub(super) fn new(home: &'a ConfigHome, env: &'a Env, hands: &'a Hands) -> Self {
        let time = rfc3339_millis(env.clock.now());
        Self { home, env, hands, aside: Aside::new(home, hands, &time), time }
    }

    /// Performs a cure while nobody else works on the session; returns what was done, or why nothing was.
    pub(super) fn perform(&self, cure: &Cure, session: Option<&SessionId>) -> Result<String, String> {
        if let Cure::Nothing { why } = cure {
            return Err(why.clone());
        }
        if let Some(pid) = session.and_then(|session| process_on(self.home, session)) {
            return Err(format!("the session is in use by process {pid}"));
        }
        // These take the lease themselves.
        let takes_lease = !matches!(cure, Cure::FreeLease { .. } | Cure::BringBackUnsaved);
        let _lease = match session.filter(|_| takes_lease) {
            Some(session) => {
                Some(Lease::acquire(self.home, session, self.env).map_err(|error| error.to_string())?)
            }
            None => None,
        };
        self.carry_out(cure, session).map_err(|error| error.to_string())
    }

    fn carry_out(&self, cure: &Cure, session: Option<&SessionId>) -> io::Result<String> {
        match cure {
            Cure::Rewrite { file, is_agent } => self.rewrite(session, file, *is_agent),
            Cure::RewriteLog { file } => {
                let bytes = whole_lines(&fs::read(file)?);
                self.replace(session, file, &bytes)
            }
            Cure::Write { path, bytes, said } => self.write(path, bytes).map(|()| said.clone()),
            Cure::Keep { path } => {
                let bytes = fs::read(path)?;
                self.hands.act(|| BlobStore::new(self.home).put(&bytes))?;
                Ok(format!("what `{}` holds is kept again", path.display()))
            }
            Cure::Close { paths } => self.close(paths),
            Cure::Aside { paths } => {
                let moved: io::Result<Vec<String>> =
                    paths.iter().map(|path| self.set_aside(session, path)).collect();
                Ok(moved?.join("; "))
            }
            Cure::Move { place, to } => self.move_session(place, to),
            Cure::BringBack { from, to, then } => self.bring_back(session, from, to, then.as_deref()),
            Cure::Discard { paths } => {
                paths.iter().try_for_each(|path| self.hands.act(|| fs::remove_file(path)))?;
                Ok("it was removed".to_owned())
            }
            Cure::FreeLease { session, others } => self.free_lease(session, others),
            Cure::FinishRewinds => self.finish_rewinds(),
            Cure::BringBackUnsaved => self.bring_back_unsaved(session),
            Cure::Nothing { why } => Err(io::Error::other(why.clone())),
        }
    }

    fn rewrite(&self, session: Option<&SessionId>, file: &Path, is_agent: bool) -> io::Result<String> {
        let reading = read(&mut File::open(file)?)?;
        let mut bytes = Vec::new();
        reading.write_mended(if is_agent { Whose::Agent } else { Whose::Session }, &mut bytes)?;
        self.replace(session, file, &bytes)
    }

    /// Puts other content in the place of a file that is kept aside.
    fn replace(&self, session: Option<&SessionId>, file: &Path, bytes: &[u8]) -> io::Result<String> {
        let before = fs::symlink_metadata(file)?;
        let kept = self.aside.keep(session, file)?;
        self.audit(session, file, &kept)?;
        let beside = own_temporary(file);
        self.hands.act(|| {
            let mut new = create_private(&beside)?;
            new.write_all(bytes)?;
            new.set_permissions(Permissions::from_mode(0o600))?;
            // As old as it was, but not the same: whoever remembers a file by its time reads it anew.
            let modified = before.modified()? + Duration::from_millis(1);
            new.set_times(FileTimes::new().set_modified(modified))?;
            new.sync_all()
        })?;
        let now = fs::symlink_metadata(file)?;
        if (now.len(), now.mtime(), now.mtime_nsec()) != (before.len(), before.mtime(), before.mtime_nsec()) {
            return Err(io::Error::other("it changed while it was mended; try again"));
        }
        self.hands.act(|| {
            fs::rename(&beside, file)?;
            sync_parent(file)
        })?;
        Ok(format!("it was written anew; the original is `{}`", kept.display()))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let dir = path.parent().unwrap_or(Path::new("/")).to_owned();
        self.hands.act(|| create_private_dir_all(&dir))?;
        let beside = own_temporary(path);
        self.hands.act(|| {
            let mut file = create_private(&beside)?;
            file.write_all(bytes)?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.sync_all()
        })?;
        self.hands.act(|| {
            // It was missing when it was looked for; what came since is the better one.
            if fs::symlink_metadata(path).is_ok() {
                fs::remove_file(&beside)?;
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there by now"));
            }
            fs::rename(&beside, path)?;
            sync_parent(path)
        })
    }

    fn close(&self, paths: &[PathBuf]) -> io::Result<String> {
        let mode = |path: &Path| if path.is_dir() { 0o700 } else { 0o600 };
        for path in paths {
            let closed = self.hands.act(|| fs::set_permissions(path, Permissions::from_mode(mode(path))));
            // What is gone by now is nobody's.
            if let Err(error) = closed.or_else(|error| gone(path, error)) {
                return Err(io::Error::new(error.kind(), format!("`{}`: {error}", path.display())));
            }
        }
        match paths {
            [path] => Ok(format!("its mode is {:03o}", mode(path))),
            _ => Ok("only you may use them now".to_owned()),
        }
    }

    fn set_aside(&self, session: Option<&SessionId>, path: &Path) -> io::Result<String> {
        let to = self.aside.take(session, path)?;
        self.audit(session, path, &to)?;
        Ok(format!("it is `{}` now", to.display()))
    }

    /// What belongs to the session goes first: should the transcript stay behind, it is found in the wrong place again.
    fn move_session(&self, place: &SessionPlace, to: &Path) -> io::Result<String> {
        let there = SessionPlace::new(to.join(format!("{}.jsonl", place.id())), place.id().clone());
        if there.file().exists() || (there.dir().exists() && place.dir().exists()) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "another session of this id lies there",
            ));
        }
        self.hands.act(|| create_private_dir_all(to))?;
        self.audit(Some(place.id()), place.file(), there.file())?;
        if place.dir().exists() {
            self.hands.act(|| move_path(&place.dir(), &there.dir()))?;
        }
        self.hands.act(|| move_path(place.file(), there.file()))?;
        Ok(format!("it is `{}` now", there.file().display()))
    }

    fn bring_back(
        &self,
        session: Option<&SessionId>,
        from: &Path,
        to: &Path,
        then: Option<&Path>,
    ) -> io::Result<String> {
        if to.exists() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "something else is there by now"));
        }
        self.audit(session, from, to)?;
        self.hands.act(|| move_path(from, to))?;
        if let Some(rest) = then {
            self.aside.take(session, rest)?;
        }
        Ok(format!("it is `{}` now", to.display()))
    }

    fn free_lease(&self, session: &SessionId, others: &[PathBuf]) -> io::Result<String> {
        self.hands.act(|| {
            let lease = Lease::acquire(self.home, session, self.env).map_err(io::Error::other)?;
            drop(lease);
            others.iter().try_for_each(fs::remove_file)
        })?;
        Ok("nobody had it, and it is free".to_owned())
    }

    fn finish_rewinds(&self) -> io::Result<String> {
        let said = self.hands.act(|| Ok(crate::history::rewind::finish_rewinds(self.home, self.env)))?;
        let said = said.join("; ");
        // One that cannot be read is another finding, with another cure.
        let is_left =
            crate::history::rewind::cut_short(self.home).iter().any(|(_, session)| session.is_some());
        if is_left { Err(io::Error::other(said)) } else { Ok(said) }
    }

    fn bring_back_unsaved(&self, session: Option<&SessionId>) -> io::Result<String> {
        let back = self.hands.act(|| Ok(crate::sessions::bring_back_unsaved(self.home, self.env)))?;
        let is_back = back.iter().any(|place| Some(place.id()) == session);
        let is_gone = session.is_some_and(|it| !self.home.unsaved_dir().join(format!("{it}.jsonl")).exists());
        match is_back || is_gone {
            true => Ok("they were appended".to_owned()),
            false => {
                Err(io::Error::other("they cannot be appended: the session is in use, or they are not ours"))
            }
        }
    }

    fn audit(&self, session: Option<&SessionId>, from: &Path, to: &Path) -> io::Result<()> {
        let id = session.map_or("-", |session| session.as_str());
        self.hands
            .act(|| audit_record(self.home, &self.time, "repair", id, from, to).map_err(io::Error::other))
    }
}

/// A name beside a file that the next repair knows for its own.
fn own_temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!("{OWN_TEMPORARY}{name}.part"))
}

fn gone(path: &Path, error: io::Error) -> io::Result<()> {
    if fs::symlink_metadata(path).is_err_and(|it| it.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    Err(error)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}
