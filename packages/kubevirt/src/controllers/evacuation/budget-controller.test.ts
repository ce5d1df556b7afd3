import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceType } from '../../../../apimachinery/src/meta/gvk.ts';
import type { UnstructuredObject } from '../../../../apimachinery/src/meta/object.ts';
import { EVENTS, POD_DISRUPTION_BUDGETS } from '../../../../apimachinery/src/types/resource-types.ts';
import { createClient } from '../../../../client/src/create-client.ts';
import { createEventRecorder } from '../../../../client/src/events/recorder.ts';
import { createFakeApi } from '../../../../client/src/fake-api.fixture.ts';
import { createInformerSet } from '../../../../client/src/informer/informer-set.ts';
import { createFakeClock } from '../../../../runtime/src/clock/fake-clock.fixture.ts';
import { createLogger, type LogRecord } from '../../../../runtime/src/log/log.ts';
import { KUBEVIRTS, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, VIRTUAL_MACHINE_INSTANCES } from '../../kinds/kubevirt.ts';
import { createBudgetController } from './budget-controller.ts';

const TYPES = [
  EVENTS,
  POD_DISRUPTION_BUDGETS,
  KUBEVIRTS,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
] as unknown as ResourceType<never>[];

// S-339: A disruption budget is raised in one write, whoever writes its status meanwhile.
test('a budget is raised in one write, though the disruption controller writes its status just before', async () => {
  const clock = createFakeClock();
  const api = createFakeApi(TYPES);
  // The fake API leaves names to its callers.
  const client = createClient((request) => {
    if (request.method !== 'POST' || !request.path.endsWith('/poddisruptionbudgets')) return api.handler(request);
    const body = JSON.parse(new TextDecoder().decode(request.body)) as UnstructuredObject;
    body.metadata.name = `${body.metadata.generateName}x`;
    return api.handler({ ...request, body: new TextEncoder().encode(JSON.stringify(body)) });
  });
  const informers = createInformerSet(client, { clock });
  const logged: LogRecord[] = [];
  const log = createLogger((record) => logged.push(record), 'info');
  const events = createEventRecorder(client, { component: 'test', clock, log });
  const controller = createBudgetController({ client, informers, clock, log, events });
  const stop = new AbortController();
  const run = Promise.all([informers.start(stop.signal), controller.start(stop.signal)]);
  const pass = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) {
      await clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const [budgets, patches] = [
    () => api.all(POD_DISRUPTION_BUDGETS) as (UnstructuredObject & { spec: { minAvailable: number } })[],
    () => api.requests.filter((one) => one.startsWith('PATCH') && one.includes('poddisruptionbudgets')),
  ];

  api.put({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
    spec: { evictionStrategy: 'LiveMigrate' },
    status: { phase: 'Running' },
  });
  await pass();
  assert.deepEqual(
    budgets().map(({ spec }) => spec.minAvailable),
    [1],
  );

  let disturbed = 0;
  api.intercept = ({ method, path }) => {
    if (method !== 'PATCH' || !path.includes('poddisruptionbudgets')) return;
    const [budget] = budgets();
    api.put({ ...budget, status: { observedGeneration: ++disturbed } });
  };
  api.put({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'm', namespace: 'ns' },
    spec: { vmiName: 'vm' },
  });
  await pass();
  assert.deepEqual(
    budgets().map(({ spec }) => spec.minAvailable),
    [2],
  );
  assert.deepEqual([disturbed, patches().length], [1, 1]);
  assert.deepEqual(
    logged.filter(({ level }) => level === 'error' || level === 'warn'),
    [],
  );
  stop.abort();
  await clock.advance(0);
  await run;
});
