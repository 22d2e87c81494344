// A rendering, looked at as the cluster would: who selects whom, what a pod's program is told.
import {nameOf} from './canonical.mjs';

export const matches = (selector, labels) =>
    Object.entries(selector?.matchLabels ?? selector ?? {}).every(([key, value]) => labels?.[key] === value);

/** A flag's value on a command line; of a flag that is given twice the later counts. */
export function flagOf(container, flag) {
  const prefix = `--${flag}=`;
  return (container.args ?? []).filter(arg => arg.startsWith(prefix)).map(arg => arg.slice(prefix.length)).pop();
}

/** With $(NAME) replaced as the kubelet does: by what stands before it in the list. Fields of the pod as <path>. */
export function environmentOf(container) {
  const environment = new Map();
  for (const {name, value, valueFrom} of container.env ?? []) {
    environment.set(name, value === undefined ? `<${valueFrom?.fieldRef?.fieldPath}>` : expand(value, environment));
  }
  return environment;
}
export const expand = (text, environment) =>
    String(text).replace(/\$\(([A-Z_]+)\)/g, (whole, name) => environment.get(name) ?? whole);

export class Cluster {
  constructor(objects) {
    this.objects = objects;
    this.byName = new Map(objects.map(object => [nameOf(object), object]));
    this.workloads = this.ofKind('StatefulSet', 'Job');
  }
  ofKind(...kinds) { return this.objects.filter(object => kinds.includes(object.kind)); }
  has(kind, name) { return this.byName.has(`${kind}/${name}`); }
  get(kind, name) { return this.byName.get(`${kind}/${name}`); }
  selected(selector) { return this.workloads.filter(w => matches(selector, w.spec.template.metadata.labels)); }
  /** The container whose image is one of ours for this side. */
  programOf(workload) { return workload.spec.template.spec.containers[0]; }
  workload(component) {
    return this.workloads.find(w => w.metadata.labels['app.kubernetes.io/component'] === component);
  }
}

export const containersOf = pod => [...(pod.initContainers ?? []), ...pod.containers];
export const portsOf = workload => workload.spec.template.spec.containers.flatMap(c => c.ports ?? []);
export const portNamed = (workload, port) =>
    portsOf(workload).find(p => (typeof port === 'number' ? p.containerPort === port : p.name === port));
