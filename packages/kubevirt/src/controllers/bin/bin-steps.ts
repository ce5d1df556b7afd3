import { type DeepReadonly, formatTime, keyOf, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { NAMESPACES } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import {
  type BinStatus,
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  DELETED_VIRTUAL_MACHINES,
  type DeletedVirtualMachine,
  type UndeleteRequest,
} from '../../kinds/kinds.ts';
import { KUBEVIRTS, VIRTUAL_MACHINES } from '../../kinds/kubevirt.ts';
import { undeleteWindowOf } from '../../rules/bin/bin-settings.ts';
import { vmUuids } from '../../rules/identity/shared-uuids.ts';
import { type BinPass, BinProblem, type CallPool, type Content, type RecordOf, writeStatus } from './bin-pass.ts';
import { removeContent } from './bin-room.ts';
import { planUndelete } from './plan-undelete.ts';
import { releaseVolumes } from './release-volumes.ts';
import { revertUndelete } from './revert-undelete.ts';
import { undelete } from './undelete.ts';

export interface BinControllerOptions extends ControllerEnvironment {
  readonly callPool: CallPool;
}

/** The key of the space; no content has such a name. */
export const ROOM_KEY: ObjectKey = { namespace: '', name: 'ROOM' };

/** What somebody else has to do first is looked at again after this long. */
export const WAIT_MS = 250;

/** The answer to requests that come too late. */
export const RELEASING = 'its retention has expired, or the bin was emptied: its storage is being released';

/** Timers are set for no longer. */
const LONGEST_MS = 3_600_000;

const BY_UUID = 'bin.firmware-uuid';

/** A hundred years: formatTime ends with the year 9999. */
const LATEST = 100 * 365 * 86_400_000;

/** The steps of a deleted machine in the bin: kept, undeleted, expired. */
export class BinSteps extends ControllerSteps<BinControllerOptions> {
  readonly callPool = this.options.callPool;
  readonly contents = this.options.informers.of(DELETED_VIRTUAL_MACHINE_CONTENTS);
  readonly records = this.options.informers.of(DELETED_VIRTUAL_MACHINES);
  readonly vms = this.options.informers.of(VIRTUAL_MACHINES).addIndex(BY_UUID, vmUuids);
  readonly kubevirts = this.options.informers.of(KUBEVIRTS);
  readonly events = createEventRecorder(this.client, { ...this.options, component: 'coracle-bin' });
  readonly #enqueue;

  constructor(options: BinControllerOptions, enqueue: Controller['enqueue']) {
    super(options);
    this.#enqueue = enqueue;
  }

  clusterKey(name: string): ObjectKey {
    return { namespace: '', name };
  }

  recordOf({ spec }: Content): RecordOf | undefined {
    const found = spec.record && this.records.get({ namespace: spec.virtualMachine.namespace, name: spec.record });
    return found && found.spec.virtualMachine.uid === spec.virtualMachine.uid ? found : undefined;
  }

  /** Whether somebody has emptied the bin of it: its record is deleted, and its namespace lives on. */
  async #isEmptied({ spec }: Content, signal: AbortSignal): Promise<boolean> {
    if (spec.record === undefined) return false;
    const { namespace } = spec.virtualMachine;
    // Before anything is given up for it the server is asked: the copy lags behind. First the record: one that goes with
    // its namespace does so after that is marked.
    const record = await orAbsent(
      this.client.get(DELETED_VIRTUAL_MACHINES, { namespace, name: spec.record }, { signal }),
    );
    if (record) return false;
    const found = await orAbsent(this.client.get(NAMESPACES, this.clusterKey(namespace), { signal }));
    return found !== undefined && found.metadata.uid === spec.namespaceUID && !isDeleting(found);
  }

  async #keep(pass: BinPass): Promise<ReconcileResult> {
    const { content, record, now, signal } = pass;
    const { virtualMachine } = content.spec;
    const request = record?.spec.undelete ?? content.spec.undelete;
    if (isDeleting(content)) {
      if (request && request.id !== content.status?.failedRequest) throw new BinProblem(RELEASING);
      await releaseVolumes(pass);
      return;
    }
    if (content.status?.goneAt === undefined) {
      const vm = await orAbsent(this.client.get(VIRTUAL_MACHINES, virtualMachine, { signal }));
      if (vm && vm.metadata.uid === virtualMachine.uid) {
        if (content.status?.phase === undefined) await writeStatus(pass, { phase: 'Deleted' });
        return requeueAfter(LONGEST_MS);
      }
      const goneAt = formatTime(now);
      await writeStatus(pass, { phase: 'Deleted', goneAt, expiresAt: this.#expiryOf(goneAt) });
      // What it takes is shown soon.
      this.#enqueue(ROOM_KEY, WAIT_MS);
      return;
    }
    if (!record && (await this.#isEmptied(content, signal))) return removeContent(this.client, content, signal);
    if (request && request.id !== content.status.failedRequest) return this.#accept(pass, request);
    return this.#expire(pass);
  }

  #expiryOf(goneAt: string): string {
    return formatTime(Date.parse(goneAt) + Math.min(undeleteWindowOf(this.kubevirts.list()), LATEST));
  }

  async #accept(pass: BinPass, request: DeepReadonly<UndeleteRequest>): Promise<ReconcileResult> {
    // Its own copy of before may still be shown.
    const others = (uuid: string) =>
      this.vms.byIndex(BY_UUID, uuid).filter(({ metadata }) => metadata.uid !== pass.content.spec.virtualMachine.uid);
    const plan = await planUndelete(pass, request, others);
    await writeStatus(pass, { phase: 'Undeleting', plan, message: undefined, failedRequest: undefined });
  }

  async #expire(pass: BinPass): Promise<ReconcileResult> {
    const { content, record, now, signal } = pass;
    const expiresAt = this.#expiryOf(content.status?.goneAt ?? '');
    const left = Date.parse(expiresAt) - now;
    if (left > 0) {
      if (content.status?.expiresAt !== expiresAt) await writeStatus(pass, { expiresAt });
      return requeueAfter(Math.min(left, LONGEST_MS));
    }
    // A request that came at the last moment holds.
    const latest = record && (await orAbsent(this.client.get(DELETED_VIRTUAL_MACHINES, keyOf(record), { signal })));
    if (latest?.metadata.resourceVersion !== record?.metadata.resourceVersion) return requeueAfter(WAIT_MS);
    this.#report(pass, 'Normal', 'Expired', 'Its retention has expired; its storage is released');
    await removeContent(this.client, content, signal);
  }

  #report({ record }: BinPass, type: 'Normal' | 'Warning', reason: string, message: string): void {
    if (record) this.events.event(record, type, reason, message);
  }

  async #finish(pass: BinPass): Promise<ReconcileResult> {
    const { content, signal } = pass;
    if (isDeleting(content)) await releaseVolumes(pass);
    else await removeContent(this.client, content, signal);
  }

  step(pass: BinPass): Promise<ReconcileResult> {
    const { phase = 'Deleted' } = pass.content.status ?? {};
    switch (phase) {
      case 'Deleted':
        return this.#keep(pass);
      case 'Undeleting':
        return undelete(pass);
      case 'Reverting':
        return revertUndelete(pass);
      case 'Undeleted':
        return this.#finish(pass);
      default:
        return phase satisfies never;
    }
  }

  /** What tenants are shown, and gone with the content. Of an undelete under way until the machine is there. */
  async showRecord({ content, record, signal }: BinPass): Promise<void> {
    if (!record) return;
    const phase = content.status?.phase ?? 'Deleted';
    if (phase === 'Undeleted' || (phase === 'Deleted' && isDeleting(content))) {
      const preconditions = { uid: record.metadata.uid ?? '' };
      await orAbsent(this.client.delete(DELETED_VIRTUAL_MACHINES, keyOf(record), { preconditions, signal }));
      return;
    }
    if (!content.status) return;
    const { plan: _, ...status } = content.status;
    const before = record as DeletedVirtualMachine;
    await orAbsent(
      commit(this.client, DELETED_VIRTUAL_MACHINES, {
        before,
        after: { ...before, status: status as BinStatus },
        signal,
      }),
    );
  }

  async failed(pass: BinPass, message: string): Promise<ReconcileResult> {
    const { content } = pass;
    const failedRequest = content.status?.plan?.request ?? (pass.record?.spec.undelete ?? content.spec.undelete)?.id;
    this.#report(pass, 'Warning', 'UndeleteFailed', message);
    const isUnderWay = content.status?.phase === 'Undeleting';
    await writeStatus(pass, { message, failedRequest, ...(isUnderWay && { phase: 'Reverting' }) });
  }
}
