// Renderings of two tools, made comparable: what differs afterwards differs in the cluster.

// Lists whose items have names: their order is the tools' (that of variables which stand in one another is checked where
// they are expanded).
const named = ['env', 'volumes', 'volumeMounts'];
const byName = (a, b) => (a.name < b.name ? -1 : 1);

const sorted = (value, key) => {
  if (Array.isArray(value)) return (named.includes(key) ? [...value].sort(byName) : value).map(item => sorted(item));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map(k => [k, sorted(value[k], k)]));
};

/** Without what says nothing: empty maps and lists that a patch left (an emptyDir of nothing says something). */
function withoutEmpty(value, key) {
  if (Array.isArray(value)) return value.map(item => withoutEmpty(item));
  if (value === null || typeof value !== 'object') return value;
  const kept = Object.entries(value).map(([k, v]) => [k, withoutEmpty(v, k)])
      .filter(([k, v]) => v !== null && typeof v === 'object' && !Object.keys(v).length ? ['emptyDir', 'podSelector'].includes(k) : v !== null);
  return Object.fromEntries(kept);
}

/** Of the names that kustomize makes of contents, and of the annotation and labels by which Helm says the same. */
function withoutTraces(objects) {
  const text = JSON.stringify(objects)
      .replace(/"(atoll-run)-[a-z0-9]{10}"/g, '"$1"');
  return JSON.parse(text, (key, value) => {
    if (key === 'checksum/run' || key === 'helm.sh/chart' || key === 'app.kubernetes.io/managed-by') return undefined;
    return key === 'app.kubernetes.io/version' ? undefined : value;
  });
}

/** kustomize breaks long lines of base64, Helm does not. */
const unwrapped = object => (object.kind !== 'Secret' ? object : {
  ...object, data: Object.fromEntries(Object.entries(object.data ?? {}).map(([key, text]) => [key, text.replace(/\s/g, '')]))});

export const nameOf = object => `${object.kind}/${object.metadata.name}`;

/** Map of kind/name to the object, in canonical form. */
export function canonical(objects) {
  const clean = withoutTraces(objects).map(object => sorted(withoutEmpty(unwrapped(object))));
  return new Map(clean.map(object => [nameOf(object), object]).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The places where two values differ. */
export function differences(a, b, where = '') {
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object' || Array.isArray(a) !== Array.isArray(b)) {
    return a === b ? [] : [`${where}: ${JSON.stringify(a)} against ${JSON.stringify(b)}`];
  }
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return keys.flatMap(key => differences(a[key], b[key], `${where}.${key}`));
}
