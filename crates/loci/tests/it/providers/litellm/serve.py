"""LiteLLM's proxy before an upstream that the first argument names, with the key that the second is; prints its address once it answers, and ends with its input.

The upstream is asked in OpenAI's words for `by-chat` and in Anthropic's for `by-messages`. Nothing leaves the machine: prices are those that
the package brings, and nothing is reported."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

upstream, key = sys.argv[1:]
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
directory = tempfile.mkdtemp(prefix="litellm-")
config = {
    "model_list": [
        {"model_name": "by-chat", "litellm_params": {"model": "openai/m", "api_base": f"{upstream}/v1", "api_key": "sk-upstream"}},
        {"model_name": "by-messages", "litellm_params": {"model": "anthropic/claude-sonnet-4-5", "api_base": upstream, "api_key": "sk-upstream"}},
    ],
    "litellm_settings": {"telemetry": False, "drop_params": True},
}
# JSON is YAML.
path = os.path.join(directory, "config.yaml")
json.dump(config, open(path, "w"))
env = {
    "PATH": "/usr/bin:/bin", "HOME": directory, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False",
    "LITELLM_MASTER_KEY": key, "NO_PROXY": "*", "DISABLE_ADMIN_UI": "True", "LITELLM_MODE": "PRODUCTION",
}
start = "from litellm import run_server; run_server()"
words = [sys.executable, "-c", start, "--config", path, "--host", "127.0.0.1", "--port", str(port)]
log = open(os.path.join(directory, "log"), "w")
proxy = subprocess.Popen(words, env=env, cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
address = f"http://127.0.0.1:{port}"
try:
    for _ in range(1200):
        if proxy.poll() is not None:
            sys.exit(open(log.name).read()[-3000:])
        try:
            urllib.request.urlopen(f"{address}/health/liveliness", timeout=1).read()
            break
        except OSError:
            time.sleep(0.1)
    else:
        sys.exit("it never answered: " + open(log.name).read()[-3000:])
    print(address, flush=True)
    sys.stdin.read()
finally:
    proxy.kill()
    proxy.wait()
