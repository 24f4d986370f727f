//! The terminal is given back as it was found, on every way out.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use rustix::process::Signal;

use crate::pty::{KEYS, Pty, modes_left_on};

const XTERM: &[(&str, &str)] = &[("TERM", "xterm-256color")];

/// Starts the program, with every mode on that there is.
fn start() -> Pty {
    let mut pty = Pty::keys(XTERM, "");
    pty.wait_for("ready");
    pty.send("\x1b[?2026;2$y\x1b[?2004;2$y\x1b[?0u\x1b[?62c");
    pty.wait_for("Identity");
    pty.send("msl");
    pty.wait_for("Char('l')");
    pty
}

/// Drives a way out and looks at what is left.
fn check_exit(leave: impl FnOnce(&mut Pty), expected_end: &str) {
    let mut pty = start();
    assert!(!pty.is_as_found());
    leave(&mut pty);
    let status = pty.finish();
    let end = match status.signal() {
        Some(2 | 15) => "signal 2 or 15".to_owned(),
        Some(signal) => format!("signal {signal}"),
        None => format!("code {}", status.code().unwrap()),
    };
    assert_eq!(end, expected_end, "{:?}", pty.text());
    assert_eq!(modes_left_on(&pty.text()), Vec::<String>::new(), "{:?}", pty.text());
    assert!(pty.is_as_found(), "{:?}", pty.text());
}

/// The place of the first of these in the text, behind the last switch of a mode.
fn undone_before(text: &str, later: &str) -> bool {
    match (text.find("\x1b[?2004l"), text.find(later)) {
        (Some(undone), Some(later)) => undone < later,
        _ => panic!("{text:?}"),
    }
}

#[test]
fn return_gives_the_terminal_back() {
    check_exit(|pty| pty.send("\x03"), "code 0");
}

#[test]
fn error_gives_the_terminal_back() {
    check_exit(|pty| pty.send("!"), "code 1");
}

#[test]
fn panic_gives_the_terminal_back_before_its_message() {
    check_exit(
        |pty| {
            pty.send("p");
            pty.finish();
            assert!(undone_before(&pty.text(), "on purpose"));
        },
        "code 101",
    );
}

#[test]
fn panic_of_another_thread_is_kept_from_the_screen() {
    check_exit(
        |pty| {
            pty.send("t");
            let shown = pty.wait_for("beside: true 1");
            assert!(!shown.contains("panicked"), "{shown:?}");
            assert!(!pty.is_as_found());
            pty.send("u");
            pty.wait_for("beside: true");
            pty.send("\x03");
            pty.finish();
            assert!(undone_before(&pty.text(), "told at the end"));
        },
        "code 0",
    );
}

#[test]
fn signals_to_end_are_told_and_the_terminal_is_given_back() {
    for (signal, name) in [(Signal::TERM, "Terminate"), (Signal::HUP, "HangUp"), (Signal::INT, "Interrupt")] {
        check_exit(
            |pty| {
                pty.signal(signal);
                pty.wait_for(&format!("ended by {name}"));
            },
            "code 0",
        );
    }
}

#[test]
fn abort_and_quit_give_the_terminal_back() {
    check_exit(|pty| pty.send("a"), "signal 6");
    check_exit(|pty| pty.signal(Signal::QUIT), "signal 3");
}

#[test]
fn second_signal_ends_a_process_that_does_not_listen() {
    check_exit(
        |pty| {
            pty.send("h");
            pty.wait_for("Char('h')");
            // Whichever of them is delivered second ends it.
            pty.signal(Signal::TERM);
            pty.signal(Signal::INT);
        },
        "signal 2 or 15",
    );
}

/// However the tests were started: `nohup` sets this signal aside, and a shell in the background others.
#[test]
fn hangup_ends_a_process_that_does_not_listen() {
    #[expect(unsafe_code, reason = "what nohup does before it starts the tests")]
    // SAFETY: nothing in this process handles the signals, so nothing of it runs in a handler.
    unsafe {
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
        libc::signal(libc::SIGQUIT, libc::SIG_IGN);
    }
    check_exit(
        |pty| {
            pty.send("h");
            pty.wait_for("Char('h')");
            pty.signal(Signal::HUP);
        },
        "signal 1",
    );
}

#[test]
fn closed_window_is_told() {
    let mut pty = start();
    pty.send("h");
    pty.wait_for("Char('h')");
    pty.close();
    let status = pty.finish();
    assert_eq!(status.signal(), Some(1));
}

#[test]
fn cursor_ends_on_a_fresh_row() {
    let mut pty = start();
    pty.send("\x03");
    pty.wait_for("ended by a key");
    // One row of ours was said to be below the cursor.
    let text = pty.text();
    let end = text.rfind("\x1b[?1049l").unwrap();
    assert!(text[end..].starts_with("\x1b[?1049l\r\n\n\x1b[Kended by a key"), "{text:?}");
}

#[test]
fn kitty_flags_are_pushed_only_when_confirmed() {
    let mut pty = Pty::keys(XTERM, "");
    pty.wait_for("ready");
    assert!(!pty.text().contains("\x1b[>5u"));
    pty.send("\x1b[?0u");
    pty.wait_for("\x1b[>5u");
    assert!(!pty.text().contains("\x1b[=0;1u") && !pty.text().contains("\x1b[>4;2m"));
    pty.send("\x03");
    pty.wait_for("\x1b[<u");
    pty.wait_for("ended by");
}

#[test]
fn kitty_flags_go_along_to_the_alternate_screen_and_are_not_left_on_the_other() {
    let mut pty = Pty::keys(XTERM, "");
    pty.wait_for("ready");
    pty.send("\x1b[?0u");
    pty.wait_for("\x1b[>5u");
    pty.send("s");
    pty.wait_for("\x1b[<u\x1b[?1049h\x1b[>5u");
    pty.send("\x03");
    let undone = pty.wait_for("\x1b[?1049l");
    assert_eq!(undone.matches("\x1b[<u").count(), 1, "{undone:?}");
}

#[test]
fn leftover_kitty_flags_are_cleared() {
    let mut pty = Pty::keys(XTERM, "");
    pty.wait_for("ready");
    pty.send("\x1b[?1u");
    pty.wait_for("\x1b[=0;1u\x1b[>5u");
}

#[test]
fn terminal_without_kitty_keys_gets_modify_other_keys() {
    let mut pty = Pty::keys(XTERM, "");
    pty.wait_for("ready");
    pty.send("\x1b[?62c");
    pty.wait_for("\x1b[>4;2m");
    pty.send("\x03");
    pty.wait_for("\x1b[>4;0m");
    pty.wait_for("ended by");
}

#[test]
fn dumb_terminal_gets_no_escape_sequence() {
    let mut pty = Pty::keys(&[("TERM", "dumb")], "");
    pty.wait_for("ready");
    pty.send("x\x03");
    pty.wait_for("ended by a key");
    pty.finish();
    assert!(!pty.text().contains('\x1b'), "{:?}", pty.text());
    assert!(pty.is_as_found());
}

#[test]
fn what_was_typed_before_the_start_is_kept() {
    let mut pty = Pty::keys(XTERM, "xy\r");
    for key in ["Char('x')", "Char('y')", "Enter"] {
        pty.wait_for(key);
    }
}

#[test]
fn answer_that_comes_late_does_not_reach_the_shell() {
    let mut pty = Pty::keys(XTERM, "");
    pty.wait_for("ready");
    // The answer follows the end within the time that is waited for it; what is left unread would be echoed.
    pty.send("\x03\x1b[?62;22c");
    pty.wait_for("ended by a key");
    pty.finish();
    assert!(!pty.text().contains("^[[?62"), "{:?}", pty.text());
}

#[test]
fn new_size_is_told() {
    let mut pty = start();
    pty.resize(100, 30);
    pty.wait_for("Resize { width: 100, height: 30 }");
}

#[test]
fn child_gets_the_terminal_as_it_was_found_and_gives_it_back() {
    let editor = "stty -a | grep -o ' icanon'; read line; echo \"got $line\"";
    let mut pty = Pty::keys(&[("TERM", "xterm"), ("EDITOR", editor)], "");
    pty.wait_for("ready");
    pty.send("\x1b[?0u\x1b[?62c");
    pty.wait_for("Identity");
    pty.send("e");
    let lent = pty.wait_for(" icanon");
    assert_eq!(modes_left_on(&lent), Vec::<String>::new());
    assert!(pty.is_as_found());
    pty.send("for the child\r");
    pty.wait_for("got for the child");
    let back = pty.wait_for("back: exit status: 0");
    assert_eq!(modes_left_on(&back), ["?2031", "?2004", "?1004", "kitty"]);
    pty.send("x");
    pty.wait_for("Char('x')");
    pty.send("\x03");
    pty.wait_for("ended by a key");
    pty.finish();
    assert!(pty.is_as_found());
}

#[test]
fn draft_goes_to_the_editor_and_comes_back() {
    let mut pty = Pty::keys(&[("TERM", "xterm"), ("VISUAL", "sed -i -e s/draft/letter/")], "");
    pty.wait_for("ready");
    pty.send("g");
    pty.wait_for("edited: a letter");
    let mut pty = Pty::keys(&[("TERM", "xterm"), ("EDITOR", "false")], "");
    pty.wait_for("ready");
    pty.send("g");
    pty.wait_for("not edited: The editor did not end well");
    pty.send("x");
    pty.wait_for("Char('x')");
}

#[test]
fn continued_process_sets_the_terminal_up_again() {
    let mut pty = Pty::keys(XTERM, "");
    pty.wait_for("ready");
    pty.signal(Signal::STOP);
    pty.signal(Signal::CONT);
    pty.wait_for("Signal(Continued)");
    let again = pty.wait_for("\x1b[?1004h");
    assert_eq!(modes_left_on(&again), ["?2031", "?2004", "?1004"]);
    pty.send("x");
    pty.wait_for("Char('x')");
}

/// Starts the program from a shell that knows jobs, and waits until it has the terminal.
fn start_as_a_job() -> Pty {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "--noediting", "-i"])
        .env_clear()
        .env("TERM", "xterm")
        .env("PS1", "shell> ");
    let mut pty = Pty::start(bash, "");
    pty.wait_for("shell> ");
    pty.send(&format!("{KEYS}\r"));
    pty.wait_for("ready");
    pty.send("\x1b[?0u\x1b[?62c");
    pty.wait_for("Identity");
    pty
}

#[test]
fn stopped_process_that_is_told_to_end_ends_and_leaves_the_terminal_to_the_shell() {
    let mut pty = start_as_a_job();
    pty.send("\x1a");
    pty.wait_for("shell> ");
    pty.send("kill %1\r");
    let ended = pty.wait_for("ended by Terminate");
    assert!(ended.contains("left to the shell"), "{ended:?}");
    assert_eq!(modes_left_on(&ended), Vec::<String>::new(), "{ended:?}");
    pty.send("echo at the $SHLVL shell\r");
    pty.wait_for(" shell\r\n");
    assert!(pty.is_as_found());
}

#[test]
fn process_that_was_sent_to_the_background_waits_for_the_foreground_and_may_be_ended() {
    let mut pty = start_as_a_job();
    for end in ["fg", "kill %1"] {
        pty.send("\x1a");
        pty.wait_for("shell> ");
        // The shell tells of a job that stops for want of the terminal before it prompts the next time.
        pty.send("bg; until jobs | grep -q Stopped; do read -t 0.05 < /dev/null; done; echo it stopped\r");
        pty.wait_for("\nit stopped");
        pty.wait_for("shell> ");
        assert!(pty.is_as_found());
        pty.send(&format!("{end}\r"));
        if end == "fg" {
            let went_on = pty.wait_for("went on");
            assert_eq!(modes_left_on(&went_on), ["?2031", "?2004", "?1004", "kitty"]);
        }
    }
    pty.wait_for("ended by Terminate");
    assert!(pty.is_as_found());
}

#[test]
fn stopped_process_gives_the_terminal_back_and_takes_it_again() {
    let mut pty = start_as_a_job();
    for _ in 0..2 {
        pty.send("\x1a");
        let stopped = pty.wait_for("shell> ");
        assert_eq!(modes_left_on(&stopped), Vec::<String>::new());
        assert!(pty.is_as_found());
        pty.send("fg\r");
        let went_on = pty.wait_for("went on");
        assert_eq!(modes_left_on(&went_on), ["?2031", "?2004", "?1004", "kitty"]);
        assert!(!pty.is_as_found());
        pty.send("x");
        pty.wait_for("Char('x')");
    }
    pty.send("\x03");
    pty.wait_for("ended by a key");
    pty.wait_for("shell> ");
    assert!(pty.is_as_found());
}
