#!/usr/bin/env python3
"""Follows the runbooks literally: the commands of k8s/README.md and of docs/guides/kubernetes.md, taken from the text,
with the real kubectl, against an API server of ours whose pods are the real programs.

runbooks_test.py BIN_DIR [PART]. Without a part, all of them side by side. Exit code 77: npm's kubectl, python3-yaml or atoll-worker is not here.
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "runbooks"))
sys.dont_write_bytecode = True

try:
    import yaml  # noqa: F401
except ImportError:
    print("skipped: python3-yaml is not installed (scripts/setup.sh)")
    sys.exit(77)

import guard  # noqa: E402
import page  # noqa: E402
from desk import Desk, expect  # noqa: E402

SOURCE = HERE.parents[1]


def replicas(desk, name="atoll-worker"):
    return desk.get("statefulset", name)["spec"]["replicas"]


def claims(desk):
    return {c["metadata"]["name"] for c in desk.get("persistentvolumeclaims")["items"]}


def trying_out(desk, text):
    """k8s/README.md to "What is where": install, look, scale, apply again, delete."""
    before = page.blocks(text[:text.index("## What is where")])
    expect(len(before) == 3, f"{len(before)} blocks, not 3")
    desk.run(before[0][1])
    desk.until(lambda: replicas(desk) == 2, "the coordinator asks for run.workers")
    desk.run(before[1][1])
    expect(replicas(desk) == 4, f"an apply after `workers scale 4` left {replicas(desk)} replicas")
    delete, forget = before[2][1].strip().splitlines()
    kept = claims(desk)
    expect({"data-atoll-coordinator-0", "state-atoll-worker-3"} <= kept, kept)
    desk.run(delete)
    expect(claims(desk) == kept, f"deleting the overlay took {kept - claims(desk)} along")
    desk.run(forget)
    expect("lost data-atoll-coordinator-0" in desk.history(), "deleting the namespace keeps volumes, and the page says that it does not")
    print("k8s/README.md: tried out, scaled, applied again, deleted", flush=True)


def bad_configuration(desk):
    """A coordinator that never got ready is replaced when its configuration is corrected."""
    file = desk.folder / "k8s/base/coordinator/run.yaml"
    good = file.read_text(encoding="utf-8")
    file.write_text(good.replace("workers:", "wrokers:"), encoding="utf-8")
    desk.run("kubectl -n atoll apply -k k8s/overlays/tls")
    desk.until(lambda: desk.history().count("started atoll-coordinator-0") > 1, "the new configuration restarts the coordinator")
    desk.until(lambda: not desk.is_ready("atoll-coordinator-0"), "it does not get ready")
    file.write_text(good, encoding="utf-8")
    desk.run("kubectl -n atoll apply -k k8s/overlays/tls\nkubectl -n atoll rollout status statefulset/atoll-coordinator --timeout=60s")
    print("a coordinator with a wrong configuration was replaced", flush=True)


def identities(desk):
    """Each worker's pod has its own key and no other, and it proves that worker only."""
    for own, other in (("atoll-worker-0", "atoll-worker-1"), ("atoll-worker-1", "atoll-worker-0")):
        pod = desk.get("pod", f"{own}-0")
        files = [sorted(path.name for path in folder.iterdir()) for name, folder in desk.kubelet.volumes(pod).items() if name == "tls"]
        expect(files == [["ca.crt", "tls.crt", "tls.key"]], f"{own} has {files}")
        secrets = [v["secret"]["secretName"] for v in pod["spec"]["volumes"] if "secret" in v]
        expect(secrets == [f"{own}-tls"], f"{own} mounts {secrets}")
        tls = desk.kubelet.volumes(pod)["tls"]
        names = desk.run(f"openssl x509 -in {tls}/tls.crt -noout -ext subjectAltName")
        expect(f"URI:spiffe://atoll/worker/{own}" in names and other not in names, names)
        refused = desk.run(f"""
            code=0; timeout 60 atoll-worker --coordinator $ATOLL_COORDINATOR --name {other} --data tokens --state-dir {own}-as-{other} \\
              --tls-cert {tls}/tls.crt --tls-key {tls}/tls.key --tls-ca {tls}/ca.crt >as-other 2>&1 || code=$?
            cat as-other; [ $code -eq 5 ]""")
        expect(own in refused and other in refused, refused)
    print("a worker's key is in its own pod only, and joins under its own name only", flush=True)


def install(desk, commands, done):
    desk.run(commands)
    if done == 0:
        desk.until(lambda: desk.is_ready("atoll-worker-0-0") and desk.is_ready("atoll-worker-1-0"), "both workers join", 120)
        expect({"atoll-data", "data-atoll-coordinator-0", "state-atoll-worker-0-0"} <= claims(desk), claims(desk))
        identities(desk)
        bad_configuration(desk)


def scale(desk, commands, done):
    desk.run(commands)
    sets = [replicas(desk, f"atoll-worker-{i}") for i in range(2 + done)]
    expect(sets == [1] * (2 + done), f"replicas {sets}")
    refused = desk.run(f"! $ATOLLCTL workers scale {3 + done}")
    expect(f"atoll-worker-{2 + done}" in refused, refused)
    if done == 1:
        desk.until(lambda: desk.is_ready("atoll-worker-2-0"), "the worker with a new identity joins", 120)


def upgrade(desk, commands, _done):
    desk.until(lambda: desk.version() >= 2, "the run makes progress", 120)
    for file in (desk.folder / "k8s").rglob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        if "image: localhost/atoll" in text:
            file.write_text(text.replace("image: localhost/atoll/coordinator:", "image: localhost/atoll/coordinator:new-")
                            .replace("image: localhost/atoll/worker-cpu:", "image: localhost/atoll/worker-cpu:new-"), encoding="utf-8")
    before = len(desk.history())
    desk.run(commands)
    done = desk.history()[before:]
    pods = ["atoll-coordinator-0", *(f"atoll-worker-{i}-0" for i in range(3))]
    wanted = [f"{what} {pod}" for pod in pods for what in ("ended", "started")]
    expect(done == wanted, f"replaced in this order: {done}")
    print("upgraded: the coordinator first, then one worker after the other", flush=True)


def restore(desk, commands, done):
    if done == 0:
        desk.run(commands)
        expect((desk.folder / "before-upgrade.tar.zst").stat().st_size > 1000, "the checkpoint's copy is empty")
        desk.before = desk.epoch()
        desk.run("kubectl delete namespace atoll")  # the empty cluster
        return
    desk.run(commands)
    if done == 1:
        return
    desk.until(lambda: desk.version() > 0, "the restored run is served")
    expect(desk.epoch() != desk.before, f"the restored run is still in epoch {desk.before}")
    print("restored into an empty cluster: a new epoch", flush=True)


def lose_a_node(desk, commands, _done):
    desk.until(lambda: all(desk.is_ready(f"atoll-worker-{i}-0") for i in range(3)), "the workers join the restored run", 120)
    desk.run(commands)
    desk.until(lambda: desk.is_ready("atoll-worker-1-0"), "the worker comes back", 120)


def fill_the_disk(desk, commands, _done):
    desk.run("$ATOLLCTL checkpoint create auto-v700")
    desk.run(commands)


def poison(desk, commands, _done):
    desk.run("$ATOLLCTL checkpoint create auto-v800")
    epoch = desk.epoch()
    desk.run(commands)
    expect(desk.epoch() != epoch, f"still in epoch {epoch}")
    workers = desk.run("$ATOLLCTL workers list --all")
    expect(re.search(r"(?i)atoll-worker-2\b.*banned", workers), workers)
    before = desk.version()
    desk.until(lambda: desk.version() > before, "the others train on", 120)


def end(desk, commands, _done):
    desk.run(commands)
    expect((desk.folder / "model.safetensors").stat().st_size > 1000, "export wrote no model where the page says")
    left = claims(desk)
    expect({"data-atoll-coordinator-0", "state-atoll-worker-0-0"} <= left, f"deleting the run left {left}")


STEPS = {"2. Install": install, "4. Scale": scale, "5. Upgrade": upgrade, "6. Back up, restore": restore,
         "7. A worker's node is lost": lose_a_node, "9. The disk fills": fill_the_disk, "10. A poisoned run": poison, "11. The end": end}


def operate(desk, text):
    """docs/guides/kubernetes.md, from the first section to the last."""
    seen, begun = {}, time.monotonic()
    identities = len(re.findall(r"--worker atoll-worker-\d", text))
    expect(f"`run.workers: {identities}`" in text, f"the page makes {identities} identities, and names another number of workers")
    for heading, commands in page.blocks(text):
        done = seen.setdefault(heading, 0)
        if heading not in STEPS:
            desk.run(commands)
        else:
            STEPS[heading](desk, commands, done)
        seen[heading] += 1
        print(f"{time.monotonic() - begun:4.0f} s  {heading} ({done + 1})", flush=True)
    expect(set(STEPS) <= set(seen), f"without commands: {set(STEPS) - set(seen)}")


def with_helm(desk, text):
    """The chart installed, scaled, upgraded, removed and installed again; its volumes stay."""
    helm, settings = desk.tools / "helm", "--set registry=localhost --set-file run=run.yaml"
    install_it = f"{helm} install atoll k8s/chart --namespace atoll {settings}"
    notes = desk.run(f"kubectl apply -f k8s/namespace.yaml\n{install_it}")
    expect("sample text" in notes, notes)
    desk.until(lambda: replicas(desk) == 2, "the coordinator asks for run.workers")
    desk.until(lambda: desk.is_ready("atoll-worker-1"), "both workers join", 120)
    desk.run("kubectl -n atoll exec atoll-coordinator-0 -- atollctl workers scale 3")
    before = len(desk.history())
    desk.run(f"{helm} upgrade atoll k8s/chart --namespace atoll {settings} --set tag=9.9,worker.tag=0.2.0")
    desk.run("kubectl -n atoll rollout status statefulset/atoll-coordinator --timeout=60s")
    expect(replicas(desk) == 3, f"an upgrade after `workers scale 3` left {replicas(desk)} replicas")
    expect(not [h for h in desk.history()[before:] if h.startswith("ended atoll-worker")], f"workers restarted with the coordinator: {desk.history()[before:]}")
    own = f"{settings} --set worker.data.sampleText=false,worker.data.accessMode=ReadWriteOnce"
    desk.run(f"{helm} upgrade atoll k8s/chart --namespace atoll {own}")
    kept = claims(desk)
    expect({"atoll-data", "data-atoll-coordinator-0", "state-atoll-worker-2"} <= kept, kept)
    desk.run(f"{helm} uninstall atoll --namespace atoll")
    expect(claims(desk) == kept, f"helm uninstall took {kept - claims(desk)} along")
    desk.run(f"{helm} install atoll k8s/chart --namespace atoll {own}")
    desk.until(lambda: desk.is_ready("atoll-coordinator-0"), "the release is back")
    print("helm: installed, scaled, upgraded, removed with its volumes kept, and back", flush=True)
    beside_each_other(desk)
    desk.run("helm uninstall atoll --namespace atoll\nkubectl delete namespace atoll\nkubectl apply -f k8s/namespace.yaml")
    tokens, install_with_helm = own_run_commands(text)
    desk.run(tokens)
    desk.run(install_with_helm)
    desk.until(lambda: desk.is_ready("atoll-worker-1"), "workers train on the files of k8s/tools/tokens", 120)
    print("helm: installed on a claim that was there before", flush=True)


def beside_each_other(desk):
    """A second release in the namespace, as far as the API server is asked: no object is another's, and what chart 0.1.0 made is kept."""
    second = "helm install words k8s/chart --namespace atoll --dry-run=server --set registry=localhost,worker.data.sampleText=false"
    expect("claimName: words-atoll-data" in desk.run(second), "a second release uses another's claim")
    desk.run("kubectl -n atoll annotate persistentvolumeclaim atoll-data meta.helm.sh/release-name=words --overwrite")
    expect("claimName: atoll-data" in desk.run(second), "an upgrade from 0.1.0 leaves the claim with the token files")
    desk.run("kubectl -n atoll annotate persistentvolumeclaim atoll-data meta.helm.sh/release-name=atoll --overwrite")


def own_run_commands(text):
    """The two blocks of "A run of your own": the token files, and Helm's way to start the run."""
    tokens, install_with_helm = (commands for _, commands in page.blocks(page.section(text, "A run of your own")))
    expect(install_with_helm.startswith("helm install"), install_with_helm)
    return tokens, install_with_helm


def own_run(desk, text):
    """k8s/README.md, the other blocks: files that a pod without fsGroup could not write, and identities."""
    desk.run("kubectl apply -f k8s/namespace.yaml")
    desk.run(own_run_commands(text)[0])
    for _, commands in page.blocks(page.section(text, "TLS")):
        desk.run(commands)
    desk.until(lambda: desk.is_ready("atoll-worker-1-0"), "the workers join", 120)
    island(desk, text)


def island(desk, text):
    """k8s/README.md, "Islands in other clusters": workers of a second cluster join with certificates that the first one's CA signed."""
    store = desk.add_cluster("island-a")
    expose, sign, apply, one_more = (commands for _, commands in page.blocks(page.section(text, "Islands in other clusters")))
    for commands in (expose, sign, apply, own_run_commands(text)[0].replace("kubectl ", "kubectl --context island-a ")):
        desk.run(commands)
    desk.until(lambda: all(desk.is_ready(f"island-a-atoll-worker-{i}-0", store) for i in range(2)), "the island's workers join", 120)
    expect(not (desk.folder / "k8s/overlays/island/certs/ca.key").exists(), "the island has the CA's key")
    desk.run(one_more)
    desk.until(lambda: desk.is_ready("island-a-atoll-worker-2-0", store), "the island's third worker joins", 120)
    print("an island's workers joined from another cluster", flush=True)


PARTS = {"kubernetes": operate, "trying out": trying_out, "helm": with_helm, "own run": own_run}


def nothing_is_left():
    """A test that is killed takes its pods and its folder along: guard.py."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-runbooks-"))
    killed = subprocess.Popen([sys.executable, "-B", "-c", "import guard, pathlib, subprocess, sys, time\nguard.keep(pathlib.Path(sys.argv[1]))\n"
                               "subprocess.Popen(['sleep', '600'], start_new_session=True)\nprint('started', flush=True)\ntime.sleep(600)",
                               folder], cwd=HERE / "runbooks", stdout=subprocess.PIPE, text=True)
    expect(killed.stdout.readline() == "started\n" and len(guard.processes(folder)) == 1, "its pod runs")
    killed.kill()
    killed.communicate()
    deadline = time.monotonic() + 30
    while guard.processes(folder) or folder.exists():
        expect(time.monotonic() < deadline, f"a killed test leaves {guard.processes(folder)} and {list(folder.glob('*'))}")
        time.sleep(0.05)


def follow(part):
    desk = Desk(SOURCE, sys.argv[1])
    page_of = SOURCE / ("docs/guides/kubernetes.md" if part == "kubernetes" else "k8s/README.md")
    begun = time.monotonic()
    try:
        if part != "kubernetes":  # this page says how to make them
            desk.run("atoll-data tokenize --out tokens docs/*/*.md")
        PARTS[part](desk, page_of.read_text(encoding="utf-8"))
    except BaseException:
        desk.keep_logs()
        raise
    finally:
        desk.close()
    print(f"{part}: {time.monotonic() - begun:.0f} s", flush=True)


def run_part(part):
    # The kernel ends the part when this process is killed.
    return subprocess.run(["setpriv", "--pdeathsig", "KILL", sys.executable, "-B", __file__, sys.argv[1], part],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def side_by_side():
    """Each part has a cluster of its own, and mostly waits; the longest begins, and the others follow each other beside it."""
    nothing_is_left()
    failed = set()
    with concurrent.futures.ThreadPoolExecutor(2) as lanes:
        for part, done in zip(PARTS, lanes.map(run_part, PARTS)):
            print(f"--- {part}\n{done.stdout}", flush=True)
            if done.returncode == 77:
                sys.exit(77)
            if done.returncode != 0:
                failed.add(part)
    expect(not failed, f"failed: {sorted(failed)}")
    print("the runbooks do what they say")


def main():
    if not (pathlib.Path(sys.argv[1]) / "atoll-worker").exists():
        print("skipped: this build has no atoll-worker")
        sys.exit(77)
    if len(sys.argv) > 2:
        follow(sys.argv[2])
    else:
        side_by_side()


if __name__ == "__main__":
    main()
