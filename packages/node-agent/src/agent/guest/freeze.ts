/**
 * Holds the file systems of a guest still, through its agent. A guest that is frozen and forgotten hangs, so a freeze
 * with a timeout ends by itself. The timer lives in this process: an agent that restarts meanwhile does not thaw.
 */
import { badRequest } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { GuestAgent } from '../../qmp/guest-agent.ts';
import { askFrozen } from './guest-agent-facts.ts';

/** Flushing what was written may take the guest long. */
const FREEZE_MS = 30_000;
/** The one thaw that is due for each guest. */
const due = new WeakMap<GuestAgent, () => void>();

/** Freezes all file systems; one that is frozen stays so. Throws QmpError. */
export async function freezeGuest(
  agent: GuestAgent,
  options: { readonly clock: Clock; readonly log: Logger /** 0 = never by itself. */; readonly thawAfterMs: number },
): Promise<void> {
  const { clock, log, thawAfterMs } = options;
  await agent.converse(async (ask) => {
    if ((await askFrozen(ask)) === 'frozen') return;
    await ask('guest-fsfreeze-freeze', undefined, { timeoutMs: FREEZE_MS });
  });
  due.get(agent)?.();
  due.delete(agent);
  if (thawAfterMs === 0) return;
  const cancel = clock.schedule(thawAfterMs, () => {
    due.delete(agent);
    thawGuest(agent).catch((error: Error) => log.warn('frozen guest not thawed', { error: error.message }));
  });
  due.set(agent, cancel);
}

/** Thaws all file systems. Throws QmpError. */
export async function thawGuest(agent: GuestAgent): Promise<void> {
  due.get(agent)?.();
  due.delete(agent);
  await agent.converse((ask) => ask('guest-fsfreeze-thaw', undefined, { timeoutMs: FREEZE_MS }));
}

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
  const parts = typeof text === 'string' ? [...text.matchAll(/(\d+(?:\.\d+)?)(h|ms|us|µs|ns|m|s)/g)] : [];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) {
    throw badRequest(`unfreezeTimeout is no duration: ${JSON.stringify(text)}`);
  }
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * UNITS[unit!]!, 0);
}
