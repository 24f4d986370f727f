//! The ambient world as one value: home, working directory, variables, clock and randomness.
//!
//! The binary builds an [`Env`] once and passes it down; no other code reads the process environment,
//! so a test can run half the program inside a world of its own making.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::{Clock, FixedClock, SystemClock, Timestamp};
use crate::random::{OsRandom, Random, SeededRandom};

/// The instant at which [`Env::for_test`] starts: 2026-01-02T03:04:05Z.
const TEST_EPOCH: Timestamp = Timestamp::constant(1_767_323_045, 0);

/// Everything the program may know about the world around it. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Env {
    /// The user's home directory.
    pub home: PathBuf,
    /// The directory the program was started in, symlinks resolved by whoever built this value.
    pub cwd: PathBuf,
    /// The environment variables.
    pub vars: Vars,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub random: Arc<dyn Random>,
}

impl Env {
    /// Reads the world of this process: the only place in the program that does.
    pub fn from_process() -> io::Result<Self> {
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let home = home.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "Failed to find the home directory: `HOME` is not set")
        })?;
        let cwd = std::env::current_dir()?;
        Ok(Self {
            home,
            cwd: cwd.canonicalize().unwrap_or(cwd),
            vars: Vars::from_os(std::env::vars_os()),
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(OsRandom),
        })
    }

    /// Returns a world for tests: no variables, a ticking clock that starts in 2026, seeded randomness.
    #[must_use]
    pub fn for_test(home: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            cwd: cwd.into(),
            vars: Vars::default(),
            clock: Arc::new(FixedClock::ticking(TEST_EPOCH)),
            random: Arc::new(SeededRandom::new(0)),
        }
    }
}

/// Environment variables that are valid UTF-8, and the names of those that are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vars {
    values: Arc<BTreeMap<String, String>>,
    skipped: Arc<[String]>,
}

impl Vars {
    /// Sorts raw variables into readable ones and the (lossy) names of the others.
    pub fn from_os(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut values = BTreeMap::new();
        let mut skipped = Vec::new();
        for (name, value) in vars {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => {
                    values.insert(name, value);
                }
                (Ok(name), Err(_)) => skipped.push(name),
                (Err(name), _) => skipped.push(name.to_string_lossy().into_owned()),
            }
        }
        Self { values: Arc::new(values), skipped: skipped.into() }
    }

    /// Returns the value of `name`; a variable set to nothing is `Some("")`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Returns the value of `name` unless it is unset or empty.
    #[must_use]
    pub fn non_empty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Tells whether `name` is set to `1`, `true`, `yes` or `on`, in any case, spaces around it ignored.
    #[must_use]
    pub fn is_truthy(&self, name: &str) -> bool {
        let value = self.get(name).unwrap_or_default().trim();
        ["1", "true", "yes", "on"].iter().any(|truth| value.eq_ignore_ascii_case(truth))
    }

    /// Returns all variables in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the names of variables left out because they are not UTF-8.
    #[must_use]
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Returns these variables with `name` set to `value`.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.values).insert(name.into(), value.into());
        self
    }

    /// Returns these variables with `name` unset.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        Arc::make_mut(&mut self.values).remove(name);
        self
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Vars {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(vars: I) -> Self {
        let values = vars.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { values: Arc::new(values), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::rfc3339_millis;

    #[test]
    fn empty_is_set_but_not_non_empty() {
        let vars: Vars = [("EMPTY", ""), ("FULL", "x")].into_iter().collect();
        assert_eq!((vars.get("EMPTY"), vars.non_empty("EMPTY")), (Some(""), None));
        assert_eq!((vars.get("FULL"), vars.non_empty("FULL")), (Some("x"), Some("x")));
        assert_eq!((vars.get("NONE"), vars.non_empty("NONE")), (None, None));
    }

    #[test]
    fn truth_has_four_spellings() {
        for (value, expected) in [
            ("1", true),
            ("true", true),
            ("TRUE", true),
            ("Yes", true),
            ("oN", true),
            (" 1 ", true),
            ("", false),
            ("0", false),
            ("false", false),
            ("no", false),
            ("off", false),
            ("2", false),
            ("truey", false),
        ] {
            assert_eq!(Vars::default().with("FLAG", value).is_truthy("FLAG"), expected, "{value:?}");
        }
        assert!(!Vars::default().is_truthy("FLAG"));
    }

    #[test]
    fn with_and_without_leave_the_original_alone() {
        let original = Vars::default().with("A", "1");
        let changed = original.clone().with("B", "2").without("A");
        assert_eq!(original.iter().collect::<Vec<_>>(), [("A", "1")]);
        assert_eq!(changed.iter().collect::<Vec<_>>(), [("B", "2")]);
    }

    #[cfg(unix)]
    #[test]
    fn variables_that_are_not_text_are_named() {
        use std::os::unix::ffi::OsStringExt;
        let raw = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let vars = Vars::from_os([
            (raw(b"GOOD"), raw(b"value")),
            (raw(b"BAD_VALUE"), raw(b"\xff")),
            (raw(b"BAD\xffNAME"), raw(b"value")),
        ]);
        assert_eq!(vars.iter().collect::<Vec<_>>(), [("GOOD", "value")]);
        assert_eq!(vars.skipped(), ["BAD_VALUE", "BAD\u{fffd}NAME"]);
    }

    #[test]
    fn test_world_is_the_same_every_time() {
        let (left, right) = (Env::for_test("/home", "/work"), Env::for_test("/home", "/work"));
        assert_eq!(rfc3339_millis(left.clock.now()), "2026-01-02T03:04:05.000Z");
        assert_eq!(rfc3339_millis(left.clock.now()), "2026-01-02T03:04:05.001Z");
        assert_eq!(left.random.uuid_v4(), right.random.uuid_v4());
        assert_eq!(left.vars, Vars::default());
    }

    #[test]
    fn a_clone_shares_clock_and_randomness() {
        let env = Env::for_test("/home", "/work");
        let clone = env.clone();
        assert!(env.clock.now() < clone.clock.now());
        assert_ne!(env.random.uuid_v4(), clone.random.uuid_v4());
    }
}
