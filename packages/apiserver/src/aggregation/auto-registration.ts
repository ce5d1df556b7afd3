/**
 * Keeps an APIService object for every group version served here: made when the group version appears, removed when it
 * goes (kube-aggregator's autoregister). What is answered in this process beside the catalog may be given to another
 * server: an object of it that names a service stays as it is, and is ours again when it is deleted. Objects without the label are their users' and are left alone; one of the
 * server's own groups that a user deleted comes back at the next start only.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Logger } from '@coracle/runtime/log/log';
import type { StoredObject, StoreKey } from '../cache/object-store.ts';
import { localCondition } from '../kinds/builtin/preparations/api-services.ts';
import { AUTO_MANAGED, apiServices } from '../registry/bootstrap-api-services.ts';
import { createObject } from '../registry/create.ts';
import type { ResourceSource } from '../registry/resource-catalog.ts';
import { ownWrite } from '../registry/write-call.ts';
import type { Registry } from '../registry/write-contract.ts';
import { API_SERVICES, type ApiServiceIndex, type ApiServiceObject } from './api-service-index.ts';

export interface AutoRegistrationOptions {
  readonly registry: Registry;
  readonly resources: ResourceSource;
  readonly index: ApiServiceIndex;
  /** Group versions answered in this process that are in no catalog. */
  readonly more: readonly { readonly group: string; readonly version: string }[];
  readonly log: Logger;
}

/** Objects written in one go: a definition may have thousands of versions. */
const TOGETHER = 50;

/** Brings the objects up to date now and after each change; the returned function ends that. */
export function keepApiServices(options: AutoRegistrationOptions): () => void {
  const { resources, index, log } = options;
  let stopped = false;
  let running = false;
  let again = false;
  let atStart = true;

  const run = async (): Promise<void> => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      do {
        again = false;
        await sync(options, atStart);
        atStart = false;
      } while (again && !stopped);
    } catch (error) {
      if (!stopped) log.warn('APIServices cannot be kept', { error: String(error) });
    } finally {
      running = false;
    }
  };
  const unsubscribe = [resources.onChange(() => void run()), index.onChange(() => void run())];
  void run();
  return () => {
    stopped = true;
    for (const end of unsubscribe) end();
  };
}

async function sync(options: AutoRegistrationOptions, atStart: boolean): Promise<void> {
  const batch: Promise<unknown>[] = [];
  for (const write of beginWrites(options, atStart)) {
    batch.push(write);
    if (batch.length >= TOGETHER) await Promise.all(batch.splice(0));
  }
  await Promise.all(batch);
}

const keyOf = (name: string): StoreKey => ({ prefix: API_SERVICES, namespace: '', name });

/** Begins each write when it is asked for. */
function* beginWrites(options: AutoRegistrationOptions, atStart: boolean): Generator<Promise<unknown>> {
  const { registry, resources, more } = options;
  const { store, clock } = registry;
  const info = resources.lookup('apiregistration.k8s.io', 'v1', 'apiservices');
  if (!info) return;
  const wanted = new Map(
    apiServices([...resources.all(), ...more], clock.now()).map((object) => [object.metadata.name!, object]),
  );
  for (const [name, object] of wanted) {
    const existing = store.peek(keyOf(name));
    if (!existing) {
      if (!atStart && object.metadata.labels![AUTO_MANAGED] === 'onstart') continue;
      const created = createObject(registry, { ...ownWrite('kube-aggregator'), info, object });
      yield created.catch((error: unknown) => {
        if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error;
      });
    } else if (isOurs(options, existing) && !isSame(existing.object, object)) {
      yield store.write(keyOf(name), (current) => {
        if (!current || !isOurs(options, current)) return { type: 'keep' };
        const next = cloneJson(current.object) as UnstructuredObject;
        next.metadata.labels = { ...next.metadata.labels, ...object.metadata.labels };
        next['spec'] = object['spec'];
        next['status'] = object['status'];
        return { type: 'put', object: next };
      });
    }
  }
  for (const { name, object } of store.list(API_SERVICES).items) {
    if (isManaged(object)) {
      if (!wanted.has(name)) yield removeManaged(options, name);
    } else if (!(object as ApiServiceObject).spec.service) yield markLocal(options, name);
  }
}

const removeManaged = ({ registry: { store } }: AutoRegistrationOptions, name: string): Promise<unknown> =>
  store.write(keyOf(name), (current) =>
    current && isManaged(current.object)
      ? { type: 'delete', object: cloneJson(current.object) as UnstructuredObject }
      : { type: 'keep' },
  );

/** One that a user made for a group version of this server: available, as all local ones are. */
function markLocal({ registry: { store, clock } }: AutoRegistrationOptions, name: string): Promise<unknown> {
  return store.write(keyOf(name), (current) => {
    const held = current?.object as ApiServiceObject | undefined;
    if (!held || held.spec.service || held.status?.conditions?.[0]?.reason === 'Local') return { type: 'keep' };
    const next = cloneJson(held) as UnstructuredObject;
    next['status'] = { conditions: [localCondition(clock.now())] };
    return { type: 'put', object: next };
  });
}

/** False also for a group version of this process that an object gives to another server. */
function isOurs({ more }: AutoRegistrationOptions, { object }: StoredObject): boolean {
  const { spec } = object as ApiServiceObject;
  const isGiven = spec.service && more.some(({ group, version }) => group === spec.group && version === spec.version);
  return isManaged(object) && !isGiven;
}

const isManaged = ({ metadata }: Readonly<UnstructuredObject>): boolean =>
  metadata.labels?.[AUTO_MANAGED] !== undefined;

const isSame = (found: Readonly<UnstructuredObject>, wanted: UnstructuredObject): boolean =>
  found.metadata.labels?.[AUTO_MANAGED] === wanted.metadata.labels?.[AUTO_MANAGED] &&
  deepEqual(found['spec'], wanted['spec']) &&
  (found as ApiServiceObject).status?.conditions?.[0]?.reason === 'Local';
