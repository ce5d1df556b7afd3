/** The Node authorizer's no to an instance that exists and has nothing to do with this node: its guest is another's by now. */
import { ApiError } from '@coracle/apimachinery/meta/status';

/**
 * True for that answer. The instance's node, the ends of its migration and the Pods bound here are all that makes a
 * relationship: where none does, the guest is not ours to report on, and none that was sent away comes back.
 */
export const isOfOthers = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 403 && error.message.includes('no relationship found between node');
