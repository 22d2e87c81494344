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


def rounds_until_back(returned, polls, faults, end):
    """For each return of a worker: how many versions until a contribution of its was accepted. Returns that were hit by
    another fault before that, or by the end of the run, tell nothing."""
    waits = []
    for event in returned:
        name, at = event["worker"], int(event["unix_nanos"]) / 1e9
        before = [p for p in polls if p["time"] <= at]
        after = [p for p in polls if p["time"] > at and name in p["workers"]]
        if not before or not after:
            continue
        base = head_of(before[-1]["status"])
        accepted = int(after[0]["workers"][name].get("contributions_accepted", 0))
        back = next((p for p in after if int(p["workers"][name].get("contributions_accepted", 0)) > accepted), None)
        until = back["time"] if back else end
        if any(f["name"] == name and f["end"] > at and f["begin"] < until for f in faults):
            continue
        if back is None and head_of(polls[-1]["status"]) - base < 3:
            continue
        waits.append((name, at, head_of(back["status"]) - base if back else None))
    return waits


def check_back(waits):
    """It pulls the version of its return; when that round closes before it is done, it is in the one that follows. One
    more for the distance between two looks at the status."""
    complaints = []
    for name, _, rounds in waits:
        if rounds is None or rounds > 3:
            complaints.append(f"{name} returned, and was not in the next round but in "
                              f"{'none' if rounds is None else f'the {rounds}th'}")
    return complaints
