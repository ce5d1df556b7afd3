/**
 * Whose memory a machine may go on from: that of a snapshot of its own namespace that includes memory, where its writer
 * may restore snapshots; and a fork is asked for by whom may make machines too. Memory holds the secrets of a guest: a
 * UID of another tenant's snapshot must open nothing. The agent checks the namespace once more.
 */

import type { DeepReadonly, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { badRequest, forbidden } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { AdmissionAttributes, AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import type { Authorizer, UserInfo } from '@coracle/apiserver/auth/identity';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import { FORK_INTO, parseForkInto } from '@coracle/kubevirt/rules/memory-state/fork';
import { parseResumeFrom, RESUME_FROM } from '@coracle/kubevirt/rules/memory-state/resume-request';
import { includesMemory } from '@coracle/kubevirt/rules/memory-state/saved-memory';

const SNAPSHOTS = 'snapshot.kubevirt.io/virtualmachinesnapshots';
const MACHINES = new Set(['virtualmachines', 'virtualmachineinstances']);

/** An object, or the template of one, which may have no metadata. */
type Annotated = DeepReadonly<Partial<Pick<UnstructuredObject, 'metadata'>>> | undefined;

/** Makes the plug-in; `isTrusted`: one of KubeVirt's components, which hand a request on that was authorised before. */
export function savedMemoryRights(options: {
  readonly store: ObjectStore;
  readonly authorize: Authorizer;
  readonly isTrusted: (user: UserInfo) => boolean;
}): AdmissionPlugin {
  const { store, authorize, isTrusted } = options;
  const annotation = (object: Annotated, name: string): string | undefined => object?.metadata?.annotations?.[name];

  const mayCreate = async (
    { user, namespace }: AdmissionAttributes,
    group: string,
    version: string,
    resource: string,
  ): Promise<boolean> => {
    const attributes = { type: 'resource', verb: 'create', group, version, resource, subresource: '' } as const;
    return (await authorize(user, { ...attributes, namespace, name: '' })).allowed;
  };

  const checkMachine = async (attributes: AdmissionAttributes): Promise<void> => {
    const { info, name, namespace, object, oldObject } = attributes;
    for (const part of [metadataOf, templateOf]) {
      const text = annotation(part(object), RESUME_FROM);
      if (text === undefined || text === annotation(part(oldObject), RESUME_FROM)) continue;
      const request = parseResumeFrom(text);
      if (!request) throw badRequest(`annotation ${RESUME_FROM} must be the UID of a VirtualMachineSnapshot`);
      const refuse = (why: string): Error => forbidden(info, name || (object?.metadata.name ?? ''), why);
      const { items } = store.list(SNAPSHOTS, { namespace });
      const snapshot = items.find(({ object: { metadata } }) => metadata.uid === request.state)?.object;
      if (!snapshot || !includesMemory(snapshot))
        throw refuse(
          `there is no VirtualMachineSnapshot with memory and UID ${request.state} in namespace ${namespace}`,
        );
      if (!(await mayCreate(attributes, 'snapshot.kubevirt.io', 'v1beta1', 'virtualmachinerestores')))
        throw refuse(`to go on from saved memory takes the right to create virtualmachinerestores in ${namespace}`);
    }
  };

  const checkSnapshot = async (attributes: AdmissionAttributes): Promise<void> => {
    const { info, name, namespace, object, oldObject } = attributes;
    const text = annotation(object, FORK_INTO);
    if (text === annotation(oldObject, FORK_INTO)) return;
    const refuse = (why: string): Error =>
      forbidden(info, name || (object?.metadata.name ?? object?.metadata.generateName ?? ''), why);
    if (text === undefined || oldObject) throw refuse(`annotation ${FORK_INTO} is set when the snapshot is created`);
    const names = parseForkInto(text);
    if (typeof names === 'string') throw badRequest(`annotation ${FORK_INTO}: ${names}`);
    if (!object || !includesMemory(object)) throw badRequest(`a fork needs a snapshot that includes memory`);
    if (!(await mayCreate(attributes, 'kubevirt.io', 'v1', 'virtualmachines')))
      throw refuse(`a fork takes the right to create virtualmachines in ${namespace}`);
  };

  return {
    name: 'SavedMemoryRights',
    matches: (operation, info, subresource) =>
      (operation === 'CREATE' || operation === 'UPDATE') && subresource === '' && (isMachine(info) || isSnapshot(info)),
    async validate(attributes) {
      if (isTrusted(attributes.user)) return;
      await (isMachine(attributes.info) ? checkMachine(attributes) : checkSnapshot(attributes));
    },
  };
}

const isMachine = ({ group, resource }: ResourceInfo): boolean => group === 'kubevirt.io' && MACHINES.has(resource);
const isSnapshot = ({ group, resource }: ResourceInfo): boolean =>
  group === 'snapshot.kubevirt.io' && resource === 'virtualmachinesnapshots';

const metadataOf = (object: Annotated): Annotated => object;
/** What stands in the template of a machine gets on its instance too. */
const templateOf = (object: Annotated): Annotated =>
  (object as { spec?: { template?: Annotated } } | undefined)?.spec?.template;
