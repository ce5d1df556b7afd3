/** The public CEL conformance data (cel-spec v0.25.1, as `@bufbuild/cel-spec` ships it) against `api/cel`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tests as data } from '@bufbuild/cel-spec/testdata/conformance.js';
import { LEFT_OUT, OTHER_TYPE } from './left-out.ts';
import { type ConformanceCase, deducedType, runCase } from './run-conformance.ts';

/** Cases that pass today. Raise it when more do; a drop is a fault. */
const PASSED = 1397;
const TOTAL = 2344;
const TYPES = 1233;

interface Suite {
  readonly name: string;
  readonly suites?: readonly Suite[];
  readonly tests?: readonly { readonly original: ConformanceCase; readonly type?: string }[];
}

function* cases(suite: Suite, path = ''): Generator<readonly [string, ConformanceCase, string | undefined]> {
  for (const { original, type } of suite.tests ?? []) yield [path, original, type];
  for (const child of suite.suites ?? []) yield* cases(child, path === '' ? child.name : `${path}/${child.name}`);
}

// S-148: What `api/cel` evaluates is CEL as Kubernetes has it: the public conformance data passes, but for what is left
//   out by name.
// Compat Admission and quota, P0, yes: CEL as cel-go evaluates it
test('the CEL conformance data passes, but for what does not concern Kubernetes', (t) => {
  const failed: string[] = [];
  const leftOut = new Map<string, number>();
  let passed = 0;
  let total = 0;
  for (const [path, original] of cases(data as unknown as Suite)) {
    total++;
    const fault = runCase(original);
    const rule = fault === undefined ? undefined : LEFT_OUT.find((entry) => entry.matches(`${path}/`, original));
    if (fault === undefined) passed++;
    else if (rule === undefined) failed.push(`${path}/${original.name ?? ''}: ${original.expr}: ${fault}`);
    else leftOut.set(rule.reason, (leftOut.get(rule.reason) ?? 0) + 1);
  }
  t.diagnostic(`CEL conformance: ${passed} of ${total} passed`);
  for (const [reason, count] of leftOut) t.diagnostic(`left out ${count}: ${reason}`);
  assert.deepEqual(failed, []);
  assert.equal(total, TOTAL);
  assert.ok(passed >= PASSED, `${passed} cases pass, ${PASSED} did before`);
  assert.equal(leftOut.size, LEFT_OUT.length, 'an entry of left-out.ts names nothing that fails');
});

// S-148
test('types are deduced as cel-go deduces them', (t) => {
  const different: string[] = [];
  let same = 0;
  for (const [, original, type] of cases(data as unknown as Suite)) {
    const deduced = type === undefined ? undefined : deducedType(original);
    if (deduced === undefined || OTHER_TYPE.has(original.expr)) continue;
    if (deduced.replaceAll(' ', '') === type!.replaceAll(' ', '')) same++;
    else different.push(`${original.expr}: ${deduced} instead of ${type}`);
  }
  t.diagnostic(`CEL conformance: ${same} deduced types`);
  assert.deepEqual(different, []);
  assert.ok(same >= TYPES, `${same} types agree, ${TYPES} did before`);
});
