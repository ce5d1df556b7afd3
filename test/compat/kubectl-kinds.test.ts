/** The tables of `cases/` of what single kinds do, which other tests see without kubectl; those of `kubectl.test.ts` in whole. */
// test:full: kinds once more, and every way to print or ask, through kubectl.
import { ADMISSION } from './cases/admission.ts';
import { DELETE_PROTECTION } from './cases/delete-protection.ts';
import { INSTANCETYPES } from './cases/instancetypes.ts';
import { PROTECTION } from './cases/protection.ts';
import { SNAPSHOTS } from './cases/snapshots.ts';
import { VERBS } from './cases/verbs.ts';
import { VOLUMES_AND_COPIES } from './cases/volumes-and-copies.ts';
import { walkTables } from './walk-tables.ts';

walkTables(
  [...VERBS, ...DELETE_PROTECTION, ...ADMISSION, ...INSTANCETYPES, ...SNAPSHOTS, ...VOLUMES_AND_COPIES, ...PROTECTION],
  { full: true },
);
