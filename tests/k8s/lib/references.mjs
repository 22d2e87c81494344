// Whether the objects of a rendering fit together.
import {nameOf} from './canonical.mjs';
import {Cluster} from './cluster.mjs';
import {accessRules} from './rules/access.mjs';
import {networkRules} from './rules/network.mjs';
import {podRules} from './rules/pods.mjs';

function names(cluster, complain) {
  const seen = new Set();
  for (const object of cluster.objects) {
    const name = nameOf(object);
    if (seen.has(name)) complain(`${name} is there twice`);
    seen.add(name);
    const labels = object.metadata.labels ?? {};
    for (const label of ['name', 'part-of', ...(object.kind === 'Namespace' ? [] : ['instance'])]) {
      if (!labels[`app.kubernetes.io/${label}`]) complain(`${name}: no label app.kubernetes.io/${label}`);
    }
  }
}

/** A list of complaints. `calls`: what the launcher asks the API server for (launcherCalls). */
export function referenceErrors(objects, calls) {
  const errors = [];
  const complain = text => errors.push(text);
  const cluster = new Cluster(objects);
  for (const rules of [names, podRules, networkRules]) rules(cluster, complain);
  accessRules(cluster, complain, calls);
  return errors;
}
