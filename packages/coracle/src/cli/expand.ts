/**
 * `coracle expand -f FILE`: what a virtual machine becomes with its instance type and preference, and where each field
 * comes from. Without a cluster it knows the common instance types and whatever else the file holds.
 */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { ApiError, notFound } from '@coracle/apimachinery/meta/status';
import { validateSchema } from '@coracle/apimachinery/schema/validate';
import { isAlreadyExists } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { defaultKubeVirt, sourceReader, virtAdmission } from '@coracle/kubevirt/controllers/virt-api/virt-api';
import { KUBEVIRTS, kubevirtResources, VIRTUAL_MACHINES, type VirtualMachine } from '@coracle/kubevirt/kinds/kubevirt';
import { commonInstancetypes } from '@coracle/kubevirt/rules/instancetype/bundle/bundle';
import { conflictsMessage } from '@coracle/kubevirt/rules/instancetype/conflicts';
import { expandVirtualMachine, type Layers } from '@coracle/kubevirt/rules/instancetype/expand';
import { type ExplainedField, explainExpansion } from '@coracle/kubevirt/rules/instancetype/explain';
import { layersOf, readSources } from '@coracle/kubevirt/rules/instancetype/resolve';
import { clusterConfigOf } from '@coracle/kubevirt/rules/machine-defaults/cluster-config';
import { systemClock } from '@coracle/runtime/clock/clock';
import { stringify } from 'yaml';
import { clusterFrom } from '../config/cluster.ts';
import { VERSION } from '../config/version.ts';
import { type CommandContext, CommandError, textFlag, UsageError } from './command.ts';
import { readManifests } from './manifests.ts';
import { textTable } from './text-table.ts';

/** `coracle expand`. */
export async function expand(context: CommandContext): Promise<number> {
  const { flags, print } = context;
  const file = textFlag(flags, 'file');
  if (file === undefined) throw new UsageError('expand takes a file: -f FILE (see: coracle expand --help)');
  const objects = await readManifests(file);
  const machines = objects.filter(({ kind }) => kind === 'VirtualMachine') as VirtualMachine[];
  const [submitted] = machines;
  if (submitted === undefined || machines.length > 1)
    throw new CommandError(`${file} must hold one VirtualMachine, and holds ${machines.length}`);
  refuseUnfit(submitted);
  const namespace = textFlag(flags, 'namespace') ?? submitted.metadata.namespace;
  const { vm, layers, config } = await (flags['from-cluster'] === true
    ? admittedByCluster(submitted, namespace, context)
    : admittedHere(submitted, namespace ?? 'default', objects)
  ).catch((error: unknown) => {
    throw error instanceof ApiError ? new CommandError(error.message) : error;
  });
  const result = expandVirtualMachine(vm, layers, config);
  if (!result.ok) throw new CommandError(conflictsMessage(result.conflicts));
  const fields = explainExpansion({ vm, submitted, config, ...layers });
  print(flags['json'] === true ? JSON.stringify({ virtualMachine: result.vm, fields }) : tableOf(fields));
  return 0;
}

function refuseUnfit(vm: VirtualMachine): void {
  const { schema } = kubevirtResources().find(({ kind, version }) => kind === 'VirtualMachine' && version === 'v1')!;
  const [first] = validateSchema(schema, vm, { custom: true });
  if (first !== undefined)
    throw new CommandError(`the VirtualMachine is not valid: ${first.field}: ${first.detail ?? first.type}`);
}

/** The machine as the cluster's webhooks leave it, and what its matchers stand for. */
async function admittedByCluster(submitted: VirtualMachine, namespace: string | undefined, context: CommandContext) {
  const { signal } = context;
  await using cluster = await clusterFrom(context);
  const { client } = cluster;
  const object = { ...submitted, metadata: { ...submitted.metadata, namespace: namespace ?? cluster.namespace } };
  const vm = await client.create(VIRTUAL_MACHINES, object, { dryRun: true, signal }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
    const { name = '', namespace } = object.metadata;
    const patch = { type: 'merge', body: object } as const;
    return client.patch(VIRTUAL_MACHINES, { namespace, name }, patch, { dryRun: true, signal });
  });
  const kubevirt = (await client.list(KUBEVIRTS, { signal })).items[0];
  return { vm, layers: await layersFor(vm, client), config: clusterConfigOf(kubevirt) };
}

/** The same by the rules of this program. */
async function admittedHere(submitted: VirtualMachine, namespace: string, objects: readonly KubeObject[]) {
  // As a control plane that `coracle up` starts anew.
  const config = clusterConfigOf(
    defaultKubeVirt({ version: VERSION, now: systemClock.now(), architecture: 'amd64', useEmulation: true }),
  );
  const client = fixedClient([...objects, ...commonInstancetypes()], namespace);
  const admission = virtAdmission({
    client,
    config: () => config,
    randomUuid: () => crypto.randomUUID(),
    now: () => systemClock.now(),
    presets: () => [],
    // The objects are those of the caller's own files.
    mayRead: async () => true,
  });
  const request = {
    group: VIRTUAL_MACHINES.group,
    resource: VIRTUAL_MACHINES.resource,
    subresource: '',
    operation: 'CREATE',
    namespace,
    old: undefined,
    user: { username: '', groups: [] },
  } as const;
  const object = { ...submitted, metadata: { ...submitted.metadata, namespace } };
  const vm = (await admission.mutate({ ...request, object })).object as VirtualMachine;
  await admission.validate({ ...request, object: vm });
  return { vm, layers: await layersFor(vm, client), config };
}

async function layersFor(vm: VirtualMachine, client: Client): Promise<Layers> {
  const found = await readSources(vm, sourceReader(client));
  for (const resolved of [found.instancetype, found.preference])
    if (resolved.type === 'missing') throw new CommandError(resolved.message);
  return layersOf(found);
}

/** A client that reads from a set of objects and can do nothing else. */
function fixedClient(objects: readonly KubeObject[], namespace: string): Client {
  const of = (type: ResourceType<unknown>, key: Partial<ObjectKey>): KubeObject[] =>
    objects.filter(
      ({ kind, metadata }) =>
        kind === type.kind &&
        (!type.namespaced || (metadata.namespace ?? namespace) === key.namespace) &&
        (key.name === undefined || metadata.name === key.name),
    );
  return {
    get: (type: ResourceType<KubeObject>, key: ObjectKey) => {
      const [found] = of(type, key);
      return found ? Promise.resolve(found) : Promise.reject(notFound(type, key.name));
    },
    list: (type: ResourceType<KubeObject>, options: { namespace?: string }) =>
      Promise.resolve({ items: of(type, options) }),
  } as unknown as Client;
}

function tableOf(fields: readonly ExplainedField[]): string {
  const rows = fields.map(({ path, value, layer }) => [path, inline(value), layer]);
  return textTable(['FIELD', 'VALUE', 'SET BY'], rows);
}

const MAX_VALUE = 48;
const inline = (value: unknown): string => {
  // Empty objects and lists come as this text.
  if (value === '{}' || value === '[]') return value;
  const line = stringify(value).trim().replaceAll('\n', ' ');
  return line.length > MAX_VALUE ? `${line.slice(0, MAX_VALUE - 3)}...` : line;
};
