/** Asks a connected guest agent, again and again, for what the status of its VMI shows. */
import { missingCommands } from '@coracle/kubevirt/rules/access-credentials/agent-credentials';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { GuestAgent } from '../../qmp/guest-agent.ts';
import {
  askCommands,
  askFrozen,
  askInterfaces,
  askOsInfo,
  type GuestInterface,
  type GuestOsInfo,
} from './guest-agent-facts.ts';

/** What the agent said last. */
export interface GuestAgentFacts {
  readonly os: GuestOsInfo;
  readonly interfaces: readonly GuestInterface[];
  /** `frozen`, or ''. */
  readonly frozen: 'frozen' | '';
  /** Commands that something here needs, and that this agent does not have, or refuses. */
  readonly missing: readonly string[];
}

/** Addresses come and go; who the guest is changes with its updates. Upstream asks every 10 and 120 s. */
const POLL_MS = 10_000;
const OS_EVERY = 12;

export interface WatchGuestAgentOptions {
  readonly agent: GuestAgent;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborts when the agent is gone. */
  readonly signal: AbortSignal;
  /** False while the guest does not run: a paused one answers nothing. */
  readonly isRunning: () => boolean;
  /** What was known before this watch. */
  readonly before?: GuestAgentFacts | undefined;
  readonly onFacts: (facts: GuestAgentFacts) => void;
}

/** Runs until the signal aborts. Never rejects. */
export async function watchGuestAgent(options: WatchGuestAgentOptions): Promise<void> {
  const { agent, clock, signal } = options;
  let last = options.before;
  for (let round = 0; !signal.aborted; round++) {
    if (options.isRunning()) {
      try {
        const facts = await agent.converse(async (ask): Promise<GuestAgentFacts> => {
          const frozen = await askFrozen(ask);
          // While the file systems are frozen the agent refuses everything else: what was known before still holds.
          if (frozen !== '' && last) return { ...last, frozen };
          const isDue = last === undefined || round % OS_EVERY === 0;
          const os = isDue ? await askOsInfo(ask) : last!.os;
          const missing = isDue ? missingCommands(await askCommands(ask)) : last!.missing;
          return { os, interfaces: await askInterfaces(ask), frozen, missing };
        });
        if (signal.aborted) return;
        last = facts;
        options.onFacts(facts);
      } catch (error) {
        options.log.debug('guest agent not asked', { error: error instanceof Error ? error.message : String(error) });
      }
    }
    await clock.sleep(POLL_MS, signal).catch(() => {});
  }
}
