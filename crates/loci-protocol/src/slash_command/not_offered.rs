//! Commands that people know from elsewhere and that loci does not have: what to do instead.

/// Commands that were taken away, or that have another name here.
const INSTEAD: &[(&str, &str)] = &[
    ("vim", "`/config editorMode=vim` has vim's keys in the prompt"),
    ("output-style", "`/config outputStyle=NAME` chooses one; it counts from the next conversation on"),
    ("pr-comments", "Ask for it in words: loci reads comments with `gh`"),
    ("ultraplan", "Use `/plan` with the task"),
    (
        "loop",
        "It is off where prompts cannot be scheduled (CLAUDE_CODE_DISABLE_CRON) and without bundled skills",
    ),
    ("color", "Sessions have names, not colours: `/rename`"),
    (
        "terminal-setup",
        "Keys are in `/keybindings`; Shift+Enter needs no set-up in terminals that can tell it apart",
    ),
    ("setup-bedrock", "Set CLAUDE_CODE_USE_BEDROCK=1; `docs/providers.md` has the rest"),
    ("setup-vertex", "Set CLAUDE_CODE_USE_VERTEX=1; `docs/providers.md` has the rest"),
    ("heapdump", "Use `loci --debug` for a trace of what loci does"),
    ("feedback", "There is no service that would take it; the repository of loci has issues"),
    ("bug", "There is no service that would take it; the repository of loci has issues"),
    ("release-notes", "`CHANGELOG.md` of loci has them"),
    ("import", "Use `loci sessions import` for sessions of Codex"),
    ("fast", "`/effort low` makes answers quicker, `/model haiku` even more"),
    (
        "advisor",
        "Ask another model with `/model`, or send an agent with a model of its own out (`docs/agents.md`)",
    ),
    ("insights", "`/usage` has plots by day, model and project; `loci stats` counts all sessions"),
    ("ide", "Editors start `loci acp` themselves (`docs/acp.md`)"),
    ("schedule", "`/loop` repeats a prompt while loci runs; use `loci -p` in cron for the rest"),
    ("workflows", "A skill of yours does it: write the steps into `.claude/skills/NAME/SKILL.md`"),
    ("deep-research", "Ask for it in words: loci searches the web and sends agents out"),
    ("voice", "Use the dictation of your system: it types into the prompt"),
    ("ultrareview", "Use `/code-review` and `/security-review`"),
    ("autofix-pr", "Ask for it in words: loci reads a pull request and its checks with `gh`"),
    ("install-github-app", "Use `loci -p` in a workflow (`docs/headless.md`)"),
    (
        "remote-control",
        "`/background` has the session go on without a terminal; use tmux and ssh to reach one",
    ),
    ("teleport", "`loci -r` goes on with any session of this machine"),
    ("chrome", "Add an MCP server that drives a browser: `loci mcp add`"),
    (
        "team-onboarding",
        "Put it into `CLAUDE.md`: `/init` begins one; memories can be shared (`docs/team-memory.md`)",
    ),
    ("upgrade", "There is no plan to buy; loci is paid with your key. A new release is a new binary"),
    ("usage-credits", "loci is paid with your key; `/usage` says what was used"),
    ("extra-usage", "loci is paid with your key; `/usage` says what was used"),
    (
        "run-skill-generator",
        "Write down how it is run in `.claude/skills/NAME/SKILL.md`; `/run` and `/verify` read it",
    ),
    (
        "privacy-settings",
        "loci sends what you say to the model and nothing elsewhere; `docs/settings.md` has the switches",
    ),
];

/// Commands of one vendor's services.
const VENDOR: &[&str] = &[
    "android",
    "app",
    "artifacts",
    "claude-api",
    "dataviz",
    "desktop",
    "ios",
    "mobile",
    "passes",
    "powerup",
    "radio",
    "remote-env",
    "stickers",
    "web-setup",
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

    /// All that a user of the reference may type and that is not here.
    const KNOWN: &[&str] = &[
        "advisor artifacts autofix-pr bug chrome claude-api color dataviz deep-research design-login desktop fast feedback",
        "heapdump ide import insights install-github-app install-slack-app mobile output-style passes powerup",
        "pr-comments privacy-settings radio release-notes remote-control remote-env schedule setup-bedrock setup-vertex",
        "stickers team-onboarding teleport terminal-setup ultraplan ultrareview upgrade usage-credits vim voice web-setup",
        "workflows android app ios extra-usage run-skill-generator",
    ];

    #[test]
    fn every_command_that_is_known_elsewhere_has_an_answer_once() {
        for name in KNOWN.iter().flat_map(|line| line.split(' ')) {
            assert!(not_offered(name).is_some(), "{name}");
        }
        for (name, instead) in INSTEAD {
            assert!(!VENDOR.contains(name), "{name} is there twice");
            assert!(instead.len() > 10, "{name}");
        }
    }

    #[test]
    fn offered_command_is_not_denied() {
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
