/** When a pending migration may start: limits, order and back-off, as pure functions. */
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyMigration, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { EVACUATION_ANNOTATION, WORKLOAD_UPDATE_ANNOTATION } from '../../rules/launcher/launcher-labels.ts';
import { byAge } from '../../rules/launcher/launcher-pods.ts';
import { enteredAt, phaseOf } from './migration-view.ts';

export interface Limits {
  readonly parallelMigrationsPerCluster: number;
  readonly parallelOutboundMigrationsPerNode: number;
}

export interface WaitingMigration {
  readonly migration: ReadonlyMigration;
  /** Node of the instance. */
  readonly sourceNode: string;
}

type Priority = NonNullable<ReadonlyMigration['spec']['priority']>;

/** Upstream's queue priorities; one without a priority comes last. */
const QUEUE_PRIORITY: Readonly<Record<Priority | '', number>> = {
  'system-critical': 100,
  'user-triggered': 50,
  'system-maintenance': 20,
  '': 0,
};
/** Pause until a migration that found no room asks again, should nothing wake it before. */
const RETRY_MS: Readonly<Record<Priority | '', number>> = {
  'system-critical': 1000,
  'user-triggered': 3000,
  'system-maintenance': 5000,
  '': 5000,
};
const priorityOf = ({ spec }: ReadonlyMigration): Priority | '' => spec.priority ?? '';

export const retryMs = (migration: ReadonlyMigration): number => RETRY_MS[priorityOf(migration)];

/** First come, first served, within a priority. */
const inOrder = (a: ReadonlyMigration, b: ReadonlyMigration): number =>
  QUEUE_PRIORITY[priorityOf(b)] - QUEUE_PRIORITY[priorityOf(a)] || byAge(a, b);

/**
 * True when `migration` is among those of `waiting` that there is room for. One whose node sends enough already does not
 * hold up those behind it. `running`: source nodes of the migrations under way.
 */
export function mayStart(
  migration: ReadonlyMigration,
  { waiting, running, limits }: { waiting: readonly WaitingMigration[]; running: readonly string[]; limits: Limits },
): boolean {
  let free = limits.parallelMigrationsPerCluster - running.length;
  const outbound = new Map<string, number>();
  for (const node of running) outbound.set(node, (outbound.get(node) ?? 0) + 1);
  for (const one of [...waiting].sort((a, b) => inOrder(a.migration, b.migration))) {
    if (free <= 0) return false;
    const sending = outbound.get(one.sourceNode) ?? 0;
    if (sending >= limits.parallelOutboundMigrationsPerNode) continue;
    if (one.migration.metadata.uid === migration.metadata.uid) return true;
    outbound.set(one.sourceNode, sending + 1);
    free--;
  }
  return false;
}

const FIRST_BACKOFF_MS = 20_000;
const IGNORE_BACKOFF = 'kubevirt.io/func-test-ignore-migration-backoff';

const isAutomatic = ({ metadata }: ReadonlyMigration): boolean =>
  metadata.annotations?.[EVACUATION_ANNOTATION] !== undefined ||
  metadata.annotations?.[WORKLOAD_UPDATE_ANNOTATION] !== undefined;

/**
 * Time until which an automatic migration of an instance has to wait: 20 s after the last failure of one, doubled by each
 * failure before it since the last success. Undefined when it need not wait. `others`: all that name the same instance.
 *
 * Beyond upstream (handleMigrationBackoff), which looks at automatic ones alone, of every instance that had the name, and
 * makes only the newest wait: a guest that moved by any means can move, what a predecessor failed at says nothing about
 * this one, and of several that wait none slips through.
 */
export function backoffUntil(
  migration: ReadonlyMigration,
  { vmi, others }: { readonly vmi: ReadonlyVmi | undefined; readonly others: readonly ReadonlyMigration[] },
): number | undefined {
  if (!isAutomatic(migration) || migration.metadata.annotations?.[IGNORE_BACKOFF] !== undefined) return undefined;
  const born = vmi?.metadata.creationTimestamp ?? '';
  const ended = others
    .filter((one) => hasEnded(one) && (one.metadata.creationTimestamp ?? '') >= born)
    .sort((a, b) => endedAt(b) - endedAt(a) || byAge(b, a));
  let pause = 0;
  let last = 0;
  for (const one of ended) {
    if (phaseOf(one) === 'Succeeded') break;
    // What a user asked for fails for reasons of its own; one that was taken back says nothing about the next.
    if (!isAutomatic(one) || isDeleting(one)) continue;
    if (pause === 0) last = endedAt(one);
    pause = pause === 0 ? FIRST_BACKOFF_MS : pause * 2;
  }
  return pause === 0 ? undefined : last + pause;
}

const endedAt = (migration: ReadonlyMigration): number => enteredAt(migration, phaseOf(migration)) ?? 0;
