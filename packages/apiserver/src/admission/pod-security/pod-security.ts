/**
 * PodSecurity: namespaces that carry `pod-security.kubernetes.io/` labels hold their Pods to a level. Enforced on Pods;
 * controllers of Pods are only warned about. A namespace without the labels costs one look at its labels.
 */
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, forbidden } from '@coracle/apimachinery/meta/status';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../plugin.ts';
import type { CheckedContainer, CheckedPod, CheckedPodSpec, Violation } from './pod-check.ts';
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
  const policyFor = (namespace: string): Policy =>
    policyOf(store.peek({ prefix: NAMESPACES_PREFIX, namespace: '', name: namespace })?.object.metadata.labels);
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
      const policy = policyFor(namespace);
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
  const known: { readonly at: LevelVersion; readonly found: readonly Violation[] }[] = [];
  const violations = (at: LevelVersion): readonly Violation[] => {
    const before = known.find((one) => isSame(one.at, at));
    if (before) return before.found;
    const found = violationsOf(at, pod);
    known.push({ at, found });
    return found;
  };
  const would = (at: LevelVersion): string =>
    `would violate PodSecurity ${JSON.stringify(policyName(at))}: ${violationText(violations(at))}`;
  if (policy.errors.length > 0) {
    attributes.annotate(`${AUDIT_PREFIX}error`, `Failed to parse policy: ${policyErrorText(policy.errors)}`);
  }
  if (enforced) attributes.annotate(`${AUDIT_PREFIX}enforce-policy`, policyName(policy.enforce));
  if (violations(policy.audit).length > 0) attributes.annotate(`${AUDIT_PREFIX}audit-violations`, would(policy.audit));
  if (enforced && violations(policy.enforce).length > 0) {
    throw forbidden(
      attributes.info,
      attributes.name,
      `violates PodSecurity ${JSON.stringify(policyName(policy.enforce))}: ${violationText(violations(policy.enforce))}`,
    );
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
  return (now.spec.ephemeralContainers ?? []).some((one) =>
    differs(
      one,
      before.spec.ephemeralContainers?.find(({ name }) => name === one.name),
    ),
  );
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
    const causes = next.errors.map(({ field, detail }) => ({
      reason: 'FieldValueInvalid',
      message: detail ?? '',
      field,
    }));
    throw new ApiError({
      code: 422,
      reason: 'Invalid',
      message: `Namespace ${JSON.stringify(name)} is invalid: ${errors}`,
      details: { name, kind: 'Namespace', causes: cloneJson(causes) },
    });
  }
  if (!oldObject || isSame(next.enforce, before.enforce) || next.enforce.level === 'privileged') return;
  const relaxed =
    next.enforce.version === before.enforce.version &&
    strictness(next.enforce.level) <= strictness(before.enforce.level);
  if (!relaxed) for (const text of existingViolations(store, name, next.enforce)) warn(text);
}

function existingViolations(store: Pick<ObjectStore, 'list'>, namespace: string, enforce: LevelVersion): string[] {
  const { items, remaining = 0 } = store.list(PODS_PREFIX, { namespace, limit: MAX_CHECKED });
  const found = new Map<string, { readonly first: string; count: number }>();
  for (const item of items) {
    const reasons = violationsOf(enforce, checked(item.object)).map(({ reason }) => reason);
    if (reasons.length === 0) continue;
    const key = reasons.join(', ');
    const known = found.get(key);
    if (known) known.count++;
    else found.set(key, { first: item.name, count: 1 });
  }
  const lines = [...found].map(([reasons, { first, count }]) => {
    const others = count === 1 ? '' : ` (and ${count - 1} other ${count === 2 ? 'pod' : 'pods'})`;
    return `${first}${others}: ${reasons}`;
  });
  return [
    ...(remaining > 0
      ? [
          `new PodSecurity enforce level only checked against the first ${items.length} of ${items.length + remaining} existing pods`,
        ]
      : []),
    ...(lines.length > 0
      ? [
          `existing pods in namespace ${JSON.stringify(namespace)} violate the new PodSecurity enforce level ${JSON.stringify(policyName(enforce))}`,
        ]
      : []),
    ...lines.sort(),
  ];
}
