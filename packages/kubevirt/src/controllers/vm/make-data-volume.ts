/** A DataVolume of a machine's template, and what it copies. */
import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import { orAbsent, orThere } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { CDI_GROUP, CDI_VERSION, DATA_VOLUMES } from '../../kinds/kinds.ts';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import { ALLOW_ADOPTION } from '../../rules/data-volume/claim-of-data-volume.ts';
import { sourceOfDataVolume } from '../../rules/data-volume/data-volume-source.ts';
import { CREATED_BY_LABEL } from '../../rules/launcher/launcher-labels.ts';
import { isAllowed, type ReviewedResource } from '../access-review.ts';
import { MissingPart, type Named, resolveDataSource } from '../resolve-data-source.ts';
import type { SyncFailure } from './vm-status.ts';

/** Creates it. Returns why not where the machine's account may not copy the source, or the source cannot be found out. */
export async function makeDataVolume(
  vm: VirtualMachine,
  { metadata, spec }: NonNullable<VirtualMachine['spec']['dataVolumeTemplates']>[number],
  { client, events }: { readonly client: Client; readonly events: EventRecorder },
): Promise<SyncFailure | undefined> {
  const { labels, annotations, name = '' } = metadata ?? {};
  const { namespace = '' } = vm.metadata;
  const account = vm.spec.template.spec?.volumes?.find((volume) => volume.serviceAccount)?.serviceAccount
    ?.serviceAccountName;
  let copied: Named | undefined;
  try {
    const source = sourceOfDataVolume(spec, namespace);
    if (source?.type === 'pvc' || source?.type === 'snapshot' || source?.type === 'dataSource')
      copied = await resolveDataSource(client, source);
  } catch (error) {
    if (!(error instanceof MissingPart)) throw error;
    if (account) return failure(error.message);
  }
  if (copied && account && !(await mayCopy(client, `${namespace}:${account}`, { from: copied, to: namespace }))) {
    const refusal = failure(
      `not authorized to create DataVolume: Authorization failed, message is: User system:serviceaccount:${namespace}:${account} has insufficient permissions in clone source namespace ${copied.namespace}`,
    );
    const message = `Not authorized to create DataVolume ${name}: ${refusal.message}`;
    if (!vm.status?.conditions?.some((condition) => condition.message === refusal.message))
      events.event(vm, 'Warning', 'UnauthorizedDataVolumeCreate', message);
    return refusal;
  }
  if (copied?.type === 'pvc' && !(await orAbsent(client.get(PERSISTENT_VOLUME_CLAIMS, copied)))) {
    const message = `Source PVC ${copied.name} not available: Target PVC ${name} will remain unpopulated until source is created`;
    // The reason is spelt as upstream spells it: programs look for it.
    events.event(vm, 'Warning', 'SourcePVCNotAvailabe', message);
  }
  const { sourceRef, ...rest } = spec;
  await orThere(
    client.create(DATA_VOLUMES, {
      apiVersion: `${CDI_GROUP}/${CDI_VERSION}`,
      kind: 'DataVolume',
      metadata: {
        name,
        namespace,
        labels: { ...labels, [CREATED_BY_LABEL]: vm.metadata.uid ?? '' },
        annotations: { ...annotations, [ALLOW_ADOPTION]: 'true' },
        ownerReferences: [controllerReference(vm)],
      },
      // What a DataSource stands for now is what it copies, whatever the DataSource says later.
      spec:
        sourceRef && copied
          ? { ...rest, source: { [copied.type]: { namespace: copied.namespace, name: copied.name } } }
          : spec,
    }),
  );
  return undefined;
}

const failure = (message: string): SyncFailure => ({
  reason: 'FailedCreate',
  message: `Error encountered while creating DataVolumes: ${message}`,
});

/** As CDI has it: the right to copy, or the rights by which the account could read the content in Pods of its own. */
async function mayCopy(
  client: Client,
  account: string,
  { from: { type, namespace, name }, to }: { readonly from: Named; readonly to: string },
): Promise<boolean> {
  if (namespace === to) return true;
  const user = {
    username: `system:serviceaccount:${account}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${to}`, 'system:authenticated'],
  };
  const may = (group: string, resource: string, more: Partial<ReviewedResource> = {}): Promise<boolean> =>
    isAllowed(client, user, { verb: 'create', group, resource, namespace, name, ...more });
  if (await may(CDI_GROUP, 'datavolumes', { subresource: 'source' })) return true;
  if (!(await may('', 'pods'))) return false;
  // CDI asks for the short name, which roles for it grant.
  return type === 'pvc' || (await may('', 'pvcs')) || may('', 'persistentvolumeclaims');
}
