/**
 * The APIService objects as the server uses them: which group versions other servers answer for, whether those are
 * there, and in which order groups stand. Kept up to date by a watch; look-ups allocate nothing.
 */

import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { APIServiceSpec, APIServiceStatus } from '@coracle/apimachinery/types/types';
import type { ObjectStore } from '../cache/object-store.ts';
import type { GroupPriority } from '../kinds/discovery/discovery.ts';
import type { OutboundTarget } from '../outbound/outbound.ts';

export const API_SERVICES = 'apiregistration.k8s.io/apiservices';

/** An APIService as it is stored. */
export type ApiServiceObject = UnstructuredObject & { spec: APIServiceSpec; status?: APIServiceStatus };

/** A group version that another server answers for. */
export interface RemoteApi {
  /** Name of the APIService. */
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly service: { readonly namespace: string; readonly name: string; readonly port: number };
  readonly target: OutboundTarget;
  /** What the last probe said; requests are refused while it is false. */
  readonly available: boolean;
}

export type ApiServiceIndex = ReturnType<typeof createApiServiceIndex>;

const keyOf = (group: string, version: string): string => `${group}/${version}`;
const decoder = new TextDecoder();

/** Reads what is there and follows it. */
export function createApiServiceIndex(store: ObjectStore) {
  const byName = new Map<string, Entry>();
  const byKey = new Map<string, Entry>();
  const listeners = new Set<() => void>();
  let remotes: readonly RemoteApi[] = [];
  let generation = 0;

  const put = (name: string, entry: Entry | undefined): void => {
    const before = byName.get(name);
    if (before) {
      byName.delete(name);
      byKey.delete(before.key);
    }
    if (entry) {
      byName.set(name, entry);
      byKey.set(entry.key, entry);
    }
    if (JSON.stringify(before) === JSON.stringify(entry)) return;
    generation++;
    remotes = [...byName.values()].flatMap(({ remote }) => (remote ? [remote] : []));
  };

  const { items, revision } = store.list(API_SERVICES);
  for (const { name, object } of items) put(name, entryOf(name, object as ApiServiceObject));
  const watch = store.watch(API_SERVICES, revision, (changes) => {
    for (const { type, current } of changes) {
      put(current.name, type === 'DELETED' ? undefined : entryOf(current.name, current.object as ApiServiceObject));
    }
    for (const listener of [...listeners]) listener();
  });

  return {
    /** The server of a group version, undefined when it is this one. */
    remote: (group: string, version: string): RemoteApi | undefined =>
      remotes.length === 0 ? undefined : byKey.get(keyOf(group, version))?.remote,
    get remotes() {
      return remotes;
    },
    priorityOf: (group: string, version: string): GroupPriority | undefined =>
      byKey.get(keyOf(group, version))?.priority,
    /** Grows when anything changes that discovery shows. */
    generation: () => generation,
    /** Called after every change of an APIService; the returned function ends that. */
    onChange(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop: () => watch.stop(),
  };
}

type Entry = ReturnType<typeof entryOf>;

function entryOf(name: string, { spec, status }: ApiServiceObject) {
  const { group = '', version } = spec;
  const { namespace = '', name: serviceName = '', port = 443 } = spec.service ?? {};
  const service = { namespace, name: serviceName, port };
  const available = status?.conditions?.find(({ type }) => type === 'Available')?.status === 'True';
  return {
    key: keyOf(group, version),
    priority: { group: spec.groupPriorityMinimum ?? 0, version: spec.versionPriority ?? 0 },
    remote: spec.service && {
      name,
      group,
      version,
      service,
      target: {
        address: { service },
        ...(spec.caBundle && { caBundle: decoder.decode(decodeBase64(spec.caBundle)) }),
        ...(spec.insecureSkipTLSVerify && { insecureSkipTlsVerify: true }),
        frontProxy: true,
      },
      available,
    },
  };
}
