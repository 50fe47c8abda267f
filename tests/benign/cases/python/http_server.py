# An HTTP server and its client, in one program, on loopback.
import http.server
import json
import threading
import urllib.error
import urllib.request


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/missing":
            self.reply(404, {"error": "nothing here"})
        else:
            self.reply(200, {"path": self.path, "agent": self.headers["X-Agent"]})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(201, {"length": len(body), "first": body[:5].decode()})

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_port}"
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
request = urllib.request.Request(base + "/hello?x=1", headers={"X-Agent": "benign"})
with opener.open(request) as response:
    print(response.status, json.load(response))
with opener.open(base + "/upload", data=b"y" * 100000) as response:
    print(response.status, json.load(response))
try:
    opener.open(base + "/missing")
except urllib.error.HTTPError as error:
    print(error.code, error.reason, json.load(error))
server.shutdown()
server.server_close()
