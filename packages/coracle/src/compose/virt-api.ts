/**
 * KubeVirt's API in process: its admission as a plug-in of the embedded server, its subresources as an aggregated API,
 * its roles and its default settings. Against a cluster the same code is reached as webhooks and an APIService.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly, ReadonlyObject, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { VersionFacts } from '@coracle/apimachinery/meta/version-info';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { ClusterRole, ClusterRoleBinding } from '@coracle/apimachinery/types/types';
import type { AdmissionAttributes, AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import type { ServerCore } from '@coracle/apiserver/assembly/assemble-server';
import type { PolicyBinding, PolicyRole } from '@coracle/apiserver/auth/bootstrap-policy';
import type { UserInfo } from '@coracle/apiserver/auth/identity';
import { nodeIdentity } from '@coracle/apiserver/auth/node-authorizer';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import type { Client } from '@coracle/client/client';
import {
  createConnectionCounts,
  createSubresourceApi,
  defaultKubeVirt,
  isKubeVirtComponent,
  kubevirtClusterRoleBindings,
  kubevirtClusterRoles,
  type Mutated,
  VIRT_API_ACCOUNT,
  type VirtAdmission,
  type VirtAdmissionRequest,
  virtAdmission,
  virtApiRules,
} from '@coracle/kubevirt/controllers/virt-api/virt-api';
import type { ReadonlyKubeVirt, VirtualMachine, VirtualMachineInstancePreset } from '@coracle/kubevirt/kinds/kubevirt';
import { BIN_ROLES } from '@coracle/kubevirt/rules/bin/bin-roles';
import { CDI_ROLES } from '@coracle/kubevirt/rules/data-volume/cdi-roles';
import { onlyAddsUuid } from '@coracle/kubevirt/rules/identity/decide-identity';
import { type ClusterConfig, clusterConfigOf } from '@coracle/kubevirt/rules/machine-defaults/cluster-config';
import { UNPROTECT_ROLE, UNPROTECT_RULES } from '@coracle/kubevirt/rules/protection/unprotect-permission';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { COMPONENT_NAMESPACE, NO_NODES } from './components.ts';
import { dataVolumeRules } from './data-volume-rules.ts';
import { deleteWhenStopped } from './delete-when-stopped.ts';
import { createDeletionProtection } from './deletion-protection.ts';
import { graphReader } from './graph-reader.ts';
import { launcherPods } from './launcher-pods.ts';
import { nodeVmis } from './node-vmis.ts';
import { watchProtectionSettings } from './protection-settings.ts';
import type { RefusalEvidence } from './refusal-evidence.ts';
import { savedMemoryRights } from './saved-memory-rights.ts';
import { sspRules } from './ssp-rules.ts';
import { unprotectRights } from './unprotect-rights.ts';
import { unservedKinds } from './unserved-kinds.ts';
import { createUuidClaims } from './uuid-claims.ts';

export interface VirtApiOptions extends Omit<ServerCore, 'handlerAs'> {
  /** Acts as virt-api. Every call fails until the server is put together. */
  readonly client: Client;
  readonly connectNode?: (nodeName: string, client: Client) => Promise<ApiHandler>;
  readonly version: string;
  readonly build?: VersionFacts;
  /** Takes in what protection refuses. */
  readonly evidence: RefusalEvidence;
  /** Architecture of the host, as Go names it: what guests get when they name none. */
  readonly architecture: string;
}

const KUBEVIRTS_PREFIX = 'kubevirt.io/kubevirts';
const PRESETS_PREFIX = 'kubevirt.io/virtualmachineinstancepresets';
const presetsIn = (store: ObjectStore, namespace: string): readonly DeepReadonly<VirtualMachineInstancePreset>[] =>
  store
    .list(PRESETS_PREFIX, { namespace })
    .items.map(({ object }) => object as unknown as DeepReadonly<VirtualMachineInstancePreset>);

/** Puts KubeVirt's API together: its plug-ins, its subresources, the objects that must exist, and metrics of streams to guests. */
export function createVirtApi(options: VirtApiOptions) {
  const { store, resources, clock, log, client, connectNode = NO_NODES, authorize, architecture, evidence } = options;
  let config: ClusterConfig | undefined;
  const watch = store.watch(KUBEVIRTS_PREFIX, store.revision(), () => {
    config = undefined;
  });
  const configNow = (): ClusterConfig => {
    config ??= clusterConfigOf(store.list(KUBEVIRTS_PREFIX).items[0]?.object as ReadonlyKubeVirt | undefined);
    return config;
  };
  const isTrusted = (user: UserInfo): boolean =>
    isKubeVirtComponent(user, COMPONENT_NAMESPACE) ||
    user.username.startsWith(`system:serviceaccount:${COMPONENT_NAMESPACE}:coracle-`);
  const uuids = createUuidClaims(store, clock);
  const protection = watchProtectionSettings(store);
  const deletions = createDeletionProtection({ store, isComponent: isTrusted, evidence });
  const admission = virtAdmission({
    client,
    claimUuid: uuids.claim,
    config: configNow,
    presets: (namespace) => (store.count(PRESETS_PREFIX) === 0 ? [] : presetsIn(store, namespace)),
    randomUuid: () => crypto.randomUUID(),
    now: () => clock.now(),
    isTrusted,
    isNode: (user) => !!nodeIdentity(user),
  });
  const connections = createConnectionCounts(clock);
  const api = createSubresourceApi({
    client,
    connections,
    config: configNow,
    nodeHandler: (name) => connectNode(name, client),
    readAs: (user) => graphReader(options, user),
    authorize,
    clock,
    log,
    version: options.version,
    build: { ...options.build, platform: `linux/${architecture}` },
  });
  return {
    admission: [
      deletions.plugin,
      // What is captured at admission is stored together with the virtual machine.
      pluginOf(admission, resources.lookup('apps', 'v1', 'controllerrevisions')!, isTrusted),
      nodeVmis,
      launcherPods(isTrusted),
      savedMemoryRights({ store, authorize, isTrusted }),
      deleteWhenStopped({ store, settings: protection.now, evidence }),
      sspRules(store),
      dataVolumeRules({ store, authorize, isTrusted, architecture }),
      unprotectRights({ settings: protection.now, authorize, evidence }),
      unservedKinds({ store, clock, events: resources.lookup('', 'v1', 'events')! }),
    ],
    subresources: api,
    objects: [
      defaultKubeVirt({
        version: options.version,
        now: clock.now(),
        architecture,
        useEmulation: true,
      }) as unknown as UnstructuredObject,
    ],
    metrics: connections.families,
    stop() {
      watch.stop();
      uuids.stop();
      protection.stop();
      deletions.stop();
    },
  };
}

/** The admission as a plug-in of the embedded server. */
function pluginOf(
  admission: VirtAdmission,
  revisions: ResourceInfo,
  isTrusted: (user: UserInfo) => boolean,
): AdmissionPlugin {
  return {
    name: 'KubeVirt',
    matches: (operation, info, subresource) =>
      operation !== 'CONNECT' &&
      admission.handles({ group: info.group, resource: info.resource, subresource, operation }),
    mutate(attributes) {
      const { object, info } = attributes;
      if (!object) return;
      const take = ({ object: mutated, warnings }: Mutated): void => {
        for (const warning of warnings) attributes.warn(warning);
        if (mutated === object) return;
        const { oldObject } = attributes;
        if (oldObject && takesBack(object, mutated as UnstructuredObject)) {
          attributes.takenBack = true;
          keepOwners(mutated as UnstructuredObject, oldObject);
        }
        if (oldObject && info.resource === 'virtualmachines' && isTrusted(attributes.user))
          attributes.sameGeneration = onlyAddsUuid(oldObject as unknown as VirtualMachine, mutated as VirtualMachine);
        for (const key of Object.keys(object)) if (!Object.hasOwn(mutated, key)) delete object[key];
        Object.assign(object, mutated);
      };
      const pending = admission.mutate(requestOf(attributes, object));
      return pending instanceof Promise ? pending.then(take) : take(pending);
    },
    async validate(attributes) {
      const object = attributes.object ?? attributes.oldObject;
      if (!object) return;
      const { warnings, captures } = await admission.validate(requestOf(attributes, object));
      for (const warning of warnings) attributes.warn(warning);
      for (const copy of captures)
        attributes.companions?.push({
          info: revisions,
          object: copy as unknown as UnstructuredObject,
          manager: VIRT_API_ACCOUNT,
        });
    },
  };
}

/**
 * True when the admission did not take a status, or completed the spec of an update: what was left out of it is no
 * change.
 */
const takesBack = (sent: Readonly<UnstructuredObject>, kept: Readonly<UnstructuredObject>): boolean =>
  !deepEqual(sent['status'], kept['status']) || !deepEqual(sent['spec'], kept['spec']);

/** Who sent nothing but a status that is not taken has written nothing, and owns nothing of it. */
function keepOwners(object: UnstructuredObject, old: Readonly<UnstructuredObject>): void {
  const bare = ({ metadata, ...rest }: Readonly<UnstructuredObject>) => {
    const { managedFields: _, generation: __, resourceVersion: ___, ...kept } = metadata;
    return { ...rest, metadata: kept };
  };
  if (!deepEqual(bare(object), bare(old))) return;
  if (old.metadata.managedFields) object.metadata.managedFields = cloneJson(old.metadata.managedFields);
  else delete object.metadata.managedFields;
}

const requestOf = (attributes: AdmissionAttributes, object: ReadonlyObject): VirtAdmissionRequest => ({
  group: attributes.info.group,
  resource: attributes.info.resource,
  subresource: attributes.subresource,
  operation: attributes.operation as VirtAdmissionRequest['operation'],
  namespace: attributes.namespace,
  object,
  old: attributes.oldObject as ReadonlyObject | undefined,
  user: attributes.user,
  dryRun: attributes.dryRun,
});

/** KubeVirt's roles for users, and what virt-api itself may do. */
export const virtPolicy = () => ({
  roles: [
    ...kubevirtClusterRoles.map(roleOf),
    { kind: 'ClusterRole', name: UNPROTECT_ROLE, exact: true, rules: UNPROTECT_RULES } satisfies PolicyRole,
    ...BIN_ROLES,
    ...CDI_ROLES,
  ],
  bindings: kubevirtClusterRoleBindings(COMPONENT_NAMESPACE).map(bindingOf),
  rules: virtApiRules,
});

const roleOf = (role: ClusterRole): PolicyRole => ({
  kind: 'ClusterRole',
  name: role.metadata.name ?? '',
  ...(role.metadata.labels && { labels: role.metadata.labels }),
  rules: role.rules ?? [],
});

const bindingOf = (binding: ClusterRoleBinding): PolicyBinding => ({
  kind: 'ClusterRoleBinding',
  name: binding.metadata.name ?? '',
  roleKind: 'ClusterRole',
  role: binding.roleRef.name,
  subjects: (binding.subjects ?? []).map(({ kind, name, namespace }) => ({
    kind: kind as 'User' | 'Group' | 'ServiceAccount',
    name,
    ...(namespace && { namespace }),
  })),
});
