"""adapter - custom metrics for the cluster's autoscaler, as prometheus-adapter serves them, without a Prometheus.

An extension of the API server (an APIService): whoever asks it for a figure of pods is answered with what these
pods' own /metrics say at that moment."""
import datetime
import http.server
import json
import re
import socket
import ssl
import threading
import urllib.parse

import plane as planes

GROUP, VERSION = "custom.metrics.k8s.io", "v1beta2"
SERVICE = "figures"


def reaches(plane, address):
    """Us, by our key, and nobody else: where all connections are let out and answered, somebody is always there."""
    context = ssl.create_default_context(cafile=plane.path("server.crt"))
    context.check_hostname = False  # it is made for the API server's addresses
    try:
        with socket.create_connection((address, 443), 5) as link, context.wrap_socket(link):
            return True
    except OSError:
        return False


class Adapter:
    def __init__(self, plane, address, metric, figures):
        """`figures(namespace)`: {pod: value}."""
        self.plane, self.metric, self.figures = plane, metric, figures
        self.asked = []  # with what, by whom it may concern
        adapter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                status, answer = adapter.answer(self.path)
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(plane.path("server.crt"), plane.path("server.key"))
        # Each in its own thread: one who connects and says nothing would keep all others out.
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        service = plane.ask("POST", "/api/v1/namespaces/default/services", {
            "metadata": {"name": SERVICE}, "spec": {"ports": [{"name": "https", "port": 443}]}})
        plane.put_endpoint("default", SERVICE, "https", address, self.server.server_address[1])
        # An API server that finds nobody there takes its time before it looks again; one that finds somebody else, on
        # a network that answers for every address, keeps that connection, and never asks us.
        if not planes.wait_until(lambda: reaches(plane, service["spec"]["clusterIP"])):
            raise RuntimeError("nobody leads from the Service to the adapter")
        plane.ask("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {
            "metadata": {"name": "%s.%s" % (VERSION, GROUP)},
            "spec": {"group": GROUP, "version": VERSION, "groupPriorityMinimum": 100, "versionPriority": 100,
                     "insecureSkipTLSVerify": True, "service": {"namespace": "default", "name": SERVICE}}})

    def answer(self, target):
        parts = urllib.parse.urlsplit(target)
        path = urllib.parse.unquote(parts.path)
        if path == "/apis/%s/%s" % (GROUP, VERSION):
            return 200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "%s/%s" % (GROUP, VERSION),
                         "resources": [{"name": "pods/" + self.metric, "singularName": "", "namespaced": True,
                                        "kind": "MetricValueList", "verbs": ["get"]}]}
        asked = re.fullmatch(r"/apis/%s/%s/namespaces/([\w-]+)/pods/\*/(\w+)" % (re.escape(GROUP), VERSION), path)
        if not asked or asked[2] != self.metric:
            return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"}
        self.asked.append(urllib.parse.parse_qs(parts.query))
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        return 200, {"kind": "MetricValueList", "apiVersion": "%s/%s" % (GROUP, VERSION), "metadata": {}, "items": [
            {"describedObject": {"kind": "Pod", "namespace": asked[1], "name": pod, "apiVersion": "/v1"},
             "metric": {"name": self.metric, "selector": None}, "timestamp": now, "value": str(value)}
            for pod, value in self.figures(asked[1]).items()]}

    def close(self):
        self.plane.ask("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/%s.%s" % (VERSION, GROUP))
        self.plane.ask("DELETE", "/api/v1/namespaces/default/services/" + SERVICE)
        self.plane.remove_endpoint("default", SERVICE)
        self.server.shutdown()
        self.server.server_close()
