use serde_json::json;

use super::*;

fn vars(name: &str) -> Option<String> {
    match name {
        "HOST" => Some("example.com".to_owned()),
        "NESTED" => Some("${HOST}".to_owned()),
        _ => None,
    }
}

/// Renders what an entry means.
fn parsed_text(entry: Value) -> String {
    match parse_server("s", &entry, ServerScope::User, "f", &vars) {
        Ok((server, warnings)) => {
            let way = match server.way {
                ServerWay::Stdio { command, args, env } => format!("{command} {args:?} {env:?}"),
                ServerWay::Remote(it) => format!("{} {} {:?}", it.kind.name(), it.url, it.headers),
                ServerWay::Sdk => "sdk".to_owned(),
            };
            let timeout = server.timeout.map(|it| format!(" {it:?}")).unwrap_or_default();
            let warnings: String = warnings.iter().map(|warning| format!(" ! {warning}")).collect();
            format!("{way}{timeout}{warnings}")
        }
        Err(problem) => format!("bad: {problem}"),
    }
}

#[test]
fn entries_of_every_kind_are_read() {
    for (entry, expected) in [
        (
            json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}}),
            r#"npx ["-y", "x"] [("A", "1")]"#,
        ),
        (json!({"type": "stdio", "command": "x"}), "x [] []"),
        (json!({"command": "x", "timeout": 5000}), "x [] [] 5s"),
        (json!({"command": "x", "timeout": 999}), "x [] []"),
        (json!({"command": "x", "sandbox": {"enabled": false}}), "x [] []"),
        (
            json!({"command": "x", "sandbox": {"enabled": true, "allowWrite": "."}}),
            "bad: `allowWrite` of its `sandbox` is no list of paths",
        ),
        (
            json!({"type": "http", "url": "https://a", "sandbox": {}}),
            "bad: it asks for a `sandbox` and is no program of ours; leave it out",
        ),
        (
            json!({"type": "http", "url": "https://a/mcp", "headers": {"X": "y"}}),
            r#"http https://a/mcp [("X", "y")]"#,
        ),
        (json!({"type": "streamable-http", "url": "https://a/mcp"}), "http https://a/mcp []"),
        (json!({"type": "sse", "url": "https://${HOST}/sse"}), "sse https://example.com/sse []"),
        (json!({"type": "ws", "url": "wss://a"}), "ws wss://a []"),
        (json!({"type": "sdk", "name": "s"}), "sdk"),
        (
            json!({"command": "${NO:-d}", "args": ["${NESTED}", "$HOST", "${HOST"]}),
            r#"d ["${HOST}", "$HOST", "${HOST"] []"#,
        ),
        (
            json!({"command": " x", "args": ["y\n"], "env": {"A ": "1", "B": "2 ", "C": "3"}}),
            " x [\"y\\n\"] [(\"A \", \"1\"), (\"B\", \"2 \"), (\"C\", \"3\")] ! white space at the beginning or \
             the end of: command, args, env.A, env.B",
        ),
        (
            json!({"type": "http", "url": "https://a", "headers": {"X": "secret\n"}}),
            "http https://a [(\"X\", \"secret\\n\")] ! white space at the beginning or the end of: headers.X",
        ),
        (
            json!({"command": "x", "args": ["${NO}"]}),
            r#"x ["${NO}"] [] ! the variable `NO` is not set, so `${NO}` in its `args` stays as it is"#,
        ),
    ] {
        assert_eq!(parsed_text(entry.clone()), expected, "{entry}");
    }
}

#[test]
fn bad_entry_says_what_is_wrong() {
    for (entry, expected) in [
        (json!(3), "no object"),
        (json!({}), "no `command`"),
        (json!({"command": 3}), "no text"),
        (json!({"command": "x", "args": "y"}), "no list"),
        (json!({"command": "x", "args": [1]}), "no list"),
        (json!({"command": "x", "env": {"A": 1}}), "no text"),
        (json!({"url": "https://a"}), "no `type`"),
        (json!({"type": "http"}), "no `url`"),
        (json!({"type": "http", "url": "nonsense"}), "no address"),
        (json!({"type": "http", "url": "file:///etc/passwd"}), "not spoken"),
        (json!({"type": "pigeon", "url": "https://a"}), "unknown"),
    ] {
        let said = parsed_text(entry.clone());
        assert!(said.starts_with("bad: ") && said.contains(expected), "{entry}: {said}");
    }
}

#[test]
fn one_bad_entry_leaves_the_others() {
    let servers =
        json!({"good": {"command": "x"}, "bad": {}, "workspace": {"command": "x"}, "__": {"command": "x"}});
    let (good, problems) = parse_servers(&servers, ServerScope::Project, ".mcp.json", &vars);
    assert_eq!(good.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["good"]);
    let names: Vec<_> = problems.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["bad", "workspace", "__"]);
    assert_eq!(parse_servers(&json!([]), ServerScope::User, "f", &vars).1.len(), 1);
    assert_eq!(parse_servers(&Value::Null, ServerScope::User, "f", &vars).1.len(), 0);
}
