/**
 * What makes the target of a clone another machine than its source, as JSON patches for the restore that makes it:
 * firmware UUID and serial, MAC addresses, labels and annotations, and at last what the user asks for.
 * (kubevirt pkg/virt-controller/watch/clone/vm-target.go. Ours: a source without firmware is given a new identity too,
 * an address that goes is removed, not emptied, and CLOUD_INIT_INSTANCE.)
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { applyJsonPatch } from '@coracle/apimachinery/patch/json-patch';
import type { CloneSpec, VirtualMachine } from '../../kinds/kubevirt.ts';
import { CLOUD_INIT_INSTANCE } from '../identity/cloud-init-instance.ts';
import { IDENTITY_ORIGIN } from '../identity/decide-identity.ts';
import { canonicalUuid, legacyFirmwareUuid } from '../identity/firmware-identity.ts';
import { RESUME_FALLBACK, RESUME_FROM } from '../memory-state/resume-request.ts';
import { removedKeys } from './key-filters.ts';

/** A virtual machine as a snapshot holds it. */
export type CloneSource = DeepReadonly<Pick<VirtualMachine, 'metadata' | 'spec'>>;

interface Operation {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}

const TEMPLATE = '/spec/template';
const DOMAIN = `${TEMPLATE}/spec/domain`;
/** Annotations that the restore leaves out or writes itself: a filter has no say in them. */
const WRITTEN_ANYWAY: readonly string[] = [
  'restore.kubevirt.io/lastRestoreUID',
  IDENTITY_ORIGIN,
  RESUME_FROM,
  RESUME_FALLBACK,
];

/**
 * The patches, one operation in each text. `uid` is that of the clone.
 * What the user's own patches hold is not validated here: the restore refuses what it cannot apply.
 */
export function clonePatches(
  source: CloneSource,
  { spec, uid }: { readonly spec: DeepReadonly<CloneSpec>; readonly uid: string },
): string[] {
  const { metadata, spec: machine } = source;
  const template = machine.template.metadata as { labels?: object; annotations?: object } | undefined;
  const operations: Operation[] = [
    ...macAddresses(source, spec.newMacAddresses ?? {}),
    ...removals('/metadata/labels', metadata.labels, spec.labelFilters),
    ...removals('/metadata/annotations', metadata.annotations, spec.annotationFilters),
    ...removals(`${TEMPLATE}/metadata/labels`, template?.labels, spec.template?.labelFilters),
    ...removals(`${TEMPLATE}/metadata/annotations`, template?.annotations, spec.template?.annotationFilters),
    ...firmware(source, spec.newSMBiosSerial),
  ];
  const patches = [...operations.map((operation) => JSON.stringify(operation)), ...(spec.patches ?? [])];
  return [...patches, ...distinction(source, patches, uid).map((operation) => JSON.stringify(operation))];
}

function* macAddresses({ spec }: CloneSource, wanted: Readonly<Record<string, string>>): Generator<Operation> {
  const interfaces = spec.template.spec?.domain?.devices?.interfaces ?? [];
  for (const [i, { name, macAddress }] of interfaces.entries()) {
    const path = `${DOMAIN}/devices/interfaces/${i}/macAddress`;
    const value = Object.hasOwn(wanted, name) ? wanted[name] : undefined;
    if (value) yield { op: 'add', path, value };
    else if (macAddress !== undefined) yield { op: 'remove', path };
  }
}

/** Blank, so that the creation of the target generates them. */
function firmware({ spec }: CloneSource, serial = ''): Operation[] {
  const path = `${DOMAIN}/firmware`;
  // Without this a target that has its source's name would take the UUID that follows from the name.
  if (!spec.template.spec?.domain?.firmware) return [{ op: 'add', path, value: { uuid: '', serial } }];
  return [
    { op: 'add', path: `${path}/serial`, value: serial },
    { op: 'add', path: `${path}/uuid`, value: '' },
  ];
}

const removals = (path: string, map: object | undefined, filters: readonly string[] | undefined): Operation[] =>
  removedKeys(Object.keys(map ?? {}), filters)
    .filter((key) => !WRITTEN_ANYWAY.includes(key))
    .map((key) => ({ op: 'remove', path: `${path}/${escapeKey(key)}` }));

const escapeKey = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');

/** When the user's patches bring the source's UUID back: the annotation by which cloud-init sees another machine. */
function distinction(source: CloneSource, patches: readonly string[], uid: string): Operation[] {
  const target = applied(source, patches);
  const uuid = target?.spec?.template?.spec?.domain?.firmware?.uuid;
  if (typeof uuid !== 'string' || canonicalUuid(uuid) !== canonicalUuid(uuidOf(source))) return [];
  const path = `${TEMPLATE}/metadata`;
  const { metadata } = target!.spec.template;
  if (!metadata) return [{ op: 'add', path, value: { annotations: { [CLOUD_INIT_INSTANCE]: uid } } }];
  if (!metadata.annotations) return [{ op: 'add', path: `${path}/annotations`, value: { [CLOUD_INIT_INSTANCE]: uid } }];
  return [{ op: 'add', path: `${path}/annotations/${escapeKey(CLOUD_INIT_INSTANCE)}`, value: uid }];
}

const uuidOf = ({ metadata, spec }: CloneSource): string =>
  spec.template.spec?.domain?.firmware?.uuid || legacyFirmwareUuid(metadata.name ?? '');

/** The source with the patches applied; undefined when they do not apply. */
function applied(source: CloneSource, patches: readonly string[]): CloneSource | undefined {
  try {
    return applyJsonPatch(
      source,
      patches.map((text) => JSON.parse(text)),
    ) as CloneSource;
  } catch {
    return undefined;
  }
}
