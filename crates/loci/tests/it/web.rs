//! WebFetch and WebSearch: real pages of a server on this machine, read by a model in a request of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use loci_testkit::{Recorded, Script, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_fine, print};

type Asked = Arc<Mutex<Vec<String>>>;

/// A web server on this machine: `/page` is a page, `/moved` leads to another host, `/here` to the page. Returns its
/// address and the heads of the requests that came.
fn web_server() -> (String, Asked) {
    let asked = Asked::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut reader = BufReader::new(connection.unwrap());
            let mut head = String::new();
            while reader.read_line(&mut head).unwrap() > 2 {}
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            log.lock().unwrap().push(head);
            let (status, header, body) = match path.as_str() {
                "/page" => {
                    ("200 OK", "content-type: text/html", "<nav>Menu</nav><h1>Hello</h1><p>from <b>here</b>")
                }
                "/here" => ("302 Found", "location: /page", ""),
                "/moved" => ("301 Moved Permanently", "location: http://127.0.0.2:9/secret", ""),
                _ => ("404 Not Found", "content-type: text/plain", "nothing"),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\n{header}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    (base, asked)
}

fn fetch(url: &str) -> Script {
    let call = Step::call("WebFetch", json!({"url": url, "prompt": "Who greets?"}));
    Script::new([call, Step::text("Done.")]).side_answer(Step::text("It greets from here."))
}

fn told(world: &World) -> String {
    world.last_request().tool_results().remove(0).text
}

/// Returns the requests that a model was asked to read a page with.
fn readings(world: &World) -> Vec<Recorded> {
    world.model.requests().into_iter().filter(|it| it.system_text().contains("You read one page")).collect()
}

#[tokio::test]
async fn page_is_read_by_a_small_model_that_has_nothing_but_the_page() {
    for path in ["/page", "/here"] {
        let (base, asked) = web_server();
        let world = World::new(fetch(&format!("{base}{path}"))).await;
        assert_fine(&world.run(&print(["hi", "--allowedTools", "WebFetch(domain:127.0.0.1)"])));
        assert_eq!(told(&world), "It greets from here.");
        let [reading] = &readings(&world)[..] else { panic!("one reading") };
        let content = reading.last_user_text();
        assert!(content.contains("<page>\n# Hello\n\nfrom **here**\n</page>"), "{content}");
        assert!(content.contains("Who greets?") && !content.contains("Menu"), "{content}");
        assert!(reading.json["model"].as_str().unwrap().contains("haiku"), "{}", reading.json["model"]);
        assert_eq!(reading.messages().len(), 1, "no conversation goes with it");
        let heads = asked.lock().unwrap().join("\n").to_lowercase();
        assert!(
            heads.contains("user-agent: loci/")
                && !heads.contains("authorization")
                && !heads.contains("api-key")
        );
    }
}

#[tokio::test]
async fn this_machine_is_fetched_from_only_where_a_rule_names_it() {
    let (base, asked) = web_server();
    for (flags, is_asked) in [
        (&["--allowedTools", "WebFetch"][..], false),
        (&["--allowedTools", "WebFetch(domain:*)"], false),
        (&["--permission-mode", "acceptEdits"], false),
        (&["--allowedTools", "WebFetch(domain:127.0.0.1)"], true),
    ] {
        let world = World::new(fetch(&format!("{base}/page"))).await;
        asked.lock().unwrap().clear();
        assert_fine(&world.run(&print(["hi"]).args(flags.iter().copied())));
        assert_eq!(asked.lock().unwrap().len(), usize::from(is_asked), "{flags:?}");
        let told = told(&world);
        assert_eq!(told.contains("this machine or on a private network"), !is_asked, "{flags:?}: {told}");
    }
}

#[tokio::test]
async fn page_that_moved_to_another_host_is_told_and_not_followed() {
    let (base, asked) = web_server();
    let world = World::new(fetch(&format!("{base}/moved"))).await;
    assert_fine(&world.run(&print(["hi", "--allowedTools", "WebFetch(domain:127.0.0.1)"])));
    let told = told(&world);
    assert!(told.contains("To: http://127.0.0.2:9/secret") && told.contains("Status: 301"), "{told}");
    assert_eq!((asked.lock().unwrap().len(), readings(&world).len()), (1, 0));
}

#[tokio::test]
async fn missing_page_is_a_result_and_costs_no_model() {
    let (base, _) = web_server();
    let world = World::new(fetch(&format!("{base}/none"))).await;
    assert_fine(&world.run(&print(["hi", "--allowedTools", "WebFetch(domain:127.0.0.1)"])));
    assert!(told(&world).contains("404 Not Found"), "{}", told(&world));
    assert!(readings(&world).is_empty());
}

fn search(input: Value) -> Script {
    Script::new([Step::call("WebSearch", input), Step::text("Done.")])
}

#[tokio::test]
async fn provider_searches_in_a_request_of_its_own_and_its_pages_are_listed() {
    let found = json!([{"type": "web_search_result", "title": "Serde", "url": "https://serde.rs", "encrypted_content": "x"}]);
    let answer = Step::new()
        .raw_block(json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "json"}}))
        .raw_block(json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found}))
        .then_text("Serde is what people use.");
    let is_search = |request: &Recorded| request.json["tools"][0]["type"] == "web_search_20250305";
    let script =
        search(json!({"query": "rust json", "blocked_domains": ["x.test"]})).answer_when(answer, is_search);
    let world = World::new(script).await;
    assert_fine(&world.run(&print(["hi", "--allowedTools", "WebSearch"])));
    let told = told(&world);
    assert!(
        told.contains("- Serde (https://serde.rs)") && told.contains("Serde is what people use."),
        "{told}"
    );
    let asked: Vec<Recorded> = world.requests().into_iter().filter(is_search).collect();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].json["tools"][0]["blocked_domains"], json!(["x.test"]));
    assert!(asked[0].last_user_text().contains("rust json"));
}

#[tokio::test]
async fn command_of_the_setting_searches_in_the_place_of_the_provider() {
    let script = r#"read -r q; printf '[{"title":"From %s","url":"https://a.test"}]' "$(printf %s "$q" | tr -d '{}":,[]')""#;
    let settings = json!({"webSearch": {"command": script}}).to_string();
    let world = World::new(search(json!({"query": "rust json"}))).await;
    assert_fine(&world.run(&print(["hi", "--allowedTools", "WebSearch"]).args(["--settings", &settings])));
    assert!(told(&world).contains("From queryrust json"), "{}", told(&world));
    let broken = json!({"webSearch": {"command": "echo no engine >&2; exit 3"}}).to_string();
    let world = World::new(search(json!({"query": "rust json"}))).await;
    assert_fine(&world.run(&print(["hi", "--allowedTools", "WebSearch"]).args(["--settings", &broken])));
    assert!(told(&world).contains("ended with code 3: no engine"), "{}", told(&world));
}

#[tokio::test]
async fn search_is_asked_about_and_bounded_for_a_session() {
    let world = World::new(search(json!({"query": "rust json"}))).await;
    assert_fine(&world.run(&print(["hi"])));
    assert!(told(&world).contains("sent to a search engine"), "{}", told(&world));
    let world = World::new(search(json!({"query": "rust json"}))).await;
    let binary =
        print(["hi", "--allowedTools", "WebSearch"]).env("CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION", "0");
    assert_fine(&world.run(&binary));
    assert!(told(&world).contains("as many searches as it may"), "{}", told(&world));
}
