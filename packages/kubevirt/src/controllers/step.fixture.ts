/** Tables of the steps of controllers: what all of them need. */
import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import * as core from '../../../apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../../apimachinery/src/types/types.ts';
import { type StepRow, type StepSetting, stored, testTable } from '../../../client/src/run-step.fixture.ts';
import * as volumeSnapshots from '../../../cluster-rules/src/volume-snapshot/kinds.ts';
import * as cdi from '../kinds/kinds.ts';
import * as coracle from '../kinds/kinds.ts';
import * as kubevirt from '../kinds/kubevirt.ts';
import { CREATED_BY_LABEL, LAUNCHER_LABEL, LAUNCHER_VALUE, UNPAUSED_GATE } from '../rules/launcher/launcher-labels.ts';
import { VM_FINALIZER } from '../rules/machine-defaults/hold-machine.ts';

/** Makes a test of each row. */
export const testSteps = <S>(setting: Omit<StepSetting<S>, 'types'>, rows: readonly StepRow<S>[]): void =>
  testTable({ ...setting, types: [core, volumeSnapshots, cdi, coracle, kubevirt].flatMap(valuesOf) }, rows);

const valuesOf = (kinds: object): unknown[] => Object.values(kinds);

/** The key of the machine of these tables. */
export const KEY = { namespace: 'ns', name: 'vm' };

export const REFUSED = new ApiError({ code: 403, reason: 'Forbidden', message: 'not now' });
export const CONFLICT = new ApiError({ code: 409, reason: 'Conflict', message: 'another one' });
export const GONE = new ApiError({ code: 404, reason: 'NotFound', message: 'gone' });

export const settings = () => ({ cpuAllocationRatio: 10, useEmulation: true, launcherImage: 'l' });

type Vm = kubevirt.VirtualMachine;
type Vmi = kubevirt.VirtualMachineInstance;
const SPEC = { domain: { devices: {}, memory: { guest: '64Mi' } } };

/** A machine that its controller holds. */
export const machine = (
  spec: Partial<Vm['spec']>,
  status: Vm['status'] = {},
  metadata: Partial<Vm['metadata']> = {},
): Vm =>
  stored(kubevirt.VIRTUAL_MACHINES, 'vm', {
    metadata: { generation: 1, finalizers: [VM_FINALIZER], ...metadata },
    spec: { template: { spec: SPEC }, ...spec },
    status,
  });

/** The instance of that machine. */
export const instance = (
  status: Vmi['status'] = {},
  metadata: Partial<Vmi['metadata']> = {},
  spec: Partial<Vmi['spec']> = {},
): Vmi => {
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm', uid: 'uid-vm', controller: true };
  return stored(kubevirt.VIRTUAL_MACHINE_INSTANCES, 'vm', {
    metadata: { uid: 'uid-vmi', ownerReferences: [owner], ...metadata },
    spec: { ...SPEC, ...spec },
    status,
  });
};

/** The launcher Pod, on `n1`, of the instance of this uid. A finalizer keeps it when it is deleted. */
export const launcher = (
  uid: string,
  metadata: Partial<Pod['metadata']> = {},
  status: Pod['status'] = { phase: 'Running' },
): Pod =>
  stored(core.PODS, 'launcher', {
    metadata: {
      ownerReferences: [
        { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm', uid, controller: true },
      ],
      finalizers: ['x'],
      ...metadata,
      labels: { [LAUNCHER_LABEL]: LAUNCHER_VALUE, [CREATED_BY_LABEL]: uid, ...metadata.labels },
    },
    spec: { nodeName: 'n1', containers: [], readinessGates: [{ conditionType: UNPAUSED_GATE }] },
    status,
  });
