/** What a decision about a deletion is made of: the object, and what is known of machines. */

import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyContent, ReadonlyRestore, ReadonlyVm } from '../../kinds/kubevirt.ts';
import type { ResourceName } from './references.ts';

/** A machine that is guarding (`guardsItsParts`). */
export interface GuardingMachine {
  readonly namespace: string;
  readonly name: string;
  /** Read only where it decides; a getter where reading costs something. */
  readonly object: ReadonlyVm;
  /** Of a machine that refers to what was asked for: the field that does, where that is known without reading the object. */
  readonly field?: string;
  /** It is known by a write that is not durable yet. */
  readonly pending?: boolean;
}

/** Some machines, and how many they are, known without walking through them. */
export type Machines = Iterable<GuardingMachine> & {
  readonly size: number;
  /** The first `count` by namespace and name of the first `among` that come, where that is known for less. */
  readonly first?: (count: number, among: number) => readonly GuardingMachine[];
};

/** An object that is to be deleted. */
export interface DeletionTarget extends ResourceName {
  /** '' for cluster-scoped kinds. */
  readonly namespace: string;
  readonly name: string;
  /** As it is stored. */
  readonly object: ReadonlyObject;
  /** The request comes from one of KubeVirt's own components. */
  readonly component?: boolean;
}

/** What is known of machines and of what belongs to them. */
export interface ProtectionLookup {
  /** Guarding machines whose `referencesOf` name the object. */
  referring(resource: ResourceName, key: { readonly namespace: string; readonly name: string }): Machines;
  /** Guarding machines whose `referencesOf` name any object of the kind. */
  referringToKind(resource: ResourceName): Machines;
  /** All guarding machines, of one namespace or of all. */
  machines(namespace?: string): Machines;
  /** The machine of that name, when it is guarding. */
  machine(namespace: string, name: string): GuardingMachine | undefined;
  claim(namespace: string, name: string): ReadonlyClaim | undefined;
  /** Claims labelled `persistent-state-for=<machine>`. */
  stateClaims(namespace: string, machine: string): Iterable<ReadonlyClaim>;
  /** Names of the KubeVirt objects of a namespace that are not being deleted. */
  kubevirts(namespace: string): readonly string[];
  /** Restores of the namespace that are under way (`isUnderWay`). */
  restores(namespace: string): Iterable<ReadonlyRestore>;
  /** The content of a VirtualMachineSnapshot. */
  content(namespace: string, snapshot: string): ReadonlyContent | undefined;
}
