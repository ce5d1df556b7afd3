import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Guest } from '../guest.ts';
import type { LauncherState } from '../launcher-state.ts';
import { backUpGuest } from './back-up-guest.ts';

const UID = 'aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa';
const good = { backupName: 'b', backupUid: UID, cmd: 'Start', targetPath: UID, checkpoint: 'b-1' };
const hostile: readonly [what: string, change: object][] = [
  ['a path for the claim', { targetPath: '../../etc' }],
  ['no claim', { targetPath: undefined }],
  ['a path for the backup', { backupUid: `${UID}/..` }],
  ['no name', { backupName: '' }],
  ['a name that is no text', { backupName: { length: 1 } }],
  ['another command', { cmd: 'Export' }],
  ['a huge checkpoint', { checkpoint: 'x'.repeat(10_000) }],
];
for (const [what, change] of hostile)
  test(`a request for a backup with ${what} is refused before anything is touched`, async () => {
    const untouched = new Proxy({}, { get: (_target, name) => assert.fail(`reads ${String(name)}`) });
    const request = { ...good, ...change } as never;
    await assert.rejects(backUpGuest(untouched as LauncherState, {} as Guest, request), { code: 400 });
  });
