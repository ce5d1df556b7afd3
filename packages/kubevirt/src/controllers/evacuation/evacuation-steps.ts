import { keyOf, keyText } from '@coracle/apimachinery/meta/object';
import { NODES } from '@coracle/apimachinery/types/resource-types';
import type { Node } from '@coracle/apimachinery/types/types';
import { orAbsent, orGone } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { createExpectations } from '@coracle/client/expectations/expectations';
import {
  KUBEVIRTS,
  type ReadonlyMigration,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../kinds/kubevirt.ts';
import { EVACUATION_ANNOTATION } from '../../rules/launcher/launcher-labels.ts';
import { launcherPodInformer } from '../launcher-pod-informer.ts';
import { DRAIN_ANNOTATION, priorityFor } from './evacuation-plan.ts';

/** What an evacuation writes: migrations, marks and notes. */
export class EvacuationSteps extends ControllerSteps<ControllerEnvironment> {
  readonly informers = this.options.informers;
  readonly nodes = this.informers.of<Node>(NODES);
  readonly vmis = this.informers
    .of(VIRTUAL_MACHINE_INSTANCES)
    .addIndex('node', ({ status }) => (status?.nodeName ? [status.nodeName] : []));
  readonly migrations = this.informers.of(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  readonly kubevirts = this.informers.of(KUBEVIRTS);
  readonly pods = launcherPodInformer(this.options);
  readonly events = createEventRecorder(this.client, { ...this.options, component: 'disruptionbudget-controller' });
  /** By instance: a migration made for it that the cache does not show yet. */
  readonly expectations = createExpectations(this.clock);

  async evacuate(nodeName: string, vmi: ReadonlyVmi): Promise<void> {
    const text = keyText(keyOf(vmi));
    this.expectations.expectCreations(text, 1);
    try {
      const made = await this.client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceMigration',
        metadata: {
          generateName: 'kubevirt-evacuation-',
          namespace: vmi.metadata.namespace ?? '',
          annotations: { [EVACUATION_ANNOTATION]: nodeName },
        },
        spec: { vmiName: vmi.metadata.name ?? '', priority: priorityFor(vmi) },
      } as VirtualMachineInstanceMigration);
      this.events.event(vmi, 'Normal', 'SuccessfulCreate', `Created Migration ${made.metadata.name}`);
    } catch (error) {
      this.expectations.creationFailed(text);
      this.events.event(vmi, 'Warning', 'FailedCreate', `Error creating a Migration: ${(error as Error).message}`);
      throw error;
    }
  }

  /** False when the instance is gone, which is no reason to leave the others of its node waiting. */
  async #write(change: Parameters<typeof commit<VirtualMachineInstance>>[2]): Promise<boolean> {
    const written = commit(this.client, VIRTUAL_MACHINE_INSTANCES, change);
    return (await orAbsent(written.then(() => true))) ?? false;
  }

  /** Takes the mark back, unless it is another one by now; then the note of the drain. */
  async release(nodeName: string, vmi: ReadonlyVmi): Promise<void> {
    const before = vmi as VirtualMachineInstance;
    const { evacuationNodeName: _, ...status } = before.status ?? {};
    const after = { ...before, status: status as NonNullable<VirtualMachineInstance['status']> };
    if (!(await this.#write({ before, after, subresource: 'status' }))) return;
    const message = `Node ${nodeName} takes guests again: the evacuation of this instance is called off`;
    this.events.event(vmi, 'Normal', 'EvacuationCancelled', message);
  }

  async setNote(vmi: ReadonlyVmi, nodeName: string | undefined): Promise<void> {
    const before = vmi as VirtualMachineInstance;
    const { [DRAIN_ANNOTATION]: _, ...rest } = before.metadata.annotations ?? {};
    const annotations = nodeName === undefined ? rest : { ...rest, [DRAIN_ANNOTATION]: nodeName };
    await this.#write({ before, after: { ...before, metadata: { ...before.metadata, annotations } } });
  }

  readonly cancel = async (migration: ReadonlyMigration): Promise<void> => {
    const preconditions = { uid: migration.metadata.uid ?? '' };
    await orGone(this.client.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, keyOf(migration), { preconditions }));
  };
}
