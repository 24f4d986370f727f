//! The living part of generated sessions is what the whole file gives, and no more than it is read.

mod generated;

use std::cell::Cell;
use std::io::{Cursor, SeekFrom};
use std::rc::Rc;

use loci_core::usage::Usage;
use proptest::prelude::*;

use super::*;
use generated::{Step, session, step};

/// Everything a resumed session takes from a conversation.
#[derive(Debug, PartialEq)]
struct ConversationView {
    path: Vec<String>,
    leaf: Option<EntryId>,
    repairs: Vec<loci_core::conversation::Repair>,
    model: Option<String>,
    usage: Option<Usage>,
}

fn observe(conversation: &Conversation) -> ConversationView {
    ConversationView {
        path: conversation.path().iter().map(|entry| entry.line().to_owned()).collect(),
        leaf: conversation.leaf().cloned(),
        repairs: conversation.repairs().to_vec(),
        model: conversation.last_model().map(str::to_owned),
        usage: conversation.last_usage().cloned(),
    }
}

/// Generated sessions are short, so the margin is too.
const SMALL: Sizes = Sizes { chunk: 512, margin: 12, margin_bytes: 1 << 20 };

fn check(file: &[u8]) -> Result<u64, TestCaseError> {
    let whole = super::super::read(&mut Cursor::new(file)).unwrap();
    let live = read(Cursor::new(file), Goal::Leaf, SMALL).unwrap().unwrap();
    let skipped: Vec<SkippedLine> =
        whole.skipped.into_iter().filter(|part| part.offset >= live.start).collect();
    prop_assert_eq!(&live.skipped, &skipped);
    let full = Conversation::build(whole.entries);
    prop_assert_eq!(observe(&live.conversation), observe(&full), "{}", String::from_utf8_lossy(file));
    Ok(live.start)
}

fn check_at(file: &[u8], leaf: &EntryId) -> Result<(), TestCaseError> {
    let whole = super::super::read(&mut Cursor::new(file)).unwrap();
    let full = Conversation::build_at(whole.entries, leaf);
    let live = read(Cursor::new(file), Goal::Entry(leaf), SMALL).unwrap();
    let live = live.map(|live| observe(&live.conversation));
    prop_assert_eq!(live, full.map(|full| observe(&full)), "{} {}", leaf, String::from_utf8_lossy(file));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Invariant 15 of `docs/design/session-log.md`.
    #[test]
    fn load_live_gives_the_conversation_of_the_whole_file(steps in prop::collection::vec(step(), 1..30), cut in 0..400_usize) {
        let file = session(&steps);
        check(&file)?;
        // A crash in the last line.
        check(&file[..file.len().saturating_sub(cut)])?;
    }

    #[test]
    fn load_at_ends_at_any_entry(steps in prop::collection::vec(step(), 1..30), entry in 0..200_usize) {
        let file = session(&steps);
        check_at(&file, &generated::name(entry))?;
    }
}

#[test]
fn a_session_cut_after_any_line_gives_the_same() {
    let steps = [
        Step::plain_turn(),
        Step::parallel_turn(),
        Step::compaction(2),
        Step::parallel_turn(),
        Step::Rewind { back: 9 },
        Step::plain_turn(),
        Step::compaction(1),
        Step::plain_turn(),
        Step::Pointer { back: 30 },
    ];
    let file = session(&steps);
    let ends = file.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    for end in ends {
        check(&file[..end]).unwrap();
    }
}

/// Counts the bytes that are read.
#[derive(Clone)]
struct Counting<'a> {
    file: Cursor<&'a [u8]>,
    n_read: Rc<Cell<usize>>,
}

impl Read for Counting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.file.read(buffer)?;
        self.n_read.set(self.n_read.get() + n_bytes);
        Ok(n_bytes)
    }
}

impl Seek for Counting<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Returns how many of the bytes of a session are read, and how many it has.
fn cost(steps: &[Step]) -> (usize, usize) {
    let file = session(steps);
    check(&file).unwrap();
    let n_read = Rc::new(Cell::new(0));
    let counting = Counting { file: Cursor::new(&file), n_read: Rc::clone(&n_read) };
    read(counting, Goal::Leaf, SMALL).unwrap();
    (n_read.get(), file.len())
}

/// A fork takes what lies behind the last boundary, and reads no more than a resume does.
#[test]
fn fork_begins_behind_the_boundary_and_reads_only_the_live_part() {
    let file = session(&long(&[Step::plain_turn()]));
    let n_read = Rc::new(Cell::new(0));
    let counting = Counting { file: Cursor::new(&file), n_read: Rc::clone(&n_read) };
    let (window, conversation) = read_part(counting, Goal::Leaf, SMALL).unwrap().unwrap();
    let source = ForkSource::new((window, conversation));
    assert!(n_read.get() * 50 < file.len(), "{} of {}", n_read.get(), file.len());
    let whole = super::super::read(&mut Cursor::new(&file)).unwrap().entries;
    assert!(source.entries.len() * 20 < whole.len(), "{} of {}", source.entries.len(), whole.len());
    let id = |n: u32| {
        loci_core::ids::SessionId::parse(&format!("0a0a0a0a-0001-4000-8000-00000000000{n}")).unwrap()
    };
    let fork = |entries: &[Arc<Entry>], conversation: &Conversation| {
        let forked = crate::sessions::fork_entries(
            entries,
            conversation,
            &id(1),
            &id(2),
            crate::sessions::ForkOrigin::None,
        );
        let chain = forked.unwrap().into_iter().filter(|entry| entry.head().kind.is_chain());
        chain.map(|entry| entry.line().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        fork(&source.entries, &source.conversation),
        fork(&whole, &Conversation::build(whole.clone()))
    );
}

fn long(tail: &[Step]) -> Vec<Step> {
    let round = [Step::plain_turn(), Step::parallel_turn(), Step::plain_turn(), Step::compaction(1)];
    let mut steps = round.repeat(200);
    steps.extend_from_slice(tail);
    steps
}

/// Invariant 15 of `docs/design/session-log.md`.
#[test]
fn load_live_reads_only_the_live_part() {
    let (live, whole) = cost(&long(&[Step::plain_turn()]));
    assert!(live * 50 < whole, "{live} of {whole}");
    // A turn back before the last compaction costs the part up to the compaction before.
    let (live, whole) = cost(&long(&[Step::plain_turn(), Step::Rewind { back: 30 }, Step::plain_turn()]));
    assert!(live * 20 < whole, "{live} of {whole}");
}

#[test]
fn a_compaction_that_lost_its_summary_costs_one_part_more() {
    let torn = Step::Compact { keep: 0, listed: false, summary: false, rewritten: false };
    let (live, whole) = cost(&long(&[torn, Step::plain_turn()]));
    assert!(live * 20 < whole, "{live} of {whole}");
}

#[test]
fn load_live_reads_linear_bytes_when_extending() {
    // The pointer names the first entry: all of the file is needed, and every boundary is met on the way.
    let (live, whole) = cost(&long(&[Step::Pointer { back: 100_000 }]));
    assert!(live < 4 * whole, "{live} of {whole}");
}

#[test]
fn missing_entry_id_is_searched_once() {
    let (live, whole) = cost(&long(&[Step::plain_turn(), Step::PointerNowhere]));
    assert!(live < 2 * whole, "{live} of {whole}");
}

#[test]
fn an_empty_file_has_an_empty_conversation() {
    for file in ["", "\n\n", "null\n", "{\"type\":\"mode\"}\n"] {
        assert_eq!(check(file.as_bytes()).unwrap(), 0);
    }
}

#[test]
fn the_fixtures_cut_after_any_line_give_the_same() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    let files = std::fs::read_dir(fixtures).unwrap().map(|file| file.unwrap().path());
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")) {
        let file = std::fs::read(&path).unwrap();
        check(&file).unwrap();
        let ends = memchr::memchr_iter(b'\n', &file).map(|at| at + 1);
        for end in ends {
            check(&file[..end]).unwrap();
        }
    }
}
