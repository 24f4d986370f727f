//! Keeping an API key and forgetting it, for `loci login` and `loci logout`, `/login` and `/logout`, and the first start.

use loci_stdx::Vars;
use loci_storage::config::{remove_api_key, store_api_key};
use loci_storage::layout::ConfigHome;

use crate::user_error::UserError;

/// What counts before a key that is kept, the first of them first.
const STRONGER: [&str; 3] = ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"];

/// Keeps a key in a file that only the user can read; says where, and what counts in its place.
pub fn keep_key(vars: &Vars, home: &ConfigHome, key: &str) -> Result<String, UserError> {
    let key = key.trim();
    if key.is_empty() {
        return Err(UserError::new("No key was given; nothing has changed"));
    }
    if key.contains(char::is_whitespace) {
        return Err(UserError::new("That is no key: it has blanks or several lines"));
    }
    let path = store_api_key(home, key).map_err(|error| {
        UserError::new(format!("The key cannot be kept in `{}`: {error}", home.loci_dir().display()))
            .hint("Make the directory writable, or set ANTHROPIC_API_KEY.")
    })?;
    let kept = format!("The key is kept in {}, readable by you alone.", path.display());
    match STRONGER.into_iter().find(|name| vars.non_empty(name).is_some()) {
        Some(name) => Ok(format!("{kept}\n{name} is set, and takes its place as long as it is.")),
        None => Ok(kept),
    }
}

/// Forgets the key that is kept, if there is one, and says which.
pub fn forget_key(home: &ConfigHome) -> Result<&'static str, UserError> {
    match remove_api_key(home) {
        Ok(true) => Ok("The key is forgotten."),
        Ok(false) => Ok("No key was kept."),
        Err(error) => Err(UserError::new(format!("The key cannot be removed: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use loci_stdx::Env;
    use loci_storage::config::stored_api_key;

    use super::*;

    #[test]
    fn key_is_kept_unless_it_is_none_and_what_wins_over_it_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let home = ConfigHome::from_env(&Env::for_test(dir.path(), dir.path()));
        for (vars, key, expected) in [
            (vec![], " \n", Err("No key was given; nothing has changed")),
            (vec![], "sk 1", Err("That is no key: it has blanks or several lines")),
            (vec![], " sk-1\n", Ok(None)),
            (vec![("ANTHROPIC_API_KEY", "")], "sk-2", Ok(None)),
            (vec![("ANTHROPIC_API_KEY", "x")], "sk-3", Ok(Some("ANTHROPIC_API_KEY is set"))),
            (vec![("CLAUDE_CODE_OAUTH_TOKEN", "x")], "sk-4", Ok(Some("CLAUDE_CODE_OAUTH_TOKEN is set"))),
        ] {
            let before = stored_api_key(&home).unwrap();
            let told = keep_key(&vars.into_iter().collect(), &home, key);
            match (told, expected) {
                (Err(error), Err(why)) => {
                    assert_eq!((error.message(), stored_api_key(&home).unwrap()), (why, before));
                }
                (Ok(text), Ok(winner)) => {
                    assert_eq!(stored_api_key(&home).unwrap().as_deref(), Some(key.trim()));
                    assert!(text.starts_with("The key is kept in "), "{text}");
                    assert_eq!(text.lines().nth(1).is_some(), winner.is_some(), "{text}");
                    assert!(text.contains(winner.unwrap_or_default()), "{text}");
                }
                (told, _) => panic!("{key}: {told:?}"),
            }
        }
        assert_eq!(forget_key(&home).unwrap(), "The key is forgotten.");
        assert_eq!(forget_key(&home).unwrap(), "No key was kept.");
    }
}
