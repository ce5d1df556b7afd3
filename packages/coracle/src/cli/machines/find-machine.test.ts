import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from '../../../../client/src/create-client.ts';
import { createFakeApi } from '../../../../client/src/fake-api.fixture.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../../../kubevirt/src/kinds/kubevirt.ts';
import { NEVER } from '../../../../runtime/src/http/seam.ts';
import { machineTargets } from '../machine-target.ts';
import { findMachine, needInstance } from './find-machine.ts';

// S-366
test('findMachine() finds the machine, and needInstance() says of a stopped one that it is stopped', async () => {
  const api = createFakeApi([VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES]);
  const client = createClient(api.handler);
  const put = (kind: string, namespace: string, name: string, status: object): void =>
    void api.put({ apiVersion: 'kubevirt.io/v1', kind, metadata: { namespace, name }, spec: {}, status });
  put('VirtualMachineInstance', 'b', 'a', { phase: 'Running' });
  put('VirtualMachineInstance', 'ctx', 'over', { phase: 'Succeeded' });
  put('VirtualMachine', 'ctx', 'off', { printableStatus: 'Stopped' });
  put('VirtualMachine', 'ctx', 'waits', { printableStatus: 'Provisioning' });
  const find = async (word: string) => {
    const found = await findMachine(client, machineTargets(word, { given: undefined, ofContext: 'ctx' }), NEVER);
    needInstance(found);
    return found.key;
  };
  assert.deepEqual(await find('a.b'), { namespace: 'b', name: 'a' });
  await assert.rejects(find('vm/off'), /^Error: ctx\/off is stopped \(start it: coracle start off -n ctx\)/);
  await assert.rejects(find('waits'), /ctx\/waits is not running \(Provisioning;/);
  await assert.rejects(find('over'), /ctx\/over has ended \(Succeeded;/);
  await assert.rejects(find('x.y'), /there is no machine ctx\/x\.y, nor y\/x/);
  await assert.rejects(find('wiats'), /there is no machine ctx\/wiats; did you mean waits\?/);
});
