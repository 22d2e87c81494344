// What k8s/ renders to with the real kubectl and helm: valid, fitting together, the same from both, as agreed on.
//   manifests_test.mjs            the test
//   manifests_test.mjs --update   writes tests/golden/k8s/ anew; look at the difference before you commit it
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {canonical, differences} from './lib/canonical.mjs';
import {Cluster, containersOf} from './lib/cluster.mjs';
import {mutations} from './lib/mutations.mjs';
import {referenceErrors} from './lib/references.mjs';
import {certificateValues, copyOfManifests, kustomize, parse, template} from './lib/render.mjs';
import {launcherCalls} from './lib/rules/access.mjs';
import {strictErrors} from './lib/strict.mjs';
import {helm, kubectl, run, source, tools, YAML} from './lib/tools.mjs';

const golden = path.join(source, 'tests/golden/k8s');
const k8s = copyOfManifests();
const calls = launcherCalls(source);
const chart = path.join(k8s, 'chart');
const overlays = fs.readdirSync(path.join(k8s, 'overlays')).sort();
const renderings = [['base', 'base'], ...overlays.map(name => [name, `overlays/${name}`])];
const workers = name => [0, 1].map(i => `${name === 'island' ? 'island-a-' : ''}atoll-worker-${i}`);
const certificates = name => certificateValues(path.join(k8s, 'certs'), workers(name));
const local = ['--set', 'registry=localhost'];

let failures = 0;
function expect(title, complaints) {
  if (!complaints.length) return;
  failures += complaints.length;
  console.log(`FAILED ${title}\n  ${complaints.join('\n  ')}`);
}
async function problems(objects) {
  const strict = (await Promise.all(objects.map(strictErrors))).flat();
  return [...strict, ...referenceErrors(objects, calls)];
}
/** What helm leaves to its own --namespace. */
function withoutNamespace(objects) {
  return JSON.parse(JSON.stringify(objects.filter(o => o.kind !== 'Namespace')), (key, value) => (key === 'namespace' ? undefined : value));
}
const values = (...names) => names.flatMap(name => ['-f', path.join(chart, 'examples', `${name}.yaml`)]);
const example = name => template(chart, ...values('base', name), ...certificates(name));

/** Dashboards by their digest: they are looked at elsewhere. */
const shortened = object => (object.kind !== 'ConfigMap' ? object : {...object, data: Object.fromEntries(Object.entries(object.data).map(
    ([key, text]) => [key, key.endsWith('.json') ? `sha256:${crypto.createHash('sha256').update(text).digest('hex')}` : text]))});

async function renderingsAreValidAndAgreedOn() {
  for (const [name, folder] of renderings) {
    const objects = kustomize(path.join(k8s, folder));
    expect(`kustomize ${name}`, await problems(objects));
    const fromChart = example(name);
    expect(`helm ${name}`, await problems(fromChart));
    const [a, b] = [canonical(withoutNamespace(objects)), canonical(withoutNamespace(fromChart))];
    expect(`kustomize and helm render ${name} alike`, differences(Object.fromEntries(a), Object.fromEntries(b)));
    const text = [...canonical(objects).values()].map(o => YAML.stringify(shortened(o), {lineWidth: 0})).join('---\n');
    const file = path.join(golden, `${name}.yaml`);
    if (process.argv.includes('--update')) fs.writeFileSync(file, text);
    if (!fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text) {
      const before = fs.existsSync(file) ? canonical(YAML.parseAllDocuments(fs.readFileSync(file, 'utf8')).map(d => d.toJS())) : new Map();
      expect(`${name} is tests/golden/k8s/${name}.yaml (--update writes it anew)`,
             [...differences(Object.fromEntries(before), Object.fromEntries(canonical(objects))), 'the files differ']);
    }
    console.log(`${name}: ${objects.length} objects`);
  }
}

/** A copy of overlays/tls in which each worker has a token too, as k8s/README.md says. */
function overlayWithTokens(folder) {
  fs.cpSync(path.join(k8s, 'overlays/tls'), folder, {recursive: true});
  for (const i of [0, 1]) {
    const file = path.join(folder, `worker-${i}/kustomization.yaml`);
    const text = fs.readFileSync(file, 'utf8');
    const target = text.slice(text.indexOf('      - select:', text.indexOf('ATOLL_NAME')));
    fs.writeFileSync(file, text.replace('components:\n', 'components:\n  - ../../../components/tokens\n') +
        target.replaceAll('tls', 'token'));
    fs.writeFileSync(path.join(folder, `token-${i}`), 'no token');
  }
}

/** For a comparison: the order of flags and tolerations is that of the components. */
const bag = objects => JSON.parse(JSON.stringify(Object.fromEntries(canonical(objects))), (key, value) => (['args', 'tolerations'].includes(key)
    ? [...value].sort((x, y) => (JSON.stringify(x) < JSON.stringify(y) ? -1 : 1)) : value));

async function componentsGoTogether() {
  const all = path.join(k8s, 'overlays/all-of-them');
  overlayWithTokens(all);
  const text = fs.readFileSync(path.join(all, 'kustomization.yaml'), 'utf8');
  const more = ['gpu', 'spot', 'monitoring', 'expose'].map(name => `  - ../../components/${name}\n`).join('');
  fs.writeFileSync(path.join(all, 'kustomization.yaml'), text.replace('components:\n', `components:\n${more}`) +
      [0, 1].map(i => `  - {name: atoll-worker-${i}-token, files: [token=token-${i}]}\n`).join(''));
  const objects = kustomize(all);
  expect('all components at once', await problems(objects));
  const fromChart = template(chart, ...values('base', 'tls', 'gpu', 'spot', 'monitoring', 'expose'), '--set', 'tokens.enabled=true',
                             ...certificates('tls'));
  const rest = o => o.filter(x => !x.metadata.name.endsWith('-token'));
  expect('kustomize and helm render all of them alike', differences(bag(rest(objects)), bag(fromChart)));
  fs.rmSync(all, {recursive: true});
}

/** A kustomization of the base, or of an overlay, with these components; null and what kubectl says when it cannot be built. */
function withComponents(components, resource = 'base') {
  const folder = path.join(k8s, 'overlays', `of-${[resource.replace('/', '-'), ...components].join('-')}`);
  fs.mkdirSync(folder);
  fs.writeFileSync(path.join(folder, 'kustomization.yaml'), YAML.stringify({apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization',
    resources: [`../../${resource}`], components: components.map(name => `../../components/${name}`)}));
  try {
    return [kustomize(folder), ''];
  } catch (error) {
    return [null, `${error.message}${error.stderr ?? ''}`];
  } finally {
    fs.rmSync(folder, {recursive: true});
  }
}

/** The Job of components/job gets what the others give the set, when it is there before them; else nothing is built. */
async function componentsGoWithTheJob() {
  const others = ['gpu', 'spot', 'monitoring'];
  const [objects, error] = withComponents(['job', ...others, 'sample-text']);
  if (!objects) return expect('the job goes with the others', [error]);
  expect('the job goes with the others', await problems(objects));
  const fromChart = template(chart, ...values('base', 'job', ...others), '--set', 'worker.data.sampleText=true');
  expect('kustomize and helm render the job with the others alike', differences(bag(objects), bag(fromChart)));
  const refused = [...['gpu', 'spot', 'sample-text'].map(name => withComponents([name, 'job'])), withComponents(['job'], 'overlays/tls')];
  expect('the job after the others, or with tls, is refused', refused.flatMap(([built, text], i) =>
      (built ? [`${i}: it is built`] : /components\/job'?: (testing value|.*multiple matches)/.test(text) ? [] : [text])));
}

/** Kubernetes alerts as any other Prometheus does: the object is monitoring/prometheus/atoll.rules.yaml, read again. */
async function rulesAreThoseOfTheFile() {
  const {groups} = YAML.parse(fs.readFileSync(path.join(source, 'monitoring/prometheus/atoll.rules.yaml'), 'utf8'));
  const expectRules = async (title, objects, runbooks = '') => {
    const rules = objects.filter(o => o.kind === 'PrometheusRule');
    if (rules.length !== 1) return expect(title, [`${rules.length} PrometheusRules`]);
    const links = JSON.stringify(groups).replaceAll('"runbook_url":"', `"runbook_url":"${runbooks}`);
    expect(title, [...await problems(objects), ...differences(JSON.parse(links), rules[0].spec.groups)]);
  };
  const on = [...local, '--set', 'monitoring.enabled=true'];
  await expectRules('the overlay has the rules', kustomize(path.join(k8s, 'overlays/monitoring')));
  await expectRules('the chart has the rules', template(chart, ...on));
  const more = template(chart, ...on, '--set', 'monitoring.rules.runbooks=https://git.example/atoll/,monitoring.labels.release=prom');
  await expectRules('the chart says where the runbooks are', more, 'https://git.example/atoll/');
  const operators = more.filter(o => o.apiVersion.startsWith('monitoring.coreos.com'));
  expect('the operator selects all three', operators.length === 3 && operators.every(o => o.metadata.labels.release === 'prom') ? [] : [JSON.stringify(operators.map(o => o.metadata))]);
  const without = [[...on, '--set', 'monitoring.rules.enabled=false'], local, [...on, ...values('island'), ...certificates('island')]];
  expect('no rules where none are wanted', without.filter(args => template(chart, ...args).some(o => o.kind === 'PrometheusRule')).map(String));
}

/** Grafana's sidecar finds the dashboards by their label, and they ask for nothing: no import, no choice of a data source. */
function dashboardsLoadByThemselves() {
  const folder = path.join(source, 'monitoring/grafana/dashboards');
  const wanted = Object.fromEntries(fs.readdirSync(folder).map(file => [file, JSON.parse(fs.readFileSync(path.join(folder, file), 'utf8'))]));
  const on = [...local, '--set', 'monitoring.enabled=true'];
  for (const [title, objects] of [['overlay', kustomize(path.join(k8s, 'overlays/monitoring'))], ['chart', template(chart, ...on)]]) {
    const map = objects.find(o => o.kind === 'ConfigMap' && o.metadata.labels.grafana_dashboard === '1');
    if (!map) {
      expect(`the ${title} has dashboards`, ['no ConfigMap with the label grafana_dashboard']);
      continue;
    }
    const boards = Object.fromEntries(Object.entries(map.data).map(([file, text]) => [file, JSON.parse(text)]));
    expect(`the ${title} has the dashboards (scripts/renew_monitoring.sh renews them)`, differences(boards, wanted));
    // 262144 bytes of annotations: kubectl apply keeps the object in one.
    expect(`kubectl can apply the dashboards of the ${title}`, JSON.stringify(map).length < 200000 ? [] : ['too long']);
    for (const [file, board] of Object.entries(boards)) {
      const sources = new Set([...JSON.stringify(board).matchAll(/"uid":"([^"]*)"[^{}]*"type":"prometheus"|"type":"prometheus","uid":"([^"]*)"/g)].map(m => m[1] ?? m[2]));
      const choice = board.templating.list.find(v => v.type === 'datasource');
      if (board.__inputs || !board.uid || board.id) expect(`${file} loads without an import`, ['__inputs, no uid, or an id']);
      if (choice?.query !== 'prometheus' || [...sources].join() !== '${datasource}') expect(`${file} finds its data source`, [[...sources].join()]);
    }
  }
  const none = template(chart, ...on, '--set', 'monitoring.dashboards.enabled=false').filter(o => o.metadata.name.endsWith('-dashboards'));
  expect('no dashboards where none are wanted', none.map(o => o.metadata.name));
}

async function aReleaseByAnotherName() {
  const own = [...local, '--set', 'worker.data.sampleText=false'];
  const objects = template(chart, ...own).map(o => JSON.stringify(o));
  const words = (...args) => parse(helm('template', 'words', chart, ...own, '--namespace', 'ml', ...args));
  const other = words();
  expect('a release by another name fits together', await problems(other));
  const shared = other.filter(o => objects.some(text => JSON.parse(text).kind === o.kind &&
      JSON.parse(text).metadata.name === o.metadata.name));
  expect('two releases in one namespace share nothing', shared.map(o => `${o.kind}/${o.metadata.name}`));
  // The claim that the release creates, and the one that its workers mount.
  const claims = of => [of.filter(o => o.kind === 'PersistentVolumeClaim'), of.flatMap(o => o.spec?.template?.spec.volumes ?? []).map(v => v.persistentVolumeClaim).filter(Boolean)]
      .map(list => list.map(c => c.claimName ?? c.metadata.name).join());
  expect('a release has a data claim of its own', differences(claims(other), ['words-atoll-data', 'words-atoll-data']));
  expect('a release uses the claim of tools/tokens', differences(claims(words('--set', 'worker.data.create=false')), ['', 'atoll-data']));
  expect('a release names its claim as asked for', differences(claims(words('--set', 'worker.data.claim=text')), ['text', 'text']));
}

/** Nothing is given but the registry: objects for a cluster with a default storage class, and what to do next. */
async function theDefaultsInstall() {
  const objects = template(chart, ...local);
  expect('the defaults fit together', await problems(objects));
  const cluster = new Cluster(objects);
  const claims = [...cluster.ofKind('PersistentVolumeClaim'), ...cluster.workloads.flatMap(w => w.spec.volumeClaimTemplates ?? [])];
  expect('the default storage class has it', claims.filter(c => c.spec.accessModes.join() !== 'ReadWriteOnce' || c.spec.storageClassName)
      .map(c => c.metadata.name));
  const notes = helm('install', 'words', chart, '--dry-run=client', '--namespace', 'ml', ...local);
  const wanted = ['--namespace ml exec words-atoll-coordinator-0 -- atollctl status', 'sample text', '--set-file run=run.yaml'];
  expect('the notes say what to do next', wanted.filter(text => !notes.includes(text)));
  const notesOf = (...args) => helm('install', 'words', chart, '--dry-run=client', '--namespace', 'ml', ...local, ...args);
  expect('the notes of a job say what an eviction does', notesOf('--set', 'worker.kind=Job').includes('never restarts it') &&
      !notes.includes('never restarts it') ? [] : ['they do not']);
  const images = (...args) => new Set(template(chart, ...args).flatMap(o => o.spec?.template ? containersOf(o.spec.template.spec) : []).map(c => c.image));
  const other = images('--set', 'registry=ghcr.io/acme/,tag=9.9,worker.tag=9.8,worker.image=example.org:5000/own/worker@sha256:' + 'a'.repeat(64));
  expect('images are named as asked for', differences([...other].sort(),
      ['example.org:5000/own/worker@sha256:' + 'a'.repeat(64), 'ghcr.io/acme/atoll/coordinator:9.8', 'ghcr.io/acme/atoll/coordinator:9.9']));
}

/** The pods that people copy files through: as locked down as the programs', and what they write is the programs'. */
async function toolsFitThePrograms() {
  for (const name of fs.readdirSync(path.join(k8s, 'tools'))) {
    const objects = kustomize(path.join(k8s, 'tools', name));
    expect(`tools/${name} is valid`, (await Promise.all(objects.map(strictErrors))).flat());
    const [claim, tool] = ['PersistentVolumeClaim', 'Pod'].map(kind => objects.find(o => o.kind === kind));
    const program = kustomize(path.join(k8s, 'base')).find(o => o.kind === 'StatefulSet').spec.template.spec;
    const file = path.join(k8s, 'tools', name, 'kustomization.yaml'), text = fs.readFileSync(file, 'utf8');
    fs.writeFileSync(file, text.replace(/(newName: )localhost(\/\S+\n *newTag: ).*/, '$1registry.example.org$2"9.9"'));
    const [edited] = parse(kubectl('kustomize', path.dirname(file))).filter(o => o.kind === 'Pod').map(o => o.spec.containers[0].image);
    fs.writeFileSync(file, text);
    expect(`tools/${name} takes its image from a registry`, edited === 'registry.example.org/atoll/coordinator:9.9' ? [] : [edited]);
    const own = ({securityContext, containers: [{image, securityContext: container}]}) => ({securityContext, image, container});
    expect(`tools/${name} runs as the coordinator does`, differences(own(tool.spec), own({...program, containers: program.containers})));
    expect(`tools/${name} mounts its claim`, tool.spec.volumes[0].persistentVolumeClaim.claimName === claim.metadata.name ? [] : [claim.metadata.name]);
  }
  const [set] = kustomize(path.join(k8s, 'base')).filter(o => o.metadata.name === 'atoll-coordinator' && o.kind === 'StatefulSet');
  const [template] = set.spec.volumeClaimTemplates;
  const claim = kustomize(path.join(k8s, 'tools/restore')).find(o => o.kind === 'PersistentVolumeClaim');
  expect('the restored claim is the one that the set looks for', differences(
      {name: claim.metadata.name, labels: claim.metadata.labels, spec: claim.spec},
      {name: `${template.metadata.name}-${set.metadata.name}-0`, labels: template.metadata.labels, spec: template.spec}));
}

/** Settings of pods that clusters ask for. */
async function podsTakeWhatClustersAskFor() {
  const side = JSON.stringify({affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
    {matchExpressions: [{key: 'zone', operator: 'In', values: ['a']}]}]}}}, runtimeClassName: 'gvisor', priorityClassName: 'high',
    podAnnotations: {'example.org/team': 'ml'}, extraEnv: [{name: 'OMP_NUM_THREADS', value: '4'}]});
  const args = [...local, '--set', 'networkPolicy.enabled=false,imagePullSecrets[0].name=credentials,worker.spot=true',
                '--set-json', `coordinator=${side}`, '--set-json', `worker=${side}`];
  const objects = template(chart, ...args);
  const strict = (await Promise.all(objects.map(strictErrors))).flat();
  expect('what clusters ask for is valid', strict);
  expect('no policies where none are wanted', objects.filter(o => o.kind === 'NetworkPolicy').map(o => o.metadata.name));
  for (const {metadata, spec} of objects.filter(o => o.kind === 'StatefulSet')) {
    const {spec: pod, metadata: of} = spec.template;
    const found = {affinity: pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.length,
                   runtime: pod.runtimeClassName, priority: pod.priorityClassName, secrets: pod.imagePullSecrets?.[0].name,
                   team: of.annotations['example.org/team'], threads: pod.containers[0].env.find(e => e.name === 'OMP_NUM_THREADS')?.value};
    expect(`${metadata.name} has what was asked for`,
           differences(found, {affinity: 1, runtime: 'gvisor', priority: 'high', secrets: 'credentials', team: 'ml', threads: '4'}));
  }
  const spot = objects.find(o => o.kind === 'StatefulSet' && o.metadata.name === 'atoll-worker').spec.template.spec.affinity.nodeAffinity;
  expect('spot nodes are preferred besides', spot.preferredDuringSchedulingIgnoredDuringExecution?.length === 3 ? [] : [JSON.stringify(spot)]);
}

/** By cert-manager: the secrets that the pods mount, for the names that they prove. */
async function certificatesFitThePods() {
  const objects = template(chart, ...local, ...values('tls'), '--set', 'tls.create=false,tls.certManager.enabled=true,' +
      'tls.certManager.issuer.name=atoll-ca,tls.certManager.hosts={atoll.example.org,192.0.2.7},tls.certManager.admins[0]=ann,worker.replicas=3');
  const made = objects.filter(o => o.kind === 'Certificate');
  const secrets = made.map(o => ({kind: 'Secret', metadata: {name: o.spec.secretName, labels: o.metadata.labels},
                                  data: {'tls.crt': '', 'tls.key': '', 'ca.crt': ''}}));
  const errors = referenceErrors([...objects.filter(o => o.kind !== 'Certificate'), ...secrets], calls);
  expect('cert-manager makes what the pods mount', errors);
  const proven = Object.fromEntries(made.map(({spec}) =>
      [spec.secretName, [...(spec.uris ?? spec.dnsNames), ...(spec.ipAddresses ?? []), ...spec.usages].join(' ')]));
  const worker = i => [`atoll-worker-${i}-tls`, `spiffe://atoll/worker/atoll-worker-${i} digital signature client auth`];
  // The addresses are those of scripts/dev-certs.sh: atollctl calls 127.0.0.1 through a port-forward.
  expect('certificates prove their owners', differences(proven, {
    'atoll-coordinator-tls': 'localhost atoll-coordinator atoll-coordinator.default atoll-coordinator.default.svc atoll-admin ' +
        'atoll-admin.default atoll-admin.default.svc atoll.example.org 127.0.0.1 ::1 192.0.2.7 digital signature server auth',
    'atoll-admin-ann-tls': 'spiffe://atoll/admin/ann digital signature client auth',
    ...Object.fromEntries([worker(0), worker(1), worker(2)])}));
}

/** Where cert-manager makes the certificates, the notes fetch the operator's: their commands are run. */
function notesFetchTheOperatorsCertificate() {
  const notesOf = (...args) => helm('install', 'words', chart, '--dry-run=client', '--namespace', 'ml', ...local, '--set',
      'tls.enabled=true,tls.certManager.enabled=true,tls.certManager.issuer.name=atoll-ca', ...args);
  expect('without an operator the notes say how to name one', notesOf().includes('--set tls.certManager.admins=') ? [] : [notesOf()]);
  const notes = notesOf('--set', 'tls.certManager.admins={ann}');
  const commands = /^ *mkdir -p certs(?:.*\n)*? *done$/m.exec(notes)?.[0];
  if (!commands) return expect('the notes fetch the certificate', [notes]);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'atoll-notes-'));
  // kubectl prints a secret that it would create as it prints one of the cluster.
  fs.writeFileSync(path.join(folder, 'kubectl'), `#!/bin/bash
    [ "\${*:1:5}" = "--namespace ml get secret words-atoll-admin-ann-tls" ] || exit 1
    exec ${path.join(tools, 'bin/kubectl')} create secret generic x --dry-run=client \
      --from-literal=ca.crt=is-ca.crt --from-literal=tls.crt=is-tls.crt --from-literal=tls.key=is-tls.key "\${@:6}"\n`, {mode: 0o755});
  run('bash', ['-euc', commands], {cwd: folder, env: {...process.env, PATH: `${folder}:${process.env.PATH}`}});
  const named = [...notes.matchAll(/--tls-\w+ (\S+)/g)].map(m => m[1]);
  expect('the notes name the files that they made', named.length !== 3 ? [notes] : named.filter(file =>
      fs.readFileSync(path.join(folder, file), 'utf8') !== `is-${path.basename(file)}`));
  fs.rmSync(folder, {recursive: true});
}

/** The coordinator of a release takes as many ranks as the release's workers have. */
async function theRanksOfAReleaseJoin() {
  for (const ranks of [8, 9, 64]) expect(`${ranks} ranks fit together`, await problems(template(chart, ...local, '--set', `worker.ranks=${ranks}`)));
}

function badValuesAreRefused() {
  helm('lint', '--strict', chart, ...local);
  const bad = ['worker.replicas=-1', 'worker.replica=3', 'worker.kind=Deployment', 'worker.image=:tag', 'worker.gpus=8',
               'coordinator.storage=plenty', 'coordinator.leaveSeconds=5', 'tls.enable=true', 'island.coordinator=example.org',
               'monitoring.interval=often', 'monitoring.rules.runbooks=docs', 'monitoring.rule.enabled=true', 'expose.enabled=true', 'island.enabled=true',
               'registry=', 'registry=https://ghcr.io/acme', 'tokens.enabled=true', 'worker.data.accessMode=Often', 'imagePullSecrets=credentials'];
  for (const setting of bad) {
    let refused = null;
    try {
      template(chart, ...local, '--set', setting);
    } catch (error) {
      refused = error.message;
    }
    const field = setting.split('=')[0].split('.').pop();
    if (refused === null) expect(`--set ${setting} is refused`, ['it is not']);
    else if (!refused.includes(field) && !refused.includes(setting.split('.')[0])) expect(`--set ${setting} is named`, [refused]);
  }
}

/** scripts/setup.sh runs in a layer of its own, before the source is there: with what the Dockerfile copies for it. */
function buildStagesHaveTheirScripts() {
  for (const file of fs.readdirSync(path.join(source, 'k8s/images'))) {
    const text = fs.readFileSync(path.join(source, 'k8s/images', file), 'utf8');
    const [, copied] = /^COPY (scripts\/.*) scripts\/$/m.exec(text);
    const [, groups] = /scripts\/setup.sh --groups (\S+)/.exec(text);
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'atoll-setup-'));
    for (const script of copied.split(' ')) fs.cpSync(path.join(source, script), path.join(folder, script));
    try {
      const packages = run('bash', ['scripts/setup.sh', '--groups', groups, '--list'], {cwd: folder});
      if (!packages.includes('librocksdb-dev')) expect(`${file} installs what it compiles with`, [packages]);
    } catch (error) {
      expect(`${file} copies what scripts/setup.sh needs`, [error.message]);
    }
    fs.rmSync(folder, {recursive: true});
  }
}

/** Every image and chart is of the version that CMakeLists.txt has. */
function versionsAreOne() {
  const version = /project\(atoll VERSION ([0-9.]+)/.exec(fs.readFileSync(path.join(source, 'CMakeLists.txt'), 'utf8'))[1];
  const wrong = [];
  for (const file of fs.readdirSync(path.join(source, 'k8s'), {recursive: true}).filter(f => /\.(yaml|md|Dockerfile)$/.test(f))) {
    const text = fs.readFileSync(path.join(source, 'k8s', file), 'utf8');
    for (const [found, of] of text.matchAll(/atoll\/(?:coordinator|worker-\w+):([\w.]+)/g)) if (of !== version) wrong.push(`${file}: ${found}`);
    for (const [found, of] of text.matchAll(/^ *(?:version|appVersion|newTag): "?([\w.]+)"?$/gm)) if (of !== version) wrong.push(`${file}: ${found}`);
  }
  expect(`k8s/ names version ${version} only`, wrong);
}

/** Files of k8s/ that others name, in a comment or elsewhere. */
function namedFilesAreThere() {
  const missing = [];
  for (const file of fs.readdirSync(k8s, {recursive: true}).filter(f => /\.(yaml|tpl|txt)$/.test(f))) {
    const text = fs.readFileSync(path.join(k8s, file), 'utf8');
    for (const [, named] of text.matchAll(/(?<![\w./])(?:k8s\/)?((?:base|components|overlays|tools|chart)\/[\w./-]*\w)/g)) {
      if (!fs.existsSync(path.join(k8s, named))) missing.push(`${file}: ${named}`);
    }
  }
  expect('files that k8s/ names are there', missing);
}

/** The checks above find what they are for: each break of a good rendering is found, in its own words. */
async function breaksAreFound() {
  for (const {title, rendering, change, words} of mutations) {
    const objects = kustomize(path.join(k8s, rendering ?? 'base'));
    const get = (kind, name) => objects.find(o => o.kind === kind && o.metadata.name === name);
    change(get, objects);
    const found = await problems(objects);
    if (!found.some(text => text.includes(words))) expect(`found: ${title}`, [`nobody said "${words}": ${JSON.stringify(found)}`]);
  }
  console.log(`${mutations.length} breaks found`);
}

versionsAreOne();
namedFilesAreThere();
buildStagesHaveTheirScripts();
await theDefaultsInstall();
await podsTakeWhatClustersAskFor();
await toolsFitThePrograms();
await certificatesFitThePods();
notesFetchTheOperatorsCertificate();
await renderingsAreValidAndAgreedOn();
await componentsGoTogether();
await componentsGoWithTheJob();
await rulesAreThoseOfTheFile();
dashboardsLoadByThemselves();
await aReleaseByAnotherName();
await theRanksOfAReleaseJoin();
badValuesAreRefused();
await breaksAreFound();
console.log(failures ? `${failures} complaints` : 'all is well');
process.exit(failures ? 1 : 0);
