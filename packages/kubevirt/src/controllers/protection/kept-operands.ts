/**
 * The two objects of deletion protection as they are kept: the policy and its binding. Shared by those who keep them: for
 * Coracle itself, and for an SSP object that asks for them.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ObjectKey, ObjectMeta } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import {
  LEASES,
  VALIDATING_ADMISSION_POLICIES,
  VALIDATING_ADMISSION_POLICY_BINDINGS,
} from '@coracle/apimachinery/types/resource-types';
import type { Client } from '@coracle/client/client';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import type { Informer } from '@coracle/client/informer/informer';
import type { InformerSet } from '@coracle/client/informer/informer-set';
import { isLeaseHeld } from '@coracle/client/leader/lease-holder';
import {
  DELETION_POLICY,
  DELETION_POLICY_BINDING,
  DELETION_POLICY_NAME,
} from '../../rules/protection/deletion-policy.ts';
import { isOfSsp, type OperandOwner, operandMetadata } from '../../rules/protection/operand-metadata.ts';

const OPERANDS = 'admissionregistration.k8s.io : validatingadmissionpolicies validatingadmissionpolicybindings';

/** Rights to see the two, and to change these two alone. */
export const operandRules = policyRules(`list watch : ${OPERANDS}`, `update : ${OPERANDS} : ${DELETION_POLICY_NAME}`);
/** No rule can name an object that is to be created. */
export const operandCreateRule = `create : ${OPERANDS}`;
/** Right to see whether ssp-operator leads: its Lease is in whatever namespace it runs in. */
export const operatorLeaseRule = 'list : coordination.k8s.io : leases';

const OPERAND = { name: 'vm-delete-protection', component: 'vmDeleteProtection' };
/** Policy and binding have one name. */
export const OPERAND_KEY: ObjectKey = { namespace: '', name: DELETION_POLICY_NAME };

/** ssp-operator's leader election (main.go): the same in every release of it. */
const OPERATOR_LEASE = '734f7229.kubevirt.io';
/** How long others are left alone before they are looked at again. */
export const STANDING_BACK_MS = 15_000;

/** So often in so long an object of an SSP is put right; more is a quarrel with somebody who keeps it another way. */
const MAX_REWRITES = 10;
const REWRITES_WITHIN_MS = 60_000;

export interface WithSpec extends KubeObject {
  spec: unknown;
}

/** One of the two: as it should be, as it is, and what our last write of its spec gave. */
export interface KeptOperand<T extends WithSpec = WithSpec> {
  readonly type: ResourceType<T>;
  readonly wanted: T;
  readonly informer: Informer<T>;
  written?: { readonly uid: string; readonly generation: number; readonly spec: unknown };
  /** Monotonic times of the last writes of the spec. */
  rewrites: number[];
}

/** Policy and binding. */
export function keptOperands(informers: InformerSet) {
  const kept = <T extends WithSpec>(type: ResourceType<T>, wanted: T): KeptOperand<T> => ({
    type,
    wanted,
    informer: informers.of(type, { fieldSelector: `metadata.name=${DELETION_POLICY_NAME}` }),
    rewrites: [],
  });
  return {
    policy: kept(VALIDATING_ADMISSION_POLICIES, DELETION_POLICY),
    binding: kept(VALIDATING_ADMISSION_POLICY_BINDINGS, DELETION_POLICY_BINDING),
  };
}

/** Makes one that is not there, for nobody in particular. */
export async function createOperand<T extends WithSpec>(
  one: KeptOperand<T>,
  { client, log }: Pick<ControllerEnvironment, 'client' | 'log'>,
  signal: AbortSignal,
): Promise<void> {
  const { type, wanted } = one;
  const metadata = operandMetadata(wanted.metadata, OPERAND, undefined) as ObjectMeta;
  note(one, await client.create(type, { ...wanted, metadata }, { signal }));
  log.info('deletion policy written', { kind: type.kind, name: OPERAND_KEY.name });
}

/**
 * Puts one right that is there: its spec, and the metadata that `owner` gives it. `quarrel`: somebody else has written
 * another spec into an object of an SSP so often that it is left for a while.
 */
export async function keepOperand<T extends WithSpec>(
  one: KeptOperand<T>,
  found: DeepReadonly<T>,
  {
    client,
    clock,
    log,
    owner,
    signal,
  }: Pick<ControllerEnvironment, 'client' | 'clock' | 'log'> & {
    readonly owner: OperandOwner;
    readonly signal: AbortSignal;
  },
): Promise<'kept' | 'quarrel'> {
  const metadata = operandMetadata(found.metadata, OPERAND, owner) as ObjectMeta;
  const hasOurSpec = isOurs(one, found);
  if (hasOurSpec && metadata === found.metadata) return 'kept';
  if (!hasOurSpec && isOfSsp(found.metadata)) {
    const now = clock.monotonic();
    one.rewrites = one.rewrites.filter((at) => now - at < REWRITES_WITHIN_MS);
    if (one.rewrites.length >= MAX_REWRITES) {
      log.warn('deletion policy left to somebody who keeps it another way', { kind: one.type.kind });
      return 'quarrel';
    }
    one.rewrites.push(now);
  }
  const spec = hasOurSpec ? found.spec : one.wanted.spec;
  note(one, await client.update(one.type, { ...(found as T), metadata, spec }, { signal }));
  return 'kept';
}

/** Whether ssp-operator itself is at work: somebody renews its Lease. */
export async function isOperatorLeading(
  client: Client,
  { now, signal }: { readonly now: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const { items } = await client.list(LEASES, { fieldSelector: `metadata.name=${OPERATOR_LEASE}`, signal });
  return items.some((lease) => isLeaseHeld(lease, now));
}

function note<T extends WithSpec>(one: KeptOperand<T>, { metadata: { uid = '', generation = 0 }, spec }: T): void {
  one.written = { uid, generation, spec };
}

/** Whether the spec is what we wrote last: it is, or the informer has yet to see that write. */
function isOurs<T extends WithSpec>({ written }: KeptOperand<T>, { metadata, spec }: DeepReadonly<T>): boolean {
  if (written === undefined || metadata.uid !== written.uid) return false;
  return (metadata.generation ?? 0) <= written.generation || deepEqual(spec, written.spec);
}
