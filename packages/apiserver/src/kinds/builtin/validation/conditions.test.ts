import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorBody } from '../../../../../apimachinery/src/meta/status.ts';
import { finish } from '../../../../../apimachinery/src/meta/steps.ts';
import { newJudging } from '../../../../../apimachinery/src/validation/field-errors.ts';
import { judgeConditions } from './conditions.ts';

function told(...conditions: Record<string, unknown>[]): string[] {
  const judging = newJudging();
  finish(
    (function* () {
      yield* judgeConditions(judging, { conditions }, 'status');
    })(),
  );
  return judging.errors.map((error) => `${error.field}: ${fieldErrorBody(error)}`);
}
const good = { type: 'a.io/Ready', status: 'True', reason: 'Ok', lastTransitionTime: '2020-01-01T00:00:00Z' };

// S-262
test('conditions of the common type', () => {
  const at = 'status.conditions[0]';
  assert.deepEqual(told(good, { ...good, type: 'Other', status: 'Unknown' }), []);
  assert.deepEqual(told(good, good), ['status.conditions[1].type: Duplicate value: "a.io/Ready"']);
  assert.deepEqual(told({ ...good, status: 'Yes' }), [
    `${at}.status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"`,
  ]);
  assert.deepEqual(told({ type: 'A', status: 'True' }), [
    `${at}.lastTransitionTime: Required value`,
    `${at}.reason: Required value`,
  ]);
  assert.deepEqual(told({ ...good, observedGeneration: -1 }), [
    `${at}.observedGeneration: Invalid value: -1: must be greater than or equal to zero`,
  ]);
  assert.match(told({ ...good, reason: 'not good' })[0]!, /reason: Invalid value: "not good": a condition reason must/);
  assert.deepEqual(told({ ...good, message: 'x'.repeat(32_769) }), [
    `${at}.message: Too long: may not be more than 32768 bytes`,
  ]);
});
