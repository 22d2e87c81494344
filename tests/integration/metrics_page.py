"""Reading a program's own pages over HTTP. A machine's proxy would answer in its place, so none is asked."""
import re
import urllib.request

SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$', re.M)
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def open_directly(request, timeout=10):
    """As urllib.request.urlopen."""
    return _DIRECT.open(request, timeout=timeout)


def page_text(address):
    """The metrics page of HOST:PORT."""
    with open_directly(f"http://{address}/metrics", timeout=30) as answer:
        return answer.read().decode()


def scrape(address):
    """{(name, ((label, value), ...)): value} of the metrics page of HOST:PORT."""
    return {(name, tuple(re.findall(r'(\w+)="([^"]*)"', labels or ""))): float(value)
            for name, labels, value in SAMPLE.findall(page_text(address))}
