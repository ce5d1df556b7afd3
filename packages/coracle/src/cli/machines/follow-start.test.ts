import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from '../../../../client/src/create-client.ts';
import { createFakeApi } from '../../../../client/src/fake-api.fixture.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../../../kubevirt/src/kinds/kubevirt.ts';
import { NEVER } from '../../../../runtime/src/http/seam.ts';
import { findMachine } from './find-machine.ts';
import { awaitRunning } from './follow-start.ts';

// S-1625: A command that needs a running guest says within moments that a machine is stopped, also when it begins while the
//   machine is on its way there.
test('awaitRunning() ends when the machine comes to rest instead of at the end of its time', async () => {
  const api = createFakeApi([VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES]);
  const client = createClient(api.handler);
  const set = (runStrategy: string, printableStatus: string, phase?: string, more: object = {}): void => {
    const object = { apiVersion: 'kubevirt.io/v1', metadata: { namespace: 'shop', name: 'web' } };
    const spec = { runStrategy, template: { spec: {} } };
    api.put({ ...object, kind: 'VirtualMachine', spec, status: { printableStatus, ...more } });
    if (phase) api.put({ ...object, kind: 'VirtualMachineInstance', spec: {}, status: { phase } });
  };
  const key = { namespace: 'shop', name: 'web' };
  const look = () => findMachine(client, [key], NEVER);
  const wait = (now: Awaited<ReturnType<typeof look>>) =>
    awaitRunning({ client, key, signal: NEVER, note: () => {} }, now, 600);

  set('Halted', 'Stopping', 'Succeeded');
  const stopping = await look();
  set('Halted', 'Stopped', 'Succeeded');
  await assert.rejects(wait(stopping), /^Error: shop\/web is stopped \(start it: coracle start web -n shop\)/);
  set('RerunOnFailure', 'Stopped', 'Succeeded');
  await assert.rejects(wait(await look()), /is stopped/);
  // It was asked to start a moment ago.
  set('Manual', 'Stopped', 'Succeeded', { stateChangeRequests: [{ action: 'Start' }] });
  const started = await look();
  set('Manual', 'Running', 'Running');
  assert.equal((await wait(started)).status?.phase, 'Running');
});
