/** The kinds of coracle.dev as TypeScript types, and their names as clients use them. */
import { clusterType, namespacedType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { PersistentVolume } from '@coracle/apimachinery/types/types';

export const CORACLE_GROUP = 'coracle.dev';
export const CORACLE_VERSION = 'v1alpha1';

/** What somebody asks for who wants a machine back. A new `id` is a new request. */
export interface UndeleteRequest {
  id: string;
  /** Name of the machine; that of before when absent. */
  name?: string;
  /** Gives it another firmware UUID, serial number and MAC addresses. */
  newIdentity?: boolean;
}

/**
 * `Deleted`: kept. `Undeleting`: on its way back. `Reverting`: it could not come back, and what was made for it goes.
 * `Undeleted`: it is back, and the record goes.
 */
export const BIN_PHASES = ['Deleted', 'Undeleting', 'Reverting', 'Undeleted'] as const;
export type BinPhase = (typeof BIN_PHASES)[number];

/** What is known of a deleted machine, in both kinds. */
export interface BinStatus {
  phase?: BinPhase;
  /** RFC 3339; absent until the machine is really gone. */
  goneAt?: string;
  /** RFC 3339: when its storage is released, at the latest. */
  expiresAt?: string;
  /** Bytes of its disks in pools of ours. */
  usedBytes?: number;
  /** What it waits for, or why the last request failed. */
  message?: string;
  /** `id` of the request that failed last. */
  failedRequest?: string;
}

/** What tenants see of a deleted machine of their namespace. */
export interface DeletedVirtualMachine extends KubeObject {
  spec: {
    virtualMachine: { name: string; uid: string };
    /** Name of the DeletedVirtualMachineContent. */
    content: string;
    /** RFC 3339. */
    deletedAt: string;
    deletedBy?: string;
    /** Disks that are kept. */
    disks?: number;
    undelete?: UndeleteRequest;
  };
  status?: BinStatus;
}

/** The volume of a claim that went with the machine. */
export interface HeldVolume {
  /** Name of the claim. */
  claim: string;
  /** As it was when the machine was deleted. */
  volume: PersistentVolume;
  /** Pool and handle where it is one of ours, whose content is kept. */
  pool?: string;
  handle?: string;
}

/** An object that an undelete makes, under a name that may differ from that of before. */
export interface PlannedName {
  kind: string;
  name: string;
  newName: string;
}

/** What an undelete under way has decided: it does the same after a restart. */
export interface UndeletePlan {
  request: string;
  namespace: string;
  name: string;
  newIdentity?: boolean;
  /** Only those that change. */
  names?: PlannedName[];
}

/** The objects of a deleted machine. */
export interface DeletedVirtualMachineContent extends KubeObject {
  spec: {
    virtualMachine: { namespace: string; name: string; uid: string };
    namespaceUID: string;
    /** Name of the DeletedVirtualMachine in that namespace; absent when the namespace was deleted with the machine. */
    record?: string;
    deletedAt: string;
    deletedBy?: string;
    /** Bytes of `objects` and `volumes`. */
    bytes: number;
    /** The machine first, then what went with it. */
    objects: KubeObject[];
    volumes?: HeldVolume[];
    /** Asked for by an administrator; `namespace` must be there. */
    undelete?: UndeleteRequest & { namespace?: string };
  };
  status?: BinStatus & { plan?: UndeletePlan };
}

const API_VERSION = `${CORACLE_GROUP}/${CORACLE_VERSION}`;
export const DELETED_VIRTUAL_MACHINES = namespacedType<DeletedVirtualMachine>(
  API_VERSION,
  'deletedvirtualmachines',
  'DeletedVirtualMachine',
);
export const DELETED_VIRTUAL_MACHINE_CONTENTS = clusterType<DeletedVirtualMachineContent>(
  API_VERSION,
  'deletedvirtualmachinecontents',
  'DeletedVirtualMachineContent',
);
