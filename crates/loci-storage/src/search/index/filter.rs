//! Which passages are wanted at all.

use std::collections::HashSet;
use std::path::PathBuf;

use loci_core::passage::Voice;

/// What a search is narrowed to; what is left out narrows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchFilter {
    /// Only these session files.
    pub sessions: Option<HashSet<PathBuf>>,
    /// Not before this moment, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Before this moment.
    pub until_ms: Option<i64>,
    /// Only these voices; none means all.
    pub voices: Vec<Voice>,
    /// Only calls of this tool and their results.
    pub tool: Option<String>,
    /// Only what was said on this branch.
    pub branch: Option<String>,
    /// Only sessions in which a call names this file, or one whose path ends with it.
    pub file: Option<String>,
}

impl SearchFilter {
    pub(super) fn wants_time(&self, time_ms: i64) -> bool {
        self.since_ms.is_none_or(|since| time_ms >= since)
            && self.until_ms.is_none_or(|until| time_ms < until && time_ms != super::passage_reader::NO_TIME)
    }

    pub(super) fn has_times(&self) -> bool {
        self.since_ms.is_some() || self.until_ms.is_some()
    }

    pub(super) fn wants_voice(&self, voice: Voice) -> bool {
        self.voices.is_empty() || self.voices.contains(&voice)
    }

    pub(super) fn wants_tool(&self, tool: Option<&str>) -> bool {
        self.tool.is_none() || self.tool.as_deref() == tool
    }

    pub(super) fn wants_branch(&self, branch: Option<&str>) -> bool {
        self.branch.is_none() || self.branch.as_deref() == branch
    }

    /// Returns true when `path` is the file that is wanted.
    pub(super) fn means_file(&self, path: &str) -> bool {
        self.file.as_deref().is_some_and(|wanted| {
            let wanted = wanted.trim_start_matches("./");
            path.strip_suffix(wanted).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_filter_matches_the_end_of_a_path() {
        let filter = |file: &str| SearchFilter { file: Some(file.to_owned()), ..SearchFilter::default() };
        for (wanted, path, expected) in [
            ("main.rs", "/p/src/main.rs", true),
            ("src/main.rs", "/p/src/main.rs", true),
            ("./src/main.rs", "/p/src/main.rs", true),
            ("/p/src/main.rs", "/p/src/main.rs", true),
            ("ain.rs", "/p/src/main.rs", false),
            ("main.rs", "main.rs", true),
            ("other.rs", "/p/src/main.rs", false),
        ] {
            assert_eq!(filter(wanted).means_file(path), expected, "{wanted} {path}");
        }
        assert!(!SearchFilter::default().means_file("x"));
    }
}
