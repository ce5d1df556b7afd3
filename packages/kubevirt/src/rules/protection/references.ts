/**
 * What a virtual machine refers to: every object of its namespace that its spec or its status names, with the field that
 * does. What its disks were once filled from (the sources of its DataVolume templates) is no part of it. Objects of other
 * namespaces are left out: a namespace must never wait for a machine of another one.
 */

import { CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, SECRETS } from '@coracle/apimachinery/types/resource-types';
import type { ReadonlyVm } from '../../kinds/kubevirt.ts';
import { sourceType } from '../instancetype/matcher.ts';

export interface ResourceName {
  readonly group: string;
  /** Plural. */
  readonly resource: string;
}

export interface Reference extends ResourceName {
  readonly namespace: string;
  readonly name: string;
  /** The field that names the object, from the top of the machine: `spec.template.spec.volumes[0].dataVolume.name`. */
  readonly field: string;
}

const named = ({ group, resource }: ResourceName): ResourceName => ({ group, resource });
const core = (resource: string): ResourceName => ({ group: '', resource });

const CLAIM = named(PERSISTENT_VOLUME_CLAIMS);
const SECRET = named(SECRETS);
const CONFIG_MAP = core('configmaps');
const SERVICE_ACCOUNT = core('serviceaccounts');
const REVISION = named(CONTROLLER_REVISIONS);
const DATA_VOLUME: ResourceName = { group: 'cdi.kubevirt.io', resource: 'datavolumes' };
const NETWORK: ResourceName = { group: 'k8s.cni.cncf.io', resource: 'network-attachment-definitions' };
const RESOURCE_CLAIM: ResourceName = { group: 'resource.k8s.io', resource: 'resourceclaims' };
const RESOURCE_CLAIM_TEMPLATE: ResourceName = { group: 'resource.k8s.io', resource: 'resourceclaimtemplates' };

/** Where the name stands within an entry of a list, and what it names. */
type Place = readonly [path: string, ...targets: ResourceName[]];

const cloudInit = (source: string): readonly Place[] => [
  [`${source}.secretRef.name`, SECRET],
  [`${source}.networkDataSecretRef.name`, SECRET],
];

const VOLUMES: readonly Place[] = [
  ['persistentVolumeClaim.claimName', CLAIM],
  ['ephemeral.persistentVolumeClaim.claimName', CLAIM],
  ['memoryDump.claimName', CLAIM],
  // A DataVolume and the claim of its name.
  ['dataVolume.name', DATA_VOLUME, CLAIM],
  ['configMap.name', CONFIG_MAP],
  ['secret.secretName', SECRET],
  ['sysprep.secret.name', SECRET],
  ['sysprep.configMap.name', CONFIG_MAP],
  ['serviceAccount.serviceAccountName', SERVICE_ACCOUNT],
  ['containerDisk.imagePullSecret', SECRET],
  ...cloudInit('cloudInitNoCloud'),
  ...cloudInit('cloudInitConfigDrive'),
];

/** Lists of the instance's spec whose entries name objects. */
const INSTANCE_LISTS: readonly [list: string, places: readonly Place[]][] = [
  ['volumes', VOLUMES],
  ['utilityVolumes', [['claimName', CLAIM]]],
  [
    'accessCredentials',
    [
      ['sshPublicKey.source.secret.secretName', SECRET],
      ['userPassword.source.secret.secretName', SECRET],
    ],
  ],
  ['networks', [['multus.networkName', NETWORK]]],
  [
    'resourceClaims',
    [
      ['resourceClaimName', RESOURCE_CLAIM],
      ['resourceClaimTemplateName', RESOURCE_CLAIM_TEMPLATE],
    ],
  ],
];

const INSTANCE_FIELDS: readonly Place[] = [
  ['serviceAccountName', SERVICE_ACCOUNT],
  ['domain.firmware.kernelBoot.container.imagePullSecret', SECRET],
];

const MACHINE_FIELDS: readonly Place[] = [
  ['spec.instancetype.revisionName', REVISION],
  ['spec.preference.revisionName', REVISION],
  ['status.instancetypeRef.controllerRevisionRef.name', REVISION],
  ['status.preferenceRef.controllerRevisionRef.name', REVISION],
  ['status.memoryDumpRequest.claimName', CLAIM],
];

const TEMPLATES: readonly Place[] = [['metadata.name', DATA_VOLUME, CLAIM]];

/** Volumes that are asked for and not yet in the spec. */
const VOLUME_REQUESTS: readonly Place[] = [
  ['addVolumeOptions.volumeSource.persistentVolumeClaim.claimName', CLAIM],
  ['addVolumeOptions.volumeSource.dataVolume.name', DATA_VOLUME, CLAIM],
];

/** Where the names of one kind stand in a machine, list by list: for those who cannot call `referencesOf`. */
export interface ReferencePlaces {
  /** Paths from the top of the machine. */
  readonly fields: readonly string[];
  /** Paths of lists from the top, and within their entries. */
  readonly lists: readonly (readonly [list: string, paths: readonly string[]])[];
}

/** The places of a kind. Networks, which may name another namespace, and what is not captured yet are not among them. */
export function referencePlaces({ group, resource }: ResourceName): ReferencePlaces {
  const of = (places: readonly Place[]): string[] =>
    places.flatMap(([path, ...targets]) =>
      targets.some((each) => each.group === group && each.resource === resource) ? [path] : [],
    );
  const lists: readonly (readonly [string, readonly Place[]])[] = [
    ...INSTANCE_LISTS.map(([list, places]) => [`spec.template.spec.${list}`, places] as const),
    ['spec.dataVolumeTemplates', TEMPLATES],
    ['status.volumeRequests', VOLUME_REQUESTS],
  ];
  return {
    fields: [...of(INSTANCE_FIELDS).map((path) => `spec.template.spec.${path}`), ...of(MACHINE_FIELDS)],
    lists: lists.flatMap(([list, places]) => (of(places).length > 0 ? [[list, of(places)] as const] : [])),
  };
}

/** All of them; the same object once for each field that names it. The machine may be incomplete: nothing is taken for granted. */
export function referencesOf(vm: ReadonlyVm): Reference[] {
  const namespace = vm.metadata.namespace ?? '';
  const found: Reference[] = [];
  const add = (name: unknown, field: string, targets: readonly ResourceName[]): void => {
    if (typeof name !== 'string' || name === '') return;
    const own = targets[0] === NETWORK ? nameWithin(namespace, name) : name;
    if (own === undefined) return;
    for (const target of targets) found.push({ ...target, namespace, name: own, field });
  };
  const fields = (object: unknown, prefix: string, places: readonly Place[]): void => {
    for (const [path, ...targets] of places) add(at(object, path), `${prefix}${path}`, targets);
  };
  const list = (object: unknown, path: string, places: readonly Place[]): void => {
    const entries = at(object, path);
    if (!Array.isArray(entries)) return;
    for (const [index, entry] of entries.entries()) fields(entry, `${path}[${index}].`, places);
  };
  for (const [name, places] of INSTANCE_LISTS) list(vm, `spec.template.spec.${name}`, places);
  fields(at(vm, 'spec.template.spec'), 'spec.template.spec.', INSTANCE_FIELDS);
  list(vm, 'spec.dataVolumeTemplates', TEMPLATES);
  fields(vm, '', MACHINE_FIELDS);
  list(vm, 'status.volumeRequests', VOLUME_REQUESTS);
  for (const field of ['instancetype', 'preference'] as const) {
    const source = uncaptured(vm, field);
    if (source) add(source.name, `spec.${field}.name`, [source]);
  }
  return found;
}

/** An object of the machine's namespace that a matcher names and of which no copy is kept yet. */
function uncaptured(
  vm: ReadonlyVm,
  field: 'instancetype' | 'preference',
): (ResourceName & { readonly name: unknown }) | undefined {
  const kind = at(vm, `spec.${field}.kind`);
  if (typeof kind !== 'string' || at(vm, `spec.${field}.revisionName`)) return undefined;
  if (at(vm, `status.${field}Ref.controllerRevisionRef.name`)) return undefined;
  const type = sourceType(field, kind);
  return type?.namespaced ? { ...named(type), name: at(vm, `spec.${field}.name`) } : undefined;
}

/** `name` or `namespace/name`: undefined when it is in another namespace. */
function nameWithin(namespace: string, text: string): string | undefined {
  const slash = text.indexOf('/');
  if (slash < 0) return text;
  return text.slice(0, slash) === namespace ? text.slice(slash + 1) : undefined;
}

/** What stands at a path of member names; undefined where one of them is missing. */
function at(value: unknown, path: string): unknown {
  let found: unknown = value;
  for (const step of stepsOf(path)) {
    if (typeof found !== 'object' || found === null) return undefined;
    found = (found as Record<string, unknown>)[step];
  }
  return found;
}

/** Split once: the paths are those of the tables above. */
const steps = new Map<string, readonly string[]>();
function stepsOf(path: string): readonly string[] {
  let known = steps.get(path);
  if (!known) {
    known = path.split('.');
    steps.set(path, known);
  }
  return known;
}
