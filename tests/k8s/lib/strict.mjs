// Strict, offline checks of objects against their schemas: unknown fields, wrong types, missing required ones.
import fs from 'node:fs';
import path from 'node:path';
import {tools} from './tools.mjs';

const kubernetes = path.join(tools, 'node_modules/@kubernetes/client-node/dist/gen/models');
const operator = path.join(tools, 'node_modules/@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1');
// Kubernetes' own types, as the operator's models name them.
const shared = {
  IIoK8sApimachineryPkgApisMetaV1LabelSelector: 'V1LabelSelector',
  IIoK8sApimachineryPkgApisMetaV1ObjectMeta: 'V1ObjectMeta',
  IIoK8sApimachineryPkgUtilIntstrIntOrString: 'IntOrString',
  IIoK8sApiCoreV1SecretKeySelector: 'V1SecretKeySelector',
};
const quantity = /^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$/;
const cache = new Map();

/** {fields: Map of name to type, required: Set}, or null when there is no such class. */
async function kubernetesClass(name) {
  const file = path.join(kubernetes, `${name}.js`);
  if (!fs.existsSync(file)) return null;
  const module = await import(file);
  const fields = new Map(module[name].getAttributeTypeMap().map(a => [a.baseName, a.type]));
  const names = new Map(module[name].getAttributeTypeMap().map(a => [a.name, a.baseName]));
  const required = new Set();
  const declared = fs.readFileSync(path.join(kubernetes, `${name}.d.ts`), 'utf8');
  for (const match of declared.matchAll(/^\s+'([^']+)'(\??):/gm)) {
    if (!match[2] && names.has(match[1])) required.add(names.get(match[1]));
  }
  return {fields, required};
}

function operatorClass(name) {
  const file = path.join(operator, `${name}.d.ts`);
  if (!fs.existsSync(file)) return null;
  const text = fs.readFileSync(file, 'utf8').replace(/\/\*\*.*?\*\//gs, '');
  const declared = /declare class \w+ extends Model<\w+> implements \w+ \{(.*?)\n    (?:static|constructor)/s.exec(text);
  if (!declared) {
    const alias = new RegExp(`export type I?${name} = ([^;]+);`).exec(text);
    return {alias: alias ? alias[1] : 'any'};
  }
  const imports = new Map([...text.matchAll(/import \{ (\w+) \} from "\.\/(\w+)\.js"/g)].map(m => [m[1], `operator:${m[2]}`]));
  const fields = new Map(), required = new Set();
  for (const [, field, optional, type] of declared[1].matchAll(/^    "([^"]+)"(\??): ((?:\{[^}]*\}|[^;{])+);/gm)) {
    const translated = type.replace(/\s+/g, ' ').replace(/\bI\w+/g, n => imports.get(n) ?? shared[n] ?? 'any');
    fields.set(field, translated);
    if (!optional) required.add(field);
  }
  return {fields, required};
}

async function classOf(name) {
  if (!cache.has(name)) {
    cache.set(name, name.startsWith('operator:') ? operatorClass(name.slice(9)) : await kubernetesClass(name));
  }
  return cache.get(name);
}

function checkScalar(value, type, where, errors) {
  if (type === 'any' || type === 'object') return true;
  if (type === 'IntOrString' || type === 'number|string') {
    if (!['number', 'string'].includes(typeof value)) errors.push(`${where}: an int or a string is wanted`);
    return true;
  }
  if (type === 'Date' || type === 'V1MicroTime') return true;
  if (!['string', 'number', 'boolean'].includes(type)) return false;
  const isQuantity = /resources\.(requests|limits)\.|\.storage$|sizeLimit$/.test(where);
  if (isQuantity) {
    if (!quantity.test(String(value))) errors.push(`${where}: '${value}' is no quantity`);
  } else if (typeof value !== type) {
    errors.push(`${where}: ${type} is wanted, not ${typeof value} (${JSON.stringify(value)})`);
  }
  return true;
}

async function check(value, type, where, errors) {
  if (value === null || value === undefined) {
    errors.push(`${where}: empty`);
    return;
  }
  let match;
  if ((match = /^(?:Array|Set)<(.*)>$/.exec(type))) {
    if (!Array.isArray(value)) return void errors.push(`${where}: a list is wanted`);
    for (const [i, item] of value.entries()) await check(item, match[1], `${where}[${i}]`, errors);
    return;
  }
  if ((match = /^\{ \[key: string\]: (.*); \}$/.exec(type))) {
    if (typeof value !== 'object' || Array.isArray(value)) return void errors.push(`${where}: a map is wanted`);
    for (const key in value) await check(value[key], match[1], `${where}.${key}`, errors);
    return;
  }
  if (/^"/.test(type)) {  // "a" | "b"
    if (!type.split(' | ').includes(JSON.stringify(value))) errors.push(`${where}: ${JSON.stringify(value)} is none of ${type}`);
    return;
  }
  if (checkScalar(value, type, where, errors)) return;
  const schema = await classOf(type);
  if (!schema) return void errors.push(`${where}: there is no type ${type}`);
  if (schema.alias) return check(value, schema.alias, where, errors);
  if (typeof value !== 'object' || Array.isArray(value)) return void errors.push(`${where}: an object is wanted`);
  for (const key in value) {
    if (schema.fields.has(key)) await check(value[key], schema.fields.get(key), `${where}.${key}`, errors);
    else errors.push(`${where}.${key}: there is no such field`);
  }
  for (const key of schema.required) if (!(key in value)) errors.push(`${where}.${key}: missing`);
}

function typeOf(object) {
  if (object.apiVersion === 'monitoring.coreos.com/v1') return `operator:${object.kind}`;
  const capital = word => word[0].toUpperCase() + word.slice(1);
  const [group, version] = object.apiVersion.includes('/') ? object.apiVersion.split('/') : ['', object.apiVersion];
  const candidates = [capital(version) + object.kind, capital(group.split('.')[0] || 'core') + capital(version) + object.kind];
  return candidates.find(name => fs.existsSync(path.join(kubernetes, `${name}.js`)));
}

/** What is wrong with it: a list, empty when nothing is. */
export async function strictErrors(object) {
  const name = `${object?.kind}/${object?.metadata?.name}`;
  if (!object?.apiVersion || !object?.kind) return [`${name}: apiVersion or kind is missing`];
  const type = typeOf(object);
  if (!type) return [`${name}: there is no ${object.apiVersion} ${object.kind}`];
  const errors = [];
  await check(object, type, name, errors);
  return errors;
}
