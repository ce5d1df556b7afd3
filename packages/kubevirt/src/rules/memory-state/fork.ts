/** A fork: new virtual machines that go on from the present moment of a running one. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';
import { RESUME_FROM } from './resume-request.ts';

/** On a VirtualMachineSnapshot that includes memory: names of the machines to make of it, separated by commas. */
export const FORK_INTO = 'coracle.dev/fork-into';

/** On a machine that was made so: the one it is a fork of. */
export const FORKED_FROM = 'coracle.dev/forked-from';

/** Machines of one fork: each is a guest that is loaded at once. */
export const MAX_FORKS = 64;

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** The names that a request gives; a text when it is none. */
export function parseForkInto(text: string): readonly string[] | string {
  const names = text.split(',');
  if (names.length > MAX_FORKS) return `a fork makes ${MAX_FORKS} virtual machines at most, not ${names.length}`;
  const bad = names.find((name) => !NAME.test(name));
  if (bad !== undefined) return `${JSON.stringify(bad.slice(0, 64))} is not a valid name for a virtual machine`;
  return new Set(names).size === names.length ? names : 'a name is given twice';
}

/** The names of `count` machines, from those that are free: `PREFIX` itself for one with a prefix of its own. */
export function forkNames(
  vm: string,
  options: {
    readonly count: number;
    readonly prefix?: string | undefined;
    readonly isTaken: (name: string) => boolean;
  },
): string[] {
  const { count, prefix, isTaken } = options;
  if (prefix !== undefined && count === 1 && !isTaken(prefix)) return [prefix];
  const names: string[] = [];
  for (let at = 1; names.length < count; at++) {
    const name = `${prefix ?? `${vm}-fork`}-${at}`;
    if (!isTaken(name)) names.push(name);
  }
  return names;
}

/** Names of the volumes of a machine that are claims'. */
export const claimVolumes = ({ spec }: ReadonlyVm): readonly string[] =>
  (spec.template.spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, dataVolume, ephemeral }) =>
    persistentVolumeClaim || dataVolume || ephemeral ? [name] : [],
  );

/** Of the object, and nothing that a fork takes over. */
const OWN_ANNOTATIONS =
  /^(kubectl\.kubernetes\.io\/last-applied-configuration|coracle\.dev\/.*|kubevirt\.io\/latest-observed-api-version|kubevirt\.io\/storage-observed-api-version)$/;

/** Why no fork is made of a machine as it is; undefined when one can be. */
export function forkObstacle(vm: ReadonlyVm): string | undefined {
  const { spec } = vm;
  if (isConditionTrue(vm, 'RestartRequired'))
    return 'its spec has changed since its guest was started: restart it first';
  if (spec.template.spec?.domain.devices.tpm)
    return 'a TPM is the identity of one guest, and is not shared with a fork';
  return undefined;
}

/**
 * A fork of a machine: its spec and labels, without what is one machine's alone (UUID, serial, MAC addresses, which the
 * server gives anew), and with other claims in the place of its own.
 */
export function forkedMachine(
  vm: ReadonlyVm,
  fork: { readonly name: string; readonly state: string; readonly claims: Readonly<Record<string, string>> },
): VirtualMachine {
  const { metadata } = vm;
  const spec = cloneJson(vm.spec) as VirtualMachine['spec'];
  for (const matcher of [spec.instancetype, spec.preference])
    if (matcher) delete (matcher as { revisionName?: string }).revisionName;
  delete spec.dataVolumeTemplates;
  // A fork is a machine that runs.
  if (spec.runStrategy === 'Manual' || spec.runStrategy === 'Halted') spec.runStrategy = 'RerunOnFailure';
  const inner = spec.template.spec;
  if (inner) {
    const { uuid: _, serial: __, ...firmware } = inner.domain.firmware ?? {};
    if (Object.keys(firmware).length > 0) inner.domain.firmware = firmware;
    else delete inner.domain.firmware;
    for (const nic of inner.domain.devices.interfaces ?? []) delete nic.macAddress;
    for (const volume of inner.volumes ?? []) {
      const claim = fork.claims[volume.name];
      if (claim === undefined) continue;
      delete volume.dataVolume;
      volume.persistentVolumeClaim = { ...volume.persistentVolumeClaim, claimName: claim };
    }
  }
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([name]) => !OWN_ANNOTATIONS.test(name));
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: {
      name: fork.name,
      namespace: metadata.namespace ?? '',
      ...(metadata.labels && { labels: { ...metadata.labels } }),
      annotations: {
        ...Object.fromEntries(annotations),
        [FORKED_FROM]: metadata.name ?? '',
        [RESUME_FROM]: fork.state,
      },
    },
    spec,
  } as VirtualMachine;
}
