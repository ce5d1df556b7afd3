/** Asks a connected guest agent, again and again, for what the status of its VMI shows. */
import { missingCommands } from '@coracle/kubevirt/rules/access-credentials/agent-credentials';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { createLinkedController, type LinkedController } from '@coracle/runtime/signal/linked-controller';
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

interface WatchOptions {
  readonly agent: GuestAgent;
  readonly clock: Clock;
  readonly log: Logger;
  /** The life of the guest; for one watch, of the connection of its agent. */
  readonly signal: AbortSignal;
  /** False while the guest does not run: a paused one answers nothing. */
  readonly isRunning: () => boolean;
  /** What is known of the agent. */
  readonly known: () => GuestAgentFacts | undefined;
  readonly onFacts: (facts: GuestAgentFacts) => void;
}

/** Follows the guest agent for as long as it is connected. Nothing is asked before `follow`. */
export function createAgentFollower(options: WatchOptions) {
  let watch: LinkedController | undefined;
  const begin = (): void => {
    watch = createLinkedController(options.signal);
    void watchGuestAgent({ ...options, signal: watch.signal });
  };
  const end = (): void => {
    watch?.abort(new DOMException('the guest agent is not watched any more', 'AbortError'));
    watch?.release();
    watch = undefined;
  };
  return {
    /** Begins when the agent is connected, ends when it is not. Returns whether it has just ended. */
    follow(connected: boolean): boolean {
      if (connected === (watch !== undefined)) return false;
      if (connected) begin();
      else end();
      return !connected;
    },
    /** Asks everything again, soon; nothing while the agent is not connected. */
    again(): void {
      if (!watch) return;
      end();
      begin();
    },
  };
}

/** Runs until the signal aborts. Never rejects. */
async function watchGuestAgent(options: WatchOptions): Promise<void> {
  const { agent, clock, signal } = options;
  let last = options.known();
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
