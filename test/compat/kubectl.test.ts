/** The tables of `cases/` of what kubectl does, on the newest one there is; a short walk on the oldest. */
import { test } from 'node:test';
import { ACCESS } from './cases/access.ts';
import { CHANGE } from './cases/change.ts';
import { CREATE } from './cases/create.ts';
import { CUSTOM_RESOURCES } from './cases/custom-resources.ts';
import { DISCOVERY } from './cases/discovery.ts';
import { EVERY_VERSION } from './cases/every-version.ts';
import { READ } from './cases/read.ts';
import { REMOVE } from './cases/remove.ts';
import { skip, walkTables, walkWithOldest } from './walk-tables.ts';

walkTables([...READ, ...CHANGE, ...REMOVE, ...CREATE, ...DISCOVERY, ...ACCESS, ...CUSTOM_RESOURCES]);

// S-127: kubectl of earlier minor versions, from 1.27 on, applies, reads, scales, explains and deletes.
// Compat Pods, nodes, drain, P1, yes: kubectl get, describe, wait, apply, edit, diff, drain, auth, explain
test('the oldest version that there is', { skip }, (t) => walkWithOldest(t, EVERY_VERSION));
