#!/usr/bin/env python3
"""The built-in web page in a real browser: it works, it stays quiet, and hostile text in it does nothing.

Usage: browser_test.py PAGE_SERVER [SCREENSHOT_FOLDER]. Needs Chromium, its driver and python3-selenium
(scripts/setup.sh --groups browser); exit code 77, saying so, when they are missing.
"""
import base64
import http.server
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = None

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
PATIENCE_S = 60
SERVER = None
BROWSER = None
SHOTS = None


class PageServer:
    """The program that serves the pages; told what to do over its standard input."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.urls = json.loads(self.process.stdout.readline())

    def order(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        ended = self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        return ended


def start_browser():
    options = webdriver.ChromeOptions()
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--no-first-run", "--disable-background-networking", "--disable-component-update", "--window-size=1280,900",
                     "--host-resolver-rules=MAP rebound.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"]:
        options.add_argument(argument)
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service(DRIVER), options=options)
    browser.set_script_timeout(PATIENCE_S)
    return browser


class PageTest(unittest.TestCase):
    def setUp(self):
        self.viewport(1280, 900)
        BROWSER.get_log("browser")

    def viewport(self, width, height, mobile=False):
        BROWSER.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})

    def scheme(self, name):
        BROWSER.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def open(self, which, token=None):
        BROWSER.get(SERVER.urls[which])
        BROWSER.execute_script("sessionStorage.clear(); if (arguments[0]) sessionStorage.setItem('atoll-token', arguments[0])", token)
        BROWSER.refresh()

    def by_id(self, name):
        return BROWSER.find_element(By.ID, name)

    def text(self, name):
        return BROWSER.execute_script("return document.getElementById(arguments[0]).textContent", name)

    def wait(self, what, condition):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(0.05)
        self.fail(f"not within {PATIENCE_S} s: {what}")

    def wait_live(self):
        self.wait("the page is live", lambda: self.text("link") == "live")

    def rows(self, name):
        return BROWSER.execute_script(
            "return [...document.getElementById(arguments[0]).children].map((row) => [...row.children].map((cell) => cell.textContent))", name)

    def console(self):
        """What the page complained of. Answers that refuse are told by the browser itself, and are no fault of it."""
        return [entry["message"] for entry in BROWSER.get_log("browser")
                if "Failed to load resource: the server responded with a status of 40" not in entry["message"]]

    def fetch(self, path, method="GET", headers=None, body=None):
        """Status of a request that the page itself makes."""
        return BROWSER.execute_async_script(
            "const [path, options, done] = arguments; fetch(path, options).then((reply) => done(reply.status), (e) => done(String(e)))",
            path, {"method": method, "headers": headers or {}, "body": body})

    def confirm(self, button, yes="confirm-yes"):
        self.by_id(button).click() if isinstance(button, str) else button.click()
        self.wait("it asks", lambda: self.by_id("confirm-dialog").get_attribute("open") is not None)
        self.by_id(yes).click()

    def shot(self, name, height=None):
        if not SHOTS:
            return
        width, full = BROWSER.execute_script("return [innerWidth, document.documentElement.scrollHeight]")
        picture = BROWSER.execute_cdp_cmd("Page.captureScreenshot", {
            "format": "png", "captureBeyondViewport": True,
            "clip": {"x": 0, "y": 0, "width": width, "height": height or full, "scale": 1}})
        (SHOTS / f"{name}.png").write_bytes(base64.b64decode(picture["data"]))

    def test_shows_the_run_and_follows_it(self):
        self.open("run")
        self.wait_live()
        self.assertEqual(self.text("run-name"), "small")
        self.assertEqual(self.text("state"), "training")
        self.assertRegex(self.text("position"), r"^version [0-9]+ · [0-9.]+ % of [0-9.]+k? tokens · ")
        self.wait("workers", lambda: len(self.rows("workers")) == 2)
        self.assertEqual([row[0][:2] for row in self.rows("workers")], ["w0", "w1"])
        self.assertEqual(self.text("workers-count"), "2 here; up and down: since the coordinator's start")
        self.wait("rounds", lambda: len(self.rows("rounds")) >= 5)
        newest = self.rows("rounds")[0]
        self.assertIn("w0w1", newest[2])
        self.assertIn("round closed", self.text("events"))
        self.wait("the curve", lambda: BROWSER.execute_script(
            "return document.querySelectorAll('#loss path.line').length") == 2)
        before = int(newest[0])
        SERVER.order("round")
        self.wait("the next round is shown", lambda: int(self.rows("rounds")[0][0]) > before)
        self.by_id("by-worker").click()
        self.wait("a line for each worker", lambda: BROWSER.execute_script(
            "return document.querySelectorAll('#loss path.line').length") == 4)
        self.by_id("by-time").click()
        self.assertEqual(self.by_id("by-time").get_attribute("aria-pressed"), "true")
        self.assertEqual(self.console(), [])

    def imported(self, path, script, argument=None):
        """What `script` passes to done(); it sees the module at `path` and the argument."""
        self.open("run")
        self.wait_live()
        return BROWSER.execute_async_script(
            f'const [argument, done] = arguments; import("{path}").then((module) => {{ {script} }}).catch((e) => done(String(e)))', argument)

    def loss_lines(self):
        """The drawn lines of the loss chart: class of each, and its parts as lists of [x, y] on the screen."""
        return BROWSER.execute_script("""
            return [...document.querySelectorAll('#loss path.line')].map((path) => [path.getAttribute('class'),
              path.getAttribute('d').split('M').slice(1).map((part) => part.split('L').map((p) => p.split(' ').map(Number)))])""")

    def test_a_restore_has_a_mark_and_leaves_the_old_branch_grey(self):
        self.open("restored")
        self.wait_live()
        self.wait("the curve", lambda: self.loss_lines())
        for axis in ["by-tokens", "by-time"]:
            self.by_id(axis).click()
            lines = self.loss_lines()
            training = [parts for looks, parts in lines if "c-s0" in looks]
            self.assertEqual([len(part) for part in training[0]], [6, 4], "a line for each epoch")
            for looks, parts in lines:
                for part in parts:
                    self.assertEqual([x for x, _ in part], sorted(x for x, _ in part), f"{axis}, {looks}: runs back")
            gone = [parts for looks, parts in lines if "c-gone" in looks and len(parts[0]) == 9]
            self.assertTrue(gone, "8 abandoned rounds and the one before them")
            self.assertIn(training[0][0][-1], [parts[0][0] for parts in gone], "the branches part at the checkpoint")
            marks = BROWSER.execute_script("return [...document.querySelectorAll('#loss .m-restored')].map((mark) => [mark.textContent, mark.querySelector('line').getAttribute('x1')])")
            self.assertEqual(len(marks), 1)
            self.assertIn("restored from checkpoint 'six'restored", marks[0][0])
            if axis == "by-tokens":
                self.assertAlmostEqual(float(marks[0][1]), training[0][0][-1][0], delta=0.1)
            self.assertIn("abandoned by a restore", self.text("loss-legend"))
            self.shot(f"restored-{axis}")
        self.assertEqual(self.console(), [])

    def test_a_finished_run_is_not_beyond_the_plan(self):
        said = self.imported("/overview.js", """
            const tokens = {committedTokens: "520000", totalTokens: "461000", positionSteps: 2260, totalSteps: "2000"};
            done(["FINISHED", "TRAINING"].map((state) => module.progressOf({...tokens, state: `RUN_STATE_${state}`})))""")
        self.assertEqual(said[0], ["520k tokens (461k planned)"])
        self.assertEqual(said[1], ["113 % of 461k tokens", "inner step 2260 of 2000"])

    def test_the_axis_of_time_repeats_no_label(self):
        said = self.imported("/overview.js", """
            const labels = (step) => [0, 1, 2, 3].map((i) => 1.7e9 + i * step);
            done([30, 600].map((step) => labels(step).map(module.clockOver(labels(step)))))""")
        for labels in said:
            self.assertEqual(len(set(labels)), 4, labels)
        self.assertRegex(said[0][0], r":[0-9]{2}:[0-9]{2}$")
        self.assertNotRegex(said[1][0], r":[0-9]{2}:[0-9]{2}$")

    def test_the_box_of_events_ends_after_a_whole_row(self):
        for width in [1280, 390]:
            self.viewport(width, 900, mobile=width < 500)
            self.open("restored")
            self.wait_live()
            self.wait("the events", lambda: BROWSER.execute_script("return document.getElementById('events').children.length") > 20)
            self.wait("whole rows", lambda: BROWSER.execute_script("""
                const box = document.getElementById('events').getBoundingClientRect();
                const rows = [...document.getElementById('events').children].map((row) => row.getBoundingClientRect());
                return box.height > 200 && rows.every((row) => row.bottom <= box.bottom + 1 || row.top >= box.bottom - 1);"""))

    def test_the_scores_of_tasks_are_curves_and_a_table(self):
        self.open("run")
        self.wait_live()
        self.assertFalse(self.by_id("tasks-card").is_displayed(), "a run without scores")
        self.open("restored")
        self.wait_live()
        self.wait("the table", lambda: len(self.rows("tasks")) == 2)
        rows = self.rows("tasks")
        self.assertEqual([row[:2] for row in rows], [["hellaswag", "acc"], ["hellaswag", "acc_norm"]])
        head = int(self.rows("rounds")[0][0])
        self.assertEqual(rows[0][2:], [f"{1 - 0.75 / head:.4f}", "±0.0100", "100", str(head)])
        dots = BROWSER.execute_script("return document.querySelectorAll('#tasks-chart circle').length")
        self.assertEqual(dots, 2 * 10, "the six before the restore and the four after it")
        BROWSER.find_element(By.CSS_SELECTOR, "#tasks-chart svg").send_keys(Keys.END)
        self.assertIn("hellaswag acc: ", BROWSER.find_element(By.CSS_SELECTOR, "#tasks-chart .tip").text)
        self.assertEqual(self.console(), [])

    def export_of(self, folder, name, points, csv=False):
        """A file as `atollctl metrics export` writes it. points: (time, name, version, tokens, value)."""
        lines = ["unix_time,name,worker,version,committed_tokens,value"] if csv else []
        for time_s, point, version, tokens, value in points:
            lines.append(f"{time_s},{point},,{version},{tokens},{value}" if csv else json.dumps(
                {"unix_time": time_s, "name": point, "worker": "", "version": version, "committed_tokens": tokens, "value": value}))
        (pathlib.Path(folder) / name).write_text("\n".join(lines) + "\n")
        return str(pathlib.Path(folder) / name)

    def test_other_runs_are_drawn_beside_the_live_one(self):
        points = [(100, "validation/loss", 0, 0, 5.5)]
        for version in range(1, 6):
            points += [(100 + version, "round/tokens", version, 64 * version, 64), (100 + version, "train/loss", version, 64 * version, 6 / version),
                       (100 + version, "validation/loss", version, 64 * version, 5 / version)]
        with tempfile.TemporaryDirectory() as folder:
            files = [self.export_of(folder, "first.jsonl", points), self.export_of(folder, "<img src=x onerror=alert(1)>.csv", points, csv=True)]
            bad = self.export_of(folder, "bad.csv", [])
            pathlib.Path(bad).write_text("hello\n")
            self.open("run")
            self.wait_live()
            self.wait("the curve", lambda: len(self.loss_lines()) == 2)
            self.assertFalse(self.by_id("compare-none").is_displayed())
            self.by_id("compare-files").send_keys("\n".join(files))
            self.wait("two lines for each run", lambda: len(self.loss_lines()) == 6)
            self.assertEqual(self.text("compare-said"), "compared with 2 runs")
            for name in ["first, training", "first, validation", "<img src=x onerror=alert(1)>, validation"]:
                self.assertIn(name, self.text("loss-legend"))
            for axis in ["by-time", "by-tokens"]:
                self.by_id(axis).click()
                for looks, parts in self.loss_lines():
                    self.assertTrue(parts and all(x == x for part in parts for x, _ in part), f"{axis}: {looks}")
            self.shot("compared")
            self.by_id("compare-files").send_keys(bad)
            self.wait("it says what is wrong", lambda: "bad.csv: this is no file of metrics export" in self.text("compare-said"))
            self.assertEqual(len(self.loss_lines()), 6, "the others stay")
            self.assertEqual(self.low_contrasts(), [])
            # By keyboard alone: the button opens the browser's dialog, and the other one removes the runs.
            BROWSER.execute_script("window.opened = 0; document.getElementById('compare-files').click = () => { window.opened++; };")
            self.by_id("compare").send_keys(Keys.ENTER)
            self.assertEqual(BROWSER.execute_script("return window.opened"), 1)
            self.by_id("compare-none").send_keys(Keys.ENTER)
            self.wait("they are gone", lambda: len(self.loss_lines()) == 2)
            self.assertEqual(self.focus()["name"], "compare")
            self.assertEqual(BROWSER.execute_script("return document.images.length"), 1)
            self.assertEqual(self.console(), [])

    def scale(self, lists):
        return self.imported("/chart.js", "done(module.robustExtent(argument))", lists)

    def test_honest_losses_set_the_scale_and_absurd_ones_do_not(self):
        curve = [5.402] + [2 + 3.4 / i for i in range(2, 60)]
        self.assertEqual(self.scale([curve])[1], 5.402)
        steep = [10.8, 7.5, 6.2, 5.4] + [3.2 + 0.2 * (i % 3) for i in range(500)]
        self.assertEqual(self.scale([steep, [9.9, 3.3]])[1], 10.8)
        absurd = list(curve)
        absurd[0] = absurd[30] = absurd[31] = 1e12
        low, high = self.scale([absurd, [1e9]])
        self.assertLess(high, 20)
        self.assertEqual(low, min(curve))

    def test_keys_are_enough(self):
        self.open("run")
        self.wait_live()
        chart = BROWSER.find_element(By.CSS_SELECTOR, "#loss svg")
        chart.send_keys(Keys.HOME)
        tip = BROWSER.find_element(By.CSS_SELECTOR, "#loss .tip")
        first = tip.text
        self.assertIn("training, mean: ", first)
        chart.send_keys(Keys.ARROW_RIGHT)
        self.assertNotEqual(tip.text, first)
        self.by_id("operate").send_keys(Keys.ENTER)
        self.wait("the dialog", lambda: self.by_id("token-dialog").get_attribute("open") is not None)
        self.assertEqual(BROWSER.switch_to.active_element.get_attribute("id"), "token")
        BROWSER.switch_to.active_element.send_keys(Keys.ESCAPE)
        self.wait("it is gone", lambda: self.by_id("token-dialog").get_attribute("open") is None)
        self.assertEqual(BROWSER.switch_to.active_element.get_attribute("id"), "operate")
        unnamed = BROWSER.execute_script(
            "return [...document.querySelectorAll('button, input, select')].filter((e) => !(e.textContent.trim() ||"
            " e.labels?.length || e.getAttribute('aria-label'))).map((e) => e.outerHTML)")
        self.assertEqual(unnamed, [])
        self.assertEqual(self.console(), [])

    def test_nothing_is_done_without_an_admins_token(self):
        self.open("run")
        self.wait_live()
        self.assertFalse(self.by_id("act-open").is_displayed())
        self.assertFalse(BROWSER.find_element(By.CSS_SELECTOR, "#workers button").is_displayed())
        json_body = {"Content-Type": "application/json", "Atoll-Action": "1"}
        pause = json.dumps({"action": "PAUSE"})
        self.assertEqual(self.fetch("/api/v1/control-run", "POST", json_body, pause), 401)
        for token, status in [("guess", 401), ("observer-token", 403), ("worker-token", 403)]:
            headers = {**json_body, "Authorization": f"Bearer {token}"}
            self.assertEqual(self.fetch("/api/v1/control-run", "POST", headers, pause), status, token)
        self.by_id("operate").click()
        self.assertIn("admin-token", self.text("token-hint"))
        self.by_id("token").send_keys("guess", Keys.ENTER)
        self.wait("it says so", lambda: "not known" in self.text("token-problem"))
        self.by_id("token").send_keys("observer-token", Keys.ENTER)
        self.wait("it is taken", lambda: "only allows reading" in self.text("act-why"))
        self.assertFalse(self.by_id("act-open").is_displayed())
        self.wait_live()
        self.assertEqual(self.text("state"), "training")
        self.assertEqual(self.console(), [])

    def test_an_admin_operates(self):
        self.open("run")
        self.wait_live()
        self.by_id("operate").click()
        self.by_id("token").send_keys("admin-token", Keys.ENTER)
        self.wait("the buttons", lambda: self.by_id("act-open").is_displayed())
        self.assertEqual(self.text("who"), "as ann")
        self.assertEqual(BROWSER.execute_script("return [document.cookie, localStorage.length]"), ["", 0])
        self.confirm("pause", yes="confirm-yes")
        self.wait("the run is paused", lambda: self.text("state") == "paused")
        self.assertIn("paused", self.text("outcome"))
        self.wait("the button turns", lambda: self.text("pause") == "Resume" and self.by_id("pause").is_enabled())
        self.by_id("pause").click()
        self.wait("the run goes on", lambda: self.text("state") == "training")
        count = self.by_id("add-count")
        count.clear()
        count.send_keys("3", Keys.ENTER)
        self.wait("workers are added", lambda: "to 3 workers" in self.text("outcome") or "to 5 workers" in self.text("outcome"))
        self.wait("they are free again", lambda: self.by_id("pause").is_enabled())
        name = self.by_id("checkpoint-name")
        name.send_keys("Not A Name", Keys.ENTER)
        self.wait("what is wrong is said", lambda: self.by_id("outcome").get_attribute("class") == "outcome problem")
        self.wait("they are free again", lambda: self.by_id("pause").is_enabled())
        name.clear()
        name.send_keys("noon", Keys.ENTER)
        self.wait("the checkpoint", lambda: "noon" in self.text("outcome") and self.by_id("outcome").get_attribute("class") == "outcome done")
        row = BROWSER.find_elements(By.CSS_SELECTOR, "#workers tr")[1]
        self.confirm(row.find_elements(By.CSS_SELECTOR, "button")[1])
        self.wait("w1 is told to restart", lambda: "told to restart" in self.rows("workers")[1][1])
        self.wait("who did it is on record", lambda: "ann (token, by web, 127.0.0.1" in self.text("events"))
        self.shot("operating")
        BROWSER.refresh()
        self.wait("a reload keeps the token", lambda: self.by_id("act-open").is_displayed())
        self.by_id("forget").click()
        self.wait("it is forgotten", lambda: not self.by_id("act-open").is_displayed())
        self.assertEqual(BROWSER.execute_script("return sessionStorage.length"), 0)
        self.assertEqual(self.console(), [])

    def test_refused_joins_are_listed_and_stay_as_many(self):
        def refused():
            return [text for text in BROWSER.execute_script(
                "return [...document.getElementById('notices').children].map((notice) => notice.textContent)") if "ejected" in text]
        self.open("refusing")
        self.wait_live()
        self.wait("four workers and how many more", lambda: len(refused()) == 5)
        first = refused()
        self.assertRegex(first[0], r"^Rejected: a worker without a valid name \(10\.0\.0\.1\), 3 times since 1 min 00 s: <img src=x onerror=")
        self.assertRegex(first[1], r"^Rejected: a worker without a valid name \(10\.0\.0\.2\), ")
        self.assertRegex(first[2], r"^Rejected: worker 'w9' \(10\.0\.0\.3\), ")
        self.assertEqual(first[4], "And 2 more workers are rejected")
        # Drawn again, an earlier drawing leaves nothing behind.
        drawn = BROWSER.execute_async_script("""
            const done = arguments[0];
            Promise.all([import("/overview.js"), fetch("/api/v1/status").then((reply) => reply.json())]).then(([page, status]) => {
              for (let i = 0; i < 3; i++) page.showNotices(status);
              done("drawn");
            }).catch((e) => done(String(e)))""")
        self.assertEqual(drawn, "drawn")
        self.assertEqual(refused(), first)
        self.assertEqual(BROWSER.execute_script("return typeof window.hacked"), "undefined")
        self.assertEqual(self.console(), [])

    def test_hostile_text_is_only_text(self):
        self.open("hostile", "admin-token")
        self.wait_live()
        self.wait("the workers", lambda: len(self.rows("workers")) == 4)
        self.wait("the rounds", lambda: len(self.rows("rounds")) == 3)
        self.by_id("by-worker").click()
        self.by_id("by-time").click()
        BROWSER.find_element(By.CSS_SELECTOR, "#loss svg").send_keys(Keys.HOME)
        BROWSER.find_elements(By.CSS_SELECTOR, "#workers .acts button")[3].click()
        self.by_id("confirm-yes").click()
        self.wait("the answer", lambda: "onerror" in self.text("outcome"))
        self.wait("the checkpoint", lambda: "onerror" in self.text("checkpoints"))
        for where in ["run-name", "notices", "workers", "rounds", "events", "foot", "launcher", "loss-legend", "tasks", "tasks-legend"]:
            self.assertIn("<img src=x onerror=", self.text(where), where)
        self.assertEqual(BROWSER.execute_script("return [typeof window.hacked, document.images.length, document.scripts.length]"),
                         ["undefined", 1, 1])
        self.viewport(360, 740, mobile=True)
        self.no_sideways_scroll(360)
        self.shot("hostile-phone")
        self.assertEqual(self.console(), [])

    def test_where_everybody_is_asked_the_page_asks(self):
        self.open("asking")
        self.wait("it is locked", lambda: self.by_id("locked").is_displayed())
        self.assertFalse(self.by_id("run").is_displayed())
        self.by_id("unlock").click()
        self.by_id("token").send_keys("observer-token", Keys.ENTER)
        self.wait("it opens", lambda: self.by_id("run").is_displayed())
        self.wait_live()
        self.assertEqual(self.text("run-name"), "small")
        self.assertEqual(self.console(), [])

    def no_sideways_scroll(self, width):
        time.sleep(0.3)
        self.assertLessEqual(BROWSER.execute_script("return document.documentElement.scrollWidth"), width)

    def test_on_a_phone_nothing_is_beside_the_screen(self):
        for width in [320, 390, 768, 941]:
            self.viewport(width, 740, mobile=True)
            self.open("run", "admin-token")
            self.wait_live()
            self.wait("the buttons", lambda: self.by_id("act-open").is_displayed())
            self.no_sideways_scroll(width)
            small = BROWSER.execute_script(
                "return [...document.querySelectorAll('button')].filter((b) => b.offsetHeight > 0 && b.offsetHeight < 32).map((b) => b.id)")
            self.assertEqual(small, [])
            self.shot(f"phone-{width}")

    def test_is_dark_where_dark_is_wanted(self):
        self.open("run")
        self.wait_live()
        contrasts = {}
        for name in ["light", "dark"]:
            self.scheme(name)
            time.sleep(0.2)
            contrasts[name] = BROWSER.execute_script("""
                const light = (c) => { const v = c.match(/[\\d.]+/g).slice(0, 3).map((x) => { x /= 255; return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; }); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
                const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                const of = (e) => light(getComputedStyle(e).color);
                const ground = light(getComputedStyle(document.querySelector('.card')).backgroundColor);
                return { ground, text: ratio(ground, of(document.querySelector('h2'))), muted: ratio(ground, of(document.querySelector('.card .muted'))) };""")
            self.shot(name)
        self.scheme("light")
        self.assertGreater(contrasts["light"]["ground"], 0.8)
        self.assertLess(contrasts["dark"]["ground"], 0.05)
        for contrast in contrasts.values():  # WCAG AAA for text, AA for what is muted
            self.assertGreater(contrast["text"], 7)
            self.assertGreater(contrast["muted"], 4.5)

    def low_contrasts(self):
        """Texts below WCAG AA's 4.5 (3 where large), and borders of controls below its 3 for what is no text."""
        return BROWSER.execute_script("""
            const part = (x) => { x /= 255; return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; };
            const rgba = (c) => { const v = c.match(/[\\d.]+/g).map(Number); return v.length === 3 ? [...v, 1] : v; };
            const light = (c) => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
            const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
            const ground = (e) => {
              const layers = [];
              for (let at = e; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
              return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
            };
            const ratio = (a, b) => { const [x, y] = [light(a), light(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
            const shown = (e) => e.checkVisibility({ checkVisibilityCSS: true, checkOpacity: true }) && !e.closest('.hidden-text, .skip, thead');
            const found = [];
            const judge = (e, what, colour, on, least) => {
              const got = ratio(over(colour, on), on);
              if (got < least) found.push(`${what} ${e.tagName}#${e.id}.${e.getAttribute('class')}: ${got.toFixed(2)} < ${least}`);
            };
            for (const e of document.body.querySelectorAll('*')) {
              if (!shown(e) || e.disabled) continue;
              const style = getComputedStyle(e);
              const words = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
              const size = parseFloat(style.fontSize);
              const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
              const svg = e instanceof SVGElement;
              if (words && size > 0) judge(e, 'text', rgba(svg ? style.fill : style.color), ground(svg ? e.closest('div') : e), large ? 3 : 4.5);
              if (svg && e.classList.contains('line')) {
                judge(e, 'line', [...rgba(style.stroke).slice(0, 3), Number(style.opacity)], ground(e.closest('div')), 3);
              }
              if (e.matches('button, select, input:not([type=checkbox])')) {
                const around = ground(e.parentElement);
                if (ratio(ground(e), around) < 3) judge(e, 'border', rgba(style.borderTopColor), around, 3);
                if (e.placeholder) judge(e, 'placeholder', rgba(getComputedStyle(e, '::placeholder').color), ground(e), 4.5);
              }
            }
            return found;""")

    def test_contrast_is_enough_everywhere(self):
        for which, token in [("run", "admin-token"), ("run", None), ("hostile", "admin-token"), ("asking", None)]:
            self.open(which, token)
            self.wait("it is shown", lambda: self.text("link") in ("live", "locked"))
            if token:
                self.wait("the buttons", lambda: self.by_id("act-open").is_displayed())
                self.by_id("by-worker").click()
            for scheme in ["light", "dark"]:
                self.scheme(scheme)
                time.sleep(0.3)
                self.assertEqual(self.low_contrasts(), [], f"{which}, {scheme}")
        self.open("run", "admin-token")
        self.wait("the buttons", lambda: self.by_id("act-open").is_displayed())
        for scheme in ["light", "dark"]:
            self.scheme(scheme)
            for button in ["by-tokens", "pause", "operate"]:
                webdriver.ActionChains(BROWSER).move_to_element(self.by_id(button)).perform()
                time.sleep(0.1)
                self.assertEqual(self.low_contrasts(), [], f"pointer on {button}, {scheme}")
        self.scheme("light")

    def focus(self):
        """What has the keyboard's focus: a name for it, whether it is seen, whether a ring is around it."""
        return BROWSER.execute_script("""
            const e = document.activeElement;
            const box = e.getBoundingClientRect();
            const header = document.querySelector('.top').getBoundingClientRect();
            const style = getComputedStyle(e);
            return { name: e.id || e.getAttribute('class') || e.tagName, tag: e.tagName,
                     seen: box.height > 0 && box.top < innerHeight && box.bottom > 0 && (header.bottom <= box.top + 1 || Boolean(e.closest('.top, .skip')) || box.height > innerHeight / 2),
                     ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 || e.matches('.skip') };""")

    def test_the_keyboards_focus_is_seen_and_never_lost(self):
        self.open("run", "admin-token")
        self.wait_live()
        self.wait("the buttons", lambda: self.by_id("act-open").is_displayed())
        self.viewport(1280, 500)
        names = []
        for _ in range(60):
            webdriver.ActionChains(BROWSER).send_keys(Keys.TAB).perform()
            at = self.focus()
            if at["tag"] == "BODY" or at["name"] in names[:1]:
                break
            names.append(at["name"])
            self.assertTrue(at["seen"], f"hidden: {at}, after {names}")
            self.assertTrue(at["ring"], f"no focus ring: {at}")
        for name in ["skip", "operate", "by-tokens", "by-time", "by-worker", "compare", "workers-gone", "pause", "close-round", "add-count",
                     "checkpoint-name", "forget", "events-kind", "events"]:
            self.assertIn(name, names)
        for _ in range(len(names)):
            webdriver.ActionChains(BROWSER).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
            at = self.focus()
            if at["tag"] == "BODY":
                break
            self.assertTrue(at["seen"], f"hidden on the way back: {at}")
        # An action disables its buttons for a moment; the keyboard stays where it was.
        self.by_id("pause").send_keys(Keys.ENTER)
        self.wait("it asks", lambda: self.by_id("confirm-dialog").get_attribute("open") is not None)
        self.by_id("confirm-yes").send_keys(Keys.ENTER)
        self.wait("the run is paused", lambda: self.text("state") == "paused" and self.by_id("pause").is_enabled())
        self.assertEqual(self.focus()["name"], "pause")
        webdriver.ActionChains(BROWSER).send_keys(Keys.ENTER).perform()
        self.wait("the run goes on", lambda: self.text("state") == "training" and self.by_id("pause").is_enabled())
        self.assertEqual(self.focus()["name"], "pause")
        self.by_id("forget").send_keys(Keys.ENTER)
        self.wait("it is forgotten", lambda: self.by_id("act-unlock").is_displayed())
        self.wait("the focus is where the buttons were", lambda: self.focus()["name"] == "act-unlock")
        webdriver.ActionChains(BROWSER).send_keys(Keys.ENTER).perform()
        self.by_id("token").send_keys("admin-token", Keys.ENTER)
        self.wait("the buttons are back", lambda: self.by_id("act-open").is_displayed())
        self.wait("the focus is on them", lambda: self.focus()["name"] == "pause")

    def test_a_visitor_without_a_token_is_shown_no_commands(self):
        for which in ["asking", "run"]:
            self.open(which)
            self.wait("it is shown", lambda: self.text("link") in ("live", "locked"))
            self.by_id("operate").click()
            self.by_id("token").send_keys("guess", Keys.ENTER)
            self.wait("it says so", lambda: "not known" in self.text("token-problem"))
            said = BROWSER.find_element(By.TAG_NAME, "body").text
            for word in ["--", "atollctl", "atoll-worker", "HOST:PORT", ".token"]:
                self.assertNotIn(word, said)
            self.by_id("token-cancel").click()
        self.assertEqual(self.console(), [])

    def test_another_sites_page_reaches_nothing(self):
        target = SERVER.urls["hostile"]
        before = SERVER.order("asked")
        page = f"""<!doctype html><title>evil</title><form id=f method=post enctype=text/plain target=frame
          action="{target}api/v1/control-run"><input name='{{"action":"PAUSE","x":"' value='"}}'></form><iframe name=frame></iframe>
          <iframe src="{target}"></iframe>"""

        class Evil(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *args):
                pass

        evil = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        BROWSER.get(f"http://localhost:{evil.server_port}/")
        BROWSER.execute_script("document.getElementById('f').submit()")
        tries = BROWSER.execute_async_script("""
            const [target, done] = arguments;
            const url = target + 'api/v1/control-run';
            const json = {'Content-Type': 'application/json', 'Atoll-Action': '1', 'Authorization': 'Bearer admin-token'};
            const body = '{"action":"PAUSE"}';
            const told = (p) => p.then(async (r) => r.type + (r.type === 'opaque' ? '' : await r.text()), () => 'blocked');
            Promise.all([told(fetch(url, {method: 'POST', headers: json, body})), told(fetch(url, {method: 'POST', mode: 'no-cors', body})),
              told(fetch(target + 'api/v1/status')), told(fetch(target + 'api/v1/status', {mode: 'no-cors'}))]).then(done);""", target)
        self.assertEqual(tries[0], "blocked")
        self.assertEqual(tries[2], "blocked")
        framed = BROWSER.execute_script("try { return frames[1].document === null || frames[1].location.href; } catch (e) { return 'refused'; }")
        self.assertEqual(framed, "refused")
        # A name of the attacker's that now leads here.
        port = target.rstrip("/").rsplit(":", 1)[1]
        BROWSER.get(f"http://rebound.example:{port}/api/v1/status")
        self.assertIn("this host name is not allowed", BROWSER.find_element(By.TAG_NAME, "body").text)
        evil.shutdown()
        evil.server_close()
        self.assertEqual(SERVER.order("asked"), before)


def main():
    global SERVER, BROWSER, SHOTS
    if webdriver is None or not CHROMIUM or not DRIVER:
        print("skipped: no chromium, chromedriver or python3-selenium; scripts/setup.sh --groups browser installs them")
        return 77
    if len(sys.argv) > 2:
        SHOTS = pathlib.Path(sys.argv[2])
        SHOTS.mkdir(parents=True, exist_ok=True)
    SERVER = PageServer(sys.argv[1])
    BROWSER = start_browser()
    try:
        result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    finally:
        BROWSER.quit()
        ended = SERVER.stop()
    return 0 if result.wasSuccessful() and ended == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
