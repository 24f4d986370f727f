//! What tests run inside the sandbox, and the helper without the rest of the program.
//!
//! Under the name of the helper it is the helper. Otherwise every argument is a probe with its own arguments, divided by
//! tabs; each runs in a process of its own, and a line says what came of it: `ok`, or the name of the error.
#![expect(unsafe_code, reason = "probes make system calls that no safe wrapper makes")]
#![expect(clippy::print_stdout, reason = "what is found is the output")]

mod calls;
mod growth;
mod probes;
mod processes;
mod proxied;

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    if loci_sandbox::is_helper(&name) {
        return ExitCode::from(loci_sandbox::run_helper(args));
    }
    let args: Vec<String> = args.map(|it| it.to_string_lossy().into_owned()).collect();
    match args.first().map(String::as_str) {
        Some("one") => {
            println!("{}", probes::run(&args[1..]));
            ExitCode::SUCCESS
        }
        Some("all") => {
            args[1..].iter().for_each(|probe| println!("{}", in_child(probe)));
            ExitCode::SUCCESS
        }
        Some("growth") => {
            let n_commands = args.get(1).and_then(|it| it.parse().ok()).unwrap_or(100);
            match growth::growth(n_commands) {
                Ok(line) => println!("{line}"),
                Err(error) => println!("failed: {error}"),
            }
            ExitCode::SUCCESS
        }
        _ => ExitCode::FAILURE,
    }
}

fn in_child(probe: &str) -> String {
    use std::os::unix::process::ExitStatusExt;
    let own = std::env::current_exe().unwrap_or_default();
    let output = match Command::new(own).arg("one").args(probe.split('\t')).output() {
        Ok(output) => output,
        Err(error) => return format!("not started: {error}"),
    };
    match output.status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    }
}
