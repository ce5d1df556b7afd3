/** Refusals of a deletion, as the API answers them: the same from the server, the webhook and the commands. */
import { type ApiError, forbidden, type StatusCause } from '@coracle/apimachinery/meta/status';
import type { Blocker, Refusal } from './decide-deletion.ts';
import { DELETE_PROTECTION_LABEL } from './delete-protection.ts';
import type { DeletionTarget } from './deletion-target.ts';

/** Reason of the causes of a refusal, one for each machine that is named. */
export const PROTECTED_MACHINE_CAUSE = 'ProtectedVirtualMachine';

const ACTS: Readonly<Record<Refusal['reason'], readonly [one: string, many: string]>> = {
  Referenced: ['refers to it', 'refer to it'],
  HoldsMachines: ['is in it', 'are in it'],
  DefinesMachines: ['would be deleted with it', 'would be deleted with it'],
  RunsMachines: ['exists', 'exist'],
};

/** Why the object may not be deleted, and what would change that. */
export function refusalText({ reason, blockers, total }: Refusal): string {
  const [one, many] = ACTS[reason];
  const names = blockers.map((each) => `${each.namespace}/${each.name}${each.why === '' ? '' : ` (${each.why})`}`);
  if (total > names.length) names.push(`and ${total - names.length} more`);
  const machines =
    total === 1
      ? `protected VirtualMachine ${names[0]} ${one}`
      : `${total} protected VirtualMachines ${many}: ${names.join(', ')}`;
  const whose = total === 1 ? 'that VirtualMachine' : 'those VirtualMachines';
  return `${machines}; disable/remove label '${DELETE_PROTECTION_LABEL}' from ${whose} before deleting it`;
}

/** The machines that are named, each as a cause. */
export const refusalCauses = ({ blockers }: Pick<Refusal, 'blockers'>): StatusCause[] =>
  blockers.map((each) => ({ reason: PROTECTED_MACHINE_CAUSE, message: causeText(each) }));

const causeText = ({ namespace, name, why }: Blocker): string =>
  `VirtualMachine ${namespace}/${name}${why === '' ? '' : `: ${why}`}`;

/** 403: `<resource> "<name>" is forbidden: ...`. */
export const deletionForbidden = (
  target: Pick<DeletionTarget, 'group' | 'resource' | 'name'>,
  refusal: Refusal,
): ApiError => forbidden(target, target.name, refusalText(refusal), refusalCauses(refusal));
