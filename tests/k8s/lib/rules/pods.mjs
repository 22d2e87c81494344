// Pods: what they mount and name is there, their programs are told what the objects say, and they need no privilege.
import {containersOf, environmentOf, expand, flagOf, portNamed, portsOf} from '../cluster.mjs';

function volumes(cluster, workload, say) {
  const pod = workload.spec.template.spec;
  const claimed = (workload.spec.volumeClaimTemplates ?? []).map(t => t.metadata.name);
  const declared = [...(pod.volumes ?? []).map(v => v.name), ...claimed];
  if (new Set(declared).size !== declared.length) say('two volumes have one name');
  const mounted = containersOf(pod).flatMap(c => c.volumeMounts ?? []);
  for (const mount of mounted) if (mount.subPath || mount.subPathExpr) say(`mounts a part of ${mount.name}, which is not renewed when it changes`);
  for (const mount of mounted) if (!declared.includes(mount.name)) say(`mounts the volume ${mount.name}, which is not there`);
  for (const name of declared) if (!mounted.some(m => m.name === name)) say(`nobody mounts the volume ${name}`);
  for (const volume of pod.volumes ?? []) {
    const source = volume.configMap ? ['ConfigMap', volume.configMap.name]
                 : volume.secret ? ['Secret', volume.secret.secretName]
                 : volume.persistentVolumeClaim ? ['PersistentVolumeClaim', volume.persistentVolumeClaim.claimName] : null;
    const before = source?.[0] === 'PersistentVolumeClaim' && source[1] === 'atoll-data';  // k8s/tools/tokens
    if (source && !before && !cluster.has(...source)) say(`there is no ${source.join(' ')} for its volume ${volume.name}`);
    if (Object.keys(volume).some(key => key.startsWith('hostPath'))) say(`the volume ${volume.name} is the host's`);
  }
}

/** Every file that a flag names is in a volume that has it. */
function files(cluster, workload, container, say) {
  const pod = workload.spec.template.spec;
  const environment = environmentOf(container);
  const everyPods = [...Array(workload.spec.completions ?? 1).keys()].map(i => text =>
      text.replace('<metadata.name>', `${workload.metadata.name}-${i}`).replace(/<metadata.labels\['batch[^>]*>/, i));
  const lines = (container.args ?? []).flatMap(arg => [...new Set(everyPods.map(of => of(expand(arg, environment))))]);
  for (const text of lines) {
    if (/\$\([A-Z_]+\)|<[a-z.]+>/.test(text)) say(`${text}: no such variable before it`);
    const match = /^--[a-z-]+=(\/[^ ]+)$/.exec(text);
    if (!match) continue;
    const mount = (container.volumeMounts ?? []).filter(m => `${match[1]}/`.startsWith(`${m.mountPath}/`))
        .sort((a, b) => b.mountPath.length - a.mountPath.length)[0];
    if (!mount) {
      say(`${text}: no volume is mounted there`);
      continue;
    }
    const volume = (pod.volumes ?? []).find(v => v.name === mount.name);
    const object = volume?.configMap ? cluster.get('ConfigMap', volume.configMap.name)
                 : volume?.secret ? cluster.get('Secret', volume.secret.secretName) : null;
    const key = match[1].slice(mount.mountPath.length + 1);
    if (object && key && !(key in (object.data ?? {}))) say(`${text}: ${object.kind} ${object.metadata.name} has no ${key}`);
  }
}

/** A key that proves one worker is mounted by that worker's pod and by no other. */
function identities(cluster, complain) {
  const owners = new Map();
  for (const workload of cluster.workloads) {
    const pod = workload.spec.template.spec;
    for (const name of (pod.volumes ?? []).flatMap(v => [v.secret, ...(v.projected?.sources ?? []).map(s => s.secret)])
        .filter(Boolean).map(s => s.secretName ?? s.name)) {
      const of = `${workload.kind}/${workload.metadata.name}`;
      if (owners.has(name)) complain(`${of}: mounts the secret ${name} of ${owners.get(name)}`);
      owners.set(name, of);
      if (!name.startsWith(`${workload.metadata.name}-t`)) complain(`${of}: the secret ${name} is not named after it`);
      if ((workload.spec.replicas ?? 1) !== 1 || workload.spec.completions) complain(`${of}: several pods share the secret ${name}`);
      const keys = Object.keys(cluster.get('Secret', name)?.data ?? {}).sort().join();
      if (!['ca.crt,tls.crt,tls.key', 'token', ''].includes(keys)) complain(`${of}: the secret ${name} has the keys ${keys}`);
    }
  }
}

function security(workload, say) {
  const pod = workload.spec.template.spec;
  if (!pod.securityContext?.runAsNonRoot || !(pod.securityContext?.runAsUser > 0)) say('may run as root');
  if (pod.securityContext?.seccompProfile?.type !== 'RuntimeDefault') say('has no seccomp profile');
  if (pod.hostNetwork || pod.hostPID || pod.hostIPC) say('shares namespaces with the host');
  if (pod.enableServiceLinks !== false) say('gets the addresses of all services as variables');
  for (const container of containersOf(pod)) {
    const context = container.securityContext ?? {};
    if (context.allowPrivilegeEscalation !== false) say(`${container.name} may gain privileges`);
    if (context.readOnlyRootFilesystem !== true) say(`${container.name} may write to its image`);
    if (!context.capabilities?.drop?.includes('ALL') || context.capabilities?.add) say(`${container.name} has capabilities`);
    const {requests = {}, limits = {}} = container.resources ?? {};
    if (!requests.memory || !requests.cpu || !limits.memory) say(`${container.name} does not say what it needs`);
    if (/:(latest)?$/.test(container.image) || !/:/.test(container.image)) say(`${container.name}'s image has no version`);
  }
}

function listening(cluster, workload, container, say) {
  if (flagOf(container, 'tls-cert') && flagOf(container, 'listen') && flagOf(container, 'insecure-bind') !== 'false') {
    say('would serve in plain text without its certificates');
  }
  for (const flag of ['listen', 'admin-listen', 'metrics-listen', 'health-listen']) {
    const address = flagOf(container, flag);
    if (!address) continue;
    const name = flag === 'listen' ? 'data' : flag.replace('-listen', '');
    const port = portNamed(workload, name);
    if (port?.containerPort !== Number(address.split(':').pop())) say(`--${flag}=${address} is not its port ${name}`);
    if (!/^(0\.0\.0\.0|\[::\]):/.test(address)) say(`--${flag}=${address} is not reached from outside the pod`);
  }
  for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    const {grpc, httpGet} = container[probe] ?? {};
    const port = grpc?.port ?? httpGet?.port;
    if (port !== undefined && !portNamed(workload, port)) say(`${probe} asks the port ${port}, which is not there`);
    if (grpc && Number(flagOf(container, 'health-listen')?.split(':').pop()) !== grpc.port) {
      say(`${probe}: the program answers such questions on --health-listen only`);
    }
    if (probe !== 'startupProbe' && !container[probe]) say(`has no ${probe}`);
  }
  const health = portsOf(workload).find(p => p.name === 'health');
  for (const service of cluster.ofKind('Service')) {
    if (health && service.spec.ports.some(p => p.targetPort === 'health' || p.targetPort === health.containerPort)) {
      say(`the service ${service.metadata.name} leads to its health port`);
    }
  }
}

function leaving(workload, container, say) {
  const drain = Number(expand(flagOf(container, 'drain-seconds') ?? '', environmentOf(container)));
  const grace = workload.spec.template.spec.terminationGracePeriodSeconds;
  if (flagOf(container, 'drain-seconds') !== undefined && !(grace >= drain + 10)) {
    say(`gets ${grace} s to leave and wants ${drain} s and 10 more`);
  }
  const ready = flagOf(container, 'ready-file');
  const probe = container.readinessProbe?.exec?.command;
  if (ready && JSON.stringify(probe) !== JSON.stringify(['test', '-f', ready])) say(`--ready-file=${ready} is not what its probe looks at`);
}

const MOST_RANKS = 8;  // of a coordinator without --max-ranks

/** The pods of an island meet at pod 0 before any of them is ready, are replaced together, and are as many as the coordinator takes. */
function ranks(cluster, workload, program, say) {
  const place = flagOf(program, 'island');
  if (place === undefined) return;
  const {replicas, serviceName, podManagementPolicy, updateStrategy} = workload.spec;
  const meets = expand(place, environmentOf(program)).split(':')[0];
  if (meets !== `${workload.metadata.name}-0.${serviceName}`) say(`its ranks meet at ${meets}, which is not its pod 0`);
  if (Number(flagOf(program, 'world-size')) !== replicas) say(`has ${replicas} pods, and its ranks wait for ${flagOf(program, 'world-size')}`);
  if (podManagementPolicy !== 'Parallel') say('starts rank 1 when rank 0 is ready, which waits for rank 1');
  if (updateStrategy?.type !== 'OnDelete') say('is updated pod by pod, and ranks of two versions do not train together');
  if (!cluster.get('Service', serviceName)?.spec.publishNotReadyAddresses) say(`the service ${serviceName} names no pod that is not ready, as rank 0 is not`);
  const rank = expand(flagOf(program, 'rank') ?? '', environmentOf(program));
  if (rank !== "<metadata.labels['apps.kubernetes.io/pod-index']>") say(`its ranks are ${rank}, and not the indices of its pods`);
  const coordinator = cluster.workload('coordinator');
  const most = coordinator ? Number(flagOf(cluster.programOf(coordinator), 'max-ranks') ?? MOST_RANKS) : Infinity;
  if (replicas > most) say(`has ${replicas} ranks, and the coordinator takes at most ${most} (--max-ranks)`);
  if (workload.metadata.labels['atoll/worker'] !== workload.metadata.name) say('no label atoll/worker names it, so that it cannot be applied alone');
  const memory = (workload.spec.template.spec.volumes ?? []).filter(v => v.emptyDir?.medium === 'Memory').map(v => v.name);
  if (!program.volumeMounts.some(m => m.mountPath === '/dev/shm' && memory.includes(m.name))) say('has 64 MiB of shared memory, and NCCL needs more');
}

export function podRules(cluster, complain) {
  identities(cluster, complain);
  for (const workload of cluster.workloads) {
    const say = text => complain(`${workload.kind}/${workload.metadata.name}: ${text}`);
    volumes(cluster, workload, say);
    security(workload, say);
    const program = cluster.programOf(workload);
    files(cluster, workload, program, say);
    listening(cluster, workload, program, say);
    leaving(workload, program, say);
    ranks(cluster, workload, program, say);
    for (const constraint of workload.spec.template.spec.topologySpreadConstraints ?? []) {
      if (!cluster.selected(constraint.labelSelector).includes(workload)) say('spreads pods that are not its own');
    }
  }
}
