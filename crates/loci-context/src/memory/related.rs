//! Which memories a text is likely to be about, told by the names of their files alone.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::flags::content_words;

/// Returns the files whose names share most words with the texts, so many at most; all of them where there are no more.
pub fn most_related(mut files: Vec<String>, texts: &[&str], most: usize) -> Vec<String> {
    if files.len() <= most {
        return files;
    }
    let words: BTreeSet<String> = texts.iter().flat_map(|text| content_words(text)).collect();
    let n_shared = |file: &str| content_words(file.trim_end_matches(".md")).intersection(&words).count();
    files.sort_by_cached_key(|file| (Reverse(n_shared(file)), file.clone()));
    files.truncate(most);
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_share_most_words_are_chosen() {
        let files = || ["a.md", "deploy-day.md", "deploys-on-staging.md", "z.md"].map(str::to_owned).to_vec();
        let texts = ["Staging deploys", "on port 80"];
        assert_eq!(most_related(files(), &texts, 1), ["deploys-on-staging.md"]);
        assert_eq!(most_related(files(), &texts, 3), ["deploys-on-staging.md", "deploy-day.md", "a.md"]);
        assert_eq!(most_related(files(), &texts, 4), files());
        assert_eq!(most_related(files(), &[], 1), ["a.md"]);
    }
}
