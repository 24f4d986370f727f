//! Flags of the reference that have no meaning here, or next to none. Programs pass them, so they are accepted, and whoever
//! passes one that does nothing is told so on standard error, and why.

use clap::Args;

/// Flags without a meaning, as they were given.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ForeignFlags {
    #[arg(long, hide = true)]
    advisor: Option<String>,
    #[arg(long, hide = true)]
    chrome: bool,
    #[arg(long, hide = true)]
    no_chrome: bool,
    #[arg(long, hide = true)]
    ide: bool,
    #[arg(long, hide = true)]
    enable_auto_mode: bool,
    #[arg(long, hide = true, num_args = 1..)]
    channels: Vec<String>,
    #[arg(long, hide = true, num_args = 1..)]
    dangerously_load_development_channels: Vec<String>,
    #[arg(long, hide = true, alias = "rc", num_args = 0..=1, default_missing_value = "")]
    remote_control: Option<String>,
    #[arg(long, hide = true)]
    remote_control_session_name_prefix: Option<String>,
    #[arg(long, hide = true)]
    managed_settings: Option<String>,
    #[arg(long, hide = true)]
    project_config_root: Option<String>,
    #[arg(long, hide = true)]
    workload: Option<String>,
    #[arg(long, hide = true)]
    mcp_debug: bool,
    #[arg(long, hide = true)]
    teammate_mode: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    tmux: Option<String>,
    #[arg(long, hide = true, alias = "background")]
    bg: bool,
    #[arg(long, hide = true)]
    environment: Option<String>,
    #[arg(long = "ref", hide = true)]
    git_ref: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    exec: Option<String>,
    #[arg(long, hide = true, alias = "remote", num_args = 0..=1, default_missing_value = "")]
    cloud: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    teleport: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    from_pr: Option<String>,
    #[arg(long, hide = true)]
    desktop: bool,
}

impl ForeignFlags {
    /// Tells whoever passed them what they do not do.
    pub(crate) fn tell_notices(&self) {
        for notice in self.notices() {
            crate::print::print_message(&notice);
        }
    }

    /// Returns what whoever passed them should know, a line a flag.
    fn notices(&self) -> Vec<String> {
        let given = |text: &Option<String>| text.is_some();
        [
            ("--advisor", given(&self.advisor), "no second model is asked"),
            ("--chrome", self.chrome, "no browser is driven"),
            ("--ide", self.ide, "no editor is looked for"),
            ("--enable-auto-mode", self.enable_auto_mode, "choose it with --permission-mode auto"),
            ("--channels", !self.channels.is_empty(), "there are no channels"),
            (
                "--dangerously-load-development-channels",
                !self.dangerously_load_development_channels.is_empty(),
                "there are no channels",
            ),
            ("--remote-control", given(&self.remote_control), "sessions are not driven from elsewhere"),
            (
                "--remote-control-session-name-prefix",
                given(&self.remote_control_session_name_prefix),
                "sessions are not driven from elsewhere",
            ),
            ("--workload", given(&self.workload), "nothing is reported to anybody"),
            ("--mcp-debug", self.mcp_debug, "--debug=mcp says more"),
            ("--teammate-mode", given(&self.teammate_mode), "agents work inside this process"),
            (
                "--tmux",
                given(&self.tmux),
                "the working copy is used in this terminal; start loci in tmux yourself",
            ),
            ("--bg", self.bg, "the session runs here; put `&` or tmux around it"),
            ("--environment", given(&self.environment), "sessions run on this machine"),
            ("--ref", given(&self.git_ref), "the working directory is used as it is"),
        ]
        .into_iter()
        .filter(|(_, is_given, _)| *is_given)
        .map(|(flag, _, why)| format!("{flag} has no effect in loci: {why}"))
        .collect()
    }

    /// Returns why there can be no run: what would be left out keeps something from happening.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        if self.managed_settings.is_some() {
            return Some(
                "--managed-settings restricts a run in a way that cannot be kept here; put its rules into --settings or \
                 a managed settings file",
            );
        }
        let elsewhere = [
            (
                &self.exec,
                "--exec runs a command under a supervisor, which loci has not; run the command itself",
            ),
            (
                &self.cloud,
                "--cloud starts a session in the cloud, which loci cannot; leave it out to work here",
            ),
            (
                &self.teleport,
                "--teleport takes over a session of the cloud, which loci cannot read; `loci -r` lists those here",
            ),
            (
                &self.from_pr,
                "--from-pr needs sessions that are linked to pull requests, which loci does not do; `loci sessions search` \
                 finds a session by its words",
            ),
        ];
        if let Some((_, why)) = elsewhere.iter().find(|(given, _)| given.is_some()) {
            return Some(why);
        }
        if self.desktop {
            return Some(
                "--desktop goes on in an application that loci does not have; leave it out to work here",
            );
        }
        self.project_config_root.as_ref().map(|_| {
            "--project-config-root keeps a session from the configuration of its own working copy, which cannot be done \
             here; start it in the trusted checkout"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_without_meaning_is_named_and_what_restricts_is_refused() {
        let flags = ForeignFlags {
            chrome: true,
            no_chrome: true,
            advisor: Some("opus".to_owned()),
            ..ForeignFlags::default()
        };
        let notices = flags.notices();
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(notices[0].starts_with("--advisor has no effect") && notices[1].starts_with("--chrome"));
        assert_eq!(flags.refusal(), None);
        let refused = [
            ForeignFlags { managed_settings: Some("{}".to_owned()), ..flags.clone() },
            ForeignFlags { cloud: Some(String::new()), ..flags.clone() },
            ForeignFlags { from_pr: Some("7".to_owned()), ..flags.clone() },
            ForeignFlags { desktop: true, ..flags.clone() },
        ];
        assert!(refused.iter().all(|flags| flags.refusal().is_some()));
        let flags =
            ForeignFlags { bg: true, tmux: Some(String::new()), git_ref: Some("main".to_owned()), ..flags };
        assert_eq!((flags.notices().len(), flags.refusal()), (5, None));
    }
}
