// What k8s/ renders to with the real kubectl and helm: valid, fitting together, the same from both, as agreed on.
//   manifests_test.mjs            the test
//   manifests_test.mjs --update   writes tests/golden/k8s/ anew; look at the difference before you commit it
import fs from 'node:fs';
import path from 'node:path';
import {canonical, differences} from './lib/canonical.mjs';
import {mutations} from './lib/mutations.mjs';
import {referenceErrors} from './lib/references.mjs';
import {copyOfManifests, kustomize, template} from './lib/render.mjs';
import {launcherCalls} from './lib/rules/access.mjs';
import {strictErrors} from './lib/strict.mjs';
import {helm, source, YAML} from './lib/tools.mjs';

const golden = path.join(source, 'tests/golden/k8s');
const k8s = copyOfManifests();
const calls = launcherCalls(source);
const chart = path.join(k8s, 'chart');
const overlays = fs.readdirSync(path.join(k8s, 'overlays')).sort();
const renderings = [['base', 'base'], ...overlays.map(name => [name, `overlays/${name}`])];
/** The files of each side, for a chart that shall make the secrets. */
function certificateValues(name) {
  const workers = [0, 1].map(i => `worker-${name === 'island' ? 'island-a-' : ''}atoll-worker-${i}`);
  const files = {coordinatorFiles: ['coordinator'], workerFiles: workers};
  return Object.entries(files).flatMap(([side, names]) => ['ca.pem', ...names.flatMap(n => [`${n}.pem`, `${n}.key`])]
      .flatMap(file => ['--set-file', `tls.${side}.${file.replace('.', '\\.')}=${k8s}/certs/${file}`]));
}

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
const example = name => template(chart, '-f', path.join(chart, 'examples', `${name}.yaml`), ...certificateValues(name));

async function renderingsAreValidAndAgreedOn() {
  for (const [name, folder] of renderings) {
    const objects = kustomize(path.join(k8s, folder));
    expect(`kustomize ${name}`, await problems(objects));
    const fromChart = example(name);
    expect(`helm ${name}`, await problems(fromChart));
    const [a, b] = [canonical(withoutNamespace(objects)), canonical(withoutNamespace(fromChart))];
    expect(`kustomize and helm render ${name} alike`, differences(Object.fromEntries(a), Object.fromEntries(b)));
    const text = [...canonical(objects).values()].map(o => YAML.stringify(o, {lineWidth: 0})).join('---\n');
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

async function componentsGoTogether() {
  const all = path.join(k8s, 'overlays/all-of-them');
  fs.cpSync(path.join(k8s, 'overlays/tls'), all, {recursive: true});
  fs.mkdirSync(path.join(all, 'tokens'));
  fs.writeFileSync(path.join(all, 'tokens/atoll-worker-0'), 'no token');
  const text = fs.readFileSync(path.join(all, 'kustomization.yaml'), 'utf8');
  const more = ['gpu', 'spot', 'tokens', 'monitoring', 'expose'].map(name => `  - ../../components/${name}\n`).join('');
  fs.writeFileSync(path.join(all, 'kustomization.yaml'), text.replace('components:\n', `components:\n${more}`) +
      '  - name: atoll-worker-tokens\n    files: [tokens/atoll-worker-0]\n');
  const objects = kustomize(all);
  expect('all components at once', await problems(objects));
  const args = ['gpu', 'spot', 'monitoring', 'expose'].flatMap(name => ['-f', path.join(chart, 'examples', `${name}.yaml`)]);
  const fromChart = template(chart, ...args, '--set', 'tokens.enabled=true', ...certificateValues('tls'));
  const secret = objects.find(o => o.metadata.name === 'atoll-worker-tokens');
  const rest = o => o.filter(x => x !== secret);
  const sorted = o => Object.fromEntries(canonical(o));
  // The order of flags and tolerations is that of the components.
  const bag = o => JSON.parse(JSON.stringify(sorted(o)), (key, value) => (['args', 'tolerations'].includes(key)
      ? [...value].sort((x, y) => (JSON.stringify(x) < JSON.stringify(y) ? -1 : 1)) : value));
  expect('kustomize and helm render all of them alike', differences(bag(rest(objects)), bag(fromChart)));
  fs.rmSync(all, {recursive: true});
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
  const on = ['--set', 'monitoring.enabled=true'];
  await expectRules('the overlay has the rules', kustomize(path.join(k8s, 'overlays/monitoring')));
  await expectRules('the chart has the rules', template(chart, ...on));
  const more = template(chart, ...on, '--set', 'monitoring.rules.runbooks=https://git.example/atoll/,monitoring.labels.release=prom');
  await expectRules('the chart says where the runbooks are', more, 'https://git.example/atoll/');
  const operators = more.filter(o => o.apiVersion.startsWith('monitoring.coreos.com'));
  expect('the operator selects all three', operators.length === 3 && operators.every(o => o.metadata.labels.release === 'prom') ? [] : [JSON.stringify(operators.map(o => o.metadata))]);
  const without = [[...on, '--set', 'monitoring.rules.enabled=false'], [], [...on, '-f', path.join(chart, 'examples/island.yaml'), ...certificateValues('island')]];
  expect('no rules where none are wanted', without.filter(args => template(chart, ...args).some(o => o.kind === 'PrometheusRule')).map(String));
}

async function aReleaseByAnotherName() {
  const objects = template(chart).map(o => JSON.stringify(o));
  const other = helm('template', 'words', chart, '--namespace', 'ml').split(/^---$/m).filter(t => t.trim()).map(t => YAML.parse(t)).filter(Boolean);
  expect('a release by another name fits together', await problems(other));
  const shared = other.filter(o => o.kind !== 'PersistentVolumeClaim' && objects.some(text => JSON.parse(text).kind === o.kind &&
      JSON.parse(text).metadata.name === o.metadata.name));
  expect('two releases in one namespace share nothing but the data', shared.map(o => `${o.kind}/${o.metadata.name}`));
}

function badValuesAreRefused() {
  helm('lint', '--strict', chart);
  const bad = ['worker.replicas=-1', 'worker.replica=3', 'worker.kind=Deployment', 'worker.image=atoll/worker-cpu', 'worker.gpus=8',
               'coordinator.storage=plenty', 'coordinator.leaveSeconds=5', 'tls.enable=true', 'island.coordinator=example.org',
               'monitoring.interval=often', 'monitoring.rules.runbooks=docs', 'monitoring.rule.enabled=true', 'expose.enabled=true', 'island.enabled=true'];
  for (const setting of bad) {
    let refused = null;
    try {
      template(chart, '--set', setting);
    } catch (error) {
      refused = error.message;
    }
    const field = setting.split('=')[0].split('.').pop();
    if (refused === null) expect(`--set ${setting} is refused`, ['it is not']);
    else if (!refused.includes(field) && !refused.includes(setting.split('.')[0])) expect(`--set ${setting} is named`, [refused]);
  }
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

await renderingsAreValidAndAgreedOn();
await componentsGoTogether();
await rulesAreThoseOfTheFile();
await aReleaseByAnotherName();
badValuesAreRefused();
await breaksAreFound();
console.log(failures ? `${failures} complaints` : 'all is well');
process.exit(failures ? 1 : 0);
