#!/usr/bin/env python3
"""Makes the dashboards: dashboards.py [FOLDER], default: dashboards/ beside this file. A test compares what is there."""
import json
import pathlib
import sys

from panels import (GREEN, RED, YELLOW, against, annotation, dashboard, gauge, heatmap, lines, number, quantiles, query, row,
                    table, thresholds, variable)

AT = 'instance="$coordinator"'
WORKERS = 'instance=~"$worker_instance"'
COORDINATOR = variable("coordinator", "Coordinator", "label_values(atoll_run_info, instance)")
MEMBER = variable("worker", "Worker", f"label_values(atoll_member_incarnation{{{AT}}}, worker)", many=True)
WORKER_INSTANCE = variable("worker_instance", "Worker's endpoint", "label_values(atoll_worker_connected, instance)", many=True)
OF_MEMBER = AT + ', worker=~"$worker"'

LIVES = f"atoll_member_incarnation{{{AT}}}"
ANNOTATIONS = [
    annotation("joins", f"{LIVES} unless {LIVES} offset 1m", "{{worker}} joined", GREEN),
    annotation("leaves", f"{LIVES} offset 1m unless {LIVES}", "{{worker}} left or was lost", RED),
    annotation("interventions",
               f'increase(atoll_events_total{{{AT}, kind=~"config_changed|run_restored|run_paused|run_resumed|run_stopped"}}'
               "[1m]) > 0", "{{kind}}", YELLOW),
    annotation("restarts", f"changes(process_start_time_seconds{{{AT}}}[1m]) > 0", "the coordinator started again", "purple")]
STATES = [{"type": "value", "options": {
    "starting": {"color": "blue"}, "training": {"color": GREEN}, "degraded": {"color": YELLOW}, "critical": {"color": RED},
    "finished": {"color": "blue"}, "paused": {"color": "purple"}, "stopped": {"color": "purple"}}}]
EVENT = lambda kind: f'increase(atoll_events_total{{{AT}, kind="{kind}"}}[$__rate_interval])'
RATE = lambda metric, where=AT: f"rate({metric}{{{where}}}[$__rate_interval])"


def some_or_none(expr, label):
    """The series that are not 0; when all are, one at 0, so that the panel tells "nothing" from "no data"."""
    return f'{expr} > 0 or label_replace(sum({expr}) == 0, "{label}", "none", "", "")'


def believed(expr):
    """A loss that would flatten the curves of all others is left out: a model that knows nothing is at ln(vocabulary)."""
    return f"{expr} <= 100"


def run_overview():
    shares = thresholds((None, RED), (0.5, YELLOW), (0.8, GREEN))
    return dashboard("atoll-run", "Atoll / Run", "One training run: is it going on, how fast, how well, at what price.", [
        number("State", "What the run is doing; degraded and critical: rounds are held open.",
               f"atoll_run_state{{{AT}}} == 1", "none", legend="{{state}}", text="name", mappings=STATES),
        number("Version", "The newest published version of any fragment.", f"max(atoll_published_version{{{AT}}})", "none"),
        gauge("Done", "Committed tokens of the token budget.",
              f"atoll_committed_tokens{{{AT}}} / atoll_planned_tokens{{{AT}}}", "percentunit", minimum=0, maximum=1),
        number("Ends in", "At the present pace.", f"atoll_run_eta_seconds{{{AT}}}", "s"),
        number("Trainers", "Live workers that contribute.", f'atoll_workers{{{AT}, state="active_trainer"}}', "none",
               limits=thresholds((None, RED), (1, GREEN))),
        number("Lost", "Workers whose lease ran out and that have not come back.", f'atoll_workers{{{AT}, state="lost"}}', "none",
               limits=thresholds((None, GREEN), (1, YELLOW))),
        number("Validation loss", "Of the published parameters on held-out text, nats per token.",
               f"atoll_validation_loss{{{AT}}}", "none", decimals=3),
        number("Traffic", "Times less moved than by data parallelism for the same inner steps.",
               f"atoll_data_parallel_bytes_total{{{AT}}} / sum without (direction) (atoll_exchanged_bytes_total{{{AT}}})", "x",
               decimals=1),
        row("Loss"),
        lines("Loss by time", "Training loss is the mean of the newest round; workers that join and leave are marked.",
              [query(believed(f"atoll_train_loss{{{AT}}}"), "training"),
               query(believed(f"atoll_validation_loss{{{AT}}}"), "validation")], "none",
              size=(12, 9), decimals=3),
        against("Loss by token", "The same over the tokens behind the committed versions: comparable between runs of any speed.",
                ("tokens", f"atoll_committed_tokens{{{AT}}}"),
                [("training", believed(f"atoll_train_loss{{{AT}}}")),
                 ("validation", believed(f"atoll_validation_loss{{{AT}}}"))],
                "short", "none", size=(12, 9)),
        row("Rounds"),
        lines("The open round", "How long it has been open, and when it is to close at the latest.",
              [query(f"atoll_round_open_seconds{{{AT}}}", "open, fragment {{fragment}}"),
               query(f"max(atoll_round_deadline_seconds{{{AT}}})", "deadline")], "s"),
        lines("Contributions to it", "Arrived, of those that can come; a quorum lets it close once the grace is over.",
              [query(f"sum(atoll_round_arrived_contributions{{{AT}}})", "arrived"),
               query(f"sum(atoll_round_expected_contributions{{{AT}}})", "expected"),
               query(f"sum(atoll_round_quorum_contributions{{{AT}}})", "quorum")], "none", minimum=0),
        lines("Rounds per minute", "Versions published.", [query(f"60 * {RATE('atoll_rounds_total')}", "rounds")], "none",
              minimum=0),
        lines("Round duration", "From the publication of a base to the close of its round.",
              quantiles("atoll_round_duration_seconds", AT), "s", minimum=0),
        lines("Contributions by result", "Counted, and why not.",
              [query(f"sum by (result) ({RATE('atoll_contributions_total')}) > 0", "{{result}}"),
               query(RATE("atoll_late_contributions_total"), "late, counted for less")], "cps", minimum=0, stacked=True),
        lines("Workers", "Live trainers, evaluators and observers, lost ones.",
              [query(f"atoll_workers{{{AT}}}", "{{state}}")], "none", minimum=0, stacked=True),
        row("Speed and price"),
        lines("Tokens per second", "All workers together, by what was committed.",
              [query(f"atoll_tokens_per_second{{{AT}}}", "tokens/s")], "none", minimum=0),
        lines("Compute utilisation", "Share of the trainers' time that goes into inner steps which arrive when they should.",
              [query(f'sum(rate(atoll_member_time_seconds_total{{{AT}, use="compute"}}[$__rate_interval])) / '
                     f'sum(rate(atoll_member_time_seconds_total{{{AT}, use!="pause"}}[$__rate_interval]))', "compute")],
              "percentunit", minimum=0, maximum=1, limits=shares),
        lines("Where the time goes", "Of the trainers' training threads, every second in one use.",
              [query(f"sum by (use) (rate(atoll_member_time_seconds_total{{{AT}}}[$__rate_interval])) / "
                     f"scalar(sum(rate(atoll_member_time_seconds_total{{{AT}}}[$__rate_interval])))", "{{use}}")],
              "percentunit", minimum=0, maximum=1, stacked=True),
        lines("Learning rate", "Inner learning rate at the committed position.",
              [query(f"atoll_learning_rate{{{AT}}}", "inner")], "sci", minimum=0),
        lines("Bytes moved", "Payload pushed, bytes pulled, over the whole run; and what data parallelism would have moved.",
              [query(f"atoll_exchanged_bytes_total{{{AT}}}", "{{direction}}"),
               query(f"atoll_data_parallel_bytes_total{{{AT}}}", "data parallelism")], "bytes", size=(12, 8), scale="log"),
        lines("Bytes saved", "What data parallelism would have moved, less what was moved.",
              [query(f"atoll_data_parallel_bytes_total{{{AT}}} - sum without (direction) (atoll_exchanged_bytes_total{{{AT}}})",
                     "saved")], "bytes", size=(12, 8)),
    ], variables=[COORDINATOR], annotations=ANNOTATIONS)


def workers():
    value = lambda metric: f"sum by (worker) ({metric}{{{OF_MEMBER}}})"
    each = lambda metric, of=lambda expr: expr: [query(of(value(metric)), "{{worker}}")]
    share = lambda use: (f'sum by (worker) (rate(atoll_member_time_seconds_total{{{OF_MEMBER}, use=~"{use}"}}[$__rate_interval])) / '
                         f"sum by (worker) (rate(atoll_member_time_seconds_total{{{OF_MEMBER}}}[$__rate_interval]))")
    return dashboard("atoll-workers", "Atoll / Workers", "Each worker, as the coordinator sees it and as it says itself.", [
        table("Workers", "One line for each live worker.", [
            ("tokens/s", value("atoll_member_tokens_per_second"), "none"),
            ("loss", value("atoll_member_train_loss"), "none"),
            ("base", value("atoll_member_base_version"), "none"),
            ("steps", value("atoll_member_round_steps"), "none"),
            ("of", value("atoll_member_round_planned_steps"), "none"),
            ("heard of", value("atoll_member_heartbeat_age_seconds"), "s"),
            ("memory", value("atoll_member_memory_bytes"), "bytes"),
            ("accepted", f'sum by (worker) (atoll_member_contributions_total{{{OF_MEMBER}, result="accepted"}})', "none"),
            ("refused", f'sum by (worker) (atoll_member_contributions_total{{{OF_MEMBER}, result="refused"}})', "none"),
            ("offences", value("atoll_member_recent_offences"), "none")],
            "worker"),
        row("As the coordinator sees them"),
        lines("Tokens per second", "While it computes, as the worker says.", each("atoll_member_tokens_per_second"), "none", minimum=0),
        lines("Loss", "Last inner step, nats per token. One that runs away from the others has other data, or trouble.",
              each("atoll_member_train_loss", believed), "none", decimals=3),
        lines("Gradient norm", "Global, before clipping, last inner step.", each("atoll_member_gradient_norm"), "none", scale="log"),
        lines("Compute", "Share of its training thread's time in inner steps which arrive when they should.",
              [query(share("compute"), "{{worker}}")], "percentunit",
              minimum=0, maximum=1, limits=thresholds((None, RED), (0.5, YELLOW), (0.8, GREEN))),
        lines("Overdue", "Share of its training thread's time in inner steps that it takes while a slow exchange holds its next "
              "push back (overlapped).", [query(share("overdue"), "{{worker}}")], "percentunit", minimum=0, maximum=1),
        lines("Exchange", "Share of its training thread's time in which it encodes, saves, pushes, pulls and applies.",
              [query(share("encode|save|push|pull|apply"), "{{worker}}")], "percentunit", minimum=0, maximum=1),
        lines("Wait", "Share of its training thread's time for others.", [query(share("wait"), "{{worker}}")], "percentunit",
              minimum=0, maximum=1),
        lines("Exchange threads", "What they spend their time on, all workers together (overlapped).",
              [query(f"sum by (use) (rate(atoll_member_exchange_time_seconds_total{{{OF_MEMBER}}}[$__rate_interval]))", "{{use}}")],
              "none", minimum=0, stacked=True),
        lines("Versions behind", "The head less the version that it trains on.",
              [query(f"scalar(max(atoll_published_version{{{AT}}})) - {value('atoll_member_base_version')}", "{{worker}}")],
              "none", minimum=0),
        lines("Heartbeat age", "Time since it was last heard of; past the lease it is lost.",
              each("atoll_member_heartbeat_age_seconds"), "s", minimum=0),
        lines("What they do", "Workers by phase.", [query(f"count by (phase) (atoll_member_phase{{{OF_MEMBER}}})", "{{phase}}")],
              "none", minimum=0, stacked=True),
        lines("Pushed", "Payload received.",
              [query(f"sum by (worker) ({RATE('atoll_member_push_received_bytes_total', OF_MEMBER)})", "{{worker}}")], "Bps", minimum=0),
        lines("Pulled", "Sent to it, framing included.",
              [query(f"sum by (worker) ({RATE('atoll_member_pull_sent_bytes_total', OF_MEMBER)})", "{{worker}}")], "Bps", minimum=0),
        lines("Lives", "Joins under the same name within the last hour.",
              [query(f"changes(atoll_member_incarnation{{{OF_MEMBER}}}[1h])", "{{worker}}")], "none", minimum=0,
              limits=thresholds((None, GREEN), (5, RED))),
        lines("Offences", "Rounds with one among the last offenders.within: what it sent was not like the others'.",
              each("atoll_member_recent_offences"), "none", minimum=0, limits=thresholds((None, GREEN), (3, RED))),
        row("As they say themselves"),
        lines("Inner step", "Of the selected endpoints together.", quantiles("atoll_worker_inner_step_duration_seconds", WORKERS), "s",
              minimum=0),
        lines("Push", "From the first byte to the verdict.", quantiles("atoll_worker_push_duration_seconds", WORKERS), "s", minimum=0),
        lines("Pull", "From the answer to the last byte.", quantiles("atoll_worker_pull_duration_seconds", WORKERS), "s", minimum=0),
        lines("Heartbeat round trip", "What the network costs.", quantiles("atoll_worker_heartbeat_duration_seconds", WORKERS), "s",
              minimum=0),
        lines("Retries", "Calls that failed and were tried again, by gRPC status code.",
              [query(f"sum by (code) ({RATE('atoll_worker_retries_total', WORKERS)})", "{{code}}")], "cps", minimum=0, stacked=True),
        lines("Rounds thrown away", "Loss or gradient not finite.",
              [query(f"increase(atoll_worker_rounds_not_finite_total{{{WORKERS}}}[$__rate_interval])", "{{instance}}")], "none",
              minimum=0),
        lines("Connected", "1 while the coordinator answers.",
              [query(f"atoll_worker_connected{{{WORKERS}}}", "{{instance}}")], "none", minimum=0, maximum=1),
        lines("Memory", "Resident.", [query(f"process_resident_memory_bytes{{{WORKERS}}}", "{{instance}}")], "bytes", minimum=0),
        lines("Processors", "Used by the process.", [query(RATE("process_cpu_seconds_total", WORKERS), "{{instance}}")], "none",
              minimum=0),
    ], variables=[COORDINATOR, MEMBER, WORKER_INSTANCE], annotations=ANNOTATIONS)


def coordinator():
    return dashboard("atoll-coordinator", "Atoll / Coordinator", "What the coordinator's time, memory and network go into.", [
        number("Program", "Version that runs.", f"atoll_build_info{{{AT}}}", "none", legend="{{version}}", text="name", size=(4, 4)),
        number("Up for", "Since its start.", f"time() - process_start_time_seconds{{{AT}}}", "s", size=(4, 4)),
        number("Configuration", "The newest recorded one.", f"atoll_config_version{{{AT}}}", "none", size=(4, 4)),
        number("Parameters", "Of the model.", f"atoll_model_parameters{{{AT}}}", "short", size=(4, 4)),
        gauge("Files open", "Of those that it may have open.", f"process_open_fds{{{AT}}} / process_max_fds{{{AT}}}", "percentunit",
              minimum=0, maximum=1, limits=thresholds((None, GREEN), (0.7, YELLOW), (0.9, RED)), size=(4, 4)),
        gauge("Contributions in flight", "Of limits.contribution_budget_mib; beyond it pushes are told to come back.",
              f"atoll_contribution_in_flight_bytes{{{AT}}} / atoll_contribution_budget_bytes{{{AT}}}", "percentunit",
              minimum=0, maximum=1, limits=thresholds((None, GREEN), (0.7, YELLOW), (0.9, RED)), size=(4, 4)),
        row("A round"),
        lines("Merge", "Decoding, merging and the outer step.", quantiles("atoll_merge_duration_seconds", AT), "s", minimum=0),
        lines("Commit", "The synced record that makes a version exist: milliseconds on a healthy disk.",
              quantiles("atoll_commit_duration_seconds", AT), "s", minimum=0, limits=thresholds((None, GREEN), (1, RED))),
        lines("Store", "Writing the tensors behind it.", quantiles("atoll_store_duration_seconds", AT), "s", minimum=0),
        row("Calls"),
        lines("Push", "One upload, well or not.", quantiles("atoll_push_duration_seconds", AT), "s", minimum=0),
        lines("Pull", "From the answer to the last byte.", quantiles("atoll_pull_duration_seconds", AT), "s", minimum=0),
        lines("Heartbeat", "From its arrival to its answer: grows first when calls have to wait for threads.",
              quantiles("atoll_heartbeat_duration_seconds", AT), "s", minimum=0, limits=thresholds((None, GREEN), (1, RED))),
        lines("Network", "Payload received, bytes sent.",
              [query(RATE("atoll_push_received_bytes_total"), "received"), query(RATE("atoll_pull_sent_bytes_total"), "sent")], "Bps",
              minimum=0),
        lines("Calls per second", "By kind.",
              [query(RATE("atoll_heartbeat_duration_seconds_count"), "heartbeats"),
               query(RATE("atoll_push_duration_seconds_count"), "pushes"),
               query(RATE("atoll_pull_duration_seconds_count"), "pulls")], "cps", minimum=0),
        lines("Refusals", "Contributions that were refused, by reason.",
              [query(f'sum by (result) (rate(atoll_contributions_total{{{AT}, result!~"accepted|duplicate"}}[$__rate_interval]))',
                     "{{result}}")], "cps", minimum=0, stacked=True),
        row("Trust"),
        heatmap("Norms", "Norm of each contribution over the median of its round; far from 1: look at that worker.",
                f"sum by (le) (increase(atoll_contribution_norm_ratio_bucket{{{AT}}}[$__rate_interval]))", "none"),
        lines("Norm guard", "Contributions that it scaled down.", [query(RATE("atoll_norm_guard_scaled_total"), "scaled")], "cps",
              minimum=0),
        lines("Confirmations", "Workers' signed hashes of what they trained on, compared with what was published.",
              [query(f"sum by (verdict) ({RATE('atoll_confirmations_total')})", "{{verdict}}")], "cps", minimum=0, stacked=True),
        lines("Offences", "Contributions by what is held against them (docs/reference/byzantine.md).",
              [query(f"increase(atoll_offences_total{{{AT}}}[$__rate_interval])", "{{kind}}")], "none", minimum=0, stacked=True),
        lines("Banned by rule", "Workers that the rule of offenders banned, since the start.",
              [query(f"atoll_workers_banned_by_rule_total{{{AT}}}", "banned")], "none", minimum=0),
        lines("Privacy spent", "Epsilon for privacy.delta, for who sees the pushes or the versions only; nothing shown: no bound.",
              [query(f"atoll_privacy_epsilon{{{AT}}}", "seen: {{seen}}")], "none", minimum=0, decimals=2),
        row("Ports"),
        number("Certificate ends in", "Of the coordinator; nothing shown: no TLS.",
               f"atoll_tls_certificate_not_after_seconds{{{AT}}} - time()", "s", size=(8, 4),
               limits=thresholds((None, RED), (2 * 86400, YELLOW), (14 * 86400, GREEN))),
        number("Certificate files", "Whether those that are there now can be used; if not, the ones before stay in force.",
               f"atoll_tls_files_unusable{{{AT}}}", "none", size=(8, 4), limits=thresholds((None, GREEN), (1, RED)),
               mappings=[{"type": "value", "options": {"0": {"text": "fine"}, "1": {"text": "not usable"}}}]),
        number("Plain text", "Whether other machines reach a port without TLS (--insecure-bind).",
               f"atoll_insecure_bind{{{AT}}}", "none", size=(8, 4), limits=thresholds((None, GREEN), (1, YELLOW)),
               mappings=[{"type": "value", "options": {"0": {"text": "no"}, "1": {"text": "yes"}}}]),
        lines("Connections", "Open ones, by port.", [query(f"atoll_connections{{{AT}}}", "{{port}}")], "none", minimum=0),
        lines("Connections refused", "No room, in all or for one address; or ended, for bytes without calls or a flood of streams.",
              [query(RATE("atoll_connections_refused_total"), "{{port}}, {{limit}}")], "cps", minimum=0, stacked=True),
        lines("Calls refused", "By reason (docs/reference/wire_format.md). unauthenticated, permission_denied: somebody who may not.",
              [query(some_or_none(RATE("atoll_calls_refused_total"), "reason"), "{{reason}}")], "cps", minimum=0, stacked=True),
        row("Process"),
        lines("Memory", "Resident, mapped contributions included, which the kernel takes back at need.",
              [query(f"process_resident_memory_bytes{{{AT}}}", "resident")], "bytes", minimum=0),
        lines("Processors", "Used by the process.", [query(RATE("process_cpu_seconds_total"), "processors")], "none", minimum=0),
        lines("Events", "Milestones, as atollctl events prints them.",
              [query(f"sum by (kind) (increase(atoll_events_total{{{AT}}}[$__rate_interval])) > 0", "{{kind}}")], "none", minimum=0,
              stacked=True),
        lines("Operators", "What was asked for, done or refused.",
              [query(f"sum by (action, result) (increase(atoll_admin_actions_total{{{AT}}}[$__rate_interval])) > 0",
                     "{{action}} {{result}}")], "none", minimum=0, size=(24, 6)),
    ], variables=[COORDINATOR], annotations=ANNOTATIONS)


def storage():
    free = f"atoll_disk_free_bytes{{{AT}}}"
    return dashboard("atoll-storage", "Atoll / Storage", "The coordinator's disk: room, speed, checkpoints.", [
        gauge("Free", "Of the file system with the data directory.", f"{free} / atoll_disk_size_bytes{{{AT}}}", "percentunit",
              minimum=0, maximum=1, limits=thresholds((None, RED), (0.05, YELLOW), (0.2, GREEN)), size=(4, 5)),
        number("Free", "Bytes left.", free, "bytes", size=(4, 5)),
        number("Full in", "By the trend of the last hour; nothing shown: it does not fill.",
               f"{free} / (0 - deriv(atoll_disk_free_bytes{{{AT}}}[1h]) > 0)", "s", size=(4, 5),
               limits=thresholds((None, RED), (14400, YELLOW), (86400, GREEN))),
        number("Newest checkpoint", "Its age.", f"time() - (atoll_last_checkpoint_timestamp_seconds{{{AT}}} > 0)", "s", size=(4, 5),
               limits=thresholds((None, GREEN), (43200, YELLOW), (86400, RED))),
        number("Writes", "Whether the disk takes commits.", f"atoll_storage_failing{{{AT}}}", "none", size=(4, 5),
               limits=thresholds((None, GREEN), (1, RED)),
               mappings=[{"type": "value", "options": {"0": {"text": "fine"}, "1": {"text": "refused"}}}]),
        number("Versions to store", "Published, and not on disk as tensors yet; the record is, so nothing can be lost.",
               f"max(atoll_published_version{{{AT}}} - atoll_stored_version{{{AT}}})", "none", size=(4, 5),
               limits=thresholds((None, GREEN), (2, YELLOW))),
        row("Room"),
        lines("Free space", "And where the trend of the last hour puts it in four hours.",
              [query(free, "free"), query(f"atoll_disk_size_bytes{{{AT}}}", "size"),
               query(f"clamp_min(predict_linear(atoll_disk_free_bytes{{{AT}}}[1h], 4 * 3600), 0)", "free in 4 h")], "bytes",
              size=(12, 8), minimum=0),
        lines("Contributions in flight", "Payload on its way in, and how much there may be.",
              [query(f"atoll_contribution_in_flight_bytes{{{AT}}}", "in flight"),
               query(f"atoll_contribution_budget_bytes{{{AT}}}", "budget")], "bytes", size=(12, 8), minimum=0),
        row("Speed"),
        lines("Commit", "The synced record of a round.", quantiles("atoll_commit_duration_seconds", AT), "s", minimum=0,
              limits=thresholds((None, GREEN), (1, RED))),
        lines("Store", "The tensors of a version, written behind it.", quantiles("atoll_store_duration_seconds", AT), "s", minimum=0),
        lines("Versions", "Published and stored.",
              [query(f"atoll_published_version{{{AT}}}", "published, fragment {{fragment}}"),
               query(f"atoll_stored_version{{{AT}}}", "stored, fragment {{fragment}}")], "none", minimum=0),
        row("Checkpoints"),
        lines("Age of the newest", "A day is what BackupStale allows.",
              [query(f"time() - (atoll_last_checkpoint_timestamp_seconds{{{AT}}} > 0)", "age")], "s", size=(12, 8), minimum=0,
              limits=thresholds((None, GREEN), (86400, RED))),
        lines("Made, deleted, failed", "Checkpoints.",
              [query(EVENT("checkpoint_created"), "made"), query(EVENT("checkpoint_deleted"), "deleted"),
               query(EVENT("checkpoint_failed"), "failed")], "none", size=(12, 8), minimum=0),
        lines("Storage trouble", "Times that writes began to fail, and worked again.",
              [query(EVENT("storage_failing"), "failing"), query(EVENT("storage_recovered"), "recovered")], "none", size=(24, 6),
              minimum=0),
    ], variables=[COORDINATOR], annotations=ANNOTATIONS)


def main():
    """Without an argument also what k8s/ has of them, without white space: in the component and in the chart, since neither kustomize
    nor helm reads a file from outside."""
    here = pathlib.Path(__file__).parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "dashboards"
    copies = [] if len(sys.argv) > 1 else [here.parents[1] / "k8s" / part / "dashboards" for part in ("components/monitoring", "chart")]
    for name, board in (("run", run_overview()), ("workers", workers()), ("coordinator", coordinator()), ("storage", storage())):
        (folder / f"{name}.json").write_text(json.dumps(board, indent=1) + "\n")
        for copy in copies:
            copy.mkdir(exist_ok=True)
            (copy / f"{name}.json").write_text(json.dumps(board, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
