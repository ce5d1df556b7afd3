/** Objects for the tests of this room. */

import type { Pod } from '../../../../apimachinery/src/types/types.ts';
import type { ReadonlyMigration, ReadonlyVmi } from '../../kinds/kubevirt.ts';

export const migrationOf = (
  name: string,
  over: { metadata?: object; spec?: object; status?: object } = {},
): ReadonlyMigration =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: {
      name,
      namespace: 'ns',
      uid: `uid-${name}`,
      creationTimestamp: '2030-01-01T00:00:00Z',
      ...over.metadata,
    },
    spec: { vmiName: 'a', ...over.spec },
    ...(over.status && { status: over.status }),
  }) as ReadonlyMigration;

export const vmiOf = (status: object = {}, metadata: object = {}): ReadonlyVmi =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'a', namespace: 'ns', uid: 'vmi', ...metadata },
    spec: { domain: { devices: {} } },
    status: { phase: 'Running', nodeName: 'n1', ...status },
  }) as unknown as ReadonlyVmi;

export const podOf = (phase: string, over: { metadata?: object; status?: object; node?: string } = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'ns', uid: 'pod', creationTimestamp: '2030-01-01T00:00:00Z', ...over.metadata },
    spec: { nodeName: over.node ?? 'n2', containers: [{ name: 'compute', image: 'l' }] },
    status: {
      phase,
      ...(phase === 'Running' && { containerStatuses: [{ name: 'compute', ready: true, state: { running: {} } }] }),
      ...over.status,
    },
  }) as unknown as Pod;
