"""Which metrics there are, as docs/reference/metrics.md has them, and which ones an expression asks for."""
import re

# Prometheus's own.
BUILT_IN = {"up": {"job": set(), "instance": set()}}
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
NAME = re.compile(r"(?<![\w:$.])((?:atoll|process)[_:][a-z0-9_:]+|up)(?![\w:(])")
SELECTOR = re.compile(r'((?:atoll|process)[_:][a-z0-9_:]+)\{((?:[^}"]|"[^"]*")*)\}')
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
# A regular expression that is nothing but a list of values.
LIST = re.compile(r"\w+(?:\|\w+)*")


def documented(page):
    """name -> {label: its values, empty where the page names none}; of a histogram its three series, and `le` of the buckets."""
    metrics = dict(BUILT_IN)
    for line in page.splitlines():
        match = re.match(r"\| `(\w+)` \| (\w+)[^|]*\| ([^|]*)\|", line)
        if not match:
            continue
        name, kind = match[1], match[2]
        labels = {label: set(values.strip().split(", ")) if values else set()
                  for label, values in re.findall(r"`(\w+)`(?:: ([\w, ]+))?", match[3])}
        if kind == "histogram":
            metrics |= {f"{name}_bucket": labels | {"le": set()}, f"{name}_sum": labels, f"{name}_count": labels}
        else:
            metrics[name] = metrics.get(name, {}) | labels
    return metrics


def asked_for(operator, text):
    """The values that a matcher names; none of a regular expression that is more than a list of them."""
    if operator in ("=", "!="):
        return {text} - {""}
    return set(text.split("|")) if LIST.fullmatch(text) else set()


def of_matcher(name, labels, matcher):
    label, operator, text = matcher
    if label not in labels:
        return [f"{name}: has no label {label}"]
    return [f"{name}: {label} is never {value}" for value in sorted(asked_for(operator, text) - labels[label])] if labels[label] else []


def problems(expression, metrics):
    """Names, labels and labels' values in the expression that no program has."""
    found = [f"{name}: no such metric" for name in sorted(set(NAME.findall(STRING.sub('""', expression)))) if name not in metrics]
    for name, selector in SELECTOR.findall(expression):
        for matcher in MATCHER.findall(selector):
            # Every series has the labels of its target.
            if name in metrics and matcher[0] not in ("instance", "job"):
                found += of_matcher(name, metrics[name], matcher)
    return found
