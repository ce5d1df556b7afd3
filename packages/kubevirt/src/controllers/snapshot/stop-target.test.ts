import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Part, partly } from '../../../../../test/testkit/partly.ts';
import type { Client } from '../../../../client/src/client.ts';
import type { RunStrategy, VirtualMachine, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { stopTarget } from './stop-target.ts';

const vm = (runStrategy: RunStrategy, status: Part<VirtualMachine['status']> = {}): VirtualMachine =>
  partly({ metadata: { name: 'a', namespace: 'n' }, spec: { runStrategy }, status });
const vmi = (more: object = {}): VirtualMachineInstance => partly({ metadata: { uid: 'u', ...more } });
const stop: Part<VirtualMachine['status']> = { stateChangeRequests: [{ action: 'Stop', uid: 'u' }] };

describe('stopTarget()', () => {
  const cases: [name: string, VirtualMachine, VirtualMachineInstance | undefined, asks: boolean][] = [
    ['a machine that runs', vm('Always'), vmi(), true],
    ['one that is started by hand', vm('Manual'), vmi(), true],
    ['one without an instance', vm('Always'), undefined, false],
    ['one that is asked already', vm('Halted'), vmi(), false],
    ['one whose instance was asked to stop', vm('Manual', stop), vmi(), false],
    ['one whose instance before was asked to stop', vm('Manual', stop), vmi({ uid: 'v' }), true],
    ['one whose instance is on its way out', vm('Always'), vmi({ deletionTimestamp: 'x' }), false],
  ];
  for (const [name, machine, instance, asks] of cases)
    it(`${asks ? 'asks' : 'leaves alone'} ${name}`, async () => {
      const calls: string[] = [];
      const client = { raw: async (method: string, path: string) => void calls.push(`${method} ${path}`) };
      await stopTarget(machine, instance, client as unknown as Client);
      const path = 'PUT /apis/subresources.kubevirt.io/v1/namespaces/n/virtualmachines/a/stop';
      assert.deepEqual(calls, asks ? [path] : []);
    });
});
