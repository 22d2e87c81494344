// The axes of the page's charts: every pair of finite numbers gives a bounded number of ticks that lie in the range and differ.
//   chart_test.mjs
import assert from 'node:assert/strict';
import test from 'node:test';
import {importPageModule} from './page_modules.mjs';

const {axisRange, ticks} = await importPageModule('chart.js');
const MAX = Number.MAX_VALUE;
const MIN = Number.MIN_VALUE;
const WANTED = [0, 1, 2, 2.5, 3, 4, 5.8, 7, 10, 25];
const TIME_STEPS = [1, 2, 5, 10, 30, 60, 300, 3600, 86400];

const words = new BigUint64Array(1);
const doubles = new Float64Array(words.buffer);
const doubleOf = bits => {
  words[0] = bits;
  return doubles[0];
};
/** The double `count` units in the last place further from zero. */
const further = (value, count) => {
  doubles[0] = value;
  return doubleOf(words[0] + BigInt(count));
};

// xorshift64*, so that a failure can be repeated.
let state = 88172645463325252n;
function random64() {
  state ^= state >> 12n;
  state ^= (state << 25n) & 0xffffffffffffffffn;
  state ^= state >> 27n;
  return (state * 2685821657736338717n) & 0xffffffffffffffffn;
}
function randomDouble() {
  for (;;) {
    const value = doubleOf(random64()); // every exponent is equally likely
    if (Number.isFinite(value)) return value;
  }
}

function pairs() {
  const found = [
    [5.539623785018921, 5.539623785018922], [1e16, 1e16 + 2], [3.3, 3.3000000000000007], [2 ** 63, 2 ** 63 + 4096],
    [2 ** 53 - 1, 2 ** 53], [0, MIN], [-MIN, MIN], [MIN, 3 * MIN], [0, 1e-310], [-1e-310, 2e-310], [-MAX, MAX], [0, MAX], [-MAX, 0],
    [MAX / 2, MAX], [further(MAX, -1), MAX], [-MAX, -further(MAX, -1)], [1e300, 1.5e300], [0, 0], [7, 7], [-7, -7], [MIN, MIN], [MAX, MAX],
    [-MAX, -MAX], [-3, 5], [-0.001, 0.002], [0, 1e-9], [-1e-9, 1e16],
  ];
  for (let i = 0; i < 3000; i++) {
    const value = randomDouble();
    found.push([value, randomDouble()]);
    for (const near of [further(value, 1 + i % 9), value * (1 + 2 ** -(i % 52)), -value]) {
      if (Number.isFinite(near)) found.push([value, near]);
    }
  }
  return found.map(([a, b]) => (a <= b ? [a, b] : [b, a]));
}

function checkTicks(low, high, wanted, steps, binary) {
  const found = ticks(low, high, wanted, steps, binary);
  const what = `ticks(${low}, ${high}, ${wanted}, ${steps ? 'steps' : null}, ${binary}) = [${found.slice(0, 30)}]`;
  assert.ok(found.length <= Math.max(1, wanted) + 2, `${what}: ${found.length} of them`);
  const slack = 2e-8 * (high - low) / Math.max(1, wanted) + 2 ** -51 * Math.max(Math.abs(low), Math.abs(high));
  found.forEach((value, i) => {
    assert.ok(Number.isFinite(value), what);
    assert.ok(found.length === 1 || (value >= low - slack && value <= high + slack), `${what}: ${value} is outside`);
    assert.ok(i === 0 || value > found[i - 1], `${what}: ${value} does not follow ${found[i - 1]}`);
  });
  return found;
}

test('every pair of finite numbers has few ticks', () => {
  for (const [low, high] of pairs()) {
    for (const wanted of WANTED) {
      checkTicks(low, high, wanted, null, false);
      checkTicks(low, high, wanted, null, true);
      checkTicks(low, high, wanted, TIME_STEPS, false);
    }
  }
});

test('every range of an axis holds its values, and has at least two ticks', () => {
  for (const [low, high] of pairs()) {
    const [from, to] = axisRange(low, high);
    const what = `axisRange(${low}, ${high}) = [${from}, ${to}]`;
    assert.ok(to > from && Number.isFinite(to - from), what);
    assert.ok(from <= Math.max(low, -MAX / 4) && to >= Math.min(high, MAX / 4), `${what} does not hold its values`);
    for (const share of [0.25, 0.5, 0.75]) {
      const inside = from + share * (to - from);
      assert.ok(inside > from && inside < to, `${what}: a double does not tell its parts apart`);
    }
    for (const wanted of WANTED.filter(one => one >= 5)) { // a step is at most 2.5 times as long as wanted
      assert.ok(checkTicks(from, to, wanted, null, false).length >= 2, `${what} has fewer than two ticks of ${wanted}`);
    }
  }
});

test('a range of ordinary numbers stays as it is', () => {
  assert.deepEqual(axisRange(2.5, 9.75), [2.5, 9.75]);
  assert.deepEqual(axisRange(1e12, 1e12 + 1), [1e12, 1e12 + 1]); // tokens
  assert.deepEqual(axisRange(1.7e9, 1.7e9 + 0.01), [1.7e9, 1.7e9 + 0.01]); // seconds since 1970
  assert.deepEqual(axisRange(4, 4), [4, 4.4]);
  assert.deepEqual(axisRange(0, 0), [0, 1]);
  assert.deepEqual(axisRange(4, 4, () => 1), [4, 5]);
  assert.deepEqual(axisRange(Infinity, -Infinity), [0, 1]); // no value
});

test('ticks are round numbers', () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(-3, 5, 4), [-2, 0, 2, 4]);
  assert.deepEqual(ticks(0, 4096, 4, null, true), [0, 1024, 2048, 3072, 4096]);
  assert.deepEqual(ticks(0, 100, 4, TIME_STEPS), [0, 30, 60, 90]);
  assert.deepEqual(ticks(7, 7, 4), [7]);
});
