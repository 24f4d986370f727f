//! Words that mean something for a comparison, as data: one list a meaning.

use rustc_hash::FxHashMap;

use super::words::stem;

/// Words that carry no meaning of their own.
const SMALL: &str = "a an the of for in on to and be is are am been being with at by as this that these those it its \
    their our your my his her we you i they he she them us me user people will would shall must should please do \
    does did have has there here so then which who all any always when where up out longer anymore still \
    ever can able sure really very just simply actually currently now today nowadays generally own \
    let lets make makes get gets want wants";
/// Words that may be there or not.
const SOFT: &str = "server service application app project repository repo codebase code everything thing things \
    team company whole new file files command tool instance machine box mood";
/// Words in the name of a memory that say nothing of what it is about.
const GENERIC: &str = "version toolchain setup note rule guide detail info reminder preference convention style formatting policy \
    decision requirement limit setting people layout usage basics general misc overview choice";
/// Words that say no.
const NEGATIVE: &str = "not never no none nobody dont doesnt didnt isnt arent cannot cant mustnt shouldnt wont stop refrain \
   ";
/// Words after which nothing is certain, or not the only one.
const HEDGES: &str = "or either may might could sometimes maybe perhaps probably also too another other others some several \
    various example eg ie etc including such try consider occasionally often mostly usually rarely unless except \
    both plus alternatively temporarily experimental proposed if about around roughly";
/// Words of what is over.
const PAST: &str = "was were had previously formerly once originally until till ago yesterday last earlier old former since \
    became went initially legacy";
/// Words that mean to use.
const USE: &str = "use prefer choose favor favour pick adopt like";
/// A word, and the one that it is the opposite of.
const OPPOSITES: &[(&str, &str)] = &[
    ("avoid", "use"),
    ("dislike", "use"),
    ("hate", "use"),
    ("disable", "enable"),
    ("off", "enable"),
    ("forbidden", "allow"),
    ("forbid", "allow"),
    ("prohibited", "allow"),
    ("disallow", "allow"),
    ("banned", "allow"),
    ("deny", "allow"),
    ("optional", "require"),
    ("unsupported", "support"),
    ("private", "public"),
    ("unnecessary", "require"),
    ("reject", "accept"),
    ("refuse", "accept"),
    ("immutable", "mutable"),
    ("asynchronous", "synchronous"),
    ("manually", "automatically"),
    ("manual", "automatic"),
    ("unprotected", "protect"),
    ("unpinned", "pin"),
    ("unused", "use"),
    ("lowercase", "uppercase"),
    ("ascending", "descending"),
    ("insensitive", "sensitive"),
    ("hide", "show"),
    ("omit", "write"),
    ("skip", "run"),
];
/// A word, and another for the same.
const SAME: &[(&str, &str)] = &[
    ("each", "every"),
    ("db", "database"),
    ("config", "configuration"),
    ("dir", "directory"),
    ("folder", "directory"),
    ("prod", "production"),
    ("dev", "development"),
    ("max", "most"),
    ("maximum", "most"),
    ("min", "least"),
    ("minimum", "least"),
    ("mandatory", "require"),
    ("needed", "require"),
    ("necessary", "require"),
    ("permit", "allow"),
    ("postgres", "postgresql"),
    ("js", "javascript"),
    ("ts", "typescript"),
    ("py", "python"),
    ("golang", "go"),
    ("indentation", "indent"),
    ("column", "character"),
    ("chars", "character"),
    ("deployment", "deploy"),
    ("approval", "review"),
    ("reviewer", "review"),
    ("approver", "review"),
    ("docs", "documentation"),
    ("doc", "documentation"),
    ("installing", "dependency"),
];
/// Verbs; a value stands after them.
const VERBS: &str = "use run listen live lie sit reside stay return expect require need take default point go happen \
    expire start end keep ship call name write put store save deploy push merge target wrap indent limit cap set bind serve \
    host track manage build install format lint log send release publish branch commit sign cost last belong open connect \
    compile depend contain include speak report meet begin finish review document cut round retry poll refresh cache expose \
    locate find pin have own lead hold support allow accept provide offer see read check know mention fix add visit ask \
    contact test try work rebase squash enable disable tag back rotate time scale answer respond reply quote fall sort cover count \
    weigh charge pay allocate spawn process handle show print render fit span total average measure reach exceed hold has";
/// Verbs that take many things at the same time.
const MANY: &str = "support include contain allow accept provide offer see read check know mention fix add visit ask contact \
    test try work ship open depend belong meet speak";
/// Verbs that do not say more than that something is so.
const PLAIN: &str = "use run listen live lie sit reside stay require need take keep set bind serve host expose locate find \
    pin have hold put store save happen go start available target default";
/// Forms of "to be".
const BE: &str = "is are be";
/// Words before a command that does it.
const BY: &str = "with via by through as";
/// Things that have one holder at a time.
const HOLDERS: &str = "owner maintainer lead manager contact host hostname url endpoint branch database registry \
    editor shell license framework language compiler runner formatter linter bundler orm timezone region cluster namespace \
    bucket channel tracker wiki theme username login domain provider cloud cdn broker queue codename name nickname title \
    email address password version image distribution distro os platform engine runtime backend scheduler logger locale \
    pronoun encoding charset";
/// Holders whose value may be any word.
const FREELY_NAMED: &str = "branch codename nickname username name";
/// Languages, platforms, environments and parts: what holds in one need not hold in another.
const SCOPES: &str = "rust go python javascript typescript java kotlin swift ruby php perl lua scala haskell elixir c cpp bash sql \
    yaml json toml html css markdown makefile dockerfile frontend backend web mobile ios android desktop staging production development \
    unit integration e2e ci local documentation api cli gui ui windows linux macos mac debian ubuntu alpine arm x86 \
    east west europe eu us america asia internal external admin  customer nightly beta alpha canary preview \
    benchmark script library binary migration  replica master worker client parent child upstream downstream \
    weekend personal  debug         ";
/// Nouns whose number is their name.
const NUMBERED: &str = "step phase issue ticket bug pr build case part chapter section line rule option milestone sprint task item \
    iteration round attempt level tier stage rfc adr figure table appendix test exit code status error worker shard";
/// What is like this may be like that, too.
const ADJECTIVES: &str = "slow old new broken protected stable big small large important down up fast shared red green ready \
    missing empty good bad fine ok messy clean busy free full happy strict simple complex flaky nice ugly critical open closed \
    locked wrong right same different special unique case";
/// Days.
const DAYS: &str = "monday tuesday wednesday thursday friday saturday sunday";
/// Numbers.
const NUMBERS: &[&str] = &[
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];
/// Things of which one is used at a time.
const GROUPS: &[&str] = &[
    "npm pnpm yarn bun",
    "jest vitest mocha jasmine ava",
    "pytest unittest nose",
    "nextest cargo-test",
    "poetry pipenv conda uv pip",
    "postgresql mysql mariadb oracle mssql",
    "black yapf autopep8",
    "prettier biome dprint",
    "eslint tslint",
    "webpack vite rollup parcel esbuild",
    "tabs spaces",
    "single double",
    "git mercurial svn",
    "github-actions gitlab-ci circleci jenkins travis buildkite drone",
    "aws gcp azure",
    "jira linear asana trello youtrack",
    "slack teams discord mattermost",
    "snake_case camelcase kebab-case pascalcase",
    "british american",
    "lf crlf",
    "squash rebase",
    "rest graphql grpc",
    "docker podman",
    "kubernetes nomad",
    "redis memcached",
    "kafka rabbitmq nats",
    "react vue svelte angular",
    "maven gradle bazel",
    "cmake meson",
    "vim emacs vscode",
    "utc cet est pst gmt",
    "light dark",
    "daily weekly monthly quarterly yearly hourly",
    "english german french spanish japanese chinese",
    "formal informal",
    "imperative past-tense",
    "markdown asciidoc restructuredtext",
    "mit apache-2.0 gpl bsd mpl",
    "thiserror anyhow",
    "tokio async-std smol",
    "serial parallel",
    "bottom top",
    "terraform pulumi",
    "sentry bugsnag rollbar",
    "sass less tailwind",
    "argon2 bcrypt scrypt",
];
/// Two words that are one.
const PAIRS: &[(&str, &str, &str)] = &[
    ("github", "actions", "github-actions"),
    ("gitlab", "ci", "gitlab-ci"),
    ("circle", "ci", "circleci"),
    ("snake", "case", "snake_case"),
    ("camel", "case", "camelcase"),
    ("kebab", "case", "kebab-case"),
    ("pascal", "case", "pascalcase"),
    ("cargo", "test", "cargo-test"),
    ("past", "tense", "past-tense"),
    ("vs", "code", "vscode"),
    ("turn", "on", "enable"),
    ("turn", "off", "disable"),
    ("switch", "on", "enable"),
    ("switch", "off", "disable"),
];
/// Units: what is counted, and how many of the smallest.
const UNITS: &[(&str, &str, f64)] = &[
    ("ms", "time", 1.0),
    ("millisecond", "time", 1.0),
    ("s", "time", 1e3),
    ("sec", "time", 1e3),
    ("second", "time", 1e3),
    ("min", "time", 6e4),
    ("minute", "time", 6e4),
    ("h", "time", 3.6e6),
    ("hour", "time", 3.6e6),
    ("day", "time", 8.64e7),
    ("week", "time", 6.048e8),
    ("byte", "size", 1.0),
    ("kb", "size", 1e3),
    ("kib", "size", 1024.0),
    ("mb", "size", 1e6),
    ("mib", "size", 1_048_576.0),
    ("gb", "size", 1e9),
    ("gib", "size", 1_073_741_824.0),
    ("tb", "size", 1e12),
];

/// What is known of a word, each a bit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Facts(u32);

/// One thing that may be known of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Fact {
    Small = 1,
    Soft = 1 << 1,
    Negative = 1 << 2,
    Hedge = 1 << 3,
    Past = 1 << 4,
    Use = 1 << 5,
    Verb = 1 << 6,
    Many = 1 << 7,
    Plain = 1 << 8,
    Be = 1 << 9,
    By = 1 << 10,
    Holder = 1 << 11,
    FreelyNamed = 1 << 12,
    Scope = 1 << 13,
    Numbered = 1 << 14,
    Adjective = 1 << 15,
    Day = 1 << 16,
    Generic = 1 << 17,
}

impl Facts {
    pub(super) fn has(self, fact: Fact) -> bool {
        self.0 & fact as u32 != 0
    }
}

/// What is known of one stem.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) facts: Facts,
    /// The stem of what it is the opposite of.
    pub(super) opposite: Option<String>,
    /// The stem of another word for it.
    pub(super) same: Option<String>,
    /// The group of which one is used at a time.
    pub(super) group: Option<u8>,
    pub(super) number: Option<u8>,
    pub(super) unit: Option<(&'static str, f64)>,
    /// Whether another word may make it mean something else.
    pub(super) begins_pair: bool,
}

/// What is known of most words.
pub(super) static NOTHING: Entry = Entry {
    facts: Facts(0),
    opposite: None,
    same: None,
    group: None,
    number: None,
    unit: None,
    begins_pair: false,
};

/// All that is known, by stem.
#[derive(Debug)]
pub(super) struct Vocabulary {
    entries: FxHashMap<String, Entry>,
    /// Two stems and the word that they are.
    pairs: Vec<(String, String, &'static str)>,
}

impl Vocabulary {
    pub(super) fn new() -> Self {
        let stem = |word: &'static str| stem(word.into()).into_owned();
        let mut entries: FxHashMap<String, Entry> = FxHashMap::default();
        for (list, fact) in LISTS {
            for word in list.split_whitespace() {
                entries.entry(stem(word)).or_default().facts.0 |= *fact as u32;
            }
        }
        for (word, other) in OPPOSITES {
            entries.entry(stem(word)).or_default().opposite = Some(stem(other));
        }
        for (word, other) in SAME {
            entries.entry(stem(word)).or_default().same = Some(stem(other));
        }
        for (n, group) in (0..).zip(GROUPS) {
            for word in group.split_whitespace() {
                entries.entry(stem(word)).or_default().group = Some(n);
            }
        }
        for (n, word) in (0..).zip(NUMBERS) {
            entries.entry(stem(word)).or_default().number = Some(n);
        }
        for (word, what, n) in UNITS {
            entries.entry(stem(word)).or_default().unit = Some((what, *n));
        }
        for (one, _, _) in PAIRS {
            entries.entry(stem(one)).or_default().begins_pair = true;
        }
        let pairs = PAIRS.iter().map(|(one, two, both)| (stem(one), stem(two), *both)).collect();
        Self { entries, pairs }
    }

    /// Returns what is known of a stem.
    pub(super) fn entry(&self, stem: &str) -> &Entry {
        self.entries.get(stem).unwrap_or(&NOTHING)
    }

    /// Returns the one word that two are.
    pub(super) fn pair(&self, one: &str, two: &str) -> Option<&'static str> {
        let is_it = |(a, b, _): &&(String, String, &str)| a == one && b == two;
        self.pairs.iter().find(is_it).map(|(_, _, both)| *both)
    }

    pub(super) fn is_scope(&self, stem: &str) -> bool {
        self.entry(stem).facts.has(Fact::Scope)
    }
}

const LISTS: &[(&str, Fact)] = &[
    (SMALL, Fact::Small),
    (SOFT, Fact::Soft),
    (NEGATIVE, Fact::Negative),
    (HEDGES, Fact::Hedge),
    (PAST, Fact::Past),
    (USE, Fact::Use),
    (VERBS, Fact::Verb),
    (MANY, Fact::Many),
    (PLAIN, Fact::Plain),
    (BE, Fact::Be),
    (BY, Fact::By),
    (HOLDERS, Fact::Holder),
    (FREELY_NAMED, Fact::FreelyNamed),
    (SCOPES, Fact::Scope),
    (NUMBERED, Fact::Numbered),
    (ADJECTIVES, Fact::Adjective),
    (DAYS, Fact::Day),
    (GENERIC, Fact::Generic),
];
