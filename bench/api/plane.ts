/** A control plane under measurement: its own process, its data directory, and what the generator needs to reach it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { adminOf, type ControlPlaneProcess, startProcess } from '../../test/testkit/control-plane-process.ts';
import type { Endpoint } from '../load/load.ts';

export interface MeasuredPlane {
  readonly process: ControlPlaneProcess;
  readonly dir: string;
  /** Milliseconds from the start of the program to its ready line. */
  readonly readyMs: number;
}

export const newDataDir = (): string => mkdtempSync(join(tmpdir(), 'coracle-bench-'));
export const removeDataDir = (dir: string): void => rmSync(dir, { recursive: true, force: true });

/** What the `coracle` launcher gives the program beside its arguments of Node. */
export const LAUNCHER = {
  NODE_COMPILE_CACHE: join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'coracle', 'compile'),
  MALLOC_ARENA_MAX: '2',
};

/** Starts a control plane on a data directory, as the launcher would. */
export async function startPlane(
  dir: string,
  options: {
    readonly nodes?: number;
    readonly controllers?: string;
    /** Main file and compile cache of a build, instead of the sources'. */
    readonly built?: { readonly main: string; readonly cache: string };
    /** Where it finds programs. */
    readonly path?: string;
  } = {},
): Promise<MeasuredPlane> {
  const { built, path, ...rest } = options;
  const env = {
    ...LAUNCHER,
    ...(built && { NODE_COMPILE_CACHE: built.cache }),
    ...(path !== undefined && { PATH: path }),
  };
  const began = performance.now();
  const started = await startProcess(dir, { ...rest, env, ...(built && { main: built.main }) });
  return { process: started, dir, readyMs: performance.now() - began };
}

/** The keys of a data directory: the server's own pair for the plain server, the admin's for clients. */
export function keysOf(dir: string): {
  readonly ca: string;
  readonly server: { readonly certificate: string; readonly key: string };
  readonly admin: { readonly certificate: string; readonly key: string };
} {
  const read = (name: string): string => readFileSync(join(dir, 'pki', name), 'utf8');
  const pair = (name: string) => ({ certificate: read(`${name}.crt`), key: read(`${name}.key`) });
  return { ca: read('ca.crt'), server: pair('server'), admin: pair('admin') };
}

export function endpointOf(dir: string, port: number): Endpoint {
  const { ca, admin } = keysOf(dir);
  return { host: '127.0.0.1', port, ca, ...admin };
}

/** Answers so far by status code, from the server's own counters. */
export async function answersByCode(dir: string): Promise<ReadonlyMap<string, number>> {
  const admin = adminOf(dir);
  try {
    const text = String(await admin.client.raw('GET', '/metrics'));
    const counts = new Map<string, number>();
    for (const [, code, value] of text.matchAll(/^apiserver_request_total\{.*code="(\d+)".*\} (\d+)$/gm))
      counts.set(code!, (counts.get(code!) ?? 0) + Number(value));
    return counts;
  } finally {
    await admin.close();
  }
}
