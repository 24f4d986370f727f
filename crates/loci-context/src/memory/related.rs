//! Which memories a text is likely to be about, told by the names of their files alone.

use rustc_hash::FxHashSet;

use super::flags::{meaningful, singular};

/// Returns the files whose names share most words with the texts, so many at most; all of them where there are no more.
pub fn most_related(files: Vec<String>, texts: &[&str], most: usize) -> Vec<String> {
    if files.len() <= most {
        return files;
    }
    let lower: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    let words: FxHashSet<&str> = lower.iter().flat_map(|text| meaningful(text)).map(singular).collect();
    let counted = files.into_iter().map(|file| (n_shared(&file, &words), file));
    let mut counted: Vec<(usize, String)> = counted.collect();
    counted.sort_unstable_by(|(n, file), (m, other)| m.cmp(n).then_with(|| file.cmp(other)));
    counted.truncate(most);
    counted.into_iter().map(|(_, file)| file).collect()
}

/// Counts the words of a file's name that are among some, each once.
fn n_shared(file: &str, words: &FxHashSet<&str>) -> usize {
    let lower = file.trim_end_matches(".md").to_lowercase();
    let mut shared: Vec<&str> =
        meaningful(&lower).map(singular).filter(|word| words.contains(word)).collect();
    shared.sort_unstable();
    shared.dedup();
    shared.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_that_share_most_words_are_related() {
        let files = || ["a.md", "deploy-day.md", "deploys-on-staging.md", "z.md"].map(str::to_owned).to_vec();
        let texts = ["Staging deploys", "on port 80"];
        assert_eq!(most_related(files(), &texts, 1), ["deploys-on-staging.md"]);
        assert_eq!(most_related(files(), &texts, 3), ["deploys-on-staging.md", "deploy-day.md", "a.md"]);
        assert_eq!(most_related(files(), &texts, 4), files());
        assert_eq!(most_related(files(), &[], 1), ["a.md"]);
    }
}
