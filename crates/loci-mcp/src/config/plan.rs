//! Which of the servers that were written down count, and why the others do not.
//!
//! An entry counts as a whole, by its name: the strongest scope wins and nothing is merged. Two names that would be one
//! for the model cannot both count. What an administrator's own file has is all there is. A project's server needs the
//! user's trust in the folder, and must not have been rejected; where somebody can be asked, it must have been approved.

use serde_json::Value;

use super::{ConfigProblem, Lookup, ServerConfig, ServerPolicy, ServerScope, ServerWay, parse_servers};
use crate::names::server_part;

/// What is known of servers.
pub struct PlanInputs<'a> {
    /// The `mcpServers` of each file or flag, with its scope and what to call it.
    pub written: Vec<(ServerScope, String, Value)>,
    /// Whether only the run's own count.
    pub is_strict: bool,
    /// What an administrator lets be used.
    pub policy: &'a ServerPolicy,
    /// What the user has said.
    pub approvals: &'a Approvals,
    /// Looks variables up, for a scope.
    pub vars: &'a dyn Fn(ServerScope, &str) -> Option<String>,
}

/// What the user has said of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approvals {
    /// Whether every server of a project is approved.
    pub approves_all: bool,
    /// Servers of the project that are approved.
    pub approved: Vec<String>,
    /// Servers of the project that are rejected.
    pub rejected: Vec<String>,
    /// Servers that are switched off in this project.
    pub disabled: Vec<String>,
    /// Whether what nobody has decided counts as approved: there is nobody to ask, and the folder is trusted.
    pub assumes_approval: bool,
}

/// Whether a server is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Used,
    /// It is switched off.
    Disabled,
    /// The user does not want it: it is the project's.
    Rejected,
    /// The user must approve of it first.
    NeedsApproval,
}

/// A server that is known, and whether it is used.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedServer {
    /// The server.
    pub config: ServerConfig,
    /// Whether it is used.
    pub standing: Standing,
}

/// The servers of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Those that are known, by name.
    pub servers: Vec<PlannedServer>,
    /// What is wrong, or does not count.
    pub problems: Vec<ConfigProblem>,
    /// What an administrator lets be used; it holds for servers that come later, too.
    pub policy: ServerPolicy,
    /// Whether the administrator's own file says which servers there are.
    pub is_managed: bool,
}

/// Decides which servers count.
pub fn plan_servers(inputs: PlanInputs<'_>) -> Plan {
    let PlanInputs { mut written, is_strict, policy, approvals, vars } = inputs;
    let is_managed = written.iter().any(|(scope, ..)| *scope == ServerScope::Managed);
    let mut plan = Plan { policy: policy.clone(), is_managed, ..Plan::default() };
    if is_managed {
        let others: Vec<&str> =
            written.iter().filter(|it| it.0 == ServerScope::Dynamic).map(|it| &*it.1).collect();
        if !others.is_empty() {
            let message =
                format!("the administrator's servers are all there is; {} is not used", others.join(", "));
            plan.problems.push(ConfigProblem::new("managed-mcp.json", "managed", message));
        }
        written.retain(|(scope, ..)| *scope == ServerScope::Managed);
    } else if is_strict {
        written.retain(|(scope, ..)| *scope == ServerScope::Dynamic);
    }
    // The strongest first; of two files of one scope, the first.
    written.sort_by_key(|(scope, ..)| std::cmp::Reverse(*scope));
    for (scope, source, servers) in &written {
        let lookup: &Lookup<'_> = &|name| vars(*scope, name);
        let (servers, problems) = parse_servers(servers, *scope, source, lookup);
        plan.problems.extend(problems);
        for config in servers {
            plan.take(config, policy, approvals);
        }
    }
    plan.servers.sort_by(|a, b| a.config.name.cmp(&b.config.name));
    plan
}

impl Plan {
    fn take(&mut self, config: ServerConfig, policy: &ServerPolicy, approvals: &Approvals) {
        if self.servers.iter().any(|it| it.config.name == config.name) {
            return;
        }
        // What a plugin brings and is there already, under whatever name, is the same server twice.
        let is_there = self.servers.iter().any(|it| is_same_endpoint(&it.config.way, &config.way));
        if config.scope == ServerScope::Plugin && is_there {
            return;
        }
        if let Some(why) = policy.refusal(&config) {
            self.problems.push(ConfigProblem::new(
                &config.name,
                "policy",
                format!("{why} ({})", config.source),
            ));
            return;
        }
        let part = server_part(&config.name);
        if let Some(at) = self.servers.iter().position(|it| server_part(&it.config.name) == part) {
            let held = &self.servers[at].config;
            // What others wrote does not take the place of the user's own server by a name that reads alike.
            if !held.scope.is_foreign() || config.scope.is_foreign() {
                return self.problems.push(conflict(&config, held));
            }
            let problem = conflict(held, &config);
            self.problems.push(problem);
            self.servers.remove(at);
        }
        let names = |list: &[String]| list.contains(&config.name);
        let standing = match config.scope {
            _ if names(&approvals.disabled) => Standing::Disabled,
            ServerScope::Project if names(&approvals.rejected) => Standing::Rejected,
            ServerScope::Project
                if !approvals.approves_all && !names(&approvals.approved) && !approvals.assumes_approval =>
            {
                Standing::NeedsApproval
            }
            _ => Standing::Used,
        };
        self.servers.push(PlannedServer { config, standing });
    }

    /// Returns the servers that are used.
    pub fn used(&self) -> impl Iterator<Item = &ServerConfig> {
        self.servers.iter().filter(|it| it.standing == Standing::Used).map(|it| &it.config)
    }
}

/// Says that a server is not used, since another has its name.
fn conflict(left_out: &ServerConfig, kept: &ServerConfig) -> ConfigProblem {
    let message = format!(
        "to the model its name would be the same as that of `{}` ({}); it is not used ({})",
        kept.name, kept.source, left_out.source
    );
    ConfigProblem::new(&left_out.name, "name_conflict", message)
}

/// Tells whether two entries lead to the same place: one address, or one command with its arguments.
fn is_same_endpoint(a: &ServerWay, b: &ServerWay) -> bool {
    match (a, b) {
        (
            ServerWay::Stdio { command, args, .. },
            ServerWay::Stdio { command: other, args: other_args, .. },
        ) => (command, args) == (other, other_args),
        (ServerWay::Remote(a), ServerWay::Remote(b)) => a.url == b.url,
        (ServerWay::Stdio { .. } | ServerWay::Remote(_) | ServerWay::Sdk, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ServerScope::{Dynamic, Local, Managed, Plugin, Project, User};
    use super::*;

    fn servers(names: &[&str]) -> Value {
        names.iter().map(|name| ((*name).to_owned(), json!({"command": name}))).collect()
    }

    /// Renders a plan: `name scope standing`, then the kinds of its problems.
    fn check(written: &[(ServerScope, &[&str])], is_strict: bool, approvals: &Approvals, expected: &[&str]) {
        let written =
            written.iter().map(|(scope, names)| (*scope, scope.name().to_owned(), servers(names))).collect();
        let policy = ServerPolicy::default();
        let plan =
            plan_servers(PlanInputs { written, is_strict, policy: &policy, approvals, vars: &|_, _| None });
        let rows = plan
            .servers
            .iter()
            .map(|it| format!("{} {} {:?}", it.config.name, it.config.scope.name(), it.standing));
        let problems = plan.problems.iter().map(|it| format!("! {} {}", it.name, it.kind));
        assert_eq!(rows.chain(problems).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn strongest_scope_wins_by_name() {
        let all = Approvals { approves_all: true, ..Approvals::default() };
        check(
            &[
                (User, &["a", "b", "c", "d"]),
                (Plugin, &["e", "a"]),
                (Project, &["b", "c", "d"]),
                (Local, &["c", "d"]),
                (Dynamic, &["d"]),
            ],
            false,
            &all,
            &["a user Used", "b project Used", "c local Used", "d dynamic Used", "e plugin Used"],
        );
        check(&[(User, &["a"]), (Dynamic, &["d"])], true, &all, &["d dynamic Used"]);
        check(
            &[(User, &["a"]), (Dynamic, &["d"]), (Managed, &["m"])],
            false,
            &all,
            &["m enterprise Used", "! managed-mcp.json managed"],
        );
        check(
            &[(User, &["a.b"]), (Local, &["a_b"])],
            false,
            &all,
            &["a_b local Used", "! a.b name_conflict"],
        );
    }

    #[test]
    fn server_of_others_does_not_take_the_place_of_the_users_own_by_a_name_that_reads_alike() {
        let all = Approvals { approves_all: true, ..Approvals::default() };
        check(
            &[(User, &["a_b"]), (Project, &["a.b"])],
            false,
            &all,
            &["a_b user Used", "! a.b name_conflict"],
        );
        check(
            &[(Plugin, &["a.b"]), (Project, &["a_b"])],
            false,
            &all,
            &["a_b project Used", "! a.b name_conflict"],
        );
        // These names do not read alike.
        check(&[(User, &["ok"]), (Project, &["ok."])], false, &all, &["ok user Used", "ok. project Used"]);
        check(
            &[(User, &["ok_"]), (Project, &["ok/"])],
            false,
            &all,
            &["ok_ user Used", "! ok/ name_conflict"],
        );
    }

    #[test]
    fn server_of_a_plugin_that_is_there_already_is_not_there_twice() {
        let command = |args: &[&str]| json!({"command": "npx", "args": args});
        let at = |url: &str| json!({"type": "http", "url": url});
        let written = vec![
            (
                Plugin,
                "p".to_owned(),
                json!({"p1": command(&["a"]), "p2": command(&["b"]), "p3": at("https://a/x")}),
            ),
            (Plugin, "q".to_owned(), json!({"q1": command(&["b"]), "q2": at("https://a/y")})),
            (
                User,
                "u".to_owned(),
                json!({"mine": command(&["a"]), "web": at("https://a/x"), "web2": at("https://a/x")}),
            ),
        ];
        let (policy, approvals) = (ServerPolicy::default(), Approvals::default());
        let plan = plan_servers(PlanInputs {
            written,
            is_strict: false,
            policy: &policy,
            approvals: &approvals,
            vars: &|_, _| None,
        });
        let names: Vec<&str> = plan.used().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["mine", "p2", "q2", "web", "web2"]);
        assert_eq!(plan.problems, []);
    }

    #[test]
    fn servers_of_a_project_need_approval_and_a_rejection_always_counts() {
        let written: &[(ServerScope, &[&str])] = &[(Project, &["a", "b", "c"]), (User, &["u"])];
        let mut approvals = Approvals {
            approved: vec!["a".to_owned(), "b".to_owned()],
            rejected: vec!["b".to_owned()],
            disabled: vec!["u".to_owned()],
            ..Approvals::default()
        };
        let [a, b, u] = ["a project Used", "b project Rejected", "u user Disabled"];
        check(written, false, &approvals, &[a, b, "c project NeedsApproval", u]);
        approvals.assumes_approval = true;
        check(written, false, &approvals, &[a, b, "c project Used", u]);
        approvals.approves_all = true;
        check(written, false, &approvals, &[a, b, "c project Used", u]);
    }
}
