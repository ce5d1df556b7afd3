/**
 * Keeps deleted virtual machines, brings them back, and releases them. Its keys are DeletedVirtualMachineContents; the
 * records in the namespaces say what tenants ask for and get.
 *
 * Guarantees: a machine's deletion waits for nothing here. A volume is deleted only by the end of a content that holds it;
 * an undelete that has begun is finished, or taken back, before its content can end. What a record says is believed of
 * its request alone, and only while its namespace is that of the machine.
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import { NAMESPACES } from '../../api/kinds/builtin/resource-types.ts';
import {
  type BinStatus,
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  DELETED_VIRTUAL_MACHINES,
  type DeletedVirtualMachine,
  type UndeleteRequest,
} from '../../api/kinds/coracle/kinds.ts';
import { KUBEVIRTS, VIRTUAL_MACHINES } from '../../api/kinds/kubevirt/kubevirt.ts';
import { type DeepReadonly, formatTime, keyOf, type ObjectKey } from '../../api/meta/object.ts';
import { isConflict, orAbsent } from '../../client/api-failure.ts';
import { commit } from '../../client/commit/commit.ts';
import {
  type Controller,
  createController,
  DONE,
  ownKeys,
  type ReconcileResult,
  requeueAfter,
  source,
} from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';
import { createEventRecorder } from '../../client/events/recorder.ts';
import { isDeleting } from '../../client/finalizer/finalizer.ts';
import { contentNameOf } from '../../domain/bin/bin-names.ts';
import { undeleteWindowOf } from '../../domain/bin/bin-settings.ts';
import { vmUuids } from '../../domain/identity/shared-uuids.ts';
import {
  type BinPass,
  BinProblem,
  type CallPool,
  type Content,
  NotYet,
  type RecordOf,
  writeStatus,
} from './bin-pass.ts';
import { countRoom, removeContent } from './bin-room.ts';
import { planUndelete } from './plan-undelete.ts';
import { releaseVolumes } from './release-volumes.ts';
import { revertUndelete } from './revert-undelete.ts';
import { undelete } from './undelete.ts';

const made = ['get', 'create', 'patch', 'delete'];

/** Rights the controller needs, and no others. */
export const binControllerRules: PolicyRule[] = [
  {
    apiGroups: ['coracle.dev'],
    resources: ['deletedvirtualmachines', 'deletedvirtualmachinecontents'],
    verbs: ['get', 'list', 'watch', 'patch', 'delete'],
  },
  {
    apiGroups: ['coracle.dev'],
    resources: ['deletedvirtualmachines/status', 'deletedvirtualmachinecontents/status'],
    verbs: ['patch'],
  },
  { apiGroups: ['kubevirt.io'], resources: ['kubevirts'], verbs: ['list', 'watch'] },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachines'], verbs: ['get', 'list', 'watch', 'create'] },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  {
    apiGroups: [''],
    resources: ['persistentvolumeclaims', 'persistentvolumes', 'secrets', 'configmaps'],
    verbs: made,
  },
  { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: made },
  { apiGroups: ['cdi.kubevirt.io'], resources: ['datavolumes'], verbs: made },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

export interface BinControllerOptions extends ControllerEnvironment {
  readonly callPool: CallPool;
}

/** The key of the space; no content has such a name. */
const ROOM_KEY: ObjectKey = { namespace: '', name: 'ROOM' };
/** Space is counted so often while the bin holds anything. */
const ROOM_MS = 15_000;
/** What somebody else has to do first is looked at again after this long. */
const WAIT_MS = 250;
/** So is a pool that cannot be reached. */
const SLOW_MS = 1000;
/** The answer to requests that come too late. */
const RELEASING = 'its time is over, or the bin was emptied: what is left of it is being released';
/** Timers are set for no longer. */
const LONGEST_MS = 3_600_000;
const BY_UUID = 'bin.firmware-uuid';

/** Makes the controller. */
export function createBinController(options: BinControllerOptions): Controller {
  const { client, informers, clock, log, callPool } = options;
  const contents = informers.of(DELETED_VIRTUAL_MACHINE_CONTENTS);
  const records = informers.of(DELETED_VIRTUAL_MACHINES);
  const vms = informers.of(VIRTUAL_MACHINES);
  const kubevirts = informers.of(KUBEVIRTS);
  vms.addIndex(BY_UUID, vmUuids);
  const events = createEventRecorder(client, { component: 'coracle-bin', clock, log });
  const clusterKey = (name: string): ObjectKey => ({ namespace: '', name });

  const recordOf = ({ spec }: Content): RecordOf | undefined => {
    const found = spec.record && records.get({ namespace: spec.virtualMachine.namespace, name: spec.record });
    return found && found.spec.virtualMachine.uid === spec.virtualMachine.uid ? found : undefined;
  };

  /** Whether somebody has emptied the bin of it: its record is deleted, and its namespace lives on. */
  const isEmptied = async ({ spec }: Content, signal: AbortSignal): Promise<boolean> => {
    if (spec.record === undefined) return false;
    const { namespace } = spec.virtualMachine;
    // Before anything is given up for it the server is asked: the copy lags behind. First the record: one that goes with
    // its namespace does so after that is marked.
    const record = await orAbsent(client.get(DELETED_VIRTUAL_MACHINES, { namespace, name: spec.record }, { signal }));
    if (record) return false;
    const found = await orAbsent(client.get(NAMESPACES, clusterKey(namespace), { signal }));
    return found !== undefined && found.metadata.uid === spec.namespaceUID && !isDeleting(found);
  };

  const keep = async (pass: BinPass): Promise<ReconcileResult> => {
    const { content, record, now, signal } = pass;
    const { virtualMachine } = content.spec;
    const request = record?.spec.undelete ?? content.spec.undelete;
    if (isDeleting(content)) {
      if (request && request.id !== content.status?.failedRequest) throw new BinProblem(RELEASING);
      await releaseVolumes(pass);
      return DONE;
    }
    if (content.status?.goneAt === undefined) {
      const vm = await orAbsent(client.get(VIRTUAL_MACHINES, virtualMachine, { signal }));
      if (vm && vm.metadata.uid === virtualMachine.uid) {
        if (content.status?.phase === undefined) await writeStatus(pass, { phase: 'Deleted' });
        return requeueAfter(LONGEST_MS);
      }
      const goneAt = formatTime(now);
      await writeStatus(pass, { phase: 'Deleted', goneAt, expiresAt: expiryOf(goneAt) });
      // What it takes is shown soon.
      controller.enqueue(ROOM_KEY, WAIT_MS);
      return DONE;
    }
    if (!record && (await isEmptied(content, signal))) {
      await removeContent(client, content, signal);
      return DONE;
    }
    if (request && request.id !== content.status.failedRequest) return accept(pass, request);
    return expire(pass);
  };

  const expiryOf = (goneAt: string): string =>
    formatTime(Date.parse(goneAt) + Math.min(undeleteWindowOf(kubevirts.list()), LATEST));

  const accept = async (pass: BinPass, request: DeepReadonly<UndeleteRequest>): Promise<ReconcileResult> => {
    // Its own copy of before may still be shown.
    const others = (uuid: string) =>
      vms.byIndex(BY_UUID, uuid).filter(({ metadata }) => metadata.uid !== pass.content.spec.virtualMachine.uid);
    const plan = await planUndelete(pass, request, others);
    await writeStatus(pass, { phase: 'Undeleting', plan, message: undefined, failedRequest: undefined });
    return DONE;
  };

  const expire = async (pass: BinPass): Promise<ReconcileResult> => {
    const { content, record, now, signal } = pass;
    const expiresAt = expiryOf(content.status?.goneAt ?? '');
    const left = Date.parse(expiresAt) - now;
    if (left > 0) {
      if (content.status?.expiresAt !== expiresAt) await writeStatus(pass, { expiresAt });
      return requeueAfter(Math.min(left, LONGEST_MS));
    }
    // A request that came at the last moment holds.
    const latest = record && (await orAbsent(client.get(DELETED_VIRTUAL_MACHINES, keyOf(record), { signal })));
    if (latest?.metadata.resourceVersion !== record?.metadata.resourceVersion) return requeueAfter(WAIT_MS);
    tell(pass, 'Normal', 'Expired', 'The time to bring it back is over; its storage is released');
    await removeContent(client, content, signal);
    return DONE;
  };

  const tell = ({ record }: BinPass, type: 'Normal' | 'Warning', reason: string, message: string): void => {
    if (record) events.event(record, type, reason, message);
  };

  const finish = async (pass: BinPass): Promise<ReconcileResult> => {
    const { content, signal } = pass;
    if (isDeleting(content)) await releaseVolumes(pass);
    else await removeContent(client, content, signal);
    return DONE;
  };

  const step = (pass: BinPass): Promise<ReconcileResult> => {
    const { phase = 'Deleted' } = pass.content.status ?? {};
    switch (phase) {
      case 'Deleted':
        return keep(pass);
      case 'Undeleting':
        return undelete(pass).then(() => DONE);
      case 'Reverting':
        return revertUndelete(pass).then(() => DONE);
      case 'Undeleted':
        return finish(pass);
      default:
        return phase satisfies never;
    }
  };

  /** What tenants are shown, and gone with the content. Of an undelete under way until the machine is there. */
  const showRecord = async ({ content, record, signal }: BinPass): Promise<void> => {
    if (!record) return;
    const phase = content.status?.phase ?? 'Deleted';
    if (phase === 'Undeleted' || (phase === 'Deleted' && isDeleting(content))) {
      const preconditions = { uid: record.metadata.uid ?? '' };
      await orAbsent(client.delete(DELETED_VIRTUAL_MACHINES, keyOf(record), { preconditions, signal }));
      return;
    }
    if (!content.status) return;
    const { plan: _, ...status } = content.status;
    const before = record as DeletedVirtualMachine;
    await orAbsent(
      commit(client, DELETED_VIRTUAL_MACHINES, { before, after: { ...before, status: status as BinStatus }, signal }),
    );
  };

  const failed = async (pass: BinPass, message: string): Promise<ReconcileResult> => {
    const { content } = pass;
    const failedRequest = content.status?.plan?.request ?? (pass.record?.spec.undelete ?? content.spec.undelete)?.id;
    tell(pass, 'Warning', 'UndeleteFailed', message);
    const isUnderWay = content.status?.phase === 'Undeleting';
    await writeStatus(pass, { message, failedRequest, ...(isUnderWay && { phase: 'Reverting' }) });
    return DONE;
  };

  const controller: Controller = createController({
    name: 'bin',
    client,
    clock,
    log,
    concurrency: 4,
    sources: [
      ownKeys(contents),
      source(contents, (_, previous) => (previous === undefined ? [ROOM_KEY] : [])),
      source(records, ({ spec }) => [clusterKey(spec.content)]),
      source(vms, ({ metadata }) => [clusterKey(contentNameOf(metadata.uid ?? ''))]),
      source(kubevirts, () => contents.list().map(keyOf)),
    ],
    async reconcile(key, { signal, log: passLog }) {
      if (key.name === ROOM_KEY.name) {
        if (contents.list().length === 0) return DONE;
        await countRoom({
          contents: contents.list(),
          client,
          callPool,
          log: passLog,
          signal,
          onEviction(content, { reason }) {
            const { namespace, name } = content.spec.virtualMachine;
            passLog.warn('deleted virtual machine released before its time', { ns: namespace, vm: name, reason });
            const record = recordOf(content);
            const message = `Released before its time: ${reason}`;
            if (record) events.event(record, 'Warning', 'ReleasedEarly', message);
          },
        }).catch((error: unknown) => {
          if (!isConflict(error)) throw error;
        });
        return requeueAfter(ROOM_MS);
      }
      const content = contents.get(key);
      if (!content) return DONE;
      const record = recordOf(content);
      const pass: BinPass = { content, record, client, callPool, events, log: passLog, now: clock.now(), signal };
      await showRecord(pass);
      try {
        return await step(pass);
      } catch (error) {
        if (error instanceof BinProblem) return failed(pass, error.message);
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

/** A hundred years: formatTime ends with the year 9999. */
const LATEST = 100 * 365 * 86_400_000;
