//! `${VAR}` and `${VAR:-default}` in entries: filled in once, what is filled in is not read again.

use super::Lookup;

/// Fills variables in and remembers which were missing.
pub(super) struct Expansion<'a> {
    vars: &'a Lookup<'a>,
    missing: Vec<(String, &'static str)>,
}

impl<'a> Expansion<'a> {
    pub(super) fn new(vars: &'a Lookup<'a>) -> Self {
        Self { vars, missing: Vec::new() }
    }

    /// Returns a text with its variables; one that is not set and has no default stays as it is written.
    pub(super) fn expand(&mut self, key: &'static str, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${") {
            out.push_str(before);
            let Some((inside, tail)) = behind.split_once('}') else {
                out.push_str("${");
                rest = behind;
                continue;
            };
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            let value = (self.vars)(name).filter(|value| !value.is_empty() || default.is_none());
            match value.or_else(|| default.map(str::to_owned)) {
                Some(value) => out.push_str(&value),
                None => {
                    self.missing.push((name.to_owned(), key));
                    out.push_str(&format!("${{{inside}}}"));
                }
            }
            rest = tail;
        }
        out.push_str(rest);
        out
    }

    /// Says which variables were missing.
    pub(super) fn warnings(self) -> Vec<String> {
        let say = |(name, key): (String, &str)| {
            format!("the variable `{name}` is not set, so `${{{name}}}` in its `{key}` stays as it is")
        };
        self.missing.into_iter().map(say).collect()
    }
}
