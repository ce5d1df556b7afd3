/** Keeps an eye on the guest agent for as long as it is connected. */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { createLinkedController, type LinkedController } from '@coracle/runtime/signal/linked-controller';
import type { GuestAgent } from '../../qmp/guest-agent.ts';
import { type GuestAgentFacts, watchGuestAgent } from './guest-agent-watch.ts';

export interface AgentFollower {
  /** Begins when the agent is connected, ends when it is not. Returns whether it has just ended. */
  follow(connected: boolean): boolean;
  /** Asks everything again, soon; nothing while the agent is not connected. */
  again(): void;
}

/** Nothing is asked before `follow`. */
export function createAgentFollower(options: {
  readonly agent: GuestAgent;
  readonly clock: Clock;
  readonly log: Logger;
  /** The life of the guest. */
  readonly signal: AbortSignal;
  readonly isRunning: () => boolean;
  /** What is known of the agent. */
  readonly known: () => GuestAgentFacts | undefined;
  readonly onFacts: (facts: GuestAgentFacts) => void;
}): AgentFollower {
  const { known, signal, ...rest } = options;
  let watch: LinkedController | undefined;
  const begin = (): void => {
    watch = createLinkedController(signal);
    void watchGuestAgent({ ...rest, signal: watch.signal, before: known() });
  };
  const end = (): void => {
    watch?.abort(new DOMException('the guest agent is not watched any more', 'AbortError'));
    watch?.release();
    watch = undefined;
  };
  return {
    follow(connected) {
      if (connected === (watch !== undefined)) return false;
      if (connected) begin();
      else end();
      return !connected;
    },
    again() {
      if (!watch) return;
      end();
      begin();
    },
  };
}
