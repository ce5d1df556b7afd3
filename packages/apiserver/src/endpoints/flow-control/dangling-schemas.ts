/** The condition `Dangling` of FlowSchemas: whether the level that one names exists. */
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { formatTime } from '@coracle/apimachinery/meta/object';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { FlowSchemaObject } from './flow-schemas.ts';
import { SCHEMAS } from './flow-table.ts';

/** Sets the condition where it is not what it should be. Rejects when one cannot be written. */
export function markDanglingSchemas(
  store: Pick<ObjectStore, 'list' | 'write'>,
  levels: ReadonlyMap<string, unknown>,
  clock: Pick<Clock, 'now'>,
): Promise<unknown> {
  const writes = store.list(SCHEMAS).items.map(({ name, object }) => {
    const { spec, status } = object as FlowSchemaObject;
    const wanted = danglingCondition(spec.priorityLevelConfiguration.name, levels);
    const held = status?.conditions?.find(({ type }) => type === 'Dangling');
    if (held?.status === wanted.status) return undefined;
    return store.write({ prefix: SCHEMAS, namespace: '', name }, (current) => {
      if (!current) return { type: 'keep' };
      const next = cloneJson(current.object) as FlowSchemaObject;
      const others = next.status?.conditions?.filter(({ type }) => type !== 'Dangling') ?? [];
      const condition = { type: 'Dangling', lastTransitionTime: formatTime(clock.now()), ...wanted };
      next.status = { ...next.status, conditions: [...others, condition] };
      return { type: 'put', object: next };
    });
  });
  return Promise.all(writes);
}

function danglingCondition(level: string, levels: ReadonlyMap<string, unknown>) {
  const names = `This FlowSchema references the PriorityLevelConfiguration object named ${JSON.stringify(level)}`;
  return levels.has(level)
    ? { status: 'False', reason: 'Found', message: `${names} and it exists` }
    : { status: 'True', reason: 'NotFound', message: `${names} but there is no such object` };
}
