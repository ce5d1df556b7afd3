/** The baseline level of the Pod Security Standards: what lets a Pod out of its box (pod-security-admission/policy). */
import {
  allContainers,
  type CheckedContainer,
  type CheckedPod,
  type CheckedPodSpec,
  containersNamed,
  distinct,
  inContainers,
  inContexts,
  isSet,
  type PodCheck,
  plural,
  quoted,
  type SecurityContext,
  type Violation,
  violationBy,
} from './pod-check.ts';
import standards from './standards.json' with { type: 'json' };

type Run = PodCheck['run'];

/** Annotations that `isBad` refuses, as `key="value"`. */
const annotationsWhere = ({ annotations }: CheckedPod, isBad: (key: string, value: string) => boolean): string[] =>
  Object.entries(annotations)
    .filter(([key, value]) => isBad(key, value))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .sort();

const APPARMOR_PREFIX = 'container.apparmor.security.beta.kubernetes.io/';
const APPARMOR_TYPES: readonly unknown[] = [undefined, 'RuntimeDefault', 'Localhost'];

const appArmorProfile: Run = (pod) => {
  const byAnnotation = annotationsWhere(pod, (key, value) => key.startsWith(APPARMOR_PREFIX) && !allowedProfile(value));
  const byField = inContexts(pod.spec, ({ appArmorProfile: profile }) =>
    APPARMOR_TYPES.includes(profile?.type) ? [] : [profile!.type],
  );
  const who = [
    ...(byField.who === undefined ? [] : [byField.who]),
    ...(byAnnotation.length > 0 ? [plural('annotation', byAnnotation.length)] : []),
  ];
  if (who.length === 0) return undefined;
  const values = [...byField.values, ...byAnnotation];
  const detail = `must not set AppArmor profile type to ${quoted(values)}`;
  return violationBy(who.join(' and '), plural('forbidden AppArmor profile', values.length), detail);
};

const allowedProfile = (value: string): boolean =>
  value === '' || value === 'runtime/default' || value.startsWith('localhost/');

const CAPABILITIES = new Set(standards.capabilities);

const capabilities: Run = ({ spec }) => {
  const { who, values } = inContainers(spec, ({ securityContext }) =>
    (securityContext?.capabilities?.add ?? []).filter((one) => !CAPABILITIES.has(one)),
  );
  const detail = `must not include ${quoted(values)} in securityContext.capabilities.add`;
  return violationBy(who, 'non-default capabilities', detail);
};

const hostNamespaces: Run = ({ spec }) => {
  const shared = (['hostIPC', 'hostNetwork', 'hostPID'] as const).filter((name) => spec[name] === true);
  return shared.length === 0 ? undefined : { reason: 'host namespaces', detail: shared.join(', ') };
};

const hostPathVolumes: Run = ({ spec }) => {
  const bad = (spec.volumes ?? []).filter(({ hostPath }) => hostPath).map(({ name }) => name);
  if (bad.length === 0) return undefined;
  return { reason: 'hostPath volumes', detail: `${plural('volume', bad.length)} ${quoted(bad)}` };
};

const hostPorts: Run = ({ spec }) => {
  const { who, names, values } = inContainers(spec, ({ ports }) =>
    (ports ?? []).flatMap(({ hostPort }) => (hostPort ? [String(hostPort)] : [])),
  );
  const what = `${plural('hostPort', values.length)} ${values.join(', ')}`;
  return violationBy(who, 'hostPort', `${plural('uses', names.length, 'use')} ${what}`);
};

const handlersOf = ({ livenessProbe, readinessProbe, startupProbe, lifecycle }: CheckedContainer) =>
  [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop].flatMap((handler) => [
    handler?.httpGet?.host,
    handler?.tcpSocket?.host,
  ]);

const hostProbes: Run = ({ spec }) => {
  const { names, values } = inContainers(
    spec,
    (container) => handlersOf(container).filter((host) => !!host) as string[],
  );
  if (names.length === 0) return undefined;
  const reason = 'probe or lifecycle host';
  const bad = distinct(names);
  const uses = `${plural('uses', bad.length, 'use')} ${plural(reason, values.length)} ${quoted(values)}`;
  return violationBy(containersNamed(bad), reason, uses);
};

const privileged: Run = ({ spec }) => {
  const { who } = inContainers(spec, ({ securityContext }) => isSet(securityContext?.privileged === true));
  return violationBy(who, 'privileged', 'must not set securityContext.privileged=true');
};

const procMount: Run = ({ spec }, minor) => {
  if (minor >= 35 && spec.hostUsers === false) return undefined;
  const { who, values } = inContainers(spec, ({ securityContext }) => {
    const type = securityContext?.procMount;
    return type === undefined || type === 'Default' ? [] : [type];
  });
  return violationBy(who, 'procMount', `must not set securityContext.procMount to ${quoted(values)}`);
};

const SELINUX_TYPES = new Set(['', 'container_t', 'container_init_t', 'container_kvm_t']);
const SELINUX_ENGINE_SINCE = 31;

const seLinuxOptions: Run = ({ spec }, minor) => {
  const badType = ({ seLinuxOptions: options }: SecurityContext): readonly string[] => {
    const type = options?.type ?? '';
    const isKnown = SELINUX_TYPES.has(type) || (minor >= SELINUX_ENGINE_SINCE && type === 'container_engine_t');
    return isKnown ? [] : [type];
  };
  // Those of the type come first; user and role are never type names.
  const marks = (context: SecurityContext): readonly string[] => [
    ...badType(context).map((type) => `type ${type}`),
    ...(['user', 'role'] as const).filter((field) => context.seLinuxOptions?.[field]),
  ];
  const { who, values } = inContexts(spec, marks);
  const types = values.filter((value) => value.startsWith('type ')).map((value) => value.slice('type '.length));
  const data = [
    ...(types.length > 0 ? [`${plural('type', types.length)} ${quoted(types)}`] : []),
    ...['user', 'role'].filter((field) => values.includes(field)).map((field) => `${field} may not be set`),
  ];
  return violationBy(who, 'seLinuxOptions', `set forbidden securityContext.seLinuxOptions: ${data.join('; ')}`);
};

const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod';
const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';
const SECCOMP_FIELDS_SINCE = 19;

const seccompProfile: Run = (pod, minor) => {
  const { spec } = pod;
  if (minor >= SECCOMP_FIELDS_SINCE) return explicitSeccomp(spec);
  const keys = new Set([SECCOMP_POD, ...allContainers(spec).map(({ name }) => `${SECCOMP_CONTAINER}${name}`)]);
  const bad = annotationsWhere(pod, (key, value) => keys.has(key) && !allowedSeccomp(value));
  if (bad.length === 0) return undefined;
  return { reason: 'seccompProfile', detail: `forbidden ${plural('annotation', bad.length)} ${bad.join(', ')}` };
};

const allowedSeccomp = (value: string): boolean =>
  value === 'runtime/default' || value === 'docker/default' || value.startsWith('localhost/');

/** Shared by both levels: a profile that is named and not allowed. */
export function explicitSeccomp(spec: CheckedPodSpec): Violation | undefined {
  const { who, values } = inContexts(spec, ({ seccompProfile: profile }) =>
    profile === undefined || profile?.type === 'Localhost' || profile?.type === 'RuntimeDefault'
      ? []
      : [profile?.type ?? ''],
  );
  return violationBy(who, 'seccompProfile', `must not set securityContext.seccompProfile.type to ${quoted(values)}`);
}

/** Allowed sysctls and the version of the standard they came with. */
const SYSCTLS: Readonly<Record<string, number>> = standards.sysctls;

const sysctls: Run = ({ spec }, minor) => {
  const bad = (spec.securityContext?.sysctls ?? [])
    .map(({ name }) => name)
    .filter((name) => !(Object.hasOwn(SYSCTLS, name) && SYSCTLS[name]! <= minor));
  return bad.length === 0 ? undefined : { reason: 'forbidden sysctls', detail: bad.join(', ') };
};

const windowsHostProcess: Run = ({ spec }) => {
  const { who } = inContexts(spec, ({ windowsOptions }) => isSet(windowsOptions?.hostProcess === true));
  return violationBy(who, 'hostProcess', 'must not set securityContext.windowsOptions.hostProcess=true');
};

/** In upstream's order: of file names. */
export const BASELINE_CHECKS: readonly PodCheck[] = [
  { since: 0, run: appArmorProfile },
  { since: 0, coveredSince: 22, run: capabilities },
  { since: 0, run: hostNamespaces },
  { since: 0, coveredSince: 0, run: hostPathVolumes },
  { since: 0, run: hostPorts },
  { since: 34, run: hostProbes },
  { since: 0, run: privileged },
  { since: 0, run: procMount },
  { since: 0, run: seLinuxOptions },
  { since: 0, coveredSince: SECCOMP_FIELDS_SINCE, run: seccompProfile },
  { since: 0, run: sysctls },
  { since: 0, run: windowsHostProcess },
].map((check) => ({ level: 'baseline', ...check }));
