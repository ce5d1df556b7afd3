/** A pass over a clone named `c` of the machine `db` to `copy`, in a cluster of given objects. */
import type {
  CloneStatus,
  VirtualMachine,
  VirtualMachineClone,
  VirtualMachineRestore,
  VirtualMachineSnapshot,
  VirtualMachineSnapshotContent,
} from '../../kinds/kubevirt.ts';
import type { ClonePass } from './clone-pass.ts';

export const SNAPSHOT = 'tmp-snapshot-uid-c';
export const RESTORE = 'tmp-restore-uid-c';
const OWNED = { ownerReferences: [{ kind: 'VirtualMachineClone', name: 'c', uid: 'uid-c' }] };

export interface Objects {
  readonly machines?: Readonly<Record<string, object>>;
  readonly snapshots?: Readonly<Record<string, object>>;
  readonly contents?: Readonly<Record<string, object>>;
  readonly restores?: Readonly<Record<string, object>>;
  /** Phases of claims. */
  readonly claims?: Readonly<Record<string, string>>;
  /** What a creation is answered with. */
  readonly refusal?: string;
}

export interface PlayedPass {
  readonly pass: ClonePass;
  /** `Type Reason Message` of the events. */
  readonly events: string[];
  /** `create snapshot NAME` and the like, in order. */
  readonly writes: string[];
  /** What was created. */
  readonly created: unknown[];
}

export const machineOf = (spec: object = {}, rest: object = {}): object => ({
  spec: { template: { spec: { domain: { devices: {} }, ...spec } } },
  ...rest,
});
export const contentOf = (volumes: readonly string[] = [], saved: readonly string[] = volumes): object => ({
  spec: {
    virtualMachineSnapshotName: SNAPSHOT,
    source: {
      virtualMachine: {
        metadata: { name: 'db' },
        ...machineOf({ volumes: volumes.map((name) => ({ name, persistentVolumeClaim: { claimName: name } })) }),
      },
    },
    volumeBackups: saved.map((volumeName) => ({ volumeName })),
  },
});
export const snapshotOf = (status: object, rest: object = {}): object => ({
  metadata: { uid: 'uid-s', ...OWNED },
  status: { virtualMachineSnapshotContentName: 'content', ...status },
  ...rest,
});
export const restoreOf = (status: object, rest: object = {}): object => ({
  metadata: { uid: 'uid-r', ...OWNED },
  spec: { target: { name: 'copy' } },
  status,
  ...rest,
});

/** Makes the pass; what the steps do is noted. */
export function playPass(options: {
  readonly source?: object;
  readonly status?: CloneStatus;
  readonly spec?: object;
  readonly objects?: Objects;
}): PlayedPass {
  const { objects = {}, status = {} } = options;
  const events: string[] = [];
  const writes: string[] = [];
  const created: unknown[] = [];
  const find =
    <T>(kind: string, among: Readonly<Record<string, object>> | undefined) =>
    async (name: string): Promise<T | undefined> => {
      const found = among?.[name] as { metadata?: object } | undefined;
      return found && ({ kind, ...found, metadata: { name, namespace: 'ns', ...found.metadata } } as unknown as T);
    };
  const write = (what: string, name: string | undefined, object?: unknown): void => {
    writes.push(`${what} ${name}`);
    if (object === undefined) return;
    if (objects.refusal !== undefined) throw new Error(objects.refusal);
    created.push(object);
  };
  const clone = {
    apiVersion: 'clone.kubevirt.io/v1beta1',
    kind: 'VirtualMachineClone',
    metadata: { name: 'c', namespace: 'ns', uid: 'uid-c' },
    spec: {
      source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db', ...options.source },
      target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'copy' },
      ...options.spec,
    },
    status: structuredClone(status),
  } as unknown as VirtualMachineClone;
  const claims = Object.fromEntries(
    Object.entries(objects.claims ?? {}).map(([name, phase]) => [name, { status: { phase } }]),
  );
  const pass: ClonePass = {
    clone,
    status: structuredClone(status),
    now: 0,
    record: (type, reason, message) => events.push(`${type} ${reason} ${message}`),
    cluster: {
      machine: find<VirtualMachine>('VirtualMachine', objects.machines),
      snapshot: find<VirtualMachineSnapshot>('VirtualMachineSnapshot', objects.snapshots),
      content: find<VirtualMachineSnapshotContent>('VirtualMachineSnapshotContent', objects.contents),
      restore: find<VirtualMachineRestore>('VirtualMachineRestore', objects.restores),
      claim: find('PersistentVolumeClaim', claims),
      createSnapshot: async (one) => write('create snapshot', one.metadata.name, one),
      createRestore: async (one) => write('create restore', one.metadata.name, one),
      deleteSnapshot: async ({ metadata }) => write('delete snapshot', metadata.name),
      deleteRestore: async ({ metadata }) => write('delete restore', metadata.name),
      deleteClone: async ({ metadata }) => write('delete clone', metadata.name),
    },
  };
  return { pass, events, writes, created };
}

/** The reason of `Ready`, which tells why a clone waits or failed. */
export const readyReason = ({ status }: ClonePass): string | undefined =>
  status.conditions?.find(({ type }) => type === 'Ready')?.reason;
