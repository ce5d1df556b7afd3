/** Which of the components of this process run: whether its controllers are ready. */
const SCHEDULER = 'scheduler';

export type ComponentRuns = ReturnType<typeof createComponentRuns>;

/** Follows nothing yet. */
export function createComponentRuns() {
  /** By name: true while it runs and can work. */
  const ready = new Map<string, boolean>();
  return {
    /** Remembers that a component runs until `run` settles; resolves and rejects with it. */
    follow(name: string, run: Promise<void>): Promise<void> {
      ready.set(name, true);
      return run.finally(() => ready.set(name, false));
    },
    /** Remembers whether a component that runs can work. */
    note: (name: string, canWork: boolean): void => void ready.set(name, canWork),
    /** True while all controllers that were followed run and can work; false where none was. */
    controllersReady(): boolean {
      const controllers = [...ready].filter(([name]) => name !== SCHEDULER);
      return controllers.length > 0 && controllers.every(([, isReady]) => isReady);
    },
  };
}
