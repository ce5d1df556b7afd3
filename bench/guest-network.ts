/**
 * Bytes a second from one guest to another on the same node, next to the same guest's user-mode path to this host. Both end
 * in a program that throws them away. Needs QEMU, a tiny guest built before (tools/guest) and an address of this host beside
 * its loopback, which guests do not reach.
 */
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { kernelSpec, startBoard } from '../test/node/board.ts';
import { type Shell, shell } from '../test/node/shell.ts';
import { whatIsMissing } from './boot.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';

const RUNS = 5;
const MIB = 48;
const PORT = 9002;

export async function benchGuestNetwork({ say }: BenchContext): Promise<Outcome> {
  const missing = whatIsMissing();
  if (missing !== undefined) return { state: 'skipped', reason: missing };
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  if (outside === undefined) return { state: 'skipped', reason: 'this host has no address but its loopback' };
  const board = await startBoard();
  const sink = createServer((socket) => void socket.on('error', () => {}).resume());
  try {
    await new Promise<void>((done) => sink.listen(0, outside, done));
    const { port } = sink.address() as { port: number };
    const guest = async (name: string): Promise<{ readonly sh: Shell; readonly address: string }> => {
      const spec = kernelSpec({ terminationGracePeriodSeconds: 0 });
      const devices = { interfaces: [{ name: 'default', masquerade: {} }] };
      await board.createVmi(name, { ...spec, domain: { ...spec.domain, devices } });
      const vmi = await board.until(name, 'running', ({ status }) => status?.phase === 'Running');
      return { sh: await shell(board, name, true), address: vmi.status?.interfaces?.[0]?.ipAddress ?? '' };
    };
    const from = await guest('from');
    const to = await guest('to');
    const rate = async (at: string): Promise<number> => {
      const said = await from.sh.run(`(time dd if=/dev/zero bs=64k count=${MIB * 16} | nc ${at}) 2>&1`);
      const [, minutes = '', rest = ''] = /real\s+(\d+)m\s*([\d.]+)s/.exec(said) ?? [];
      return MIB / (Number(minutes) * 60 + Number(rest));
    };
    const runs = new Runs();
    for (let run = 0; run < RUNS; run++) {
      const toHost = await rate(`${outside} ${port}`);
      await to.sh.run(`tail -f /dev/null | nc -l -p ${PORT} > /dev/null &`);
      const toGuest = await rate(`${to.address} ${PORT}`);
      await to.sh.run('killall tail nc');
      runs.add('guest-network.to-host', 'MiB/s', { value: toHost });
      runs.add('guest-network.to-guest', 'MiB/s', { value: toGuest });
      runs.add('guest-network.ratio', '%', { value: (100 * toGuest) / toHost });
      say(`run ${run + 1} of ${RUNS} done`);
    }
    return { state: 'measured', figures: runs.figures() };
  } finally {
    sink.close();
    await board.close();
  }
}
