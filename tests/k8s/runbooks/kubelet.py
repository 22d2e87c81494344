"""Pods as processes of this machine: volumes are folders, the programs are those of a build. A pod that the manifests give no right
to write does not get it, when this runs as root."""
import base64
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

from store import CLAIM

PROGRAMS = {"coordinator": "atoll-coordinator", "worker-cpu": "atoll-worker"}
# A cluster waits for terminationGracePeriodSeconds, which is longer: here nobody wants to see a worker look for a coordinator that is
# gone for good.
LONGEST_GRACE_S = 8


class Kubelet:
    def __init__(self, folder, bin_dir, source, ports):
        """`ports`: of the coordinator on this machine: data and admin."""
        self.folder, self.bin, self.source, self.ports = pathlib.Path(folder), pathlib.Path(bin_dir), source, ports
        self.store = self.api = None
        self.processes, self.starts = {}, {}
        self.ending = {}  # by namespace and pod's name: who waits for the process of a pod that was deleted

    # ---- volumes
    def claim_folder(self, namespace, name):
        folder = self.folder / "claims" / namespace / name
        if not folder.exists():
            folder.mkdir(parents=True, mode=0o755)
        return folder

    def forget(self, claim):
        for waiting in list(self.ending.values()):  # a volume outlives the pods that use it
            waiting.join()
        shutil.rmtree(self.folder / "claims" / claim["metadata"]["namespace"] / claim["metadata"]["name"], ignore_errors=True)

    def volumes(self, pod):
        """Volume name to folder; None when one is missing, for which a pod waits."""
        namespace, uid = pod["metadata"]["namespace"], pod["metadata"]["uid"]
        found = {}
        for volume in pod["spec"].get("volumes", []):
            folder = self.folder / "pods" / uid / volume["name"]
            if "persistentVolumeClaim" in volume:
                name = volume["persistentVolumeClaim"]["claimName"]
                if (CLAIM, namespace, name) not in self.store.objects:
                    return None
                folder = self.claim_folder(namespace, name)
            elif "configMap" in volume or "secret" in volume:
                resource, name = (("v1", "configmaps"), volume["configMap"]["name"]) if "configMap" in volume else (
                    ("v1", "secrets"), volume["secret"]["secretName"])
                source = self.store.objects.get((resource, namespace, name))
                if source is None:
                    return None
                folder.mkdir(parents=True, exist_ok=True)
                for key, text in source.get("data", {}).items():
                    (folder / key).write_bytes(base64.b64decode(text) if "secret" in volume else text.encode())
            else:
                folder.mkdir(parents=True, exist_ok=True)
            found[volume["name"]] = folder
        return found

    @staticmethod
    def give_to_group(pod, folders):
        """fsGroup: when a pod starts, its claims belong to the group. Another pod may be writing: what it takes away is no error."""
        group = pod["spec"].get("securityContext", {}).get("fsGroup")
        if not group or os.geteuid() != 0:
            return
        claims = [v["name"] for v in pod["spec"].get("volumes", []) if "persistentVolumeClaim" in v]
        for name in claims:
            for top, _, files in os.walk(folders[name]):
                for path in map(pathlib.Path, [top, *(os.path.join(top, file) for file in files)]):
                    with contextlib.suppress(FileNotFoundError):
                        mode = path.stat().st_mode
                        os.chown(path, -1, group)
                        path.chmod(mode | (0o2070 if path.is_dir() else 0o060 | (mode & 0o100) >> 3))
            folders[name].chmod(0o2775)

    def inside(self, container, folders, text):
        """A path in the container as one of this machine."""
        mounts = {m["mountPath"]: str(folders[m["name"]]) for m in container.get("volumeMounts", [])}
        paths = "|".join(re.escape(path) for path in sorted(mounts, key=len, reverse=True))
        text = re.sub(rf"(?<![^=\s])({paths})(?=[/\s]|$)", lambda m: mounts[m[1]], text)
        return text.replace("/usr/share/atoll/text/", f"{self.source}/docs/reference/")

    # ---- processes
    def status(self, pod):
        """Starts what is not started, starts again what failed, and says how the pod is."""
        uid = pod["metadata"]["uid"]
        process = self.processes.get(uid)
        predecessor = self.ending.get(named(pod))
        if (process is None or process.poll() is not None) and not (predecessor and predecessor.is_alive()):
            if time.monotonic() - self.starts.get(uid, -10) > 2:
                self.start(pod)
        return self.condition(pod, self.is_ready(pod))

    @staticmethod
    def condition(pod, is_ready):
        state = "True" if is_ready else "False"
        return {"phase": "Running" if is_ready else "Pending", "conditions": [{"type": "Ready", "status": state}],
                "containerStatuses": [{"name": c["name"], "ready": is_ready, "restartCount": 0, "image": c["image"], "imageID": "x",
                                       "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}} for c in pod["spec"]["containers"]]}

    def is_ready(self, pod):
        uid = pod["metadata"]["uid"]
        process = self.processes.get(uid)
        if process is None or process.poll() is not None:
            return False
        marks = {"coordinator": self.folder / "pods" / uid / "ports", "worker": self.folder / "pods" / uid / "run" / "ready"}
        mark = marks.get(pod["spec"]["containers"][0]["name"])
        return mark is None or mark.exists()

    def start(self, pod):
        folders, uid = self.volumes(pod), pod["metadata"]["uid"]
        if folders is None:
            return
        self.give_to_group(pod, folders)
        self.starts[uid] = time.monotonic()
        (self.folder / "pods" / uid).mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        for container in pod["spec"].get("initContainers", []):
            words = [self.inside(container, folders, word) for word in container["command"] + container["args"]]
            subprocess.run(words, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (container,) = pod["spec"]["containers"]
        image = container["image"].rsplit("/", 1)[1].split(":")[0]
        words = container.get("command") or [str(self.bin / PROGRAMS[image]), *self.arguments(pod, container, folders)]
        with open(self.folder / f"{pod['metadata']['name']}.log", "ab") as log:
            self.processes[uid] = subprocess.Popen(words, stdout=log, stderr=log, env=environment, start_new_session=True)

    def arguments(self, pod, container, folders):
        variables = {}
        for variable in container.get("env", []):
            value = variable.get("value", pod["metadata"]["name"])
            variables[variable["name"]] = re.sub(r"\$\(([A-Z_]+)\)", lambda m: variables[m[1]], value)
        words = []
        for word in container.get("args", []):
            word = self.inside(container, folders, re.sub(r"\$\(([A-Z_]+)\)", lambda m: variables[m[1]], word))
            word = re.sub(r"0\.0\.0\.0:(\d+)", lambda m: f"127.0.0.1:{self.ports.get(m[1], 0)}", word)
            words.append(re.sub(r"^--coordinator=.*", f"--coordinator=127.0.0.1:{self.ports['7600']}", word))
        if container["name"] == "coordinator":
            host, port = self.api.tls.server_address
            words += [f"--port-file={self.folder / 'pods' / pod['metadata']['uid'] / 'ports'}", f"--kube-credentials={self.api.credentials}",
                      f"--kube-api-host={host}", f"--kube-api-port={port}"]
        return words

    def end(self, pod):
        """Asks the process to end, and kills it after its time of grace. The pods of one deletion end side by side."""
        process = self.processes.pop(pod["metadata"]["uid"], None)
        if process and process.poll() is None:
            process.terminate()
            grace = min(pod["spec"].get("terminationGracePeriodSeconds", 30), LONGEST_GRACE_S)
            waiting = threading.Thread(target=end_within, args=(process, grace))
            self.ending[named(pod)] = waiting
            waiting.start()

    def command_in(self, pod, command):
        """What `kubectl exec` runs: atollctl speaks to the coordinator of this pod; files are those of the pod's user."""
        folders = self.volumes(pod) or {}
        (container,) = pod["spec"]["containers"]
        words = [self.inside(container, folders, word) for word in command]
        if words[0] == "tar" and "/" in words:  # as `kubectl cp` has it: the names in the archive begin with the mount's
            root = self.folder / "pods" / pod["metadata"]["uid"] / "root"
            root.mkdir(parents=True, exist_ok=True)
            for mount in container["volumeMounts"]:
                link = root / mount["mountPath"].lstrip("/")
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.is_symlink():
                    link.symlink_to(folders[mount["name"]])
            words = ["tar", "--keep-directory-symlink", *[str(root) if word == "/" else word for word in words[1:]]]
        options = {"cwd": "/", "env": {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}",
                                       "ATOLL_ADMIN": f"127.0.0.1:{self.ports['7601']}", "ATOLL_COORDINATOR": f"127.0.0.1:{self.ports['7600']}"}}
        if os.geteuid() == 0 and words[0] in ("tar", "mkdir"):
            context = pod["spec"].get("securityContext", {})
            options.update(user=context["runAsUser"], group=context["runAsGroup"],
                           extra_groups=[context["fsGroup"]] if "fsGroup" in context else [])
        return words, options

    def close(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            end_within(process, LONGEST_GRACE_S)
        for waiting in self.ending.values():
            waiting.join()


def named(pod):
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def end_within(process, seconds):
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
