/** Plays the agents of all nodes towards the controller of saved memory. Nothing is in it. */
import { formatTime } from '../../packages/apimachinery/src/meta/object.ts';
import type { AskAgent } from '../../packages/client/src/controller/ask-agent.ts';
import type { DeleteMemory } from '../../packages/kubevirt/src/rules/memory-state/memory-calls.ts';

export interface PlayedMemory {
  readonly askAgent: AskAgent;
  /** What was saved and not deleted yet: UIDs of snapshots. */
  readonly states: ReadonlySet<string>;
}

export function playMemory(): PlayedMemory {
  const states = new Set<string>();
  return {
    states,
    askAgent: async (_, path, call) => {
      const { state } = call as DeleteMemory;
      if (path === '/memory/v1/save') states.add(state);
      else states.delete(state);
      return { state, bytes: 1, pauseMs: 1, savedAt: formatTime(Date.now()) };
    },
  };
}
