/**
 * Does things in the order of what they need: each once all it needs has taken effect, several at a time. What fails holds
 * up what needs it, and nothing else. Waits for those alone that something needs.
 */
import type { Clock } from '@coracle/runtime/clock/clock';

export type TaskResult = 'done' | 'failed' | 'skipped';
export type Effect = 'ready' | 'waiting' | 'failed';
/** Why a task was passed over. */
export type Obstacle = 'failed' | 'skipped' | 'not-ready' | 'timeout' | 'cycle';

export interface GraphTask {
  readonly id: string;
  /** Ids of tasks, or of `external` ones. */
  readonly needs: ReadonlySet<string>;
  /** Never rejects, but for the signal. */
  act(): Promise<TaskResult>;
  /** Whether what it did has taken effect; asked until it has, where something needs it. */
  effect(): Promise<Effect>;
}

export interface GraphRun {
  /** In the order in which they are preferred. */
  readonly tasks: readonly GraphTask[];
  /** What is waited for and not done here. */
  readonly external?: ReadonlyMap<string, () => Promise<Effect>>;
  readonly onObstacle: (task: GraphTask, need: string, obstacle: Obstacle) => void;
  /** What becomes of tasks that wait for each other: all at once, or none of them. */
  readonly cycles: 'act' | 'skip';
  /** How long one thing may take to have effect, milliseconds. */
  readonly effectMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const CONCURRENCY = 4;
const POLL = { firstMs: 50, lastMs: 1000 };

type State = 'pending' | 'acted' | 'ready' | Exclude<Obstacle, 'cycle'>;

/** Runs all of them. Rejects with the signal's reason alone. */
export async function runGraph(run: GraphRun): Promise<void> {
  const { tasks, external = new Map(), clock, signal } = run;
  const states = new Map<string, State>();
  const since = new Map<string, number>();
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const needed = new Set(tasks.flatMap(({ needs }) => [...needs]));
  for (const { id } of tasks) states.set(id, 'pending');
  for (const id of external.keys()) {
    states.set(id, 'acted');
    since.set(id, clock.monotonic());
  }
  const effectOf = (id: string): Promise<Effect> =>
    byId.get(id)?.effect() ?? external.get(id)?.() ?? Promise.resolve('ready');

  const act = async (batch: readonly GraphTask[]): Promise<void> => {
    const line = [...batch];
    const worker = async (): Promise<void> => {
      for (let task = line.shift(); task; task = line.shift()) {
        signal.throwIfAborted();
        const outcome = await task.act();
        since.set(task.id, clock.monotonic());
        states.set(task.id, outcome !== 'done' ? outcome : needed.has(task.id) ? 'acted' : 'ready');
      }
    };
    await Promise.all(Array.from({ length: Math.min(CONCURRENCY, batch.length) }, worker));
  };
  const obstacleOf = (task: GraphTask): [string, Exclude<Obstacle, 'cycle'>] | undefined => {
    for (const need of task.needs) {
      const state = states.get(need);
      if (state === 'failed' || state === 'skipped' || state === 'timeout' || state === 'not-ready')
        return [need, state];
    }
    return undefined;
  };
  const isReady = (task: GraphTask): boolean =>
    [...task.needs].every((need) => !states.has(need) || states.get(need) === 'ready');

  let pollMs = POLL.firstMs;
  for (;;) {
    signal.throwIfAborted();
    let pending = tasks.filter(({ id }) => states.get(id) === 'pending');
    for (const task of pending) {
      const obstacle = obstacleOf(task);
      if (!obstacle) continue;
      states.set(task.id, 'skipped');
      run.onObstacle(task, ...obstacle);
    }
    pending = pending.filter(({ id }) => states.get(id) === 'pending');
    if (pending.length === 0) return;
    const batch = pending.filter(isReady);
    if (batch.length > 0) {
      await act(batch);
      pollMs = POLL.firstMs;
      continue;
    }
    const waited = [...new Set(pending.flatMap(({ needs }) => [...needs]))].filter((id) => states.get(id) === 'acted');
    if (waited.length === 0) {
      const hasSkipped = pending.some((task) => obstacleOf(task));
      if (hasSkipped) continue;
      const cycle = inCycles(pending, states);
      if (run.cycles === 'act') await act(cycle);
      else {
        const members = new Set(cycle.map(({ id }) => id));
        for (const task of cycle) {
          states.set(task.id, 'skipped');
          run.onObstacle(task, [...task.needs].find((need) => members.has(need)) ?? '', 'cycle');
        }
      }
      continue;
    }
    let changed = false;
    for (const id of waited) {
      const effect = await effectOf(id);
      if (effect === 'ready') states.set(id, 'ready');
      else if (effect === 'failed') states.set(id, 'not-ready');
      else if (clock.monotonic() - (since.get(id) ?? 0) >= run.effectMs) states.set(id, 'timeout');
      changed ||= states.get(id) !== 'acted';
    }
    if (changed) continue;
    await clock.sleep(pollMs, signal);
    pollMs = Math.min(pollMs * 2, POLL.lastMs);
  }
}

/** Of tasks that wait, those that wait for each other: what waits for these alone comes after them. */
function inCycles(pending: readonly GraphTask[], states: ReadonlyMap<string, State>): GraphTask[] {
  let left = [...pending];
  for (;;) {
    const needed = new Set(left.flatMap(({ needs }) => [...needs]).filter((id) => states.get(id) === 'pending'));
    const rest = left.filter(({ id }) => needed.has(id));
    if (rest.length === left.length) return left;
    left = rest;
  }
}
