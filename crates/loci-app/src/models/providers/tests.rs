//! Entries as people write them, and what is made of them.

use loci_core::model::NamedModels;

use super::*;

fn table(setting: Value, vars: &[(&str, &str)]) -> ProviderTable {
    let setting = setting.as_object().unwrap().clone();
    ProviderTable::new(&setting, &vars.iter().copied().collect())
}

fn env(vars: &[(&str, &str)]) -> Env {
    let mut env = Env::for_test("/home/dev", "/p");
    env.vars = vars.iter().copied().collect();
    env
}

#[test]
fn names_are_split_at_the_first_slash() {
    let table = table(json!({"mine": {"protocol": "chat", "baseUrl": "http://h/v1"}}), &[]);
    for (model, expected) in [
        ("mine/a", Some(("mine", "a"))),
        ("mine/vendor/a:free", Some(("mine", "vendor/a:free"))),
        ("openrouter/anthropic/claude-x", Some(("openrouter", "anthropic/claude-x"))),
        ("anthropic/claude-x", None),
        ("claude-x", None),
        ("Mine/a", None),
    ] {
        assert_eq!(table.find(model).map(|(entry, id)| (entry.name.as_str(), id)), expected, "{model}");
    }
}

#[test]
fn built_in_providers_are_changed_key_by_key() {
    let vars = [("OPENAI_BASE_URL", "http://proxy/v1"), ("OLLAMA_HOST", "box:1")];
    let table = table(json!({"openai": {"protocol": "chat"}, "vllm": {"apiKeyEnv": "K"}}), &vars);
    let shown: Vec<String> = table
        .entries()
        .map(|it| format!("{} {} {} {:?}", it.name, it.protocol.as_str(), it.base_url, it.key))
        .collect();
    expect_test::expect![[r#"
        gemini chat https://generativelanguage.googleapis.com/v1beta/openai Variable("GEMINI_API_KEY")
        llamacpp chat http://localhost:8080/v1 None
        lmstudio chat http://localhost:1234/v1 None
        ollama chat http://box:1/v1 None
        openai chat http://proxy/v1 Variable("OPENAI_API_KEY")
        openrouter chat https://openrouter.ai/api/v1 Variable("OPENROUTER_API_KEY")
        vllm chat http://localhost:8000/v1 Variable("K")"#]]
    .assert_eq(&shown.join("\n"));
}

#[test]
fn ollama_host_is_read_as_ollama_reads_it() {
    for (host, expected) in [
        ("", "http://localhost:11434/v1"),
        ("box", "http://box:11434/v1"),
        ("box:99", "http://box:99/v1"),
        (":99", "http://localhost:99/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("http://box:99/", "http://box:99/v1"),
        ("https://box", "https://box/v1"),
    ] {
        assert_eq!(ollama_url(host), expected, "{host}");
    }
}

#[test]
fn entries_that_cannot_be_used_say_why() {
    let usable = json!({"protocol": "chat", "baseUrl": "http://h/v1/"});
    let with = |key: &str, value: Value| {
        let mut entry = usable.clone();
        entry[key] = value;
        entry
    };
    for (name, entry, words) in [
        ("Bad Name", usable.clone(), "`Bad Name`"),
        ("x", json!("http://h"), "`\"http://h\"`"),
        ("x", json!({"baseUrl": "http://h"}), "`protocol` is not"),
        ("x", with("protocol", json!("grpc")), "`\"grpc\"`"),
        ("x", with("baseUrl", json!("ftp://h")), "`\"ftp://h\"`"),
        ("x", with("baseUrl", json!("http://")), "`baseUrl`"),
        ("x", with("apiKeyEnv", json!(7)), "`apiKeyEnv` is not a text: `7`"),
        ("x", with("models", json!({"m": {"window": "big"}})), "`models.m.window`"),
        ("x", with("models", json!({"m": {"price": {"input": 1}}})), "`models.m.price`"),
        ("x", with("headers", json!({"A": 1})), "`headers.A`"),
    ] {
        let entry = ProviderEntry::parse(name, &entry);
        let problem = entry.problem.clone().unwrap_or_default();
        assert!(problem.contains(words) && problem.contains(&format!("`{name}`")), "{problem}");
        let failure = connect(&entry, &env(&[]), &Announcer::default()).unwrap_err();
        assert_eq!(failure.message, problem);
    }
    let entry = ProviderEntry::parse("x", &with("unknown", json!(1)));
    assert_eq!((entry.problem, entry.base_url.as_str()), (None, "http://h/v1"));
}

#[test]
fn missing_variables_are_named_before_anything_is_sent() {
    let entry = json!({"protocol": "chat", "baseUrl": "http://h/v1", "apiKeyEnv": "MY_KEY", "headers": {"X-Team": "a ${TEAM}"}});
    let entry = ProviderEntry::parse("x", &entry);
    assert_eq!(entry.secret_variables(), ["MY_KEY", "TEAM"]);
    let failed = |vars: &[(&str, &str)]| {
        connect(&entry, &env(vars), &Announcer::default()).map(drop).map_err(|it| it.message)
    };
    assert!(failed(&[("TEAM", "t")]).unwrap_err().contains("`MY_KEY`"));
    assert!(failed(&[("TEAM", "t"), ("MY_KEY", " ")]).unwrap_err().contains("`MY_KEY`"));
    assert!(failed(&[("MY_KEY", "k")]).unwrap_err().contains("`TEAM`"));
    assert_eq!(failed(&[("MY_KEY", "k"), ("TEAM", "t")]), Ok(()));
}

#[test]
fn windows_and_prices_come_from_whoever_says_most() {
    let setting = json!({"x": {"protocol": "chat", "baseUrl": "http://127.0.0.1:1/v1", "models": {
        "m": {"window": 32_768, "maxOutput": 4_096, "effort": ["low", "high"],
            "price": {"input": 1.25, "output": 10, "cacheRead": 0.125}}, "n": {"price": {"input": 1, "output": 2}}}}});
    let table = Arc::new(table(setting, &[]));
    let models = ProviderModels::new(Arc::clone(&table), None);
    let known = models.facts("x/m").unwrap();
    assert_eq!((known.window, known.max_output, known.default_output), (32_768, 4_096, 4_096));
    assert!(known.is_known && known.is_named && known.has_effort);
    let price = known.price.unwrap();
    assert_eq!(
        (price.input, price.output, price.cache_read, price.cache_write_5m),
        (1.25, 10.0, 0.125, 1.25)
    );
    assert_eq!(models.facts("x/n").unwrap().price.unwrap().cache_read, 1.0);
    let unknown = models.facts("x/anthropic/claude-opus-5").unwrap();
    assert_eq!((unknown.window, unknown.default_output, unknown.price), (128_000, 8_192, None));
    assert!(!unknown.is_known);
    models.learn_window("x/other", 16_000);
    let learned = models.facts("x/other").unwrap();
    assert_eq!((learned.window, learned.default_output), (16_000, 4_000));
    assert_eq!(models.facts("claude-opus-5"), None);
    let declared = ProviderModels::new(table, Some(50_000));
    assert_eq!(declared.facts("x/m").unwrap().window, 50_000);
}
