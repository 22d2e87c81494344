"""The PromQL in a dashboard, with Grafana's variables filled in."""
import re


def expressions(board):
    """(title, expression) of its panels, annotations and variables."""
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for annotation in board["annotations"]["list"]:
        yield f"annotation {annotation['name']}", annotation["expr"]
    for variable in board["templating"]["list"]:
        match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable.get("definition", ""))
        if match:
            yield f"variable {variable['name']}", f"count by ({match[2]}) ({match[1]})"


def substituted(expr, coordinator="127.0.0.1:7602", interval="1m"):
    for name, value in (("$__rate_interval", interval), ("$coordinator", coordinator), ("$worker_instance", ".*"),
                        ("$worker", ".*")):
        expr = expr.replace(name, value)
    return expr
