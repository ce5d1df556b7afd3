/**
 * Which machines look as if their loss would hurt and are not protected: the rows of `coracle protect audit`. Signs, not
 * proof: somebody saved it, it has disks that outlive a restart, it has run for long, it is old. Pure.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { humanDuration } from '@coracle/apimachinery/types/age';
import type {
  ReadonlyBackup,
  ReadonlySnapshot,
  ReadonlyVm,
  ReadonlyVmi,
  VirtualMachineBackupTracker,
} from '../../kinds/kubevirt.ts';
import { snapshottableClaim, volumesOf } from '../snapshot/saved-volumes.ts';
import { DELETE_PROTECTION_LABEL, isDeleteProtected } from './delete-protection.ts';

const DAY_MS = 86_400_000;
/** Without a restart; what is only tried is stopped sooner. */
export const LONG_RUN_MS = 7 * DAY_MS;
export const LONG_LIFE_MS = 30 * DAY_MS;
/** Names in a text; of more there is a number. */
const MAX_NAMES = 3;

type Tracker = DeepReadonly<VirtualMachineBackupTracker>;

export interface PreciousInput {
  readonly vms: readonly ReadonlyVm[];
  readonly vmis: readonly ReadonlyVmi[];
  readonly snapshots: readonly ReadonlySnapshot[];
  readonly backups: readonly ReadonlyBackup[];
  readonly trackers: readonly Tracker[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type PreciousSign = 'HasSnapshots' | 'HasBackups' | 'OwnsDisks' | 'RunsLong' | 'LongLived';

export interface PreciousMachine {
  readonly namespace: string;
  readonly name: string;
  /** At least one, the weightiest first. */
  readonly reasons: readonly { readonly reason: PreciousSign; readonly message: string }[];
  /** Shell command that protects it. */
  readonly command: string;
}

/** Unprotected machines with at least one sign, sorted by namespace and name; those that are being deleted left out. */
export function findPreciousMachines(input: PreciousInput): PreciousMachine[] {
  const saved = savedMachines(input);
  const instances = new Map(input.vmis.map((vmi) => [keyOf(vmi.metadata), vmi]));
  return input.vms
    .filter((vm) => !isDeleteProtected(vm) && !isDeleting(vm))
    .flatMap((vm): PreciousMachine[] => {
      const key = keyOf(vm.metadata);
      const { snapshots = [], backups = [] } = saved.get(key) ?? {};
      const reasons = [
        sign('HasSnapshots', namesText(snapshots)),
        sign('HasBackups', namesText(backups)),
        sign('OwnsDisks', namesText(claimsOf(vm))),
        sign('RunsLong', longText(runningSince(instances.get(key)), input.now, LONG_RUN_MS)),
        sign('LongLived', longText(vm.metadata.creationTimestamp, input.now, LONG_LIFE_MS)),
      ].flat();
      const { namespace = '', name = '' } = vm.metadata;
      return reasons.length === 0 ? [] : [{ namespace, name, reasons, command: protectCommand(vm) }];
    })
    .sort((a, b) => a.namespace.localeCompare(b.namespace, 'en') || a.name.localeCompare(b.name, 'en'));
}

/** The command that puts the label on; a value that does not protect has to be overwritten. */
function protectCommand({ metadata }: ReadonlyVm): string {
  const { namespace = '', name = '', labels } = metadata;
  const overwrite = labels?.[DELETE_PROTECTION_LABEL] === undefined ? '' : ' --overwrite';
  return `kubectl label vm ${name} -n ${namespace} ${DELETE_PROTECTION_LABEL}=true${overwrite}`;
}

const MESSAGES: Readonly<Record<PreciousSign, string>> = {
  HasSnapshots: 'has snapshots',
  HasBackups: 'is backed up',
  OwnsDisks: 'has claims',
  RunsLong: 'has run for',
  LongLived: 'was made',
};

const sign = (reason: PreciousSign, text: string | undefined): PreciousMachine['reasons'] =>
  text === undefined ? [] : [{ reason, message: `${MESSAGES[reason]} ${text}${reason === 'LongLived' ? ' ago' : ''}` }];

const namesText = (names: readonly string[]): string | undefined => {
  if (names.length === 0) return undefined;
  const more = names.length - MAX_NAMES;
  return `${names.slice(0, MAX_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
};

function longText(since: string | undefined, now: number, least: number): string | undefined {
  const ms = now - Date.parse(since ?? '');
  return ms >= least ? humanDuration(ms) : undefined;
}

interface Saved {
  readonly snapshots: string[];
  readonly backups: string[];
}

/** Names of snapshots, and of backups or trackers, by the machine that they are of. */
function savedMachines({ snapshots, backups, trackers }: PreciousInput): ReadonlyMap<string, Saved> {
  const found = new Map<string, Saved>();
  const note = (
    { metadata }: ReadonlySnapshot | ReadonlyBackup | Tracker,
    machine: string,
    list: keyof Saved,
  ): void => {
    const key = keyOf({ namespace: metadata.namespace, name: machine });
    const known = found.get(key) ?? { snapshots: [], backups: [] };
    found.set(key, known);
    known[list].push(metadata.name ?? '');
  };
  for (const snapshot of snapshots) {
    const { kind, name } = snapshot.spec.source;
    if (kind === 'VirtualMachine' && snapshot.status?.phase !== 'Failed') note(snapshot, name, 'snapshots');
  }
  // A backup that names a tracker belongs to the machine of that tracker, which counts by itself.
  for (const one of [...backups, ...trackers])
    if (one.spec.source.kind === 'VirtualMachine') note(one, one.spec.source.name, 'backups');
  return found;
}

const keyOf = ({ namespace, name }: { readonly namespace?: string | undefined; readonly name?: string | undefined }) =>
  `${namespace ?? ''}/${name ?? ''}`;

/** Claims and DataVolumes that hold its data, without memory dumps, which nobody would miss. */
const claimsOf = (vm: ReadonlyVm): string[] =>
  volumesOf(vm).flatMap((volume) => (volume.memoryDump ? [] : (snapshottableClaim(volume) ?? [])));

const runningSince = (vmi: ReadonlyVmi | undefined): string | undefined =>
  vmi?.status?.phase === 'Running'
    ? (vmi.status.phaseTransitionTimestamps?.find(({ phase }) => phase === 'Running')?.phaseTransitionTimestamp ??
      vmi.metadata.creationTimestamp)
    : undefined;
