import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createComponentRuns } from './component-health.ts';

test('what runs is healthy, what has ended is named, what runs elsewhere is unknown', async () => {
  const runs = createComponentRuns();
  const shown = (): string[] => runs.health().map(({ name, status, message }) => `${name} ${status} ${message}`);
  const elsewhere = 'Unknown not run by the process of the API server';
  assert.deepEqual(shown(), [`controller-manager ${elsewhere}`, `scheduler ${elsewhere}`]);
  let fail = (_: Error): void => {};
  const vm = runs.follow('vm', new Promise((_, reject) => (fail = reject)));
  void runs.follow('vmi', new Promise(() => {}));
  assert.deepEqual(shown(), ['controller-manager True ok', `scheduler ${elsewhere}`]);
  let end = (): void => {};
  const scheduler = runs.follow('scheduler', new Promise((resolve) => (end = resolve)));
  assert.deepEqual(shown(), ['controller-manager True ok', 'scheduler True ok']);
  fail(new Error('broken'));
  end();
  await assert.rejects(vm, /broken/);
  await scheduler;
  assert.deepEqual(shown(), ['controller-manager False ended: vm', 'scheduler False ended: scheduler']);
});
