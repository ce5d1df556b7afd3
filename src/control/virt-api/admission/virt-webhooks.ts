/**
 * The webhooks of virt-api as a table: name, path, what they are asked about, and the decision. The embedded server
 * runs the table in process (`virt-admission.ts`), a cluster reaches it over HTTPS (`webhook-server.ts`).
 */
import {
  KUBEVIRTS,
  type KubeVirt,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
  type VirtualMachineInstanceReplicaSet,
} from '../../../api/kinds/kubevirt/kubevirt.ts';
import type { ResourceType } from '../../../api/meta/gvk.ts';
import type { DeepReadonly, KubeObject } from '../../../api/meta/object.ts';
import { ApiError, type FieldError } from '../../../api/meta/status.ts';
import type { Client } from '../../../client/client.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, invalidValue, requiredValue } from './causes.ts';
import { mutateMigration, mutateVirtualMachine, mutateVirtualMachineInstance } from './mutate.ts';
import { validateInstanceUpdate, validateNewInstance } from './validate-instance.ts';
import { validateVirtualMachineInstanceSpec } from './validate-instance-spec.ts';
import { validateKubeVirt, validateKubeVirtDeletion, validateNewKubeVirt } from './validate-kubevirt.ts';
import { validateMigrationOf, validateMigrationSpec, validateMigrationUpdate } from './validate-migration.ts';
import { validateVirtualMachine, virtualMachineWarnings } from './validate-virtual-machine.ts';

export type Operation = AdmissionContext['operation'];

/** One object in front of a webhook. On DELETE `object` is the stored one. */
export interface Subject<T = KubeObject> {
  readonly object: DeepReadonly<T>;
  readonly old: DeepReadonly<T> | undefined;
  readonly namespace: string;
  readonly context: AdmissionContext;
  readonly client: Client;
}

interface Target {
  /** `virtualmachine-validator.kubevirt.io`: named in refusals. */
  readonly name: string;
  /** Where a cluster reaches it. */
  readonly path: string;
  readonly resource: string;
  readonly operations: readonly Operation[];
}

export interface MutatingWebhook extends Target {
  /** @throws DefaultsError */
  mutate(subject: Subject): KubeObject;
}

export interface ValidatingWebhook extends Target {
  /** @throws DefaultsError, ApiError when the API cannot be asked */
  validate(subject: Subject): Promise<readonly FieldError[]> | readonly FieldError[];
  warnings?(subject: Subject): readonly string[];
}

const mutating = <T extends KubeObject>(
  target: Omit<Target, 'resource'> & { readonly type: ResourceType<T> },
  mutate: (subject: Subject<T>) => KubeObject,
): MutatingWebhook => ({
  ...target,
  resource: target.type.resource,
  mutate: mutate as unknown as MutatingWebhook['mutate'],
});

const validating = <T extends KubeObject>(
  target: Omit<Target, 'resource'> & { readonly type: ResourceType<T> },
  validate: (subject: Subject<T>) => Promise<readonly FieldError[]> | readonly FieldError[],
  warnings?: (subject: Subject<T>) => readonly string[],
): ValidatingWebhook => ({
  ...target,
  resource: target.type.resource,
  validate: validate as unknown as ValidatingWebhook['validate'],
  ...(warnings && { warnings: warnings as unknown as (subject: Subject) => readonly string[] }),
});

export const MUTATING_WEBHOOKS: readonly MutatingWebhook[] = [
  mutating<VirtualMachine>(
    {
      name: 'virtualmachines-mutator.kubevirt.io',
      path: '/virtualmachines-mutate',
      type: VIRTUAL_MACHINES,
      operations: ['CREATE', 'UPDATE'],
    },
    ({ object, context }) => mutateVirtualMachine(object, context),
  ),
  mutating<VirtualMachineInstance>(
    {
      name: 'virtualmachineinstances-mutator.kubevirt.io',
      path: '/virtualmachineinstances-mutate',
      type: VIRTUAL_MACHINE_INSTANCES,
      operations: ['CREATE', 'UPDATE'],
    },
    ({ object, old, context }) => mutateVirtualMachineInstance(object, context, old),
  ),
  mutating<VirtualMachineInstanceMigration>(
    {
      name: 'migrations-mutator.kubevirt.io',
      path: '/migration-mutate-create',
      type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
      operations: ['CREATE'],
    },
    ({ object, context }) => mutateMigration(object, context),
  ),
];

export const VALIDATING_WEBHOOKS: readonly ValidatingWebhook[] = [
  validating<VirtualMachine>(
    {
      name: 'virtualmachine-validator.kubevirt.io',
      path: '/virtualmachines-validate',
      type: VIRTUAL_MACHINES,
      operations: ['CREATE', 'UPDATE'],
    },
    ({ object, old, context }) => validateVirtualMachine(object, old, context),
    ({ object }) => virtualMachineWarnings(object),
  ),
  validating<VirtualMachineInstance>(
    {
      name: 'virtualmachineinstances-create-validator.kubevirt.io',
      path: '/virtualmachineinstances-validate-create',
      type: VIRTUAL_MACHINE_INSTANCES,
      operations: ['CREATE'],
    },
    ({ object, context }) => validateNewInstance(object, context),
  ),
  validating<VirtualMachineInstance>(
    {
      name: 'virtualmachineinstances-update-validator.kubevirt.io',
      path: '/virtualmachineinstances-validate-update',
      type: VIRTUAL_MACHINE_INSTANCES,
      operations: ['UPDATE'],
    },
    ({ object, old, context }) => (old === undefined ? [] : validateInstanceUpdate(object, old, context)),
  ),
  validating<VirtualMachineInstanceReplicaSet>(
    {
      name: 'virtualmachinereplicaset-validator.kubevirt.io',
      path: '/virtualmachinereplicaset-validate',
      type: VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
      operations: ['CREATE', 'UPDATE'],
    },
    validateReplicaSet,
  ),
  validating<VirtualMachineInstanceMigration>(
    {
      name: 'migration-create-validator.kubevirt.io',
      path: '/migration-validate-create',
      type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
      operations: ['CREATE'],
    },
    validateNewMigration,
  ),
  validating<VirtualMachineInstanceMigration>(
    {
      name: 'migration-update-validator.kubevirt.io',
      path: '/migration-validate-update',
      type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
      operations: ['UPDATE'],
    },
    ({ object, old }) => (old === undefined ? [] : validateMigrationUpdate(object, old)),
  ),
  validating<KubeVirt>(
    {
      name: 'kubevirt-create-validator.kubevirt.io',
      path: '/kubevirt-validate-create',
      type: KUBEVIRTS,
      operations: ['CREATE'],
    },
    async ({ object, client }) => [
      ...validateNewKubeVirt((await client.list(KUBEVIRTS)).items),
      ...validateKubeVirt(object),
    ],
  ),
  validating<KubeVirt>(
    {
      name: 'kubevirt-update-validator.kubevirt.io',
      path: '/kubevirt-validate-update',
      type: KUBEVIRTS,
      operations: ['UPDATE'],
    },
    ({ object }) => validateKubeVirt(object),
  ),
  validating<KubeVirt>(
    {
      name: 'kubevirt-validator.kubevirt.io',
      path: '/kubevirt-validate-delete',
      type: KUBEVIRTS,
      operations: ['DELETE'],
    },
    async ({ object, client }) => validateKubeVirtDeletion(object, await countWorkloads(client)),
  ),
];

function validateReplicaSet({ object, context }: Subject<VirtualMachineInstanceReplicaSet>): Cause[] {
  const { template, selector } = object.spec;
  if (template?.spec?.domain?.devices === undefined) {
    return [requiredValue('spec.template', 'missing virtual machine template.')];
  }
  const labels = template.metadata?.labels ?? {};
  const wanted = Object.entries(selector.matchLabels ?? {});
  const selected = wanted.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
  return [
    ...validateVirtualMachineInstanceSpec(
      'spec.template.spec',
      template.spec as Parameters<typeof validateVirtualMachineInstanceSpec>[1],
      context.config,
    ),
    ...(selected ? [] : [invalidValue('spec.selector', 'selector does not match labels.')]),
  ];
}

async function validateNewMigration({
  object,
  namespace,
  context,
  client,
}: Subject<VirtualMachineInstanceMigration>): Promise<Cause[]> {
  const causes = validateMigrationSpec(object, context);
  if (causes.length > 0) return causes;
  const others = await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace });
  const vmi = await findInstance(client, { namespace, name: object.spec.vmiName ?? '' });
  return validateMigrationOf(object, vmi, others.items);
}

async function findInstance(
  client: Client,
  key: { namespace: string; name: string },
): Promise<VirtualMachineInstance | undefined> {
  try {
    return await client.get(VIRTUAL_MACHINE_INSTANCES, key);
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

async function countWorkloads(client: Client): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const type of [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS]) {
    const { items } = await client.list(type as ResourceType<KubeObject>, { limit: 1 });
    counts[type.kind] = items.length;
  }
  return counts;
}
