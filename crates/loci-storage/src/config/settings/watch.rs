//! Noticing that settings files changed.
//!
//! Files are compared before each use rather than watched ([`FilePrint`]): that can never miss a change or lag behind one.
//! A change is taken up by whoever asks next, so it counts from the next tool call on.
//!
//! Where somebody has a say in changes ([`SettingsWatch::changes`]), what counts is what was read when they were asked: the
//! texts are kept, and a change that they did not want is not read again until the file changes once more.

use std::collections::BTreeMap;
use std::path::PathBuf;

use loci_settings::Scope;

use super::read::{self, FileText, Problem};
use super::{GivenSettings, LoadedSettings, SettingsPlaces, load_settings, load_texts, settings_files};
use crate::file_print::FilePrint;

/// What reading a file came to.
pub(super) type ReadText = Result<Option<FileText>, Problem>;

/// Settings that follow their files.
#[derive(Debug)]
pub struct SettingsWatch {
    places: SettingsPlaces,
    given: Option<GivenSettings>,
    seen: Vec<Option<FilePrint>>,
    /// What counts, once somebody has a say in changes.
    accepted: Option<Accepted>,
}

/// The texts that count.
#[derive(Debug, Default)]
struct Accepted {
    texts: BTreeMap<PathBuf, ReadText>,
    /// What each file was when it was last decided upon.
    seen: BTreeMap<PathBuf, Option<FilePrint>>,
    is_new: bool,
}

/// A settings file that changed, to be decided upon.
#[derive(Debug)]
pub struct SettingsChange {
    /// Whose it is.
    pub scope: Scope,
    /// The file.
    pub path: PathBuf,
    text: ReadText,
    print: Option<FilePrint>,
}

impl SettingsWatch {
    /// Reads the settings and begins to follow their files.
    pub fn start(places: SettingsPlaces, given: Option<GivenSettings>) -> (Self, LoadedSettings) {
        // Looked at before reading: a change in between shows up as one later.
        let seen = prints(&places);
        let loaded = load_settings(&places, given.as_ref());
        (Self { places, given, seen, accepted: None }, loaded)
    }

    /// Returns what was given beside the files.
    pub fn given(&self) -> Option<&GivenSettings> {
        self.given.as_ref()
    }

    /// Puts something else in its place, which counts as a change.
    pub fn set_given(&mut self, given: GivenSettings) {
        self.given = Some(given);
        match &mut self.accepted {
            Some(accepted) => accepted.is_new = true,
            None => self.seen.clear(),
        }
    }

    /// Returns the settings anew when a file changed since the last time.
    pub fn poll(&mut self) -> Option<LoadedSettings> {
        let Some(accepted) = &mut self.accepted else {
            let now = prints(&self.places);
            if now == self.seen {
                return None;
            }
            self.seen = now;
            return Some(load_settings(&self.places, self.given.as_ref()));
        };
        // Trust is no setting: nobody is asked about it.
        let now = vec![FilePrint::read(&self.places.state_file)];
        let has_trust_changed = std::mem::replace(&mut self.seen, now.clone()) != now;
        let is_new = std::mem::take(&mut accepted.is_new);
        (is_new || has_trust_changed)
            .then(|| load_texts(&self.places, self.given.as_ref(), Some(&accepted.texts)))
    }

    /// Returns the files that changed since they were last decided upon; from the first time on nothing counts before
    /// that ([`Self::decide`]).
    pub fn changes(&mut self) -> Vec<SettingsChange> {
        let files = settings_files(&self.places);
        let is_first = self.accepted.is_none();
        let accepted = self.accepted.get_or_insert_default();
        let mut changes = Vec::new();
        for (scope, path) in files {
            let print = FilePrint::read(&path);
            if is_first || accepted.seen.get(&path).copied().flatten() != print {
                changes.push(SettingsChange { scope, text: read::read(&path), path, print });
            }
        }
        if !is_first {
            return changes;
        }
        self.seen = vec![FilePrint::read(&self.places.state_file)];
        changes.into_iter().for_each(|change| self.decide(change, true));
        self.accepted.iter_mut().for_each(|accepted| accepted.is_new = false);
        Vec::new()
    }

    /// Lets a change count, or not.
    pub fn decide(&mut self, change: SettingsChange, is_taken: bool) {
        let accepted = self.accepted.get_or_insert_default();
        accepted.seen.insert(change.path.clone(), change.print);
        if is_taken {
            accepted.texts.insert(change.path, change.text);
            accepted.is_new = true;
        }
    }
}

fn prints(places: &SettingsPlaces) -> Vec<Option<FilePrint>> {
    let fixed = [&places.user, &places.project, &places.local, &places.state_file];
    let mut prints: Vec<Option<FilePrint>> = fixed.into_iter().map(|path| FilePrint::read(path)).collect();
    prints.push(places.left_local.as_deref().and_then(FilePrint::read));
    prints.push(FilePrint::read(&places.drop_in_dir()));
    prints.extend(places.managed_files().iter().map(|path| FilePrint::read(path)));
    prints
}
