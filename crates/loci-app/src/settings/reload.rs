//! A session that follows its settings files while it runs.
//!
//! Rules: what restricts counts from the next call on, a new deny or ask rule, an allow rule or directory that is
//! gone. What loosens waits for the next prompt, since a command of this very turn may have written it; the user is
//! told. A file that cannot be read whole loosens nothing: one that is read while half written can only make the
//! session stricter, and the rules it had come back with the whole file.
//!
//! Variables: those of the settings count for our own code and for commands from the next call on, and keys got
//! before are got again. A new command that gives the key waits for the next prompt, too. Where requests go stays
//! as it was at the start.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loci_core::hooks::SettingsHooks;
use loci_core::permission::{PermissionLimits, Rule, Rulebook};
use loci_engine::{Ambient, ConfigFileChange, ReloadPoint, Reloaded, SettingsSource};
use loci_sandbox::Sandbox;
use loci_settings::{MergedSettings, Scope, Settings, Severity};
use loci_stdx::{Env, Store};
use loci_storage::config::{LoadedSettings, SettingsChange, SettingsWatch};
use serde_json::Value;

use crate::compose::child_env;
use crate::credentials::Credentials;
use crate::interface::status_line::{add_plugin_default, gate_commands};
use crate::permissions::rules::rulebook_from_settings;
use crate::plugins::RunPlugins;
use crate::settings::flags::FlagSettings;
use crate::settings::{HookGate, hooks_of, settings_warnings, with_settings_vars};

/// What a session was started with, as far as settings are concerned.
pub(crate) struct ReloadBaseline {
    /// The environment without variables of settings.
    pub(crate) inherited: Env,
    /// The environment with them.
    pub(crate) env: Env,
    /// The rules of the command line alone.
    pub(crate) base: Rulebook,
    /// Those with the settings.
    pub(crate) rulebook: Rulebook,
    /// Settings in force.
    pub(crate) settings: Value,
    pub(crate) credentials: Arc<Credentials>,
    /// Which hooks of settings the run has.
    pub(crate) hook_gate: HookGate,
    /// Whether the folder is trusted.
    pub(crate) is_trusted: bool,
    /// The plugins, which stay as they are until somebody wants them read anew.
    pub(crate) plugins: Arc<Store<RunPlugins>>,
    /// What was given beside the files, which may change.
    pub(crate) flag_settings: FlagSettings,
    /// The sandbox, which stays as it is.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
}

/// What plugins depend on.
const PLUGIN_KEYS: [&str; 2] = ["enabledPlugins", "pluginConfigs"];

/// Follows the settings files of a session.
pub(crate) struct SettingsFollower {
    watch: Arc<Mutex<SettingsWatch>>,
    start: ReloadBaseline,
    /// Settings in force, as they were last told.
    shown: Value,
    /// The rules of the last prompt.
    last: Rulebook,
    /// What was read, and allows more than counts before the next prompt.
    waiting: Option<LoadedSettings>,
    removed: RemovedDirectories,
    /// What settings in force say of hooks, and whether the folder was trusted.
    hook_settings: (Vec<Value>, bool),
    /// For which plugins it was told that they stay: once is enough until they are read anew.
    told_to_stay: Option<Arc<RunPlugins>>,
    /// Files that changed and that hooks are asked about.
    open: Vec<SettingsChange>,
}

impl SettingsFollower {
    /// Follows the files of `watch` from what they were at the start.
    pub(crate) fn new(watch: SettingsWatch, start: ReloadBaseline) -> Self {
        let watch = Arc::new(Mutex::new(watch));
        start.flag_settings.follow(&watch);
        Self {
            watch,
            shown: start.settings.clone(),
            last: start.rulebook.clone(),
            waiting: None,
            removed: RemovedDirectories { in_force: start.rulebook.dirs.clone(), removed: Vec::new() },
            hook_settings: (hook_keys(&start.settings), start.is_trusted),
            told_to_stay: None,
            open: Vec::new(),
            start,
        }
    }

    /// Returns what is to be looked at: files that changed, or what has waited for a prompt.
    fn look(&mut self, point: ReloadPoint) -> Option<LoadedSettings> {
        let changed = lock_watch(&self.watch).poll();
        match point {
            ReloadPoint::Prompt => changed.or_else(|| self.waiting.take()),
            ReloadPoint::Call => changed,
        }
    }

    /// Returns the hooks from now on, where they may change and did. They change between turns only: a file that is half
    /// written never takes one away. With it comes whether they wait.
    fn reload_hooks(
        &mut self,
        loaded: &LoadedSettings,
        now: &Value,
        may_loosen: bool,
    ) -> (Option<SettingsHooks>, bool) {
        let hook_settings = (hook_keys(now), loaded.trust.is_trusted);
        if hook_settings == self.hook_settings {
            return (None, false);
        }
        if !may_loosen {
            return (None, true);
        }
        self.hook_settings = hook_settings;
        let start = &self.start;
        (Some(hooks_of(loaded, &start.env, start.hook_gate, &start.plugins.get())), false)
    }

    /// Says what stays as it is though settings of it changed.
    fn what_stays(&mut self, now: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        let plugins = self.start.plugins.get();
        let is_told = self.told_to_stay.as_ref().is_some_and(|told| Arc::ptr_eq(told, &plugins));
        if !is_told && PLUGIN_KEYS.iter().any(|key| now.get(key) != self.shown.get(key)) {
            self.told_to_stay = Some(plugins);
            let text =
                "Settings changed: plugins stay as they are until the next session or `/reload-plugins`";
            warnings.push(text.to_owned());
        }
        if now.get("sandbox") != self.shown.get("sandbox") {
            warnings.push("Settings changed: the sandbox stays as it is until the next session".to_owned());
        }
        warnings
    }

    /// Returns the world around the session as settings have it now, and what people should know about it; keys got
    /// before are forgotten.
    fn ambient(&self, settings: &Settings, point: ReloadPoint) -> (Ambient, Option<String>) {
        let start = &self.start;
        let env = child_env::with_secrets_as_in(&start.env, with_settings_vars(&start.inherited, settings));
        let waits = start.credentials.reload(&env, settings, point);
        let text = "Settings changed: the new command of `apiKeyHelper` counts from the next prompt on";
        let child_env = start.plugins.get().child_env(&env);
        (Ambient { child_env, env, sandbox: start.sandbox.clone() }, waits.then(|| text.to_owned()))
    }
}

impl SettingsSource for SettingsFollower {
    fn reload(&mut self, current: &Rulebook, point: ReloadPoint) -> Option<Reloaded> {
        self.removed.follow(&current.dirs);
        if point == ReloadPoint::Prompt {
            self.start.credentials.activate_waiting_helper();
        }
        let loaded = self.look(point)?;
        let mut fresh = self.start.base.clone();
        let settings = loaded.settings();
        let of_rules =
            rulebook_from_settings(&self.start.env, &settings.permissions, Some(current.mode), &mut fresh);
        self.removed.leave_out(&mut fresh);
        let may_loosen = point == ReloadPoint::Prompt && is_whole(&loaded);
        let rulebook = match may_loosen {
            true => replaced(current, &self.last, &fresh),
            false => tightened(current, &self.last, &fresh),
        };
        let now = in_force(&loaded.merged, &self.start.plugins.get());
        let (hooks, do_hooks_wait) = self.reload_hooks(&loaded, &now, may_loosen);
        let waits = is_looser(&rulebook, &fresh) || do_hooks_wait;
        if may_loosen {
            self.last = fresh;
        }
        let is_new = now != self.shown;
        if rulebook == *current && !waits && !is_new && hooks.is_none() {
            return None;
        }
        let (ambient, of_keys) = is_new.then(|| self.ambient(&settings, point)).unzip();
        let mut warnings: Vec<String> = of_keys.flatten().into_iter().chain(of_rules).collect();
        if let Some(hooks) = &hooks {
            warnings.extend(hooks.problems.iter().map(|problem| format!("Hooks: {problem}")));
            warnings.push("Settings changed: the hooks are now those of the files".to_owned());
        }
        warnings.extend(settings_warnings(&loaded));
        warnings.extend(self.what_stays(&now));
        if waits || !says_same(&rulebook, current) {
            warnings.push(change_message(may_loosen, waits).to_owned());
        }
        self.shown.clone_from(&now);
        self.waiting = waits.then_some(loaded);
        self.removed.in_force.clone_from(&rulebook.dirs);
        Some(Reloaded { rulebook, settings: now, hooks: hooks.map(|hooks| hooks.config), ambient, warnings })
    }

    fn changes(&mut self) -> Vec<ConfigFileChange> {
        self.open = lock_watch(&self.watch).changes();
        let source = |scope| match scope {
            Scope::Project => "project_settings",
            Scope::Local => "local_settings",
            Scope::Managed => "policy_settings",
            _ => "user_settings",
        };
        let open = self.open.iter();
        open.map(|it| ConfigFileChange { source: source(it.scope), path: it.path.clone() }).collect()
    }

    fn decide(&mut self, taken: Vec<bool>) {
        let mut watch = lock_watch(&self.watch);
        for (change, is_taken) in self.open.drain(..).zip(taken) {
            watch.decide(change, is_taken);
        }
    }
}

fn lock_watch(watch: &Mutex<SettingsWatch>) -> MutexGuard<'_, SettingsWatch> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Directories that a person took out of the session: files that still name them do not bring them back.
struct RemovedDirectories {
    /// Those of the session when it was last looked at.
    in_force: Vec<PathBuf>,
    removed: Vec<PathBuf>,
}

impl RemovedDirectories {
    /// Takes up what was removed or added since the last look.
    fn follow(&mut self, current: &[PathBuf]) {
        let gone = self.in_force.iter().filter(|dir| !current.contains(dir));
        self.removed.extend(gone.cloned());
        self.removed.retain(|dir| !current.contains(dir));
        self.in_force = current.to_vec();
    }

    /// Leaves them out of what files say; where the session began stays.
    fn leave_out(&self, fresh: &mut Rulebook) {
        let start = fresh.dirs.first().cloned();
        fresh.dirs.retain(|dir| Some(dir) == start.as_ref() || !self.removed.contains(dir));
    }
}

/// Returns what settings in force say of hooks.
fn hook_keys(settings: &Value) -> Vec<Value> {
    const KEYS: [&str; 5] = [
        "hooks",
        "disableAllHooks",
        "allowManagedHooksOnly",
        "allowedHttpHookUrls",
        "httpHookAllowedEnvVars",
    ];
    KEYS.iter().map(|key| settings.get(key).cloned().unwrap_or_default()).collect()
}

/// Tells people which of the new rules count.
fn change_message(may_loosen: bool, waits: bool) -> &'static str {
    match (may_loosen, waits) {
        (true, _) => "Settings changed: the permission rules are now those of the files",
        (false, false) => "Settings changed: what restricts counts from now on",
        (false, true) => {
            "Settings changed: what restricts counts from now on, what allows more from the next prompt on"
        }
    }
}

/// Returns true when every file was read to its end.
fn is_whole(loaded: &LoadedSettings) -> bool {
    loaded.diagnostics.iter().all(|diagnostic| diagnostic.severity < Severity::Error)
}

/// Returns the settings in force as the app state holds them: variables by a mark that changes with their
/// value, for some are credentials; with what plugins set where settings say nothing.
pub(crate) fn in_force(merged: &MergedSettings, plugins: &RunPlugins) -> Value {
    let mut value = merged.to_value();
    gate_commands(&mut value, merged);
    add_plugin_default(&mut value, merged, plugins);
    if let Some(variables) = value.get_mut("env").and_then(Value::as_object_mut) {
        for value in variables.values_mut() {
            let mut hasher = DefaultHasher::new();
            value.as_str().hash(&mut hasher);
            *value = Value::from(format!("#{:016x}", hasher.finish()));
        }
    }
    value
}

/// Returns what the files say, with what this session granted and added. What it granted and saved is the file's from now
/// on: whoever takes it out there takes it back.
fn replaced(current: &Rulebook, last: &Rulebook, fresh: &Rulebook) -> Rulebook {
    let granted: Vec<Rule> = current
        .allow
        .iter()
        .filter(|rule| !fresh.allow.iter().any(|it| it.says_same(rule)))
        .cloned()
        .collect();
    let with_own = |rules: &[Rule], own: &[Rule]| -> Vec<Rule> {
        let own = own.iter().filter(|rule| rule.source().is_given());
        rules.iter().chain(own).cloned().collect()
    };
    let added = current.dirs.iter().filter(|dir| !last.dirs.contains(dir) && !fresh.dirs.contains(dir));
    Rulebook {
        allow: with_own(&fresh.allow, &granted),
        ask: with_own(&fresh.ask, &current.ask),
        deny: with_own(&fresh.deny, &current.deny),
        dirs: fresh.dirs.iter().chain(added).cloned().collect(),
        // Files stay out of reach until the session ends: what could be read was decided when it began.
        limits: PermissionLimits {
            denies_prompts: fresh.limits.denies_prompts,
            ..current.limits.and(fresh.limits)
        },
        ..current.clone()
    }
}

/// Returns `current` made stricter by `fresh`; what was allowed at the last prompt may come back.
fn tightened(current: &Rulebook, start: &Rulebook, fresh: &Rulebook) -> Rulebook {
    let has = |rules: &[Rule], rule: &Rule| rules.contains(rule);
    let grown = |rules: &[Rule], more: &[Rule]| -> Vec<Rule> {
        let new = more.iter().filter(|rule| !has(rules, rule)).cloned();
        rules.iter().cloned().chain(new).collect()
    };
    let granted = current.allow.iter().filter(|rule| rule.source().is_given());
    let kept = start.allow.iter().filter(|rule| has(&fresh.allow, rule));
    let added = current.dirs.iter().filter(|dir| !start.dirs.contains(dir));
    Rulebook {
        allow: kept.chain(granted).cloned().collect(),
        ask: grown(&current.ask, &fresh.ask),
        deny: grown(&current.deny, &fresh.deny),
        limits: current.limits.and(fresh.limits),
        dirs: start.dirs.iter().filter(|dir| fresh.dirs.contains(dir)).chain(added).cloned().collect(),
        ..current.clone()
    }
}

/// Tells whether the files would now allow more than is in force.
fn is_looser(book: &Rulebook, fresh: &Rulebook) -> bool {
    let has = |rules: &[Rule], rule: &Rule| rules.contains(rule);
    // What an answer granted and saved is in the file too by now, and is no news.
    let is_granted = |rule: &Rule| {
        let mut granted = book.allow.iter().filter(|it| it.source().is_given());
        granted.any(|it| it.text() == rule.text())
    };
    // What somebody refused for the session stays, whatever the files say.
    let is_of_files = |rule: &Rule| !rule.source().is_given();
    fresh.allow.iter().any(|rule| !has(&book.allow, rule) && !is_granted(rule))
        || book.deny.iter().any(|rule| is_of_files(rule) && !has(&fresh.deny, rule))
        || book.ask.iter().any(|rule| is_of_files(rule) && !has(&fresh.ask, rule))
        || fresh.dirs.iter().any(|dir| !book.dirs.contains(dir))
        || (book.limits.denies_prompts && !fresh.limits.denies_prompts)
}

/// Tells whether calls are judged alike by two books, wherever their rules come from.
fn says_same(one: &Rulebook, other: &Rulebook) -> bool {
    let all = |rules: &[Rule], others: &[Rule]| {
        rules.iter().all(|rule| others.iter().any(|other| other.says_same(rule)))
    };
    let alike = |rules: &[Rule], others: &[Rule]| all(rules, others) && all(others, rules);
    let lists = [(&one.allow, &other.allow), (&one.ask, &other.ask), (&one.deny, &other.deny)];
    lists.iter().all(|(rules, others)| alike(rules, others))
        && one.limits == other.limits
        && one.dirs.iter().all(|dir| other.dirs.contains(dir))
        && other.dirs.iter().all(|dir| one.dirs.contains(dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_core::permission::{RuleList, RuleOrigin, RuleSource, split_list};
    use loci_settings::Scope;

    fn book(allow: &str, ask: &str, deny: &str) -> Rulebook {
        let mut book = Rulebook::default();
        let origin = RuleOrigin::new(RuleSource::Settings(Scope::User), "/");
        for (list, texts) in [(RuleList::Allow, allow), (RuleList::Ask, ask), (RuleList::Deny, deny)] {
            for text in split_list(texts) {
                assert_eq!(book.add(list, text, &origin), None);
            }
        }
        book
    }

    /// Adds rules that a person gave while the session ran.
    fn with_own(mut book: Rulebook, list: RuleList, text: &str) -> Rulebook {
        assert_eq!(book.add(list, text, &RuleOrigin::new(RuleSource::Session, "/")), None);
        book
    }

    #[test]
    fn saved_grant_is_the_files_from_the_next_prompt_on() {
        let start = book("", "", "");
        let granted = with_own(start.clone(), RuleList::Allow, "Read");
        let saved = replaced(&granted, &start, &book("Read", "", ""));
        assert_eq!(show(&saved), "allow Read ask deny", "it stands there once");
        assert!(says_same(&granted, &saved), "nothing is new to anybody");
        assert_eq!(
            show(&replaced(&saved, &saved, &start)),
            "allow ask deny",
            "who takes it out takes it back"
        );
        let elsewhere = replaced(&granted, &start, &book("Edit", "", ""));
        assert_eq!(show(&elsewhere), "allow Edit Read ask deny", "what was not saved holds until the end");
    }

    #[test]
    fn directory_that_was_taken_out_of_the_session_stays_out() {
        let dirs = |names: &str| names.split_whitespace().map(PathBuf::from).collect::<Vec<_>>();
        let mut removed = RemovedDirectories { in_force: dirs("/p /shared"), removed: Vec::new() };
        let left = |removed: &RemovedDirectories, files: &str| {
            let mut fresh = Rulebook { dirs: dirs(files), ..Rulebook::default() };
            removed.leave_out(&mut fresh);
            fresh.dirs
        };
        removed.follow(&dirs("/p /shared"));
        assert_eq!(left(&removed, "/p /shared /new"), dirs("/p /shared /new"));
        removed.follow(&dirs("/p"));
        removed.follow(&dirs("/p"));
        assert_eq!(left(&removed, "/p /shared /new"), dirs("/p /new"));
        removed.follow(&dirs("/p /shared"));
        assert_eq!(left(&removed, "/p /shared"), dirs("/p /shared"), "it was added again");
    }

    #[test]
    fn files_that_were_out_of_reach_stay_so_and_prompts_come_back_with_the_next_one() {
        let all = PermissionLimits {
            blocks_reads_outside: true,
            blocks_writes_outside: true,
            denies_prompts: true,
        };
        let none = book("", "", "");
        let limited = Rulebook { limits: all, ..none.clone() };
        assert_eq!(tightened(&none, &none, &limited).limits, all, "they count from the next call on");
        assert_eq!(tightened(&limited, &limited, &none).limits, all);
        assert!(is_looser(&limited, &none) && !is_looser(&none, &limited));
        let replaced = replaced(&limited, &limited, &none).limits;
        assert_eq!(replaced, PermissionLimits { denies_prompts: false, ..all });
        assert!(!says_same(&none, &limited));
    }

    #[test]
    fn what_was_refused_for_the_session_waits_for_no_prompt() {
        let start = book("Read", "", "");
        let refused = with_own(start.clone(), RuleList::Deny, "Bash");
        assert!(!is_looser(&refused, &start), "it stays, whatever the files say");
        assert_eq!(show(&replaced(&refused, &start, &start)), "allow Read ask deny Bash");
    }

    fn show(book: &Rulebook) -> String {
        let list = |rules: &[Rule]| rules.iter().map(|rule| format!(" {}", rule.text())).collect::<String>();
        format!("allow{} ask{} deny{}", list(&book.allow), list(&book.ask), list(&book.deny))
    }

    #[test]
    fn changes_only_restrict_until_the_next_prompt() {
        let start = book("Read Edit", "Glob", "Bash");
        for (fresh, expected, is_looser_now) in [
            (book("Read Edit", "Glob", "Bash"), "allow Read Edit ask Glob deny Bash", false),
            (book("Read Edit Write", "Glob", "Bash"), "allow Read Edit ask Glob deny Bash", true),
            (book("Read", "Glob Grep", "Bash Edit"), "allow Read ask Glob Grep deny Bash Edit", false),
            (book("", "", ""), "allow ask Glob deny Bash", true),
        ] {
            let now = tightened(&start, &start, &fresh);
            assert_eq!(show(&now), expected);
            assert_eq!(is_looser(&now, &fresh), is_looser_now, "{expected}");
            // A file that was half written when it was read costs nothing once it is whole.
            assert!(show(&tightened(&now, &start, &start)).contains("allow Read Edit"));
            assert_eq!(show(&replaced(&now, &start, &fresh)), show(&fresh));
        }
    }
}
