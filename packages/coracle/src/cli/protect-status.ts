/**
 * `coracle protect status`: the protected machines with what each keeps and what of that is missing; of one machine also by
 * what it is protected and who may lift that.
 */

import { qualifiedResource } from '@coracle/apimachinery/meta/gvk';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import { type ReadonlyVm, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/kubevirt';
import { blocksOf } from '@coracle/kubevirt/rules/deletion-preview/deletion-preview';
import {
  type GuardedPart,
  guardedParts,
  partKey,
  sharersOf,
} from '@coracle/kubevirt/rules/deletion-preview/guarded-parts';
import { GRAPH_RESOURCES } from '@coracle/kubevirt/rules/object-graph/graph-resources';
import { isDeleteProtected } from '@coracle/kubevirt/rules/protection/delete-protection';
import { mustStopFirst } from '@coracle/kubevirt/rules/protection/delete-when-stopped';
import { clusterFrom } from '../config/cluster.ts';
import { type ClusterReader, clusterReader, settingsOf } from './cluster-reader.ts';
import { type CommandContext, CommandError, UsageError } from './command.ts';
import { machineWord } from './machine-target.ts';
import { needVm, withMachine } from './machines/find-machine.ts';
import { namespaceScope } from './namespace-scope.ts';
import { outputFlag } from './output-flag.ts';
import { type MachineStatus, machineStatusText, type PartStatus, statusTable } from './protect-status-text.ts';
import { whoMayLift } from './who-may-lift.ts';

/** Objects that are looked at at the same time. */
const CONCURRENCY = 8;

/** Exit code 0 whether a machine is protected or not. */
export async function protectStatus(context: CommandContext): Promise<number> {
  const { flags, words, print, note, signal } = context;
  const asJson = outputFlag(flags) === 'json';
  const scope = namespaceScope(flags);
  const show = async (client: Client, statuses: (reader: ClusterReader) => Promise<string>): Promise<number> => {
    const reader = clusterReader(client, signal);
    print(await statuses(reader));
    const unseen = [...reader.notListed].sort();
    if (unseen.length > 0 && !asJson) note(`not looked at, since you may not list them: ${unseen.join(', ')}`);
    return 0;
  };
  if (words.length > 0) {
    if (scope.everywhere) throw new UsageError('give a VM or --all-namespaces, not both');
    return withMachine(context, machineWord(words, 'protect status'), (call) =>
      show(call.client, async (reader) => {
        const status = await statusOf(reader, needVm(call), signal);
        return asJson ? JSON.stringify(status, undefined, 2) : machineStatusText(status);
      }),
    );
  }
  await using cluster = await clusterFrom(context);
  const where = scope.of(cluster.namespace);
  return await show(cluster.client, async (reader) => {
    const statuses = await statusesIn(reader, where);
    return asJson ? JSON.stringify({ items: statuses }, undefined, 2) : statusTable(statuses, where);
  });
}

/** Of each protected machine, by namespace and name. */
async function statusesIn(reader: ClusterReader, namespace: string | undefined): Promise<MachineStatus[]> {
  const where = namespace === undefined ? {} : { namespace };
  const machines = await reader.some(VIRTUAL_MACHINES, where);
  if (reader.notListed.has(qualifiedResource(VIRTUAL_MACHINES)))
    throw new CommandError(
      `you may not list virtualmachines ${namespace === undefined ? 'of all namespaces (give -n)' : `in namespace ${namespace}`}`,
    );
  const [claims, settings] = await Promise.all([reader.some(PERSISTENT_VOLUME_CLAIMS, where), settingsOf(reader)]);
  const guarded = machines
    .filter((vm) => isDeleteProtected(vm))
    .map((vm) => ({ vm, parts: guardedParts(vm, claims) }))
    .sort((a, b) => (textOf(a.vm) < textOf(b.vm) ? -1 : 1));
  const states = await statesOf(
    reader,
    guarded.flatMap(({ parts }) => parts),
    claims,
  );
  return guarded.map(({ vm, parts }) => ({
    ...keyOf(vm),
    protected: true,
    onlyWhenStopped: mustStopFirst(vm, settings),
    parts: parts.map((part) => ({ ...part, state: states.get(partKey(part)) ?? 'Unknown' })),
  }));
}

/** Of one machine, protected or not. */
async function statusOf(reader: ClusterReader, vm: ReadonlyVm, signal: AbortSignal): Promise<MachineStatus> {
  const key = keyOf(vm);
  const where = { namespace: key.namespace };
  const [machines, claims, settings, vmis] = await Promise.all([
    reader.some(VIRTUAL_MACHINES, where),
    reader.some(PERSISTENT_VOLUME_CLAIMS, where),
    settingsOf(reader),
    reader.some(VIRTUAL_MACHINE_INSTANCES, where),
  ]);
  const parts = guardedParts(vm, claims);
  const [states, whoMay] = await Promise.all([
    statesOf(reader, parts, claims),
    whoMayLift(reader, key, { settings, signal }),
  ]);
  const sharers = sharersOf(vm, parts, machines);
  const vmi = vmis.find(({ metadata }) => metadata.name === key.name);
  return {
    ...key,
    protected: isDeleteProtected(vm),
    onlyWhenStopped: mustStopFirst(vm, settings),
    blocks: blocksOf(vm, { vmi, settings }),
    whoMay,
    parts: parts.map((part): PartStatus => {
      const usedBy = sharers.get(partKey(part)) ?? [];
      const state = states.get(partKey(part)) ?? 'Unknown';
      return { ...part, state, ...(usedBy.length > 0 && state !== 'Unknown' && { usedBy }) };
    }),
  };
}

/** Whether each part is there: claims as they were listed, others one by one, each once. */
async function statesOf(
  reader: ClusterReader,
  parts: readonly GuardedPart[],
  claims: readonly ReadonlyClaim[],
): Promise<ReadonlyMap<string, PartStatus['state']>> {
  const states = new Map<string, PartStatus['state']>();
  const wanted = new Map(parts.map((part) => [partKey(part), part]));
  if (!reader.notListed.has(qualifiedResource(PERSISTENT_VOLUME_CLAIMS))) {
    const listed = new Set(claims.map((claim) => textOf(claim)));
    for (const [key, { kind, namespace, name }] of wanted)
      if (kind === 'PersistentVolumeClaim') {
        states.set(key, listed.has(`${namespace}/${name}`) ? 'Exists' : 'Missing');
        wanted.delete(key);
      }
  }
  const entries = wanted.entries();
  const worker = async (): Promise<void> => {
    for (const [key, { kind, namespace, name }] of entries) {
      const looked = await reader.get(GRAPH_RESOURCES[kind], { namespace, name });
      states.set(key, looked === 'missing' ? 'Missing' : looked === 'forbidden' ? 'Unknown' : 'Exists');
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return states;
}

const keyOf = ({ metadata: { namespace = '', name = '' } }: ReadonlyVm): { namespace: string; name: string } => ({
  namespace,
  name,
});
const textOf = ({ metadata: { namespace, name } }: Pick<ReadonlyVm, 'metadata'>): string => `${namespace}/${name}`;
