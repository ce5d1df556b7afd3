/** Which of the components of this process run: whether its controllers are ready. */
const SCHEDULER = 'scheduler';

export interface ComponentRuns {
  /** Remembers that a component runs until `run` settles; resolves and rejects with it. */
  follow(name: string, run: Promise<void>): Promise<void>;
  /** Remembers whether a component that runs can work. */
  note(name: string, canWork: boolean): void;
  /** True while all controllers that were followed run and can work; false where none was. */
  controllersReady(): boolean;
}

/** Follows nothing yet. */
export function createComponentRuns(): ComponentRuns {
  /** By name: true while it runs and can work. */
  const ready = new Map<string, boolean>();
  return {
    follow(name, run) {
      ready.set(name, true);
      return run.finally(() => ready.set(name, false));
    },
    note: (name, canWork) => ready.set(name, canWork),
    controllersReady() {
      const controllers = [...ready].filter(([name]) => name !== SCHEDULER);
      return controllers.length > 0 && controllers.every(([, isReady]) => isReady);
    },
  };
}
