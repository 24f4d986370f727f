//! Permission rules out of settings files and flags, as the permission engine holds them.
//!
//! A rule that cannot be read is never silently without effect: one that allows is left out and said; one that
//! denies or asks is held to as broadly as it can be read, and said.

use std::path::{Path, PathBuf};

use loci_core::permission::{Mode, PermissionLimits, RuleList, RuleOrigin, RuleSource, Rulebook, split_list};
use loci_settings::{Origin, PermissionSettings, Scope, Sourced};
use loci_stdx::Env;

/// Adds the rules of `--allowedTools` or `--disallowedTools`. Returns what the user should know.
pub fn add_flag_rules(env: &Env, list: RuleList, texts: &[String], book: &mut Rulebook) -> Vec<String> {
    let origin = RuleOrigin::new(RuleSource::CommandLine, env.cwd.as_path());
    let rules = texts.iter().flat_map(|text| split_list(text));
    rules.filter_map(|rule| book.add(list, rule, &origin)).map(|bad| format!("Command line: {bad}")).collect()
}

/// Adds the rules, directories and mode of the settings to a rulebook that has those of the command line.
/// `chosen` is the mode the command line asks for. Returns what the user should know.
pub fn rulebook_from_settings(
    env: &Env,
    settings: &PermissionSettings,
    chosen: Option<Mode>,
    book: &mut Rulebook,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if settings.managed_rules_only {
        book.allow.clear();
    }
    let is_allowed = |rule: &&Sourced| !settings.managed_rules_only || rule.origin.scope == Scope::Managed;
    for rule in settings.allow.iter().filter(is_allowed) {
        warnings.extend(add(env, RuleList::Allow, rule, book));
    }
    for rule in &settings.deny {
        warnings.extend(add(env, RuleList::Deny, rule, book));
    }
    for rule in &settings.ask {
        warnings.extend(add(env, RuleList::Ask, rule, book));
    }
    for dir in &settings.additional_directories {
        let path = env.cwd.join(loci_core::path::expand_home(&env.home, &dir.text));
        match path.canonicalize() {
            Ok(real) if real.is_dir() && !book.dirs.contains(&real) => book.dirs.push(real),
            Ok(real) if real.is_dir() => {}
            _ => warnings.push(format!(
                "Settings: {}: no such directory: `{}`; ignored",
                place(dir),
                path.display()
            )),
        }
    }
    book.limits = PermissionLimits {
        blocks_reads_outside: settings.blocks_reads_outside,
        blocks_writes_outside: settings.blocks_writes_outside,
        denies_prompts: settings.denies_prompts,
    };
    book.mode = match (chosen, &settings.default_mode) {
        (Some(mode), _) => mode,
        (None, Some(wish)) => wish.text.parse().unwrap_or_else(|_| {
            warnings.push(format!(
                "Settings: {}: this version has no mode `{}`; the usual one is used",
                place(wish),
                wish.text
            ));
            Mode::default()
        }),
        (None, None) => Mode::default(),
    };
    if settings.is_bypass_disabled && book.mode == Mode::BypassPermissions {
        warnings.push("Settings: bypassPermissions is disabled; the usual mode is used".to_owned());
        book.mode = Mode::default();
    }
    if settings.is_auto_disabled && book.mode == Mode::Auto {
        warnings.push("Settings: auto is disabled; the usual mode is used".to_owned());
        book.mode = Mode::default();
    }
    warnings
}

fn add(env: &Env, list: RuleList, rule: &Sourced, book: &mut Rulebook) -> Option<String> {
    let origin = RuleOrigin::new(RuleSource::Settings(rule.origin.scope), anchor(env, &rule.origin))
        .at(rule.origin.name.clone(), rule.line);
    book.add(list, &rule.text, &origin).map(|bad| format!("Settings: {}: {bad}", place(rule)))
}

/// Returns where `/path` patterns of a settings file start.
pub(crate) fn anchor(env: &Env, origin: &Origin) -> PathBuf {
    let file = Path::new(origin.name.as_ref());
    match origin.scope {
        Scope::User => match env.vars.non_empty("CLAUDE_CONFIG_DIR") {
            Some(dir) => PathBuf::from(dir),
            None => env.home.join(".claude"),
        },
        Scope::CommandLine if file.is_absolute() => file.parent().unwrap_or(&env.cwd).to_path_buf(),
        Scope::Project | Scope::Local | Scope::CommandLine | Scope::Managed => env.cwd.clone(),
    }
}

fn place(rule: &Sourced) -> String {
    format!("{}:{}", rule.origin.name, rule.line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_core::permission::Rule;

    fn sourced(scope: Scope, texts: &[&str]) -> Vec<Sourced> {
        let origin = Origin::new(scope, "s.json");
        texts
            .iter()
            .map(|text| Sourced { text: (*text).to_owned(), origin: origin.clone(), line: 3 })
            .collect()
    }

    fn check(settings: &PermissionSettings, chosen: Option<Mode>, expected: &str, said: &[&str]) {
        let env = Env::for_test("/home/dev", "/");
        let mut book = Rulebook::default();
        let warnings = rulebook_from_settings(&env, settings, chosen, &mut book);
        let show = |rules: &[Rule]| rules.iter().map(|rule| format!(" {}", rule.text())).collect::<String>();
        let shown = format!(
            "{} allow{} ask{} deny{}",
            book.mode,
            show(&book.allow),
            show(&book.ask),
            show(&book.deny)
        );
        assert_eq!(shown, expected);
        assert_eq!(warnings, said);
    }

    #[test]
    fn every_rule_is_applied_or_reported() {
        let settings = PermissionSettings {
            allow: sourced(Scope::User, &["Bash(git *)", "Read(/x/**)", "Bash("]),
            ask: sourced(Scope::Project, &["Edit"]),
            deny: sourced(Scope::User, &["Bash(rm *)", "Read(./.env)", "Bash(", "(x)"]),
            additional_directories: sourced(Scope::User, &["/nowhere/at/all"]),
            ..PermissionSettings::default()
        };
        check(
            &settings,
            None,
            "default allow Bash(git *) Read(/x/**) ask Edit deny Bash(rm *) Read(./.env) Bash(",
            &[
                "Settings: s.json:3: Not a permission rule: `Bash(` (write `Tool` or `Tool(specifier)`); ignored",
                "Settings: s.json:3: Not a permission rule: `Bash(` (write `Tool` or `Tool(specifier)`); enforced for every call it may mean",
                "Settings: s.json:3: Not a permission rule: `(x)` (write `Tool` or `Tool(specifier)`); ignored",
                "Settings: s.json:3: no such directory: `/nowhere/at/all`; ignored",
            ],
        );
    }

    #[test]
    fn every_tool_there_is_can_be_denied_and_several_rules_in_one_are_each_enforced() {
        let toolbox = loci_tools::Toolbox::builtin();
        let names: Vec<String> = toolbox.descriptors().map(|tool| tool.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let denying = |texts: &[&str]| PermissionSettings {
            deny: sourced(Scope::User, texts),
            ..PermissionSettings::default()
        };
        check(&denying(&names), None, &format!("default allow ask deny {}", names.join(" ")), &[]);
        check(
            &denying(&["Bash, Edit(src/**)", "Bsh"]),
            None,
            "default allow ask deny Bash Edit(src/**) Bsh",
            &[
                "Settings: s.json:3: `Bash, Edit(src/**)` is several rules; each is enforced (write a text for each)",
                "Settings: s.json:3: `Bsh`: no tool is called `Bsh`, so nothing is restricted by it",
            ],
        );
    }

    #[test]
    fn managed_rules_only_drops_other_allow_rules() {
        let settings = PermissionSettings {
            allow: [sourced(Scope::User, &["Read"]), sourced(Scope::Managed, &["Glob"])].concat(),
            deny: sourced(Scope::User, &["Bash"]),
            managed_rules_only: true,
            ..PermissionSettings::default()
        };
        check(&settings, None, "default allow Glob ask deny Bash", &[]);
    }

    #[test]
    fn the_command_line_chooses_the_mode_over_the_settings() {
        let mode = |text: &str| PermissionSettings {
            default_mode: sourced(Scope::User, &[text]).pop(),
            ..PermissionSettings::default()
        };
        check(&mode("acceptEdits"), None, "acceptEdits allow ask deny", &[]);
        check(&mode("acceptEdits"), Some(Mode::Plan), "plan allow ask deny", &[]);
        check(&mode("auto"), None, "auto allow ask deny", &[]);
        let no_such = "Settings: s.json:3: this version has no mode `yolo`; the usual one is used";
        check(&mode("yolo"), None, "default allow ask deny", &[no_such]);
        let disabled = PermissionSettings { is_bypass_disabled: true, ..mode("plan") };
        let said = "Settings: bypassPermissions is disabled; the usual mode is used";
        check(&disabled, Some(Mode::BypassPermissions), "default allow ask deny", &[said]);
        let disabled = PermissionSettings { is_auto_disabled: true, ..mode("auto") };
        check(
            &disabled,
            None,
            "default allow ask deny",
            &["Settings: auto is disabled; the usual mode is used"],
        );
    }
}
