/**
 * API priority and fairness: each request is matched to a FlowSchema and takes seats of its priority level while it is
 * answered. Watches give theirs back when they have begun; other long-running requests take none.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { formatTime } from '@coracle/apimachinery/meta/object';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import type { Condition } from '@coracle/apimachinery/types/types';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { ObjectStore } from '../../cache/object-store.ts';
import { withCondition } from '../../kinds/custom/crd.ts';
import type { ResourceSource } from '../../registry/resource-catalog.ts';
import type { Query } from '../query.ts';
import type { RequestInfo } from '../request-info.ts';
import { DEFAULT_SEATS, type FlowControl } from '../request-seats.ts';
import type { FlowSchemaObject } from './flow-schemas.ts';
import { FlowTable, LEVELS, type MatchedFlow, SCHEMAS } from './flow-table.ts';
import type { PriorityLevel } from './priority-level.ts';
import { createWatchCounts } from './watch-counts.ts';
import { listWork, ONE_SEAT, type Work, writeWork } from './work-estimate.ts';

/** Sets the condition where it is not what it should be. Rejects when one cannot be written. */
function markDanglingSchemas(
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
      const condition = { type: 'Dangling', ...wanted };
      const conditions = withCondition(next.status?.conditions ?? [], condition, formatTime(clock.now()));
      next.status = { ...next.status, conditions };
      return { type: 'put', object: next };
    });
  });
  return Promise.all(writes);
}

function danglingCondition(level: string, levels: ReadonlyMap<string, unknown>): Omit<Condition, 'type'> {
  const names = `This FlowSchema references the PriorityLevelConfiguration object named ${JSON.stringify(level)}`;
  return levels.has(level)
    ? { status: 'False', reason: 'Found', message: `${names} and it exists` }
    : { status: 'True', reason: 'NotFound', message: `${names} but there is no such object` };
}

/** Objects whose sizes stand for those of all of their resource. */
const SAMPLE = 16;

/** Follows the stored objects. `seats` bounds the requests answered at once, exempt ones aside. */
export function createFlowControl({
  store,
  resources,
  clock,
  log,
  seats = DEFAULT_SEATS,
}: {
  readonly store: ObjectStore;
  readonly resources: Pick<ResourceSource, 'lookup'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly seats?: number;
}): FlowControl {
  const table = new FlowTable(store, { seats: { total: seats, used: 0 }, clock });
  const { levels } = table;
  const watches = createWatchCounts();
  const estimateList = createListEstimate(store, resources);
  let started = false;
  let stopped = false;

  const markDangling = async (): Promise<void> => {
    await markDanglingSchemas(store, levels, clock).catch((error: unknown) => {
      if (!stopped) log.warn('flow schemas cannot be marked', { error: String(error) });
    });
  };
  const compile = (): void => {
    table.compile();
    if (started) void markDangling();
  };
  compile();
  const now = store.revision();
  const following = [store.watch(SCHEMAS, now, compile), store.watch(LEVELS, now, compile)];

  /** Free seats go to those who wait in their own level first; what is left over is lent. */
  const admitWaiting = (level: PriorityLevel): void => {
    while (level.admitOne());
    for (const other of levels.values()) while (other.admitOne());
  };

  return {
    classify: (user, info) => table.match(user, info),
    estimate({ level }: MatchedFlow, request) {
      if (level.exempt) return ONE_SEAT;
      switch (request.info.verb) {
        case 'create':
        case 'update':
        case 'patch':
        case 'delete': {
          // A token is created for an account, and no event tells of it.
          const { resource, subresource } = request.info;
          if (resource === 'serviceaccounts' && subresource === 'token') return ONE_SEAT;
          return writeWork(watches.interested(request.info), level.maxSeats);
        }
        case 'list':
          return estimateList(level, request);
        case 'watch':
          return request.query.get('sendInitialEvents') === 'true' ? estimateList(level, request) : ONE_SEAT;
        default:
          return ONE_SEAT;
      }
    },
    enter({ level, schema }: MatchedFlow, work, { user, info, request }) {
      if (level.exempt) {
        level.running++;
        return true;
      }
      if (level.enter(work)) return true;
      const by = schema.distinguisher;
      const distinguisher = by === 'ByUser' ? user.username : by === 'ByNamespace' ? info.namespace : '';
      return level.wait(`${schema.name}/${distinguisher}`, request.signal, work);
    },
    leave({ level }: MatchedFlow, work) {
      if (level.exempt) {
        level.running--;
        return;
      }
      level.leave(work);
      if (work.afterMs === 0) return admitWaiting(level);
      clock.schedule(work.afterMs, () => {
        level.release(work.seats);
        admitWaiting(level);
      });
    },
    watching: (watched) => watches.add(watched),
    load: () => [...levels.values()],
    start() {
      started = true;
      void markDangling();
    },
    stop() {
      stopped = true;
      for (const watch of following) watch.stop();
    },
  };
}

/** What a list of a resource costs, by the objects there are and how large the first of them are. */
const createListEstimate =
  (store: Pick<ObjectStore, 'count' | 'list'>, resources: Pick<ResourceSource, 'lookup'>) =>
  (level: PriorityLevel, { info, query }: { readonly info: RequestInfo; readonly query: Query }): Work => {
    const resource = resources.lookup(info.group, info.version, info.resource);
    if (!resource) return ONE_SEAT;
    const prefix = storagePrefix(resource);
    const objects = store.count(prefix);
    if (objects === 0) return ONE_SEAT;
    const { items } = store.list(prefix, { limit: SAMPLE });
    const averageBytes = items.reduce((sum, { size }) => sum + size, 0) / items.length;
    const limit = Math.max(0, Number.parseInt(query.get('limit') ?? '', 10) || 0);
    return listWork({ objects, averageBytes, limit, single: info.name !== '' }, level.maxSeats);
  };
