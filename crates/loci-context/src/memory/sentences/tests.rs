use super::*;

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
