import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FieldError, fieldErrorBody } from '../../../../../apimachinery/src/meta/status.ts';
import { validateConditions } from './table-rules.ts';

function reported(...conditions: Record<string, unknown>[]): string[] {
  const errors: FieldError[] = [];
  validateConditions(errors, { conditions }, 'status');
  return errors.map((error) => `${error.field}: ${fieldErrorBody(error)}`);
}
const good = { type: 'a.io/Ready', status: 'True', reason: 'Ok', lastTransitionTime: '2020-01-01T00:00:00Z' };

// S-262
test('conditions of the common type', () => {
  const at = 'status.conditions[0]';
  assert.deepEqual(reported(good, { ...good, type: 'Other', status: 'Unknown' }), []);
  assert.deepEqual(reported(good, good), ['status.conditions[1].type: Duplicate value: "a.io/Ready"']);
  assert.deepEqual(reported({ ...good, status: 'Yes' }), [
    `${at}.status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"`,
  ]);
  assert.deepEqual(reported({ type: 'A', status: 'True' }), [
    `${at}.lastTransitionTime: Required value`,
    `${at}.reason: Required value`,
  ]);
  assert.deepEqual(reported({ ...good, observedGeneration: -1 }), [
    `${at}.observedGeneration: Invalid value: -1: must be greater than or equal to zero`,
  ]);
  assert.match(
    reported({ ...good, reason: 'not good' })[0]!,
    /reason: Invalid value: "not good": a condition reason must/,
  );
  assert.deepEqual(reported({ ...good, message: 'x'.repeat(32_769) }), [
    `${at}.message: Too long: may not be more than 32768 bytes`,
  ]);
});
