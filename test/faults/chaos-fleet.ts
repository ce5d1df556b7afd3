/** A server with nodes of its own, and agents that joined it as processes of their own: all can be killed and started again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import type { Client } from '../../packages/client/src/client.ts';
import { runProgram } from '../cli/workspace.ts';
import { adminOf, type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { SOURCES_MAIN as main } from '../testkit/program.ts';
import { importTinyGuest } from '../testkit/tiny-guest.ts';

/** One process of the fleet. */
export interface FleetProcess {
  readonly name: string;
  /** Of the present run. */
  readonly pid: number;
}

export interface Fleet {
  /** The server's data directory. */
  readonly data: string;
  readonly server: FleetProcess;
  readonly processes: readonly FleetProcess[];
  /** The admin's client of the server that runs now. */
  client(): Client;
  /** Starts the server, with three nodes less those that join. */
  start(joining: readonly string[]): Promise<void>;
  /** Kills a process, if it still runs, and starts it again. */
  crash(one: FleetProcess): Promise<void>;
  /** What the processes wrote to standard error lately. */
  said(): string;
  /** Kills all. */
  end(): Promise<void>;
}

interface Running extends FleetProcess {
  pid: number;
  /** What the present run wrote. */
  said(): string;
  kill(): Promise<void>;
  start(): Promise<void>;
}

const NODES = 3;
const MAX_SAID = 20_000;
/** Ends of processes that are remembered. */
const MAX_ENDS = 6;
const nodeArguments = ['--import', resolve(import.meta.dirname, 'migration-failpoints.ts')];

/** Everything goes under `dir`. */
export function createFleet(dir: string): Fleet {
  const data = join(dir, 'data');
  const env = { CORACLE_CHAOS_DIR: dir };
  const words: string[] = [];
  let plane: ControlPlaneProcess | undefined;
  let admin: ReturnType<typeof adminOf> | undefined;
  let own = NODES;
  const server: Running = {
    name: 'server',
    pid: 0,
    said: () => `server: ${plane?.stderr().slice(-MAX_SAID) ?? ''}`,
    async kill() {
      await plane?.kill('SIGKILL');
      words.push(server.said());
      await admin?.close();
    },
    async start() {
      plane = await startProcess(data, { nodes: own, ...(plane && { port: plane.port }), env, nodeArguments, main });
      server.pid = plane.pid;
      admin = adminOf(data);
    },
  };
  const processes: Running[] = [server];

  const agent = (name: string, how: readonly string[]): Running => {
    let child: ChildProcess | undefined;
    let output = '';
    // What it takes to join is kept by the agent itself.
    let first = [...how, '--name', name];
    const running: Running = {
      name,
      pid: 0,
      said: () => `${name}: ${output}`,
      async kill() {
        if (!child || child.exitCode !== null || child.signalCode !== null) return;
        const gone = once(child, 'exit');
        child.kill('SIGKILL');
        await gone;
      },
      start: () =>
        new Promise((ready, fail) => {
          const argv = [...nodeArguments, main, 'node', 'join', '--data-dir', join(dir, name), ...first];
          child = spawn(process.execPath, argv, {
            env: { ...process.env, ...env },
            stdio: ['ignore', 'pipe', 'pipe'],
          });
          output = '';
          for (const stream of [child.stdout, child.stderr])
            stream?.on('data', (chunk: Buffer) => {
              output = (output + chunk.toString()).slice(-MAX_SAID);
              if (!/^node .* is ready/m.test(output)) return;
              first = [];
              ready();
            });
          running.pid = child.pid ?? 0;
          child.once('exit', () => {
            words.push(running.said());
            fail(new Error(`${name} ended: ${output}`));
          });
        }),
    };
    return running;
  };

  return {
    data,
    server,
    processes,
    client() {
      if (!admin) throw new Error('the server was not started');
      return admin.client;
    },
    async start(joining) {
      own = NODES - joining.length;
      await importTinyGuest(data);
      await server.start();
      if (joining.length === 0) return;
      const made = await runProgram(process.execPath, [main, 'token', 'create', '--data-dir', data, '--json']);
      const { token = '', server: url = '', caHash = '' } = JSON.parse(made.stdout) as Record<string, string>;
      for (const name of joining) {
        await importTinyGuest(join(dir, name));
        const edge = agent(name, ['--server', url, '--token', token, '--ca-hash', caHash]);
        processes.push(edge);
        await edge.start();
      }
    },
    async crash(one) {
      const running = processes.find(({ name }) => name === one.name);
      await running?.kill();
      words.splice(0, words.length - MAX_ENDS);
      await running?.start();
    },
    said: () => [...words, ...processes.map((one) => one.said())].join('\n--- killed, or now ---\n'),
    async end() {
      for (const one of processes) await one.kill();
      await admin?.close();
    },
  };
}
