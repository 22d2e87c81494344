"""The objects of a cluster, and what its controllers do about them: namespaces that take what is in them along, StatefulSets with
pods, claims and rolling updates, garbage collection by owner. Kubernetes' documentation of StatefulSets is the model."""
import copy
import hashlib
import json
import threading
import uuid

KINDS = {  # (group/version, plural): kind, namespaced
    ("v1", "namespaces"): ("Namespace", False), ("v1", "pods"): ("Pod", True), ("v1", "services"): ("Service", True),
    ("v1", "configmaps"): ("ConfigMap", True), ("v1", "secrets"): ("Secret", True), ("v1", "serviceaccounts"): ("ServiceAccount", True),
    ("v1", "persistentvolumeclaims"): ("PersistentVolumeClaim", True), ("apps/v1", "statefulsets"): ("StatefulSet", True),
    ("rbac.authorization.k8s.io/v1", "roles"): ("Role", True), ("rbac.authorization.k8s.io/v1", "rolebindings"): ("RoleBinding", True),
    ("networking.k8s.io/v1", "networkpolicies"): ("NetworkPolicy", True), ("policy/v1", "poddisruptionbudgets"): ("PodDisruptionBudget", True),
}
SET, POD, CLAIM = ("apps/v1", "statefulsets"), ("v1", "pods"), ("v1", "persistentvolumeclaims")
MUTABLE = {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}


class Refused(Exception):
    def __init__(self, code, reason, message):
        super().__init__(message)
        self.code, self.reason = code, reason


class Store:
    """`objects`: (resource, namespace, name) to the object. `history`: what happened to pods, in order."""

    def __init__(self, kubelet):
        self.lock = threading.RLock()
        self.objects, self.history, self.applied = {}, [], {}
        self.version = 0
        self.kubelet = kubelet
        self.put(("v1", "namespaces"), "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})

    # ---- objects
    def get(self, resource, namespace, name):
        found = self.objects.get((resource, namespace, name))
        if found is None:
            raise Refused(404, "NotFound", f'{resource[1]} "{name}" not found')
        return found

    def list(self, resource, namespace=None):
        return [o for (r, n, _), o in sorted(self.objects.items(), key=lambda item: item[0][1:]) if r == resource and namespace in (None, n)]

    def put(self, resource, namespace, new):
        """Creates or replaces. A StatefulSet's fields that no update may change are refused as the API server does it."""
        new = copy.deepcopy(new)
        metadata = new["metadata"]
        if KINDS[resource][1]:
            metadata["namespace"] = namespace
            self.get(("v1", "namespaces"), "", namespace)
        key = (resource, namespace, metadata["name"])
        old = self.objects.get(key)
        if resource == SET:
            default_set(new)
            if old is not None:
                changed = [k for k in {**old["spec"], **new["spec"]} if k not in MUTABLE and old["spec"].get(k) != new["spec"].get(k)]
                if changed:
                    raise Refused(422, "Invalid", f"StatefulSet.apps \"{metadata['name']}\" is invalid: spec: Forbidden: updates to "
                                  f"statefulset spec for fields other than 'replicas' and so on are forbidden: {changed}")
        if resource == CLAIM:
            new["status"] = {"phase": "Bound"}
        self.version += 1
        same = old is not None and old.get("spec") == new.get("spec")
        metadata.setdefault("uid", old["metadata"]["uid"] if old else str(uuid.uuid4()))
        metadata["creationTimestamp"] = old["metadata"]["creationTimestamp"] if old else "2026-01-01T00:00:00Z"
        metadata["generation"] = (old["metadata"].get("generation", 0) if old else 0) + (0 if same else 1)
        metadata["resourceVersion"] = str(self.version)
        self.objects[key] = new
        return new

    def delete(self, resource, namespace, name, orphan=False):
        gone = self.get(resource, namespace, name)
        del self.objects[resource, namespace, name]
        self.version += 1
        if resource == ("v1", "namespaces"):
            inside = [key for key in self.objects if key[1] == name]
            for other, space, each in sorted(inside, key=lambda key: key[0] != POD):  # all pods end before a volume goes
                if (other, space, each) in self.objects:
                    self.delete(other, space, each)
        elif resource == POD:
            self.history.append(f"ended {name}")
            self.kubelet.end(gone)
        elif resource == CLAIM:
            self.history.append(f"lost {name}")
            self.kubelet.forget(gone)
        elif resource == SET and not orphan:
            for pod in self.pods_of(gone):
                self.delete(POD, namespace, pod["metadata"]["name"])
        return gone

    # ---- StatefulSets
    def pods_of(self, one):
        return [p for p in self.list(POD, one["metadata"]["namespace"])
                if any(r["uid"] == one["metadata"]["uid"] for r in p["metadata"].get("ownerReferences", []))]

    def adopt(self, one):
        """Pods that an earlier set of the same name left behind."""
        prefix = one["metadata"]["name"] + "-"
        known = {s["metadata"]["uid"] for s in self.list(SET)}
        for pod in self.list(POD, one["metadata"]["namespace"]):
            owners = pod["metadata"].get("ownerReferences", [])
            if pod["metadata"]["name"].startswith(prefix) and owners and owners[0]["uid"] not in known:
                owners[0]["uid"] = one["metadata"]["uid"]

    def control(self):
        """One look of the controllers."""
        with self.lock:
            for pod in self.list(POD):
                self.set_status(pod)
            for one in self.list(SET):
                self.adopt(one)
                self.control_set(one)

    def set_status(self, pod):
        status = self.kubelet.status(pod)
        if status != pod.get("status"):
            pod["status"] = status
            self.version += 1
            pod["metadata"]["resourceVersion"] = str(self.version)

    def control_set(self, one):
        spec, namespace = one["spec"], one["metadata"]["namespace"]
        revision = revision_of(one)
        pods = {p["metadata"]["name"]: p for p in self.pods_of(one)}
        wanted = [f"{one['metadata']['name']}-{i}" for i in range(spec["replicas"])]
        ordered = spec["podManagementPolicy"] == "OrderedReady"
        for name in [n for n in pods if n not in wanted]:
            self.delete(POD, namespace, name)
            del pods[name]
        unready = [n for n in wanted if n in pods and not ready(pods[n])]
        for name in wanted:
            if name not in pods and not (ordered and unready):
                pods[name] = self.start(one, name, revision)
                break  # one at a look
        stale = [n for n in reversed(wanted) if n in pods and pods[n]["metadata"]["labels"]["controller-revision-hash"] != revision]
        # Ordered: the controller waits for a pod that is not ready before it does anything else, an update included.
        if stale and not (ordered and unready) and (stale[0] in unready or not unready) and spec["updateStrategy"]["type"] == "RollingUpdate":
            self.delete(POD, namespace, stale[0])
            pods.pop(stale[0])
        fresh = [p for p in pods.values() if p["metadata"]["labels"]["controller-revision-hash"] == revision]
        status = {"observedGeneration": one["metadata"]["generation"], "replicas": len(pods), "readyReplicas": sum(map(ready, pods.values())),
                  "availableReplicas": sum(map(ready, pods.values())), "updatedReplicas": len(fresh), "updateRevision": revision,
                  "currentRevision": revision if len(fresh) == len(pods) else "older", "currentReplicas": len(fresh)}
        if one.get("status") != status:
            one["status"] = status
            self.version += 1
            one["metadata"]["resourceVersion"] = str(self.version)

    def start(self, one, name, revision):
        namespace, template = one["metadata"]["namespace"], copy.deepcopy(one["spec"]["template"])
        for claim in one["spec"].get("volumeClaimTemplates", []):
            claimed = f"{claim['metadata']['name']}-{name}"
            if (CLAIM, namespace, claimed) not in self.objects:
                made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": claim["spec"],
                        "metadata": {**claim["metadata"], "name": claimed}}
                self.put(CLAIM, namespace, made)
            template["spec"].setdefault("volumes", []).append({"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": claimed}})
        metadata = template["metadata"]
        metadata.update(name=name, ownerReferences=[{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": one["metadata"]["name"],
                                                     "uid": one["metadata"]["uid"], "controller": True}])
        metadata["labels"] = {**metadata["labels"], "controller-revision-hash": revision}
        self.history.append(f"started {name}")
        return self.put(POD, namespace, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"],
                                         "status": {"phase": "Pending"}})


def default_set(one):
    spec = one["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Retain", "whenScaled": "Retain"})


def revision_of(one):
    return hashlib.sha256(json.dumps(one["spec"]["template"], sort_keys=True).encode()).hexdigest()[:10]


def ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))
