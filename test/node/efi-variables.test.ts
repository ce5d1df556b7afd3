/** EFI variables of a real guest, written and read in the UEFI shell, last as long as their machine. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../src/api/kinds/kubevirt/kinds.ts';
import { whyNoFirmware } from '../testkit/tiny-guest.ts';
import { type Board, collect, eventually, NAMESPACE, startBoard } from './board.ts';

const skip = whyNoFirmware() ?? false;

let board: Board;
before(async () => {
  if (!skip) board = await startBoard();
});
after(() => board?.close());

/** In a namespace of its own: in that of the UEFI specification only its own names may be. */
const VARIABLE = 'CoracleTest -guid 11111111-2222-3333-4444-555555555555';

/** Runs a command in the UEFI shell, which a guest without disk and network comes to; returns what came since. */
async function inShell(name: string, command: string): Promise<string> {
  const socket = await board.connect(`${name}/console?backlog=true`);
  const seen = collect(socket);
  const type = (text: string): void => void socket.send(new TextEncoder().encode(text));
  await seen.has('Shell>');
  const before = seen.text().length;
  type(`${command}\r`);
  await eventually('the next prompt', () => seen.text().slice(before).includes('Shell>'));
  socket.close();
  // Without the colours.
  const [first = '', ...parts] = seen.text().slice(before).split('\x1b[');
  return first + parts.map((part) => part.replace(/^[0-9;=]*[A-Za-z]/, '')).join('');
}

test('EFI variables that shall last are there after a restart of the guest', { skip }, async () => {
  const firmware = { bootloader: { efi: { persistent: true, secureBoot: false } } };
  const spec = {
    terminationGracePeriodSeconds: 0,
    domain: { devices: { autoattachPodInterface: false }, memory: { guest: '256Mi' }, firmware },
  };
  const key = { namespace: NAMESPACE, name: 'variables' };
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: key,
    spec: { runStrategy: 'Always', template: { metadata: {}, spec } },
  } as never);
  const first = await board.until('variables', 'running', ({ status }) => status?.phase === 'Running');
  await inShell('variables', `setvar ${VARIABLE} -nv -bs =L"kept"`);
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, key);
  await board.until(
    'variables',
    'running again',
    ({ metadata, status }) => metadata.uid !== first.metadata.uid && status?.phase === 'Running',
  );
  assert.match(await inShell('variables', `setvar ${VARIABLE}`), /6B 00 65 00 70 00 74/i);
});
