//! Two hundred and more damaged stores: everything is found, almost everything mended, and nothing lost.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::damage::{ALL, Class, Damage, id_of, is_gone_after};
use super::lab::{Lab, TranscriptTexts, every_file, load_texts};
use crate::doctor::finding::{Finding, RepairOutcome};
use crate::doctor::{check_store, repair_store};

/// Stores with one damage: each kind so often.
const ROUNDS: usize = 2;
/// Stores with several.
const COMBINED: usize = 130;

#[derive(Debug, Default)]
struct Tally {
    n_stores: usize,
    n_repaired: usize,
}

/// Invariants 1, 2, 3, 4 and 5 of `docs/design/doctor.md`.
#[test]
fn every_damage_is_found_and_repaired() {
    let mut tally = Tally::default();
    for (n, damage) in ALL.iter().cycle().take(ALL.len() * ROUNDS).enumerate() {
        check(n as u64, &[*damage], &mut tally);
    }
    tally.check(ALL.len() * ROUNDS);
}

/// Invariants 1, 2, 3, 4 and 5 of `docs/design/doctor.md`.
#[test]
fn several_damages_are_found_and_repaired() {
    check_combined(0..COMBINED / 2);
}

/// The other half, so that both are done at once.
#[test]
fn several_damages_are_found_and_repaired_with_more_seeds() {
    check_combined(COMBINED / 2..COMBINED);
}

fn check_combined(numbers: Range<usize>) {
    let mut tally = Tally::default();
    // What nobody can bring back is in the other test.
    let curable: Vec<Damage> = ALL.into_iter().filter(|it| !it.is_beyond_repair()).collect();
    for n in numbers.clone() {
        let seed = 10_000 + n as u64;
        let mut dice = super::lab::Dice::new(seed);
        let damages: Vec<Damage> =
            (0..2 + dice.below(3)).map(|_| curable[dice.below(curable.len())]).collect();
        check(seed, &damages, &mut tally);
    }
    tally.check(numbers.len());
}

impl Tally {
    fn check(&self, n_stores: usize) {
        println!("{self:?}");
        assert_eq!(self.n_stores, n_stores);
        assert!(self.n_repaired * 100 >= self.n_stores * 95, "{self:?}");
    }
}

/// Damages a store, lets it be examined and mended, and holds what came of it against what was there.
fn check(seed: u64, damages: &[Damage], tally: &mut Tally) {
    let mut lab = Lab::new(seed, 2);
    if seed.is_multiple_of(3) {
        let found = check_store(&lab.home, &lab.env).unwrap().findings;
        assert_eq!(found, [], "a false alarm, seed {seed}");
    }
    let mut done: Vec<(usize, Class, Damage)> = Vec::new();
    // What moves a session comes last: the others have to find it.
    let moves = |damage: &&Damage| damage.class() == Class::Place;
    for damage in damages.iter().filter(|it| !moves(it)).chain(damages.iter().filter(moves)) {
        let is_free = |n: &usize| {
            done.iter().all(|(of, class, it)| {
                let is_same = of == n && *class == damage.class() && *class != Class::Beside;
                !is_same
                    && it != damage
                    && !clash(*it, *damage)
                    && !(of == n && (it.hides() || damage.hides()))
            })
        };
        let Some(n) = (0..lab.places.len()).find(is_free) else { continue };
        let place = lab.places[n].clone();
        damage.apply(&mut lab, &place);
        done.push((n, damage.class(), *damage));
    }
    let done: Vec<Damage> = done.into_iter().map(|(.., damage)| damage).collect();
    let what = format!("seed {seed}: {done:?}");
    let before = Before::from_lab(&lab);
    let found = check_store(&lab.home, &lab.env).unwrap().findings;
    for damage in &done {
        assert!(
            found.iter().any(|it| it.kind == damage.kind()),
            "{what}: {damage:?} was not found: {found:#?}"
        );
    }
    let mended = repair_store(&lab.home, &lab.env).unwrap().findings;
    let left: Vec<&Finding> = mended.iter().filter(|it| !it.is_mended()).collect();
    let beyond = done.iter().filter(|damage| damage.is_beyond_repair()).count();
    assert_eq!(left.len(), beyond, "{what}: {left:#?}");
    assert!(
        left.iter().all(|it| matches!(&it.outcome, RepairOutcome::Left(why) if !why.is_empty())),
        "{what}"
    );
    before.check(&lab, &what);
    check_present(&lab, &done, &what);
    check_settled(&lab, left.len(), &what);
    tally.n_stores += 1;
    tally.n_repaired += usize::from(left.is_empty());
}

/// A second repair finds nothing new and changes nothing.
fn check_settled(lab: &Lab, n_left: usize, what: &str) {
    let tree = every_file(lab.home.root());
    let again = repair_store(&lab.home, &lab.env).unwrap();
    assert_eq!((again.findings.len(), again.n_open()), (n_left, n_left), "{what}: {again:#?}");
    assert_eq!(every_file(lab.home.root()), tree, "{what}: the second repair changed something");
}

/// Every session is in a place where it can be resumed.
pub(super) fn check_present(lab: &Lab, damages: &[Damage], what: &str) {
    if !damages.iter().any(|damage| is_gone_after(*damage)) {
        lab.places.iter().for_each(|place| assert!(load_texts(lab, place.id()).is_some(), "{what}"));
    }
}

/// Some damages hide others: what is in an archive, or the index of files that change, says nothing.
fn clash(one: Damage, other: Damage) -> bool {
    let is_index = |it| matches!(it, Damage::IndexByte | Damage::IndexPart | Damage::IndexMiddle);
    let moves = |it: Damage| it.class() == Class::Place;
    let pair = |a: Damage, b: Damage| {
        (a == Damage::TornAgent && b == Damage::HalfRemoved)
            || (is_index(a) && (is_index(b) || moves(b) || b.class() != Class::Beside))
            || (moves(a) && moves(b))
    };
    pair(one, other) || pair(other, one)
}

/// What there was before a repair.
pub(super) struct Before {
    said: BTreeMap<String, TranscriptTexts>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Before {
    pub(super) fn from_lab(lab: &Lab) -> Self {
        let said = lab
            .places
            .iter()
            .filter_map(|place| Some((place.id().to_string(), load_texts(lab, place.id())?)));
        Self { said: said.collect(), files: every_file(&lab.env.home) }
    }

    /// Every message is still there, in its place, and every byte is somewhere.
    pub(super) fn check(&self, lab: &Lab, what: &str) {
        for place in &lab.places {
            let Some(before) = self.said.get(id_of(place).as_str()) else { continue };
            let after =
                load_texts(lab, place.id()).unwrap_or_else(|| panic!("{what}: {} is gone", place.id()));
            assert!(is_within(&before.path, &after.path), "{what}: {before:#?} {after:#?}");
            let mut all = after.all.clone();
            for message in &before.all {
                let at = all
                    .iter()
                    .position(|it| it == message)
                    .unwrap_or_else(|| panic!("{what}: {message} is lost"));
                all.remove(at);
            }
        }
        let after = every_file(&lab.env.home);
        for (path, bytes) in self.files.iter().filter(|(path, _)| is_precious(&lab.home.loci_dir(), path)) {
            // One that was appended to begins with what it was.
            let is_kept = after.get(path).is_some_and(|now| now.starts_with(bytes))
                || after.values().any(|now| now == bytes);
            assert!(is_kept, "{what}: the bytes of {} are nowhere", path.display());
        }
    }
}

/// Whatever cannot be made anew at any time.
fn is_precious(loci: &Path, path: &Path) -> bool {
    !["index", "leases", "listing.bin", "doctor.lock"].iter().any(|name| path.starts_with(loci.join(name)))
}

/// Whether one list has another's items in the same order, with others perhaps between them.
fn is_within(inner: &[String], outer: &[String]) -> bool {
    let mut outer = outer.iter();
    inner.iter().all(|item| outer.any(|it| it == item))
}
