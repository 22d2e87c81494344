"""An API server of one namespace, as far as a rendered Role lets its account ask: scale of the workers' StatefulSet and its
pods, which it really starts and ends."""
import http.server
import json
import re
import ssl
import subprocess
import threading

TOKEN = "the-service-account's-token"
NAMESPACE = "atoll"
PATHS = [(re.compile(r"/apis/apps/v1/namespaces/atoll/(?P<resource>statefulsets)/(?P<name>[^/?]+)/scale$"), "apps", "/scale"),
         (re.compile(r"/api/v1/namespaces/atoll/(?P<resource>pods)/(?P<name>[^/?]+)$"), "", ""),
         (re.compile(r"/api/v1/namespaces/atoll/(?P<resource>pods)(?P<name>)$"), "", "")]


class ApiServer:
    """`start(ordinal)` and `end(ordinal)` make and remove the pods of the set `name`. As in a cluster that happens after the
    answer; `failures` has what went wrong."""

    def __init__(self, address, folder, rules, name, replicas, start, end):
        self.rules, self.name, self.replicas, self.start_pod, self.end_pod = rules, name, replicas, start, end
        self.lives = dict.fromkeys(range(replicas), 1)  # ordinal to the number of pods that it had
        self.refused, self.calls, self.failures = [], set(), []
        self.credentials = folder / "credentials"
        self.credentials.mkdir(mode=0o755)
        certificate, key = self.credentials / "ca.crt", folder / "server.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                        "2", "-subj", "/CN=atoll-test", "-addext", f"subjectAltName=IP:{address}", "-keyout", key, "-out",
                        certificate], check=True, stderr=subprocess.DEVNULL)
        (self.credentials / "token").write_text(TOKEN, encoding="utf-8")
        (self.credentials / "namespace").write_text(NAMESPACE, encoding="utf-8")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        handler = type("Handler", (Handler,), {"server_of_ours": self})
        self.http = http.server.ThreadingHTTPServer((address, 0), handler)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.address = f"{address}:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def allowed(self, verb, group, resource, name):
        return any(group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"] and
                   (not rule.get("resourceNames") or name in rule["resourceNames"]) for rule in self.rules)

    def pod(self, ordinal):
        return {"kind": "Pod", "apiVersion": "v1",
                "metadata": {"name": f"{self.name}-{ordinal}", "uid": f"{ordinal}-{self.lives[ordinal]}"},
                "status": {"phase": "Running", "containerStatuses": [
                    {"name": "worker", "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}}

    def later(self, *steps):
        def work():
            try:
                for step, ordinal in steps:
                    step(ordinal)
            except Exception as error:  # noqa: BLE001: whatever it is, the test must hear of it
                self.failures.append(str(error))

        threading.Thread(target=work, daemon=True).start()

    def scale(self, replicas):
        before, self.replicas = self.replicas, replicas
        for ordinal in range(before, replicas):
            self.lives[ordinal] = self.lives.get(ordinal, 0) + 1
            self.later((self.start_pod, ordinal))
        for ordinal in range(replicas, before):
            self.later((self.end_pod, ordinal))

    def restart(self, name, uid):
        ordinal = int(name.rsplit("-", 1)[1])
        if self.pod(ordinal)["metadata"]["uid"] != uid:
            return False
        self.lives[ordinal] += 1
        self.later((self.end_pod, ordinal), (self.start_pod, ordinal))
        return True

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of_ours = None

    def log_message(self, *_):
        pass

    def answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def respond(self):
        server, path = self.server_of_ours, self.path.split("?")[0]
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer(401, {"kind": "Status", "message": "Unauthorized"})
            return
        for pattern, group, subresource in PATHS:
            match = pattern.match(path)
            if not match:
                continue
            resource, name = match["resource"] + subresource, match["name"]
            verb = {"GET": "get" if name else "list", "PATCH": "patch", "DELETE": "delete"}[self.command]
            if not server.allowed(verb, group, resource, name):
                server.refused.append(f"{verb} {group}/{resource} {name}")
                self.answer(403, {"kind": "Status", "message": f"cannot {verb} {resource}"})
                return
            server.calls.add(f"{group}/{resource} {verb}")
            self.carry_out(verb, name, body)
            return
        server.refused.append(path)
        self.answer(404, {"kind": "Status", "message": "there is no such path"})

    do_GET = do_PATCH = do_DELETE = respond

    def carry_out(self, verb, name, body):
        server = self.server_of_ours
        if verb == "list":
            self.answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {},
                              "items": [server.pod(ordinal) for ordinal in range(server.replicas)]})
        elif verb == "delete":
            gone = server.restart(name, body["preconditions"]["uid"])
            self.answer(200 if gone else 409, {"kind": "Status", "message": "" if gone else "another uid"})
        elif verb == "get" and name != server.name:
            self.answer(200, server.pod(int(name.rsplit("-", 1)[1])))
        else:
            if verb == "patch":
                server.scale(body["spec"]["replicas"])
            self.answer(200, {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": name},
                              "spec": {"replicas": server.replicas}, "status": {"replicas": server.replicas}})
