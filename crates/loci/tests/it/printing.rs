//! What verbs print at a terminal: what a repository, a server or the model wrote is read there and does nothing (M3, L8).

use loci_testkit::Step;
use serde_json::json;

use crate::support::{World, loci};

/// Sets the clipboard, hides, moves, says 8-bit CSI, turns the direction.
const HOSTILE: &str = "x\u{1b}]52;c;UFdO\u{7}\u{1b}[8m\u{9b}2K\u{202e}y";

/// What would do something to a terminal or to its reader; the terminal itself writes the carriage returns.
fn acts(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\r' | '\t')) || ('\u{202a}'..='\u{202e}').contains(&c)
}

/// Runs a verb with a terminal for all it prints.
fn shown(world: &World, args: &[&str]) -> String {
    world.start_on_screen(&loci().args(args.iter().copied())).finish().stderr
}

fn hostile_project(world: &World) {
    let hook =
        json!([{"matcher": HOSTILE, "hooks": [{"type": "command", "command": format!("echo {HOSTILE}")}]}]);
    let settings = json!({
        "hooks": {"PreToolUse": hook, format!("No{HOSTILE}"): []},
        "permissions": {"deny": [format!("Bash({HOSTILE} *)")]},
        "env": {"A": HOSTILE},
        format!("deny{HOSTILE}"): true,
    });
    world.home.write(".claude/settings.json", settings.to_string());
    let servers =
        json!({"mcpServers": {"plain": {"command": HOSTILE, "args": [HOSTILE]}, HOSTILE: {"command": "x"}}});
    world.home.write(".mcp.json", servers.to_string());
    world.home.write(".claude/rules/\u{1b}[8mrule\u{202e}.md", "Say so.");
    let skill =
        format!("---\nname: say\ndescription: Says {}\n---\nSay.", HOSTILE.replace(['\u{1b}', '\u{7}'], ""));
    world.home.write(".claude/skills/say/SKILL.md", skill);
}

#[tokio::test]
async fn verbs_make_visible_what_would_act_on_a_terminal() {
    let world = World::new([]).await;
    hostile_project(&world);
    crate::settings::trust(&world);
    for (args, has_hostile) in [
        (&["doctor"][..], true),
        (&["mcp", "list"], true),
        (&["mcp", "get", "plain"], true),
        (&["hooks", "list"], true),
        (&["permissions", "list"], true),
        (&["permissions", "explain", "Bash ls"], true),
        (&["context", "show"], false),
        (&["config", "list"], true),
        (&["config", "explain", "permissions.deny"], true),
        (&["config", "explain", "instructions"], false),
        (&["skills", "list"], false),
        (&["agents", "list"], false),
        (&["plugin", "list"], false),
        (&["mcp", "get", HOSTILE], true),
        (&["sessions", "show", HOSTILE], true),
    ] {
        let text = shown(&world, args);
        assert!(!text.contains(acts), "{args:?}: {text:?}");
        let is_visible = text.contains("\\u001b") || text.contains("\\u{1b}") || text.contains("\\u202e");
        assert!(is_visible || !has_hostile, "{args:?}: {text}");
    }
}

#[tokio::test]
async fn answers_and_sessions_are_visible_at_a_terminal_and_whole_in_a_pipe() {
    let said = "ends in gpj.exe, or \u{202e}exe.jpg\u{202c}\u{9b}2K";
    let world = World::new([Step::text(said), Step::text(said)]).await;
    let text = shown(&world, &["-p", "hi"]);
    assert!(!text.contains(acts) && text.contains("\\u202eexe.jpg"), "{text:?}");
    let id = world.session()[0]["sessionId"].as_str().unwrap().to_owned();
    let text = shown(&world, &["sessions", "show", &id]);
    assert!(!text.contains(acts), "{text:?}");
    let piped = world.print(["again"]);
    assert_eq!(piped.stdout, format!("{said}\n"), "what is piped is what it is");
}
