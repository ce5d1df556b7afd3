import { isOwnedBy } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { formatTime, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { NODES } from '@coracle/apimachinery/types/resource-types';
import { isConflict, orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import type { AskAgent } from '@coracle/client/controller/ask-agent';
import { type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { addFinalizer, hasFinalizer, removeFinalizer } from '@coracle/client/finalizer/finalizer';
import { POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import {
  type ReadonlySnapshot,
  type ReadonlyVm,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachineSnapshot,
} from '../../kinds/kubevirt.ts';
import { claimVolumes, FORK_INTO, FORKED_FROM } from '../../rules/memory-state/fork.ts';
import type { DeleteMemory, MemorySaved, SaveMemory } from '../../rules/memory-state/memory-calls.ts';
import {
  includesMemory,
  MEMORY_FINALIZER,
  MEMORY_INCLUDED,
  MEMORY_NODE,
  MEMORY_OUTCOME,
  MEMORY_POOL,
  type MemoryOutcome,
  memoryOutcome,
} from '../../rules/memory-state/saved-memory.ts';
import { createClaimSnapshots } from './claim-snapshots.ts';
import { createForker } from './fork.ts';

export interface MemoryControllerOptions extends ControllerEnvironment {
  readonly askAgent: AskAgent;
}

/** Saving waits for the agent: as long as that may take, and a little. */
const SAVE_MS = 150_000;

/** A node that does not answer is asked again. */
const RETRY_MS = 2000;

/** Lost races against other writers of a snapshot, one after the other, before the pass is repeated later. */
const MAX_TRIES = 4;

/** How saving came out, and why not. */
interface Outcome {
  readonly outcome: MemoryOutcome;
  readonly reason: string;
  readonly message: string;
}

/** What a pass over a snapshot that was not saved comes to: it is known how it came out, or will be later. */
type Saving =
  | { readonly type: 'reported'; readonly snapshot: ReadonlySnapshot }
  | { readonly type: 'later'; readonly result: ReconcileResult };

const NOTHING_YET: Saving = { type: 'later', result: undefined };

/** What a snapshot is taken of. */
type Source =
  | { readonly type: 'missing' }
  | { readonly type: 'stopped' }
  | {
      readonly type: 'running';
      readonly vm: ReadonlyVm;
      readonly vmi: ReadonlyVmi;
      readonly nodeName: string;
    };

function sourceOf(vm: ReadonlyVm | undefined, vmi: ReadonlyVmi | undefined): Source {
  if (!vm) return { type: 'missing' };
  const nodeName = vmi?.status?.nodeName;
  if (!vmi || !isOwnedBy(vmi, vm.metadata.uid) || vmi.status?.phase !== 'Running' || !nodeName)
    return { type: 'stopped' };
  return { type: 'running', vm, vmi, nodeName };
}

/** Reason and message of the condition, kept until its status is there. */
const MEMORY_TEXT = 'coracle.dev/memory-text';

function textOf({ metadata }: ReadonlySnapshot): { readonly reason: string; readonly message: string } {
  try {
    const { reason, message } = JSON.parse(metadata.annotations?.[MEMORY_TEXT] ?? '') as Record<string, unknown>;
    if (typeof reason === 'string' && typeof message === 'string') return { reason, message };
  } catch {
    // Written by somebody else.
  }
  return { reason: memoryOutcome({ metadata }) ?? '', message: '' };
}

/** The steps of a snapshot with memory: saved, reported, removed. */
export class MemorySteps extends ControllerSteps<MemoryControllerOptions> {
  readonly #askAgent = this.options.askAgent;
  readonly snapshots = this.options.informers.of(VIRTUAL_MACHINE_SNAPSHOTS);
  readonly contents = this.options.informers.of(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  readonly vms = this.options.informers.of(VIRTUAL_MACHINES);
  readonly #vmis = this.options.informers.of(VIRTUAL_MACHINE_INSTANCES);
  readonly #events = createEventRecorder(this.client, { ...this.options, component: 'memory-controller' });
  readonly #claims = createClaimSnapshots(this);
  readonly #fork = createForker({
    ...this.options,
    events: this.#events,
    vms: this.vms,
    vmis: this.#vmis,
    claims: this.#claims,
  });

  async #patchMetadata(snapshot: ReadonlySnapshot, change: (copy: VirtualMachineSnapshot) => VirtualMachineSnapshot) {
    return commit<VirtualMachineSnapshot>(this.client, VIRTUAL_MACHINE_SNAPSHOTS, {
      before: snapshot,
      after: change(cloneJson(snapshot) as VirtualMachineSnapshot),
    });
  }

  /**
   * Says what nobody has said before: the snapshot with it, undefined when there is nothing to be said any more. Each try
   * reads the object anew: the snapshot controller writes to it in the same moments, and a pass that lost to it would come
   * back after a pause, while a fork waits.
   */
  async #annotate(
    { metadata }: ReadonlySnapshot,
    annotations: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<ReadonlySnapshot | undefined> {
    const key = { namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
    for (let tries = 1; ; tries++) {
      const fresh = await this.client.get(VIRTUAL_MACHINE_SNAPSHOTS, key, { signal });
      const isOther = fresh.metadata.uid !== metadata.uid || isDeleting(fresh);
      const isSaid = Object.keys(annotations).some((name) => fresh.metadata.annotations?.[name] !== undefined);
      if (isOther || isSaid || memoryOutcome(fresh) !== undefined) return undefined;
      try {
        return await this.#patchMetadata(fresh, (copy) => {
          const kept = addFinalizer(copy, MEMORY_FINALIZER);
          return {
            ...kept,
            metadata: { ...kept.metadata, annotations: { ...copy.metadata.annotations, ...annotations } },
          };
        });
      } catch (error) {
        if (!isConflict(error) || tries === MAX_TRIES) throw error;
      }
    }
  }

  /** Machines that wait for it go, the state goes, and then the finalizer that kept the snapshot for them. */
  async #remove(snapshot: ReadonlySnapshot, signal: AbortSignal): Promise<ReconcileResult> {
    if (!hasFinalizer(snapshot, MEMORY_FINALIZER)) return;
    await this.#fork.abandon(snapshot, signal);
    const { uid = '', namespace = '', annotations } = snapshot.metadata;
    const node = annotations?.[MEMORY_NODE];
    if (node !== undefined && !(await this.#isNodeGone(node, signal))) {
      const call: DeleteMemory = { state: uid, namespace };
      try {
        await this.#askAgent(node, '/memory/v1/delete', call, { signal });
      } catch (error) {
        if (signal.aborted) throw error;
        this.log.warn('saved memory not removed', { node, state: uid, error: (error as Error).message });
        return requeueAfter(RETRY_MS);
      }
    }
    await this.#patchMetadata(snapshot, (copy) => removeFinalizer(copy, MEMORY_FINALIZER));
  }

  async #isNodeGone(name: string, signal: AbortSignal): Promise<boolean> {
    return (await orAbsent(this.client.get(NODES, { namespace: '', name }, { signal }))) === undefined;
  }

  /** Writes down how it came out. */
  async #conclude(
    snapshot: ReadonlySnapshot,
    { outcome, reason, message }: Outcome,
    signal: AbortSignal,
  ): Promise<Saving> {
    const text = JSON.stringify({ reason, message });
    const annotated = await this.#annotate(snapshot, { [MEMORY_OUTCOME]: outcome, [MEMORY_TEXT]: text }, signal);
    // Somebody else has said it, or it goes: the pass that this brings about sees to it.
    if (!annotated) return NOTHING_YET;
    this.#events.event(snapshot, outcome === 'Saved' ? 'Normal' : 'Warning', reason, message);
    return { type: 'reported', snapshot: annotated };
  }

  /**
   * The cache may be behind: a snapshot is often asked for right after its machine has started. That it does not run is
   * said for good, and is therefore asked of the server.
   */
  async #findSource(key: ObjectKey, signal: AbortSignal): Promise<Source> {
    const cached = sourceOf(this.vms.get(key), this.#vmis.get(key));
    if (cached.type === 'running') return cached;
    const [vm, vmi] = await Promise.all([
      orAbsent(this.client.get(VIRTUAL_MACHINES, key, { signal })),
      orAbsent(this.client.get(VIRTUAL_MACHINE_INSTANCES, key, { signal })),
    ]);
    return sourceOf(vm, vmi);
  }

  async #save(snapshot: ReadonlySnapshot, signal: AbortSignal): Promise<Saving> {
    const { metadata, spec } = snapshot;
    const { namespace = '', uid = '' } = metadata;
    const isFork = metadata.annotations?.[FORK_INTO] !== undefined;
    if (snapshot.status?.phase === 'Failed' && !isFork) return NOTHING_YET;
    const notSaved = (reason: string, message: string): Promise<Saving> =>
      this.#conclude(snapshot, { outcome: 'NotSaved', reason, message }, signal);
    if (snapshot.status?.phase === 'Failed') return notSaved('SnapshotFailed', 'the snapshot has failed');
    const key = { namespace, name: spec.source.name };
    const source = await this.#findSource(key, signal);
    if (source.type === 'missing') return notSaved('SourceMissing', `VirtualMachine ${key.name} does not exist`);
    if (source.type === 'stopped')
      return notSaved('NotRunning', `VirtualMachine ${key.name} does not run: there is no memory to save`);
    const { vm, vmi, nodeName } = source;
    const known = metadata.annotations?.[MEMORY_NODE] ?? nodeName;
    if (metadata.annotations?.[MEMORY_NODE] === undefined) {
      // First of all the node is written down: what is saved there will be found, and removed with the snapshot.
      const node = await this.client.get(NODES, { namespace: '', name: nodeName }, { signal });
      const pool = node.metadata.labels?.[POOL_LABEL];
      const place = { [MEMORY_NODE]: nodeName, ...(pool !== undefined && { [MEMORY_POOL]: pool }) };
      if (!(await this.#annotate(snapshot, place, signal))) return NOTHING_YET;
    }
    const taken = await this.#claims.snapshotsOf(snapshot, vm, signal);
    if (taken === 'waiting') return { type: 'later', result: requeueAfter(RETRY_MS) };
    if (typeof taken === 'string') return notSaved('NotSaved', taken);
    const call: SaveMemory = {
      state: uid,
      namespace,
      vmi: key.name,
      vmiUid: vmi.metadata.uid ?? '',
      ...(taken.length > 0 && { snapshots: taken }),
    };
    // Those of claims wait for what is saved: nothing of them can be made before.
    const begun = isFork && claimVolumes(vm).length === 0 ? this.#fork.begin(snapshot, vm, signal) : undefined;
    let saved: MemorySaved;
    try {
      const bound = AbortSignal.any([signal, AbortSignal.timeout(SAVE_MS)]);
      saved = (await this.#askAgent(known, '/memory/v1/save', call, { signal: bound })) as MemorySaved;
    } catch (error) {
      signal.throwIfAborted();
      // A node that has just started may not know its guests yet.
      const isUnknownYet = error instanceof ApiError && error.code === 404 && known === nodeName;
      if (error instanceof ApiError && error.code < 500 && !isUnknownYet) return notSaved('NotSaved', error.message);
      this.log.warn('memory not saved yet', { node: known, error: (error as Error).message });
      return { type: 'later', result: requeueAfter(RETRY_MS) };
    } finally {
      await begun;
    }
    const mib = Math.ceil(saved.bytes / 2 ** 20);
    const message = `Memory and devices of the guest are part of the snapshot: ${mib} MiB, taken within ${saved.pauseMs} ms`;
    return this.#conclude(snapshot, { outcome: 'Saved', reason: 'Saved', message }, signal);
  }

  /** Condition `MemoryIncluded`, beside those of the snapshot controller. */
  async #report(snapshot: ReadonlySnapshot): Promise<void> {
    const outcome = memoryOutcome(snapshot);
    if (outcome === undefined || snapshot.status === undefined) return;
    const status = outcome === 'Saved' ? 'True' : 'False';
    const conditions = snapshot.status.conditions ?? [];
    if (conditions.some((each) => each.type === MEMORY_INCLUDED && each.status === status)) return;
    const { reason, message } = textOf(snapshot);
    const after = cloneJson(snapshot) as VirtualMachineSnapshot;
    const condition = { type: MEMORY_INCLUDED, status, reason, message };
    const lastTransitionTime = formatTime(this.clock.now());
    after.status = {
      ...after.status,
      conditions: [
        ...(after.status?.conditions ?? []).filter(({ type }) => type !== MEMORY_INCLUDED),
        { ...condition, lastProbeTime: null, lastTransitionTime } as never,
      ],
    };
    await commit(this.client, VIRTUAL_MACHINE_SNAPSHOTS, { before: snapshot, after });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const known = this.snapshots.get(key);
    if (!known) return;
    if (isDeleting(known)) return this.#remove(known, signal);
    if (!includesMemory(known)) return;
    const saving: Saving =
      memoryOutcome(known) === undefined ? await this.#save(known, signal) : { type: 'reported', snapshot: known };
    if (saving.type === 'later') return saving.result;
    const { snapshot } = saving;
    const outcome = memoryOutcome(snapshot);
    if (outcome === undefined) return;
    await this.#claims.release(snapshot, signal);
    const isFork = snapshot.metadata.annotations?.[FORK_INTO] !== undefined;
    const result = isFork ? await this.#fork.make(snapshot, outcome, textOf(snapshot).message, signal) : undefined;
    await this.#report(snapshot);
    return result;
  }

  /** A fork is followed until its machines run. */
  readonly forksOf = ({ metadata }: ReadonlyVm): ObjectKey[] => {
    const from = metadata.annotations?.[FORKED_FROM];
    if (from === undefined) return [];
    const own = this.snapshots
      .list(metadata.namespace)
      .filter((each) => each.metadata.annotations?.[FORK_INTO] !== undefined);
    return own.map((each) => ({ namespace: each.metadata.namespace ?? '', name: each.metadata.name ?? '' }));
  };
}
