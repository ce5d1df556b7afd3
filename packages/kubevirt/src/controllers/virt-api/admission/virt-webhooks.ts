/**
 * The webhooks of virt-api as a table: name, path, what they are asked about, and the decision. The embedded server
 * runs the table in process (`virt-admission.ts`), a cluster reaches it over HTTPS (`webhook-server.ts`).
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  KUBEVIRTS,
  MIGRATION_POLICIES,
  VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES,
  VIRTUAL_MACHINE_CLUSTER_PREFERENCES,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCE_PRESETS,
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_INSTANCETYPES,
  VIRTUAL_MACHINE_POOLS,
  VIRTUAL_MACHINE_PREFERENCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
  type VirtualMachineInstancetype,
  type VirtualMachinePreference,
} from '../../../kinds/kubevirt.ts';
import type { ExpandedTemplate } from '../../../rules/instancetype/expand-template.ts';
import { applyPresets } from '../../../rules/instancetype/preset.ts';
import { hasMatcher } from '../../../rules/instancetype/resolve.ts';
import {
  instancetypeWarnings,
  preferenceWarnings,
  validateInstancetypeSpec,
  validatePreferenceSpec,
} from '../../../rules/instancetype/validate-kinds.ts';
import { BACKUP_WEBHOOKS } from './backup-webhooks.ts';
import { type Cause, WebhookRefusal } from './causes.ts';
import { CLONE_MUTATING_WEBHOOKS, CLONE_WEBHOOKS } from './clone-webhooks.ts';
import { validateEviction } from './evict-pod.ts';
import { EXPORT_WEBHOOKS } from './export-webhooks.ts';
import { expandMachine, mutateMatchers } from './instancetypes.ts';
import { mutateMigration, mutateVirtualMachine, mutateVirtualMachineInstance, withDomain } from './mutate.ts';
import { withTextQuantities } from './number-quantities.ts';
import { SNAPSHOT_WEBHOOKS } from './snapshot-webhooks.ts';
import { needsSourceArchitecture, setSourceArchitecture } from './source-architecture.ts';
import { validateInstanceUuid, validateMachineUuid } from './validate-identity.ts';
import { validateInstanceUpdate, validateNewInstance } from './validate-instance.ts';
import {
  kubeVirtWarnings,
  validateKubeVirt,
  validateKubeVirtDeletion,
  validateNewKubeVirt,
} from './validate-kubevirt.ts';
import {
  obstacleToMigration,
  validateMigrationPolicy,
  validateMigrationSpec,
  validateMigrationUpdate,
} from './validate-migration.ts';
import { validatePool } from './validate-pool.ts';
import { validatePreset } from './validate-preset.ts';
import { validateReplicaSet } from './validate-replica-set.ts';
import { guestWarnings, validateVirtualMachine, virtualMachineWarnings } from './validate-virtual-machine.ts';
import {
  type MutatingWebhook,
  mutating,
  type Operation,
  type Preset,
  type Subject,
  type Target,
  type ValidatingWebhook,
  validating,
} from './webhook.ts';

/** One webhook for each kind, named and reached as upstream's. */
const sourceWebhooks = <T extends KubeObject>(
  types: readonly ResourceType<T>[],
  validate: (object: DeepReadonly<T>) => readonly FieldError[],
  warnings: (object: DeepReadonly<T>) => readonly string[],
): ValidatingWebhook[] =>
  types.map((type) =>
    validating(
      type,
      `CREATE UPDATE : ${type.resource.slice(0, -1)}-validator.instancetype.kubevirt.io : /${type.resource}-validate`,
      ({ object }) => validate(object),
      ({ object }) => warnings(object),
    ),
  );

/** Not upstream's: its definitions let any number into templates, and ours know amounts as text and whole numbers. */
const numberWebhook = <T extends KubeObject>(name: string, type: ResourceType<T>): MutatingWebhook =>
  mutating(type, `CREATE UPDATE : ${name}-mutator.kubevirt.io : /${name}-mutate`, ({ object }) =>
    withTextQuantities(type.kind, object as ReadonlyObject),
  );

export const MUTATING_WEBHOOKS: readonly MutatingWebhook[] = [
  mutating(
    VIRTUAL_MACHINES,
    'CREATE UPDATE : virtualmachines-mutator.kubevirt.io : /virtualmachines-mutate',
    mutateNewMachine,
  ),
  mutating(
    VIRTUAL_MACHINE_INSTANCES,
    'CREATE UPDATE : virtualmachineinstances-mutator.kubevirt.io : /virtualmachineinstances-mutate',
    mutateInstance,
  ),
  mutating(
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    'CREATE : migrations-mutator.kubevirt.io : /migration-mutate-create',
    ({ object, context }) => mutateMigration(object, context),
  ),
  numberWebhook('virtualmachinereplicaset', VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS),
  numberWebhook('virtualmachinepool', VIRTUAL_MACHINE_POOLS),
  numberWebhook('virtualmachinepreset', VIRTUAL_MACHINE_INSTANCE_PRESETS),
  ...CLONE_MUTATING_WEBHOOKS,
];

export const VALIDATING_WEBHOOKS: readonly ValidatingWebhook[] = [
  validating(
    VIRTUAL_MACHINES,
    'CREATE UPDATE : virtualmachine-validator.kubevirt.io : /virtualmachines-validate',
    validateMachine,
    ({ object }) => virtualMachineWarnings(object),
  ),
  ...sourceWebhooks<VirtualMachineInstancetype>(
    [VIRTUAL_MACHINE_INSTANCETYPES, VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES],
    ({ spec }) => validateInstancetypeSpec(spec),
    ({ spec }) => instancetypeWarnings(spec),
  ),
  ...sourceWebhooks<VirtualMachinePreference>(
    [VIRTUAL_MACHINE_PREFERENCES, VIRTUAL_MACHINE_CLUSTER_PREFERENCES],
    ({ spec }) => validatePreferenceSpec(spec),
    ({ spec }) => preferenceWarnings(spec),
  ),
  validating(
    VIRTUAL_MACHINE_INSTANCES,
    'CREATE : virtualmachineinstances-create-validator.kubevirt.io : /virtualmachineinstances-validate-create',
    validateInstance,
    ({ object }) => guestWarnings('', object),
  ),
  validating(
    VIRTUAL_MACHINE_INSTANCES,
    'UPDATE : virtualmachineinstances-update-validator.kubevirt.io : /virtualmachineinstances-validate-update',
    ({ object, old, context }) => (old === undefined ? [] : validateInstanceUpdate(object, old, context)),
  ),
  validating(
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
    'CREATE UPDATE : virtualmachinereplicaset-validator.kubevirt.io : /virtualmachinereplicaset-validate',
    ({ object, context }) => validateReplicaSet(object, context),
    ({ object }) => guestWarnings('spec.template', object.spec?.template),
  ),
  validating(
    VIRTUAL_MACHINE_POOLS,
    'CREATE UPDATE : virtualmachinepool-validator.kubevirt.io : /virtualmachinepool-validate',
    ({ object, old, context, client }) => validatePool(object, old, context, client),
    ({ object }) =>
      guestWarnings('spec.virtualMachineTemplate.spec.template', object.spec?.virtualMachineTemplate?.spec?.template),
  ),
  validating(
    VIRTUAL_MACHINE_INSTANCE_PRESETS,
    'CREATE UPDATE : virtualmachinepreset-validator.kubevirt.io : /vmipreset-validate',
    ({ object }) => validatePreset(object),
  ),
  validating(
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    'CREATE : migration-create-validator.kubevirt.io : /migration-validate-create',
    validateNewMigration,
  ),
  validating(
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    'UPDATE : migration-update-validator.kubevirt.io : /migration-validate-update',
    ({ object, old }) => (old === undefined ? [] : validateMigrationUpdate(object, old)),
  ),
  validating(
    MIGRATION_POLICIES,
    'CREATE UPDATE : migration-policy-validator.kubevirt.io : /migration-policy-validate-create',
    ({ object }) => validateMigrationPolicy(object),
  ),
  validating(
    KUBEVIRTS,
    'CREATE : kubevirt-create-validator.kubevirt.io : /kubevirt-validate-create',
    async ({ object, client }) => [
      ...validateNewKubeVirt((await client.list(KUBEVIRTS)).items),
      ...validateKubeVirt(object),
    ],
  ),
  validating(
    KUBEVIRTS,
    'UPDATE : kubevirt-update-validator.kubevirt.io : /kubevirt-validate-update',
    ({ object }) => validateKubeVirt(object),
    ({ object }) => kubeVirtWarnings(object),
  ),
  validating(
    KUBEVIRTS,
    'DELETE : kubevirt-validator.kubevirt.io : /kubevirt-validate-delete',
    async ({ object, client }) => validateKubeVirtDeletion(object, await countWorkloads(client)),
  ),
  ...SNAPSHOT_WEBHOOKS,
  ...CLONE_WEBHOOKS,
  ...BACKUP_WEBHOOKS,
  ...EXPORT_WEBHOOKS,
  {
    name: 'virt-launcher-eviction-interceptor.kubevirt.io',
    path: '/pod-eviction-validate',
    group: '',
    resource: 'pods',
    subresource: 'eviction',
    operations: ['CREATE'],
    validate: validateEviction as ValidatingWebhook['validate'],
  },
];

const keyOf = ({ group, resource, subresource }: Pick<Target, 'group' | 'resource' | 'subresource'>): string =>
  `${group}/${resource}/${subresource}`;

const TARGETS: ReadonlyMap<string, readonly Target[]> = Map.groupBy<string, Target>(
  [...MUTATING_WEBHOOKS, ...VALIDATING_WEBHOOKS],
  keyOf,
);

/** Whether any webhook is asked about such a write. One look-up for a write that concerns none. */
export const isWebhookTarget = (
  write: Pick<Target, 'group' | 'resource' | 'subresource'> & { readonly operation: Operation },
): boolean => TARGETS.get(keyOf(write))?.some(({ operations }) => operations.includes(write.operation)) === true;

function mutateNewMachine(subject: Subject<VirtualMachine>): Promise<KubeObject> | KubeObject {
  const { object, old, context, client, mayRead } = subject;
  // Most updates are of metadata: what a preference decides for good was written at the creation, or when it was named.
  const names = hasMatcher(object) && !deepEqual(object.spec, old?.spec);
  const asks = names || needsSourceArchitecture(object);
  if (object.spec === undefined || !asks || isDeleting(object)) return mutateVirtualMachine(object, context, old);
  return (async () => {
    const next = cloneJson(object) as VirtualMachine;
    if (names) await mutateMatchers(next, old, { client, mayRead });
    await setSourceArchitecture(next, client);
    return mutateVirtualMachine(next, context, old);
  })();
}

const PRESETS_DEPRECATED = 'kubevirt.io/v1 VirtualMachineInstancePresets is now deprecated and will be removed in v2.';

function mutateInstance(subject: Subject<VirtualMachineInstance>): Promise<KubeObject> | KubeObject {
  const { object, old, namespace, context, presets, warn } = subject;
  function apply(found: readonly Preset[]): KubeObject {
    if (found.length === 0) return mutateVirtualMachineInstance(object, context, old);
    const next = cloneJson(object) as VirtualMachineInstance;
    next.spec = withDomain(next.spec);
    const outcome = applyPresets(next, found);
    if (outcome.error !== undefined) throw new WebhookRefusal(422, outcome.error);
    if (outcome.applied.length > 0) warn(PRESETS_DEPRECATED);
    for (const text of outcome.warnings) warn(text);
    return mutateVirtualMachineInstance(next, context, old);
  }
  if (context.operation !== 'CREATE') return mutateVirtualMachineInstance(object, context, old);
  const found = presets(namespace);
  return found instanceof Promise ? found.then(apply) : apply(found);
}

async function validateMachine(subject: Subject<VirtualMachine>): Promise<readonly FieldError[]> {
  const { object, old, context, client, capture } = subject;
  const expand = async (): Promise<ExpandedTemplate | undefined> => {
    const expanded = await expandMachine(object, context, client);
    for (const copy of expanded?.captures ?? []) capture(copy);
    return expanded?.template;
  };
  const causes = await validateVirtualMachine(object, old, context, expand);
  return causes.length > 0 ? causes : validateMachineUuid(subject);
}

async function validateInstance(subject: Subject<VirtualMachineInstance>): Promise<readonly FieldError[]> {
  const causes = validateNewInstance(subject.object, subject.context);
  return causes.length > 0 ? causes : validateInstanceUuid(subject);
}

async function validateNewMigration(subject: Subject<VirtualMachineInstanceMigration>): Promise<readonly Cause[]> {
  const { object, namespace, context, client } = subject;
  const causes = validateMigrationSpec(object, context);
  if (causes.length > 0) return causes;
  const others = await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace });
  const vmi = await orAbsent(client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name: object.spec.vmiName ?? '' }));
  const obstacle = obstacleToMigration(object, vmi, others.items);
  if (obstacle !== undefined) throw new WebhookRefusal(400, obstacle);
  return [];
}

async function countWorkloads(client: Client): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const type of [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS]) {
    const { items } = await client.list(type as ResourceType<KubeObject>, { limit: 1 });
    counts[type.kind] = items.length;
  }
  return counts;
}
