use super::*;
use proptest::prelude::*;

/// Of the pairs that cannot both hold, this many of a hundred have to be found.
const LEAST_FOUND: usize = 85;

/// A line of a table: the type, and for each side a name and a sentence.
fn pairs(table: &'static str) -> Vec<[&'static str; 5]> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let fields = |line: &'static str| line.split(" | ").collect::<Vec<_>>().try_into();
    lines.map(|line| fields(line).unwrap()).collect()
}

fn memory(kind: &str, name: &str, body: &str) -> MemoryFile {
    MemoryFile::parse(&format!("---\nname: {name}\ndescription: d\ntype: {kind}\n---\n{body}\n"))
}

fn found([kind, name, sentence, other, another]: [&str; 5]) -> Vec<String> {
    let files = [("a.md", memory(kind, name, sentence)), ("b.md", memory(kind, other, another))];
    let flags = disagreements(files.iter().map(|(path, file)| (*path, file)));
    flags.iter().map(|(path, flag)| format!("{path}: {flag}")).collect()
}

/// Invariant 8 of `docs/design/memory.md`.
#[test]
fn most_sentences_that_cannot_both_hold_are_found() {
    let all = pairs(include_str!("contradictory.txt"));
    assert!(all.len() >= 40);
    let missed: Vec<_> = all.iter().filter(|pair| found(**pair).len() != 2).collect();
    let n_found = all.len() - missed.len();
    assert!(n_found * 100 >= all.len() * LEAST_FOUND, "{n_found} of {}; missed: {missed:#?}", all.len());
}

/// Invariant 8 of `docs/design/memory.md`.
#[test]
fn sentences_that_may_both_hold_are_left_alone() {
    let all = pairs(include_str!("harmless.txt"));
    assert!(all.len() >= 60);
    let flagged: Vec<_> = all.iter().filter(|pair| !found(**pair).is_empty()).collect();
    assert!(flagged.is_empty(), "{flagged:#?}");
}

/// No sentence disagrees with itself, and the order of files does not matter.
#[test]
fn a_sentence_agrees_with_itself_whatever_the_order() {
    for table in [include_str!("contradictory.txt"), include_str!("harmless.txt")] {
        for [kind, name, sentence, other, another] in pairs(table) {
            assert_eq!(found([kind, name, sentence, other, sentence]), [""; 0], "{sentence}");
            assert_eq!(found([kind, name, another, other, another]), [""; 0], "{another}");
            let swapped = found([kind, other, another, name, sentence]);
            assert_eq!(swapped.len(), found([kind, name, sentence, other, another]).len(), "{sentence}");
        }
    }
}

#[test]
fn both_sentences_are_shown_and_nothing_else_of_the_memories() {
    let files = [
        ("a.md", memory("feedback", "packages", "It is a monorepo.\n\n- Use npm,\n  as ever.\n")),
        ("b.md", memory("feedback", "npm", "```\nUse npm\n```\nNever use\nnpm, as ever.")),
    ];
    let flags = disagreements(files.iter().map(|(path, file)| (*path, file)));
    let said: Vec<String> = flags.iter().map(|(path, flag)| format!("{path}: {flag}")).collect();
    assert_eq!(
        said,
        [
            "a.md: it says \"Use npm, as ever.\", `b.md` says \"Never use npm, as ever.\"",
            "b.md: it says \"Never use npm, as ever.\", `a.md` says \"Use npm, as ever.\"",
        ]
    );
}

/// Within one memory nothing is compared, and many memories about the same are compared up to a bound.
#[test]
fn one_memory_is_left_alone_and_many_end() {
    let one = memory("feedback", "a", "Use npm. Never use npm.");
    assert_eq!(disagreements([("a.md", &one)]), []);
    let many: Vec<(String, MemoryFile)> = (0..500)
        .map(|n| {
            (
                format!("{n}.md"),
                memory("feedback", "npm", if n % 2 == 0 { "Use npm." } else { "Never use npm." }),
            )
        })
        .collect();
    let flags = disagreements(many.iter().map(|(path, file)| (path.as_str(), file)));
    let n_flagged = flags.iter().map(|(path, _)| path).collect::<BTreeSet<_>>().len();
    assert_eq!(n_flagged, MOST_COMPARED);
}

/// Compares every sentence with every other and keeps nothing in between: slow, and plainly right.
fn all_pairs(files: &[(String, MemoryFile)]) -> Vec<(String, Flag)> {
    let mut read = Vec::new();
    for (path, file) in files {
        let described = sentences(file.description.as_deref().unwrap_or_default());
        for sentence in sentences(&file.body).into_iter().chain(described) {
            read.push(Read::of(Place { path, file, sentence }));
        }
    }
    let mut flags = BTreeSet::new();
    let claims = |it: &Read<'_>| -> BTreeSet<String> {
        it.statements.iter().flat_map(Statement::claims).map(|(subject, _)| subject.to_string()).collect()
    };
    for (n, one) in read.iter().enumerate() {
        for other in &read[n + 1..] {
            for subject in claims(one).intersection(&claims(other)) {
                let (sides, others) = (one.sides(subject), other.sides(subject));
                if sides.iter().any(|it| others.iter().any(|other| is_disagreement(it, other))) {
                    flags.insert((one.place.path.to_owned(), flag(one.place, other.place)));
                    flags.insert((other.place.path.to_owned(), flag(other.place, one.place)));
                }
            }
        }
    }
    flags.into_iter().collect()
}

/// A sentence of the tables, some of its words exchanged for words of others.
fn sentence() -> impl Strategy<Value = String> {
    let tables = [include_str!("contradictory.txt"), include_str!("harmless.txt")];
    let all: Vec<&str> = tables.into_iter().flat_map(pairs).flat_map(|it| [it[2], it[4]]).collect();
    let words: Vec<&str> = all.iter().flat_map(|it| it.split(' ')).chain(ODD).collect();
    let exchanged =
        proptest::collection::vec((any::<prop::sample::Index>(), prop::sample::select(words)), 0..2);
    (prop::sample::select(all), exchanged).prop_map(|(sentence, exchanged)| {
        let mut words: Vec<&str> = sentence.split(' ').collect();
        for (idx, word) in exchanged {
            let at = idx.index(words.len());
            words[at] = word;
        }
        words.join(" ")
    })
}

/// Words that are written in other ways than most.
const ODD: [&str; 12] =
    ["ÉCOLE", "Straße", "it’s", "DON'T", "(so", "9:30", "50%,", "`a b`", "x-Y/z", "Libraries", "ſ", "never"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Only what may disagree is compared, and nothing is missed by that.
    /// Invariant 8 of `docs/design/memory.md`.
    #[test]
    fn no_disagreement_is_missed_for_speed(bodies in proptest::collection::vec((0..3usize, sentence(), sentence(), sentence()), 2..12)) {
        let kinds = ["user", "feedback", "project"];
        let files: Vec<(String, MemoryFile)> = bodies
            .into_iter()
            .enumerate()
            .map(|(n, (kind, one, two, three))| {
                let name = ["packages", "npm", "staging server", "tests"][n % 4];
                (format!("{n}.md"), memory(kinds[kind], name, &format!("{one}\n\n{two}\n\n- {three}\n")))
            })
            .collect();
        let found = disagreements(files.iter().map(|(path, file)| (path.as_str(), file)));
        prop_assert_eq!(found, all_pairs(&files));
    }
}

/// The oracle of [`no_disagreement_is_missed_for_speed`] finds something, so that their agreeing says something.
#[test]
fn comparing_all_pairs_finds_what_the_tables_hold() {
    let table = pairs(include_str!("contradictory.txt")).into_iter().enumerate();
    let files: Vec<(String, MemoryFile)> = table
        .flat_map(|(n, [kind, name, sentence, other, another])| {
            [
                (format!("{n}a.md"), memory(kind, name, sentence)),
                (format!("{n}b.md"), memory(kind, other, another)),
            ]
        })
        .collect();
    let found = disagreements(files.iter().map(|(path, file)| (path.as_str(), file)));
    assert!(found.len() > 100, "{}", found.len());
    assert_eq!(found, all_pairs(&files));
}
