import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../test/testkit/partly.ts';
import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import { createClient } from '../../../client/src/create-client.ts';
import { createFakeApi } from '../../../client/src/fake-api.fixture.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '../../../kubevirt/src/kinds/kinds.ts';
import { RESUME_FROM } from '../../../kubevirt/src/rules/memory-state/resume-request.ts';
import { followFork } from './fork.ts';

const namespace = 'ns';
const metadata = (name: string, annotations = {}) => ({ namespace, name, annotations });

/** A fork that was asked for, and the hands of the controllers. */
function begin(names: readonly string[]) {
  const api = createFakeApi([VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINE_SNAPSHOTS]);
  const client = createClient(api.handler);
  const printed: string[] = [];
  const snapshot = api.put({
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: metadata('asked'),
  });
  return {
    api,
    printed,
    instance: (name: string, phase: string): void =>
      void api.put({
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: metadata(name),
        status: { phase },
      }),
    machine: (name: string, waits: boolean): void =>
      void api.put({
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: metadata(name, waits ? { [RESUME_FROM]: 'state' } : {}),
      }),
    end: (): void => api.remove(VIRTUAL_MACHINE_SNAPSHOTS, namespace, 'asked'),
    follow: (signal = new AbortController().signal) =>
      followFork(
        { flags: {}, print: (text) => void printed.push(text), signal },
        { client, namespace, snapshot: partly(snapshot), names },
      ),
  };
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn++) await new Promise((next) => setImmediate(next));
};

// S-872: `coracle fork` hears of the end by watching, asks nothing because of other machines, and learns of it too
//   where it may not watch.
test('a fork is done when each of its machines runs and needs the saved memory no more', async () => {
  const { api, instance, machine, end, follow, printed } = begin(['a', 'b']);
  const done = follow();
  for (const name of ['a', 'b', 'other']) {
    machine(name, true);
    instance(name, 'Scheduling');
    instance(name, 'Running');
  }
  await turns();
  assert.deepEqual(printed, []);
  machine('b', false);
  await turns();
  assert.deepEqual(printed, ['virtualmachine.kubevirt.io/b runs']);
  const asked = api.requests.length;
  for (let news = 0; news < 20; news++) instance('other', 'Running');
  await turns();
  assert.equal(api.requests.length, asked, 'nothing is asked because of other machines');
  machine('a', false);
  end();
  assert.equal(await done, 0);
  assert.deepEqual(printed, ['virtualmachine.kubevirt.io/b runs', 'virtualmachine.kubevirt.io/a runs']);
});

// S-872
test('a fork that the server has given up names the machines that do not run', async () => {
  const { machine, instance, end, follow } = begin(['a', 'b']);
  const done = follow();
  machine('a', false);
  instance('a', 'Running');
  await turns();
  end();
  await assert.rejects(done, /^Error: not forked: b \(kubectl get events -n ns/);
});

// S-872
test('who may not watch learns of the end all the same', async () => {
  const { api, machine, instance, follow, printed } = begin(['a']);
  api.intercept = ({ query }) => {
    if (query.includes('watch=true')) throw new ApiError({ code: 403, reason: 'Forbidden', message: 'no watching' });
  };
  const done = follow();
  await turns();
  machine('a', false);
  instance('a', 'Running');
  assert.equal(await done, 0);
  assert.deepEqual(printed, ['virtualmachine.kubevirt.io/a runs']);
});

test('an interrupted command ends at once', async () => {
  const { follow } = begin(['a']);
  const stop = new AbortController();
  const done = follow(stop.signal);
  await turns();
  stop.abort(new Error('interrupted'));
  await assert.rejects(done, /interrupted/);
});
