/** Whether the API refused a deletion because a protected machine is in the way. */
import { ApiError } from '@coracle/apimachinery/meta/status';
import { DELETION_POLICY_NAME } from './deletion-policy.ts';
import { PROTECTED_MACHINE_CAUSE } from './refusal-text.ts';

/** A protected machine refers to the object, or it is one: that holds it, as an owner would. */
export const isHeldByMachine = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.status.details?.causes ?? []).some(
    ({ reason, message = '' }) => reason === PROTECTED_MACHINE_CAUSE || message.includes(`'${DELETION_POLICY_NAME}'`),
  );
