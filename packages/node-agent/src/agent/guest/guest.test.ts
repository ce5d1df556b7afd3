import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../../../../test/testkit/eventually.ts';
import type { MachinePlan } from '../../../../kubevirt/src/rules/machine/machine-plan.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { VM_FILES } from '../../qemu/argv.ts';
import { QmpError } from '../../qmp/qmp-connection.ts';
import { type GuestOptions, openGuest } from './guest.ts';

test('a command to a guest without a connection is refused by its promise', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-guest-'));
  const guest = openGuest({
    directory,
    plan: { uuid: '', interfaces: [], graphics: false } as unknown as MachinePlan,
    address: '127.0.0.1',
    identity: {} as GuestOptions['identity'],
    exited: new Promise(() => {}),
    clock: systemClock,
    log: silentLogger,
    signal: new AbortController().signal,
    onChange: () => {},
  });
  try {
    // Nothing is thrown before there is a promise to catch it from.
    const failure = await guest
      .qmp()
      .execute('query-status')
      .catch((error: unknown) => error);
    assert.ok(failure instanceof QmpError);
    assert.equal(failure.failure, 'closed');
    assert.match(failure.message, /^no connection to QEMU/);
  } finally {
    guest.close();
    await rm(directory, { recursive: true });
  }
});

// S-1524: A guest with an agent has the time of its host again once it goes on after a pause, or on another node.
test('a guest that goes on is given the time by its agent, also by one that is connected only after a move', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-guest-'));
  const life = new AbortController();
  const times: number[] = [];
  let open = false;
  let qemu: Socket | undefined;
  const emit = (event: string, data = {}): void =>
    void qemu?.write(`${JSON.stringify({ event, data, timestamp: {} })}\n`);
  const listen = async (file: string, begin: (socket: Socket) => void, answer: (asked: Asked) => object) => {
    const server = createServer((socket) => {
      begin(socket.on('error', () => {}));
      const onLine = (line: string): void => {
        if (line.includes('{')) socket.write(`${JSON.stringify(answer(JSON.parse(line.slice(line.indexOf('{')))))}\n`);
      };
      socket.on('data', (bytes) => bytes.toString('latin1').split('\n').forEach(onLine));
    });
    await new Promise<void>((resolve) => server.listen(join(directory, file), resolve));
    t.after(() => server.close());
  };
  const begin = (socket: Socket): void => {
    qemu = socket;
    socket.write('{"QMP":{"version":{},"capabilities":[]}}\n');
  };
  await listen(VM_FILES.qmp, begin, ({ execute, id }) => {
    if (execute === 'query-uuid') return { return: { UUID: 'u' }, id };
    if (execute === 'query-status') return { return: { status: 'running' }, id };
    return { return: execute === 'query-chardev' ? [{ label: 'agent0', 'frontend-open': open }] : {}, id };
  });
  await listen(
    VM_FILES.guestAgent,
    () => {},
    ({ execute, arguments: args }) => {
      if (execute === 'guest-sync-delimited') return { return: args?.['id'] };
      if (execute !== 'guest-set-time') return { error: { class: 'GenericError', desc: 'no' } };
      times.push(Number(args?.['time']));
      return { return: {} };
    },
  );
  const guest = openGuest({
    directory,
    plan: { uuid: 'u', interfaces: [], graphics: false } as unknown as MachinePlan,
    address: '127.0.0.1',
    identity: {} as GuestOptions['identity'],
    exited: new Promise(() => {}),
    clock: systemClock,
    log: silentLogger,
    signal: life.signal,
    onChange: () => {},
  });
  t.after(async () => {
    guest.close();
    life.abort();
    qemu?.destroy();
    await rm(directory, { recursive: true });
  });
  await guest.ready(5000);
  emit('RESUME');
  open = true;
  emit('VSERPORT_CHANGE', { id: 'agent-port0', open });
  await eventually('the time after a move', () => times.length === 1);
  emit('RESUME');
  await eventually('the time after a pause', () => times.length === 2);
  assert.ok(times.every((time) => Math.abs(time / 1e6 - Date.now()) < 60_000));
});

interface Asked {
  readonly execute: string;
  readonly id?: number;
  readonly arguments?: Readonly<Record<string, unknown>>;
}
