import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { ApiRequest } from '@coracle/runtime/http/seam';
import type { Launcher } from '../launcher/launcher.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { memoryRequest } from './memory-requests.ts';
import { saveMemory } from './save-memory.ts';

const UID = '6f1e0b8e-2f0c-4f0b-9a51-0d7f3b2c9a10';
const request = {
  method: 'POST',
  path: '/memory/v1/save',
  body: new TextEncoder().encode(JSON.stringify({ state: UID, namespace: 'a', vmi: 'b', vmiUid: UID })),
} as Partial<ApiRequest> as ApiRequest;

const code = (expected: number) => (error: unknown) => error instanceof ApiError && error.code === expected;

/** `saveMemory` reads no more than this of a launcher before it refuses. */
const busy = {
  environment: { memoryDirectory: '/nonexistent' },
  record: { saving: { state: UID } },
} as unknown as LauncherState;

// S-1003: A guest that cannot be saved for a moment only, as after a restart of its agent, is asked for again.
for (const [what, launcher, expected] of [
  ['that this node does not know', undefined, 404],
  ['that this agent has not taken up yet', {} as Launcher, 503],
  [
    'whose memory was being saved when an earlier agent ended',
    {
      guest: {},
      saveMemory: (guest: never, options: never) => saveMemory(busy, guest, options),
    } as unknown as Launcher,
    503,
  ],
] as const)
  test(`the memory of a guest ${what}: ${expected}`, async () => {
    const answer = memoryRequest({ find: () => launcher, memoryDirectory: '', isControlPlane: () => true }, request);
    await assert.rejects(answer ?? Promise.resolve(), code(expected));
  });
