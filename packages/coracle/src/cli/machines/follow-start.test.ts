import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from '../../../../client/src/create-client.ts';
import { createFakeApi } from '../../../../client/src/fake-api.fixture.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../../../kubevirt/src/kinds/kubevirt.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { NEVER } from '../../../../runtime/src/http/seam.ts';
import { findMachine } from './find-machine.ts';
import { awaitGone, awaitNext, awaitRunning } from './follow-start.ts';

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

// S-1679: `coracle logs -f` goes on with the guest that a restart brings, and ends when the machine is stopped.
test('awaitNext() waits for the instance behind the one that ends', async () => {
  const api = createFakeApi([VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES]);
  const client = createClient(api.handler);
  const key = { namespace: 'shop', name: 'web' };
  const apiVersion = 'kubevirt.io/v1';
  const machine = (runStrategy: string, printableStatus: string): void => {
    const spec = { runStrategy, template: { spec: {} } };
    api.put({ apiVersion, kind: 'VirtualMachine', metadata: key, spec, status: { printableStatus } });
  };
  const instance = (uid: string, phase: string): void =>
    void api.put({
      apiVersion,
      kind: 'VirtualMachineInstance',
      metadata: { ...key, uid },
      spec: {},
      status: { phase },
    });
  machine('Always', 'Running');
  instance('one', 'Running');
  const before = await findMachine(client, [key], NEVER);
  const notes: string[] = [];
  const following = { client, key, signal: NEVER, note: (text: string) => void notes.push(text) };
  const next = awaitNext(following, before);
  await systemClock.sleep(300, NEVER);
  assert.deepEqual(notes, [], 'the old one runs still');
  instance('two', 'Running');
  assert.equal((await next)?.vmi?.metadata.uid, 'two');
  assert.deepEqual(notes, ['shop/web was started anew']);
  machine('Halted', 'Stopped');
  instance('two', 'Succeeded');
  assert.equal(await awaitNext(following, before), undefined);
  assert.match(notes[1] ?? '', /^shop\/web is stopped/);
  assert.equal(await awaitNext(following, { ...before, vm: undefined }), undefined);
  assert.equal(notes.length, 2);
});

// S-1632: `stop --wait`, `restart --wait` and `delete` say after a second which machine they wait for, and past their time how to go on.
test('awaitGone() says once whose guest it waits for', async () => {
  const api = createFakeApi([VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES]);
  const client = createClient(api.handler);
  const key = { namespace: 'shop', name: 'web' };
  const set = (phase: string): void =>
    void api.put({ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: key, status: { phase } });
  set('Running');
  const { vmi } = await findMachine(client, [key], NEVER);
  const notes: string[] = [];
  const wait = () =>
    awaitGone(
      { client, key, signal: NEVER, note: (text) => void notes.push(text) },
      { vmi, seconds: 1.5, action: 'stop' },
    );
  await assert.rejects(wait(), /shop\/web still runs after 1\.5 s \(.*coracle stop web -n shop --force\)/);
  assert.deepEqual(notes, ['waiting until the guest of shop/web has shut down']);
  set('Succeeded');
  await wait();
});
