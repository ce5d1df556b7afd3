import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  RESOURCE_QUOTAS,
  STORAGE_CLASSES,
} from '../../../apimachinery/src/types/resource-types.ts';
import { createClient } from '../../../client/src/create-client.ts';
import { createFakeApi } from '../../../client/src/fake-api.fixture.ts';
import { KUBEVIRTS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../../kubevirt/src/kinds/kubevirt.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { nextTurn } from '../../../runtime/src/clock/next-turn.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { createComponentRuns } from './component-health.ts';
import { COMPONENTS, keepRunning } from './components.ts';

// S-234
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

// S-419
test('a component whose informers do not sync is unhealthy until they do, and is run anew', async () => {
  const clock = createFakeClock();
  const types = COMPONENTS.find(({ name }) => name === 'vmi')!;
  const own = [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, KUBEVIRTS];
  const api = createFakeApi([PODS, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, RESOURCE_QUOTAS, NODES, ...own]);
  let blind = true;
  const client = createClient(async (request) => {
    if (blind && request.path.endsWith('/pods')) throw new Error('the line is cut');
    return api.handler(request);
  });
  const runs = createComponentRuns();
  const stop = new AbortController();
  const facts = { rootCa: '' };
  const options = { component: types, client, facts, clock, log: silentLogger, signal: stop.signal };
  const run = runs.follow(
    'vmi',
    keepRunning(options, (trouble) => runs.note('vmi', trouble)),
  );
  const pass = async (seconds: number): Promise<void> => {
    for (let at = 0; at < seconds; at++) {
      await clock.advance(1000);
      await nextTurn();
      await nextTurn();
    }
  };
  await pass(62);
  const [manager] = runs.health();
  assert.equal(manager?.status, 'False');
  assert.match(manager?.message ?? '', /^vmi: not synced within 60 s: pods \(the line is cut\)/);
  blind = false;
  await pass(100);
  assert.deepEqual(runs.health()[0], { name: 'controller-manager', status: 'True', message: 'ok' });
  stop.abort();
  await run;
});
