//! Commands that people know from elsewhere and that loci does not have: what to do instead.

/// Commands that were taken away, or that have another name here.
const INSTEAD: &[(&str, &str)] = &[
    ("vim", "Set `editorMode` to `vim` in the settings"),
    ("output-style", "Set `outputStyle` in the settings: `loci config set outputStyle NAME`"),
    ("pr-comments", "Ask for it in words: loci reads comments with `gh`"),
    ("ultraplan", "Use `/plan` with the task"),
    (
        "background",
        "A session ends with its terminal; Ctrl+B has what runs go on in the background, `/subtask` gives a side task away",
    ),
    (
        "bg",
        "A session ends with its terminal; Ctrl+B has what runs go on in the background, `/subtask` gives a side task away",
    ),
    ("heapdump", "Use `loci --debug` for a trace of what loci does"),
    ("feedback", "There is no service that would take it; the repository of loci has issues"),
    ("bug", "There is no service that would take it; the repository of loci has issues"),
    ("release-notes", "`CHANGELOG.md` of loci has them"),
    ("import", "Use `loci sessions import` for sessions of Codex"),
    (
        "logout",
        "Keys are kept in the config home under `loci/`; remove the file there, or unset ANTHROPIC_API_KEY",
    ),
];

/// Commands of one vendor's services.
const VENDOR: &[&str] = &[
    "advisor",
    "artifacts",
    "autofix-pr",
    "chrome",
    "claude-api",
    "dataviz",
    "deep-research",
    "desktop",
    "fast",
    "ide",
    "insights",
    "mobile",
    "passes",
    "powerup",
    "privacy-settings",
    "radio",
    "remote-control",
    "remote-env",
    "schedule",
    "stickers",
    "team-onboarding",
    "teleport",
    "ultrareview",
    "upgrade",
    "usage-credits",
    "voice",
    "web-setup",
    "workflows",
];

/// Says what to do in the place of a command that is known elsewhere and not offered here.
pub fn not_offered(name: &str) -> Option<String> {
    if let Some((_, instead)) = INSTEAD.iter().find(|(known, _)| *known == name) {
        return Some(format!("There is no /{name} here. {instead}"));
    }
    let is_vendors = VENDOR.contains(&name) || name.starts_with("install-") || name.starts_with("design-");
    is_vendors.then(|| format!("/{name} needs a service of another vendor and is not part of loci"))
}

#[cfg(test)]
mod tests {
    use super::super::CommandRegistry;
    use super::*;

    #[test]
    fn what_is_offered_is_not_denied() {
        let registry = CommandRegistry::builtin();
        for command in registry.iter_in_terminal() {
            let names = std::iter::once(&command.name).chain(&command.aliases);
            for name in names {
                assert_eq!(not_offered(name), None, "{name}");
            }
        }
        assert!(not_offered("vim").is_some_and(|text| text.contains("editorMode")));
        assert!(not_offered("install-github-app").is_some());
        assert_eq!(not_offered("nothing-like-it"), None);
    }
}
