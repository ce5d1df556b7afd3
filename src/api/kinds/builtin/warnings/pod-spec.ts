/** What is valid in a Pod, or in a template of one, and still likely to be a mistake (pkg/api/pod/warnings.go). */
import { isObject, type JsonObject, numberAt, objectAt, objectsAt, textAt, valueAt } from '../read-value.ts';
import { claimWarnings, fractionWarnings } from './amounts.ts';
import { expressionWarnings, replacedLabel } from './node-labels.ts';
import { pathWarnings } from './volume-paths.ts';

const BYTES = ['memory', 'ephemeral-storage'];
const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod';
const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';
const APP_ARMOR_CONTAINER = 'container.apparmor.security.beta.kubernetes.io/';
const NO_SELECTOR = 'a null labelSelector results in matching no pod';

const ANNOTATIONS: readonly (readonly [key: string, why: string])[] = [
  ['scheduler.alpha.kubernetes.io/critical-pod', 'non-functional in v1.16+; use the "priorityClassName" field instead'],
  ['security.alpha.kubernetes.io/sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
  ['security.alpha.kubernetes.io/unsafe-sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
];

const VOLUMES: readonly (readonly [field: string, why: string])[] = [
  ['photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['gitRepo', 'deprecated in v1.11'],
  ['scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['flocker', 'deprecated in v1.22, non-functional in v1.25+'],
  ['storageos', 'deprecated in v1.22, non-functional in v1.25+'],
  ['quobyte', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['rbd', 'deprecated in v1.28, non-functional in v1.31+'],
];
/** Upstream spells one path otherwise than the field. */
const SHOWN: Readonly<Record<string, string>> = { storageos: 'storageOS' };

/** `path` is where the template stands, `spec.template`; '' for a Pod. */
export function podSpecWarnings(template: unknown, path: string): string[] {
  const base = path === '' ? '' : `${path}.`;
  const at = { spec: `${base}spec`, annotations: `${base}metadata.annotations` };
  const spec = objectAt(template, 'spec');
  const annotations = objectAt(template, 'metadata', 'annotations');
  const containers = containersOf(spec, at.spec);
  const pod: Pod = {
    spec,
    annotations,
    annotationsPath: at.annotations,
    isTemplate: path !== '',
    isAnnotated: isFilled(annotations),
  };
  return [
    ...placementWarnings(spec, at.spec),
    ...ANNOTATIONS.filter(([key]) => Object.hasOwn(annotations, key)).map(
      ([key, why]) => `${at.annotations}[${key}]: ${why}`,
    ),
    ...objectsAt(spec, 'volumes').flatMap((volume, i) => volumeWarnings(volume, `${at.spec}.volumes[${i}]`)),
    ...pathWarnings(objectsAt(spec, 'volumes')),
    ...listWarnings(spec, at.spec),
    ...fractionWarnings(spec, { path: at.spec, steps: ['overhead'], names: BYTES }),
    ...(!isObject(valueAt(spec, 'securityContext', 'seccompProfile')) && Object.hasOwn(annotations, SECCOMP_POD)
      ? [seccomp(at.annotations, SECCOMP_POD)]
      : []),
    ...containers.flatMap((one) => containerWarnings(one, pod)),
    ...portWarnings(containers),
    ...(numberAt(spec, 'terminationGracePeriodSeconds') < 0
      ? [`${at.spec}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`]
      : []),
    ...affinityWarnings(spec, at.spec),
  ];
}

function placementWarnings(spec: JsonObject, path: string): string[] {
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  const affinity = objectAt(spec, 'affinity', 'nodeAffinity');
  const at = `${path}.affinity.nodeAffinity`;
  return [
    ...Object.keys(objectAt(spec, 'nodeSelector')).flatMap((key) => {
      const why = replacedLabel(key);
      return why === undefined ? [] : [`${path}.nodeSelector[${key}]: ${why}`];
    }),
    ...objectsAt(affinity, required, 'nodeSelectorTerms').flatMap((term, i) =>
      expressionWarnings(term, `${at}.${required}.nodeSelectorTerms[${i}]`),
    ),
    ...objectsAt(affinity, preferred).flatMap((term, i) =>
      expressionWarnings(objectAt(term, 'preference'), `${at}.${preferred}[${i}].preference`),
    ),
    ...objectsAt(spec, 'topologySpreadConstraints').flatMap((constraint, i) => {
      const where = `${path}.topologySpreadConstraints[${i}]`;
      const key = textAt(constraint, 'topologyKey');
      const why = replacedLabel(key);
      return [
        ...(why === undefined ? [] : [`${where}.topologyKey: ${key} is ${why}`]),
        ...(isObject(constraint['labelSelector']) ? [] : [`${where}.labelSelector: ${NO_SELECTOR}`]),
      ];
    }),
  ];
}

function volumeWarnings(volume: JsonObject, path: string): string[] {
  const claim = `${path}.ephemeral.volumeClaimTemplate.spec`;
  return [
    ...VOLUMES.filter(([field]) => isObject(volume[field])).map(
      ([field, why]) => `${path}.${SHOWN[field] ?? field}: ${why}`,
    ),
    ...claimWarnings(objectAt(volume, 'ephemeral', 'volumeClaimTemplate', 'spec'), claim),
  ];
}

function listWarnings(spec: JsonObject, path: string): string[] {
  const repeated = (list: string, field: string): string[] => {
    const seen = new Set<string>();
    return objectsAt(spec, list).flatMap((item, i) => {
      const text = textAt(item, field);
      const isKnown = seen.has(text);
      seen.add(text);
      return isKnown ? [`${path}.${list}[${i}].${field}: duplicate ${field} ${JSON.stringify(text)}`] : [];
    });
  };
  const nameless = objectsAt(spec, 'imagePullSecrets').flatMap((item, i) =>
    textAt(item, 'name') === '' ? [`${path}.imagePullSecrets[${i}].name: invalid empty name ""`] : [],
  );
  return [...repeated('hostAliases', 'ip'), ...repeated('imagePullSecrets', 'name'), ...nameless];
}

interface Placed {
  readonly container: JsonObject;
  readonly path: string;
}

const containersOf = (spec: JsonObject, path: string): Placed[] =>
  ['initContainers', 'containers', 'ephemeralContainers'].flatMap((list) =>
    objectsAt(spec, list).map((container, i) => ({ container, path: `${path}.${list}[${i}]` })),
  );

const seccomp = (annotations: string, key: string): string =>
  `${annotations}[${key}]: non-functional in v1.27+; use the "seccompProfile" field instead`;

interface Pod {
  readonly spec: JsonObject;
  readonly annotations: JsonObject;
  readonly annotationsPath: string;
  readonly isTemplate: boolean;
  readonly isAnnotated: boolean;
}

const isFilled = (value: unknown): boolean => isObject(value) && Object.keys(value).length > 0;

function containerWarnings({ container, path }: Placed, pod: Pod): string[] {
  const name = textAt(container, 'name');
  const secured = (field: string): boolean => isObject(valueAt(container, 'securityContext', field));
  // There may be a hundred thousand containers, nearly all of them without any of this: the cheapest question goes first.
  const isAnnotated = (prefix: string): boolean => pod.isAnnotated && Object.hasOwn(pod.annotations, prefix + name);
  const seccompKey = SECCOMP_CONTAINER + name;
  const appArmorKey = APP_ARMOR_CONTAINER + name;
  const hasAppArmor = (): boolean =>
    secured('appArmorProfile') || isObject(valueAt(pod.spec, 'securityContext', 'appArmorProfile'));
  return [
    ...(isAnnotated(SECCOMP_CONTAINER) && !secured('seccompProfile') ? [seccomp(pod.annotationsPath, seccompKey)] : []),
    // Of a Pod itself the annotation is turned into the field.
    ...(pod.isTemplate && isAnnotated(APP_ARMOR_CONTAINER) && !hasAppArmor()
      ? [`${pod.annotationsPath}[${appArmorKey}]: deprecated since v1.30; use the "appArmorProfile" field instead`]
      : []),
    ...(isFilled(container['resources'])
      ? BYTES.flatMap((name) =>
          ['limits', 'requests'].flatMap((list) =>
            fractionWarnings(container, { path, steps: ['resources', list], names: [name] }),
          ),
        )
      : []),
    ...(container['env'] === undefined ? [] : variableWarnings(container, path)),
  ];
}

/** A variable may build on its own earlier value; one that does not hides it. */
function variableWarnings(container: JsonObject, path: string): string[] {
  const seen = new Set<string>();
  return objectsAt(container, 'env').flatMap((variable, i) => {
    const name = textAt(variable, 'name');
    const isKnown = seen.has(name);
    seen.add(name);
    const value = textAt(variable, 'value');
    const reference = `$(${name})`;
    const builds = !isObject(variable['valueFrom']) && value !== reference && value.includes(reference);
    if (!isKnown || builds) return [];
    return [
      `${path}.env[${i}]: hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`,
    ];
  });
}

interface PlacedPort {
  readonly path: string;
  readonly hostIp: string;
  readonly hostPort: number;
}

/** A port is compared with others of its number, so no more of a Pod are looked at, and with no more of them. */
const LOOKED_AT = 500;
const COMPARED = 20;

function portWarnings(containers: readonly Placed[]): string[] {
  const known = new Map<string, PlacedPort[]>();
  const ports = containers.flatMap(({ container, path }) =>
    objectsAt(container, 'ports').map((port, i) => ({ port, path: `${path}.ports[${i}]` })),
  );
  return ports.slice(0, LOOKED_AT).flatMap(({ port, path }) => {
    const number = numberAt(port, 'containerPort');
    const protocol = textAt(port, 'protocol');
    const here = { path, hostIp: textAt(port, 'hostIP'), hostPort: numberAt(port, 'hostPort') };
    const key = `${number}/${protocol}`;
    const others = known.get(key) ?? [];
    if (others.length < COMPARED) known.set(key, [...others, here]);
    const shown = `{Name:${textAt(port, 'name')} HostPort:0 ContainerPort:${number} Protocol:${protocol} HostIP:${here.hostIp}}`;
    return [
      ...(here.hostIp !== '' && here.hostPort === 0 ? [`${path}: hostIP set without hostPort: ${shown}`] : []),
      ...others.flatMap((other) => {
        const problem = meeting(here, other);
        return problem === undefined ? [] : [`${path}: ${problem} port definition with ${other.path}`];
      }),
    ];
  });
}

function meeting(one: PlacedPort, other: PlacedPort): string | undefined {
  if (one.hostIp === other.hostIp && one.hostPort === other.hostPort) return 'duplicate';
  if (one.hostPort === 0 || other.hostPort === 0) return 'overlapping';
  const isHalfOpen = (one.hostIp === '') !== (other.hostIp === '');
  return one.hostPort === other.hostPort && isHalfOpen ? 'dangerously ambiguous' : undefined;
}

function affinityWarnings(spec: JsonObject, path: string): string[] {
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  return ['podAffinity', 'podAntiAffinity'].flatMap((kind) => {
    const at = `${path}.affinity.${kind}`;
    const terms = objectAt(spec, 'affinity', kind);
    return [
      ...objectsAt(terms, required).flatMap((term, i) =>
        isObject(term['labelSelector']) ? [] : [`${at}.${required}[${i}].labelSelector: ${NO_SELECTOR}`],
      ),
      ...objectsAt(terms, preferred).flatMap((term, i) =>
        isObject(valueAt(term, 'podAffinityTerm', 'labelSelector'))
          ? []
          : [`${at}.${preferred}[${i}].podAffinityTerm.labelSelector: ${NO_SELECTOR}`],
      ),
    ];
  });
}
