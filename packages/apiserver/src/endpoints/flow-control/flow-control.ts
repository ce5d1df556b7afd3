/**
 * API priority and fairness: each request is matched to a FlowSchema and takes seats of its priority level while it is
 * answered. Watches give theirs back when they have begun; other long-running requests take none.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { formatTime } from '@coracle/apimachinery/meta/object';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { UserInfo } from '../../auth/identity.ts';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { ResourceSource } from '../../registry/resource-catalog.ts';
import type { Query } from '../query.ts';
import type { RequestInfo } from '../request-info.ts';
import { DEFAULT_SEATS, type Flow, type FlowControl } from '../request-seats.ts';
import { compileFlowSchemas, covers, type FlowSchema, type FlowSchemaObject, rulesFor } from './flow-schemas.ts';
import { PriorityLevel, type Seats } from './priority-level.ts';
import { createWatchCounts } from './watch-counts.ts';
import { listWork, ONE_SEAT, type Work, writeWork } from './work-estimate.ts';

const SCHEMAS = 'flowcontrol.apiserver.k8s.io/flowschemas';
const LEVELS = 'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations';

/** Objects whose sizes stand for those of all of their resource. */
const SAMPLE = 16;

/** What a request was matched to. */
interface MatchedFlow extends Flow {
  readonly schema: FlowSchema;
  readonly level: PriorityLevel;
}

/** Follows the stored objects. `seats` bounds the requests answered at once, exempt ones aside. */
export function createFlowControl({
  store,
  resources,
  clock,
  log,
  seats: total = DEFAULT_SEATS,
}: {
  readonly store: ObjectStore;
  readonly resources: Pick<ResourceSource, 'lookup'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly seats?: number;
}): FlowControl {
  const seats: Seats = { total, used: 0 };
  const levels = new Map<string, PriorityLevel>();
  const watches = createWatchCounts();
  let flows: { readonly flow: MatchedFlow }[] = [];
  /** By user object: the flows whose subjects include him. Dropped when anything changes. */
  let byUser = new WeakMap<UserInfo, { readonly flow: Flow; readonly rules: ReturnType<typeof rulesFor> }[]>();
  let started = false;
  let stopped = false;

  const compile = (): void => {
    const stored = store.list(LEVELS).items;
    const names = new Set(stored.map(({ name }) => name));
    for (const name of levels.keys()) if (!names.has(name)) levels.delete(name);
    for (const { name, object } of stored) {
      const level = levels.get(name) ?? new PriorityLevel(name, { seats, clock });
      level.configure(object);
      levels.set(name, level);
    }
    const shares = [...levels.values()].reduce((sum, level) => sum + level.shares, 0);
    for (const level of levels.values()) level.limit = shares === 0 ? 0 : Math.ceil((total * level.shares) / shares);
    flows = compileFlowSchemas(store.list(SCHEMAS).items.map(({ object }) => object)).flatMap((schema) => {
      const level = levels.get(schema.level);
      if (!level) return [];
      const headers = {
        'x-kubernetes-pf-flowschema-uid': schema.uid,
        'x-kubernetes-pf-prioritylevel-uid': level.uid,
      };
      return [{ flow: { schema, level, headers } }];
    });
    byUser = new WeakMap();
    if (started) void markDangling();
  };

  /** Sets the condition `Dangling` where it is not what it should be. */
  const markDangling = async (): Promise<void> => {
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
    await Promise.all(writes).catch((error: unknown) => {
      if (!stopped) log.warn('flow schemas cannot be marked', { error: String(error) });
    });
  };

  compile();
  const now = store.revision();
  const following = [store.watch(SCHEMAS, now, compile), store.watch(LEVELS, now, compile)];

  const flowsOf = (user: UserInfo) => {
    let known = byUser.get(user);
    if (!known) {
      known = flows.flatMap(({ flow }) => {
        const rules = rulesFor(flow.schema, user);
        return rules.length > 0 ? [{ flow, rules }] : [];
      });
      byUser.set(user, known);
    }
    return known;
  };

  /** What a list of a resource costs, by the objects there are and how large the first of them are. */
  const estimateList = (level: PriorityLevel, { info, query }: { info: RequestInfo; query: Query }): Work => {
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

  /** Free seats go to those who wait in their own level first; what is left over is lent. */
  const admitWaiting = (level: PriorityLevel): void => {
    while (level.admitOne());
    for (const other of levels.values()) while (other.admitOne());
  };

  return {
    classify(user, info) {
      for (const { flow, rules } of flowsOf(user)) if (covers(rules, info)) return flow;
      return undefined;
    },
    estimate({ level }: MatchedFlow, request) {
      if (level.exempt) return ONE_SEAT;
      switch (request.info.verb) {
        case 'create':
        case 'update':
        case 'patch':
        case 'delete':
          return isSilent(request.info) ? ONE_SEAT : writeWork(watches.interested(request.info), level.maxSeats);
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
    load: () =>
      [...levels.values()].map(({ name, limit, inUse, running, waiting }) => ({
        level: name,
        limit,
        inUse,
        running,
        waiting,
      })),
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

/** A token is created for an account, and no event tells of it. */
const isSilent = ({ resource, subresource }: RequestInfo): boolean =>
  resource === 'serviceaccounts' && subresource === 'token';

function danglingCondition(level: string, levels: ReadonlyMap<string, PriorityLevel>) {
  const names = `This FlowSchema references the PriorityLevelConfiguration object named ${JSON.stringify(level)}`;
  return levels.has(level)
    ? { status: 'False', reason: 'Found', message: `${names} and it exists` }
    : { status: 'True', reason: 'NotFound', message: `${names} but there is no such object` };
}
