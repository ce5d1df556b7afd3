import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cloneConditions, failed, PROCESSING, pending, SUCCEEDED } from './clone-conditions.ts';

const T0 = '1970-01-01T00:00:00Z';
const T1 = '1970-01-01T00:00:01Z';

test('cloneConditions() follows the state, and keeps the time of what did not change', () => {
  const shown = (conditions: ReturnType<typeof cloneConditions>): string[] =>
    conditions.map(
      ({ type, status, reason, lastTransitionTime }) => `${type} ${status} ${reason} ${lastTransitionTime}`,
    );
  const waits = cloneConditions(undefined, pending('no source'), 0);
  assert.deepEqual(shown(waits), [`Progressing False Pending ${T0}`, `Ready False no source ${T0}`]);
  const goesOn = cloneConditions(waits, PROCESSING, 1000);
  assert.deepEqual(shown(goesOn), [`Progressing True Still processing ${T1}`, `Ready False Still processing ${T0}`]);
  assert.deepEqual(shown(cloneConditions(goesOn, SUCCEEDED, 1000)), [
    `Progressing False Ready ${T1}`,
    `Ready True Ready ${T1}`,
  ]);
  assert.deepEqual(shown(cloneConditions(goesOn, failed('broken'), 1000)), [
    `Progressing False Failed ${T1}`,
    `Ready False broken ${T0}`,
  ]);
  const held = cloneConditions(goesOn, { ...PROCESSING, message: 'the restore waits' }, 1000);
  assert.deepEqual(
    held.map(({ message }) => message),
    ['the restore waits', undefined],
  );
});
