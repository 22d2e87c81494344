// Renderings with the real programs, as lists of objects.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {helm, kubectl, source, YAML} from './tools.mjs';

// What scripts/dev-certs.sh would have written; the objects are looked at, not used.
const workers = ['atoll-worker-0', 'atoll-worker-1', 'island-a-atoll-worker-0', 'island-a-atoll-worker-1'];
const certificates = ['ca.pem', ...['coordinator', ...workers.map(name => `worker-${name}`)].flatMap(n => [`${n}.pem`, `${n}.key`])];

/** A copy of k8s/ in which the overlays find their certificates. */
export function copyOfManifests() {
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), 'atoll-k8s-'));
  process.on('exit', () => fs.rmSync(copy, {recursive: true, force: true}));
  fs.cpSync(path.join(source, 'k8s'), copy, {recursive: true});
  const folders = ['certs', ...fs.readdirSync(path.join(copy, 'overlays')).map(name => `overlays/${name}/certs`)];
  for (const folder of folders) {
    fs.rmSync(path.join(copy, folder), {recursive: true, force: true});
    fs.mkdirSync(path.join(copy, folder));
    for (const name of certificates) fs.writeFileSync(path.join(copy, folder, name), `not a certificate: ${name}\n`);
  }
  return copy;
}

/** The objects of a stream of YAML documents; an error names the document. */
export function parse(text) {
  return YAML.parseAllDocuments(text).map((document, i) => {
    if (document.errors.length) throw new Error(`document ${i}: ${document.errors[0].message}`);
    return document.toJS();
  }).filter(object => object !== null);
}

const renderings = new Map();
/** Fresh objects each time; a folder is rendered once. */
export function kustomize(folder) {
  if (!renderings.has(folder)) renderings.set(folder, kubectl('kustomize', folder));
  return parse(renderings.get(folder));
}
export const template = (chart, ...args) => parse(helm('template', 'atoll', chart, ...args));
/** What scripts/dev-certs.sh would have written, as values of a chart that shall make the secrets of these workers. */
export function certificateValues(folder, workers, sides = ['coordinator']) {
  const pair = (value, file) => ['cert', 'key'].flatMap(what =>
      ['--set-file', `tls.${value}.${what}=${folder}/${file}.${what === 'cert' ? 'pem' : 'key'}`]);
  return ['--set-file', `tls.ca=${folder}/ca.pem`, ...sides.flatMap(side => pair(side, side)),
          ...workers.flatMap(name => pair(`workers.${name}`, `worker-${name}`))];
}
