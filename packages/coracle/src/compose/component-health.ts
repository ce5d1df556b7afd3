/** Which of the components of this process run: what ComponentStatus shows under the names of upstream's two programs. */
import type { ComponentHealth } from '@coracle/apiserver/endpoints/component-health';

const SCHEDULER = 'scheduler';

export interface ComponentRuns {
  /** Remembers that a component runs until `run` settles; resolves and rejects with it. */
  follow(name: string, run: Promise<void>): Promise<void>;
  /** Remembers why a component that runs cannot work, until it is given `undefined`. */
  note(name: string, trouble: string | undefined): void;
  /** What runs in another process, or nowhere, is unknown here. */
  health(): ComponentHealth[];
}

/** Follows nothing yet. */
export function createComponentRuns(): ComponentRuns {
  /** By name: true while it runs. */
  const runs = new Map<string, boolean>();
  const troubles = new Map<string, string>();
  const healthOf = (name: string, own: readonly string[]): ComponentHealth => {
    if (own.length === 0) return { name, status: 'Unknown', message: 'not run by the process of the API server' };
    const ended = own.filter((one) => !runs.get(one));
    const [stuck] = own.filter((one) => troubles.has(one));
    if (ended.length === 0 && stuck !== undefined)
      return { name, status: 'False', message: `${stuck}: ${troubles.get(stuck)}` };
    return ended.length === 0
      ? { name, status: 'True', message: 'ok' }
      : { name, status: 'False', message: `ended: ${ended.join(', ')}` };
  };
  return {
    follow(name, run) {
      runs.set(name, true);
      return run.finally(() => runs.set(name, false));
    },
    note(name, trouble) {
      if (trouble === undefined) troubles.delete(name);
      else troubles.set(name, trouble);
    },
    health: () => {
      const names = [...runs.keys()];
      return [
        healthOf(
          'controller-manager',
          names.filter((name) => name !== SCHEDULER),
        ),
        healthOf(
          SCHEDULER,
          names.filter((name) => name === SCHEDULER),
        ),
      ];
    },
  };
}
