#!/usr/bin/env python3
"""The part of a Kubernetes API server that the launcher speaks to, over TLS: scale of a StatefulSet, and its pods.

Usage: api_server.py DIR. Serves on a free port of 127.0.0.1 and writes it to DIR/port. What is in DIR steers it:

  server.key, server.crt   its certificate
  tokens                   bearer tokens that are accepted, one a line
  forbidden                "verb resource", one a line: answered with 403
  faults/NAME              the next request is answered with the first of these, which is removed: JSON with
                           status, headers, body; delay (s) before the answer; drop: close without one;
                           lose: do what was asked, then close without an answer. With of: [METHOD, END, BODY],
                           only for a request with this method, a path that ends like this, and this in its body. With until: NAME, it
                           stays until DIR/NAME is there, and DIR/NAME.played tells that it was played
  status/POD               JSON that replaces the status of a pod
  sets                     a number: there are as many StatefulSets, train-worker-0 and so on, instead of train-worker

and it appends every request to DIR/requests (JSON lines), before it is judged.
"""
import http.server
import json
import pathlib
import re
import ssl
import sys
import threading
import time
import urllib.parse

SCALE = re.compile(r"/apis/apps/v1/namespaces/(?P<namespace>[^/]+)/statefulsets/(?P<name>[^/]+)/scale$")
PODS = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/pods$")
POD = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/pods/(?P<name>[^/]+)$")
REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict",
           415: "UnsupportedMediaType"}


class Cluster:
    """One namespace with one StatefulSet `train-worker`, and a pod that is none of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.lock = threading.Lock()
        self.namespace = "ml"
        self.name = "train-worker"
        self.uids = 0
        self.pods = {}
        self.replicas = {}  # by set
        self.pods["train-worker-debug"] = self.new_pod("train-worker-debug")

    def new_pod(self, name):
        self.uids += 1
        return {"kind": "Pod", "apiVersion": "v1",
                "metadata": {"name": name, "uid": f"{self.uids:08d}-uid", "labels": {"app.kubernetes.io/name": "train"}},
                "status": {"phase": "Running", "containerStatuses": [
                    {"name": "worker", "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}}

    def sets(self):
        file = self.folder / "sets"
        return [f"{self.name}-{i}" for i in range(int(file.read_text()))] if file.exists() else [self.name]

    def scale(self, name, replicas):
        self.replicas[name] = replicas
        wanted = [f"{each}-{i}" for each in self.sets() for i in range(self.replicas.get(each, 0))]
        for pod in [n for n in self.pods if n not in wanted and n != "train-worker-debug"]:
            del self.pods[pod]
        for pod in wanted:
            self.pods.setdefault(pod, self.new_pod(pod))

    def scale_object(self, name):
        replicas = self.replicas.get(name, 0)
        spec = {"replicas": replicas} if replicas else {}  # as Go leaves a zero out
        return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": name}, "spec": spec,
                "status": {"replicas": len(self.pods) - 1}}

    def pod(self, name):
        pod = self.pods.get(name)
        override = self.folder / "status" / name
        if pod is not None and override.exists():
            pod = dict(pod, status=json.loads(override.read_text()))
        return pod


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster = None
    lose = False

    def log_message(self, *_):
        pass

    def answer(self, code, body, headers=()):
        if self.lose:
            self.lose, self.close_connection = False, True
            return
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(code)
        for key, value in dict(headers).items():
            self.send_header(key, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, code, message):
        self.answer(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message,
                           "reason": REASONS[code], "code": code})

    def take_fault(self, body):
        folder = self.cluster.folder
        for file in sorted((folder / "faults").iterdir()):
            fault = json.loads(file.read_text())
            method, end, part = fault.get("of", [self.command, "", ""])
            if self.command != method or not urllib.parse.urlsplit(self.path).path.endswith(end) or part not in body:
                continue
            until = fault.get("until")
            if until and not (folder / until).exists():
                (folder / f"{until}.played").touch()
                return fault
            file.unlink()
            if not until:
                return fault
        return None

    def fault(self, body):
        """Plays the next prepared fault for this request; False when there is none."""
        with self.cluster.lock:
            fault = self.take_fault(body)
        if fault is None:
            return False
        time.sleep(fault.get("delay", 0))
        if fault.get("drop"):
            self.close_connection = True
            return True
        self.lose = fault.get("lose", False)
        if "status" not in fault:
            return False  # only late, or lost on the way back
        self.answer(fault["status"], fault.get("body", ""), fault.get("headers", {}))
        return True

    def handle_request(self):
        url = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        with self.cluster.lock:
            with open(self.cluster.folder / "requests", "a", encoding="utf-8") as log:
                print(json.dumps({"method": self.command, "path": self.path, "body": body,
                                  "authorization": self.headers.get("Authorization", ""),
                                  "content_type": self.headers.get("Content-Type", "")}), file=log)
        if self.fault(body):
            return
        tokens = (self.cluster.folder / "tokens").read_text().split()
        if self.headers.get("Authorization", "") not in [f"Bearer {token}" for token in tokens]:
            self.refuse(401, "Unauthorized")
            return
        with self.cluster.lock:
            self.route(url, body)

    def route(self, url, body):
        for pattern, resource, verbs in [(SCALE, "statefulsets/scale", {"GET": "get", "PATCH": "patch"}),
                                         (PODS, "pods", {"GET": "list"}),
                                         (POD, "pods", {"GET": "get", "DELETE": "delete"})]:
            match = pattern.match(url.path)
            if not match or self.command not in verbs:
                continue
            verb = verbs[self.command]
            forbidden = (self.cluster.folder / "forbidden").read_text().splitlines()
            if f"{verb} {resource}" in forbidden or match["namespace"] != self.cluster.namespace:
                self.refuse(403, f'{resource} is forbidden: User "system:serviceaccount:ml:atoll" cannot {verb} resource')
                return
            getattr(self, f"{verb}_{resource.replace('/', '_')}")(match, url, body)
            return
        self.refuse(404, "the server could not find the requested resource")

    def get_statefulsets_scale(self, match, _url, _body):
        if match["name"] not in self.cluster.sets():
            self.refuse(404, f'statefulsets.apps "{match["name"]}" not found')
            return
        self.answer(200, self.cluster.scale_object(match["name"]))

    def patch_statefulsets_scale(self, match, _url, body):
        if match["name"] not in self.cluster.sets():
            self.refuse(404, f'statefulsets.apps "{match["name"]}" not found')
        elif self.headers.get("Content-Type") != "application/merge-patch+json":
            self.refuse(415, "the body of the request was in an unknown format")
        else:
            self.cluster.scale(match["name"], int(json.loads(body)["spec"]["replicas"]))
            self.answer(200, self.cluster.scale_object(match["name"]))

    def list_pods(self, _match, url, _body):
        query = urllib.parse.parse_qs(url.query)
        if query.get("labelSelector") != ["app.kubernetes.io/name=train"]:
            self.answer(200, {"kind": "PodList", "metadata": {}, "items": []})
            return
        names = sorted(self.cluster.pods)
        start = int(query.get("continue", ["0"])[0])
        end = start + min(int(query["limit"][0]), 3)  # a server may give less than it is asked for
        metadata = {"continue": str(end)} if end < len(names) else {}
        self.answer(200, {"kind": "PodList", "metadata": metadata,
                          "items": [self.cluster.pod(name) for name in names[start:end]]})

    def get_pods(self, match, _url, _body):
        pod = self.cluster.pod(match["name"])
        if pod is None:
            self.refuse(404, f'pods "{match["name"]}" not found')
        else:
            self.answer(200, pod)

    def delete_pods(self, match, _url, body):
        name = match["name"]
        if name not in self.cluster.pods:
            self.refuse(404, f'pods "{name}" not found')
            return
        uid = json.loads(body).get("preconditions", {}).get("uid") if body else None
        if uid is not None and uid != self.cluster.pods[name]["metadata"]["uid"]:
            self.refuse(409, f"Precondition failed: UID in precondition: {uid}")
            return
        self.cluster.pods[name] = self.cluster.new_pod(name)  # the set makes it anew
        self.answer(200, {"kind": "Status", "status": "Success"})

    do_GET = do_PATCH = do_DELETE = handle_request


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that does not believe our certificate, or that did not wait


def main():
    folder = pathlib.Path(sys.argv[1])
    Handler.cluster = Cluster(folder)
    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    # Not in accept(): a handshake that fails must not end the server.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    (folder / "port.new").write_text(str(server.server_address[1]))
    (folder / "port.new").rename(folder / "port")
    server.serve_forever()


if __name__ == "__main__":
    main()
