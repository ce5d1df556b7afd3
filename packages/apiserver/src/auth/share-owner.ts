/** On whose account a request takes what is shared by all: connections, bytes in flight, turns of a thread. */
import type { UserInfo } from './identity.ts';

const ACCOUNTS_OF_NAMESPACE = 'system:serviceaccounts:';

/**
 * Service accounts of one namespace are one owner, because whoever may make one there may make a thousand; other users are
 * each their own.
 */
export const shareOwner = ({ username, groups }: UserInfo): string =>
  groups.find((group) => group.startsWith(ACCOUNTS_OF_NAMESPACE)) ?? username;

/** True for a request that brought no credential. */
export const isAnonymous = ({ groups }: UserInfo): boolean => groups.includes('system:unauthenticated');
