"""Runs the pods of rendered workloads with podman: what a kubelet and the workloads' controllers would do, as far as the
manifests ask for it. Each pod has an address and volumes of its own; what the template does not allow is not there."""
import base64
import re
import shutil
import subprocess
import time
import urllib.request

CREDENTIALS = "/var/run/secrets/kubernetes.io/serviceaccount"


class Pods:
    def __init__(self, engine, objects, network, credentials=None, api=None):
        """`credentials`: a folder with token, ca.crt and namespace; `api`: the API server's address, as host:port."""
        self.engine, self.network = engine, network
        self.credentials, self.api = credentials, api
        self.objects = {(o["kind"], o["metadata"]["name"]): o for o in objects}
        self.volumes = engine.folder / "volumes"
        self.addresses = {}

    def address_of(self, name):
        if name not in self.addresses:
            self.addresses[name] = f"{self.network}.{10 + len(self.addresses)}"
        return self.addresses[name]

    def hosts(self):
        """Every service by name, at the first pod of the workload that it selects."""
        for (kind, name), service in self.objects.items():
            if kind != "Service":
                continue
            for (workload_kind, workload), spec in self.objects.items():
                labels = spec["spec"].get("template", {}).get("metadata", {}).get("labels", {}) if "spec" in spec else {}
                if workload_kind == "StatefulSet" and service["spec"]["selector"].items() <= labels.items():
                    yield f"--add-host={name}:{self.address_of(f'{workload}-0')}"

    def folder(self, pod, volume, fresh):
        folder = self.volumes / pod / volume
        if fresh and folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def make_volumes(self, workload, pod, new_pod):
        """Volume name to the folder that stands for it. Claims stay; what belongs to the pod goes with it."""
        spec = workload["spec"]["template"]["spec"]
        group = spec["securityContext"]["fsGroup"]
        folders = {claim["metadata"]["name"]: self.folder(pod, claim["metadata"]["name"], False)
                   for claim in workload["spec"].get("volumeClaimTemplates", [])}
        for volume in spec["volumes"]:
            folder = self.folder(pod, volume["name"], new_pod)
            folders[volume["name"]] = folder
            if "configMap" in volume:
                for key, text in self.objects["ConfigMap", volume["configMap"]["name"]]["data"].items():
                    (folder / key).write_text(text, encoding="utf-8")
            elif "secret" in volume:
                for key, text in self.objects["Secret", volume["secret"]["secretName"]]["data"].items():
                    (folder / key).write_bytes(base64.b64decode(text))
            elif "emptyDir" not in volume:
                raise ValueError(f"{pod}: no such kind of volume: {volume}")
        for folder in folders.values():
            shutil.chown(folder, 0, group)
            folder.chmod(0o2775)
        return folders

    def arguments(self, workload, pod, container, folders):
        spec = workload["spec"]["template"]["spec"]
        context, own = spec["securityContext"], container["securityContext"]
        assert own["readOnlyRootFilesystem"] and own["capabilities"]["drop"] == ["ALL"] and not own["allowPrivilegeEscalation"]
        words = ["--hostname", pod, f"--network={self.network_name}", f"--ip={self.address_of(pod)}", *self.hosts(),
                 "--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges",
                 f"--user={context['runAsUser']}:{context['runAsGroup']}", f"--group-add={context['fsGroup']}",
                 f"--stop-timeout={spec['terminationGracePeriodSeconds']}"]
        for mount in container["volumeMounts"]:
            options = ":ro" if mount.get("readOnly") else ""
            words.append(f"--volume={folders[mount['name']]}:{mount['mountPath']}{options}")
        environment = {}
        for variable in container.get("env", []):
            value = pod if "valueFrom" in variable else expand(variable["value"], environment)
            environment[variable["name"]] = value
        if spec["automountServiceAccountToken"]:
            words.append(f"--volume={self.credentials}:{CREDENTIALS}:ro")
            environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"] = self.api.split(":")
        words += [f"--env={name}={value}" for name, value in environment.items()]
        if "command" in container:
            words.append(f"--entrypoint={container['command'][0]}")
        command = container.get("command", [])[1:] + container.get("args", [])
        return words, [container["image"], *[expand(word, environment) for word in command]]

    @property
    def network_name(self):
        return "atoll-" + self.network.replace(".", "-")

    def start(self, kind, set_name, ordinal, new_pod=True):
        """The pod of this number: its init containers to their end, then the container. `new_pod`: else it is the same
        pod, whose container is started again."""
        workload, pod = self.objects[kind, set_name], f"{set_name}-{ordinal}"
        spec = workload["spec"]["template"]["spec"]
        folders = self.make_volumes(workload, pod, new_pod)
        for container in spec.get("initContainers", []):
            words, command = self.arguments(workload, pod, container, folders)
            self.engine.podman("run", "--rm", "--name", f"{pod}-{container['name']}", *words, *command)
        (container,) = spec["containers"]
        words, command = self.arguments(workload, pod, container, folders)
        self.engine.podman("run", "--detach", "--replace", "--name", pod, *words, *command)

    def stop(self, pod):
        """SIGTERM, its grace, SIGKILL; returns the exit code."""
        self.engine.podman("stop", pod)
        return self.exit_code(pod)

    def exit_code(self, pod):
        return int(self.engine.podman("inspect", "--format={{.State.ExitCode}}", pod))

    def log(self, pod):
        done = subprocess.run(["podman", *map(str, self.engine.storage), "logs", pod], env=self.engine.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.stdout

    def probe(self, kind, set_name, ordinal, which):
        """Whether the container's livenessProbe or readinessProbe succeeds now."""
        pod = f"{set_name}-{ordinal}"
        (container,) = self.objects[kind, set_name]["spec"]["template"]["spec"]["containers"]
        probe = container[which]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        if "exec" in probe:
            return subprocess.run(["podman", *map(str, self.engine.storage), "exec", pod, *probe["exec"]["command"]],
                                  env=self.engine.environment, check=False, stderr=subprocess.DEVNULL).returncode == 0
        if "httpGet" in probe:
            url = f"http://{self.address_of(pod)}:{ports[probe['httpGet']['port']]}{probe['httpGet']['path']}"
            try:
                with urllib.request.urlopen(url, timeout=probe["timeoutSeconds"]) as answer:
                    return answer.status == 200
            except OSError:
                return False
        return grpc_serving(f"{self.address_of(pod)}:{probe['grpc']['port']}", probe["grpc"].get("service", ""))


def expand(text, environment):
    return re.sub(r"\$\(([A-Z_]+)\)", lambda match: environment[match[1]], text)


def grpc_serving(address, service):
    """What a kubelet asks: grpc.health.v1.Health/Check."""
    import grpc
    with grpc.insecure_channel(address) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            return check(b"\x0a" + bytes([len(service)]) + service.encode(), timeout=5) == b"\x08\x01"
        except grpc.RpcError:
            return False


def wait_for(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.5)
    raise AssertionError(f"not in {seconds} s: {what() if callable(what) else what}")
