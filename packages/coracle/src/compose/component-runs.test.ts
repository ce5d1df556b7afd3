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
import { createComponentRuns } from './component-runs.ts';
import { COMPONENTS, keepRunning } from './components.ts';

// S-1666: Controllers count as ready while all of them run; the scheduler is none of them.
test('controllers are ready while all of them run', async () => {
  const runs = createComponentRuns();
  assert.equal(runs.controllersReady(), false, 'none runs');
  let fail = (_: Error): void => {};
  const vm = runs.follow('vm', new Promise((_, reject) => (fail = reject)));
  void runs.follow('vmi', new Promise(() => {}));
  let end = (): void => {};
  const scheduler = runs.follow('scheduler', new Promise((resolve) => (end = resolve)));
  end();
  await scheduler;
  assert.equal(runs.controllersReady(), true);
  fail(new Error('broken'));
  await assert.rejects(vm, /broken/);
  assert.equal(runs.controllersReady(), false);
});

// S-419
test('a component whose informers do not sync is not ready until they do, and is run anew', async () => {
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
    keepRunning(options, (canWork) => runs.note('vmi', canWork)),
  );
  const pass = async (seconds: number): Promise<void> => {
    for (let at = 0; at < seconds; at++) {
      await clock.advance(1000);
      await nextTurn();
      await nextTurn();
    }
  };
  await pass(62);
  assert.equal(runs.controllersReady(), false);
  blind = false;
  await pass(100);
  assert.equal(runs.controllersReady(), true);
  stop.abort();
  await run;
});
