/** The patches of clones on what restores make of saved machines. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SourceVirtualMachine, VirtualMachineClone, VirtualMachineRestore } from '../../kinds/kubevirt.ts';
import { IDENTITY_ORIGIN } from '../identity/decide-identity.ts';
import { RESUME_FALLBACK, RESUME_FROM } from '../memory-state/resume-request.ts';
import { restoredMachine } from '../snapshot/restored-machine.ts';
import { cloneRestore } from './clone-objects.ts';
import { type CloneSource, clonePatches } from './clone-patches.ts';

const UUID = 'e9d8a4f0-7a3c-4f27-9a53-0d7c1f3f5a11';
const KEYS = ['note', IDENTITY_ORIGIN, RESUME_FROM, RESUME_FALLBACK, 'restore.kubevirt.io/lastRestoreUID'];

const savedOf = (firmware: object | undefined): SourceVirtualMachine =>
  ({
    metadata: {
      name: 'db',
      namespace: 'ns',
      labels: { app: 'db' },
      annotations: Object.fromEntries(KEYS.map((key) => [key, 'x'])),
    },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          domain: {
            devices: { interfaces: [{ name: 'a', macAddress: '02:00:00:00:00:01' }] },
            ...(firmware && { firmware }),
          },
        },
      },
    },
  }) as unknown as SourceVirtualMachine;

describe('clonePatches() on a restored machine', () => {
  for (const target of ['copy', 'db'])
    for (const firmware of [undefined, { uuid: UUID, serial: 's' }])
      it(`fit, to ${target}, ${firmware ? 'with' : 'without'} firmware, whatever the restore leaves out`, () => {
        const saved = savedOf(firmware);
        const clone = {
          apiVersion: 'clone.kubevirt.io/v1beta1',
          kind: 'VirtualMachineClone',
          metadata: { name: 'c', namespace: 'ns', uid: 'u' },
          spec: {
            source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' },
            target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: target },
            annotationFilters: [],
            labelFilters: [],
          },
        } as VirtualMachineClone;
        const patches = clonePatches(saved as CloneSource, { spec: clone.spec, uid: 'u' });
        const restore: VirtualMachineRestore = cloneRestore(clone, { snapshotName: 's', patches });
        restore.metadata.uid = 'restore-uid';
        const machine = restoredMachine({ restore, saved, target: undefined, restores: [], revisions: {} });
        assert.deepEqual(machine.metadata.annotations?.['note'], undefined);
        assert.equal(machine.metadata.annotations?.[RESUME_FROM], undefined);
        assert.deepEqual(machine.metadata.labels, {});
        const { domain } = machine.spec.template.spec!;
        assert.deepEqual([domain.firmware?.uuid, domain.firmware?.serial], ['', '']);
        assert.deepEqual(domain.devices.interfaces, [{ name: 'a' }]);
      });
});
