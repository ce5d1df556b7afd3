import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runMutating } from './chain.ts';
import type { AdmissionAttributes, AdmissionPlugin } from './plugin.ts';
import { reinvocationOf } from './reinvocation.ts';

/** A plug-in that runs `act` in the mutating pass. */
const plugin = (name: string, act: (attributes: AdmissionAttributes) => Promise<void> | void): AdmissionPlugin => ({
  name,
  matches: () => true,
  mutate: act,
});

const attributes = (): AdmissionAttributes =>
  ({
    operation: 'CREATE',
    requestVerb: 'create',
    info: {},
    subresource: '',
    object: {},
    reinvocation: undefined,
  }) as unknown as AdmissionAttributes;

test('runMutating() runs once, and without a turn of the event loop, when nobody asks for more', () => {
  const calls: string[] = [];
  assert.equal(runMutating([plugin('a', () => void calls.push('a'))], attributes()), undefined);
  assert.deepEqual(calls, ['a']);
});

test('runMutating() runs everything exactly once more after a change, whether plug-ins wait or not', async () => {
  for (const waits of [false, true]) {
    const calls: string[] = [];
    const change = (request: AdmissionAttributes): Promise<void> | void => {
      calls.push('change');
      reinvocationOf(request).wanted = true;
      return waits ? Promise.resolve() : undefined;
    };
    await runMutating([plugin('a', () => void calls.push('a')), plugin('c', change)], attributes());
    assert.deepEqual(calls, ['a', 'change', 'a', 'change']);
  }
});

test('Callers knows who has to see the object again', () => {
  const request = attributes();
  const callers = reinvocationOf(request).of('hooks');
  assert.equal(reinvocationOf(request).of('hooks'), callers);
  callers.addReinvocable('one');
  callers.keepOutput({ a: [1] });
  assert.equal(callers.isDue('one'), false);
  assert.equal(callers.outputChanged({ a: [1] }), false);
  assert.equal(callers.outputChanged({ a: [2] }), true);
  callers.requirePrevious();
  assert.equal(callers.isDue('one'), true);
});
