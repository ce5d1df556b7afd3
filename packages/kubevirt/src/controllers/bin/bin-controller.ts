/**
 * Keeps deleted virtual machines, brings them back, and releases them. Its keys are DeletedVirtualMachineContents; the
 * records in the namespaces say what tenants ask for and get.
 *
 * Guarantees: a machine's deletion waits for nothing here. A volume is deleted only by the end of a content that holds it;
 * an undelete that has begun is finished, or taken back, before its content can end. What a record says is believed of
 * its request alone, and only while its namespace is that of the machine.
 */

import { keyOf } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { isConflict } from '@coracle/client/api-failure';
import {
  type Controller,
  createController,
  ownKeys,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import { contentNameOf } from '../../rules/bin/bin-names.ts';
import { type BinPass, BinProblem, NotYet, writeStatus } from './bin-pass.ts';
import { countRoom } from './bin-room.ts';

import { type BinControllerOptions, BinSteps, RELEASING, ROOM_KEY, WAIT_MS } from './bin-steps.ts';

/** Rights the controller needs, and no others. */
export const binControllerRules = policyRules(
  'get list watch patch delete : coracle.dev : deletedvirtualmachines deletedvirtualmachinecontents',
  'patch : coracle.dev : deletedvirtualmachines/status deletedvirtualmachinecontents/status',
  'list watch : kubevirt.io : kubevirts',
  'get list watch create : kubevirt.io : virtualmachines',
  'get : core : namespaces',
  'get list watch : core : nodes',
  'get create patch delete : core : persistentvolumeclaims persistentvolumes secrets configmaps',
  'get create patch delete : apps : controllerrevisions',
  'get create patch delete : cdi.kubevirt.io : datavolumes',
  'create patch : core : events',
);

/** Space is counted so often while the bin holds anything. */
const ROOM_MS = 15_000;
/** So is a pool that cannot be reached. */
const SLOW_MS = 1000;
/** Makes the controller. */
export function createBinController(options: BinControllerOptions): Controller {
  const steps = new BinSteps(options, (key, ms) => controller.enqueue(key, ms));
  const controller: Controller = createController({
    ...options,
    name: 'bin',
    concurrency: 4,
    sources: [
      ownKeys(steps.contents),
      source(steps.contents, (_, previous) => (previous === undefined ? [ROOM_KEY] : [])),
      source(steps.records, ({ spec }) => [steps.clusterKey(spec.content)]),
      source(steps.vms, ({ metadata }) => [steps.clusterKey(contentNameOf(metadata.uid ?? ''))]),
      source(steps.kubevirts, () => steps.contents.list().map(keyOf)),
    ],
    async reconcile(key, { signal, log: passLog }) {
      if (key.name === ROOM_KEY.name) {
        if (steps.contents.list().length === 0) return;
        await countRoom({
          contents: steps.contents.list(),
          client: steps.client,
          callPool: steps.callPool,
          log: passLog,
          signal,
          onEviction(content, { reason }) {
            const { namespace, name } = content.spec.virtualMachine;
            passLog.warn('deleted virtual machine released before its time', { ns: namespace, vm: name, reason });
            const record = steps.recordOf(content);
            const message = `Released before its retention expired: ${reason}`;
            if (record) steps.events.event(record, 'Warning', 'ReleasedEarly', message);
          },
        }).catch((error: unknown) => {
          if (!isConflict(error)) throw error;
        });
        return requeueAfter(ROOM_MS);
      }
      const content = steps.contents.get(key);
      if (!content) return;
      const record = steps.recordOf(content);
      const pass: BinPass = {
        content,
        record,
        client: steps.client,
        callPool: steps.callPool,
        events: steps.events,
        log: passLog,
        now: steps.clock.now(),
        signal,
      };
      await steps.showRecord(pass);
      try {
        return await steps.step(pass);
      } catch (error) {
        if (error instanceof BinProblem) return steps.failed(pass, error.message);
        if (!(error instanceof NotYet)) throw error;
        const { message, phase } = content.status ?? {};
        // What made an undelete fail stays to be read while what it made goes.
        const isReason = phase === 'Reverting' || message === RELEASING;
        if (message !== error.message && !isReason) await writeStatus(pass, { message: error.message });
        return requeueAfter(isDeleting(content) ? SLOW_MS : WAIT_MS);
      }
    },
  });
  return controller;
}
