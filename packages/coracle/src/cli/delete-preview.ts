/** `coracle delete ... --what-if`: the server's decision by a dry run, and what explains it. Nothing is changed. */

import { qualifiedResource, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Namespace } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '@coracle/kubevirt/kinds/kubevirt';
import {
  type Block,
  blocksOf,
  type FinalizerRow,
  finalizerRows,
  type PreviewRow,
  previewRows,
} from '@coracle/kubevirt/rules/deletion-preview/deletion-preview';
import { listedLookup } from '@coracle/kubevirt/rules/deletion-preview/listed-lookup';
import { KRUISE_PROTECTION_LABEL, kruiseHookOf } from '@coracle/kubevirt/rules/protection/kruise-label';
import { isActivePod, isBoundClaim, kruiseRefusal } from '@coracle/kubevirt/rules/protection/kruise-refusal';
import { type ClusterReader, graphOfMachine, objectsOfNamespace, settingsOf } from './cluster-reader.ts';
import { type Lifting, whoMayLabelNamespace, whoMayLift, whoMayStop } from './who-may-lift.ts';

/** What a dry run of the DELETE was answered. */
export interface DryRunResult {
  readonly allowed: boolean;
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
}

/** A reason against the deletion, and who may take it away. */
export interface PreviewBlock extends Omit<Block, 'reason'> {
  readonly reason: Block['reason'] | 'KruiseProtected';
  readonly whoMay: Lifting;
}

interface Preview {
  readonly object: { readonly kind: string; readonly namespace?: string; readonly name: string };
  readonly verdict: DryRunResult;
  readonly blocks: readonly PreviewBlock[];
  readonly finalizers: readonly FinalizerRow[];
  /** What was not looked at, since the caller may not list it. */
  readonly notListed: readonly string[];
}

export interface MachinePreview extends Preview {
  readonly objects: readonly PreviewRow[];
}

export interface NamespacePreview extends Preview {
  /** Machines in it that stand against its deletion or their own. */
  readonly machines: readonly { readonly name: string; readonly blocks: readonly PreviewBlock[] }[];
  /** How many objects of each resource would go. */
  readonly counts: readonly { readonly resource: string; readonly count: number }[];
}

/** Asks the server whether it would delete the object. Failures other than a refusal are thrown. */
export async function dryRunDelete(
  client: Client,
  type: ResourceType<KubeObject>,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<DryRunResult> {
  try {
    await client.delete(type, key, { dryRun: true, signal });
    return { allowed: true };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === 404 || error.code >= 500) throw error;
    return { allowed: false, code: error.code, reason: error.reason, message: error.message };
  }
}

/** Of a machine. */
export async function previewMachine(
  reader: ClusterReader,
  vm: VirtualMachine,
  signal: AbortSignal,
): Promise<MachinePreview> {
  const { namespace = '', name = '', uid } = vm.metadata;
  const key = { namespace, name };
  const [verdict, graph, objects, settings, machines, claims, restores, contents, vmis] = await Promise.all([
    dryRunDelete(reader.client, VIRTUAL_MACHINES, key, signal),
    graphOfMachine(reader, vm, signal),
    objectsOfNamespace(reader, namespace, signal),
    settingsOf(reader),
    reader.some(VIRTUAL_MACHINES, { namespace }),
    reader.some(PERSISTENT_VOLUME_CLAIMS, { namespace }),
    reader.some(VIRTUAL_MACHINE_RESTORES, { namespace }),
    reader.some(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, { namespace }),
    reader.some(VIRTUAL_MACHINE_INSTANCES, { namespace }),
  ]);
  const others = machines.filter(({ metadata }) => metadata.uid !== uid);
  const lookup = listedLookup({ machines: others, claims, restores, contents });
  const rows = previewRows({ vm, graph, objects, lookup });
  const vmi = vmis.find(({ metadata }) => metadata.name === name);
  const gone = new Set(rows.filter(({ fate }) => fate === 'Deleted').map(({ kind, name }) => `${kind}/${name}`));
  return {
    object: { kind: 'VirtualMachine', ...key },
    verdict,
    blocks: await withLifting(reader, { key, blocks: blocksOf(vm, { vmi, settings }), settings, signal }),
    objects: rows,
    finalizers: finalizerRows([
      { kind: 'VirtualMachine', metadata: vm.metadata },
      ...objects.filter(({ kind, metadata }) => gone.has(`${kind}/${metadata.name}`)),
    ]),
    notListed: notListedOf(reader, graph.notListed),
  };
}

const notListedOf = (reader: ClusterReader, more: readonly string[] = []): string[] =>
  [...new Set([...reader.notListed, ...more])].sort();

async function withLifting(
  reader: ClusterReader,
  {
    key,
    blocks,
    settings,
    signal,
  }: {
    readonly key: ObjectKey;
    readonly blocks: readonly Block[];
    readonly settings: Awaited<ReturnType<typeof settingsOf>>;
    readonly signal: AbortSignal;
  },
): Promise<PreviewBlock[]> {
  return Promise.all(
    blocks.map(async (block) => ({
      ...block,
      whoMay: await (block.reason === 'Protected'
        ? whoMayLift(reader, key, { settings, signal })
        : whoMayStop(reader, key, signal)),
    })),
  );
}

/** Of a namespace. */
export async function previewNamespace(
  reader: ClusterReader,
  namespace: Namespace,
  signal: AbortSignal,
): Promise<NamespacePreview> {
  const { name = '' } = namespace.metadata;
  const [verdict, objects, settings, machines, vmis, pods, claims] = await Promise.all([
    dryRunDelete(reader.client, NAMESPACES, { namespace: '', name }, signal),
    objectsOfNamespace(reader, name, signal),
    settingsOf(reader),
    reader.some(VIRTUAL_MACHINES, { namespace: name }),
    reader.some(VIRTUAL_MACHINE_INSTANCES, { namespace: name }),
    reader.some(PODS, { namespace: name }),
    reader.some(PERSISTENT_VOLUME_CLAIMS, { namespace: name }),
  ]);
  const instances = new Map(vmis.map((vmi) => [vmi.metadata.name, vmi]));
  // "Only when stopped" does not keep a namespace: its instances go first.
  const guarding = machines.flatMap((vm) => {
    const blocks = blocksOf(vm, { vmi: instances.get(vm.metadata.name), settings });
    return blocks.some(({ reason }) => reason === 'Protected') ? [{ name: vm.metadata.name ?? '', blocks }] : [];
  });
  const kruise = kruiseRefusal(kruiseHookOf('', 'namespaces')!, namespace, {
    activePods: () => pods.filter(isActivePod).length,
    boundClaims: () => claims.filter(isBoundClaim).length,
    customResources: () => 0,
  });
  const counts = new Map<string, number>();
  for (const object of objects) {
    const resource = qualifiedResource(object);
    counts.set(resource, (counts.get(resource) ?? 0) + 1);
  }
  return {
    object: { kind: 'Namespace', name },
    verdict,
    blocks:
      kruise === undefined
        ? []
        : [
            {
              reason: 'KruiseProtected',
              message: kruise,
              command: `kubectl label namespace ${name} ${KRUISE_PROTECTION_LABEL}-`,
              whoMay: await whoMayLabelNamespace(reader, name, signal),
            },
          ],
    machines: await Promise.all(
      guarding
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .map(async ({ name: vm, blocks }) => ({
          name: vm,
          blocks: await withLifting(reader, { key: { namespace: name, name: vm }, blocks, settings, signal }),
        })),
    ),
    counts: [...counts].map(([resource, count]) => ({ resource, count })),
    finalizers: finalizerRows(objects),
    notListed: notListedOf(reader),
  };
}
