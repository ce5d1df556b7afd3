/**
 * The claim for the firmware state of an instance (`kubevirt/rules/backend-storage`): made before the launcher Pod, which waits
 * until it can be used. What keeps it from that stands in the condition Synchronized, with upstream's reasons.
 */

import { keyOf, keyText, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES } from '@coracle/apimachinery/types/resource-types';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { createExpectations } from '@coracle/client/expectations/expectations';
import { KUBEVIRTS, type ReadonlyVmi, VIRTUAL_MACHINE_INSTANCES } from '../../kinds/kubevirt.ts';
import {
  backendStorageClaimOf,
  needsBackendStorage,
  newStateClaim,
  STATE_LABEL,
  STATE_MIGRATION_LABEL,
} from '../../rules/backend-storage/backend-storage.ts';
import { isStateClaimReady, NO_STATE_CLASS, stateClass } from '../../rules/backend-storage/state-class.ts';
import type { SyncProblem } from './vmi-status.ts';

/** What `ensure` found: nothing is needed, the claim can be used, or why the Pod has to wait. */
export interface StateClaim {
  readonly claim?: string;
  readonly problem?: SyncProblem;
}

export interface StateClaims {
  /** The claim of an instance, made when it is missing. Rejects when a write failed that may be tried again. */
  ensure(vmi: ReadonlyVmi): Promise<StateClaim>;
  /** The one it has. */
  of(vmi: ReadonlyVmi): ReadonlyClaim | undefined;
  /** News of a claim: the machine whose state it keeps, if it keeps any. */
  observe(claim: ReadonlyClaim, previous: ReadonlyClaim | undefined): ObjectKey[];
  /** Instances that a new default class may help. */
  waiting(): ObjectKey[];
}

/** Rights beside those on claims that the controller has anyway. */
export const stateClaimRules = policyRules(
  'create patch : core : persistentvolumeclaims',
  'get list watch : storage.k8s.io : storageclasses',
  // A claim that blocks its owner's deletion takes this right on the owner.
  'update : kubevirt.io : virtualmachines/finalizers',
);

/** Makes them; informers asked for here are started by the set's owner. */
export function createStateClaims(
  { client, clock, informers }: ControllerEnvironment,
  events: EventRecorder,
): StateClaims {
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const classes = informers.of(STORAGE_CLASSES);
  const kubevirts = informers.of(KUBEVIRTS);
  const vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);
  const expectations = createExpectations(clock);
  const fail = (vmi: ReadonlyVmi, reason: string, message: string): StateClaim => {
    const isReported = vmi.status?.conditions?.some((one) => one.type === 'Synchronized' && one.reason === reason);
    if (!isReported) events.event(vmi, 'Warning', reason, message);
    return { problem: { reason, message } };
  };
  const of = (vmi: ReadonlyVmi): ReadonlyClaim | undefined =>
    needsBackendStorage(vmi.spec) ? backendStorageClaimOf(vmi, claims.list(vmi.metadata.namespace)) : undefined;

  const make = async (vmi: ReadonlyVmi): Promise<StateClaim> => {
    const found = stateClass(classes.list(), kubevirts.list()[0]?.spec?.configuration?.vmStateStorageClass);
    if (!found) return fail(vmi, 'FailedBackendStorageCreate', NO_STATE_CLASS);
    const key = keyText(keyOf(vmi));
    expectations.expectCreations(key, 1);
    try {
      await client.create(PERSISTENT_VOLUME_CLAIMS, newStateClaim(vmi, found));
    } catch (error) {
      expectations.creationFailed(key);
      fail(vmi, 'FailedBackendStorageCreate', (error as Error).message);
      throw error;
    }
    return pending;
  };

  return {
    of,
    async ensure(vmi) {
      if (!needsBackendStorage(vmi.spec)) return {};
      if (!expectations.satisfied(keyText(keyOf(vmi)))) return pending;
      // A migration of the instance before this one has ended, and its controller has yet to say which claim counts.
      if (claims.list(vmi.metadata.namespace).some((claim) => isMoving(claim) && belongsTo(claim, vmi))) return pending;
      const claim = of(vmi);
      if (!claim) return make(vmi);
      const { namespace = '', name = '', labels } = claim.metadata;
      // One of before labels: found by its name once more, and by its label from then on.
      if (labels?.[STATE_LABEL] === undefined) {
        const body = { metadata: { uid: claim.metadata.uid, labels: { [STATE_LABEL]: vmi.metadata.name } } };
        await client.patch(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, { type: 'merge', body });
      }
      try {
        const classOf = (wanted: string) => classes.get({ namespace: '', name: wanted });
        return isStateClaimReady(claim, classOf) ? { claim: name } : pending;
      } catch (error) {
        return fail(vmi, 'FailedBackendStorageProbe', (error as Error).message);
      }
    },
    observe(claim, previous) {
      const namespace = claim.metadata.namespace ?? '';
      const name = claim.metadata.labels?.[STATE_LABEL];
      // The owner has the name of the instance.
      const owner = claim.metadata.ownerReferences?.[0]?.name;
      const moves = claim.metadata.labels?.[STATE_MIGRATION_LABEL] !== undefined;
      if (name === undefined) return moves && owner !== undefined ? [{ namespace, name: owner }] : [];
      const key = { namespace, name };
      if (!previous) expectations.observeCreation(keyText(key));
      return [key];
    },
    waiting: () =>
      vmis
        .list()
        .filter(({ spec, status }) => needsBackendStorage(spec) && status?.phase === 'Pending')
        .map((vmi) => keyOf(vmi)),
  };
}

const isMoving = ({ metadata }: ReadonlyClaim): boolean =>
  metadata.deletionTimestamp === undefined && metadata.labels?.[STATE_MIGRATION_LABEL] !== undefined;

function belongsTo({ metadata }: ReadonlyClaim, vmi: ReadonlyVmi): boolean {
  const owners = [vmi.metadata.uid, ...(vmi.metadata.ownerReferences ?? []).map(({ uid }) => uid)];
  return metadata.ownerReferences?.some(({ uid }) => owners.includes(uid)) ?? false;
}

const pending: StateClaim = { problem: { reason: 'BackendStorageNotReady', message: 'PVC pending' } };
