"""Waiting for something of a program, and for no longer than the program lives."""
import time


def wait_for(process, log_end, done, seconds, what):
    """Until done(); RuntimeError with the end of the log when `process` ends or the time is up."""
    deadline = time.monotonic() + seconds
    while not done():
        if process.poll() is not None:
            raise RuntimeError(f"the coordinator ended with {process.returncode}: {log_end()}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {seconds} s in vain for {what}: {log_end()}")
        time.sleep(0.05)
