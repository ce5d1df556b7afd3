import type { Machine } from '../../../rules/identity/shared-uuids.ts';

/** A machine that is about to have a UUID. */
export interface UuidClaim {
  /** In canonical form. */
  readonly uuid: string;
  readonly machine: Machine;
  /** Holds the UUID for the machine until it is stored, so that of two writes at once the second knows of the first. */
  readonly holds: boolean;
  /** A UUID that others have is not held. */
  readonly exclusive: boolean;
}

/** The other machines that have a UUID, or are about to. */
export type ClaimUuid = (claim: UuidClaim) => readonly Machine[];
