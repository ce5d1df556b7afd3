import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from '../../../client/src/create-client.ts';
import { createFakeApi } from '../../../client/src/fake-api.fixture.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../../kubevirt/src/kinds/kubevirt.ts';
import { machineTargets, runningMachine } from './machine-target.ts';

const texts = (word: string, given?: string): string[] =>
  machineTargets(word, { given, ofContext: 'ctx' }).map(({ namespace, name }) => `${namespace}/${name}`);

// S-366: `console` takes NAME, `vm/NAME`, `vmi/NAME` and NAME.NAMESPACE, in the context's namespace or that of `-n`,
//   and says of a stopped machine that it is stopped; `drain` takes `node/NAME`.
test('machineTargets() reads each form of a name', () => {
  for (const [word, given, expected] of [
    ['a', undefined, ['ctx/a']],
    ['a', 'n', ['n/a']],
    ['vm/a', undefined, ['ctx/a']],
    ['vmi/a', undefined, ['ctx/a']],
    ['virtualmachines.kubevirt.io/a', undefined, ['ctx/a']],
    ['a.b', undefined, ['ctx/a.b', 'b/a']],
    ['vmi/a.b.c', undefined, ['ctx/a.b.c', 'c/a.b']],
    ['a.b', 'n', ['n/a.b']],
  ] as const)
    assert.deepEqual(texts(word, given), expected, word);
  for (const word of ['pod/a', 'vm/', 'vm/a/b', '/a']) assert.throws(() => texts(word), /a machine is named/, word);
});

// S-366
test('runningMachine() finds the instance, and says of a stopped machine that it is stopped', async () => {
  const api = createFakeApi([VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES]);
  const client = createClient(api.handler);
  const put = (kind: string, namespace: string, name: string, status: object): void =>
    void api.put({ apiVersion: 'kubevirt.io/v1', kind, metadata: { namespace, name }, spec: {}, status });
  put('VirtualMachineInstance', 'b', 'a', { phase: 'Running' });
  put('VirtualMachineInstance', 'ctx', 'over', { phase: 'Succeeded' });
  put('VirtualMachine', 'ctx', 'off', { printableStatus: 'Stopped' });
  put('VirtualMachine', 'ctx', 'waits', { printableStatus: 'Provisioning' });
  const find = (word: string) => runningMachine(client, machineTargets(word, { given: undefined, ofContext: 'ctx' }));
  assert.deepEqual(await find('a.b'), { namespace: 'b', name: 'a' });
  await assert.rejects(find('vm/off'), /^Error: ctx\/off is stopped: .*virtctl start off -n ctx/);
  await assert.rejects(find('waits'), /ctx\/waits is not running \(Provisioning\)/);
  await assert.rejects(find('over'), /ctx\/over has ended \(Succeeded\)/);
  await assert.rejects(find('x.y'), /there is no machine ctx\/x\.y, nor y\/x/);
});
