/** A board for VirtualMachines with real guests, and what tests do with those. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import {
  type RunStrategy,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect, kernelSpec, NAMESPACE, startBoard } from './board.ts';

export let board: Board;

/** Starts the board before the tests of the file that calls this, and ends it after them. */
export function useBoard(): void {
  before(async () => {
    board = await startBoard();
  });
  after(() => board.close());
}

export const keyOf = (name: string): { namespace: string; name: string } => ({ namespace: NAMESPACE, name });
export const vmOf = (name: string): Promise<VirtualMachine> => board.client.get(VIRTUAL_MACHINES, keyOf(name));
export const createVm = (name: string, runStrategy: RunStrategy, spec = kernelSpec()): Promise<VirtualMachine> =>
  board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: { runStrategy, template: { metadata: {}, spec } },
  });
export const setStrategy = (name: string, runStrategy: string): Promise<VirtualMachine> =>
  board.client.patch(VIRTUAL_MACHINES, keyOf(name), { type: 'merge', body: { spec: { runStrategy } } });

/** What `virtctl` asks for: the requests as the subresources write them. */
export const request = (name: string, requests: object[]): Promise<VirtualMachine> =>
  board.client.patch(
    VIRTUAL_MACHINES,
    keyOf(name),
    { type: 'merge', body: { status: { stateChangeRequests: requests } } },
    { subresource: 'status' },
  );

export const shows = (name: string, printed: string): Promise<unknown> =>
  eventually(`${name} ${printed}`, async () => (await vmOf(name)).status?.printableStatus === printed);
export const runs = (name: string, not = ''): Promise<VirtualMachineInstance> =>
  board.until(name, 'running', (vmi) => vmi.status?.phase === 'Running' && vmi.metadata.uid !== not);
export const remove = async (name: string): Promise<void> => {
  await board.client.delete(VIRTUAL_MACHINES, keyOf(name));
  await eventually(`${name} gone`, async () => (await vmOf(name).catch(() => undefined)) === undefined);
};
export const podOf = async (vmi: VirtualMachineInstance): Promise<Pod> => {
  const pod = (await board.pods()).find((p) => p.metadata.labels?.['kubevirt.io/created-by'] === vmi.metadata.uid);
  assert.ok(pod);
  return pod;
};
/** Logs in on the serial console and types a line. */
export async function inConsole(name: string, line: string): Promise<void> {
  const socket = await board.connect(`${name}/console?backlog=true`);
  const seen = collect(socket);
  await seen.has('login:');
  socket.send(new TextEncoder().encode('root\n'));
  await seen.has(':~# ');
  socket.send(new TextEncoder().encode(`${line}\n`));
  await seen.has(line);
}
export const isReady = (object: { status?: { conditions?: readonly { type: string; status: string }[] } }): boolean =>
  object.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') ?? false;
