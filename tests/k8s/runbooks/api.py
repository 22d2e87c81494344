"""The API server of the runbooks' cluster: what kubectl and helm ask of one, over HTTP for them and over TLS for the launcher, which
may do what its Role says."""
import http.server
import json
import pathlib
import re
import ssl
import subprocess
import threading
import time
import urllib.parse

import yaml

import patches
import helm_secret
import streams
from store import KINDS, POD, SET, Refused, revision_of

PATH = re.compile(r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+/[^/]+))(?:/namespaces/(?P<namespace>[^/]+)(?=/[a-z]))?/(?P<plural>[a-z]+)"
                  r"(?:/(?P<name>[^/]+))?(?:/(?P<sub>scale|exec|log|status))?$")
TOKEN = "the-launcher's-token"


def selected(obj, query):
    labels, metadata = obj["metadata"].get("labels", {}), obj["metadata"]
    for term in filter(None, query.get("labelSelector", [""])[0].split(",")):
        if "!=" in term:
            key, value = term.split("!=")
            if labels.get(key) == value:
                return False
        elif "=" in term:
            key, value = re.split("==?", term)
            if labels.get(key) != value:
                return False
        elif term not in labels:
            return False
    fields = filter(None, query.get("fieldSelector", [""])[0].split(","))
    return all(metadata.get(f.split("=")[0].replace("metadata.", "")) == f.split("=")[-1] for f in fields)


def group_versions():
    return sorted({resource[0] for resource in KINDS})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = kubelet = None
    launcher_only = False

    def log_message(self, *_):
        pass

    def answer(self, body, code=200):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def respond(self):
        url = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            self.route(url.path.rstrip("/"), urllib.parse.parse_qs(url.query), body)
        except Refused as refused:
            self.answer({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": refused.reason, "code": refused.code,
                         "message": str(refused)}, refused.code)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = respond

    # ---- what there is
    def route(self, path, query, body):
        if path in ("/version", "/api", "/apis") or path.startswith("/openapi/v3"):
            return self.answer(self.discovery(path))
        known = path.replace("/apis/", "", 1) if path.startswith("/apis/") else path.replace("/api/", "", 1)
        if known in group_versions():
            return self.answer(self.resources(known))
        match = PATH.match(path)
        resource = match and (match["core"] or match["group"], match["plural"])
        if resource not in KINDS:
            raise Refused(404, "NotFound", f"the server could not find the requested resource ({path})")
        namespace = (match["namespace"] or "") if KINDS[resource][1] else ""
        if self.launcher_only:
            self.authorize(resource, match)
        if match["sub"] == "exec":
            return self.execute(namespace, match["name"], query)
        if "watch" in query:
            return self.watch(resource, namespace, query)
        with self.store.lock:
            result = self.act(resource, namespace, match["name"], match["sub"], query, body)
        self.answer(result, 201 if self.command == "POST" else 200)

    def discovery(self, path):
        if path == "/version":
            return {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
                {"name": g.split("/")[0], "versions": [{"groupVersion": g, "version": g.split("/")[1]}],
                 "preferredVersion": {"groupVersion": g, "version": g.split("/")[1]}} for g in group_versions() if "/" in g]}
        if path == "/openapi/v3":
            return {"paths": {("apis/" if "/" in g else "api/") + g: {
                "serverRelativeURL": "/openapi/v3/" + ("apis/" if "/" in g else "api/") + g} for g in group_versions()}}
        # Only that fields are validated on this side, as every server since 1.27 says.
        known = path.replace("/openapi/v3/", "").replace("apis/", "").replace("api/", "")
        group, version = known.split("/") if "/" in known else ("", known)
        parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in ("fieldValidation", "dryRun")]
        return {"openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "components": {}, "paths": {
            f"/{known}/{plural}": {"patch": {"parameters": parameters, "responses": {"200": {"description": "ok"}},
                                             "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind}}}
            for (of, plural), (kind, _) in KINDS.items() if of == known}}

    def resources(self, known):
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": known, "resources": [
            {"name": plural, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind,
             "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"]}
            for (of, plural), (kind, namespaced) in KINDS.items() if of == known]}

    def authorize(self, resource, match):
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refused(401, "Unauthorized", "Unauthorized")
        verb = {"GET": "get" if match["name"] else "list"}.get(self.command, self.command.lower())
        name = resource[1] + (f"/{match['sub']}" if match["sub"] else "")
        group = resource[0].split("/")[0] if "/" in resource[0] else ""
        for role in self.store.list(("rbac.authorization.k8s.io/v1", "roles"), match["namespace"]):
            for rule in role["rules"]:
                named = not rule.get("resourceNames") or match["name"] in rule["resourceNames"] or verb == "list"
                if group in rule["apiGroups"] and name in rule["resources"] and verb in rule["verbs"] and named:
                    return
        # Of a name that no rule has, nobody says whether there is such an object: so the real one answers, too.
        raise Refused(403, "Forbidden", f"cannot {verb} {name} {match['name']}")

    # ---- what is done
    def act(self, resource, namespace, name, sub, query, body):
        store = self.store
        if sub == "scale":
            return self.scale(store.get(SET, namespace, name), body)
        if self.command == "GET" and name:
            return store.get(resource, namespace, name)
        if self.command == "GET":
            items = [o for o in store.list(resource, namespace or None) if selected(o, query)]
            return {"kind": KINDS[resource][0] + "List", "apiVersion": resource[0], "metadata": {"resourceVersion": str(store.version)},
                    "items": items}
        if self.command == "DELETE":
            options = json.loads(body) if body[:1] == b"{" else {}
            wanted = options.get("preconditions", {}).get("uid")
            if wanted and store.get(resource, namespace, name)["metadata"]["uid"] != wanted:
                raise Refused(409, "Conflict", "the uid is another one")
            gone = store.delete(resource, namespace, name, options.get("propagationPolicy") == "Orphan")
            # By the uid kubectl knows that what has the name afterwards is another object.
            return {"kind": "Status", "apiVersion": "v1", "status": "Success",
                    "details": {"name": name, "kind": resource[1], "uid": gone["metadata"]["uid"]}}
        if self.command == "PATCH":
            return self.patch(resource, namespace, name, query, body)
        new = helm_secret.secret(body) if body.startswith(helm_secret.MAGIC) else json.loads(body)
        key = (resource, namespace, new["metadata"].get("name"))
        if self.command == "POST" and key in store.objects:
            raise Refused(409, "AlreadyExists", f'{resource[1]} "{key[2]}" already exists')
        return store.put(resource, namespace, new)

    def patch(self, resource, namespace, name, query, body):
        store, kind = self.store, self.headers["Content-Type"]
        old = store.objects.get((resource, namespace, name))
        if kind == "application/apply-patch+yaml":
            manager = (query["fieldManager"][0], resource, namespace, name)
            now = yaml.safe_load(body)
            new = patches.applied(old or {}, store.applied.get(manager, {}), now)
            made = store.put(resource, namespace, new)
            store.applied[manager] = now
            return made
        old = store.get(resource, namespace, name)
        change = patches.merge if kind == "application/merge-patch+json" else patches.strategic
        return store.put(resource, namespace, change(old, json.loads(body)))

    def scale(self, one, body):
        if self.command == "PATCH":
            one["spec"]["replicas"] = json.loads(body)["spec"]["replicas"]
            self.store.put(SET, one["metadata"]["namespace"], one)
            self.store.history.append(f"scaled {one['metadata']['name']} to {one['spec']['replicas']}")
        return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": one["metadata"]["name"]},
                "spec": {"replicas": one["spec"]["replicas"]}, "status": {"replicas": one["spec"]["replicas"], "revision": revision_of(one)}}

    def watch(self, resource, namespace, query):
        if "sendInitialEvents" in query:
            raise Refused(422, "Invalid", "sendInitialEvents is forbidden for watch")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        since, seen = int(query.get("resourceVersion", ["0"])[0] or 0), {}
        deadline = time.monotonic() + float(query.get("timeoutSeconds", ["60"])[0])
        while time.monotonic() < deadline:
            with self.store.lock:
                now = {o["metadata"]["name"]: o for o in self.store.list(resource, namespace or None) if selected(o, query)}
                events = [{"type": "DELETED", "object": seen[n]} for n in seen if n not in now]
                events += [{"type": "MODIFIED" if n in seen else "ADDED", "object": o} for n, o in now.items()
                           if int(o["metadata"]["resourceVersion"]) > int(seen[n]["metadata"]["resourceVersion"] if n in seen else since)]
                text = "".join(json.dumps(event) + "\n" for event in events)
                seen = json.loads(json.dumps(now))
            self.wfile.write(text.encode())
            self.wfile.flush()
            time.sleep(0.1)

    def execute(self, namespace, name, query):
        with self.store.lock:
            pod = self.store.get(POD, namespace, name)
        if not streams.accept(self):
            raise Refused(400, "BadRequest", "only v5.channel.k8s.io is spoken here")
        command, options = self.kubelet.command_in(pod, query["command"])
        streams.serve(self, command, query.get("stdin", [""])[0] == "true", **options)


class Api:
    """Both listeners; `kubeconfig` is for kubectl and helm, `credentials` for the launcher."""

    def __init__(self, store, kubelet, folder):
        self.stopping = threading.Event()
        handler = type("Bound", (Handler,), {"store": store, "kubelet": kubelet})
        self.plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.tls = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Tls", (handler,), {"launcher_only": True}))
        self.credentials = pathlib.Path(folder) / "credentials"
        self.credentials.mkdir()
        certificate, key = self.credentials / "ca.crt", pathlib.Path(folder) / "server.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=atoll-test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                       check=True, stderr=subprocess.DEVNULL)
        (self.credentials / "token").write_text(TOKEN)
        (self.credentials / "namespace").write_text("atoll")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.tls.socket = context.wrap_socket(self.tls.socket, server_side=True, do_handshake_on_connect=False)
        self.kubeconfig = pathlib.Path(folder) / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test", "users": [{"name": "me", "user": {}}],
            "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{self.plain.server_address[1]}"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "me"}}]}))
        for server in (self.plain, self.tls):
            server.daemon_threads = True
            server.handle_error = lambda *_: None
            threading.Thread(target=server.serve_forever, daemon=True).start()

        def control():
            while not self.stopping.wait(0.2):
                store.control()

        self.controllers = threading.Thread(target=control)
        self.controllers.start()

    def close(self):
        self.stopping.set()
        self.controllers.join()
        self.plain.shutdown()
        self.tls.shutdown()
