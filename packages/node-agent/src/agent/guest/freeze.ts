/** Holds the file systems of a guest still, through its agent, for a time at most where one is given (`thaw-timer.ts`). */
import { badRequest } from '@coracle/apimachinery/meta/status';
import type { ProcessIdentity } from '@coracle/runtime/process/identity';
import type { GuestAgent } from '../../qmp/guest-agent.ts';
import { QmpError } from '../../qmp/qmp-connection.ts';
import { askFrozen } from './guest-agent-facts.ts';
import { cancelThaw, orderThaw } from './thaw-timer.ts';

/** Flushing what was written may take the guest long. */
const FREEZE_MS = 30_000;

/** A guest, and where it lies. */
export interface FrozenGuest {
  readonly agent: GuestAgent;
  /** Of the VM. */
  readonly directory: string;
  readonly process: ProcessIdentity;
}

/** Freezes all file systems until `thawAt` (ms since the epoch; undefined: until somebody thaws them); one that is frozen stays so. Throws QmpError, or what the file system says. */
export async function freezeGuest(
  { agent, directory, process }: FrozenGuest,
  thawAt: number | undefined,
): Promise<void> {
  // Before it is frozen: whatever becomes of us from here on, it is thawed.
  if (thawAt === undefined) await cancelThaw(directory);
  else await orderThaw(directory, { thawAt, process });
  try {
    await agent.converse(async (ask) => {
      if ((await askFrozen(ask)) === 'frozen') return;
      await ask('guest-fsfreeze-freeze', undefined, { timeoutMs: FREEZE_MS });
    });
  } catch (error) {
    // One whose answer is late may be frozen all the same: its time is kept.
    if (!(error instanceof QmpError && error.failure === 'timeout')) await cancelThaw(directory);
    throw error;
  }
}

/** Thaws all file systems. Throws QmpError. */
export async function thawGuest({ agent, directory }: FrozenGuest): Promise<void> {
  await askThaw(agent);
  await cancelThaw(directory);
}

/** The same, for one whose time somebody else keeps. */
export const askThaw = (agent: GuestAgent): Promise<void> =>
  agent.converse(async (ask) => void (await ask('guest-fsfreeze-thaw', undefined, { timeoutMs: FREEZE_MS })));

const UNITS: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6, µs: 1e-6, ns: 1e-9 };

/** Seconds of `{"unfreezeTimeout": "5m0s"}`; 0 when it is absent. Throws ApiError 400. */
export function unfreezeTimeout(body: Uint8Array): number {
  if (body.length === 0) return 0;
  let text: unknown;
  try {
    text = (JSON.parse(new TextDecoder().decode(body)) as { unfreezeTimeout?: unknown } | null)?.unfreezeTimeout;
  } catch {
    throw badRequest('Unable to unmarshal unfreezeTimeout in request');
  }
  if (text === undefined || text === null || text === '' || text === '0') return 0;
  const parts = typeof text === 'string' ? [...text.matchAll(/(\d+(?:\.\d+)?)(h|ms|us|\u00b5s|ns|m|s)/g)] : [];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) {
    throw badRequest(`unfreezeTimeout is not a duration: ${JSON.stringify(text)}`);
  }
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * UNITS[unit!]!, 0);
}
