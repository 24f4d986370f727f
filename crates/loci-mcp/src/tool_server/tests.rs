use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

use super::*;

/// One tool that says what it is told, and one that waits until it is cancelled.
struct EchoAndWait;

impl ServedTools for EchoAndWait {
    fn tools(&self) -> Vec<ServedTool> {
        let tool = |name: &str| ServedTool {
            name: name.to_owned(),
            description: "d".to_owned(),
            input_schema: json!({"type": "object"}),
        };
        vec![tool("echo"), tool("wait")]
    }

    fn call(
        &self,
        tool: &str,
        arguments: Value,
        cancel: CancellationToken,
        progress: Option<ServedProgress>,
    ) -> ServedCall {
        let is_echo = tool == "echo";
        Box::pin(async move {
            if is_echo {
                return ServedResult::text(arguments.to_string(), arguments.get("fail").is_some());
            }
            if let Some(progress) = progress {
                progress("waiting".to_owned());
            }
            cancel.cancelled().await;
            ServedResult::text("cancelled", true)
        })
    }
}

struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    served: tokio::task::JoinHandle<()>,
}

impl Client {
    fn start() -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let served = tokio::spawn(serve(Arc::new(EchoAndWait), "1.0", read, write, CancellationToken::new()));
        let (read, input) = tokio::io::split(ours);
        Self { input, output: BufReader::new(read).lines(), served }
    }

    async fn say(&mut self, text: &str) {
        self.input.write_all(format!("{text}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn ask(&mut self, message: Value) -> Value {
        self.say(&message.to_string()).await;
        self.hear().await
    }

    /// Closes the input and waits for the server's end.
    async fn end(mut self) {
        self.input.shutdown().await.unwrap();
        self.served.await.unwrap();
    }
}

fn stateless(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[tokio::test]
async fn handshake_comes_first_unless_requests_speak_for_themselves() {
    let mut client = Client::start();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(client.ask(list.clone()).await["error"]["code"], -32602);
    let listed = client.ask(stateless(2, "tools/list", json!({}))).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "echo");
    assert_eq!(
        (&listed["result"]["resultType"], &listed["result"]["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    let greeted = json!({"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    let greeted = client.ask(greeted).await;
    assert_eq!(greeted["result"]["protocolVersion"], "2025-06-18");
    let listed = client.ask(list).await;
    assert_eq!(
        (listed["result"]["tools"].as_array().unwrap().len(), listed["result"].get("ttlMs")),
        (2, None)
    );
    client.end().await;
}

#[tokio::test]
async fn what_cannot_be_answered_is_said_in_the_protocols_words() {
    let mut client = Client::start();
    let newer = json!({"id": 1, "method": "tools/list", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}}});
    let said = client.ask(newer).await;
    assert_eq!(
        (&said["error"]["code"], &said["error"]["data"]["supported"][0]),
        (&json!(-32022), &json!("2026-07-28"))
    );
    for (message, code) in [
        (stateless(2, "resources/list", json!({})), -32601),
        (stateless(3, "tools/call", json!({"name": "none"})), -32602),
        (json!({"id": 4, "method": 5}), -32600),
        (
            json!({"id": 5, "method": "x", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}),
            -32602,
        ),
    ] {
        let said = client.ask(message.clone()).await;
        assert_eq!(said["error"]["code"], code, "{message} {said}");
    }
    client.say("rubbish").await;
    assert_eq!(client.hear().await["error"]["code"], -32700);
    client.end().await;
}

#[tokio::test]
async fn calls_run_side_by_side_and_one_can_be_cancelled() {
    let mut client = Client::start();
    let waiting = stateless(1, "tools/call", json!({"name": "wait"}));
    client.say(&waiting.to_string()).await;
    let echoed = client.ask(stateless(2, "tools/call", json!({"name": "echo", "arguments": {"a": 1}}))).await;
    assert_eq!((&echoed["id"], &echoed["result"]["content"][0]["text"]), (&json!(2), &json!("{\"a\":1}")));
    let twice = client.ask(waiting).await;
    assert_eq!(twice["error"]["code"], -32600, "an id that is under way is not taken again");
    client.say(r#"{"method": "notifications/cancelled", "params": {"requestId": 1}}"#).await;
    let failed =
        client.ask(stateless(3, "tools/call", json!({"name": "echo", "arguments": {"fail": 1}}))).await;
    assert_eq!(
        (&failed["id"], &failed["result"]["isError"]),
        (&json!(3), &json!(true)),
        "a cancelled call has no answer"
    );
    client.end().await;
}

#[tokio::test]
async fn end_of_input_cancels_what_runs_and_progress_is_told() {
    let mut client = Client::start();
    let mut call = stateless(1, "tools/call", json!({"name": "wait"}));
    call["params"]["_meta"]["progressToken"] = json!("p");
    let heard = client.ask(call).await;
    assert_eq!(
        (&heard["method"], &heard["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!("p"))
    );
    client.end().await;
}

#[tokio::test]
async fn subscription_is_acknowledged_with_nothing_to_come() {
    let mut client = Client::start();
    let said = client
        .ask(stateless(7, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})))
        .await;
    assert_eq!(said["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(said["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    client.end().await;
}
