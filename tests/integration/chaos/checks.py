"""What a run among faults must show. Each check takes what was seen and returns its complaints."""
OPEN_STATES = ("RUN_STATE_TRAINING", "RUN_STATE_DEGRADED", "RUN_STATE_CRITICAL")


def head_of(status):
    return int(status["fragments"][0]["version"]) if status.get("fragments") else 0


def check_rounds(events, deadline, slack):
    """Survivors commit within the deadline, whatever happens to the others."""
    complaints, longest = [], 0.0
    for event in events:
        if event["kind"] != "ROUND_CLOSED":
            continue
        seconds = event["round"]["open_seconds"]
        longest = max(longest, seconds)
        if seconds > deadline + slack:
            complaints.append(f"version {event['round']['version']} took {seconds:.1f} s, the deadline is {deadline} s")
    return complaints, longest


def check_head(polls):
    complaints, head = [], 0
    for poll in polls:
        now = head_of(poll["status"])
        if now < head:
            complaints.append(f"the head went from {head} back to {now}")
        head = max(head, now)
    return complaints


def check_waiting(polls):
    """While a round is open, the status says what it waits for, and from whom."""
    complaints = []
    for poll in polls:
        status = poll["status"]
        if status["state"] not in OPEN_STATES or not status.get("fragments"):
            continue
        if not status["fragments"][0].get("waiting_for"):
            complaints.append(f"at version {head_of(status)} the status did not say what is awaited")
    return complaints


def rounds_until_back(events, contributed, faults):
    """For each return of a worker: how many rounds after the one that was open then the first one is that it is part of.
    `contributed`: the workers of every version, from the round records. Returns that were hit by another fault before
    that, or by the end of the run, tell nothing."""
    waits, head = [], 0
    closed_at = {int(e["round"]["version"]): int(e["unix_nanos"]) / 1e9 for e in events if e["kind"] == "ROUND_CLOSED"}
    for event in events:
        if event["kind"] == "ROUND_CLOSED":
            head = int(event["round"]["version"])
        if event["kind"] not in ("WORKER_RETURNED", "WORKER_JOINED") or head == 0:
            continue
        name, at = event["worker"], int(event["unix_nanos"]) / 1e9
        back = next((v for v in sorted(contributed) if v > head and name in contributed[v]), None)
        until = closed_at[back if back is not None else max(closed_at)]
        if any(f["name"] == name and f["end"] > at and f["begin"] < until for f in faults):
            continue
        if back is None and max(closed_at) - head < 3:
            continue
        waits.append((name, at, back - head - 1 if back is not None else None))
    return waits


def check_back(waits):
    """It pulls the version of its return and is in that round or the next. The rounds here last less than a second, and
    the first steps of a fresh process are slow, so that now and then a round's grace is over before it is done: that
    must stay the exception."""
    complaints = []
    for name, _, rounds in waits:
        if rounds is None or rounds > 3:
            complaints.append(f"{name} returned, and was not in the next round but in "
                              f"{'none' if rounds is None else f'the {rounds}th'}")
    late = sum(rounds is None or rounds > 1 for _, _, rounds in waits)
    if late > max(1, len(waits) / 5):
        complaints.append(f"{late} of {len(waits)} returns took more than the next round")
    return complaints
