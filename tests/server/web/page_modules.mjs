// Loads modules of the web page in node, which takes files named .js for modules only where a package.json says so.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const page = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../../../server/web/page');

/** The exports of the page's module `name`. The page's modules use `document` only when they are called. */
export async function importPageModule(name) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'atoll-page-'));
  try {
    for (const file of fs.readdirSync(page)) fs.copyFileSync(path.join(page, file), path.join(folder, file));
    fs.writeFileSync(path.join(folder, 'package.json'), '{"type": "module"}');
    return await import(pathToFileURL(path.join(folder, name)).href);
  } finally {
    fs.rmSync(folder, {recursive: true});
  }
}
