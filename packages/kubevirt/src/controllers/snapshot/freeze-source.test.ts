import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { Client } from '../../../../client/src/client.ts';
import type { VirtualMachineSnapshot } from '../../kinds/kubevirt.ts';
import { freezeSource, thawSource } from './freeze-source.ts';
import type { SourceState } from './source-state.ts';

const source = (more: Partial<SourceState>): SourceState => ({
  vm: partly({ metadata: { name: 'a', namespace: 'n' } }),
  vmi: undefined,
  uid: 'u',
  online: true,
  paused: false,
  guestAgent: true,
  frozen: false,
  locked: true,
  lockMessage: '',
  ...more,
});
const snapshot = (failureDeadline?: string): VirtualMachineSnapshot =>
  ({ spec: { ...(failureDeadline !== undefined && { failureDeadline }) } }) as VirtualMachineSnapshot;

describe('freezeSource() and thawSource()', () => {
  const cases: [name: string, state: Partial<SourceState>, freezes: boolean, thaws: boolean][] = [
    ['a guest with an agent', {}, true, true],
    ['a guest that is frozen already', { frozen: true }, false, true],
    ['a guest without an agent', { guestAgent: false }, false, false],
    ['a paused guest', { paused: true }, false, false],
    ['a machine that is off', { online: false }, false, false],
  ];
  for (const [name, state, freezes, thaws] of cases)
    it(name, async () => {
      const calls: string[] = [];
      const client = {
        raw: async (method: string, path: string) => void calls.push(`${method} ${path.split('/').at(-1)}`),
      } as unknown as Client;
      await freezeSource(source(state), snapshot(), client);
      await thawSource(source(state), client);
      assert.deepEqual(calls, [...(freezes ? ['PUT freeze'] : []), ...(thaws ? ['PUT unfreeze'] : [])]);
    });
  it('tells the node when to thaw by itself', async () => {
    const bodies: unknown[] = [];
    const client = {
      raw: async (_: string, path: string, { body }: { body?: unknown } = {}) => void bodies.push([path, body]),
    } as unknown as Client;
    await freezeSource(source({}), snapshot(), client);
    await freezeSource(source({}), snapshot('90s'), client);
    const path = '/apis/subresources.kubevirt.io/v1/namespaces/n/virtualmachineinstances/a/freeze';
    assert.deepEqual(bodies, [
      [path, { unfreezeTimeout: '5m0s' }],
      [path, { unfreezeTimeout: '90s' }],
    ]);
  });
  it('freezes nothing that is not locked', async () => {
    await assert.rejects(
      freezeSource(source({ locked: false }), snapshot(), {} as Client),
      /attempting to freeze unlocked VM/,
    );
  });
});
