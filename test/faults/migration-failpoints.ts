/**
 * Loaded into `coracle up` and `coracle node` before them (`--import`): kills the process, or one of the two QEMUs, at an exact step of a
 * migration's hand-over. The steps are recognised by what the agents do to the outside: records they rename into place, lines
 * they send to QEMU and to each other. Nothing in the product knows of it. It also gives each QEMU a second monitor,
 * `probe.sock` in the VM's directory, since the first one takes a single client.
 *
 * All data directories are under `CORACLE_CHAOS_DIR`; `arm-UID.json` there says where the migration of an instance is
 * struck (an `Armed`), once; each strike is a line in `strikes.jsonl`.
 */
import childProcess from 'node:child_process';
import { appendFileSync, readdirSync, readFileSync, readlinkSync, unlinkSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

/**
 * In the order of the hand-over (reliability.md 1.3; step 1 is seen from outside). `postcopy` and `feeding` are of post-copy
 * alone, whose `switchover` comes behind `feeding`.
 */
export const POINTS = [
  'hello',
  'spawned',
  'listening',
  'sending',
  'migrate',
  'postcopy',
  'switchover',
  'sent',
  'handing-over',
  'feeding',
  'cont',
  'handed-over',
  'left',
] as const;
export type Point = (typeof POINTS)[number];
export type Victim = 'process' | 'source' | 'target';

export interface Armed {
  readonly point: Point;
  readonly when: 'before' | 'after';
  /** Milliseconds after the step. */
  readonly delay: number;
  readonly victim: Victim;
  /** The node the instance is on before it moves. */
  readonly owner: string;
}

/** Where a strike at the migration of an instance is asked for. */
export const armFile = (dir: string, uid: string): string => join(dir, `arm-${uid}.json`);

export interface Strike {
  readonly point: Point;
  /** Milliseconds after the step; 0 before it, too. */
  readonly delay: number;
  readonly victim: Victim;
  /** Of the QEMU; 0 for the process. */
  readonly pid: number;
  /** Pid of the `coracle` at the step. */
  readonly agent: number;
  readonly uid: string;
  /** ms since the epoch. */
  readonly at: number;
}

export interface QemuProcess {
  readonly pid: number;
  readonly uid: string;
  readonly node: string;
}

/** QEMUs by the process table whose files are under `dir`. */
export function qemusUnder(dir: string): QemuProcess[] {
  const found: QemuProcess[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    let argv: string[];
    try {
      argv = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
    } catch {
      continue;
    }
    const pidFile = argv[argv.indexOf('-pidfile') + 1] ?? '';
    if (!pidFile.startsWith(dir)) continue;
    const directory = dirname(pidFile);
    found.push({ pid: Number(name), uid: basename(directory), node: basename(dirname(dirname(directory))) });
  }
  return found;
}

/** Commands to QEMU that are steps. */
const LINES: Readonly<Record<string, Point>> = {
  'migrate-incoming': 'listening',
  migrate: 'migrate',
  'migrate-start-postcopy': 'postcopy',
  'migrate-continue': 'switchover',
  cont: 'cont',
};

const chaosDir = process.env['CORACLE_CHAOS_DIR'];
if (chaosDir !== undefined && isMainThread && process.argv[1]?.endsWith('main.ts')) install(chaosDir);

function install(dir: string): void {
  const handing = new Set<string>();

  const armedAt = (point: Point, uid: string): Armed | undefined => {
    try {
      const armed = JSON.parse(readFileSync(armFile(dir, uid), 'utf8')) as Armed;
      return armed.point === point ? armed : undefined;
    } catch {
      return undefined;
    }
  };
  const strike = ({ point, when, delay, victim, owner }: Armed, uid: string): void => {
    const hit = qemusUnder(dir).find(
      (one) => one.uid === uid && (owner === one.node) === (victim === 'source') && victim !== 'process',
    );
    if (victim !== 'process' && !hit) return;
    try {
      unlinkSync(armFile(dir, uid));
    } catch {
      return;
    }
    const late = when === 'after' ? delay : 0;
    const records: Strike = { point, delay: late, victim, pid: hit?.pid ?? 0, agent: process.pid, uid, at: Date.now() };
    appendFileSync(join(dir, 'strikes.jsonl'), `${JSON.stringify(records)}\n`);
    process.kill(hit?.pid ?? process.pid, 'SIGKILL');
  };
  /** Strikes before or after `act`. */
  const around = <T>(point: Point, uid: string, act: () => T): T => {
    const armed = armedAt(point, uid);
    if (armed?.when === 'before') strike(armed, uid);
    const result = act();
    if (armed?.when === 'after') {
      const after = (): void => {
        if (armed.delay === 0) strike(armed, uid);
        else setTimeout(() => strike(armed, uid), armed.delay);
      };
      if (result instanceof Promise) result.then(after, () => {});
      else after();
    }
    return result;
  };

  const rename = promises.rename;
  promises.rename = (from, to) => {
    const act = (): Promise<void> => rename(from, to);
    if (basename(String(to)) !== 'record.json') return act();
    const record = JSON.parse(readFileSync(String(from), 'utf8')) as {
      vmiUid: string;
      process?: object;
      migration?: { role: string; phase: string };
    };
    const { role, phase } = record.migration ?? {};
    if (role === 'target' && phase === 'receiving')
      return record.process ? around('spawned', record.vmiUid, act) : act();
    if (phase === 'handing-over') handing.add(record.vmiUid);
    const point = POINTS.find((one) => one === phase);
    return point ? around(point, record.vmiUid, act) : act();
  };

  const write = Socket.prototype.write as (this: Socket, ...args: unknown[]) => boolean;
  const uidOf = new WeakMap<Socket, string>();
  /** The step a line is, and of which instance. */
  const stepOf = (socket: Socket, line: unknown): { point: Point; uid: string } | undefined => {
    if (typeof line !== 'string') return undefined;
    if (line.startsWith('{"type":"hello"')) {
      const uid = /"vmiUid":"([0-9a-f-]{36})"/.exec(line)?.[1];
      return uid === undefined ? undefined : { point: 'hello', uid };
    }
    const uid = uidOf.get(socket);
    const command = /^\{"execute":"([a-z-]+)"/.exec(line)?.[1] ?? '';
    const point = LINES[command];
    return uid !== undefined && point && (point !== 'cont' || handing.has(uid)) ? { point, uid } : undefined;
  };
  Socket.prototype.write = function (this: Socket, ...args: unknown[]): boolean {
    const step = stepOf(this, args[0]);
    return step ? around(step.point, step.uid, () => write.apply(this, args)) : write.apply(this, args);
  } as typeof Socket.prototype.write;

  // A monitor is in the directory of its VM, whose name is the UID; a long path goes by way of an open directory.
  const connect = Socket.prototype.connect as (this: Socket, ...args: unknown[]) => Socket;
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
    const options = (Array.isArray(args[0]) ? args[0][0] : args[0]) as { path?: string } | undefined;
    if (options?.path?.endsWith('/qmp.sock')) {
      const directory = dirname(options.path);
      uidOf.set(this, basename(directory.startsWith('/proc/') ? readlinkSync(directory) : directory));
    }
    return connect.apply(this, args);
  } as typeof Socket.prototype.connect;

  const spawn = childProcess.spawn as (...args: unknown[]) => childProcess.ChildProcess;
  childProcess.spawn = ((tool: string, argv: string[], options: object) =>
    spawn(
      tool,
      /qemu-system/.test(tool) && argv.includes('-pidfile')
        ? [...argv, '-qmp', 'unix:probe.sock,server=on,wait=off']
        : argv,
      options,
    )) as typeof childProcess.spawn;
  syncBuiltinESMExports();
}
