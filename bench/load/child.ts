/** The bench's own child processes: TypeScript programs that talk over IPC and end with their parent. */
import { type ChildProcess, fork } from 'node:child_process';
import { resolve } from 'node:path';
import type { Load, PacedLoad, PacedResult, RequestLoad, RequestResult, WatchLoad, WatchResult } from './load.ts';

const bench = resolve(import.meta.dirname, '..');

/** Starts a program of this folder. It must exit when its IPC channel closes. */
export function startChild(program: string): ChildProcess {
  return fork(resolve(bench, program), [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
}

/** Ends a child and waits until it is gone. */
export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((done) => child.once('exit', () => done()));
  child.disconnect();
  const timer = setTimeout(() => child.kill('SIGKILL'), 2000);
  await gone;
  clearTimeout(timer);
}

/** The next message of a child; rejects when it ends before. */
export function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => reject(new Error(`a child of the bench ended with ${code}`));
    child.once('exit', onExit);
    child.once('message', (message) => {
      child.off('exit', onExit);
      resolve(message as T);
    });
  });
}

export interface Generator {
  run(load: RequestLoad): Promise<RequestResult>;
  run(load: WatchLoad): Promise<WatchResult>;
  run(load: PacedLoad): Promise<PacedResult>;
  stop(): Promise<void>;
}

/** A load generator in its own process. */
export function startGenerator(): Generator {
  const child = startChild('load/generator.ts');
  const run = async (load: Load): Promise<never> => {
    const answer = nextMessage<{ result: never } | { error: string }>(child);
    child.send(load);
    const outcome = await answer;
    if ('error' in outcome) throw new Error(`${load.kind}: ${outcome.error}`);
    return outcome.result;
  };
  return { run, stop: () => stopChild(child) };
}
