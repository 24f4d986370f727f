//! Amazon's `config` and `credentials` files: sections of `name = value`.
//!
//! By hand, because crates for such files read other dialects: here nested values are indented lines, and `profile` belongs
//! to the file and not to the name.

use std::collections::BTreeMap;

/// The sections of a file, each with its values.
pub(super) type Sections = BTreeMap<String, BTreeMap<String, String>>;

/// Reads a file; a line that is neither a section nor a value is passed over, and so is what stands indented below a value.
/// `profile x` is called `x`.
pub(super) fn parse(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut section: Option<String> = None;
    for line in text.lines() {
        let is_indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(name, _)| name)
        {
            let name = name.trim();
            let name = name.strip_prefix("profile ").unwrap_or(name).trim().trim_matches('"');
            sections.entry(name.to_owned()).or_default();
            section = Some(name.to_owned());
        } else if let (Some(section), Some((name, value)), false) =
            (&section, line.split_once('='), is_indented)
        {
            let value = value.split(" #").next().unwrap_or_default().trim();
            let values = sections.entry(section.clone()).or_default();
            values.insert(name.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_values_are_read() {
        let sections = parse(
            "# comment\n[default]\nregion = us-west-2 # here\naws_access_key_id=A\n\n[profile dev]\ns3 =\n  x = 1\nregion=eu-west-1\n\
             nonsense\n[sso-session corp]\nsso_start_url = https://x/start#/\n",
        );
        assert_eq!(sections["default"]["region"], "us-west-2");
        assert_eq!(sections["default"]["aws_access_key_id"], "A");
        assert_eq!(sections["dev"]["region"], "eu-west-1");
        assert!(!sections["dev"].contains_key("x"));
        assert_eq!(sections["sso-session corp"]["sso_start_url"], "https://x/start#/");
    }
}
