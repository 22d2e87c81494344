"""Grafana panels as small functions, so that every dashboard has the same looks, units and layout."""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
GRID = 24
TAG = "atoll"
GREEN, YELLOW, RED = "green", "#EAB839", "red"


def query(expr, legend="", **more):
    return {"expr": expr, "legendFormat": legend or "__auto", **more}


def quantiles(histogram, where="", of=(0.5, 0.9, 0.99)):
    """Over the buckets of one coordinator or of all workers together."""
    rate = f"sum by (le) (rate({histogram}_bucket{{{where}}}[$__rate_interval]))"
    return [query(f"histogram_quantile({q}, {rate})", f"p{q * 100:g}") for q in of]


def thresholds(*steps):
    """(value, colour) in ascending order; the first value is None."""
    return {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in steps]}


def panel(kind, title, description, queries, unit, *, size, options=None, custom=None, limits=None, decimals=None,
          minimum=None, maximum=None, mappings=None, overrides=None, transformations=None):
    defaults = {"unit": unit, "mappings": mappings or [], "thresholds": limits or thresholds((None, GREEN))}
    for name, value in (("custom", custom), ("decimals", decimals), ("min", minimum), ("max", maximum)):
        if value is not None:
            defaults[name] = value
    targets = [{"refId": chr(ord("A") + i), "datasource": DATASOURCE, "editorMode": "code", **q}
               for i, q in enumerate(queries)]
    return {"type": kind, "title": title, "description": description, "datasource": DATASOURCE, "targets": targets,
            "fieldConfig": {"defaults": defaults, "overrides": overrides or []}, "options": options or {},
            "transformations": transformations or [], "_size": size}


def lines(title, description, queries, unit, *, size=(8, 8), stacked=False, scale="linear", points=False, **more):
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 25 if stacked else 0, "spanNulls": False,
              "showPoints": "auto" if points else "never", "scaleDistribution": {"type": scale},
              "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
              "thresholdsStyle": {"mode": "line" if "limits" in more else "off"}}
    if scale == "log":
        custom["scaleDistribution"]["log"] = 10
    options = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    return panel("timeseries", title, description, queries, unit, size=size, options=options, custom=custom, **more)


def number(title, description, expr, unit, *, size=(3, 4), legend="", text="value", **more):
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "textMode": text,
               "colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto"}
    return panel("stat", title, description, [query(expr, legend, instant=True)], unit, size=size, options=options, **more)


def gauge(title, description, expr, unit, *, size=(3, 4), **more):
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "showThresholdLabels": False,
               "showThresholdMarkers": True, "orientation": "auto"}
    return panel("gauge", title, description, [query(expr, instant=True)], unit, size=size, options=options, **more)


def heatmap(title, description, expr, unit, *, size=(8, 8), **more):
    options = {"calculate": False, "yAxis": {"unit": unit}, "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
               "legend": {"show": True}, "tooltip": {"mode": "single", "yHistogram": False},
               "cellGap": 1, "filterValues": {"le": 1e-9}, "rowsFrame": {"layout": "auto"}}
    return panel("heatmap", title, description, [query(expr, "{{le}}", format="heatmap")], unit, size=size, options=options,
                 **more)


def table(title, description, columns, by, *, size=(24, 9)):
    """`columns`: (heading, expression, unit); one row for each value of the label `by`."""
    queries = [query(expr, heading, instant=True, format="table") for heading, expr, _ in columns]
    names = {f"Value #{chr(ord('A') + i)}": heading for i, (heading, _, _) in enumerate(columns)}
    overrides = [{"matcher": {"id": "byName", "options": heading}, "properties": [{"id": "unit", "value": unit}]}
                 for heading, _, unit in columns]
    hidden = {"Time": True, **{f"Time {i}": True for i in range(1, len(columns) + 1)}}
    transformations = [{"id": "joinByField", "options": {"byField": by, "mode": "outer"}},
                       {"id": "organize", "options": {"excludeByName": hidden, "renameByName": names}}]
    return panel("table", title, description, queries, "none", size=size, overrides=overrides,
                 options={"showHeader": True, "cellHeight": "sm", "sortBy": [{"displayName": by, "desc": False}]},
                 transformations=transformations)


def against(title, description, x, ys, x_unit, y_unit, *, size):
    """`x`: (heading, expression); `ys`: the same, each drawn over x."""
    queries = [query(expr, heading) for heading, expr in (x, *ys)]
    named = lambda heading: {"matcher": {"id": "byName", "options": heading}}
    options = {"mapping": "manual", "series": [{"x": named(x[0]), "y": named(heading)} for heading, _ in ys],
               "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}, "tooltip": {"mode": "single"}}
    return panel("xychart", title, description, queries, y_unit, size=size, options=options,
                 custom={"show": "points", "pointSize": {"fixed": 3}},
                 overrides=[{"matcher": {"id": "byName", "options": x[0]}, "properties": [{"id": "unit", "value": x_unit}]}],
                 transformations=[{"id": "joinByField", "options": {"byField": "Time", "mode": "outer"}}])


def row(title):
    return {"type": "row", "title": title, "collapsed": False, "panels": [], "_size": (GRID, 1)}


def placed(panels):
    """Left to right, top to bottom, in the order given; an id for each."""
    x = y = height = 0
    for number_, each in enumerate(panels, 1):
        wide, high = each.pop("_size")
        if x + wide > GRID:
            x, y, height = 0, y + height, 0
        each["id"] = number_
        each["gridPos"] = {"x": x, "y": y, "w": wide, "h": high}
        x, height = x + wide, max(height, high)
    return panels


def variable(name, label, expr, *, many=False):
    return {"name": name, "label": label, "type": "query", "datasource": DATASOURCE, "definition": expr,
            "query": {"query": expr, "refId": name}, "refresh": 2, "sort": 1, "multi": many, "includeAll": many,
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]} if many else {},
            **({"allValue": ".*"} if many else {})}


def annotation(name, expr, title, color):
    return {"name": name, "datasource": DATASOURCE, "enable": True, "iconColor": color, "expr": expr, "step": "60s",
            "titleFormat": title, "textFormat": "", "tagKeys": "", "useValueForTime": False}


def dashboard(uid, title, description, panels, *, variables, annotations, time="now-6h"):
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1,
              "current": {}, "hide": 0}
    links = [{"type": "dashboards", "title": "Atoll", "tags": [TAG], "asDropdown": True, "includeVars": True,
              "keepTime": True, "targetBlank": False, "url": "", "icon": "external link", "tooltip": ""}]
    return {"uid": uid, "title": title, "description": description, "tags": [TAG], "schemaVersion": 39, "version": 1,
            "editable": True, "graphTooltip": 1, "refresh": "30s", "time": {"from": time, "to": "now"},
            "timezone": "browser", "links": links, "templating": {"list": [source, *variables]},
            "annotations": {"list": annotations}, "panels": placed(panels)}
