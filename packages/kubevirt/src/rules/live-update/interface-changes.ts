/**
 * Interfaces of a virtual machine that change while its instance runs: cables are pulled and put in again, and cards on
 * networks beside that of Pods come, and go by `state: absent`
 * (https://kubevirt.io/user-guide/network/hotplug_interfaces/).
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { ReadonlyVmi, VirtualMachine, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import type { LiveUpdateDecision, PatchOperation } from './live-update-decision.ts';
import { mergeNamed } from './merge-named.ts';
import { isMoving } from './pending-changes.ts';

type Spec = DeepReadonly<VirtualMachineInstanceSpec>;

const interfacesOf = (spec: Spec) => spec.domain?.devices?.interfaces ?? [];

/** True for a card that upstream plugs while a guest runs: of a network beside that of Pods. */
const isSecondary = (spec: Spec, name: string): boolean => {
  const network = spec.networks?.find((one) => one.name === name)?.multus;
  const nic = interfacesOf(spec).find((one) => one.name === name);
  return network !== undefined && !network.default && (nic?.bridge !== undefined || nic?.sriov !== undefined);
};

/** Decides on the instance's interfaces; each change stands behind a test of what it replaces. */
export function interfacesDecision({
  wanted,
  vmi,
}: {
  readonly wanted: Spec;
  readonly vmi: ReadonlyVmi;
}): LiveUpdateDecision {
  const patch = patchOf(wanted, vmi);
  if (patch.length === 0 || !isMoving(vmi)) return { patch };
  const message = 'interfaces are not changed while the VMI is migrating';
  return { patch: [], failure: { reason: 'HotPlugNetworkInterfaceError', message } };
}

function patchOf(wanted: Spec, { spec, status }: ReadonlyVmi): PatchOperation[] {
  const here = interfacesOf(spec);
  const changed = here.map((nic) => {
    const to = interfacesOf(wanted).find(({ name }) => name === nic.name);
    if (!to || (to.state ?? '') === (nic.state ?? '')) return nic;
    const { state: _, ...rest } = nic;
    return { ...rest, ...(to.state !== undefined && { state: to.state }) };
  });
  const added = interfacesOf(wanted).filter(
    ({ name, state, bridge }) =>
      state !== 'absent' && bridge && isSecondary(wanted, name) && !here.some((nic) => nic.name === name),
  );
  // What the guest has let go of is forgotten, so that it can come again.
  const has = new Set((status?.interfaces ?? []).map(({ name }) => name));
  const gone = new Set(
    changed.filter(({ name, state }) => state === 'absent' && !has.has(name)).map(({ name }) => name),
  );
  const names = new Set(added.map(({ name }) => name));
  const networks = (spec.networks ?? []).filter(({ name }) => !gone.has(name) && !names.has(name));
  const brought = (wanted.networks ?? []).filter(({ name }) => names.has(name));
  return [
    ...listPatch('/spec/domain/devices/interfaces', spec.domain.devices.interfaces, [
      ...changed.filter(({ name }) => !gone.has(name)),
      ...added,
    ]),
    ...listPatch('/spec/networks', spec.networks, [...networks, ...brought]),
  ];
}

/** Path of a template's interfaces in `managedFields`. */
const INTERFACES_FIELD = ['f:spec', 'f:template', 'f:spec', 'f:domain', 'f:devices', 'f:interfaces'];

/** What a client declares by server-side apply, a repository too, is its own to change. */
const isDeclared = ({ metadata }: VirtualMachine): boolean =>
  (metadata.managedFields ?? []).some(({ operation, fieldsV1 }) => {
    let at: unknown = operation === 'Apply' ? fieldsV1 : undefined;
    for (const field of INTERFACES_FIELD) at = isJsonObject(at) ? at[field] : undefined;
    return at !== undefined;
  });

/** Takes cards that are `absent`, and that the running guest has let go of, out of the template, unless it is declared. Changes `vm`. */
export function clearAbsent(vm: VirtualMachine, { spec, status }: ReadonlyVmi): void {
  const template = vm.spec.template?.spec;
  if (!template?.domain || status?.phase !== 'Running') return;
  const has = new Set([...interfacesOf(spec), ...(status?.interfaces ?? [])].map(({ name }) => name));
  const gone = new Set(
    interfacesOf(template)
      .filter(({ name, state }) => state === 'absent' && !has.has(name))
      .map(({ name }) => name),
  );
  if (gone.size === 0 || isDeclared(vm)) return;
  const kept = ({ name }: { readonly name: string }): boolean => !gone.has(name);
  template.domain.devices.interfaces = (template.domain.devices.interfaces ?? []).filter(kept);
  template.networks = (template.networks ?? []).filter(kept);
}

function listPatch(path: string, before: unknown, after: readonly unknown[]): PatchOperation[] {
  if (deepEqual(before ?? [], after)) return [];
  const same: PatchOperation[] = before === undefined ? [] : [{ op: 'test', path, value: before }];
  return [...same, { op: 'add', path, value: after }];
}

/**
 * Gives `started` the states, and the added secondary cards, of `current`, and takes from it those that `running` has let go
 * of, so that only other differences are left. One that runs and was taken out of `current` is a difference. Changes `started`.
 */
export function neutraliseInterfaces(
  started: VirtualMachineInstanceSpec,
  current: VirtualMachineInstanceSpec,
  running?: Spec,
): void {
  const now = new Map(interfacesOf(current).map((nic) => [nic.name, nic]));
  const { devices } = started.domain ?? {};
  const runs = (name: string): boolean => !running || interfacesOf(running).some((nic) => nic.name === name);
  const before = (devices?.interfaces ?? []).filter(
    ({ name }) => now.has(name) || runs(name) || !isSecondary(started, name),
  );
  for (const nic of before) {
    const state = now.get(nic.name)?.state;
    if (!now.has(nic.name)) continue;
    if (state === undefined) delete nic.state;
    else nic.state = state;
  }
  const kept = new Set(before.map(({ name }) => name));
  const lost = (devices?.interfaces ?? []).filter(({ name }) => !kept.has(name)).map(({ name }) => name);
  const added = new Set([...now.keys()].filter((name) => isSecondary(current, name) && !kept.has(name)));
  const left = running
    ? interfacesOf(running).filter(
        ({ name, state }) => state !== 'absent' && isSecondary(running, name) && !now.has(name) && !kept.has(name),
      )
    : [];
  if (added.size + lost.length + left.length === 0 || !started.domain) return;
  const isAdded = (name: string): boolean => added.has(name);
  const interfaces = mergeNamed(before, current.domain.devices.interfaces ?? [], isAdded);
  const networks = (started.networks ?? []).filter(({ name }) => !lost.includes(name));
  started.domain.devices = { ...devices, interfaces: [...interfaces, ...left.map(({ name }) => ({ name }))] };
  started.networks = mergeNamed(networks, current.networks ?? [], isAdded);
}
