// render.mjs OVERLAY: its objects as one JSON list, for those who do not read YAML.
import path from 'node:path';
import {copyOfManifests, kustomize} from '../lib/render.mjs';

console.log(JSON.stringify(kustomize(path.join(copyOfManifests(), process.argv[2]))));
