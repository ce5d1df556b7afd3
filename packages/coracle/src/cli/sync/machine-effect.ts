/**
 * What a change of a virtual machine means for its guest, by the rules of its controller: the same code says whether a restart
 * is required, and what goes into the running instance.
 */

import { isControlledBy } from '@coracle/apimachinery/meta/controller-reference';
import { hasEnded, isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import { CONTROLLER_REVISIONS } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { sourceReader } from '@coracle/kubevirt/controllers/virt-api/virt-api';
import { createStartRecord } from '@coracle/kubevirt/controllers/vm/start-record';
import { expandedSpec } from '@coracle/kubevirt/controllers/vm/start-revision';
import {
  KUBEVIRTS,
  type ReadonlyKubeVirt,
  type ReadonlyVm,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCES,
} from '@coracle/kubevirt/kinds/kubevirt';
import type { Layers } from '@coracle/kubevirt/rules/instancetype/expand';
import { layersOf, readSources } from '@coracle/kubevirt/rules/instancetype/resolve';
import { liveUpdateDecision } from '@coracle/kubevirt/rules/live-update/live-update-decision';
import { clusterConfigOf, cpuAllocationRatioOf } from '@coracle/kubevirt/rules/machine-defaults/cluster-config';
import { DefaultsError } from '@coracle/kubevirt/rules/machine-defaults/implicit-devices';
import { effectiveRunStrategy, type RunStrategy } from '@coracle/kubevirt/rules/run-strategy/run-strategy';

/**
 * `live`: the running guest gets it. `restart`: it waits for the next restart (condition RestartRequired). `start`, `stop`,
 * `delete`: the guest boots, is shut down, goes. `unknown`: the caller may not read what it depends on.
 */
export type MachineEffect = 'none' | 'live' | 'restart' | 'start' | 'stop' | 'delete' | 'unknown';

export interface EffectOnMachine {
  readonly effect: MachineEffect;
  readonly why?: string;
}

export interface MachineChange {
  /** Undefined for a machine that is made. */
  readonly before: ReadonlyVm | undefined;
  /** As the server would store it; undefined for one that is deleted. */
  readonly after: ReadonlyVm | undefined;
}

const STARTS: ReadonlySet<RunStrategy> = new Set(['Always', 'RerunOnFailure', 'Once']);

/** Tells it. Rejects with ApiError when the caller may not read what it depends on. */
export async function effectOnMachine(
  { before, after }: MachineChange,
  { client, signal }: { readonly client: Client; readonly signal: AbortSignal },
): Promise<EffectOnMachine> {
  if (!before) return after && STARTS.has(effectiveRunStrategy(after.spec)) ? { effect: 'start' } : { effect: 'none' };
  const instance = await runningInstance(before, client, signal);
  if (!after) return instance ? { effect: 'delete', why: 'it runs' } : { effect: 'delete' };
  const strategy = effectiveRunStrategy(after.spec);
  if (!instance) {
    const isStarted = STARTS.has(strategy) && !STARTS.has(effectiveRunStrategy(before.spec));
    return isStarted ? { effect: 'start' } : { effect: 'none', why: 'it does not run' };
  }
  if (strategy === 'Halted') return { effect: 'stop' };
  const kubevirt = (await client.list(KUBEVIRTS, { signal })).items[0];
  return effectOnInstance({ after, instance, layers: await layersFor(after, client), kubevirt }, { client, signal });
}

async function runningInstance(
  { metadata }: ReadonlyVm,
  client: Client,
  signal: AbortSignal,
): Promise<ReadonlyVmi | undefined> {
  const key = { namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
  const found = await orAbsent(client.get(VIRTUAL_MACHINE_INSTANCES, key, { signal }));
  return hasEnded(found) ? undefined : found;
}

/** Undefined when what its matchers stand for is not there. */
async function layersFor(vm: ReadonlyVm, client: Client): Promise<Layers | undefined> {
  const found = await readSources(vm, sourceReader(client));
  const isMissing = found.instancetype.type === 'missing' || found.preference.type === 'missing';
  return isMissing ? undefined : layersOf(found);
}

async function effectOnInstance(
  {
    after,
    instance,
    layers,
    kubevirt,
  }: {
    readonly after: ReadonlyVm;
    readonly instance: ReadonlyVmi;
    readonly layers: Layers | undefined;
    readonly kubevirt: ReadonlyKubeVirt | undefined;
  },
  { client, signal }: { readonly client: Client; readonly signal: AbortSignal },
): Promise<EffectOnMachine> {
  if (!layers) return { effect: 'none', why: 'its instance type or preference does not exist' };
  const { uid, namespace = '' } = after.metadata;
  const revisions = (await client.list(CONTROLLER_REVISIONS, { namespace, signal })).items.filter((revision) =>
    isControlledBy(revision, uid),
  );
  const config = clusterConfigOf(kubevirt);
  const record = createStartRecord({
    client,
    config: () => config,
    lookup: {
      reader: sourceReader(client),
      cachedRevision: (_namespace, name) => revisions.find(({ metadata }) => metadata.name === name),
      ownRevisions: () => revisions,
      sources: [],
    },
  });
  const wasPending = isConditionTrue(after, 'RestartRequired');
  if (record.isRestartRequired({ vm: after, instance, layers }))
    return { effect: 'restart', ...(wasPending && { why: 'a restart is required already' }) };
  if (!config.liveUpdate) return { effect: 'none' };
  let wanted: ReturnType<typeof expandedSpec>;
  try {
    wanted = expandedSpec({ spec: after.spec, layers }, config);
  } catch (error) {
    if (!(error instanceof DefaultsError)) throw error;
  }
  if (!wanted) return { effect: 'none', why: 'its settings contradict each other' };
  const decision = liveUpdateDecision({ wanted, vmi: instance, cpuAllocationRatio: cpuAllocationRatioOf(kubevirt) });
  if (decision.restart !== undefined) return { effect: 'restart', why: decision.restart };
  if (decision.failure) return { effect: 'live', why: `it has to wait: ${decision.failure.message}` };
  return { effect: decision.patch.length > 0 ? 'live' : 'none' };
}
