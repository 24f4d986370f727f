//! Ways to damage a store, each with what the doctor must say.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use serde_json::{Value, json};

use super::lab::{Lab, close};
use crate::doctor::finding::FindingKind;
use crate::history::tree_history::{BlobStore, log_path};
use crate::layout::SessionPlace;
use crate::search::index::{NoObserver, update_index};
use crate::sessions::archive::archive_session;

/// What is done to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    TornTail,
    NoLastNewline,
    Garbage,
    NullLine,
    CutLine,
    NulRun,
    NulLine,
    Glued,
    NotText,
    LostLine,
    Circle,
    Double,
    TornAgent,
    BackupGone,
    LateBackupGone,
    ResultGone,
    ContentGone,
    LostContent,
    TornLog,
    StaleLease,
    StaleRegistration,
    OpenFile,
    OpenDir,
    OpenOwn,
    WrongProject,
    StrayAgents,
    StrayResults,
    HalfRewind,
    BadRewind,
    ArchivedTwice,
    HalfArchived,
    HalfRemoved,
    HalfRestored,
    EmptyTrash,
    Unsaved,
    Temporary,
    HalfPack,
    EmptyFile,
    IndexByte,
    IndexPart,
    IndexMiddle,
}

/// Which damages would get into each other's way in one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Tail,
    Lines,
    Missing,
    Place,
    Beside,
}

use Damage::*;

pub(super) const ALL: [Damage; 41] = [
    TornTail,
    NoLastNewline,
    Garbage,
    NullLine,
    CutLine,
    NulRun,
    NulLine,
    Glued,
    NotText,
    LostLine,
    Circle,
    Double,
    TornAgent,
    BackupGone,
    LateBackupGone,
    ResultGone,
    ContentGone,
    LostContent,
    TornLog,
    StaleLease,
    StaleRegistration,
    OpenFile,
    OpenDir,
    OpenOwn,
    WrongProject,
    StrayAgents,
    StrayResults,
    HalfRewind,
    BadRewind,
    ArchivedTwice,
    HalfArchived,
    HalfRemoved,
    HalfRestored,
    EmptyTrash,
    Unsaved,
    Temporary,
    HalfPack,
    EmptyFile,
    IndexByte,
    IndexPart,
    IndexMiddle,
];

impl Damage {
    /// What must be found.
    pub(super) fn kind(self) -> FindingKind {
        match self {
            TornTail | NoLastNewline | TornAgent | TornLog => FindingKind::TornTail,
            Garbage | NullLine | CutLine => FindingKind::BrokenLine,
            NulRun | NulLine => FindingKind::NulBytes,
            Glued => FindingKind::GluedLines,
            NotText => FindingKind::NotUtf8,
            LostLine => FindingKind::LostParent,
            Circle => FindingKind::Circle,
            Double => FindingKind::DoubleId,
            BackupGone | LateBackupGone => FindingKind::MissingBackup,
            ResultGone => FindingKind::MissingResult,
            ContentGone | LostContent => FindingKind::MissingContent,
            StaleLease | StaleRegistration => FindingKind::StaleLease,
            OpenFile | OpenDir | OpenOwn => FindingKind::Exposed,
            WrongProject => FindingKind::WrongProject,
            StrayAgents | StrayResults => FindingKind::LostCompanion,
            HalfRewind | BadRewind => FindingKind::HalfRewind,
            ArchivedTwice | HalfArchived => FindingKind::HalfArchive,
            HalfRemoved | HalfRestored | EmptyTrash => FindingKind::HalfRemoval,
            Unsaved => FindingKind::Unsaved,
            Temporary | HalfPack | EmptyFile | IndexPart => FindingKind::Leftover,
            IndexByte | IndexMiddle => FindingKind::StaleIndex,
        }
    }

    /// Whether what is gone is nowhere else.
    pub(super) fn is_beyond_repair(self) -> bool {
        matches!(self, LateBackupGone | LostContent)
    }

    /// Whether the transcript is where nobody looks until this is mended.
    pub(super) fn hides(self) -> bool {
        matches!(self, HalfRestored | HalfArchived)
    }

    pub(super) fn class(self) -> Class {
        match self {
            TornTail | NoLastNewline | IndexMiddle => Class::Tail,
            Garbage | NullLine | CutLine | NulRun | NulLine | Glued | NotText | LostLine | Circle
            | Double => Class::Lines,
            BackupGone | LateBackupGone | ResultGone | ContentGone | LostContent | TornLog | TornAgent => {
                Class::Missing
            }
            WrongProject | StrayResults | ArchivedTwice | HalfArchived | HalfRemoved | HalfRestored
            | Unsaved => Class::Place,
            StaleLease | StaleRegistration | OpenFile | OpenDir | OpenOwn | StrayAgents | HalfRewind
            | BadRewind | EmptyTrash | Temporary | HalfPack | EmptyFile | IndexByte | IndexPart => {
                Class::Beside
            }
        }
    }

    /// Does it to one session of the store.
    pub(super) fn apply(self, lab: &mut Lab, place: &SessionPlace) {
        match self {
            TornTail | NoLastNewline | TornAgent | TornLog => tear(self, lab, place),
            Garbage | NullLine | CutLine | NulRun | NulLine | Glued | NotText | LostLine | Circle
            | Double => {
                damage_line(self, lab, place);
            }
            BackupGone | LateBackupGone => {
                let version = if self == BackupGone { "@v1" } else { "@v2" };
                remove_ending(&lab.home.file_history_dir(place.id()), version);
            }
            ResultGone => remove_ending(&place.tool_results_dir(), ".txt"),
            ContentGone | LostContent => remove_content(self, lab, place),
            StaleLease => {
                write(&lab.home.loci_dir().join(format!("leases/{}.lock", place.id())), "");
                let note = json!({"pid": i32::MAX, "host": "h", "since": "2026-01-01T00:00:00.000Z"});
                write(&lab.home.loci_dir().join(format!("leases/{}.json", place.id())), &note.to_string());
            }
            StaleRegistration => {
                let note = json!({"pid": i32::MAX, "sessionId": place.id().as_str()});
                write(&lab.home.root().join("sessions/2147483647.json"), &note.to_string());
            }
            OpenFile => open(place.file(), 0o644),
            OpenDir => {
                open(lab.home.root(), 0o755);
                open(&lab.home.projects_dir(), 0o750);
            }
            OpenOwn => {
                open(&log_path(&lab.home, place.id()), 0o640);
                open(&lab.home.loci_dir().join("blobs"), 0o711);
            }
            WrongProject | StrayAgents | StrayResults => misplace(self, lab, place),
            HalfRewind => {
                let journal = json!({"id": "2026-01-01T000000000Z-x", "session": place.id().as_str(), "prompt": null,
                    "at": "2026-01-01T00:00:00.000Z", "root": lab.cwds[0], "steps": []});
                write(
                    &lab.home.loci_dir().join("rewinds/2026-01-01T000000000Z-x.pending.json"),
                    &journal.to_string(),
                );
            }
            BadRewind => {
                write(&lab.home.loci_dir().join("rewinds/2026-01-01T000000001Z-y.pending.json"), "{\"id\":");
            }
            ArchivedTwice | HalfArchived => archive_halfway(self, lab, place),
            HalfRemoved | HalfRestored | EmptyTrash => remove_halfway(self, lab, place),
            Unsaved => {
                let line = json!({"type": "tag", "tag": "late", "sessionId": place.id().as_str()});
                let head = json!({"type": "unsaved", "file": place.file()});
                let dir = lab.home.create_unsaved_dir().unwrap();
                write(&dir.join(format!("{}.jsonl", place.id())), &format!("{head}\n{line}\n"));
            }
            Temporary => {
                let dirs = [
                    place.file().parent().unwrap().to_owned(),
                    place.tool_results_dir(),
                    lab.home.loci_dir(),
                    lab.home.file_history_dir(place.id()),
                ];
                write(&dirs[lab.dice.below(4)].join(".tmp-a1b2c3"), "half of something");
            }
            HalfPack => {
                let name = format!("archive/2026-01-01T000000000Z-{}.new/0.gz", place.id());
                write(&lab.home.loci_dir().join(name), "half a pack");
            }
            EmptyFile => {
                let id = lab.dice.uuid();
                write(&place.file().with_file_name(format!("{id}.jsonl")), "");
            }
            IndexByte | IndexPart | IndexMiddle => damage_index(self, lab, place),
        }
    }
}

fn write(path: &Path, text: &str) {
    loci_stdx::create_private_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    open(path, 0o600);
}

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn remove_ending(dir: &Path, ending: &str) {
    let paths = fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .for_each(|path| fs::remove_file(path).unwrap());
}

fn tear(damage: Damage, lab: &mut Lab, place: &SessionPlace) {
    let file = match damage {
        TornAgent => place.subagents_dir().join("agent-a1.jsonl"),
        TornLog => log_path(&lab.home, place.id()),
        _ => place.file().to_owned(),
    };
    let bytes = fs::read(&file).unwrap();
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let length = bytes.len() - 1 - last;
    let n_kept = if damage == NoLastNewline { length } else { 1 + lab.dice.below(length - 1) };
    fs::write(&file, &bytes[..last + n_kept]).unwrap();
}

/// The lines of a transcript that are plain words, which nothing else refers to.
fn damage_line(damage: Damage, lab: &mut Lab, place: &SessionPlace) {
    let mut lines: Vec<Vec<u8>> =
        fs::read(place.file()).unwrap().split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let is_words = |line: &[u8]| {
        let entry: Value = serde_json::from_slice(line).unwrap_or_default();
        let text = entry["message"]["content"].to_string();
        text.contains("words") && entry["parentUuid"].is_string()
    };
    let words: Vec<usize> = (0..lines.len() - 4).filter(|idx| is_words(&lines[*idx])).collect();
    let at = words[lab.dice.below(words.len())];
    let mut entry: Value = serde_json::from_slice(&lines[at]).unwrap();
    match damage {
        Garbage => lines[at] = b"what is this?\n".to_vec(),
        NullLine => lines.insert(at, b"null\n".to_vec()),
        CutLine => {
            let length = 1 + lab.dice.below(lines[at].len() - 2);
            lines[at].truncate(length);
            lines[at].push(b'\n');
        }
        NulRun => {
            let n_bytes = 1 + lab.dice.below(4096);
            lines[at].splice(0..0, vec![0; n_bytes]);
        }
        NulLine => lines.insert(at, [vec![0; 1 + lab.dice.below(100)], b"\n".to_vec()].concat()),
        Glued => drop(lines[at].pop()),
        NotText => {
            let word = memchr::memmem::find(&lines[at], b"words").unwrap();
            lines[at][word + lab.dice.below(5)] = 0xfe;
        }
        LostLine => drop(lines.remove(at)),
        Circle => {
            // The first of three becomes a child of the last.
            let later =
                words[words.iter().position(|idx| *idx == at).unwrap()..].iter().max().copied().unwrap();
            let last: Value = serde_json::from_slice(&lines[later]).unwrap();
            entry["parentUuid"] = last["uuid"].clone();
            lines[at] = format!("{entry}\n").into_bytes();
        }
        Double => {
            entry["message"]["content"] = json!("something else in words");
            lines.insert(at + 1, format!("{entry}\n").into_bytes());
        }
        other => panic!("{other:?} is not of lines"),
    }
    fs::write(place.file(), lines.concat()).unwrap();
}

fn remove_content(damage: Damage, lab: &Lab, place: &SessionPlace) {
    let text = if damage == ContentGone { "after" } else { "before" };
    let digest = BlobStore::new(&lab.home).put(format!("{text} {}\n", place.id()).as_bytes()).unwrap();
    let hex = loci_core::hex::to_hex(&digest);
    fs::remove_file(lab.home.loci_dir().join(format!("blobs/{}/{}", &hex[..2], &hex[2..]))).unwrap();
}

fn misplace(damage: Damage, lab: &mut Lab, place: &SessionPlace) {
    let own = place.file().parent().unwrap();
    let other = lab.cwds.iter().map(|cwd| lab.home.project_dir(cwd)).find(|dir| dir != own).unwrap();
    loci_stdx::create_private_dir_all(&other).unwrap();
    match damage {
        WrongProject => {
            fs::rename(place.dir(), other.join(place.id().as_str())).unwrap();
            fs::rename(place.file(), other.join(format!("{}.jsonl", place.id()))).unwrap();
        }
        StrayResults => fs::rename(place.dir(), other.join(place.id().as_str())).unwrap(),
        _ => {
            let id = lab.dice.uuid();
            write(&own.join(id).join("subagents/agent-b.jsonl"), "{\"type\":\"user\"}\n");
        }
    }
}

fn copy_all(from: &Path, to: &Path) {
    for (path, bytes) in super::lab::every_file(from) {
        let path = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn archive_halfway(damage: Damage, lab: &Lab, place: &SessionPlace) {
    let bytes = fs::read(place.file()).unwrap();
    let mode = fs::metadata(place.file()).unwrap().permissions();
    let kept = lab.env.home.join("kept").join(place.id().as_str());
    copy_all(&place.dir(), &kept);
    archive_session(&lab.home, place, lab.env.clock.now()).unwrap();
    copy_all(&kept, &place.dir());
    if damage == ArchivedTwice {
        fs::write(place.file(), bytes).unwrap();
        fs::set_permissions(place.file(), mode).unwrap();
    }
    close(&place.dir());
}

fn remove_halfway(damage: Damage, lab: &mut Lab, place: &SessionPlace) {
    let id = if damage == EmptyTrash { lab.dice.uuid() } else { place.id().to_string() };
    let trash = lab.home.loci_dir().join(format!("trash/2026-01-01T000000000Z-{id}"));
    let origin = json!({"sessionId": id, "file": place.file(), "removedAt": "2026-01-01T00:00:00.000Z"});
    write(&trash.join("origin.json"), &origin.to_string());
    match damage {
        HalfRemoved => fs::rename(place.dir(), trash.join(&id)).unwrap(),
        HalfRestored => fs::rename(place.file(), trash.join(format!("{id}.jsonl"))).unwrap(),
        _ => {}
    }
}

fn damage_index(damage: Damage, lab: &mut Lab, place: &SessionPlace) {
    update_index(&lab.home, &lab.dice.uuid(), &NoObserver).unwrap();
    let dir = lab.home.loci_dir().join("index");
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|it| it == "seg");
    let segment = fs::read_dir(&dir).unwrap().flatten().map(|entry| entry.path()).find(is_segment).unwrap();
    match damage {
        IndexByte => {
            let mut bytes = fs::read(&segment).unwrap();
            let at = lab.dice.below(bytes.len());
            bytes[at] ^= 1 << lab.dice.below(8);
            fs::write(segment, bytes).unwrap();
        }
        IndexPart => write(&dir.join("0-part.new"), "half a segment"),
        _ => {
            // The one change that a search does not notice.
            let text = fs::read_to_string(place.file()).unwrap();
            let text = text.replacen("prompt 1 with some", "prompt 1 with none", 1);
            let tag = json!({"type": "tag", "tag": "x", "sessionId": place.id().as_str()});
            fs::write(place.file(), format!("{text}{tag}\n")).unwrap();
        }
    }
}

/// The sessions that a damage takes from their places.
pub(super) fn is_gone_after(damage: Damage) -> bool {
    // What is archived can be restored; it is not for the doctor to do so.
    damage == HalfArchived
}

/// Returns the id of a session.
pub(super) fn id_of(place: &SessionPlace) -> SessionId {
    place.id().clone()
}
