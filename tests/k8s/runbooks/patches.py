"""Kubernetes' patches of objects: merge, strategic merge (the lists that Atoll's objects have), and server-side apply as far as one
applier after another needs it."""
import copy

# Lists of a pod that are merged by the key of their items; others are replaced as a whole.
KEYS = {"containers": "name", "initContainers": "name", "env": "name", "volumes": "name", "volumeMounts": "mountPath",
        "imagePullSecrets": "name", "topologySpreadConstraints": "topologyKey", "ownerReferences": "uid"}


def key_of(field, items):
    if field == "ports":
        return "containerPort" if any("containerPort" in item for item in items) else "port"
    return KEYS.get(field)


def merge(target, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def strategic(target, patch, field=""):
    if isinstance(patch, list) and all(isinstance(item, dict) for item in patch) and patch:
        key = key_of(field, patch)
        return merged_list(target or [], patch, key) if key else patch
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {k: v for k, v in patch.items() if k != "$patch"}
    result = dict(target) if isinstance(target, dict) else {}
    if "$retainKeys" in patch:
        result = {k: v for k, v in result.items() if k in patch["$retainKeys"]}
    for key, value in patch.items():
        if key.startswith("$setElementOrder") or key == "$retainKeys":
            continue
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.split("/", 1)[1]
            result[name] = [item for item in result.get(name, []) if item not in value]
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = strategic(result.get(key), value, key)
    return result


def merged_list(target, patch, key):
    items = {item.get(key): item for item in target}
    for item in patch:
        if item.get("$patch") == "delete":
            items.pop(item.get(key), None)
        else:
            items[item.get(key)] = strategic(items.get(item.get(key)), item)
    return list(items.values())


def applied(live, before, now, field=""):
    """Server-side apply: what this manager applied `before` and no longer applies goes, what it applies `now` counts."""
    if isinstance(now, list) and all(isinstance(item, dict) for item in now) and now and key_of(field, now):
        key = key_of(field, now)
        old = {item.get(key): item for item in before or [] if isinstance(item, dict)}
        have = {item.get(key): item for item in live or []}
        wanted = {item.get(key): item for item in now}
        kept = {k: item for k, item in have.items() if k in wanted or k not in old}
        return [applied(kept.get(k), old.get(k), wanted[k]) if k in wanted else item
                for k, item in {**kept, **wanted}.items()]
    if not isinstance(now, dict):
        return copy.deepcopy(now)
    before = before if isinstance(before, dict) else {}
    result = {k: v for k, v in (live if isinstance(live, dict) else {}).items() if k in now or k not in before}
    for key, value in now.items():
        result[key] = applied(result.get(key), before.get(key), value, key)
    return result
