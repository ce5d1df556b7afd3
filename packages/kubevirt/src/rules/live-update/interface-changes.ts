/**
 * Interfaces of a virtual machine that change while its instance runs: cables are pulled and put in again. A card that is
 * added needs a network by multus, of which there is none here: that is said, and no restart would help.
 */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstance, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import type { LiveUpdateVerdict, PatchOperation } from './live-update-verdict.ts';
import { mergeNamed } from './merge-named.ts';
import { isMoving } from './pending-changes.ts';

type Spec = DeepReadonly<VirtualMachineInstanceSpec>;

const interfacesOf = (spec: Spec) => spec.domain?.devices?.interfaces ?? [];

/** True for a card that upstream plugs while a guest runs: of a network beside that of Pods. */
const isSecondary = (spec: Spec, name: string): boolean =>
  spec.networks?.some((network) => network.name === name && network.multus !== undefined && !network.multus.default) ??
  false;

/** Decides on the states of the instance's interfaces; each change stands behind a test of what it replaces. */
export function interfacesVerdict({
  wanted,
  vmi,
}: {
  readonly wanted: Spec;
  readonly vmi: DeepReadonly<VirtualMachineInstance>;
}): LiveUpdateVerdict {
  const patch: PatchOperation[] = [];
  let failure: LiveUpdateVerdict['failure'];
  const fail = (message: string): void => {
    failure ??= { reason: 'HotPlugNetworkInterfaceError', message };
  };
  const here = interfacesOf(vmi.spec);
  for (const nic of interfacesOf(wanted)) {
    const at = here.findIndex(({ name }) => name === nic.name);
    const now = here[at];
    if (!now) {
      if (isSecondary(wanted, nic.name) && nic.state !== 'absent')
        fail(`interface ${nic.name} cannot be plugged in: multus networks are not supported`);
    } else if ((nic.state ?? '') !== (now.state ?? '')) {
      const path = `/spec/domain/devices/interfaces/${at}`;
      patch.push({ op: 'test', path: `${path}/name`, value: nic.name });
      if (nic.state === undefined) patch.push({ op: 'remove', path: `${path}/state` });
      else patch.push({ op: 'add', path: `${path}/state`, value: nic.state });
    }
  }
  if (patch.length > 0 && isMoving(vmi)) {
    fail('interfaces are not changed while the VMI is migrating');
    return { patch: [], ...(failure && { failure }) };
  }
  return { patch, ...(failure && { failure }) };
}

/** Gives `started` the states, and the added secondary cards, of `current`, so that only other differences are left. Changes `started`. */
export function neutraliseInterfaces(started: VirtualMachineInstanceSpec, current: VirtualMachineInstanceSpec): void {
  const now = new Map(interfacesOf(current).map((nic) => [nic.name, nic]));
  const { devices } = started.domain ?? {};
  const before = devices?.interfaces ?? [];
  for (const nic of before) {
    const state = now.get(nic.name)?.state;
    if (!now.has(nic.name)) continue;
    if (state === undefined) delete nic.state;
    else nic.state = state;
  }
  const added = new Set(
    [...now.keys()].filter((name) => isSecondary(current, name) && !before.some((nic) => nic.name === name)),
  );
  if (added.size === 0 || !started.domain) return;
  const isAdded = (name: string): boolean => added.has(name);
  const interfaces = mergeNamed(before, current.domain.devices.interfaces ?? [], isAdded);
  started.domain.devices = { ...devices, interfaces };
  started.networks = mergeNamed(started.networks ?? [], current.networks ?? [], isAdded);
}
