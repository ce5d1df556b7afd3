/**
 * Writes the UUID that the guest of a virtual machine has always seen into its template, where an older server stored it
 * without one. The write holds nothing else, so that who looks at field owners sees whose it was, and only if nobody
 * wrote in between: a user who gives a UUID at the same time wins.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import { type ReadonlyVm, type ReadonlyVmi, VIRTUAL_MACHINES, type VirtualMachine } from '../../kinds/kubevirt.ts';
import { decideIdentity, IDENTITY_ORIGIN, withIdentity } from '../../rules/identity/decide-identity.ts';
import type { SyncFailure } from './vm-status.ts';

export interface PersistOutcome {
  /** The machine was written, so what is known of it is stale; its change brings the next pass. */
  readonly isWritten: boolean;
  /** Why it could not be written. The guest keeps its UUID nevertheless, as instances get the same one. */
  readonly failure?: SyncFailure;
}

/** Reason of the condition `Failure`, as upstream's. */
const FIRMWARE_UUID_ERROR = 'FirmwareUUIDError';

/** @throws ApiError 409 when the machine changed meanwhile, and what the server may answer another time */
export async function persistFirmwareUuid(
  client: Client,
  vm: ReadonlyVm,
  instance: ReadonlyVmi | undefined,
): Promise<PersistOutcome> {
  const domain = vm.spec.template?.spec?.domain;
  if (domain === undefined || domain.firmware?.uuid || isDeleting(vm)) return { isWritten: false };
  const guest = instance && !hasEnded(instance) ? instance : undefined;
  const identity = decideIdentity({
    type: 'existing-vm',
    firmware: domain.firmware,
    vmName: vm.metadata.name ?? '',
    guestUuid: guest?.spec.domain?.firmware?.uuid,
  });
  const after = cloneJson(vm) as VirtualMachine;
  after.spec.template.spec!.domain.firmware = withIdentity(domain.firmware, identity);
  after.metadata.annotations = { ...after.metadata.annotations, [IDENTITY_ORIGIN]: identity.origin ?? 'Legacy' };
  try {
    await commit(client, VIRTUAL_MACHINES, { before: vm, after });
    return { isWritten: true };
  } catch (error) {
    // Refused, by a policy or a webhook: this machine goes on without.
    if (!(error instanceof ApiError) || ![400, 403, 422].includes(error.code)) throw error;
    return { isWritten: false, failure: { reason: FIRMWARE_UUID_ERROR, message: error.message } };
  }
}
