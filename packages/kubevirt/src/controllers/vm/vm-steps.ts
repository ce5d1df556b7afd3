import { keyText, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { conditionOf, hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { isApiError } from '@coracle/client/api-failure';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { createExpectations } from '@coracle/client/expectations/expectations';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import {
  KUBEVIRTS,
  type ReadonlyKubeVirt,
  type ReadonlyVm,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../kinds/kubevirt.ts';
import { DUPLICATE_FIRMWARE_UUID } from '../../rules/identity/shared-uuids.ts';
import { createUuidIndex } from '../../rules/identity/uuid-index.ts';
import type { Layers } from '../../rules/instancetype/expand.ts';
import { clearAbsent } from '../../rules/live-update/interface-changes.ts';
import { NO_VOLUME_MIGRATION, unservedTexts } from '../../rules/machine/unserved-fields.ts';
import {
  type ClusterConfig,
  clusterConfigOf,
  cpuAllocationRatioOf,
} from '../../rules/machine-defaults/cluster-config.ts';
import { holdMachine, VM_FINALIZER } from '../../rules/machine-defaults/hold-machine.ts';
import { RESUME_FROM } from '../../rules/memory-state/resume-request.ts';
import {
  effectiveRunStrategy,
  type StateChangeRequest,
  startStopDecision,
} from '../../rules/run-strategy/run-strategy.ts';
import { backoffLeft, type StartFailure } from '../../rules/run-strategy/start-failure.ts';
import { buildInstance, StartConflict } from './build-instance.ts';
import { createMachineDisks, type DiskReadiness } from './data-volumes.ts';
import { dumpMemory } from './dump-memory.ts';
import { keepPciTopology } from './keep-pci-topology.ts';
import { releaseCounted } from './release-instance.ts';
import { createSourceLookup } from './source-lookup.ts';
import { createStartRecord } from './start-record.ts';
import { syncInstancetype } from './sync-instancetype.ts';
import { updateInstance } from './update-instance.ts';
import { NOT_LIVE_UPDATABLE, type SyncFailure } from './vm-status.ts';
import { generationOf, VM_GENERATION, viewOf } from './vm-view.ts';

export interface VmControllerOptions extends ControllerEnvironment {
  /** 0 to 1; jitter of the start back-off. */
  readonly random?: () => number;
}

/** When a machine whose instance type or preference is missing is looked at again, whatever the watches say. */
const MISSING_SOURCE_RETRY_MS = 30_000;

/** When a copy that the machine's account may not make is tried again: no watch says that a right was given. */
const REFUSED_COPY_RETRY_MS = 5000;

/** When a change of an instance that was refused as stale is tried again, should its news not come before. */
const STALE_INSTANCE_RETRY_MS = 1000;

/** What one pass carries from step to step. */
export interface Pass {
  readonly key: ObjectKey;
  readonly vm: VirtualMachine;
  /** The instance as cached; replaced by what a create or delete returned. */
  instance: ReadonlyVmi | undefined;
  expects: 'create' | 'delete' | undefined;
  failure: SyncFailure | undefined;
  /** Why only a restart brings what the machine says now; what was known of it until that is decided anew. */
  restartRequired: string | undefined;
  /** What instance type and preference stand for; undefined while that is not known: nothing is started then. */
  layers: Layers | undefined;
  /** Copies of instance type and preference that go when the machine is stored without naming them. */
  readonly unneeded: string[];
  /** What the DataVolumes of the machine say. */
  disks: DiskReadiness | undefined;
  requeueMs: number | undefined;
  /** No later step of this pass has anything to do. */
  isOver: boolean;
  readonly signal: AbortSignal;
}

type Step = (pass: Pass) => Promise<void>;

const problemOf = ({ status }: ReadonlyVm): { readonly reason?: string; readonly message?: string } | undefined =>
  status?.conditions?.find(({ type, status: value }) => type === 'Synchronized' && value === 'False');

const failureOf = (reason: string, error: unknown): SyncFailure => ({
  reason,
  message: error instanceof Error ? error.message : String(error),
});

/** The steps of a machine, in the order of `STEPS`. */
export class VmSteps extends ControllerSteps<VmControllerOptions> {
  readonly random = this.options.random ?? Math.random;
  readonly vms = this.options.informers.of(VIRTUAL_MACHINES);
  readonly vmis = this.options.informers.of(VIRTUAL_MACHINE_INSTANCES);
  readonly #kubevirts = this.options.informers.of(KUBEVIRTS);
  readonly uuids = createUuidIndex(this.vms, this.vmis);
  readonly lookup = createSourceLookup(this.options, this.vms);
  #read: { readonly kubevirt: ReadonlyKubeVirt | undefined; readonly config: ClusterConfig } | undefined;
  readonly #config = (): ClusterConfig => {
    const kubevirt = this.#kubevirts.list()[0];
    if (this.#read === undefined || this.#read.kubevirt !== kubevirt)
      this.#read = { kubevirt, config: clusterConfigOf(kubevirt) };
    return this.#read.config;
  };
  readonly #start = createStartRecord({ client: this.client, lookup: this.lookup, config: this.#config });
  readonly #events = createEventRecorder(this.client, { ...this.options, component: 'virtualmachine-controller' });
  readonly #disks;
  readonly expectations = createExpectations(this.clock);

  constructor(options: VmControllerOptions, enqueue: (key: ObjectKey) => void = () => {}) {
    super(options);
    this.#disks = createMachineDisks({ ...options, events: this.#events, vms: this.vms, enqueue });
  }

  readonly #deletion: Step = async (pass) => {
    const { vm, instance } = pass;
    if (!isDeleting(vm)) return;
    const orphan = vm.metadata.finalizers?.includes('orphan') ?? false;
    if (!instance || orphan) vm.metadata.finalizers = (vm.metadata.finalizers ?? []).filter((f) => f !== VM_FINALIZER);
    else if (!isDeleting(instance)) await this.#deleteInstance(pass);
    if (instance) await releaseCounted(this.client, pass.vm, instance);
    pass.isOver = true;
  };

  readonly #finalizer: Step = async ({ vm }) => {
    holdMachine(vm);
  };

  // The instance goes on from the state: the next one boots.
  readonly #resumed: Step = async ({ vm, instance }) => {
    const annotations = vm.metadata.annotations;
    const from = annotations?.[RESUME_FROM];
    if (from === undefined || instance?.metadata.annotations?.[RESUME_FROM] !== from) return;
    if (instance.status?.phase !== 'Running') return;
    const { [RESUME_FROM]: _, ...rest } = annotations ?? {};
    vm.metadata.annotations = rest;
  };

  readonly #instancetype: Step = async (pass) => {
    const { vm } = pass;
    const outcome = await syncInstancetype(vm, {
      client: this.client,
      lookup: this.lookup,
      config: this.#config(),
      keepStart: (next, layers) => this.#start.keep({ vm: next, instance: pass.instance, layers }),
      unneeded: (name) => pass.unneeded.push(name),
    });
    switch (outcome.type) {
      case 'layers':
        pass.layers = outcome.layers;
        return;
      case 'expanded':
        pass.isOver = true;
        return;
      case 'failed': {
        const { failure } = outcome;
        const known = conditionOf(vm, 'Failure');
        if (known?.message !== failure.message) this.#events.event(vm, 'Warning', failure.reason, failure.message);
        pass.failure = failure;
        // A change of what is missing has the machine looked at again; this is for what no watch tells.
        pass.requeueMs = MISSING_SOURCE_RETRY_MS;
      }
    }
  };

  readonly #releaseFinal: Step = async (pass) => {
    if (pass.instance) await releaseCounted(this.client, pass.vm, pass.instance);
  };

  // The disks of its templates come first: without them it does not start.
  readonly #dataVolumes: Step = async (pass) => {
    const { vm, signal } = pass;
    const requests = (vm.status?.stateChangeRequests ?? []) as readonly StateChangeRequest[];
    const isWanted = effectiveRunStrategy(vm.spec) !== 'Halted' || requests.some(({ action }) => action === 'Start');
    pass.disks = await this.#disks.sync(vm, isWanted, signal);
    if (pass.disks.failure) {
      pass.failure = pass.disks.failure;
      pass.requeueMs = REFUSED_COPY_RETRY_MS;
    }
  };

  readonly #runStrategy: Step = async (pass) => {
    const { vm, instance } = pass;
    const strategy = effectiveRunStrategy(vm.spec);
    const requests = (vm.status?.stateChangeRequests ?? []) as readonly StateChangeRequest[];
    const decision = startStopDecision({
      strategy,
      instance: instance && viewOf(instance),
      requests,
      lastStrategy: vm.status?.runStrategy,
      backoffMs: backoffLeft(vm.status?.startFailure as StartFailure | undefined, this.clock.now()),
    });
    switch (decision.type) {
      case 'keep':
        return;
      case 'wait':
        pass.requeueMs = decision.ms;
        return;
      case 'unhalt':
        if (vm.spec.running !== undefined) vm.spec.running = true;
        else vm.spec.runStrategy = 'Always';
        pass.isOver = true;
        return;
      case 'create':
        // A restore replaces the disks of a machine that does not run: it starts when that is done.
        if (vm.status?.restoreInProgress === undefined) await this.#createInstance(pass, decision.paused);
        return;
      case 'delete':
        await this.#deleteInstance(pass);
        if (decision.thenStart && vm.status)
          vm.status.stateChangeRequests = [...(vm.status.stateChangeRequests ?? []), { action: 'Start' }];
        return;
    }
  };

  // A change of the VM that does not touch the template leaves the instance up to date: say so on it.
  readonly #observedGeneration: Step = async (pass) => {
    const { vm, instance } = pass;
    if (!instance || isDeleting(instance) || hasEnded(instance)) return;
    const known = generationOf(instance);
    if (known === vm.metadata.generation) return;
    const generation = this.#start.generation(pass);
    // Once it is said it only goes on; an instance of which nothing is said gets the number of its start.
    if (generation === undefined || (known !== undefined && generation !== vm.metadata.generation)) return;
    pass.instance = await this.client.patch(VIRTUAL_MACHINE_INSTANCES, pass.key, {
      type: 'merge',
      body: { metadata: { uid: instance.metadata.uid, annotations: { [VM_GENERATION]: String(generation) } } },
    });
  };

  // What the instance was given, and what it has let go of, is written into the template.
  readonly #followInstance: Step = async ({ vm, instance }) => {
    if (!instance) return;
    keepPciTopology(vm, instance);
    clearAbsent(vm, instance);
  };

  // What the cluster updates while a guest runs goes into the spec of the instance; what it cannot says why.
  readonly #liveUpdate: Step = async (pass) => {
    const { vm, instance, layers } = pass;
    // What the machine stands for now is not known: what was known of it still holds.
    if (!layers) return;
    pass.restartRequired = this.#start.isRestartRequired(pass) ? NOT_LIVE_UPDATABLE : undefined;
    if (this.clock.turnIsLong()) await nextTurn();
    if (!instance) return;
    const update = await updateInstance(this.client, {
      vm,
      instance,
      layers,
      isFilled: pass.disks?.state !== 'provisioning' && pass.disks?.state !== 'error',
      config: this.#config(),
      cpuAllocationRatio: cpuAllocationRatioOf(this.#kubevirts.list()[0]),
      isRestartRequired: pass.restartRequired !== undefined,
    });
    pass.instance = update.instance;
    pass.restartRequired ??= update.restart;
    pass.failure ??= update.failure;
    if (update.isStale) pass.requeueMs = STALE_INSTANCE_RETRY_MS;
  };

  readonly #memoryDump: Step = async (pass) => {
    if (pass.vm.status?.memoryDumpRequest)
      await dumpMemory(pass, { client: this.client, events: this.#events, now: this.clock.now() });
  };

  readonly STEPS: readonly Step[] = [
    this.#deletion,
    this.#finalizer,
    this.#resumed,
    this.#instancetype,
    this.#releaseFinal,
    this.#dataVolumes,
    this.#runStrategy,
    this.#observedGeneration,
    this.#followInstance,
    this.#liveUpdate,
    this.#memoryDump,
  ];

  /** What keeps the instance from starting, and who else has its UUID, are events of the machine too, once for each text. */
  tellProblems(before: ReadonlyVm, after: ReadonlyVm): void {
    const problem = problemOf(after);
    if (problem?.message && problem.message !== problemOf(before)?.message)
      this.#events.event(after, 'Warning', problem.reason ?? 'FailedStart', problem.message);
    const duplicate = conditionOf(after, DUPLICATE_FIRMWARE_UUID)?.message;
    if (duplicate && duplicate !== conditionOf(before, DUPLICATE_FIRMWARE_UUID)?.message)
      this.#events.event(after, 'Warning', DUPLICATE_FIRMWARE_UUID, duplicate);
  }

  /** What its guest will not get of what it asks for, at each change of the machine. */
  tellUnserved({ metadata, spec, status, ...vm }: ReadonlyVm): void {
    if (status?.desiredGeneration === metadata.generation || metadata.deletionTimestamp !== undefined) return;
    const ofMachine = spec.updateVolumesStrategy === 'Migration' ? [NO_VOLUME_MIGRATION] : [];
    for (const text of [...ofMachine, ...unservedTexts(spec.template?.spec)])
      this.#events.event({ ...vm, metadata }, 'Warning', 'NotSupported', text);
  }

  async #createInstance(pass: Pass, paused: boolean): Promise<void> {
    const { vm, key } = pass;
    const { name } = key;
    if (this.vmis.get(key)) {
      const message = `a VirtualMachineInstance named ${name} that this VirtualMachine does not own is in the way`;
      pass.failure = { reason: 'FailedCreate', message };
      return;
    }
    // The failure says what is missing.
    if (pass.layers === undefined || pass.disks?.mayStart === false) return;
    pass.expects = 'create';
    try {
      const wanted = buildInstance(vm, { paused, layers: pass.layers, config: this.#config() });
      await this.#start.take(vm);
      this.expectations.expectCreations(keyText(key), 1);
      pass.instance = await this.client.create(VIRTUAL_MACHINE_INSTANCES, wanted);
      const message = `Started the virtual machine by creating the new virtual machine instance ${name}`;
      this.#events.event(vm, 'Normal', 'SuccessfulCreate', message);
    } catch (error) {
      this.expectations.creationFailed(keyText(key));
      pass.failure = failureOf('FailedCreate', error);
      const message = `Error creating virtual machine instance ${name}: ${pass.failure.message}`;
      this.#events.event(vm, 'Warning', 'FailedCreate', message);
      // Only a change of the machine helps, and that is noticed.
      if (!(error instanceof StartConflict)) throw error;
    }
  }

  async #deleteInstance(pass: Pass): Promise<void> {
    const { vm, instance, key } = pass;
    if (!instance) return;
    pass.expects = 'delete';
    try {
      const { uid = '', resourceVersion = '' } = instance.metadata;
      // An instance that was orphaned a moment ago is no longer the machine's, whatever the cache still says.
      const preconditions = { uid, ...(isDeleting(vm) && { resourceVersion }) };
      await this.client.delete(VIRTUAL_MACHINE_INSTANCES, key, { preconditions });
      const message = `Stopped the virtual machine by deleting the virtual machine instance ${instance.metadata.uid}`;
      this.#events.event(vm, 'Normal', 'SuccessfulDelete', message);
    } catch (error) {
      if (isApiError(error, 404, 409)) return;
      pass.failure = failureOf('FailedDelete', error);
      const message = `Error deleting virtual machine instance ${instance.metadata.name}: ${pass.failure.message}`;
      this.#events.event(vm, 'Warning', 'FailedDelete', message);
      throw error;
    }
  }
}
