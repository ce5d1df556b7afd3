/** What is valid in a Pod and still likely to be a mistake (pkg/api/pod/warnings.go). */
import {
  isObject,
  type JsonObject,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import { claimWarnings, fractionWarnings } from './amounts.ts';
import { add, warnEach } from './collect.ts';
import deprecated from './deprecated.json' with { type: 'json' };
import { expressionWarnings, replacedLabel } from './node-labels.ts';
import { pathWarnings } from './volume-paths.ts';

const BYTES = ['memory', 'ephemeral-storage'];
const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod';
const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';
const NO_SELECTOR = 'a null labelSelector results in matching no pod';

const VOLUMES: ReadonlyMap<string, string> = new Map(Object.entries(deprecated.podVolumes));
/** Upstream spells one path otherwise than the field. */
const SHOWN: Readonly<Record<string, string>> = deprecated.shownVolumes;

export function podSpecWarnings(object: JsonObject): string[] {
  const at = { spec: 'spec', annotations: 'metadata.annotations' };
  const spec = objectAt(object, 'spec');
  const annotations = objectAt(object, 'metadata', 'annotations');
  const pod: Pod = { annotations, annotationsPath: at.annotations, isAnnotated: isFilled(annotations) };
  const found: string[] = [];
  if (PLACES.some((field) => spec[field] !== undefined)) placementWarnings(found, spec, at.spec);
  if (pod.isAnnotated) {
    for (const [key, why] of Object.entries(deprecated.annotations)) {
      if (Object.hasOwn(annotations, key)) found.push(`${at.annotations}[${key}]: ${why}`);
    }
  }
  const volumes = objectsAt(spec, 'volumes');
  warnEach(found, volumes, (volume, i) => volumeWarnings(volume, `${at.spec}.volumes[${i}]`));
  pathWarnings(found, volumes);
  listWarnings(found, spec, at.spec);
  add(found, fractionWarnings(spec, { path: at.spec, steps: ['overhead'], names: BYTES }));
  if (
    pod.isAnnotated &&
    !isObject(valueAt(spec, 'securityContext', 'seccompProfile')) &&
    Object.hasOwn(annotations, SECCOMP_POD)
  ) {
    found.push(seccomp(at.annotations, SECCOMP_POD));
  }
  for (const list of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const [i, container] of objectsAt(spec, list).entries()) {
      containerWarnings(found, { container, path: `${at.spec}.${list}[${i}]` }, pod);
    }
  }
  add(found, portWarnings(spec, at.spec));
  if (numberAt(spec, 'terminationGracePeriodSeconds') < 0) {
    found.push(
      `${at.spec}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`,
    );
  }
  if (spec['affinity'] !== undefined) affinityWarnings(found, spec, at.spec);
  return found;
}

const PLACES = ['nodeSelector', 'affinity', 'topologySpreadConstraints'];

function placementWarnings(found: string[], spec: JsonObject, path: string): void {
  const affinity = objectAt(spec, 'affinity', 'nodeAffinity');
  const at = `${path}.affinity.nodeAffinity`;
  warnEach(found, Object.keys(objectAt(spec, 'nodeSelector')), (key) => {
    const why = replacedLabel(key);
    return why === undefined ? undefined : [`${path}.nodeSelector[${key}]: ${why}`];
  });
  for (const [i, term] of objectsAt(affinity, REQUIRED, 'nodeSelectorTerms').entries()) {
    expressionWarnings(found, term, `${at}.${REQUIRED}.nodeSelectorTerms[${i}]`);
  }
  for (const [i, term] of objectsAt(affinity, PREFERRED).entries()) {
    expressionWarnings(found, objectAt(term, 'preference'), `${at}.${PREFERRED}[${i}].preference`);
  }
  warnEach(found, objectsAt(spec, 'topologySpreadConstraints'), (constraint, i) => {
    const where = `${path}.topologySpreadConstraints[${i}]`;
    const key = textAt(constraint, 'topologyKey');
    const why = replacedLabel(key);
    return [
      ...(why === undefined ? [] : [`${where}.topologyKey: ${key} is ${why}`]),
      ...(isObject(constraint['labelSelector']) ? [] : [`${where}.labelSelector: ${NO_SELECTOR}`]),
    ];
  });
}

function volumeWarnings(volume: JsonObject, path: string): string[] | undefined {
  // An ordinary volume has a name and a source in use.
  let found: string[] | undefined;
  for (const field of Object.keys(volume)) {
    if (field !== 'ephemeral' && !VOLUMES.has(field)) continue;
    found = [...VOLUMES]
      .filter(([old]) => isObject(volume[old]))
      .map(([old, why]) => `${path}.${SHOWN[old] ?? old}: ${why}`);
    const claim = `${path}.ephemeral.volumeClaimTemplate.spec`;
    found.push(...claimWarnings(objectAt(volume, 'ephemeral', 'volumeClaimTemplate', 'spec'), claim));
    break;
  }
  return found;
}

function listWarnings(found: string[], spec: JsonObject, path: string): void {
  const repeated = (list: string, field: string): void => {
    const seen = new Set<string>();
    warnEach(found, objectsAt(spec, list), (item, i) => {
      const text = textAt(item, field);
      const isKnown = seen.has(text);
      seen.add(text);
      return isKnown ? [`${path}.${list}[${i}].${field}: duplicate ${field} ${JSON.stringify(text)}`] : undefined;
    });
  };
  if (spec['hostAliases'] !== undefined) repeated('hostAliases', 'ip');
  if (spec['imagePullSecrets'] === undefined) return;
  repeated('imagePullSecrets', 'name');
  warnEach(found, objectsAt(spec, 'imagePullSecrets'), (item, i) =>
    textAt(item, 'name') === '' ? [`${path}.imagePullSecrets[${i}].name: invalid empty name ""`] : undefined,
  );
}

interface Placed {
  readonly container: JsonObject;
  readonly path: string;
}

const seccomp = (annotations: string, key: string): string =>
  `${annotations}[${key}]: non-functional in v1.27+; use the "seccompProfile" field instead`;

interface Pod {
  readonly annotations: JsonObject;
  readonly annotationsPath: string;
  readonly isAnnotated: boolean;
}

const isFilled = (value: unknown): boolean => isObject(value) && Object.keys(value).length > 0;

function containerWarnings(found: string[], { container, path }: Placed, pod: Pod): void {
  if (pod.isAnnotated) add(found, profileWarnings(container, pod));
  if (isFilled(container['resources'])) {
    for (const name of BYTES) {
      for (const list of ['limits', 'requests']) {
        add(found, fractionWarnings(container, { path, steps: ['resources', list], names: [name] }));
      }
    }
  }
  if (container['env'] !== undefined) variableWarnings(found, container, path);
}

/** The annotation of AppArmor is turned into its field. */
function profileWarnings(container: JsonObject, pod: Pod): string[] {
  const key = SECCOMP_CONTAINER + textAt(container, 'name');
  const isSecured = isObject(valueAt(container, 'securityContext', 'seccompProfile'));
  return !isSecured && Object.hasOwn(pod.annotations, key) ? [seccomp(pod.annotationsPath, key)] : [];
}

/** A variable may build on its own earlier value; one that does not hides it. */
function variableWarnings(found: string[], container: JsonObject, path: string): void {
  const seen = new Set<string>();
  warnEach(found, objectsAt(container, 'env'), (variable, i) => {
    const name = textAt(variable, 'name');
    const isKnown = seen.has(name);
    seen.add(name);
    if (!isKnown) return undefined;
    const value = textAt(variable, 'value');
    const reference = `$(${name})`;
    const builds = !isObject(variable['valueFrom']) && value !== reference && value.includes(reference);
    if (builds) return undefined;
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

function portWarnings(spec: JsonObject, path: string): string[] {
  const known = new Map<string, PlacedPort[]>();
  const found: string[] = [];
  let left = LOOKED_AT;
  for (const list of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const [i, container] of objectsAt(spec, list).entries()) {
      if (left === 0) return found;
      if (container['ports'] === undefined) continue;
      for (const [j, port] of objectsAt(container, 'ports').slice(0, left).entries()) {
        left--;
        add(found, onePortWarnings(known, port, `${path}.${list}[${i}].ports[${j}]`));
      }
    }
  }
  return found;
}

function onePortWarnings(known: Map<string, PlacedPort[]>, port: JsonObject, path: string): string[] | undefined {
  const number = numberAt(port, 'containerPort');
  const protocol = textAt(port, 'protocol');
  const here = { path, hostIp: textAt(port, 'hostIP'), hostPort: numberAt(port, 'hostPort') };
  const key = `${number}/${protocol}`;
  const others = known.get(key) ?? [];
  if (others.length < COMPARED) known.set(key, [...others, here]);
  if (others.length === 0 && here.hostIp === '') return undefined;
  const shown = `{Name:${textAt(port, 'name')} HostPort:0 ContainerPort:${number} Protocol:${protocol} HostIP:${here.hostIp}}`;
  return [
    ...(here.hostIp !== '' && here.hostPort === 0 ? [`${path}: hostIP set without hostPort: ${shown}`] : []),
    ...others.flatMap((other) => {
      const problem = meeting(here, other);
      return problem === undefined ? [] : [`${path}: ${problem} port definition with ${other.path}`];
    }),
  ];
}

function meeting(one: PlacedPort, other: PlacedPort): string | undefined {
  if (one.hostIp === other.hostIp && one.hostPort === other.hostPort) return 'duplicate';
  if (one.hostPort === 0 || other.hostPort === 0) return 'overlapping';
  const isHalfOpen = (one.hostIp === '') !== (other.hostIp === '');
  return one.hostPort === other.hostPort && isHalfOpen ? 'dangerously ambiguous' : undefined;
}

function affinityWarnings(found: string[], spec: JsonObject, path: string): void {
  for (const kind of ['podAffinity', 'podAntiAffinity']) {
    const at = `${path}.affinity.${kind}`;
    const terms = objectAt(spec, 'affinity', kind);
    warnEach(found, objectsAt(terms, REQUIRED), (term, i) =>
      isObject(term['labelSelector']) ? undefined : [`${at}.${REQUIRED}[${i}].labelSelector: ${NO_SELECTOR}`],
    );
    warnEach(found, objectsAt(terms, PREFERRED), (term, i) =>
      isObject(valueAt(term, 'podAffinityTerm', 'labelSelector'))
        ? undefined
        : [`${at}.${PREFERRED}[${i}].podAffinityTerm.labelSelector: ${NO_SELECTOR}`],
    );
  }
}
