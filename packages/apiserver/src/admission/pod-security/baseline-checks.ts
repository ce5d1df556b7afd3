/** The baseline level of the Pod Security Standards: what lets a Pod out of its box (pod-security-admission/policy). */
import {
  allContainers,
  type CheckedContainer,
  containersNamed,
  containersWhere,
  type PodCheck,
  plural,
  quoted,
  type SecurityContext,
  setters,
  type Violation,
} from './pod-check.ts';
import standards from './standards.json' with { type: 'json' };

const violation = (reason: string, detail: string): Violation => ({ reason, detail });

const APPARMOR_PREFIX = 'container.apparmor.security.beta.kubernetes.io/';
const badAppArmorType = (context: SecurityContext | undefined): boolean => {
  const type = context?.appArmorProfile?.type;
  return type !== undefined && type !== 'RuntimeDefault' && type !== 'Localhost';
};

const appArmorProfile: PodCheck = {
  level: 'baseline',
  since: 0,
  run({ annotations, spec }) {
    const byAnnotation = Object.entries(annotations)
      .filter(([key, value]) => key.startsWith(APPARMOR_PREFIX) && !allowedAnnotation(value))
      .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
      .sort();
    const byField = setters(
      badAppArmorType(spec.securityContext),
      containersWhere(spec, ({ securityContext }) => badAppArmorType(securityContext)),
    );
    const types = [spec, ...allContainers(spec)]
      .map(({ securityContext }) => securityContext)
      .filter(badAppArmorType)
      .map((context) => context!.appArmorProfile!.type!);
    const who = [
      ...(byField ? [byField] : []),
      ...(byAnnotation.length > 0 ? [plural('annotation', byAnnotation.length)] : []),
    ];
    if (who.length === 0) return undefined;
    const values = [...[...new Set(types)].sort(), ...byAnnotation];
    return violation(
      plural('forbidden AppArmor profile', values.length),
      `${who.join(' and ')} must not set AppArmor profile type to ${quoted(values)}`,
    );
  },
};

const allowedAnnotation = (value: string): boolean =>
  value === '' || value === 'runtime/default' || value.startsWith('localhost/');

const CAPABILITIES = new Set(standards.capabilities);

const capabilities: PodCheck = {
  level: 'baseline',
  since: 0,
  coveredSince: 22,
  run({ spec }) {
    const added = ({ securityContext }: CheckedContainer): string[] =>
      (securityContext?.capabilities?.add ?? []).filter((one) => !CAPABILITIES.has(one));
    const bad = containersWhere(spec, (container) => added(container).length > 0);
    if (bad.length === 0) return undefined;
    const what = [...new Set(allContainers(spec).flatMap(added))].sort();
    return violation(
      'non-default capabilities',
      `${containersNamed(bad)} must not include ${quoted(what)} in securityContext.capabilities.add`,
    );
  },
};

const hostNamespaces: PodCheck = {
  level: 'baseline',
  since: 0,
  run({ spec }) {
    const shared = (['hostIPC', 'hostNetwork', 'hostPID'] as const).filter((name) => spec[name] === true);
    return shared.length === 0 ? undefined : violation('host namespaces', shared.join(', '));
  },
};

const hostPathVolumes: PodCheck = {
  level: 'baseline',
  since: 0,
  coveredSince: 0,
  run({ spec }) {
    const bad = (spec.volumes ?? []).filter((volume) => volume['hostPath']).map(({ name }) => name);
    if (bad.length === 0) return undefined;
    return violation('hostPath volumes', `${plural('volume', bad.length)} ${quoted(bad)}`);
  },
};

const hostPorts: PodCheck = {
  level: 'baseline',
  since: 0,
  run({ spec }) {
    const portsOf = ({ ports }: CheckedContainer): number[] =>
      (ports ?? []).flatMap(({ hostPort }) => (hostPort ? [hostPort] : []));
    const bad = containersWhere(spec, (container) => portsOf(container).length > 0);
    if (bad.length === 0) return undefined;
    const ports = [...new Set(allContainers(spec).flatMap(portsOf).map(String))].sort();
    const uses = plural('uses', bad.length, 'use');
    return violation(
      'hostPort',
      `${containersNamed(bad)} ${uses} ${plural('hostPort', ports.length)} ${ports.join(', ')}`,
    );
  },
};

const hostProbes: PodCheck = {
  level: 'baseline',
  since: 34,
  run({ spec }) {
    const hostsOf = (container: CheckedContainer): string[] =>
      [
        container.livenessProbe,
        container.readinessProbe,
        container.startupProbe,
        container.lifecycle?.postStart,
        container.lifecycle?.preStop,
      ].flatMap((handler) => [handler?.httpGet?.host, handler?.tcpSocket?.host].filter((host) => !!host) as string[]);
    const bad = [...new Set(containersWhere(spec, (container) => hostsOf(container).length > 0))].sort();
    if (bad.length === 0) return undefined;
    const hosts = [...new Set(allContainers(spec).flatMap(hostsOf))].sort();
    const what = plural('probe or lifecycle host', hosts.length);
    return violation(
      'probe or lifecycle host',
      `${containersNamed(bad)} ${plural('uses', bad.length, 'use')} ${what} ${quoted(hosts)}`,
    );
  },
};

const privileged: PodCheck = {
  level: 'baseline',
  since: 0,
  run({ spec }) {
    const bad = containersWhere(spec, ({ securityContext }) => securityContext?.privileged === true);
    if (bad.length === 0) return undefined;
    return violation('privileged', `${containersNamed(bad)} must not set securityContext.privileged=true`);
  },
};

const procMount: PodCheck = {
  level: 'baseline',
  since: 0,
  run({ spec }, minor) {
    if (minor >= 35 && spec.hostUsers === false) return undefined;
    const odd = ({ securityContext }: CheckedContainer): boolean =>
      securityContext?.procMount !== undefined && securityContext.procMount !== 'Default';
    const bad = containersWhere(spec, odd);
    if (bad.length === 0) return undefined;
    const types = allContainers(spec)
      .filter(odd)
      .map(({ securityContext }) => securityContext!.procMount!);
    return violation(
      'procMount',
      `${containersNamed(bad)} must not set securityContext.procMount to ${quoted([...new Set(types)].sort())}`,
    );
  },
};

const SELINUX_TYPES = new Set(['', 'container_t', 'container_init_t', 'container_kvm_t']);
const SELINUX_ENGINE_SINCE = 31;

const seLinuxOptions: PodCheck = {
  level: 'baseline',
  since: 0,
  run({ spec }, minor) {
    const badTypes = new Set<string>();
    let user = false;
    let role = false;
    const isBad = ({ securityContext }: { readonly securityContext?: SecurityContext }): boolean => {
      const options = securityContext?.seLinuxOptions;
      if (!options) return false;
      const type = options.type ?? '';
      const known = SELINUX_TYPES.has(type) || (minor >= SELINUX_ENGINE_SINCE && type === 'container_engine_t');
      if (!known) badTypes.add(type);
      user ||= !!options.user;
      role ||= !!options.role;
      return !known || !!options.user || !!options.role;
    };
    const byPod = isBad(spec);
    const who = setters(byPod, containersWhere(spec, isBad));
    if (!who) return undefined;
    const data = [
      ...(badTypes.size > 0 ? [`${plural('type', badTypes.size)} ${quoted([...badTypes].sort())}`] : []),
      ...(user ? ['user may not be set'] : []),
      ...(role ? ['role may not be set'] : []),
    ];
    return violation('seLinuxOptions', `${who} set forbidden securityContext.seLinuxOptions: ${data.join('; ')}`);
  },
};

const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod';
const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';
const SECCOMP_FIELDS_SINCE = 19;
const badSeccomp = (context: SecurityContext | undefined): boolean => {
  const type = context?.seccompProfile?.type;
  return context?.seccompProfile !== undefined && type !== 'Localhost' && type !== 'RuntimeDefault';
};

const seccompProfile: PodCheck = {
  level: 'baseline',
  since: 0,
  coveredSince: SECCOMP_FIELDS_SINCE,
  run({ annotations, spec }, minor) {
    if (minor < SECCOMP_FIELDS_SINCE) {
      const keys = [SECCOMP_POD, ...allContainers(spec).map(({ name }) => `${SECCOMP_CONTAINER}${name}`)];
      const bad = [...new Set(keys)]
        .filter((key) => annotations[key] !== undefined && !allowedSeccomp(annotations[key]))
        .map((key) => `${key}=${JSON.stringify(annotations[key])}`)
        .sort();
      if (bad.length === 0) return undefined;
      return violation('seccompProfile', `forbidden ${plural('annotation', bad.length)} ${bad.join(', ')}`);
    }
    return explicitSeccomp(spec);
  },
};

const allowedSeccomp = (value: string): boolean =>
  value === 'runtime/default' || value === 'docker/default' || value.startsWith('localhost/');

/** Shared by both levels: a profile that is named and not allowed. */
export function explicitSeccomp(spec: Parameters<typeof allContainers>[0]): Violation | undefined {
  const who = setters(
    badSeccomp(spec.securityContext),
    containersWhere(spec, ({ securityContext }) => badSeccomp(securityContext)),
  );
  if (!who) return undefined;
  const types = [spec, ...allContainers(spec)]
    .map(({ securityContext }) => securityContext)
    .filter(badSeccomp)
    .map((context) => context?.seccompProfile?.type ?? '');
  const values = quoted([...new Set(types)].sort());
  return violation('seccompProfile', `${who} must not set securityContext.seccompProfile.type to ${values}`);
}

/** Allowed sysctls and the version of the standard they came with. */
const SYSCTLS: Readonly<Record<string, number>> = standards.sysctls;

const sysctls: PodCheck = {
  level: 'baseline',
  since: 0,
  run({ spec }, minor) {
    const bad = (spec.securityContext?.sysctls ?? [])
      .map(({ name }) => name)
      .filter((name) => !(Object.hasOwn(SYSCTLS, name) && SYSCTLS[name]! <= minor));
    return bad.length === 0 ? undefined : violation('forbidden sysctls', bad.join(', '));
  },
};

const windowsHostProcess: PodCheck = {
  level: 'baseline',
  since: 0,
  run({ spec }) {
    const isSet = (context: SecurityContext | undefined): boolean => context?.windowsOptions?.hostProcess === true;
    const who = setters(
      isSet(spec.securityContext),
      containersWhere(spec, ({ securityContext }) => isSet(securityContext)),
    );
    if (!who) return undefined;
    return violation('hostProcess', `${who} must not set securityContext.windowsOptions.hostProcess=true`);
  },
};

/** In upstream's order: of file names. */
export const BASELINE_CHECKS: readonly PodCheck[] = [
  appArmorProfile,
  capabilities,
  hostNamespaces,
  hostPathVolumes,
  hostPorts,
  hostProbes,
  privileged,
  procMount,
  seLinuxOptions,
  seccompProfile,
  sysctls,
  windowsHostProcess,
];
