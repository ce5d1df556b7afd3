/**
 * A QEMU that only pretends: agents start it as they start QEMU, it answers on their sockets, and no guest runs. What they
 * ask of an empty machine is asked of the real one. One process of this kind sleeps for each guest; the sockets of all are here.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Says where it was started and with which pid, then sleeps under that pid. */
const scriptOf = (real: string, pipe: string): string => `#!/bin/sh
case "$*" in *guest=*) ;; *) exec ${real} "$@" ;; esac
while [ "$1" != -uuid ]; do shift; done
echo $$ > qemu.pid
echo "$$ $2 $PWD" > ${pipe}
exec sleep 1000000
`;

const ANSWERS: Readonly<Record<string, unknown>> = {
  'query-chardev': [],
  'qom-list': [],
  'query-block': [],
  'query-named-block-nodes': [],
  'query-block-jobs': [],
  'query-jobs': [],
  'query-memory-devices': [],
  'query-hotpluggable-cpus': [],
  'human-monitor-command': '',
};

export interface FakeHypervisor {
  /** To stand before others in PATH. */
  readonly bin: string;
  /** Pids of what stands for guests. */
  guests(): readonly number[];
  close(): void;
}

/** Makes `qemu-system-x86_64` in a directory. `real`: path of the one that is pretended. */
export function startFakeHypervisor(directory: string, real: string): FakeHypervisor {
  const bin = join(directory, 'bin');
  const pipe = join(directory, 'started');
  mkdirSync(bin, { recursive: true });
  const program = join(bin, 'qemu-system-x86_64');
  writeFileSync(program, scriptOf(real, pipe));
  chmodSync(program, 0o755);
  const servers: Server[] = [];
  const guests: number[] = [];
  const listen = (path: string, serve: (socket: Socket) => void): void => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      serve(socket);
    });
    server.listen(path);
    servers.push(server);
  };
  // It holds the pipe open for writing too, so that it never ends.
  const reader = spawn('sh', ['-c', `mkfifo "$1" && exec cat <> "$1"`, 'sh', pipe], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  createInterface({ input: reader.stdout }).on('line', (line) => {
    const [pid = '', uuid = '', place = ''] = line.split(' ');
    guests.push(Number(pid));
    listen(join(place, 'qmp.sock'), serveQmp(uuid));
    for (const silent of ['serial.sock', 'agent.sock']) listen(join(place, silent), (socket) => void socket.resume());
  });
  return {
    bin,
    guests: () => guests,
    close() {
      reader.kill('SIGKILL');
      for (const server of servers) server.close();
    },
  };
}

/** Of one guest: it is stopped at first, and runs when it is sent on. */
function serveQmp(uuid: string): (socket: Socket) => void {
  let running = false;
  return (socket) => {
    const say = (message: object): void => void socket.write(`${JSON.stringify(message)}\r\n`);
    say({ QMP: { version: { qemu: { major: 7, minor: 2, micro: 0 }, package: '' }, capabilities: ['oob'] } });
    createInterface({ input: socket }).on('line', (line) => {
      const { execute, id } = JSON.parse(line) as { execute: string; id: unknown };
      if (execute === 'cont') running = true;
      if (execute === 'stop') running = false;
      const status = { running, singlestep: false, status: running ? 'running' : 'prelaunch' };
      const answers: Readonly<Record<string, unknown>> = {
        ...ANSWERS,
        'query-status': status,
        'query-uuid': { UUID: uuid },
      };
      say({ return: answers[execute] ?? {}, id });
      const timestamp = { seconds: 0, microseconds: 0 };
      if (execute === 'cont') say({ event: 'RESUME', timestamp });
      if (execute === 'quit') socket.end();
    });
  };
}
