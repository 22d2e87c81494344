#!/usr/bin/env python3
"""Generates the dashboards: dashboards.py [FOLDER], default: dashboards/ next to this file. A test compares them."""
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
    annotation("restarts", f"changes(process_start_time_seconds{{{AT}}}[1m]) > 0", "the coordinator restarted", "purple")]
STATES = [{"type": "value", "options": {
    "starting": {"color": "blue"}, "training": {"color": GREEN}, "degraded": {"color": YELLOW}, "critical": {"color": RED},
    "finished": {"color": "blue"}, "paused": {"color": "purple"}, "stopped": {"color": "purple"}}}]
EVENT = lambda kind: f'increase(atoll_events_total{{{AT}, kind="{kind}"}}[$__rate_interval])'
RATE = lambda metric, where=AT: f"rate({metric}{{{where}}}[$__rate_interval])"


def some_or_none(expr, label):
    """The series that are not 0; if all are 0, one series at 0, so that the panel shows "0" and not "no data"."""
    return f'{expr} > 0 or label_replace(sum({expr}) == 0, "{label}", "none", "", "")'


def believed(expr):
    """Drops losses that would flatten all other curves. An untrained model has ln(vocabulary)."""
    return f"{expr} <= 100"


def run_overview():
    shares = thresholds((None, RED), (0.5, YELLOW), (0.8, GREEN))
    return dashboard("atoll-run", "Atoll / Run", "One training run: state, speed, loss and traffic.", [
        number("State", "State of the run. Degraded and critical: rounds are kept open because workers are missing.",
               f"atoll_run_state{{{AT}}} == 1", "none", legend="{{state}}", text="name", mappings=STATES),
        number("Version", "The newest published version of any fragment.", f"max(atoll_published_version{{{AT}}})", "none"),
        gauge("Done", "Committed tokens as a share of the token budget.",
              f"atoll_committed_tokens{{{AT}}} / atoll_planned_tokens{{{AT}}}", "percentunit", minimum=0, maximum=1),
        number("Ends in", "Time left at the current speed.", f"atoll_run_eta_seconds{{{AT}}}", "s"),
        number("Trainers", "Live workers that contribute.", f'atoll_workers{{{AT}, state="active_trainer"}}', "none",
               limits=thresholds((None, RED), (1, GREEN))),
        number("Lost", "Workers whose lease expired and that have not returned.", f'atoll_workers{{{AT}, state="lost"}}', "none",
               limits=thresholds((None, GREEN), (1, YELLOW))),
        number("Validation loss", "Loss of the published parameters on held-out text, in nats per token.",
               f"atoll_validation_loss{{{AT}}}", "none", decimals=3),
        number("Traffic", "How many times fewer bytes were moved than with data parallelism for the same inner steps.",
               f"atoll_data_parallel_bytes_total{{{AT}}} / sum without (direction) (atoll_exchanged_bytes_total{{{AT}}})", "x",
               decimals=1),
        row("Loss"),
        lines("Loss by time", "The training loss is the mean of the newest round. Marks show workers that join or leave.",
              [query(believed(f"atoll_train_loss{{{AT}}}"), "training"),
               query(believed(f"atoll_validation_loss{{{AT}}}"), "validation")], "none",
              size=(12, 9), decimals=3),
        against("Loss by token", "The same losses by committed tokens, to compare runs of different speed.",
                ("tokens", f"atoll_committed_tokens{{{AT}}}"),
                [("training", believed(f"atoll_train_loss{{{AT}}}")),
                 ("validation", believed(f"atoll_validation_loss{{{AT}}}"))],
                "short", "none", size=(12, 9)),
        lines("Scores of tasks", "Share of the questions of evaluation.tasks that the published parameters answer rightly.",
              [query(f"atoll_task_score{{{AT}}}", "{{task}} {{metric}}")], "percentunit", size=(24, 8), decimals=1, minimum=0),
        row("Rounds"),
        lines("The open round", "How long the round has been open, and its deadline.",
              [query(f"atoll_round_open_seconds{{{AT}}}", "open, fragment {{fragment}}"),
               query(f"max(atoll_round_deadline_seconds{{{AT}}})", "deadline")], "s"),
        lines("Contributions to it", "Contributions arrived, expected, and needed for a quorum. With a quorum, the round closes after the grace period.",
              [query(f"sum(atoll_round_arrived_contributions{{{AT}}})", "arrived"),
               query(f"sum(atoll_round_expected_contributions{{{AT}}})", "expected"),
               query(f"sum(atoll_round_quorum_contributions{{{AT}}})", "quorum")], "none", minimum=0),
        lines("Rounds per minute", "Versions published.", [query(f"60 * {RATE('atoll_rounds_total')}", "rounds")], "none",
              minimum=0),
        lines("Round duration", "From the publication of a base to the close of its round.",
              quantiles("atoll_round_duration_seconds", AT), "s", minimum=0),
        lines("Contributions by result", "Accepted contributions, and the reasons for rejecting others.",
              [query(f"sum by (result) ({RATE('atoll_contributions_total')}) > 0", "{{result}}"),
               query(RATE("atoll_late_contributions_total"), "late, with less weight")], "cps", minimum=0, stacked=True),
        lines("Workers", "Live trainers, evaluators and observers, and lost workers.",
              [query(f"atoll_workers{{{AT}}}", "{{state}}")], "none", minimum=0, stacked=True),
        row("Speed and cost"),
        lines("Tokens per second", "Committed tokens per second of all workers together.",
              [query(f"atoll_tokens_per_second{{{AT}}}", "tokens/s")], "none", minimum=0),
        lines("Compute utilisation", "Share of the trainers' time spent in inner steps that are pushed on schedule.",
              [query(f'sum(rate(atoll_member_time_seconds_total{{{AT}, use="compute"}}[$__rate_interval])) / '
                     f'sum(rate(atoll_member_time_seconds_total{{{AT}, use!="pause"}}[$__rate_interval]))', "compute")],
              "percentunit", minimum=0, maximum=1, limits=shares),
        lines("Where the time goes", "Time of the trainers' training threads by use. Every second counts as one use.",
              [query(f"sum by (use) (rate(atoll_member_time_seconds_total{{{AT}}}[$__rate_interval])) / "
                     f"scalar(sum(rate(atoll_member_time_seconds_total{{{AT}}}[$__rate_interval])))", "{{use}}")],
              "percentunit", minimum=0, maximum=1, stacked=True),
        lines("Learning rate", "Inner learning rate at the committed position.",
              [query(f"atoll_learning_rate{{{AT}}}", "inner")], "sci", minimum=0),
        lines("Bytes moved", "Payload pushed and bytes pulled over the whole run, and the bytes that data parallelism would have moved.",
              [query(f"atoll_exchanged_bytes_total{{{AT}}}", "{{direction}}"),
               query(f"atoll_data_parallel_bytes_total{{{AT}}}", "data parallelism")], "bytes", size=(12, 8), scale="log"),
        lines("Bytes saved", "Bytes that data parallelism would have moved, minus the bytes moved.",
              [query(f"atoll_data_parallel_bytes_total{{{AT}}} - sum without (direction) (atoll_exchanged_bytes_total{{{AT}}})",
                     "saved")], "bytes", size=(12, 8)),
    ], variables=[COORDINATOR], annotations=ANNOTATIONS)


def workers():
    value = lambda metric: f"sum by (worker) ({metric}{{{OF_MEMBER}}})"
    each = lambda metric, of=lambda expr: expr: [query(of(value(metric)), "{{worker}}")]
    share = lambda use: (f'sum by (worker) (rate(atoll_member_time_seconds_total{{{OF_MEMBER}, use=~"{use}"}}[$__rate_interval])) / '
                         f"sum by (worker) (rate(atoll_member_time_seconds_total{{{OF_MEMBER}}}[$__rate_interval]))")
    return dashboard("atoll-workers", "Atoll / Workers", "Each worker, as seen by the coordinator and as reported by the worker.", [
        table("Workers", "One line per live worker.", [
            ("tokens/s", value("atoll_member_tokens_per_second"), "none"),
            ("loss", value("atoll_member_train_loss"), "none"),
            ("base", value("atoll_member_base_version"), "none"),
            ("steps", value("atoll_member_round_steps"), "none"),
            ("of", value("atoll_member_round_planned_steps"), "none"),
            ("heartbeat age", value("atoll_member_heartbeat_age_seconds"), "s"),
            ("memory", value("atoll_member_memory_bytes"), "bytes"),
            ("accepted", f'sum by (worker) (atoll_member_contributions_total{{{OF_MEMBER}, result="accepted"}})', "none"),
            ("refused", f'sum by (worker) (atoll_member_contributions_total{{{OF_MEMBER}, result="refused"}})', "none"),
            ("offences", value("atoll_member_recent_offences"), "none")],
            "worker"),
        row("Seen by the coordinator"),
        lines("Tokens per second", "Speed during computation, as reported by the worker.", each("atoll_member_tokens_per_second"), "none", minimum=0),
        lines("Loss", "Loss of the last inner step, in nats per token. A worker far from the others has different data or a problem.",
              each("atoll_member_train_loss", believed), "none", decimals=3),
        lines("Gradient norm", "Global gradient norm of the last inner step, before clipping.", each("atoll_member_gradient_norm"), "none", scale="log"),
        lines("Model FLOPs utilization", "Operations of the model per second, as a part of the fastest matrix product measured on the device.",
              each("atoll_member_model_flops_utilization_ratio"), "percentunit"),
        lines("Compute", "Share of the training thread's time in inner steps that are pushed on schedule.",
              [query(share("compute"), "{{worker}}")], "percentunit",
              minimum=0, maximum=1, limits=thresholds((None, RED), (0.5, YELLOW), (0.8, GREEN))),
        lines("Overdue", "Share of the training thread's time in inner steps taken while a slow exchange delays the next push "
              "(overlapped).", [query(share("overdue"), "{{worker}}")], "percentunit", minimum=0, maximum=1),
        lines("Exchange", "Share of the training thread's time spent encoding, saving, pushing, pulling and applying.",
              [query(share("encode|save|push|pull|apply"), "{{worker}}")], "percentunit", minimum=0, maximum=1),
        lines("Wait", "Share of the training thread's time spent waiting for other workers.", [query(share("wait"), "{{worker}}")], "percentunit",
              minimum=0, maximum=1),
        lines("Exchange threads", "Time of the exchange threads by use, all workers together (overlapped).",
              [query(f"sum by (use) (rate(atoll_member_exchange_time_seconds_total{{{OF_MEMBER}}}[$__rate_interval]))", "{{use}}")],
              "none", minimum=0, stacked=True),
        lines("Versions behind", "Published version minus the version that the worker trains on.",
              [query(f"scalar(max(atoll_published_version{{{AT}}})) - {value('atoll_member_base_version')}", "{{worker}}")],
              "none", minimum=0),
        lines("Heartbeat age", "Time since the last heartbeat. When it exceeds the lease, the worker is lost.",
              each("atoll_member_heartbeat_age_seconds"), "s", minimum=0),
        lines("Phases", "Number of workers in each phase.", [query(f"count by (phase) (atoll_member_phase{{{OF_MEMBER}}})", "{{phase}}")],
              "none", minimum=0, stacked=True),
        lines("Pushed", "Payload received.",
              [query(f"sum by (worker) ({RATE('atoll_member_push_received_bytes_total', OF_MEMBER)})", "{{worker}}")], "Bps", minimum=0),
        lines("Pulled", "Bytes sent to the worker, including framing.",
              [query(f"sum by (worker) ({RATE('atoll_member_pull_sent_bytes_total', OF_MEMBER)})", "{{worker}}")], "Bps", minimum=0),
        lines("Joins", "Joins under the same name within the last hour.",
              [query(f"changes(atoll_member_incarnation{{{OF_MEMBER}}}[1h])", "{{worker}}")], "none", minimum=0,
              limits=thresholds((None, GREEN), (5, RED))),
        lines("Offences", "Offences in the worker's last offenders.within rounds: contributions unlike the others (docs/reference/byzantine.md).",
              each("atoll_member_recent_offences"), "none", minimum=0, limits=thresholds((None, GREEN), (3, RED))),
        row("Reported by the workers"),
        lines("Inner step", "Duration of an inner step, over the selected endpoints.", quantiles("atoll_worker_inner_step_duration_seconds", WORKERS), "s",
              minimum=0),
        lines("Push", "Time from the first byte to the verdict.", quantiles("atoll_worker_push_duration_seconds", WORKERS), "s", minimum=0),
        lines("Pull", "Time from the answer to the last byte.", quantiles("atoll_worker_pull_duration_seconds", WORKERS), "s", minimum=0),
        lines("Heartbeat round trip", "Round-trip time of a heartbeat.", quantiles("atoll_worker_heartbeat_duration_seconds", WORKERS), "s",
              minimum=0),
        lines("Retries", "Calls that failed and were retried, by gRPC status code.",
              [query(f"sum by (code) ({RATE('atoll_worker_retries_total', WORKERS)})", "{{code}}")], "cps", minimum=0, stacked=True),
        lines("Rounds discarded", "Rounds discarded because the loss or the gradient was not finite.",
              [query(f"increase(atoll_worker_rounds_not_finite_total{{{WORKERS}}}[$__rate_interval])", "{{instance}}")], "none",
              minimum=0),
        lines("Connected", "1 while the worker reaches the coordinator.",
              [query(f"atoll_worker_connected{{{WORKERS}}}", "{{instance}}")], "none", minimum=0, maximum=1),
        lines("Memory", "Resident memory.", [query(f"process_resident_memory_bytes{{{WORKERS}}}", "{{instance}}")], "bytes", minimum=0),
        lines("Processors", "CPU cores used by the process.", [query(RATE("process_cpu_seconds_total", WORKERS), "{{instance}}")], "none",
              minimum=0),
    ], variables=[COORDINATOR, MEMBER, WORKER_INSTANCE], annotations=ANNOTATIONS)


def coordinator():
    return dashboard("atoll-coordinator", "Atoll / Coordinator", "The coordinator's time, memory and network.", [
        number("Program", "Version of the running program.", f"atoll_build_info{{{AT}}}", "none", legend="{{version}}", text="name", size=(4, 4)),
        number("Up for", "Time since the program started.", f"time() - process_start_time_seconds{{{AT}}}", "s", size=(4, 4)),
        number("Configuration", "Version of the newest recorded configuration.", f"atoll_config_version{{{AT}}}", "none", size=(4, 4)),
        number("Parameters", "Number of parameters of the model.", f"atoll_model_parameters{{{AT}}}", "short", size=(4, 4)),
        gauge("Files open", "Open files as a share of the limit.", f"process_open_fds{{{AT}}} / process_max_fds{{{AT}}}", "percentunit",
              minimum=0, maximum=1, limits=thresholds((None, GREEN), (0.7, YELLOW), (0.9, RED)), size=(4, 4)),
        gauge("Contributions in flight", "Share of limits.contribution_budget_mib. When it is full, pushes must retry later.",
              f"atoll_contribution_in_flight_bytes{{{AT}}} / atoll_contribution_budget_bytes{{{AT}}}", "percentunit",
              minimum=0, maximum=1, limits=thresholds((None, GREEN), (0.7, YELLOW), (0.9, RED)), size=(4, 4)),
        row("A round"),
        lines("Merge", "Duration of decoding, merging and the outer step.", quantiles("atoll_merge_duration_seconds", AT), "s", minimum=0),
        lines("Commit", "Duration of the synced write that commits a version: milliseconds on a healthy disk.",
              quantiles("atoll_commit_duration_seconds", AT), "s", minimum=0, limits=thresholds((None, GREEN), (1, RED))),
        lines("Store", "Duration of writing the version's tensors, after the commit.", quantiles("atoll_store_duration_seconds", AT), "s", minimum=0),
        row("Calls"),
        lines("Push", "Duration of one upload, accepted or not.", quantiles("atoll_push_duration_seconds", AT), "s", minimum=0),
        lines("Pull", "Time from the answer to the last byte.", quantiles("atoll_pull_duration_seconds", AT), "s", minimum=0),
        lines("Heartbeat", "Time from arrival to answer. It rises first when calls wait for threads.",
              quantiles("atoll_heartbeat_duration_seconds", AT), "s", minimum=0, limits=thresholds((None, GREEN), (1, RED))),
        lines("Network", "Payload received, bytes sent.",
              [query(RATE("atoll_push_received_bytes_total"), "received"), query(RATE("atoll_pull_sent_bytes_total"), "sent")], "Bps",
              minimum=0),
        lines("Calls per second", "Calls by kind.",
              [query(RATE("atoll_heartbeat_duration_seconds_count"), "heartbeats"),
               query(RATE("atoll_push_duration_seconds_count"), "pushes"),
               query(RATE("atoll_pull_duration_seconds_count"), "pulls")], "cps", minimum=0),
        lines("Rejections", "Rejected contributions, by reason.",
              [query(f'sum by (result) (rate(atoll_contributions_total{{{AT}, result!~"accepted|duplicate"}}[$__rate_interval]))',
                     "{{result}}")], "cps", minimum=0, stacked=True),
        row("Trust"),
        heatmap("Norms", "Norm of each contribution divided by the median of its round. If it is far from 1, check that worker.",
                f"sum by (le) (increase(atoll_contribution_norm_ratio_bucket{{{AT}}}[$__rate_interval]))", "none"),
        lines("Norm guard", "Contributions that the norm guard scaled down.", [query(RATE("atoll_norm_guard_scaled_total"), "scaled")], "cps",
              minimum=0),
        lines("Confirmations", "Workers' signed hashes of the parameters that they trained on, compared with the published hashes.",
              [query(f"sum by (verdict) ({RATE('atoll_confirmations_total')})", "{{verdict}}")], "cps", minimum=0, stacked=True),
        lines("Offences", "Offences by kind (docs/reference/byzantine.md).",
              [query(f"increase(atoll_offences_total{{{AT}}}[$__rate_interval])", "{{kind}}")], "none", minimum=0, stacked=True),
        lines("Banned by rule", "Workers banned by the offenders rule since the coordinator's start.",
              [query(f"atoll_workers_banned_by_rule_total{{{AT}}}", "banned")], "none", minimum=0),
        lines("Privacy spent", "Epsilon at privacy.delta, for readers of the pushes and for readers of the versions only. Empty: no bound.",
              [query(f"atoll_privacy_epsilon{{{AT}}}", "seen: {{seen}}")], "none", minimum=0, decimals=2),
        row("Ports"),
        number("Certificate ends in", "Time until the coordinator's certificate expires. Empty: no TLS.",
               f"atoll_tls_certificate_not_after_seconds{{{AT}}} - time()", "s", size=(8, 4),
               limits=thresholds((None, RED), (2 * 86400, YELLOW), (14 * 86400, GREEN))),
        number("Certificate files", "Whether the current files can be loaded. If not, the previous ones stay in use.",
               f"atoll_tls_files_unusable{{{AT}}}", "none", size=(8, 4), limits=thresholds((None, GREEN), (1, RED)),
               mappings=[{"type": "value", "options": {"0": {"text": "fine"}, "1": {"text": "not usable"}}}]),
        number("Plain text", "Whether other machines can reach a port without TLS (--insecure-bind).",
               f"atoll_insecure_bind{{{AT}}}", "none", size=(8, 4), limits=thresholds((None, GREEN), (1, YELLOW)),
               mappings=[{"type": "value", "options": {"0": {"text": "no"}, "1": {"text": "yes"}}}]),
        lines("Connections", "Open connections, by port.", [query(f"atoll_connections{{{AT}}}", "{{port}}")], "none", minimum=0),
        lines("Connections rejected", "Rejected: limit reached, in total or for one address. Closed: bytes without calls, or too many streams.",
              [query(RATE("atoll_connections_refused_total"), "{{port}}, {{limit}}")], "cps", minimum=0, stacked=True),
        lines("Calls rejected", "By reason (docs/reference/wire_format.md). unauthenticated, permission_denied: unauthorised callers.",
              [query(some_or_none(RATE("atoll_calls_refused_total"), "reason"), "{{reason}}")], "cps", minimum=0, stacked=True),
        row("Process"),
        lines("Memory", "Resident memory, including mapped contributions, which the kernel can reclaim.",
              [query(f"process_resident_memory_bytes{{{AT}}}", "resident")], "bytes", minimum=0),
        lines("Processors", "CPU cores used by the process.", [query(RATE("process_cpu_seconds_total"), "processors")], "none", minimum=0),
        lines("Events", "Events of the run, as printed by atollctl events.",
              [query(f"sum by (kind) (increase(atoll_events_total{{{AT}}}[$__rate_interval])) > 0", "{{kind}}")], "none", minimum=0,
              stacked=True),
        lines("Operators", "Operators' actions, done or rejected.",
              [query(f"sum by (action, result) (increase(atoll_admin_actions_total{{{AT}}}[$__rate_interval])) > 0",
                     "{{action}} {{result}}")], "none", minimum=0, size=(24, 6)),
    ], variables=[COORDINATOR], annotations=ANNOTATIONS)


def storage():
    free = f"atoll_disk_free_bytes{{{AT}}}"
    return dashboard("atoll-storage", "Atoll / Storage", "The coordinator's disk: space, speed, checkpoints.", [
        gauge("Free", "Free share of the file system that holds the data directory.", f"{free} / atoll_disk_size_bytes{{{AT}}}", "percentunit",
              minimum=0, maximum=1, limits=thresholds((None, RED), (0.05, YELLOW), (0.2, GREEN)), size=(4, 5)),
        number("Free", "Bytes left.", free, "bytes", size=(4, 5)),
        number("Full in", "By the trend of the last hour. Empty: the disk is not filling.",
               f"{free} / (0 - deriv(atoll_disk_free_bytes{{{AT}}}[1h]) > 0)", "s", size=(4, 5),
               limits=thresholds((None, RED), (14400, YELLOW), (86400, GREEN))),
        number("Newest checkpoint", "Age of the newest checkpoint.", f"time() - (atoll_last_checkpoint_timestamp_seconds{{{AT}}} > 0)", "s", size=(4, 5),
               limits=thresholds((None, GREEN), (43200, YELLOW), (86400, RED))),
        number("Writes", "Whether commits to the disk succeed.", f"atoll_storage_failing{{{AT}}}", "none", size=(4, 5),
               limits=thresholds((None, GREEN), (1, RED)),
               mappings=[{"type": "value", "options": {"0": {"text": "fine"}, "1": {"text": "failing"}}}]),
        number("Versions to store", "Versions that are published but whose tensors are not on disk yet. Their records are, so nothing can be lost.",
               f"max(atoll_published_version{{{AT}}} - atoll_stored_version{{{AT}}})", "none", size=(4, 5),
               limits=thresholds((None, GREEN), (2, YELLOW))),
        row("Space"),
        lines("Free space", "Free space now, and in four hours by the trend of the last hour.",
              [query(free, "free"), query(f"atoll_disk_size_bytes{{{AT}}}", "size"),
               query(f"clamp_min(predict_linear(atoll_disk_free_bytes{{{AT}}}[1h], 4 * 3600), 0)", "free in 4 h")], "bytes",
              size=(12, 8), minimum=0),
        lines("Contributions in flight", "Payload being received, and its limit.",
              [query(f"atoll_contribution_in_flight_bytes{{{AT}}}", "in flight"),
               query(f"atoll_contribution_budget_bytes{{{AT}}}", "budget")], "bytes", size=(12, 8), minimum=0),
        row("Speed"),
        lines("Commit", "Duration of the synced write that commits a round.", quantiles("atoll_commit_duration_seconds", AT), "s", minimum=0,
              limits=thresholds((None, GREEN), (1, RED))),
        lines("Store", "Duration of writing the tensors of a version, after the commit.", quantiles("atoll_store_duration_seconds", AT), "s", minimum=0),
        lines("Versions", "Published and stored.",
              [query(f"atoll_published_version{{{AT}}}", "published, fragment {{fragment}}"),
               query(f"atoll_stored_version{{{AT}}}", "stored, fragment {{fragment}}")], "none", minimum=0),
        row("Checkpoints"),
        lines("Age of the newest", "The alert BackupStale fires after a day.",
              [query(f"time() - (atoll_last_checkpoint_timestamp_seconds{{{AT}}} > 0)", "age")], "s", size=(12, 8), minimum=0,
              limits=thresholds((None, GREEN), (86400, RED))),
        lines("Created, deleted, failed", "Checkpoints that were created, deleted, or failed.",
              [query(EVENT("checkpoint_created"), "created"), query(EVENT("checkpoint_deleted"), "deleted"),
               query(EVENT("checkpoint_failed"), "failed")], "none", size=(12, 8), minimum=0),
        lines("Storage failures", "Times when writes began to fail, and when they recovered.",
              [query(EVENT("storage_failing"), "failing"), query(EVENT("storage_recovered"), "recovered")], "none", size=(24, 6),
              minimum=0),
    ], variables=[COORDINATOR], annotations=ANNOTATIONS)


def main():
    """Without an argument, also writes compact copies for the component and the chart in k8s/, because kustomize and helm cannot
    read files outside their folders."""
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
