import {
  type Controller,
  controllerOwner,
  createController,
  ownKeys,
  source,
} from '@coracle/client/controller/controller';
import { contentNameOf } from '../../rules/snapshot/snapshot-names.ts';
import { ContentSteps } from './content-steps.ts';
import type { SnapshotControllerOptions } from './snapshot-controller.ts';

/** Makes the controller; nothing happens before `start`. */
export function createContentController(options: SnapshotControllerOptions): Controller {
  const steps = new ContentSteps(options);
  return createController({
    ...options,
    name: 'snapshot-content',
    concurrency: 4,
    sources: [
      ownKeys(steps.contents),
      source(steps.snapshots, (snapshot) => [
        { namespace: snapshot.metadata.namespace ?? '', name: contentNameOf(snapshot) },
      ]),
      controllerOwner(steps.volumeSnapshots, { group: 'snapshot.kubevirt.io', kind: 'VirtualMachineSnapshotContent' }),
    ],
    reconcile: async (key) => {
      const content = steps.contents.get(key);
      if (content !== undefined) return steps.reconcile(content);
    },
  });
}
