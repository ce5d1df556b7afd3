/**
 * PodSecurity: namespaces that carry `pod-security.kubernetes.io/` labels hold their Pods to a level. Enforced on Pods;
 * controllers of Pods are only warned about. A namespace without the labels costs one look at its labels.
 */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, forbidden } from '@coracle/apimachinery/meta/status';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../plugin.ts';
import { type CheckedContainer, type CheckedPod, type CheckedPodSpec, plural, type Violation } from './pod-check.ts';
import {
  isSame,
  type LevelVersion,
  type Policy,
  policyErrorText,
  policyName,
  policyOf,
  strictness,
  violationsOf,
  violationText,
} from './policy.ts';

type Target = Readonly<UnstructuredObject>;

const NAMESPACES_PREFIX = '/namespaces';
const PODS_PREFIX = '/pods';
const AUDIT_PREFIX = 'pod-security.kubernetes.io/';
/** Existing Pods that a stricter level is tried on. */
const MAX_CHECKED = 3_000;

/** Where the Pod template of a resource lies. */
const TEMPLATES: ReadonlyMap<string, readonly string[]> = new Map([
  ['/podtemplates', ['template']],
  ['/replicationcontrollers', ['spec', 'template']],
  ['apps/replicasets', ['spec', 'template']],
  ['apps/deployments', ['spec', 'template']],
  ['apps/statefulsets', ['spec', 'template']],
  ['apps/daemonsets', ['spec', 'template']],
  ['batch/jobs', ['spec', 'template']],
  ['batch/cronjobs', ['spec', 'jobTemplate', 'spec', 'template']],
]);
/** Writes to Pods that do not touch what is checked. */
const HARMLESS = new Set(['exec', 'attach', 'binding', 'eviction', 'log', 'portforward', 'proxy', 'status']);

/** The plug-in over this store's namespaces. */
export function podSecurity(store: Pick<ObjectStore, 'peek' | 'list'>): AdmissionPlugin {
  return {
    name: 'PodSecurity',
    matches(operation, info, subresource) {
      if (operation !== 'CREATE' && operation !== 'UPDATE') return false;
      if (info.group === '' && info.resource === 'pods') return !HARMLESS.has(subresource);
      if (subresource !== '') return false;
      if (info.group === '' && info.resource === 'namespaces') return true;
      return TEMPLATES.has(`${info.group}/${info.resource}`);
    },
    validate(attributes) {
      const { info, namespace, object, oldObject } = attributes;
      if (info.resource === 'namespaces') return checkNamespace(store, attributes);
      const found = store.peek({ prefix: NAMESPACES_PREFIX, namespace: '', name: namespace });
      const policy = policyOf(found?.object.metadata.labels);
      const watched = [policy.warn, policy.audit, ...(info.resource === 'pods' ? [policy.enforce] : [])];
      if (policy.errors.length === 0 && watched.every(({ level }) => level === 'privileged')) return;
      if (info.resource === 'pods') {
        if (oldObject && !changesChecked(object!, oldObject)) return;
        validateRules(attributes, policy, { pod: checked(object!), enforced: true });
        return;
      }
      const template = templateOf(object!, TEMPLATES.get(`${info.group}/${info.resource}`)!);
      if (template) validateRules(attributes, policy, { pod: checked(template), enforced: false });
    },
  };
}

const checked = (pod: Target): CheckedPod => ({
  annotations: pod.metadata?.annotations ?? {},
  spec: (pod['spec'] ?? {}) as CheckedPodSpec,
});

function templateOf(object: Target, path: readonly string[]): Target | undefined {
  let place: unknown = object;
  for (const step of path) place = isJsonObject(place) ? place[step] : undefined;
  return isJsonObject(place) ? (place as unknown as Target) : undefined;
}

/** Throws ApiError 403 when the enforced level is not kept; warns and notes for the audit log otherwise. */
function validateRules(
  attributes: AdmissionAttributes,
  policy: Policy,
  { pod, enforced }: { readonly pod: CheckedPod; readonly enforced: boolean },
): void {
  const known = new Map<string, readonly Violation[]>();
  const violations = (at: LevelVersion): readonly Violation[] =>
    getOrInsert(known, policyName(at), () => violationsOf(at, pod));
  const broken = (at: LevelVersion): string =>
    `PodSecurity ${JSON.stringify(policyName(at))}: ${violationText(violations(at))}`;
  const would = (at: LevelVersion): string => `would violate ${broken(at)}`;
  if (policy.errors.length > 0) {
    attributes.annotate(`${AUDIT_PREFIX}error`, `Failed to parse policy: ${policyErrorText(policy.errors)}`);
  }
  if (enforced) attributes.annotate(`${AUDIT_PREFIX}enforce-policy`, policyName(policy.enforce));
  if (violations(policy.audit).length > 0) attributes.annotate(`${AUDIT_PREFIX}audit-violations`, would(policy.audit));
  if (enforced && violations(policy.enforce).length > 0) {
    throw forbidden(attributes.info, attributes.name, `violates ${broken(policy.enforce)}`);
  }
  if (violations(policy.warn).length > 0) attributes.warn(would(policy.warn));
}

const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod';
const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';

/** Of what may change in a Pod only images, seccomp annotations and ephemeral containers matter. */
function changesChecked(pod: Target, old: Target): boolean {
  const [now, before] = [checked(pod), checked(old)];
  const differs = (one: CheckedContainer, other: CheckedContainer | undefined): boolean => {
    const key = `${SECCOMP_CONTAINER}${one.name}`;
    return other === undefined || one.image !== other.image || now.annotations[key] !== before.annotations[key];
  };
  if (now.annotations[SECCOMP_POD] !== before.annotations[SECCOMP_POD]) return true;
  for (const list of ['containers', 'initContainers'] as const) {
    const [ours, theirs] = [now.spec[list] ?? [], before.spec[list] ?? []];
    if (ours.length !== theirs.length || ours.some((one, i) => differs(one, theirs[i]))) return true;
  }
  const debuggers = new Map(before.spec.ephemeralContainers?.map((one) => [one.name, one]));
  return (now.spec.ephemeralContainers ?? []).some((one) => differs(one, debuggers.get(one.name)));
}

/** Labels have to be valid; a stricter level says which Pods it would not have let in. */
function checkNamespace(
  store: Pick<ObjectStore, 'list'>,
  { name, object, oldObject, warn }: AdmissionAttributes,
): void {
  const next = policyOf(object!.metadata.labels);
  const before = policyOf(oldObject?.metadata.labels);
  const errors = policyErrorText(next.errors);
  if (next.errors.length > 0 && (!oldObject || errors !== policyErrorText(before.errors))) {
    const reason = 'FieldValueInvalid';
    const causes = next.errors.map(({ field, detail }) => ({ reason, message: detail ?? '', field }));
    const message = `Namespace ${JSON.stringify(name)} is invalid: ${errors}`;
    throw new ApiError({ code: 422, reason: 'Invalid', message, details: { name, kind: 'Namespace', causes } });
  }
  if (!oldObject || isSame(next.enforce, before.enforce) || next.enforce.level === 'privileged') return;
  const relaxed =
    next.enforce.version === before.enforce.version &&
    strictness(next.enforce.level) <= strictness(before.enforce.level);
  if (!relaxed) for (const text of existingViolations(store, name, next.enforce)) warn(text);
}

function existingViolations(store: Pick<ObjectStore, 'list'>, namespace: string, enforce: LevelVersion): string[] {
  const { items, remaining = 0 } = store.list(PODS_PREFIX, { namespace, limit: MAX_CHECKED });
  const byReasons = Map.groupBy(items, ({ object }) =>
    violationsOf(enforce, checked(object))
      .map(({ reason }) => reason)
      .join(', '),
  );
  byReasons.delete('');
  const lines = Array.from(byReasons, ([reasons, [first, ...others]]) => {
    const more = others.length === 0 ? '' : ` (and ${others.length} other ${plural('pod', others.length)})`;
    return `${first!.name}${more}: ${reasons}`;
  });
  if (lines.length > 0) {
    const level = JSON.stringify(policyName(enforce));
    const where = `in namespace ${JSON.stringify(namespace)}`;
    lines.sort().unshift(`existing pods ${where} violate the new PodSecurity enforce level ${level}`);
  }
  const all = items.length + remaining;
  const partly = `new PodSecurity enforce level only checked against the first ${items.length} of ${all} existing pods`;
  return remaining > 0 ? [partly, ...lines] : lines;
}
