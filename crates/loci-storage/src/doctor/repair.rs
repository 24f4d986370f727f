//! Carrying out fixes: each is a few steps, none of which loses anything, and all of which may be done again.

use std::fs::{self, FileTimes, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_core::ids::SessionId;
use loci_stdx::{
    Env, create_private, create_private_dir_all, open_regular, read_regular, rfc3339_millis, sync_dir,
};

use super::fix::Fix;
use super::fs_ops::FsOps;
use super::interrupted::whole_lines;
use super::repair_backup::{OWN_TEMPORARY, RepairBackup};
use super::transcript::{TranscriptKind, read};
use crate::history::tree_history::BlobStore;
use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::lease::Lease;
use crate::sessions::remove::{audit_record, move_path, process_on};

/// One repair.
pub(super) struct RepairRun<'a> {
    home: &'a ConfigHome,
    env: &'a Env,
    fs: &'a FsOps,
    backup: RepairBackup<'a>,
    time: String,
}

impl<'a> RepairRun<'a> {
    pub(super) fn new(home: &'a ConfigHome, env: &'a Env, fs: &'a FsOps) -> Self {
        let time = rfc3339_millis(env.clock.now());
        Self { home, env, fs, backup: RepairBackup::new(home, fs, &time), time }
    }

    /// Performs a fix while nobody else works on the session; returns what was done, or why nothing was.
    pub(super) fn perform(&self, fix: &Fix, session: Option<&SessionId>) -> Result<String, String> {
        if let Fix::Nothing { why } = fix {
            return Err(why.clone());
        }
        if let Some(pid) = session.and_then(|session| process_on(self.home, session)) {
            return Err(format!("the session is in use by process {pid}"));
        }
        // These take the lease themselves.
        let takes_lease = !matches!(fix, Fix::FreeLease { .. } | Fix::BringBackUnsaved);
        let _lease = match session.filter(|_| takes_lease) {
            Some(session) => {
                Some(Lease::acquire(self.home, session, self.env).map_err(|error| error.to_string())?)
            }
            None => None,
        };
        self.carry_out(fix, session).map_err(|error| error.to_string())
    }

    fn carry_out(&self, fix: &Fix, session: Option<&SessionId>) -> io::Result<String> {
        match fix {
            Fix::Rewrite { file, is_agent } => self.rewrite(session, file, *is_agent),
            Fix::RewriteLog { file } => {
                let bytes = whole_lines(&read_regular(file)?);
                self.replace(session, file, &bytes)
            }
            Fix::Write { path, bytes, said } => self.write(path, bytes).map(|()| said.clone()),
            Fix::Keep { path } => {
                let bytes = read_regular(path)?;
                self.fs.run(|| BlobStore::new(self.home).put(&bytes))?;
                Ok(format!("what `{}` holds is kept again", path.display()))
            }
            Fix::Close { paths } => self.close(paths),
            Fix::MoveAside { paths } => {
                let moved: io::Result<Vec<String>> =
                    paths.iter().map(|path| self.set_aside(session, path)).collect();
                Ok(moved?.join("; "))
            }
            Fix::Move { place, to } => self.move_session(place, to),
            Fix::BringBack { from, to, then } => self.bring_back(session, from, to, then.as_deref()),
            Fix::Discard { paths } => {
                paths.iter().try_for_each(|path| self.fs.run(|| fs::remove_file(path)))?;
                Ok("it was removed".to_owned())
            }
            Fix::FreeLease { session, others } => self.free_lease(session, others),
            Fix::FinishRewinds => self.finish_rewinds(),
            Fix::BringBackUnsaved => self.recover_unsaved(session),
            Fix::Nothing { why } => Err(io::Error::other(why.clone())),
        }
    }

    fn rewrite(&self, session: Option<&SessionId>, file: &Path, is_agent: bool) -> io::Result<String> {
        let reading = read(&mut open_regular(file)?)?;
        let mut bytes = Vec::new();
        reading.write_mended(
            if is_agent { TranscriptKind::Agent } else { TranscriptKind::Session },
            &mut bytes,
        )?;
        self.replace(session, file, &bytes)
    }

    /// Puts other content in the place of a file that is kept aside.
    fn replace(&self, session: Option<&SessionId>, file: &Path, bytes: &[u8]) -> io::Result<String> {
        let before = fs::symlink_metadata(file)?;
        let kept = self.backup.copy(session, file)?;
        self.audit(session, file, &kept)?;
        let beside = own_temporary(file);
        self.fs.run(|| {
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
        self.fs.run(|| {
            fs::rename(&beside, file)?;
            sync_parent(file)
        })?;
        Ok(format!("it was written anew; the original is `{}`", kept.display()))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let dir = path.parent().unwrap_or(Path::new("/")).to_owned();
        self.fs.run(|| create_private_dir_all(&dir))?;
        let beside = own_temporary(path);
        self.fs.run(|| {
            let mut file = create_private(&beside)?;
            file.write_all(bytes)?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.sync_all()
        })?;
        self.fs.run(|| {
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
            let closed = self.fs.run(|| fs::set_permissions(path, Permissions::from_mode(mode(path))));
            // What is gone by now is nobody's.
            if let Err(error) = closed.or_else(|error| ok_if_missing(path, error)) {
                return Err(io::Error::new(error.kind(), format!("`{}`: {error}", path.display())));
            }
        }
        match paths {
            [path] => Ok(format!("its mode is {:03o}", mode(path))),
            _ => Ok("only you may use them now".to_owned()),
        }
    }

    fn set_aside(&self, session: Option<&SessionId>, path: &Path) -> io::Result<String> {
        let to = self.backup.move_aside(session, path)?;
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
        self.fs.run(|| create_private_dir_all(to))?;
        self.audit(Some(place.id()), place.file(), there.file())?;
        if place.dir().exists() {
            self.fs.run(|| move_path(&place.dir(), &there.dir()))?;
        }
        self.fs.run(|| move_path(place.file(), there.file()))?;
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
        self.fs.run(|| move_path(from, to))?;
        if let Some(rest) = then {
            self.backup.move_aside(session, rest)?;
        }
        Ok(format!("it is `{}` now", to.display()))
    }

    fn free_lease(&self, session: &SessionId, others: &[PathBuf]) -> io::Result<String> {
        self.fs.run(|| {
            let lease = Lease::acquire(self.home, session, self.env).map_err(io::Error::other)?;
            drop(lease);
            others.iter().try_for_each(fs::remove_file)
        })?;
        Ok("nobody had it, and it is free".to_owned())
    }

    fn finish_rewinds(&self) -> io::Result<String> {
        let said = self.fs.run(|| Ok(crate::history::rewind::finish_rewinds(self.home, self.env)))?;
        let said = said.join("; ");
        // One that cannot be read is another finding, with another fix.
        let is_left =
            crate::history::rewind::cut_short(self.home).iter().any(|(_, session)| session.is_some());
        if is_left { Err(io::Error::other(said)) } else { Ok(said) }
    }

    fn recover_unsaved(&self, session: Option<&SessionId>) -> io::Result<String> {
        let back = self.fs.run(|| Ok(crate::sessions::recover_unsaved(self.home, self.env)))?;
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
        self.fs.run(|| audit_record(self.home, &self.time, "repair", id, from, to).map_err(io::Error::other))
    }
}

/// A name beside a file that the next repair knows for its own.
fn own_temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!("{OWN_TEMPORARY}{name}.part"))
}

fn ok_if_missing(path: &Path, error: io::Error) -> io::Result<()> {
    if fs::symlink_metadata(path).is_err_and(|it| it.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    Err(error)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), sync_dir)
}
