//! Logins at the servers of a run: begun, answered and ended by name.
//!
//! A login that waits for a person is a task of its own, bounded in time; another one for the same server takes its place.
//! Who comes back to our port and who gives us the address they came back with are heard alike. Where the server is in use,
//! it is connected to anew.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Url;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::auth::authorization::AnswerProblem;
use crate::auth::login::{self, LoginAttempt, Logout};
use crate::auth::scopes::covers;
use crate::auth::{LoginTarget, no_login_reason};
use crate::config::ServerWay;
use crate::names::brief;
use crate::opening::login_target;
use crate::server::{Server, ServerStatus};
use crate::servers::{Servers, ServersShared, unknown};

/// How long a person has.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

type Outcome = Result<(), String>;

/// What is wanted of a login.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginOptions {
    /// Whether a server that is connected, and needs nothing more, is left as it is.
    pub only_if_needed: bool,
    /// Where a person comes back to; a port of this machine unless it is said.
    pub redirect_uri: Option<String>,
}

/// A login that waits for a person.
pub struct LoginPrompt {
    /// The page that they are to visit.
    pub page: String,
    /// The port that they come back to, if it is one of ours.
    pub port: Option<u16>,
    outcome: watch::Receiver<Option<Outcome>>,
}

impl LoginPrompt {
    /// Waits for the end of it.
    pub async fn outcome(&mut self) -> Result<(), String> {
        match self.outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
            Err(_) => Err("another login took its place".to_owned()),
        }
    }
}

/// The way to a login that waits.
pub(crate) struct WaitingLogin {
    answers: mpsc::Sender<(Url, oneshot::Sender<Outcome>)>,
    task: JoinHandle<()>,
}

impl Drop for WaitingLogin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Servers {
    /// Begins a login at a server; none when none is needed. The error says why there can be none.
    pub async fn begin_login(&self, name: &str, wish: LoginOptions) -> Result<Option<LoginPrompt>, String> {
        let (server, target) = self.login_target(name)?;
        if wish.only_if_needed && server.status() == ServerStatus::Connected && !needs_more(&target).await? {
            return Ok(None);
        }
        self.give_up_login(name).await;
        if server.status() == ServerStatus::Pending {
            // What it wants it says when it is spoken to.
            server.start(&self.shared).await;
            let (started, limit) = (Arc::clone(&server), self.shared.world.limits.start);
            self.shared.wait_until(limit, move || started.status() != ServerStatus::Pending).await;
        }
        let attempt = login::begin(target, server.challenge().as_deref(), wish.redirect_uri).await?;
        let (page, port) = (attempt.page.to_string(), attempt.loopback.as_ref().map(|it| it.port));
        let (answers, receiver) = mpsc::channel(1);
        let (told, outcome) = watch::channel(None);
        let (name, shared) = (name.to_owned(), Arc::clone(&self.shared));
        let waited = name.clone();
        let task = tokio::spawn(async move {
            let ended = tokio::time::timeout(PATIENCE, wait_for_answer(&attempt, receiver)).await;
            let ended = ended.unwrap_or_else(|_| Err("nobody logged in within ten minutes".to_owned()));
            drop(attempt);
            shared.notice(match &ended {
                Ok(()) => format!("Logged in at the MCP server `{name}`"),
                Err(why) => format!("The login at the MCP server `{name}` failed: {why}"),
            });
            if ended.is_ok() {
                reconnect(&server, &shared).await;
            }
            told.send_replace(Some(ended));
        });
        let waiting = WaitingLogin { answers, task };
        self.shared.waiting_logins().insert(waited, waiting);
        Ok(Some(LoginPrompt { page, port, outcome }))
    }

    /// Takes the address that a person came back with, for a login that waits; the error says what is wrong with it.
    pub async fn answer_login(&self, name: &str, address: &str) -> Result<(), String> {
        let url = Url::parse(address.trim())
            .map_err(|_| "Not an address: give the whole of what the browser shows".to_owned())?;
        let answers = self.shared.waiting_logins().get(name).map(|waiting| waiting.answers.clone());
        let none = || format!("No login at the MCP server `{}` waits for an answer", brief(name));
        let (reply, outcome) = oneshot::channel();
        answers.ok_or_else(none)?.send((url, reply)).await.map_err(|_| none())?;
        outcome.await.map_err(|_| none())?
    }

    /// Ends the login at a server.
    pub async fn logout(&self, name: &str) -> Result<Logout, String> {
        let (server, target) = self.login_target(name)?;
        self.give_up_login(name).await;
        let ended = login::logout(&target).await?;
        reconnect(&server, &self.shared).await;
        Ok(ended)
    }

    /// Ends a login that waits: it holds the port that another may need.
    async fn give_up_login(&self, name: &str) {
        let waiting = self.shared.waiting_logins().remove(name);
        if let Some(mut waiting) = waiting {
            waiting.task.abort();
            // It was stopped; there is nothing to know of how it ended.
            drop((&mut waiting.task).await);
        }
    }

    fn login_target(&self, name: &str) -> Result<(Arc<Server>, LoginTarget), String> {
        let server = self.shared.find(name).ok_or_else(|| unknown(name))?;
        let ServerWay::Remote(remote) = &server.config.way else {
            return Err(format!("The MCP server `{name}` has no address, so there is nothing to log in at"));
        };
        if let Some(why) = no_login_reason(remote) {
            return Err(format!("One cannot log in at the MCP server `{name}`: {why}"));
        }
        let target = login_target(&server.config, remote, &self.shared);
        let target = target.ok_or_else(|| "Logins are not kept in this run".to_owned())?;
        Ok((server, target))
    }
}

impl ServersShared {
    fn waiting_logins(&self) -> MutexGuard<'_, std::collections::HashMap<String, WaitingLogin>> {
        self.waiting_logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether a call was refused for more than the login allows.
async fn needs_more(target: &LoginTarget) -> Result<bool, String> {
    let login = target.load().await?;
    Ok(login.required_scope.is_some_and(|required| !covers(login.scope.as_deref(), &required)))
}

/// Connects to a server anew that is in use.
async fn reconnect(server: &Arc<Server>, shared: &Arc<ServersShared>) {
    match server.status() {
        ServerStatus::Connected | ServerStatus::Failed | ServerStatus::NeedsAuth => {
            server.start(shared).await;
        }
        ServerStatus::Pending | ServerStatus::Disabled => {}
    }
}

/// Waits for the answer to a login: at its port, or given by whoever asked for it. What is none of its answers is told so,
/// and waited on.
async fn wait_for_answer(
    attempt: &LoginAttempt,
    mut answers: mpsc::Receiver<(Url, oneshot::Sender<Outcome>)>,
) -> Outcome {
    loop {
        tokio::select! {
            visitor = async {
                match &attempt.loopback {
                    Some(loopback) => loopback.next().await,
                    None => std::future::pending().await,
                }
            } => {
                let finished = attempt.finish(&visitor.url).await;
                let outcome = finished.as_ref().copied().map_err(problem_text);
                visitor.tell(&outcome).await;
                if !matches!(finished, Err(AnswerProblem::NotOurs(_))) {
                    return outcome;
                }
            }
            Some((url, reply)) = answers.recv() => {
                let finished = attempt.finish(&url).await;
                let outcome = finished.as_ref().copied().map_err(problem_text);
                // Whoever asked may have gone.
                drop(reply.send(outcome.clone()));
                if !matches!(finished, Err(AnswerProblem::NotOurs(_))) {
                    return outcome;
                }
            }
        }
    }
}

fn problem_text(problem: &AnswerProblem) -> String {
    match problem {
        AnswerProblem::NotOurs(why) => format!("it is no answer to this login: {why}"),
        AnswerProblem::Refused(why) => why.clone(),
    }
}
