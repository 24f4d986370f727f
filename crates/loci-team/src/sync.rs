//! Pull, push and what they would do.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use loci_context::{
    ContentHash, EntryName, Hashes, Pull, Push, SecretFound, TEAM_DIR, TEAM_ENTRY_BYTES, case_clashes,
    find_secrets, pull_plan, push_plan,
};
use loci_stdx::Env;
use loci_storage::memory::{MemoryError, MemoryJournal, TeamMemory, TeamState};

use crate::remote::{Expected, Remote, RemoteError, Stored};

/// What became of one entry, or would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The entry, or the file that is none.
    pub name: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// What becomes of an entry. A number is that of the change in the journal, which can be taken back; a look has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was not here and is now.
    Added(Option<u64>),
    /// It was replaced by the server's newer text.
    Updated(Option<u64>),
    /// It was changed on both sides; the server's text is here now.
    Overwritten(Option<u64>),
    /// It was changed here alone and waits to be pushed.
    Kept,
    /// It was sent.
    Sent,
    /// It would be sent.
    ToSend,
    /// It was changed on the server as well: pull first.
    Conflict,
    /// It was not sent, because it holds secrets.
    Held(Vec<SecretFound>),
    /// It was not taken by the server, for this reason.
    Refused(String),
    /// It was left alone, for this reason.
    Skipped(String),
}

/// Why nothing more was done; what was done before stands and is remembered.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The server.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The memories.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The directory.
    #[error("Failed to read the team's memories")]
    Read(#[from] io::Error),
}

/// Fetches what the server has and this side has not; where both changed, the server wins.
pub async fn pull<R: Remote>(env: &Env, journal: &MemoryJournal, remote: &R) -> Result<Vec<Line>, SyncError> {
    let mut here = Here::read(journal, remote)?;
    let server = remote.list().await?;
    let plan = here.pull_plan(&server);
    let mut lines = std::mem::take(&mut here.skipped);
    here.agree_where_alike(&server);
    let mut done = Ok(());
    for (name, step) in plan {
        match here.pull_one(env, remote, &name, step).await {
            Ok(outcome) => lines.push(Line { name: name.to_string(), outcome }),
            Err(error) => {
                done = Err(error);
                break;
            }
        }
    }
    here.keep()?;
    done.map(|()| lines)
}

/// Sends what changed here since the last agreement, if the server still has that, and if it holds no secret.
pub async fn push<R: Remote>(journal: &MemoryJournal, remote: &R) -> Result<Vec<Line>, SyncError> {
    let mut here = Here::read(journal, remote)?;
    let server = remote.list().await?;
    let mut lines = std::mem::take(&mut here.skipped);
    here.agree_where_alike(&server);
    let mut done = Ok(());
    for (name, step) in push_plan(&here.hashes(), &here.agreed, &server) {
        match here.push_one(remote, &name, step).await {
            Ok(outcome) => lines.extend(outcome.map(|outcome| Line { name: name.to_string(), outcome })),
            Err(error) => {
                done = Err(error);
                break;
            }
        }
    }
    here.keep()?;
    done.map(|()| lines)
}

/// Says what a pull and then a push would do; changes nothing.
pub async fn status<R: Remote>(journal: &MemoryJournal, remote: &R) -> Result<Vec<Line>, SyncError> {
    let mut here = Here::read(journal, remote)?;
    let server = remote.list().await?;
    let pulls = here.pull_plan(&server).into_iter().filter_map(|(name, step)| {
        let outcome = match step {
            Pull::Add => Outcome::Added(None),
            Pull::Update => Outcome::Updated(None),
            Pull::Overwrite => Outcome::Overwritten(None),
            Pull::Keep => return None,
        };
        Some(Line { name: name.to_string(), outcome })
    });
    let pulls: Vec<Line> = pulls.collect();
    let pushes = push_plan(&here.hashes(), &here.agreed, &server).into_iter().filter_map(|(name, step)| {
        let outcome = match step {
            Push::Create | Push::Update(_) => here.secrets_in(&name).unwrap_or(Outcome::ToSend),
            Push::Conflict | Push::Behind => return None,
        };
        Some(Line { name: name.to_string(), outcome })
    });
    let pushes: Vec<Line> = pushes.collect();
    Ok(std::mem::take(&mut here.skipped).into_iter().chain(pulls).chain(pushes).collect())
}

/// This side, held while the server is spoken with.
struct Here<'a> {
    area: TeamMemory<'a>,
    server: String,
    texts: BTreeMap<EntryName, String>,
    agreed: Hashes,
    skipped: Vec<Line>,
}

impl<'a> Here<'a> {
    fn read<R: Remote>(journal: &'a MemoryJournal, remote: &R) -> Result<Self, SyncError> {
        let area = TeamMemory::lock(journal, TEAM_DIR)?;
        let server = remote.id();
        let mut here = Self {
            texts: BTreeMap::new(),
            agreed: agreed(&area.state(&server)),
            server,
            skipped: Vec::new(),
            area,
        };
        for file in here.area.files()? {
            let text = file.text.map_err(|error| error.to_string());
            match text.and_then(|text| checked(&file.name, text)) {
                Ok((name, text)) => drop(here.texts.insert(name, text)),
                Err(why) => here.skip(&file.name, why),
            }
        }
        for name in case_clashes(here.texts.keys()) {
            here.texts.remove(&name);
            here.skip(name.as_str(), "another name differs from it only by case".to_owned());
        }
        Ok(here)
    }

    fn skip(&mut self, name: &str, why: String) {
        let name = name
            .chars()
            .flat_map(|it| if it.is_control() { it.escape_default().collect() } else { vec![it] });
        self.skipped.push(Line { name: name.collect(), outcome: Outcome::Skipped(why) });
    }

    fn hashes(&self) -> Hashes {
        self.texts.iter().map(|(name, text)| (name.clone(), ContentHash::of(text))).collect()
    }

    /// Plans a pull without the server's names that this system might not keep apart from each other or from ours.
    fn pull_plan(&mut self, server: &Hashes) -> BTreeMap<EntryName, Pull> {
        let mut plan = pull_plan(&self.hashes(), &self.agreed, server);
        let ours: BTreeMap<String, EntryName> =
            self.texts.keys().map(|name| (name.case_key(), name.clone())).collect();
        let clashes: BTreeSet<EntryName> = case_clashes(server.keys()).into_iter().collect();
        let hides = |name: &EntryName| ours.get(&name.case_key()).is_some_and(|it| it != name);
        let refused: Vec<EntryName> =
            plan.keys().filter(|name| clashes.contains(*name) || hides(name)).cloned().collect();
        for name in refused {
            plan.remove(&name);
            self.skip(name.as_str(), "another name differs from it only by case".to_owned());
        }
        plan
    }

    /// Where both sides hold the same text, they agree, however that came about.
    fn agree_where_alike(&mut self, server: &Hashes) {
        for (name, hash) in self.hashes() {
            if server.get(&name) == Some(&hash) {
                self.agreed.insert(name, hash);
            }
        }
    }

    async fn pull_one<R: Remote>(
        &mut self,
        env: &Env,
        remote: &R,
        name: &EntryName,
        step: Pull,
    ) -> Result<Outcome, SyncError> {
        if step == Pull::Keep {
            return Ok(Outcome::Kept);
        }
        let Some(text) = remote.fetch(name).await? else {
            return Ok(Outcome::Skipped("it is gone from the server".to_owned()));
        };
        let hash = ContentHash::of(&text);
        let change = match self.area.pull(env, name.as_str(), self.texts.get(name).cloned(), text) {
            Ok(change) => Some(change),
            Err(
                error @ (MemoryError::Conflict { .. } | MemoryError::Read { .. } | MemoryError::Write { .. }),
            ) => {
                return Ok(Outcome::Skipped(in_words(&error)));
            }
            Err(error) => return Err(error.into()),
        };
        self.agreed.insert(name.clone(), hash);
        Ok(match step {
            Pull::Add => Outcome::Added(change),
            Pull::Update => Outcome::Updated(change),
            Pull::Overwrite => Outcome::Overwritten(change),
            Pull::Keep => Outcome::Kept,
        })
    }

    async fn push_one<R: Remote>(
        &mut self,
        remote: &R,
        name: &EntryName,
        step: Push,
    ) -> Result<Option<Outcome>, SyncError> {
        let expected = match step {
            Push::Create => Expected::Absent,
            Push::Update(hash) => Expected::Hash(hash),
            Push::Conflict => return Ok(Some(Outcome::Conflict)),
            Push::Behind => return Ok(None),
        };
        if let Some(held) = self.secrets_in(name) {
            return Ok(Some(held));
        }
        let Some(text) = self.texts.get(name) else { return Ok(None) };
        match remote.store(name, text, &expected).await? {
            Stored::Done => {
                self.agreed.insert(name.clone(), ContentHash::of(text));
                Ok(Some(Outcome::Sent))
            }
            Stored::Conflict => Ok(Some(Outcome::Conflict)),
            Stored::Refused(why) => Ok(Some(Outcome::Refused(why))),
        }
    }

    /// Returns the secrets of an entry, its name included, if there are any.
    fn secrets_in(&self, name: &EntryName) -> Option<Outcome> {
        let text = self.texts.get(name).map(String::as_str).unwrap_or_default();
        let in_name = find_secrets(name.as_str()).into_iter().map(|found| SecretFound { line: 0, ..found });
        let found: Vec<SecretFound> = in_name.chain(find_secrets(text)).collect();
        (!found.is_empty()).then_some(Outcome::Held(found))
    }

    fn keep(&self) -> Result<(), MemoryError> {
        let entries = self.agreed.iter().map(|(name, hash)| (name.to_string(), hash.to_string())).collect();
        self.area.save_state(&TeamState { server: self.server.clone(), entries })
    }
}

/// Reads what was agreed on; what cannot be read counts as never agreed on.
fn agreed(state: &TeamState) -> Hashes {
    let entries = state.entries.iter();
    entries
        .filter_map(|(name, hash)| Some((EntryName::parse(name).ok()?, ContentHash::parse(hash)?)))
        .collect()
}

fn checked(name: &str, text: String) -> Result<(EntryName, String), String> {
    let name = EntryName::parse(name).map_err(|error| error.why.to_owned())?;
    match text.len() <= TEAM_ENTRY_BYTES {
        true if text.contains('\0') => Err("it holds a NUL, which is not text".to_owned()),
        true => Ok((name, text)),
        false => Err(format!("it is larger than {} KiB", TEAM_ENTRY_BYTES / 1024)),
    }
}

fn in_words(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

#[cfg(test)]
mod tests;
