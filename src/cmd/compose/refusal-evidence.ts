/**
 * What refusals that protect something leave behind: an event of the object and of the machines that block its deletion, a
 * counter, and an annotation of the request's audit event. Written by an account of its own that may do nothing else.
 *
 * Bounds: the recorder drops what is too much (25 events of one object, then one in five minutes; a queue of 1000), so
 * that who asks again and again costs little. A dry run changes nothing: it leaves the annotation alone.
 */
import type { DeepReadonly, KubeObject } from '../../api/meta/object.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Logger } from '../../base/log/log.ts';
import { createCounter } from '../../base/metrics/counter.ts';
import type { MetricFamily } from '../../base/metrics/metric-family.ts';
import type { Client } from '../../client/client.ts';
import { createEventRecorder } from '../../client/events/recorder.ts';
import { DELETION_POLICY_NAME } from '../../domain/protection/deletion-policy.ts';
import {
  blockerEvent,
  type ProtectionRefusal,
  REFUSAL_ANNOTATION,
  refusalAnnotation,
  refusalEvent,
} from '../../domain/protection/refusal-evidence.ts';
import type { AdmissionAttributes } from '../../server/admission/plugin.ts';
import type { OnPolicyRefusal } from '../../server/admission/policy/validating-policies.ts';
import type { ObjectStore } from '../../server/cache/object-store.ts';

/** Writes the events. */
export const EVIDENCE_ACCOUNT = 'coracle-evidence';
/** Its rights, and no others. */
export const evidenceRules = [{ apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] }];

const MACHINES = 'kubevirt.io/virtualmachines';

/** Takes refusals in. */
export interface RefusalEvidence {
  /** To be called once for each refusal, before it is thrown. */
  refused(attributes: Refused, refusal: ProtectionRefusal): void;
  families(): MetricFamily[];
}

/** Of the request, what is noted. */
export type Refused = Pick<AdmissionAttributes, 'info' | 'oldObject' | 'user' | 'dryRun' | 'annotate'>;

/** Makes it; `client` acts as the account. Nothing is written after `signal` aborts. */
export function createRefusalEvidence({
  store,
  client,
  clock,
  log,
  signal,
}: {
  readonly store: Pick<ObjectStore, 'peek'>;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}): RefusalEvidence {
  const events = createEventRecorder(client, { component: 'deletion-protection', clock, log, signal });
  const refusals = createCounter(
    'coracle_protection_refusals_total',
    'Deletions, and switchings-off of protection, that were refused. Dry runs are not counted.',
  );
  return {
    refused({ info, oldObject, user, dryRun, annotate }, refusal) {
      if (!oldObject) return;
      const object = oldObject as DeepReadonly<KubeObject>;
      const { metadata } = object;
      const request = { kind: info.kind, metadata, username: user.username };
      annotate(REFUSAL_ANNOTATION, refusalAnnotation(refusal, request));
      if (dryRun) return;
      refusals.add({ kind: info.kind, reason: refusal.reason });
      const own = refusalEvent(refusal, request);
      events.event(object, 'Warning', own.reason, own.message);
      for (const blocker of refusal.blockers ?? []) {
        const { namespace, name } = blocker;
        const machine = store.peek({ prefix: MACHINES, namespace, name })?.object;
        if (!machine || machine.metadata.uid === metadata.uid) continue;
        const { reason, message } = blockerEvent(blocker, request);
        events.event(machine as DeepReadonly<KubeObject>, 'Warning', reason, message);
      }
    },
    families: () => [refusals.family()],
  };
}

/** Upstream's policy among those that refuse: what others refuse is none of protection's. */
export const noteDeletionPolicy =
  (evidence: RefusalEvidence): OnPolicyRefusal =>
  (attributes, refusals) => {
    const own = attributes.operation === 'DELETE' && refusals.find(({ policy }) => policy === DELETION_POLICY_NAME);
    if (own) evidence.refused(attributes, { policy: own.policy, reason: 'DeleteProtected', message: own.message });
  };
