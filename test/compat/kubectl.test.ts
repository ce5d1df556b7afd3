/** The tables of `cases/` of what kubectl does, on the newest one there is; a short walk on the oldest. */
import { test } from 'node:test';
import { EVERY_VERSION } from './cases/every-version.ts';
import { VERBS } from './cases/verbs.ts';
import { skip, walkTables, walkWithOldest } from './walk-tables.ts';

walkTables(VERBS, { full: false });

// S-127: kubectl of earlier minor versions, from 1.27 on, applies, reads, scales, explains and deletes.
// Compat Pods, nodes, drain, P1, yes: kubectl get, describe, wait, apply, edit, diff, drain, auth, explain
test('the oldest version that there is', { skip }, (t) => walkWithOldest(t, EVERY_VERSION));
