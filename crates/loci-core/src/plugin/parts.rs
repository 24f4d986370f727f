//! Hooks and MCP servers of a plugin, made fit for those who read them: with its values put in, and under its name.

use serde_json::{Map, Value};

use super::id::is_component_name;
use super::variables::{PluginVariables, names_option};

/// Returns the hooks of a file, or of a manifest, as settings have them, and what is wrong with those that are left out.
///
/// A shell reads the directories from its environment, as variables: they are never part of its code. An option in a
/// command line would be, so such a hook is left out.
pub fn plugin_hooks(value: &Value, variables: &PluginVariables) -> (Value, Vec<String>) {
    let events = value.get("hooks").filter(|hooks| hooks.is_object()).unwrap_or(value);
    let Value::Object(events) = events else {
        return (Value::Object(Map::new()), vec!["its hooks are no object; they are left out".to_owned()]);
    };
    let mut problems = Vec::new();
    let mut out = Map::new();
    for (event, groups) in events {
        // A file of hooks may say what it is for.
        if matches!(event.as_str(), "description" | "$schema") {
            continue;
        }
        let Value::Array(groups) = groups else {
            out.insert(event.clone(), groups.clone());
            continue;
        };
        let groups = groups.iter().map(|group| {
            let mut group = group.clone();
            if let Some(Value::Array(handlers)) = group.get_mut("hooks") {
                let fit = std::mem::take(handlers).into_iter();
                *handlers = fit.filter_map(|it| handler(it, event, variables, &mut problems)).collect();
            }
            group
        });
        let groups = groups.collect();
        out.insert(event.clone(), groups);
    }
    (Value::Object(out), problems)
}

fn handler(
    value: Value,
    event: &str,
    variables: &PluginVariables,
    problems: &mut Vec<String>,
) -> Option<Value> {
    let is_command = value.get("type").and_then(Value::as_str).is_none_or(|kind| kind == "command");
    let is_shell_line = is_command && value.get("args").is_none();
    if is_command && puts_option_into_code(&value) {
        problems.push(format!(
            "a hook of `{event}` puts an option into code for an interpreter; it is left out (use an argument behind the code, \
             or the variable CLAUDE_PLUGIN_OPTION_..)"
        ));
        return None;
    }
    if !is_shell_line {
        return Some(variables.expand_value(&value));
    }
    let line = value.get("command").and_then(Value::as_str).unwrap_or_default();
    if names_option(line) {
        problems.push(format!(
            "a hook of `{event}` puts an option into a command line, where it would be read as code; it is left out \
             (use `args`, or the variable CLAUDE_PLUGIN_OPTION_..)"
        ));
        return None;
    }
    Some(value)
}

/// Returns the servers of a file, or of a manifest, under the plugin's name (`plugin:<plugin>:<server>`), and what is
/// wrong with those that are left out.
pub fn plugin_servers(value: &Value, plugin: &str, variables: &PluginVariables) -> (Value, Vec<String>) {
    let servers = value.get("mcpServers").unwrap_or(value);
    let Value::Object(servers) = servers else {
        return (
            Value::Object(Map::new()),
            vec!["its `mcpServers` are no object; they are left out".to_owned()],
        );
    };
    let mut problems = Vec::new();
    let mut out = Map::new();
    for (name, entry) in servers {
        match server(name, entry, variables) {
            Ok(entry) => {
                out.insert(format!("plugin:{plugin}:{name}"), entry);
            }
            Err(why) => {
                let name: String = name.escape_debug().take(80).collect();
                problems.push(format!("the server `{name}` {why}; it is left out"));
            }
        }
    }
    (Value::Object(out), problems)
}

fn server(name: &str, entry: &Value, variables: &PluginVariables) -> Result<Value, String> {
    if !is_component_name(name) {
        return Err("has a name that is none".to_owned());
    }
    let helper = entry.get("headersHelper").and_then(Value::as_str).unwrap_or_default();
    if names_option(helper) {
        return Err("puts an option into `headersHelper`, where it would be read as code".to_owned());
    }
    if puts_option_into_code(entry) {
        return Err(
            "puts an option into code for an interpreter (use an argument behind the code, or the variable \
                    CLAUDE_PLUGIN_OPTION_..)"
                .to_owned(),
        );
    }
    let mut entry = variables.expand_value(entry);
    let is_program = entry.get("command").is_some();
    if let Value::Object(fields) = &mut entry
        && is_program
    {
        let env = fields.entry("env").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(env) = env {
            for (name, value) in variables.env() {
                env.entry(name).or_insert(Value::String(value));
            }
        }
    }
    Ok(entry)
}

/// Programs that take code behind a flag.
const INTERPRETERS: &[&str] = &[
    "ash",
    "bash",
    "bun",
    "busybox",
    "cmd",
    "csh",
    "dash",
    "deno",
    "fish",
    "ksh",
    "lua",
    "mksh",
    "node",
    "osascript",
    "perl",
    "php",
    "powershell",
    "pwsh",
    "python",
    "ruby",
    "sh",
    "tclsh",
    "tcsh",
    "zsh",
];

/// Flags of theirs that take the next word and that word is no code.
const VALUED: &[&str] =
    &["-o", "+o", "-O", "+O", "-W", "-X", "-I", "-M", "-r", "--require", "--import", "-l"];

/// Tells whether `command` and `args` hand an option to an interpreter as code: `sh -c 'echo ${user_config.a}'`. An argument
/// behind the code, or behind the file of a program, is none.
fn puts_option_into_code(entry: &Value) -> bool {
    let args = entry.get("args").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let words: Vec<&str> =
        entry.get("command").into_iter().chain(args).map(|word| word.as_str().unwrap_or_default()).collect();
    let is_interpreter = |word: &&str| {
        let base = word.rsplit(['/', '\\']).next().unwrap_or_default().trim_end_matches(".exe");
        let bare = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        INTERPRETERS.contains(&bare)
    };
    let Some(at) = words.iter().position(is_interpreter) else { return false };
    let mut rest = words[at + 1..].iter();
    while let Some(word) = rest.next() {
        let is_flag = word.starts_with(['-', '+']) || word.eq_ignore_ascii_case("/c") || is_interpreter(word);
        if !is_flag {
            return false;
        }
        if VALUED.contains(word) {
            rest.next();
        } else if names_option(word)
            || (takes_code(word) && rest.as_slice().first().is_some_and(|it| names_option(it)))
        {
            return true;
        }
    }
    false
}

/// `-c`, `-ec`, `-pe`, `--eval`, `-Command`, `/c`: what follows is code.
fn takes_code(flag: &str) -> bool {
    let lower = flag.to_ascii_lowercase();
    match lower.strip_prefix("--") {
        Some(name) => matches!(name, "eval" | "print" | "command" | "run"),
        None => lower.contains(['c', 'e', 'p', 'r']),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::OptionValue;
    use super::*;

    fn variables() -> PluginVariables {
        let options =
            vec![OptionValue { key: "k".to_owned(), text: "v; rm".to_owned(), is_sensitive: false }];
        PluginVariables { root: "/p".to_owned(), data: "/d".to_owned(), options }
    }

    #[test]
    fn hooks_are_those_of_settings_with_values_in_arguments_alone() {
        let file = json!({"description": "d", "hooks": {"Stop": [{"hooks": [
            {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/a.sh"},
            {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/b", "args": ["${user_config.k}"]},
            {"type": "command", "command": "echo ${user_config.k}"},
            {"type": "http", "url": "https://x/${user_config.k}"},
        ]}]}});
        let (hooks, problems) = plugin_hooks(&file, &variables());
        assert_eq!(
            hooks,
            json!({"Stop": [{"hooks": [
                {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/a.sh"},
                {"type": "command", "command": "/p/b", "args": ["v; rm"]},
                {"type": "http", "url": "https://x/v; rm"},
            ]}]})
        );
        assert!(problems.len() == 1 && problems[0].contains("read as code"), "{problems:?}");
        let (bare, problems) = plugin_hooks(&json!({"Stop": []}), &variables());
        assert_eq!((bare, problems.len()), (json!({"Stop": []}), 0));
        assert_eq!(plugin_hooks(&json!([]), &variables()).1.len(), 1);
    }

    /// L6 of the hostile trial: what an option says was read as code.
    #[test]
    fn option_that_would_be_code_for_an_interpreter_is_left_out() {
        for (command, args, expected) in [
            ("sh", &["-c", "echo ${user_config.k}"][..], true),
            ("/bin/bash", &["-ec", "echo ${user_config.k}"], true),
            ("bash", &["-o", "pipefail", "-c", "echo ${user_config.k}"], true),
            ("env", &["A=1", "sh", "-c", "echo ${user_config.k}"], true),
            ("busybox", &["sh", "-c", "echo ${user_config.k}"], true),
            ("python3.12", &["-c", "print('${user_config.k}')"], true),
            ("python3", &["-cprint('${user_config.k}')"], true),
            ("node", &["--eval", "x('${user_config.k}')"], true),
            ("perl", &["-pe", "s/a/${user_config.k}/"], true),
            ("pwsh", &["-Command", "echo ${user_config.k}"], true),
            ("sh", &["-c", "echo \"$1\"", "x", "${user_config.k}"], false),
            ("node", &["server.js", "-c", "${user_config.k}"], false),
            ("python3", &["-u", "server.py", "-e", "${user_config.k}"], false),
            ("${CLAUDE_PLUGIN_ROOT}/db", &["-c", "${user_config.k}"], false),
            ("npx", &["server", "${user_config.k}"], false),
        ] {
            let entry = json!({"command": command, "args": args});
            assert_eq!(puts_option_into_code(&entry), expected, "{entry}");
            let (servers, problems) = plugin_servers(&json!({"a": entry}), "p", &variables());
            assert_eq!(servers.as_object().unwrap().is_empty(), expected, "{problems:?}");
            let hook = json!({"type": "command", "command": command, "args": args});
            let (hooks, problems) = plugin_hooks(&json!({"Stop": [{"hooks": [hook]}]}), &variables());
            assert_eq!(hooks["Stop"][0]["hooks"].as_array().unwrap().is_empty(), expected, "{problems:?}");
        }
    }

    #[test]
    fn servers_have_the_plugins_name_directories_and_options() {
        let file = json!({"mcpServers": {
            "db": {"command": "${CLAUDE_PLUGIN_ROOT}/db", "args": ["${user_config.k}"]},
            "web": {"type": "http", "url": "https://x", "headers": {"A": "${user_config.k}"}},
            "bad": {"type": "http", "url": "https://x", "headersHelper": "x ${user_config.k}"},
            "plugin:other:db": {"command": "x"},
        }});
        let (servers, problems) = plugin_servers(&file, "p", &variables());
        let names: Vec<&String> = servers.as_object().unwrap().keys().collect();
        assert_eq!(names, ["plugin:p:db", "plugin:p:web"]);
        assert_eq!(servers["plugin:p:db"]["command"], "/p/db");
        assert_eq!(servers["plugin:p:db"]["env"]["CLAUDE_PLUGIN_OPTION_K"], "v; rm");
        assert_eq!(servers["plugin:p:web"]["headers"]["A"], "v; rm");
        assert!(servers["plugin:p:web"].get("env").is_none());
        assert_eq!(problems.len(), 2);
    }
}
