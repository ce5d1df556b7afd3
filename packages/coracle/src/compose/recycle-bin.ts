/**
 * The bin's part in the server: what is kept of a machine is written in the very commit that begins its deletion, or that of
 * its namespace; who asks for a machine back must have the right to.
 */

import type { DeepReadonly, KubeObject, ReadonlyObject, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { forbidden, invalid } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { PersistentVolume, ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { AdmissionAttributes, AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import type { Authorizer } from '@coracle/apiserver/auth/identity';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import type { ResourceSource } from '@coracle/apiserver/registry/resource-catalog';
import {
  CORACLE_GROUP,
  CORACLE_VERSION,
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  DELETED_VIRTUAL_MACHINES,
  type DeletedVirtualMachine,
} from '@coracle/kubevirt/kinds/kinds';
import type { ReadonlyVm } from '@coracle/kubevirt/kinds/kubevirt';
import { MAX_RECORD_BYTES, MAX_RECORDS } from '@coracle/kubevirt/rules/bin/bin-bounds';
import { UNDELETE_VERB, UNDELETED_FROM } from '@coracle/kubevirt/rules/bin/bin-names';
import { readWindow, UNDELETE_WINDOW_ANNOTATION, undeleteWindowOf } from '@coracle/kubevirt/rules/bin/bin-settings';
import { captureMachine } from '@coracle/kubevirt/rules/bin/capture-machine';
import { referencesOf } from '@coracle/kubevirt/rules/protection/references';
import type { Clock } from '@coracle/runtime/clock/clock';
import { indexOwnedObjects } from './owned-objects.ts';

const KUBEVIRTS = 'kubevirt.io/kubevirts';
const MACHINES = 'kubevirt.io/virtualmachines';
const CLAIMS = '/persistentvolumeclaims';
const VOLUMES = '/persistentvolumes';
const NAMESPACES = '/namespaces';
const DATA_VOLUMES = 'cdi.kubevirt.io/datavolumes';
const REVISIONS = 'apps/controllerrevisions';
/** Kinds that go with their owner. */
const OWNED = [CLAIMS, DATA_VOLUMES, REVISIONS, '/secrets', '/configmaps'];
const MANAGER = 'coracle-bin';

export interface RecycleBin {
  readonly plugin: AdmissionPlugin;
  stop(): void;
}

export interface RecycleBinOptions {
  readonly store: ObjectStore;
  readonly resources: ResourceSource;
  readonly authorize: Authorizer;
  readonly clock: Clock;
}

/** Makes the plug-in; its index is kept until `stop`. */
export function createRecycleBin({ store, resources, authorize, clock }: RecycleBinOptions): RecycleBin {
  const owned = indexOwnedObjects(store, OWNED);
  const window = (): number => undeleteWindowOf(store.list(KUBEVIRTS).items.map(({ object }) => object));
  const kind = ({ resource }: { readonly resource: string }): ResourceInfo | undefined =>
    resources.lookup(CORACLE_GROUP, CORACLE_VERSION, resource);

  const keep = (vm: ReadonlyVm, attributes: AdmissionAttributes, withNamespace: boolean): void => {
    const contents = kind(DELETED_VIRTUAL_MACHINE_CONTENTS);
    const records = kind(DELETED_VIRTUAL_MACHINES);
    const { namespace = '', uid = '' } = vm.metadata;
    const home = store.peek({ prefix: NAMESPACES, namespace: '', name: namespace })?.object;
    if (!contents || !records || !home || uid === '') return;
    const { content, record } = captureMachine({
      vm,
      dependents: dependentsOf(vm, { store, ownedBy: owned.ownedBy, withNamespace }),
      volumeNamed: (name) =>
        store.peek({ prefix: VOLUMES, namespace: '', name })?.object as DeepReadonly<PersistentVolume> | undefined,
      namespaceUid: home.metadata.uid ?? '',
      // One that is on its way out takes no new objects.
      withNamespace: withNamespace || isDeleting(home),
      user: attributes.user.username,
      now: clock.now(),
    });
    if (content.spec.bytes > MAX_RECORD_BYTES) {
      attributes.warn(
        `${namespace}/${vm.metadata.name} cannot be brought back: what goes with it is larger than ${MAX_RECORD_BYTES} bytes`,
      );
      return;
    }
    attributes.companions?.push(companion(contents, content));
    if (record) attributes.companions?.push(companion(records, record));
  };

  const keepAll = (attributes: AdmissionAttributes): void => {
    const namespace = attributes.oldObject?.metadata.name ?? '';
    const vms = store
      .list(MACHINES, { namespace })
      .items.map(({ object }) => object as unknown as ReadonlyVm)
      .filter(isStaying);
    if (vms.length > MAX_RECORDS)
      attributes.warn(`${vms.length - MAX_RECORDS} of ${vms.length} virtual machines cannot be brought back`);
    for (const vm of vms.slice(0, MAX_RECORDS)) keep(vm, attributes, true);
  };

  const mayUndelete = async (attributes: AdmissionAttributes): Promise<void> => {
    const { info, namespace, name, user } = attributes;
    const on = { type: 'resource', subresource: '', namespace } as const;
    const { group, version, resource } = info;
    const rights = [
      { ...on, verb: UNDELETE_VERB, group, version, resource, name },
      { ...on, verb: 'create', group: 'kubevirt.io', version: 'v1', resource: 'virtualmachines', name: '' },
    ];
    for (const right of rights) {
      const { allowed } = await authorize(user, right);
      if (allowed) continue;
      const what = `${right.verb} resource "${right.resource}" in API group "${right.group}" in the namespace "${namespace}"`;
      throw forbidden(info, name, `user ${JSON.stringify(user.username)} cannot ${what}: to undelete takes that right`);
    }
  };

  return {
    plugin: {
      name: 'RecycleBin',
      matches: (operation, { group, resource }, subresource) =>
        subresource === '' && (MATCHES[`${group}/${resource}`]?.includes(operation) ?? false),
      validate(attributes) {
        const { info, oldObject, object, dryRun } = attributes;
        switch (`${info.group}/${info.resource}`) {
          case MACHINES:
            if (!dryRun && oldObject && isStaying(oldObject) && window() > 0)
              keep(oldObject as unknown as ReadonlyVm, attributes, false);
            return;
          case NAMESPACES:
            if (!dryRun && oldObject && isStaying(oldObject) && window() > 0) keepAll(attributes);
            return;
          case KUBEVIRTS:
            if (object) checkWindow(info, object);
            return;
          default:
            if (object && asksAnew(object, oldObject)) return mayUndelete(attributes);
        }
      },
    },
    stop: () => owned.stop(),
  };
}

const MATCHES: Readonly<Record<string, readonly string[]>> = {
  [MACHINES]: ['DELETE'],
  [NAMESPACES]: ['DELETE'],
  [KUBEVIRTS]: ['CREATE', 'UPDATE'],
  [`${CORACLE_GROUP}/${DELETED_VIRTUAL_MACHINES.resource}`]: ['CREATE', 'UPDATE'],
};

const isStaying = ({ metadata }: ReadonlyObject): boolean => metadata.deletionTimestamp === undefined;

const companion = (info: ResourceInfo, object: KubeObject) => ({
  info,
  object: object as UnstructuredObject,
  manager: MANAGER,
});

const requestIn = (object: Readonly<KubeObject> | undefined) =>
  (object as DeepReadonly<DeletedVirtualMachine> | undefined)?.spec?.undelete;
const asksAnew = (object: Readonly<KubeObject>, before: Readonly<KubeObject> | undefined): boolean => {
  const request = requestIn(object);
  return request !== undefined && JSON.stringify(request) !== JSON.stringify(requestIn(before));
};

function checkWindow(info: ResourceInfo, { metadata }: UnstructuredObject): void {
  const value = metadata.annotations?.[UNDELETE_WINDOW_ANNOTATION];
  if (value === undefined || readWindow(value) !== undefined) return;
  throw invalid(info, metadata.name ?? '', [
    {
      type: 'FieldValueInvalid',
      field: `metadata.annotations[${UNDELETE_WINDOW_ANNOTATION}]`,
      value,
      detail: 'must be a duration such as 24h or 90m, or 0',
    },
  ]);
}

/**
 * What goes with a machine: what it owns, or its DataVolumes own; of its ControllerRevisions the copies in force, as those
 * of its starts are of no use to another UID. With a namespace go the claims that it names, too.
 */
function dependentsOf(
  vm: ReadonlyVm,
  from: {
    readonly store: Pick<ObjectStore, 'peek'>;
    readonly ownedBy: (uid: string) => readonly Readonly<UnstructuredObject>[];
    readonly withNamespace: boolean;
  },
): readonly ReadonlyObject[] {
  const { store, ownedBy, withNamespace } = from;
  const references = referencesOf(vm);
  const inForce = new Set(references.flatMap(({ resource, name }) => (resource === 'controllerrevisions' ? name : [])));
  const found = new Map<string, ReadonlyObject>();
  const add = (object: Readonly<UnstructuredObject>): void => {
    if (object.metadata.namespace !== vm.metadata.namespace) return;
    if (object.kind === 'ControllerRevision' && !inForce.has(object.metadata.name ?? '')) return;
    found.set(object.metadata.uid ?? '', object);
  };
  // What an undelete has made belongs to its content until the machine takes it over.
  const content = vm.metadata.annotations?.[UNDELETED_FROM];
  for (const uid of [vm.metadata.uid ?? '', ...(content ? [content] : [])])
    for (const object of ownedBy(uid)) {
      add(object);
      if (object.kind === 'DataVolume') ownedBy(object.metadata.uid ?? '').forEach(add);
    }
  if (withNamespace)
    for (const { resource, namespace, name } of references) {
      if (resource !== 'persistentvolumeclaims') continue;
      const claim = store.peek({ prefix: CLAIMS, namespace, name })?.object as
        | (Readonly<UnstructuredObject> & ReadonlyClaim)
        | undefined;
      if (claim) add(claim);
    }
  return [...found.values()];
}
