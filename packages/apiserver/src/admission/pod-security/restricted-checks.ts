/** The restricted level of the Pod Security Standards: what a Pod gives up by itself (pod-security-admission/policy). */
import { explicitSeccomp } from './baseline-checks.ts';
import {
  type CheckedPodSpec,
  distinct,
  inContainers,
  inContexts,
  isSet,
  type PodCheck,
  plural,
  quoted,
  violationBy,
} from './pod-check.ts';
import standards from './standards.json' with { type: 'json' };

type Run = PodCheck['run'];

/** From here on Windows Pods are not asked for what only Linux has. */
const WINDOWS_SINCE = 25;
/** From here on a Pod in a user namespace of its own may be root in it. */
const USER_NAMESPACES_SINCE = 35;

/** A check of what only Linux has. */
const ofLinux =
  (run: Run): Run =>
  (pod, minor) =>
    minor >= WINDOWS_SINCE && pod.spec.os?.name === 'windows' ? undefined : run(pod, minor);

/** A check of who is root. */
const ofRoot =
  (run: Run): Run =>
  (pod, minor) =>
    minor >= USER_NAMESPACES_SINCE && pod.spec.hostUsers === false ? undefined : run(pod, minor);

const allowPrivilegeEscalation = ofLinux(({ spec }) => {
  const { who } = inContainers(spec, ({ securityContext }) =>
    isSet(securityContext?.allowPrivilegeEscalation !== false),
  );
  const detail = 'must set securityContext.allowPrivilegeEscalation=false';
  return violationBy(who, 'allowPrivilegeEscalation != false', detail);
});

const capabilities = ofLinux(({ spec }) => {
  const silent = inContainers(spec, ({ securityContext }) =>
    isSet(!securityContext?.capabilities?.drop?.includes('ALL')),
  );
  const adding = inContainers(spec, ({ securityContext }) =>
    (securityContext?.capabilities?.add ?? []).filter((one) => one !== 'NET_BIND_SERVICE'),
  );
  const details = [
    [silent.who, 'must set securityContext.capabilities.drop=["ALL"]'],
    [adding.who, `must not include ${quoted(adding.values)} in securityContext.capabilities.add`],
  ].filter(([who]) => who !== undefined);
  if (details.length === 0) return undefined;
  return { reason: 'unrestricted capabilities', detail: details.map((words) => words.join(' ')).join('; ') };
});

const VOLUMES: readonly string[] = standards.restrictedVolumes;
/** Upstream's names of the sources, for the text. */
const VOLUME_TYPES: readonly string[] = standards.volumeTypes;

const restrictedVolumes: Run = ({ spec }) => {
  const volumes: readonly (Readonly<Record<string, unknown>> & { readonly name: string })[] = spec.volumes ?? [];
  const bad = volumes.filter((volume) => !VOLUMES.some((source) => volume[source]));
  if (bad.length === 0) return undefined;
  const types = distinct(bad.map((volume) => VOLUME_TYPES.find((source) => volume[source]) ?? 'unknown'));
  const who = `${plural('volume', bad.length)} ${quoted(bad.map(({ name }) => name))}`;
  const what = `${plural('restricted volume type', types.length)} ${quoted(types)}`;
  return violationBy(who, 'restricted volume types', `${plural('uses', bad.length, 'use')} ${what}`);
};

/** One that says nothing has what its Pod says. */
const silentOnes = (spec: CheckedPodSpec, field: 'runAsNonRoot' | 'seccompProfile'): string | undefined => {
  const { who } = inContainers(spec, ({ securityContext }) =>
    isSet((securityContext?.[field] ?? undefined) === undefined),
  );
  return who && `pod or ${who}`;
};

const runAsNonRoot = ofRoot(({ spec }) => {
  const reason = 'runAsNonRoot != true';
  const { who } = inContexts(spec, (context) => isSet(context.runAsNonRoot === false));
  if (who) return violationBy(who, reason, 'must not set securityContext.runAsNonRoot=false');
  if (spec.securityContext?.runAsNonRoot === true) return undefined;
  return violationBy(silentOnes(spec, 'runAsNonRoot'), reason, 'must set securityContext.runAsNonRoot=true');
});

const runAsUser = ofRoot(({ spec }) => {
  const { who } = inContexts(spec, (context) => isSet(context.runAsUser === 0));
  return violationBy(who, 'runAsUser=0', 'must not set runAsUser=0');
});

const seccompProfile = ofLinux(({ spec }) => {
  const explicit = explicitSeccomp(spec);
  if (explicit || spec.securityContext?.seccompProfile) return explicit;
  const detail = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"';
  return violationBy(silentOnes(spec, 'seccompProfile'), 'seccompProfile', detail);
});

/** In upstream's order: of file names. */
export const RESTRICTED_CHECKS: readonly PodCheck[] = [
  { since: 8, run: allowPrivilegeEscalation },
  { since: 22, run: capabilities },
  { since: 0, run: restrictedVolumes },
  { since: 0, run: runAsNonRoot },
  { since: 23, run: runAsUser },
  { since: 19, run: seccompProfile },
].map((check) => ({ level: 'restricted', ...check }));
