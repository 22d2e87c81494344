#!/usr/bin/env python3
"""scripts/repeat_tests.py on a build folder of its own: it counts, stops in time, continues, forgets, and runs alone what
must run alone."""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Fails in every third run; is skipped; checks that something else is running; checks that nothing is.
TESTS = """
add_test(flaky bash -c "echo x >> runs; [ $(( $(wc -l < runs) % 3 )) != 0 ] || { echo broken; exit 1; }")
set_tests_properties(flaky PROPERTIES LABELS "core")
add_test(absent bash -c "exit 77")
set_tests_properties(absent PROPERTIES LABELS "server" SKIP_RETURN_CODE 77)
add_test(loaded bash -c "for i in $(seq 100); do [ -e busy ] && exit 0; sleep 0.1; done; exit 1")
set_tests_properties(loaded PROPERTIES LABELS "server" RUN_SERIAL TRUE)
add_test(quiet bash -c "rm -f busy; sleep 1; [ ! -e busy ]")
set_tests_properties(quiet PROPERTIES LABELS "idle;server")
add_test(beside bash -c "for i in $(seq 100); do [ -e alone ] && exit 1; touch waits; [ -e both ] && exit 0; sleep 0.1; done; exit 1")
add_test(meets bash -c "for i in $(seq 100); do [ -e waits ] && touch both && exit 0; sleep 0.1; done; exit 1")
add_test(alone bash -c "touch alone; sleep 0.5; rm alone")
set_tests_properties(beside meets alone PROPERTIES LABELS "server")
set_tests_properties(alone PROPERTIES RUN_SERIAL TRUE)
add_test("broken/always" bash -c "echo broken; exit 1")
add_test(waiting bash -c "touch begun; sleep 60")
add_test(off bash -c "exit 0")
set_tests_properties("broken/always" waiting off PROPERTIES LABELS "server")
set_tests_properties(off PROPERTIES DISABLED TRUE)
"""


def call(folder, *arguments):
    done = subprocess.run([sys.executable, ROOT / "scripts/repeat_tests.py", "--build", folder, *arguments], capture_output=True,
                          text=True, timeout=120, check=False)
    record = folder / "repeat.json"
    return done, json.loads(record.read_text())["tests"] if record.exists() else {}


def check_interruption(folder, end):
    """Runs that had not ended are not counted, and the load ends too."""
    (folder / "begun").unlink(missing_ok=True)
    process = subprocess.Popen([sys.executable, ROOT / "scripts/repeat_tests.py", "--build", folder, "--tests", "^waiting$", "--load",
                                f"exec -a load-of-{folder.name} sleep 60"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until = time.monotonic() + 60
    while not (folder / "begun").exists() and time.monotonic() < until:
        time.sleep(0.05)
    done, _ = call(folder, "--tests", "^off$")
    assert done.returncode == 2 and "another call counts in" in done.stderr, done.stderr
    assert call(folder, "--report")[0].returncode != 2
    process.send_signal(end)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted; the same command continues" in said, said
    assert "waiting" not in json.loads((folder / "repeat.json").read_text())["tests"], said
    assert subprocess.run(["pgrep", "-f", f"load-of-{folder.name}"], stdout=subprocess.DEVNULL, check=False).returncode == 1, "the load goes on"


def check_bad_counts(folder):
    """What is no record is refused, and stays as it is."""
    record = folder / "other.json"
    one = {"passed": 1, "failed": 0, "skipped": 0, "seconds": 1.0, "failures": []}
    for text in ("", "[]", '{"revisions": [], "tests": 3}', *(
            json.dumps({"revisions": [], "tests": {"flaky": {**one, name: value}}})
            for name, value in (("passed", 1e99), ("failed", -1), ("skipped", True), ("seconds", "1"), ("failures", None)))):
        record.write_text(text)
        done, _ = call(folder, "--record", record, "--tests", "flaky")
        assert done.returncode == 2 and "has no counts" in done.stderr and record.read_text() == text, text + done.stdout + done.stderr
    for wrong in (("--times", "-1"), ("--times", "0"), ("--tests", "("), ("--jobs", "0"), ("--minutes", "nan")):
        done, _ = call(folder, *wrong)
        assert done.returncode == 2 and wrong[0] in done.stderr, done.stderr
    done, _ = call(folder, "--record", "/proc/none/counts.json", "--tests", "broken|off", "--times", "1", "--jobs", "2", "--load", "none")
    assert done.returncode == 2 and "cannot be written" in done.stderr, done.stderr


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "CTestTestfile.cmake").write_text(TESTS)
        load = ("--load", f"touch {folder}/busy; sleep 0.2")
        done, tests = call(folder, "--tests", "flaky|absent", "--times", "2", "--load", "none")
        assert done.returncode == 0, done.stdout + done.stderr
        assert tests["flaky"]["passed"] == 2 and tests["absent"]["skipped"] == 2, tests
        # It goes on from there, and the third run fails.
        done, tests = call(folder, "--tests", "flaky", "--times", "4", "--load", "none")
        assert done.returncode == 1, done.stdout + done.stderr
        assert tests["flaky"]["passed"] == 3 and tests["flaky"]["failed"] == 1, tests
        assert "broken" in (folder / "repeat.failures" / tests["flaky"]["failures"][0]).read_text(), "the output of the failed run"
        # No time is left for a test that never ran: nothing is started, and it says that there is more to do.
        done, tests = call(folder, "--tests", "loaded", "--times", "1", "--minutes", "0.05", *load)
        assert done.returncode == 3 and tests.get("loaded", {}).get("passed", 0) == 0, done.stdout
        done, tests = call(folder, "--tests", "loaded", "--times", "1", *load)
        assert done.returncode == 0 and tests["loaded"]["passed"] == 1, done.stdout + done.stderr
        done, tests = call(folder, "--tests", "^quiet$", "--times", "2", *load)
        assert done.returncode == 0 and tests["quiet"]["passed"] == 2 and tests["quiet"]["kind"] == "idle", done.stdout + done.stderr
        # No kind gets all its runs before every test has the first ones.
        done, _ = call(folder, "--tests", "^(quiet|alone)$", "--times", "4", "--first", "3", *load)
        order = [line.split()[1] for line in done.stdout.splitlines() if ": passed in" in line]
        assert order == ["quiet", *["alone"] * 3, "quiet", "alone"], done.stdout
        # Two tests need each other; the third must not run beside them.
        done, tests = call(folder, "--tests", "beside|meets|alone", "--times", "7", "--jobs", "3", "--load", "none")
        assert done.returncode == 0 and all(tests[name]["passed"] == 7 for name in ("beside", "meets", "alone")), done.stdout
        done, _ = call(folder, "--report", "--tests", "flaky|absent|loaded", "--times", "4")
        assert done.returncode == 1 and "flaky" in done.stdout and "3 tests: 7 of 12 runs, 1 failed, 2 skipped" in done.stdout, done.stdout
        # A change concerns one test: the counts of the others stay.
        done, tests = call(folder, "--forget", "^flaky$")
        assert done.returncode == 0 and "flaky" not in tests and tests["loaded"]["passed"] == 1, done.stdout + done.stderr
        done, tests = call(folder, "--tests", "flaky", "--times", "1", "--fresh", "--load", "none")
        assert done.returncode == 0 and tests["flaky"]["passed"] == 1, done.stdout
        assert "absent" not in tests, "fresh counts"
        done, _ = call(folder, "--tests", "nothing")
        assert done.returncode == 2, done.stdout
        # A failure counts also where its output cannot be kept, and a disabled test does not pass.
        failures = folder / "repeat.failures"
        for log in failures.iterdir():
            log.unlink()
        failures.rmdir()
        failures.write_text("in the way")
        done, tests = call(folder, "--tests", "broken|off", "--times", "2", "--jobs", "2", "--load", "none")
        assert done.returncode == 1 and tests["broken/always"]["failed"] == 2 and tests["off"]["failed"] == 2, done.stdout
        assert "cannot be kept" in done.stderr and "broken" in done.stderr, done.stderr
        failures.unlink()
        check_bad_counts(folder)
        for end in (signal.SIGINT, signal.SIGTERM):
            check_interruption(folder, end)
    print("ok")


if __name__ == "__main__":
    main()
