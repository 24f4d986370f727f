//! Names of three words, for files that people come across: easy to say, hard to hit twice.

const KINDS: [&str; 64] = [
    "amber", "ample", "bold", "brave", "brief", "bright", "brisk", "calm", "candid", "clear", "clever",
    "copper", "cosy", "crisp", "curious", "dapper", "daring", "eager", "early", "earnest", "easy", "fair",
    "fancy", "fleet", "fond", "gentle", "glad", "golden", "hardy", "hazel", "honest", "humble", "jolly",
    "keen", "kind", "lively", "lucid", "lucky", "mellow", "merry", "mild", "modest", "neat", "nimble",
    "noble", "patient", "placid", "plucky", "polite", "proud", "quick", "quiet", "ready", "rustic", "silver",
    "sincere", "sleek", "steady", "sunny", "tidy", "vivid", "warm", "wise", "witty",
];
const DOINGS: [&str; 64] = [
    "baking",
    "beaming",
    "blooming",
    "bobbing",
    "bouncing",
    "brewing",
    "building",
    "carving",
    "chasing",
    "chiming",
    "climbing",
    "coasting",
    "counting",
    "dancing",
    "drifting",
    "drumming",
    "floating",
    "foraging",
    "gliding",
    "glowing",
    "growing",
    "hiking",
    "hopping",
    "humming",
    "juggling",
    "jumping",
    "knitting",
    "leaping",
    "listening",
    "mapping",
    "marching",
    "mending",
    "musing",
    "napping",
    "painting",
    "pacing",
    "peeking",
    "planting",
    "plotting",
    "pondering",
    "puzzling",
    "racing",
    "reading",
    "resting",
    "roaming",
    "rolling",
    "rowing",
    "sailing",
    "singing",
    "sketching",
    "skipping",
    "soaring",
    "spinning",
    "sprouting",
    "strolling",
    "swaying",
    "swimming",
    "tinkering",
    "tracing",
    "twirling",
    "waving",
    "weaving",
    "whistling",
    "wandering",
];
const THINGS: [&str; 64] = [
    "acorn", "anchor", "badger", "beacon", "birch", "bison", "bramble", "breeze", "brook", "canyon", "cedar",
    "clover", "comet", "condor", "coral", "cricket", "dolphin", "ember", "falcon", "fern", "finch", "fjord",
    "fox", "garnet", "glacier", "harbor", "hare", "hazelnut", "heron", "island", "ivy", "juniper", "kestrel",
    "lantern", "lark", "lichen", "lotus", "lynx", "maple", "meadow", "meteor", "minnow", "moss", "nebula",
    "oak", "orchid", "osprey", "otter", "pebble", "pine", "prairie", "quartz", "raven", "reef", "robin",
    "sparrow", "spruce", "summit", "thistle", "tulip", "valley", "walnut", "willow", "wren",
];

/// Returns the name that belongs to a number; each of the lowest 18 bits counts.
pub fn slug_words(number: u64) -> String {
    let pick = |words: &[&'static str; 64], shift: u32| words[((number >> shift) & 63) as usize];
    format!("{}-{}-{}", pick(&KINDS, 0), pick(&DOINGS, 6), pick(&THINGS, 12))
}

/// Tells whether a text is a name of this kind, so that it may become the name of a file.
pub fn is_slug(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|it| it.is_ascii_alphanumeric());
    text.len() <= 100 && text.split('-').all(is_word)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_number_has_a_name_of_its_own() {
        let names: HashSet<String> = (0..1 << 18).map(slug_words).collect();
        assert_eq!(names.len(), 1 << 18);
        assert!(names.iter().all(|name| is_slug(name)));
    }

    #[test]
    fn names_never_leave_their_directory() {
        for (text, expected) in [
            ("calm-baking-fox", true),
            ("", false),
            ("../x", false),
            ("a/b", false),
            ("a..b", false),
            ("a--b", false),
        ] {
            assert_eq!(is_slug(text), expected, "{text}");
        }
    }
}
