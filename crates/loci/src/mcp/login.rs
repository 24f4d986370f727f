//! `loci mcp login` and `logout`: a person lets us in at a server, in a browser, and takes that back.
//!
//! The page is opened where a browser can be expected, and shown in any case. Whoever has their browser elsewhere pastes
//! the address that it ends up at. The talk goes to standard error.

use std::io::{BufRead, IsTerminal};

use loci_app::mcp::logins::{has_browser, logins_file, open_browser};
use loci_app::mcp::plan;
use loci_app::{McpOptions, UserError};
use loci_mcp::{LoginOptions, LoginPrompt, Logout, Servers};
use tokio::sync::mpsc;

use super::McpContext;
use crate::print::print_message;
use crate::runtime;

#[derive(Debug, clap::Args)]
pub(super) struct LoginArgs {
    /// The server.
    name: String,
    /// Do not open a browser; show the page's address, and take the one that the browser ends up at.
    #[arg(long)]
    no_browser: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct LogoutArgs {
    /// The server.
    name: String,
}

pub(super) fn run(ctx: &McpContext, args: &LoginArgs) -> Result<String, UserError> {
    let name = &args.name;
    let servers = servers(ctx, name)?;
    let failed = |why: String| UserError::new(format!("The login at the MCP server `{name}` failed: {why}"));
    let done = runtime::of_session()?.block_on(async {
        let prompt = servers.begin_login(name, LoginOptions::default()).await?;
        let mut prompt = prompt.ok_or("it needs none")?;
        let is_shown = !args.no_browser && has_browser(&ctx.env) && show(ctx, &prompt);
        if !is_shown {
            print_message(&format!("Open this page to log in:\n\n  {}\n", prompt.page));
        }
        wait(&servers, name, &mut prompt, is_shown).await
    });
    done.map_err(failed)?;
    Ok(format!(
        "Logged in at the MCP server `{name}`; the login is kept in {}\n",
        logins_file(&ctx.run.home).display()
    ))
}

/// Opens the page; false when that did not work.
fn show(ctx: &McpContext, prompt: &LoginPrompt) -> bool {
    match open_browser(&ctx.env, &prompt.page) {
        Ok(()) => {
            print_message(&format!(
                "A browser is opened to log in. If none comes up, open this page:\n\n  {}\n",
                prompt.page
            ));
            true
        }
        Err(why) => {
            print_message(&format!("No browser was opened: {why}"));
            false
        }
    }
}

/// Waits for the person: at our port, or for an address that they paste.
async fn wait(servers: &Servers, name: &str, prompt: &mut LoginPrompt, is_shown: bool) -> Result<(), String> {
    let mut lines = pasted_lines();
    if std::io::stdin().is_terminal() {
        print_message("Should the browser end at a page that does not open, paste its address here:");
    } else if !is_shown {
        print_message("Waiting for the browser to come back, or for its address on standard input");
    }
    loop {
        tokio::select! {
            outcome = prompt.outcome() => return outcome,
            Some(line) = lines.recv() => {
                if line.trim().is_empty() {
                    continue;
                }
                if let Err(why) = servers.answer_login(name, &line).await {
                    print_message(&why);
                }
            }
        }
    }
}

/// Returns the lines of standard input as they come.
fn pasted_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    let read = move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    };
    // Without a thread to read, the browser's way is left. Nobody waits for it: it may wait for a line for ever.
    if let Err(error) = std::thread::Builder::new().name("pasted-address".to_owned()).spawn(read) {
        print_message(&format!("Standard input cannot be read: {error}"));
    }
    lines
}

pub(super) fn run_logout(ctx: &McpContext, args: &LogoutArgs) -> Result<String, UserError> {
    let name = &args.name;
    let servers = servers(ctx, name)?;
    let ended = runtime::of_session()?.block_on(servers.logout(name));
    match ended.map_err(UserError::new)? {
        Logout::NoLogin => Ok(format!("There is no login at the MCP server `{name}`\n")),
        Logout::Revoked => Ok(format!("Logged out of the MCP server `{name}`\n")),
        Logout::Forgotten(why) => Ok(format!(
            "The login at the MCP server `{name}` is forgotten here; it may still hold at the other side, which could \
             not be told: {why}\n"
        )),
    }
}

/// Returns the servers with the one that is named among them; none is started.
fn servers(ctx: &McpContext, name: &str) -> Result<Servers, UserError> {
    let mut plan = plan(&McpOptions::default(), &ctx.run)?;
    plan.servers.retain(|server| server.config.name == *name);
    if plan.servers.is_empty() {
        let why: String =
            plan.problems.iter().filter(|it| it.name == *name).map(|it| format!("\n{it}")).collect();
        return Err(
            UserError::new(format!("No MCP server is called `{name}`{why}")).hint("See `loci mcp list`.")
        );
    }
    Ok(loci_app::mcp::make_servers(&plan, &ctx.run, "", None))
}
