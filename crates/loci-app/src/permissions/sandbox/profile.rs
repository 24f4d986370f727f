//! Sandboxes of single programs: MCP servers and hooks that ask for one beside their command.
//!
//! They do not depend on whether commands of the session are sandboxed, and are never weaker than asked for: where the
//! machine cannot hold a program fully, it is not run. Such a program writes into a temporary directory of its own and
//! where its profile says, less what settings deny; it reads what sandboxed commands may read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use loci_core::ids::SessionId;
use loci_core::path::{expand_home, normalise};
use loci_core::sandbox_profile::{ProfileNetwork, SandboxProfile};
use loci_mcp::SandboxMaker;
use loci_sandbox::{Level, LevelCheck, Sandbox};
use loci_settings::{NetworkSettings, Origin, PermissionSettings, Scope, Settings, Sourced};
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_tools::real_path;

use super::network::SessionNetwork;
use super::{SandboxWorld, check_level, sandbox};
use crate::settings::RunSettings;

/// What sandboxes of single programs are made of.
struct ProfileWorld {
    env: Env,
    config_home: PathBuf,
    /// Where temporary directories are made.
    scratch: Option<PathBuf>,
    settings: Settings,
    /// What this machine can do, once somebody asked.
    found: OnceLock<LevelCheck>,
}

/// Returns what makes sandboxes of single programs for a session; nothing is tried before one is wanted.
pub fn sandbox_maker(run: &RunSettings, session: &str) -> SandboxMaker {
    sandbox_maker_in(&run.env, &run.home, &run.settings, session)
}

/// The same, where there is no run.
pub fn sandbox_maker_in(env: &Env, home: &ConfigHome, settings: &Settings, session: &str) -> SandboxMaker {
    // Whoever looks at servers without a session has a place of their own.
    let id = SessionId::parse(session).or_else(|_| SessionId::parse(&env.random.uuid_v4().to_string()));
    let world = ProfileWorld {
        scratch: id.ok().map(|id| home.session_tmp(&env.cwd, &id).sandbox_dir()),
        env: env.clone(),
        config_home: home.root().to_owned(),
        settings: settings.clone(),
        found: OnceLock::new(),
    };
    Arc::new(move |profile, cwd| world.make(profile, cwd).map(Arc::new))
}

impl ProfileWorld {
    fn make(&self, profile: &SandboxProfile, cwd: &Path) -> Result<Sandbox, String> {
        let found = self.found.get_or_init(|| check_level(&self.settings.sandbox));
        if found.level < Level::Full {
            let problem = found.problem().unwrap_or_else(|| "its layers do not work together".to_owned());
            return Err(format!(
                "the sandbox that it asks for cannot be had here: {problem}. See `loci sandbox check`"
            ));
        }
        // A directory of its own: what sandboxed commands write is not its, and the other way round.
        let scratch = self.scratch.as_ref().ok_or("there is no place for its temporary directory")?;
        let scratch = scratch.with_file_name(format!("sandbox-{}", self.env.random.alphanumeric(8)));
        let world = SandboxWorld {
            env: &self.env,
            config_home: self.config_home.clone(),
            scratch,
            dirs: vec![cwd.to_owned()],
        };
        let (mut made, _) = sandbox(&world, &self.settings, found);
        let paths = made.paths.take();
        let mut paths = paths.unwrap_or_else(|| super::path_settings(&world, &self.settings).0);
        paths.allow_write =
            profile.allow_write.iter().map(|text| self.writable(text, cwd)).collect::<Result<_, _>>()?;
        made.paths = Some(paths);
        self.open_network(&mut made, &profile.network)?;
        Ok(made)
    }

    fn writable(&self, text: &str, cwd: &Path) -> Result<PathBuf, String> {
        if text.contains(['*', '?', '[']) {
            return Err(format!("`allowWrite` of its sandbox takes no patterns: `{text}`"));
        }
        let path = real_path(&normalise(cwd, &expand_home(&self.env.home, text)));
        match path.parent() {
            Some(_) => Ok(path),
            None => Err("its sandbox may not write everywhere".to_owned()),
        }
    }

    /// Lets it reach what its profile names and settings do not deny; under an administrator's list, what that names.
    fn open_network(&self, made: &mut Sandbox, wanted: &ProfileNetwork) -> Result<(), String> {
        let hosts = match wanted {
            ProfileNetwork::Closed => {
                (made.connections, made.egress) = (None, None);
                return Ok(());
            }
            ProfileNetwork::Open => vec!["*".to_owned()],
            ProfileNetwork::Hosts(hosts) => hosts.clone(),
        };
        let own = |text: String| Sourced { text, origin: Origin::new(Scope::User, "sandbox"), line: 1 };
        let set = &self.settings.sandbox.network;
        let allowed = match set.managed_only {
            true => set.allowed.clone(),
            false => hosts.into_iter().map(own).collect(),
        };
        let network = NetworkSettings { allowed, is_strict: true, ..set.clone() };
        let permissions = PermissionSettings { allow: Vec::new(), ..self.settings.permissions.clone() };
        let network = SessionNetwork::new(&self.env, &network, &permissions);
        // What settings have wrong is told with the session's own sandbox; what the profile has wrong is not run.
        if let Some(wrong) = network.warnings.iter().find(|it| it.starts_with("Settings: sandbox:")) {
            return Err(format!("`network` of its sandbox: {wrong}"));
        }
        made.egress = Some(network.egress);
        made.connections = Some(network.connections);
        Ok(())
    }
}
