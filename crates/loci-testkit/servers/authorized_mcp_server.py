"""An MCP server and its authorization server on one port of loopback, strict about what clients send.

Options come from the JSON file named by the first argument, read at each request, so that a test changes them as it goes:

- describe: where the resource is described: "header", "path" (default), "root", "none", "foreign" (another resource)
- issuer_path: path of the issuer ("" by default); openid: described as an OpenID provider only
- issuer: what the description calls itself, if not itself; metadata_redirect: the description redirects to another host
- challenge_scope, resource_scopes, server_scopes: scopes of the 401 header, of the resource, of the authorization server
- registration (default true), cimd, auth_methods: how clients become known
- deny, state, iss: what the page answers ("wrong" for another one); names_issuer: whether it says that it names itself
- expires_in, refresh_error, refresh_status, without_refresh_token: what the token endpoint answers
- always_401, call_scope, call_status: what the MCP server answers
- revocation (default true)

Every request is a line of JSON in the file named by the second argument. The port is printed.
"""

import base64
import hashlib
import json
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

options_file, log_file = sys.argv[1:3]
codes, clients, access, refresh = {}, {}, {}, {}
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.serve()

    def do_POST(self):
        self.serve()

    def do_DELETE(self):
        self.serve()

    def answer(self, status, value=None, **headers):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, it in headers.items():
            self.send_header(name.replace("_", "-"), it)
        self.end_headers()
        self.wfile.write(body)

    def option(self, name, default=None):
        return self.options.get(name, default)

    def serve(self):
        with open(options_file) as file:
            self.options = json.load(file)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        parts = urlsplit(self.path)
        self.base = f"http://{self.headers['Host']}"
        self.home = f"http://127.0.0.1:{port}"
        self.issuer = self.home + self.option("issuer_path", "")
        kind = self.headers.get("Content-Type", "")
        self.form = {name: it[0] for name, it in parse_qs(body if "form" in kind else parts.query).items()}
        self.sent = json.loads(body) if "json" in kind and body else {}
        note = {"method": self.command, "path": parts.path, "authorization": self.headers.get("Authorization")}
        note |= {"rpc": self.sent.get("method")} if "jsonrpc" in self.sent else {"sent": self.sent or self.form}
        with lock, open(log_file, "a") as file:
            file.write(json.dumps(note) + "\n")
        with lock:
            self.route(parts.path)

    def route(self, path):
        well_known = "/.well-known/oauth-protected-resource"
        kinds = ["/.well-known/openid-configuration"]
        if not self.option("openid"):
            kinds.append("/.well-known/oauth-authorization-server")
        describe = self.option("describe", "path")
        places = {"header": "/described", "path": well_known + "/mcp", "root": well_known, "foreign": well_known}
        issuer_path = self.option("issuer_path", "")
        if path == places.get(describe):
            return self.describe_resource()
        if path in [kind + issuer_path for kind in kinds] or path == issuer_path + kinds[0]:
            return self.describe_server()
        doors = {"/register": self.register, "/authorize": self.authorize, "/token": self.token, "/revoke": self.revoke}
        if path in doors:
            return doors[path]()
        if path == "/mcp":
            return self.mcp()
        self.answer(404, {"error": "not_found"})

    def describe_resource(self):
        if self.option("metadata_redirect"):
            other = "localhost" if "127.0.0.1" in self.headers["Host"] else "127.0.0.1"
            return self.answer(302, Location=f"http://{other}:{port}{self.path}")
        name = "http://127.0.0.1:9/mcp" if self.option("describe") == "foreign" else f"{self.home}/mcp"
        value = {"resource": name, "authorization_servers": [self.issuer]}
        if self.option("resource_scopes"):
            value["scopes_supported"] = self.option("resource_scopes").split()
        self.answer(200, value)

    def describe_server(self):
        value = {
            "issuer": self.option("issuer", self.issuer),
            "authorization_endpoint": f"{self.home}/authorize",
            "token_endpoint": f"{self.home}/token",
            "code_challenge_methods_supported": ["S256"],
        }
        if self.option("registration", True):
            value["registration_endpoint"] = f"{self.home}/register"
        if self.option("revocation", True):
            value["revocation_endpoint"] = f"{self.home}/revoke"
        if self.option("cimd"):
            value["client_id_metadata_document_supported"] = True
        if self.option("names_issuer"):
            value["authorization_response_iss_parameter_supported"] = True
        if self.option("auth_methods"):
            value["token_endpoint_auth_methods_supported"] = self.option("auth_methods")
        if self.option("server_scopes"):
            value["scopes_supported"] = self.option("server_scopes").split()
        self.answer(200, value)

    def register(self):
        asked = self.sent
        if asked.get("application_type") != "native" or "authorization_code" not in asked.get("grant_types", []):
            return self.answer(400, {"error": "invalid_client_metadata"})
        client = {"client_id": f"client-{len(clients) + 1}", "redirect_uris": asked["redirect_uris"]}
        client["token_endpoint_auth_method"] = asked["token_endpoint_auth_method"]
        if client["token_endpoint_auth_method"] != "none":
            client["client_secret"] = secrets.token_hex(16)
        clients[client["client_id"]] = client
        self.answer(201, client)

    def authorize(self):
        ask = self.form
        client = clients.get(ask["client_id"])
        known = client or ask["client_id"] in ("configured", self.option("cimd"))
        if not known or (client and ask["redirect_uri"] not in client["redirect_uris"]):
            return self.answer(400, {"error": "unknown client or redirect"})
        if ask.get("code_challenge_method") != "S256" or not ask.get("state"):
            return self.answer(400, {"error": "no proof or state"})
        code = secrets.token_hex(8)
        codes[code] = ask
        reply = {"code": code, "state": "another" if self.option("state") == "wrong" else ask["state"]}
        if self.option("deny"):
            reply = {"error": "access_denied", "error_description": "not today", "state": ask["state"]}
        if self.option("iss"):
            reply["iss"] = "https://evil.example" if self.option("iss") == "wrong" else self.issuer
        self.answer(302, Location=f"{ask['redirect_uri']}?{urlencode(reply)}")

    def client_of_form(self):
        """Returns who asks, or none when they do not say so as they should."""
        secret = None
        given = self.form.get("client_id")
        header = self.headers.get("Authorization") or ""
        if header.startswith("Basic "):
            given, secret = base64.b64decode(header[6:]).decode().split(":", 1)
        elif "client_secret" in self.form:
            secret = self.form["client_secret"]
        wanted = clients.get(given, {}).get("client_secret")
        if given == "configured":
            wanted = self.option("configured_secret")
        return given if secret == wanted else None

    def token(self):
        client, form = self.client_of_form(), self.form
        if client is None:
            return self.answer(401, {"error": "invalid_client"})
        if form["grant_type"] == "refresh_token":
            if self.option("refresh_status"):
                return self.answer(self.option("refresh_status"))
            if self.option("refresh_error"):
                return self.answer(400, {"error": self.option("refresh_error")})
            # What renews a token does so once: whoever comes second has lost it.
            scope = refresh.pop(form["refresh_token"], None)
            if scope is None:
                return self.answer(400, {"error": "invalid_grant"})
            return self.give(scope)
        ask = codes.pop(form.get("code"), None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=")
        if ask is None or ask["code_challenge"] != proof.decode() or ask["redirect_uri"] != form["redirect_uri"]:
            return self.answer(400, {"error": "invalid_grant", "error_description": "code, proof or redirect"})
        if ask["client_id"] != client or ask.get("resource") != form.get("resource"):
            return self.answer(400, {"error": "invalid_target"})
        if self.option("describe", "path") != "none" and form.get("resource") != f"{self.home}/mcp":
            return self.answer(400, {"error": "invalid_target"})
        self.give(ask.get("scope", ""))

    def give(self, scope):
        token, renewal = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        access[token], refresh[renewal] = scope, scope
        value = {"access_token": token, "token_type": "Bearer", "expires_in": self.option("expires_in", 3600)}
        if not self.option("without_refresh_token"):
            value["refresh_token"] = renewal
        if scope:
            value["scope"] = scope
        self.answer(200, value)

    def revoke(self):
        if self.client_of_form() is None:
            return self.answer(401, {"error": "invalid_client"})
        access.pop(self.form["token"], None)
        refresh.pop(self.form["token"], None)
        self.answer(200)

    def challenge(self, **more):
        parts = {"realm": "mcp, here", **more}
        if self.option("describe") == "header":
            parts["resource_metadata"] = f"{self.home}/described"
        if self.option("challenge_scope") and "scope" not in parts:
            parts["scope"] = self.option("challenge_scope")
        return "Bearer " + ", ".join(f'{name}="{it}"' for name, it in parts.items())

    def mcp(self):
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if self.option("basic"):
            return self.answer(401, WWW_Authenticate='Basic realm="x"')
        if token not in access or self.option("always_401"):
            return self.answer(401, {"you sent": token}, WWW_Authenticate=self.challenge(error="invalid_token"))
        if self.command != "POST":
            return self.answer(405 if self.command == "GET" else 200)
        method, result = self.sent.get("method"), {}
        if "id" not in self.sent:
            return self.answer(202)
        if method == "tools/call":
            wanted = self.option("call_scope")
            if wanted and wanted not in access[token].split():
                header = self.challenge(error="insufficient_scope", scope=wanted)
                return self.answer(403, WWW_Authenticate=header)
            result = {"content": [{"type": "text", "text": f"scope: {access[token]}"}]}
        elif method == "initialize":
            info = {"name": "authorized", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        elif method == "tools/list":
            result = {"tools": [{"name": "scope", "description": "Says what the login allows.", "inputSchema": {"type": "object"}}]}
        else:
            error = {"code": -32601, "message": "unknown"}
            return self.answer(400, {"jsonrpc": "2.0", "id": self.sent["id"], "error": error})
        self.answer(200, {"jsonrpc": "2.0", "id": self.sent["id"], "result": result})


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
port = server.server_address[1]
print(port, flush=True)
server.serve_forever()
