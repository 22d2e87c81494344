// What the manifests tell the programs, held against the programs: every flag exists, the run's YAML is valid, and memory and
// disk are what `atollctl plan` says.
//   programs_test.mjs BIN_DIR
import fs from 'node:fs';
import path from 'node:path';
import {Cluster, containersOf} from './lib/cluster.mjs';
import {copyOfManifests, kustomize} from './lib/render.mjs';
import {run} from './lib/tools.mjs';

const bin = process.argv[2];
const k8s = copyOfManifests();
const MiB = 1 << 20;
const program = {coordinator: 'atoll-coordinator', worker: 'atoll-worker'};
let failures = 0;
const withoutTls = new Set();
function fail(text) {
  failures += 1;
  console.log(`FAILED ${text}`);
}

const units = {'': 1, Mi: MiB, Gi: 1 << 30};
const bytes = quantity => {
  const [, number, unit] = /^(\d+)(Mi|Gi|)$/.exec(quantity);
  return Number(number) * units[unit];
};
const roundedUp = (value, step) => Math.ceil(value / step) * step;

function flags() {
  const known = new Map(Object.entries(program).filter(([, name]) => fs.existsSync(path.join(bin, name)))
      .map(([side, name]) => [side, run(path.join(bin, name), ['--help'])]));
  if (!known.has('worker')) console.log('atoll-worker is not built here: its flags are not looked at');
  for (const overlay of ['base', ...fs.readdirSync(path.join(k8s, 'overlays')).map(name => `overlays/${name}`)]) {
    for (const workload of new Cluster(kustomize(path.join(k8s, overlay))).workloads) {
      const side = workload.metadata.labels['app.kubernetes.io/component'];
      const [container] = workload.spec.template.spec.containers;
      for (const arg of known.has(side) ? container.args : []) {
        const flag = arg.split('=')[0];
        if (flag.startsWith('--tls-') && !known.get(side).includes('--tls-cert')) {
          withoutTls.add(program[side]);
          continue;
        }
        if (!new RegExp(`(^|[\\s,])${flag}[\\s,]`, 'm').test(known.get(side))) fail(`${overlay}: ${program[side]} has no ${flag}`);
      }
    }
  }
}

function resources() {
  const config = path.join(k8s, 'base/coordinator/run.yaml');
  run(path.join(bin, 'atollctl'), ['config', 'validate', config]);
  const plan = JSON.parse(run(path.join(bin, 'atollctl'), ['--json', 'plan', config]));
  const cluster = new Cluster(kustomize(path.join(k8s, 'base')));
  const same = (what, found, wanted) => {
    if (found !== wanted) fail(`${what}: ${found / MiB} MiB, and the plan says ${wanted / MiB} MiB`);
  };
  const memory = (side, request, limit) => {
    const {requests, limits} = containersOf(cluster.workload(side).spec.template.spec).pop().resources;
    same(`${side}: requests.memory`, bytes(requests.memory), request);
    same(`${side}: limits.memory`, bytes(limits.memory), limit);
  };
  memory('coordinator', roundedUp(plan.coordinator_memory.peak, 256 * MiB), plan.coordinator_bounds.limit);
  // The plan includes the program and LibTorch; it is an estimate, hence twice as limit.
  const worker = roundedUp(plan.worker_memory.total, 256 * MiB);
  memory('worker', worker, 2 * worker);
  const volume = side => bytes(cluster.workload(side).spec.volumeClaimTemplates[0].spec.resources.requests.storage);
  same('coordinator: storage', volume('coordinator'), Math.max(roundedUp(2 * plan.disk.peak, 256 * MiB), 1024 * MiB));
  const state = plan.worker_memory.parameters * 2 + plan.worker_memory.optimizer;
  same('worker: storage', volume('worker'), Math.max(roundedUp(2 * state, 256 * MiB), 1024 * MiB));
}

flags();
for (const name of withoutTls) console.log(`${name} is built without TLS: the flags of components/tls are not looked at`);
resources();
console.log(failures ? `${failures} complaints` : 'the programs are told what they know');
process.exit(failures ? 1 : 0);
