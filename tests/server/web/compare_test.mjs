// The runs that the web page compares with the live one: which files replace which, and when there is no room.
//   compare_test.mjs
import assert from 'node:assert/strict';
import test from 'node:test';
import {importPageModule} from './page_modules.mjs';

const elements = new Map();
globalThis.document = {
  getElementById: id => {
    if (!elements.has(id)) elements.set(id, {textContent: '', hidden: false, addEventListener() {}});
    return elements.get(id);
  },
};
const {ComparedRuns} = await importPageModule('compare.js');

const HEADER = 'unix_time,name,worker,version,committed_tokens,value';
const csv = loss => `${HEADER}\n1,validation/loss,,0,0,${loss}\n`;
const jsonl = loss => `{"unix_time":1,"name":"validation/loss","worker":"","version":0,"committed_tokens":0,"value":${loss}}\n`;
const file = (name, text) => ({name, size: text.length, text: async () => text});
const said = () => document.getElementById('compare-said').textContent;
const shown = runs => runs.series(false, 0).map(series => [series.name, series.points[0][1]]);

async function sixRuns() {
  const runs = new ComparedRuns(() => {});
  await runs.take([1, 2, 3, 4, 5, 6].map(n => file(`r${n}.jsonl`, jsonl(n))));
  assert.equal(said(), 'compared with 6 runs');
  return runs;
}

test('with six runs, a file of the same name replaces the old one', async () => {
  const runs = await sixRuns();
  await runs.take([file('r3.jsonl', jsonl(9))]);
  assert.equal(said(), 'compared with 6 runs');
  assert.deepEqual(new Map(shown(runs)).get('r3, validation'), 9);
  assert.equal(shown(runs).length, 6);
});

test('with six runs, another file is rejected and none is lost', async () => {
  const runs = await sixRuns();
  const before = shown(runs);
  await runs.take([file('r7.jsonl', jsonl(9)), file('r3.csv', csv(9))]);
  assert.equal(said(), 'r7.jsonl: at most 6 runs fit beside the live one; r3.csv: at most 6 runs fit beside the live one');
  assert.deepEqual(shown(runs), before);
});

test('two files chosen at the same time do not exceed six', async () => {
  const runs = new ComparedRuns(() => {});
  await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(n => runs.take([file(`r${n}.jsonl`, jsonl(n))])));
  assert.equal(shown(runs).length, 6);
});

test('files that differ in their endings are two runs, named by the whole name', async () => {
  const runs = new ComparedRuns(() => {});
  await runs.take([file('a.jsonl', jsonl(3)), file('b.jsonl', jsonl(4))]);
  assert.deepEqual(shown(runs), [['a, validation', 3], ['b, validation', 4]]);
  await runs.take([file('a.csv', csv(5))]);
  assert.deepEqual(shown(runs), [['a.jsonl, validation', 3], ['b, validation', 4], ['a.csv, validation', 5]]);
});

test('a bad file of the same name leaves the old run', async () => {
  const runs = await sixRuns();
  await runs.take([file('r3.jsonl', 'nonsense')]);
  assert.match(said(), /^r3\.jsonl: this is no file of metrics export/);
  assert.equal(new Map(shown(runs)).get('r3, validation'), 3);
});
