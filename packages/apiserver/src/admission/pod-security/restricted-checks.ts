/** The restricted level of the Pod Security Standards: what a Pod gives up by itself (pod-security-admission/policy). */
import { explicitSeccomp } from './baseline-checks.ts';
import {
  allContainers,
  type CheckedContainer,
  type CheckedPodSpec,
  containersNamed,
  containersWhere,
  type PodCheck,
  plural,
  quoted,
  setters,
} from './pod-check.ts';
import standards from './standards.json' with { type: 'json' };

/** From here on Windows Pods are not asked for what only Linux has. */
const WINDOWS_SINCE = 25;
/** From here on a Pod in a user namespace of its own may be root in it. */
const USER_NAMESPACES_SINCE = 35;

const isWindows = (spec: CheckedPodSpec, minor: number): boolean =>
  minor >= WINDOWS_SINCE && spec.os?.name === 'windows';
const hasOwnUsers = (spec: CheckedPodSpec, minor: number): boolean =>
  minor >= USER_NAMESPACES_SINCE && spec.hostUsers === false;

const allowPrivilegeEscalation: PodCheck = {
  level: 'restricted',
  since: 8,
  run({ spec }, minor) {
    if (isWindows(spec, minor)) return undefined;
    const bad = containersWhere(spec, ({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false);
    if (bad.length === 0) return undefined;
    return {
      reason: 'allowPrivilegeEscalation != false',
      detail: `${containersNamed(bad)} must set securityContext.allowPrivilegeEscalation=false`,
    };
  },
};

const capabilities: PodCheck = {
  level: 'restricted',
  since: 22,
  run({ spec }, minor) {
    if (isWindows(spec, minor)) return undefined;
    const silent = containersWhere(
      spec,
      ({ securityContext }) => !securityContext?.capabilities?.drop?.includes('ALL'),
    );
    const added = ({ securityContext }: CheckedContainer): string[] =>
      (securityContext?.capabilities?.add ?? []).filter((one) => one !== 'NET_BIND_SERVICE');
    const adding = containersWhere(spec, (container) => added(container).length > 0);
    const details: string[] = [];
    if (silent.length > 0) {
      details.push(`${containersNamed(silent)} must set securityContext.capabilities.drop=["ALL"]`);
    }
    if (adding.length > 0) {
      const what = [...new Set(allContainers(spec).flatMap(added))].sort();
      details.push(`${containersNamed(adding)} must not include ${quoted(what)} in securityContext.capabilities.add`);
    }
    return details.length === 0 ? undefined : { reason: 'unrestricted capabilities', detail: details.join('; ') };
  },
};

const VOLUMES: readonly string[] = standards.restrictedVolumes;
/** Upstream's names of the sources, for the text. */
const VOLUME_TYPES: readonly string[] = standards.volumeTypes;

const restrictedVolumes: PodCheck = {
  level: 'restricted',
  since: 0,
  run({ spec }) {
    const volumes: readonly (Readonly<Record<string, unknown>> & { readonly name: string })[] = spec.volumes ?? [];
    const bad = volumes.filter((volume) => !VOLUMES.some((source) => volume[source]));
    if (bad.length === 0) return undefined;
    const types = bad.map((volume) => VOLUME_TYPES.find((source) => volume[source]) ?? 'unknown');
    const names = bad.map(({ name }) => name);
    const listed = [...new Set(types)].sort();
    const who = `${plural('volume', bad.length)} ${quoted(names)} ${plural('uses', bad.length, 'use')}`;
    return {
      reason: 'restricted volume types',
      detail: `${who} ${plural('restricted volume type', listed.length)} ${quoted(listed)}`,
    };
  },
};

const runAsNonRoot: PodCheck = {
  level: 'restricted',
  since: 0,
  run({ spec }, minor) {
    if (hasOwnUsers(spec, minor)) return undefined;
    const inPod = spec.securityContext?.runAsNonRoot;
    const explicit = containersWhere(spec, ({ securityContext }) => securityContext?.runAsNonRoot === false);
    const who = setters(inPod === false, explicit);
    const reason = 'runAsNonRoot != true';
    if (who) return { reason, detail: `${who} must not set securityContext.runAsNonRoot=false` };
    const silent = containersWhere(
      spec,
      ({ securityContext }) => (securityContext?.runAsNonRoot ?? undefined) === undefined && inPod !== true,
    );
    if (silent.length === 0) return undefined;
    return { reason, detail: `pod or ${containersNamed(silent)} must set securityContext.runAsNonRoot=true` };
  },
};

const runAsUser: PodCheck = {
  level: 'restricted',
  since: 23,
  run({ spec }, minor) {
    if (hasOwnUsers(spec, minor)) return undefined;
    const who = setters(
      spec.securityContext?.runAsUser === 0,
      containersWhere(spec, ({ securityContext }) => securityContext?.runAsUser === 0),
    );
    return who ? { reason: 'runAsUser=0', detail: `${who} must not set runAsUser=0` } : undefined;
  },
};

const seccompProfile: PodCheck = {
  level: 'restricted',
  since: 19,
  run({ spec }, minor) {
    if (isWindows(spec, minor)) return undefined;
    const explicit = explicitSeccomp(spec);
    if (explicit) return explicit;
    if (spec.securityContext?.seccompProfile) return undefined;
    const silent = containersWhere(spec, ({ securityContext }) => !securityContext?.seccompProfile);
    if (silent.length === 0) return undefined;
    return {
      reason: 'seccompProfile',
      detail: `pod or ${containersNamed(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
    };
  },
};

/** In upstream's order: of file names. */
export const RESTRICTED_CHECKS: readonly PodCheck[] = [
  allowPrivilegeEscalation,
  capabilities,
  restrictedVolumes,
  runAsNonRoot,
  runAsUser,
  seccompProfile,
];
