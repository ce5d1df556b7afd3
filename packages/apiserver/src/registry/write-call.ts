/** What every verb that writes goes by: bounds, the checks within a decision, the sign that an object moved. */
import type { WriteCheck } from '../admission/plugin.ts';
import type { AdmissionHooks } from './write-contract.ts';

/** Bodies and objects of more bytes are worked on by another thread, where there is one. */
export const LARGE_WRITE = 256 * 1024;

/** Runs what admission has left to be asked within the decision of a write. Throws what a check throws. */
export function runChecks(checks: readonly WriteCheck[]): void {
  for (const check of checks) check();
}

/** Admission for writes the server makes itself (bootstrap objects). */
export const NO_ADMISSION: AdmissionHooks = { mutate: () => {}, validate: () => {} };

/** What all writes of the server's own have in common; `manager` owns what they set. */
export const ownWrite = (manager: string) => ({
  subresource: '',
  namespace: '',
  name: '',
  dryRun: false,
  manager,
  admission: NO_ADMISSION,
  warn: () => {},
});

/** Thrown inside a store decision when the object moved since it was read: the caller reads again and repeats. */
export class ObjectMoved extends Error {
  constructor() {
    super('the object was changed by another writer');
    this.name = 'ObjectMoved';
  }
}
