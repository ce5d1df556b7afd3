/**
 * What refusals that protect something leave behind: an event of the object and of the machines that block its deletion, a
 * counter, and an annotation of the request's audit event. Written by an account of its own that may do nothing else.
 *
 * Bounds: the recorder drops what is too much (25 events of one object, then one in five minutes; a queue of 1000), so
 * that who asks again and again costs little. A dry run changes nothing: it leaves the annotation alone.
 */
import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import type { AdmissionAttributes } from '@coracle/apiserver/admission/plugin';
import type { OnPolicyRefusal } from '@coracle/apiserver/admission/policy/validating-policies';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import type { Client } from '@coracle/client/client';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { DELETION_POLICY_NAME } from '@coracle/kubevirt/rules/protection/deletion-policy';
import {
  blockerEvent,
  type ProtectionRefusal,
  REFUSAL_ANNOTATION,
  refusalAnnotation,
  refusalEvent,
} from '@coracle/kubevirt/rules/protection/refusal-evidence';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { createCounter } from '@coracle/runtime/metrics/counter';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';

/** Writes the events. */
export const EVIDENCE_ACCOUNT = 'coracle-evidence';
/** Its rights, and no others. */
export const evidenceRules = policyRules('create patch : core : events');

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
      const object = oldObject as ReadonlyObject;
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
        events.event(machine as ReadonlyObject, 'Warning', reason, message);
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
