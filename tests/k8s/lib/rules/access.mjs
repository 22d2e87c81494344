// Accounts and rights: the coordinator's may do exactly what its launcher asks for, and nobody else anything.
import fs from 'node:fs';
import path from 'node:path';
import {environmentOf, expand, flagOf, matches} from '../cluster.mjs';

/** "group/resource verb" of every call in the launcher's source. */
export function launcherCalls(source) {
  const text = fs.readFileSync(path.join(source, 'server/launch/kubernetes_launcher.cc'), 'utf8');
  const calls = [...text.matchAll(/api_->Call\(\s*\{(.*?)\}\)/gs)].map(([, call]) => {
    const field = name => new RegExp(`\\.${name} = "([^"]*)"`).exec(call)?.[1];
    return `${field('api_group') ?? ''}/${field('resource')} ${field('verb')}`;
  });
  return new Set(calls);
}

function rightsOf(cluster, account) {
  const roles = cluster.ofKind('RoleBinding')
      .filter(b => b.subjects.some(s => s.kind === 'ServiceAccount' && s.name === account))
      .map(b => cluster.get('Role', b.roleRef.name)).filter(Boolean);
  return new Set(roles.flatMap(r => r.rules).flatMap(rule => rule.apiGroups.flatMap(g =>
      rule.resources.flatMap(resource => rule.verbs.map(verb => `${g}/${resource} ${verb}`)))));
}

function bindings(cluster, complain) {
  for (const binding of cluster.ofKind('RoleBinding')) {
    if (!cluster.has('Role', binding.roleRef.name)) complain(`RoleBinding/${binding.metadata.name}: there is no role ${binding.roleRef.name}`);
    for (const subject of binding.subjects) {
      if (!cluster.has('ServiceAccount', subject.name)) complain(`RoleBinding/${binding.metadata.name}: there is no account ${subject.name}`);
    }
  }
  for (const kind of ['ClusterRole', 'ClusterRoleBinding']) if (cluster.ofKind(kind).length) complain(`a ${kind} is more than a run needs`);
}

/** What the launcher is told to look for is the workers' set. */
function launcher(cluster, coordinator, complain) {
  const program = cluster.programOf(coordinator);
  const base = flagOf(program, 'kube-statefulset'), each = program.args.includes('--kube-set-per-worker');
  const sets = cluster.ofKind('StatefulSet').filter(s => (each ? new RegExp(`^${base}-\\d+$`).test(s.metadata.name) : s.metadata.name === base));
  if (!sets.length) return complain(`--kube-statefulset=${base}: there is no such set`);
  const [set] = sets;
  const selector = Object.fromEntries((flagOf(program, 'kube-selector') ?? '').split(',').map(pair => pair.split('=')));
  if (!matches(selector, set.spec.template.metadata.labels)) complain('--kube-selector does not select the workers');
  if (matches(selector, coordinator.spec.template.metadata.labels)) complain('--kube-selector selects the coordinator too');
  for (const role of cluster.ofKind('Role')) {
    for (const rule of role.rules.filter(r => r.resources.includes('statefulsets/scale'))) {
      if (JSON.stringify(rule.resourceNames) !== JSON.stringify(sets.map(s => s.metadata.name))) complain(`Role/${role.metadata.name}: scales other sets than the workers`);
    }
  }
  for (const one of sets) {
    const worker = cluster.programOf(one);
    const name = expand(flagOf(worker, 'name'), environmentOf(worker));
    if (name !== (each ? one.metadata.name : '<metadata.name>')) complain('a worker is not named as its pod, so that the launcher cannot restart it');
    if (one.spec.replicas !== undefined) complain(`${one.metadata.name} has replicas, which an apply would reset`);
  }
}

export function accessRules(cluster, complain, calls) {
  bindings(cluster, complain);
  for (const workload of cluster.workloads) {
    const say = text => complain(`${workload.kind}/${workload.metadata.name}: ${text}`);
    const {serviceAccountName: account, automountServiceAccountToken: mounted} = workload.spec.template.spec;
    if (!cluster.has('ServiceAccount', account)) say(`there is no account ${account}`);
    else if (cluster.get('ServiceAccount', account).automountServiceAccountToken !== false) say(`the account ${account} is mounted into any pod`);
    const launches = flagOf(cluster.programOf(workload), 'launcher') === 'kubernetes';
    const wanted = launches ? calls : new Set();
    const rights = rightsOf(cluster, account);
    for (const right of wanted) if (!rights.has(right)) say(`may not "${right}", which its launcher asks for`);
    for (const right of rights) if (!wanted.has(right)) say(`may "${right}", which nothing asks for`);
    if (mounted !== launches) say(launches ? 'has no token for its launcher' : 'has a token that it does not need');
    if (launches) launcher(cluster, workload, say);
  }
}
