/** What the content of a snapshot says of the virtual machine, and which ControllerRevisions go with it. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly, ObjectMeta, OwnerReference } from '@coracle/apimachinery/meta/object';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm, SourceVirtualMachine, VirtualMachine } from '../../kinds/kubevirt.ts';
import { withRevisionNames } from '../instancetype/revision-names.ts';

/** Members of the spec whose copies are captured. */
export const CAPTURED_FIELDS = ['instancetype', 'preference'] as const;
export type CapturedField = (typeof CAPTURED_FIELDS)[number];

/**
 * The machine as the content holds it. One that runs is saved as it was started (`started`, the spec of its start
 * revision), with the volumes, disks and DataVolume templates that it has now. The matchers name the copies in force;
 * where only the status named one, the status of the saved machine says so too: a restore of that machine puts it back
 * there (upstream knows nothing of such copies while the machine is off, and puts them into the spec when it runs).
 */
export function savedMachine(
  vm: ReadonlyVm,
  started: DeepReadonly<VirtualMachine['spec']> | undefined,
): SourceVirtualMachine {
  const { managedFields: _, ...metadata } = cloneJson<ObjectMeta>(vm.metadata);
  const now = withRevisionNames(vm);
  const spec = started === undefined ? now : cloneJson<VirtualMachine['spec']>(started);
  const [template, current] = [spec.template?.spec, now.template?.spec];
  if (started !== undefined && template !== undefined && current !== undefined) {
    setOrDelete(template, 'volumes', current.volumes);
    setOrDelete(template.domain.devices, 'disks', current.domain.devices.disks);
    setOrDelete(spec, 'dataVolumeTemplates', now.dataVolumeTemplates);
    // A machine of an older server was started without the UUID that it has been given since.
    const { uuid } = current.domain.firmware ?? {};
    if (uuid && !template.domain.firmware?.uuid) template.domain.firmware = { ...template.domain.firmware, uuid };
  }
  const saved: SourceVirtualMachine = { metadata, spec };
  for (const field of CAPTURED_FIELDS) {
    const matcher = spec[field];
    if (!matcher?.revisionName || vm.spec[field]?.revisionName) continue;
    const { name, kind, revisionName } = matcher;
    saved.status = {
      ...saved.status,
      [`${field}Ref`]: {
        ...(name !== undefined && { name }),
        ...(kind !== undefined && { kind }),
        controllerRevisionRef: { name: revisionName },
      },
    };
  }
  return saved;
}

function setOrDelete<T extends object, K extends keyof T>(object: T, key: K, value: T[K] | undefined): void {
  if (value === undefined) delete object[key];
  else object[key] = value;
}

/** The saved machine with its matchers naming `copies` instead. */
export function withCopies(
  saved: SourceVirtualMachine,
  copies: Partial<Record<CapturedField, string>>,
): SourceVirtualMachine {
  const next = cloneJson<SourceVirtualMachine>(saved);
  for (const field of CAPTURED_FIELDS) {
    const name = copies[field];
    const matcher = next.spec?.[field];
    if (name === undefined || matcher == null) continue;
    matcher.revisionName = name;
    const ref = next.status?.[`${field}Ref`];
    if (ref != null) ref.controllerRevisionRef = { name };
  }
  return next;
}

/** Name of a copy of a revision of `from` that is kept for `to`: upstream puts the one name in the place of the other. */
export function copiedRevisionName(name: string, from: string, to: string): string {
  const replaced = name.replace(from, () => to);
  return replaced === name && from !== to ? `${to}-${name}` : replaced;
}

/** A copy of a ControllerRevision under another name and owner; nobody's when `owner` is undefined. */
export function copyRevision(
  { data, revision, metadata }: DeepReadonly<ControllerRevision>,
  name: string,
  owner: OwnerReference | undefined,
): ControllerRevision {
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name,
      namespace: metadata.namespace ?? '',
      ...(metadata.labels && { labels: { ...metadata.labels } }),
      ...(owner && { ownerReferences: [owner] }),
    },
    data: cloneJson(data) as ControllerRevision['data'],
    revision,
  } as ControllerRevision;
}
