"""Which metrics there are, as docs/metrics.md has them, and which ones an expression asks for."""
import re

# Prometheus's own.
BUILT_IN = {"up": {"job", "instance"}}
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
NAME = re.compile(r"(?<![\w:$.])((?:atoll|process)[_:][a-z0-9_:]+|up)(?![\w:(])")
SELECTOR = re.compile(r"((?:atoll|process)[_:][a-z0-9_:]+)\{([^}]*)\}")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


def documented(page):
    """name -> labels; of a histogram its three series, and `le` of the buckets."""
    metrics = dict(BUILT_IN)
    for line in page.splitlines():
        match = re.match(r"\| `(\w+)` \| (\w+)[^|]*\| ([^|]*)\|", line)
        if not match:
            continue
        name, kind, labels = match[1], match[2], set(re.findall(r"`(\w+)`", match[3]))
        if kind == "histogram":
            metrics |= {f"{name}_bucket": labels | {"le"}, f"{name}_sum": labels, f"{name}_count": labels}
        else:
            metrics[name] = metrics.get(name, set()) | labels
    return metrics


def problems(expression, metrics):
    """Names and labels in the expression that no program has."""
    found = [f"{name}: no such metric" for name in sorted(set(NAME.findall(STRING.sub('""', expression)))) if name not in metrics]
    for name, selector in SELECTOR.findall(STRING.sub('""', expression)):
        for label in LABEL.findall(selector):
            # Every series has the labels of its target.
            if name in metrics and label not in metrics[name] | {"instance", "job"}:
                found.append(f"{name}: has no label {label}")
    return found
