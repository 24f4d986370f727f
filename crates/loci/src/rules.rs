//! Permission rules out of settings files, as the permission engine holds them.
//!
//! A rule that the engine cannot check is never silently without effect: one that allows is left out and said;
//! one that denies or asks is widened to its whole tool and said.

use std::collections::BTreeMap;

use loci_core::permission::{BadRule, Mode, Rule, RuleSource, Rulebook};
use loci_core::settings::{PermissionSettings, Scope, Sourced};
use loci_stdx::Env;

/// Adds the rules, directories and mode of the settings to a rulebook that has those of the command line.
/// `chosen` is the mode the command line asks for. Returns what the user should know.
pub(crate) fn rulebook_from_settings(
    env: &Env,
    settings: &PermissionSettings,
    chosen: Option<Mode>,
    book: &mut Rulebook,
) -> Vec<String> {
    let mut notes = Vec::new();
    if settings.managed_rules_only {
        book.allow.clear();
    }
    let is_allowed = |rule: &&Sourced| !settings.managed_rules_only || rule.origin.scope == Scope::Managed;
    for rule in settings.allow.iter().filter(is_allowed) {
        match parse(rule) {
            Ok(rule) => book.allow.push(rule),
            Err(bad) => notes.push(format!("Settings: {}: {bad}; ignored", place(rule))),
        }
    }
    book.deny.extend(restrictions(&settings.deny, "denied", &mut notes));
    book.ask.extend(restrictions(&settings.ask, "asked about", &mut notes));
    for dir in &settings.additional_directories {
        let path = env.cwd.join(loci_core::path::expand_home(&env.home, &dir.text));
        match path.canonicalize() {
            Ok(real) if real.is_dir() && !book.dirs.contains(&real) => book.dirs.push(real),
            Ok(real) if real.is_dir() => {}
            _ => notes.push(format!(
                "Settings: {}: no such directory: `{}`; ignored",
                place(dir),
                path.display()
            )),
        }
    }
    book.mode = match (chosen, &settings.default_mode) {
        (Some(mode), _) => mode,
        (None, Some(wish)) => wish.text.parse().unwrap_or_else(|_| {
            notes.push(format!(
                "Settings: {}: this version has no mode `{}`; the usual one is used",
                place(wish),
                wish.text
            ));
            Mode::default()
        }),
        (None, None) => Mode::default(),
    };
    if settings.is_bypass_disabled && book.mode == Mode::BypassPermissions {
        notes.push("Settings: bypassPermissions is disabled; the usual mode is used".to_owned());
        book.mode = Mode::default();
    }
    notes
}

fn parse(rule: &Sourced) -> Result<Rule, BadRule> {
    Rule::parse(&rule.text, RuleSource::Settings(rule.origin.scope))
}

fn place(rule: &Sourced) -> String {
    format!("{}:{}", rule.origin.name, rule.line)
}

/// Makes rules that restrict; what cannot be checked restricts its whole tool.
fn restrictions(rules: &[Sourced], verb: &str, notes: &mut Vec<String>) -> Vec<Rule> {
    let mut out = Vec::new();
    let mut widened: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for rule in rules {
        if let Ok(rule) = parse(rule) {
            out.push(rule);
            continue;
        }
        let tool = rule.text.split('(').next().unwrap_or_default().trim();
        match Rule::parse(tool, RuleSource::Settings(rule.origin.scope)) {
            Ok(whole) => {
                out.push(whole);
                widened.entry(tool.to_owned()).or_default().push(format!("`{}`", rule.text));
            }
            Err(bad) => notes.push(format!("Settings: {}: {bad}; ignored", place(rule))),
        }
    }
    notes.extend(widened.into_iter().map(|(tool, rules)| {
        format!("Settings: this version cannot check {} yet, so all of {tool} is {verb}", rules.join(", "))
    }));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_core::settings::Origin;

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
        let notes = rulebook_from_settings(&env, settings, chosen, &mut book);
        let show = |rules: &[Rule]| rules.iter().map(|rule| format!(" {}", rule.text())).collect::<String>();
        let shown = format!(
            "{} allow{} ask{} deny{}",
            book.mode,
            show(&book.allow),
            show(&book.ask),
            show(&book.deny)
        );
        assert_eq!(shown, expected);
        assert_eq!(notes, said);
    }

    #[test]
    fn every_rule_has_its_effect_or_is_named() {
        let settings = PermissionSettings {
            allow: sourced(Scope::User, &["Bash(git *)", "Read(/x/**)", "Bash("]),
            ask: sourced(Scope::Project, &["Edit"]),
            deny: sourced(Scope::User, &["Bash(rm *)", "Read(./.env)", "Read(./secrets/**)", "Bash(", "(x)"]),
            additional_directories: sourced(Scope::User, &["/nowhere/at/all"]),
            ..PermissionSettings::default()
        };
        check(
            &settings,
            None,
            "default allow Bash(git *) ask Edit deny Bash(rm *) Read Read Bash",
            &[
                "Settings: s.json:3: This version cannot check specifiers of `Read` yet: `Read(/x/**)` (use the tool's bare name); ignored",
                "Settings: s.json:3: Not a permission rule: `Bash(` (write `Tool` or `Tool(specifier)`); ignored",
                "Settings: s.json:3: Not a permission rule: `` (write `Tool` or `Tool(specifier)`); ignored",
                "Settings: this version cannot check `Bash(` yet, so all of Bash is denied",
                "Settings: this version cannot check `Read(./.env)`, `Read(./secrets/**)` yet, so all of Read is denied",
                "Settings: s.json:3: no such directory: `/nowhere/at/all`; ignored",
            ],
        );
    }

    #[test]
    fn the_administrator_can_be_the_only_one_who_allows() {
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
        let no_auto = "Settings: s.json:3: this version has no mode `auto`; the usual one is used";
        check(&mode("auto"), None, "default allow ask deny", &[no_auto]);
        let disabled = PermissionSettings { is_bypass_disabled: true, ..mode("plan") };
        let said = "Settings: bypassPermissions is disabled; the usual mode is used";
        check(&disabled, Some(Mode::BypassPermissions), "default allow ask deny", &[said]);
    }
}
