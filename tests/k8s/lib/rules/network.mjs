// Services, policies and monitors: what they select is there, the ports exist by name, and what must be reached is let in.
import {environmentOf, expand, flagOf, matches, portNamed} from '../cluster.mjs';

/** One workload, or several that are workers: those with an identity of their own. */
const alike = workloads => workloads.length > 0 && new Set(workloads.map(w => w.metadata.labels['app.kubernetes.io/component'])).size === 1;

function services(cluster, complain) {
  for (const service of cluster.ofKind('Service')) {
    const say = text => complain(`Service/${service.metadata.name}: ${text}`);
    const selected = cluster.selected(service.spec.selector);
    if (!alike(selected)) say(`selects ${selected.length} workloads`);
    for (const port of service.spec.ports) {
      for (const workload of selected) {
        if (!portNamed(workload, port.targetPort)) say(`${workload.metadata.name} has no port ${port.targetPort}`);
      }
    }
  }
  for (const set of cluster.ofKind('StatefulSet')) {
    const say = text => complain(`StatefulSet/${set.metadata.name}: ${text}`);
    const service = cluster.get('Service', set.spec.serviceName);
    if (service?.spec.clusterIP !== 'None') say(`${set.spec.serviceName} is no headless service`);
    else if (!cluster.selected(service.spec.selector).includes(set)) say(`${set.spec.serviceName} does not select it`);
    if (!matches(set.spec.selector, set.spec.template.metadata.labels)) say('does not select its own pods');
  }
  for (const budget of cluster.ofKind('PodDisruptionBudget')) {
    if (!alike(cluster.selected(budget.spec.selector))) complain(`PodDisruptionBudget/${budget.metadata.name}: selects no workload, or several`);
  }
  for (const monitor of cluster.ofKind('ServiceMonitor')) {
    for (const endpoint of monitor.spec.endpoints) {
      const found = cluster.ofKind('Service').filter(s => matches(monitor.spec.selector, s.metadata.labels))
          .filter(s => s.spec.ports.some(p => p.name === endpoint.port));
      if (found.length !== 1) complain(`ServiceMonitor/${monitor.metadata.name}: ${found.length} services have a port ${endpoint.port}`);
      else if (!allowed(cluster, cluster.selected(found[0].spec.selector)[0], 'metrics', {namespace: 'monitoring'})) {
        complain(`ServiceMonitor/${monitor.metadata.name}: no policy lets Prometheus in`);
      }
    }
  }
}

/** Whether a policy lets `from` (a workload, {namespace}, {component}, or null: anybody) in to this port. */
function allowed(cluster, workload, port, from) {
  const admits = peer => {
    if (peer.ipBlock) return peer.ipBlock.cidr === '0.0.0.0/0';
    if (from?.namespace) return matches(peer.namespaceSelector ?? {none: 1}, {'kubernetes.io/metadata.name': from.namespace});
    if (!from || peer.namespaceSelector) return false;
    const labels = from.spec ? from.spec.template.metadata.labels : from.labels;
    return matches(peer.podSelector, labels);
  };
  return cluster.ofKind('NetworkPolicy')
      .filter(policy => matches(policy.spec.podSelector, workload.spec.template.metadata.labels))
      .flatMap(policy => policy.spec.ingress ?? [])
      .filter(rule => !rule.ports || rule.ports.some(p => p.port === port))
      .some(rule => !rule.from || rule.from.some(admits));
}

function policies(cluster, complain) {
  for (const policy of cluster.ofKind('NetworkPolicy')) {
    const say = text => complain(`NetworkPolicy/${policy.metadata.name}: ${text}`);
    const own = cluster.selected(policy.spec.podSelector);
    if (!own.length) say('selects nobody');
    const peersOf = rule => [...(rule.from ?? []), ...(rule.to ?? [])].filter(p => p.podSelector && !p.namespaceSelector);
    for (const rule of [...(policy.spec.ingress ?? []), ...(policy.spec.egress ?? [])]) {
      for (const peer of peersOf(rule)) {
        const operator = peer.podSelector.matchLabels?.['app.kubernetes.io/component'] === 'operator';
        if (!operator && !cluster.selected(peer.podSelector).length) say(`names pods that are not there: ${JSON.stringify(peer.podSelector)}`);
      }
    }
    for (const rule of policy.spec.ingress ?? []) {
      for (const {port} of rule.ports ?? []) for (const w of own) if (!portNamed(w, port)) say(`${w.metadata.name} has no port ${port}`);
    }
    for (const rule of policy.spec.egress ?? []) {
      for (const target of peersOf(rule).flatMap(p => cluster.selected(p.podSelector))) {
        for (const {port} of rule.ports ?? []) if (!portNamed(target, port)) say(`${target.metadata.name} has no port ${port}`);
      }
    }
  }
  for (const workload of cluster.workloads) {
    const denied = cluster.ofKind('NetworkPolicy').some(p => matches(p.spec.podSelector, workload.spec.template.metadata.labels) &&
        p.spec.policyTypes.includes('Ingress') && p.spec.policyTypes.includes('Egress') && !p.spec.ingress && !p.spec.egress);
    if (!denied) complain(`${workload.kind}/${workload.metadata.name}: no policy denies what is not named`);
  }
}

/** The worker's --coordinator leads, by a service and through the policies of both sides, to the data port. */
function wayToTheCoordinator(cluster, complain) {
  const worker = cluster.workload('worker'), coordinator = cluster.workload('coordinator');
  if (!worker) return complain('there are no workers');
  const container = cluster.programOf(worker);
  const [host, port] = expand(flagOf(container, 'coordinator') ?? '', environmentOf(container)).split(':');
  const egress = cluster.ofKind('NetworkPolicy').filter(p => matches(p.spec.podSelector, worker.spec.template.metadata.labels))
      .flatMap(p => p.spec.egress ?? []);
  if (!egress.some(rule => rule.ports?.some(p => p.port === 53 && p.protocol === 'UDP'))) complain('workers cannot resolve names');
  if (!coordinator) {
    if (!egress.some(rule => !rule.to && rule.ports?.some(p => p.port === Number(port)))) complain(`no policy lets workers out to ${host}:${port}`);
    return;
  }
  const service = cluster.get('Service', host);
  const served = service?.spec.ports.find(p => p.port === Number(port));
  if (!served || served.targetPort !== 'data' || !cluster.selected(service.spec.selector).includes(coordinator)) {
    complain(`workers call ${host}:${port}, which is not the coordinator's data port`);
  }
  const out = egress.some(rule => rule.to?.some(p => p.podSelector && matches(p.podSelector, coordinator.spec.template.metadata.labels)) &&
      rule.ports?.some(p => p.port === 'data'));
  if (!out) complain('no policy lets workers out to the coordinator');
  if (!allowed(cluster, coordinator, 'data', worker)) complain('no policy lets workers in to the coordinator');
  if (allowed(cluster, coordinator, 'admin', worker)) complain('a policy lets workers in to the admin port');
  const operator = {labels: {...coordinator.spec.template.metadata.labels, 'app.kubernetes.io/component': 'operator'}};
  if (!allowed(cluster, coordinator, 'admin', operator)) complain('no policy lets operators in to the admin port');
  for (const service of cluster.ofKind('Service').filter(s => s.spec.type === 'LoadBalancer')) {
    if (service.spec.ports.some(p => p.targetPort !== 'data')) complain(`Service/${service.metadata.name}: only the data port may be exposed`);
    if (!flagOf(cluster.programOf(coordinator), 'tls-ca')) complain(`Service/${service.metadata.name}: the data port is exposed without TLS`);
    if (!allowed(cluster, coordinator, 'data', null)) complain(`Service/${service.metadata.name}: no policy lets islands in`);
  }
}

/** The ranks of an island call each other on ports that the system chooses. */
function waysBetweenRanks(cluster, complain) {
  for (const workload of cluster.workloads.filter(w => flagOf(cluster.programOf(w), 'island') !== undefined)) {
    const say = text => complain(`${workload.kind}/${workload.metadata.name}: ${text}`);
    const labels = workload.spec.template.metadata.labels;
    if (!allowed(cluster, workload, undefined, workload)) say('no policy lets its ranks in to each other');
    const out = cluster.ofKind('NetworkPolicy').filter(p => matches(p.spec.podSelector, labels)).flatMap(p => p.spec.egress ?? [])
        .some(rule => !rule.ports && rule.to?.some(p => p.podSelector && !p.namespaceSelector && matches(p.podSelector, labels)));
    if (!out) say('no policy lets its ranks out to each other');
  }
}

export function networkRules(cluster, complain) {
  services(cluster, complain);
  policies(cluster, complain);
  wayToTheCoordinator(cluster, complain);
  waysBetweenRanks(cluster, complain);
}
