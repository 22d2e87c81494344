"""atoll-model serve on a free port, for as long as a `with` block."""
import json
import os
import pathlib
import re
import signal
import subprocess
import urllib.error
import urllib.request

PATIENCE_S = 120  # for anything that must happen; never a measurement


class ServedModel:
    def __init__(self, *arguments, listen="127.0.0.1:0", cwd=None):
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", pathlib.Path(os.environ["ATOLL_TEST_BIN"]) / "atoll-model", "serve", "--listen", listen,
             "--threads", "1", "--device", "cpu", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
            stdin=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"serving (.*) on (http://127\.0\.0\.1:\d+)/v1\n", line)
        if not found:
            raise AssertionError(f"it did not serve: {line}{self.process.communicate()[1]}")
        self.model, self.url = found.groups()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop(signal.SIGKILL)

    def stop(self, number=signal.SIGTERM):
        """Ends it; returns its exit code and what it logged."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        logged = self.process.communicate(timeout=PATIENCE_S)[1]
        return self.process.returncode, logged

    def ask(self, path, body=None, method=None, headers=None):
        """(status, JSON or text) of one request. `body`: JSON, or bytes as they are."""
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **(headers or {})}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
                status, text = reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        return status, json.loads(text) if text.startswith("{") else text

    def complete(self, **body):
        status, reply = self.ask("/v1/completions", body)
        if status != 200:
            raise AssertionError(f"{status}: {reply}")
        return reply
