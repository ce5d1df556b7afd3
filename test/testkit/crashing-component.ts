/** A component that stops for good right after one of its writes, as a process that is killed there. */

import type { Client } from '../../packages/client/src/client.ts';
import { COMPONENTS, type ComponentFacts, runComponent } from '../../packages/coracle/src/compose/components.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import type { InProcessControlPlane } from './in-process-control-plane.ts';
import { promptClock } from './prompt-clock.ts';

export interface CrashingComponent {
  /** Resolves when it has stopped after its last write; pending while it lives. */
  readonly crashed: Promise<void>;
  /** Its writes so far, as `verb resource name`. */
  readonly writes: readonly string[];
  stop(): Promise<void>;
}

const NEVER = new Promise<never>(() => {});

/** Runs a component whose `after`th write, events not counted, is its last; `Infinity` for one that lives. */
export function runUntilWrite(
  board: Pick<InProcessControlPlane, 'plane'>,
  name: string,
  after: number,
  facts: Partial<ComponentFacts> = {},
): CrashingComponent {
  const component = COMPONENTS.find((each) => each.name === name);
  if (!component) throw new Error(`no component ${name}`);
  const own = new AbortController();
  const writes: string[] = [];
  let tellCrash = (): void => {};
  const crashed = new Promise<void>((resolve) => {
    tellCrash = resolve;
  });
  const client = board.plane.clientFor(component.account);
  const counted =
    <A extends readonly unknown[], R>(verb: string, call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      if (writes.length >= after) return NEVER;
      const [type, object] = args as readonly unknown[] as readonly [
        { resource?: string } | string,
        { name?: string; metadata?: { name?: string } } | undefined,
      ];
      const isEvent = typeof type === 'object' && type.resource === 'events';
      const isRead = verb === 'raw' && args[0] === 'GET';
      if (isEvent || isRead) return call(...args);
      const what =
        typeof type === 'string' ? `${type} ${args[1]}` : `${type.resource} ${object?.metadata?.name ?? object?.name}`;
      writes.push(`${verb} ${what}`);
      const isLast = writes.length >= after;
      try {
        return await call(...args);
      } finally {
        if (isLast) {
          own.abort(new Error('crashed'));
          tellCrash();
        }
      }
    };
  const watched: Client = {
    ...client,
    create: counted('create', client.create.bind(client)) as Client['create'],
    update: counted('update', client.update.bind(client)) as Client['update'],
    patch: counted('patch', client.patch.bind(client)) as Client['patch'],
    delete: counted('delete', client.delete.bind(client)) as Client['delete'],
    raw: counted('raw', client.raw.bind(client)) as Client['raw'],
  };
  const running = runComponent({
    component,
    client: watched,
    facts: { rootCa: '', ...facts },
    clock: promptClock,
    log: silentLogger,
    signal: own.signal,
  }).catch(() => {});
  return {
    crashed,
    writes,
    async stop() {
      own.abort(new Error('stopped'));
      // A pass that was cut off in a call never ends: it is left behind, as in a process that is gone.
      if (writes.length < after) await running;
    },
  };
}

/**
 * Runs a component until its `after`th write kills it or `done` resolves, then another one until `done`. True when the first
 * was done before it was to be killed.
 */
export async function crashOnce(
  start: (after: number) => CrashingComponent,
  after: number,
  done: () => Promise<unknown>,
): Promise<boolean> {
  const first = start(after);
  // Asked once: what a second one asks for may have passed when the first looks again.
  const finished = done();
  let outcome: string;
  try {
    outcome = await Promise.race([first.crashed.then(() => 'crashed'), finished.then(() => 'done')]);
  } finally {
    await first.stop();
  }
  if (outcome === 'done') return true;
  const second = start(Number.POSITIVE_INFINITY);
  try {
    await finished;
  } catch (error) {
    throw new Error(`after ${first.writes.join('; ')}: ${(error as Error).message}`);
  } finally {
    await second.stop();
  }
  return false;
}
