/**
 * Where a server takes the status of a kind that has `/status` on some servers and not on others: the
 * VirtualMachineInstance has none upstream, and had one in older definitions of ours. Discovery says which; what it said is
 * kept until a write shows that it is no longer so.
 */
import { apiVersionOf, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { orAbsent } from './api-failure.ts';
import type { JsonPatchOperation, Patch } from './client.ts';

/** `read` is a GET of a path. Keeps one entry for each optional kind: there is one. */
export function createStatusEndpoints(read: (path: string, signal: AbortSignal) => Promise<unknown>) {
  const known = new Map<string, '' | 'status'>();
  const nameOf = (type: ResourceType<unknown>): string => `${apiVersionOf(type)}/${type.resource}`;
  return {
    /** 'status', or '' for the object itself. Throws what discovery throws, but for a group that is not there. */
    async endpointOf(type: ResourceType<unknown>, signal: AbortSignal): Promise<'' | 'status'> {
      const held = known.get(nameOf(type));
      if (held !== undefined) return held;
      const list = await orAbsent(read(`/apis/${apiVersionOf(type)}`, signal));
      const resources: unknown = isJsonObject(list) ? list['resources'] : undefined;
      const names = Array.isArray(resources) ? resources.map((one: { name?: unknown }) => one.name) : [];
      const endpoint = names.includes(`${type.resource}/status`) ? 'status' : '';
      // A kind that is not served yet may come with or without.
      if (names.includes(type.resource)) known.set(nameOf(type), endpoint);
      return endpoint;
    },
    /** Has it asked anew before the next write. */
    forget: (type: ResourceType<unknown>): void => void known.delete(nameOf(type)),
  };
}

/**
 * True when a write to the object itself, held to a version, was answered with that version: nothing was stored, which
 * is what a server does that takes a status through `/status` alone.
 */
export function storedNothing(patch: Patch, answer: unknown): boolean {
  const sent = patch.type === 'json' ? patch.body.find(isVersion)?.value : versionOf(patch.body);
  return sent !== undefined && versionOf(answer) === sent;
}

const versionOf = (object: unknown): unknown =>
  (object as { metadata?: { resourceVersion?: unknown } } | undefined)?.metadata?.resourceVersion;

const isVersion = ({ op, path }: JsonPatchOperation): boolean =>
  path === '/metadata/resourceVersion' && (op === 'replace' || op === 'add' || op === 'test');
