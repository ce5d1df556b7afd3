/** `coracle memory-dump get|download|remove NAME`: the memory of a guest as an ELF file that crash tools read. */
import { resolve } from 'node:path';
import { parseQuantity, quantityValue } from '@coracle/apimachinery/quantity/quantity';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import { VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/kinds';
import { systemClock } from '@coracle/runtime/clock/clock';
import { type CommandContext, CommandError, type FlagValues, numberFlag, textFlag, UsageError } from '../command.ts';
import { sizeText } from '../size-text.ts';
import { readSize } from './create-manifest.ts';
import { checkFree, downloadExport } from './download-export.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { type MachineCall, needInstance, needVm, textOf, withMachine } from './find-machine.ts';

const ACTIONS = ['get', 'download', 'remove'] as const;
type Action = (typeof ACTIONS)[number];
/** What `--create-claim` is without a size: it follows from the guest's memory. */
const SIZE_OF_MEMORY = 'memory';
const POLL_MS = 200;
/** Bytes of a claim besides the memory itself. */
const ROOM_FOR_HEADERS = 100 * 2 ** 20;
const DEFAULT_TIMEOUT_S = 600;
const LONGEST_TIMEOUT_S = 86_400;

/** `coracle memory-dump`. */
export async function memoryDump(context: CommandContext): Promise<number> {
  const { words, flags } = context;
  const [action, word, size, ...more] = words;
  if (
    !ACTIONS.includes(action as Action) ||
    word === undefined ||
    more.length > 0 ||
    (size !== undefined && !madeFor(flags))
  )
    throw new UsageError(`memory-dump takes ${ACTIONS.join(', ')} and a machine (see: coracle memory-dump --help)`);
  const output = textFlag(flags, 'output');
  if (action === 'download' && output === undefined) throw new UsageError('memory-dump download takes --output FILE');
  return withMachine(context, word, async (call) => {
    needVm(call);
    if (isExplained(context)) return equivalent(context, explained(context, call, action as Action));
    if (output !== undefined) await checkFree(resolve(output), flags['force'] === true);
    if (action === 'remove') {
      await ask(call, 'removememorydump', {}, context.signal);
      context.print(`${textOf(call.key)}: the claim of the memory dump is released`);
      return 0;
    }
    if (action === 'get') await dump(context, call, size);
    if (output !== undefined) await download(context, call, resolve(output));
    return 0;
  });
}

/** True for `--create-claim` without `=SIZE`: a size may then stand behind it as a word. */
const madeFor = (flags: FlagValues): boolean => flags['create-claim'] === SIZE_OF_MEMORY;

function explained({ flags }: CommandContext, { key }: MachineCall, action: Action): string[] {
  const option = (name: string): string[] => {
    const value = textFlag(flags, name);
    return value === undefined ? [] : [`--${name}=${value}`];
  };
  return [
    ...['virtctl', 'memory-dump', action, key.name, '-n', key.namespace],
    ...(action === 'get' ? option('claim-name') : []),
    ...(action === 'get' && flags['create-claim'] !== undefined ? ['--create-claim'] : []),
    ...(action === 'remove' ? [] : option('output')),
  ];
}

const ask = (
  { client, key }: MachineCall,
  subresource: string,
  body: object,
  signal: AbortSignal,
): Promise<unknown> => {
  const at = `namespaces/${encodeURIComponent(key.namespace)}/virtualmachines/${encodeURIComponent(key.name)}`;
  return client.raw('PUT', `/apis/subresources.kubevirt.io/v1/${at}/${subresource}`, { body, signal });
};

async function dump(context: CommandContext, call: MachineCall, word: string | undefined): Promise<void> {
  const { flags, print, signal } = context;
  needInstance(call);
  const claimName = claimNameOf(flags);
  const created = textFlag(flags, 'create-claim');
  if (claimName === undefined && needVm(call).status?.memoryDumpRequest === undefined)
    throw new UsageError(
      'memory-dump get takes a claim the first time: --claim-name NAME, with --create-claim to make it',
    );
  if (created !== undefined) {
    if (claimName === undefined) throw new UsageError('--create-claim takes --claim-name NAME');
    const metadata = { name: claimName, namespace: call.key.namespace };
    const size = madeFor(flags) ? word : created;
    const storage = size === undefined ? sizeForDump(call) : readSize(size, 'create-claim');
    const resources = { requests: { storage } };
    const spec = { accessModes: ['ReadWriteOnce'], resources };
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec };
    await call.client.create(PERSISTENT_VOLUME_CLAIMS, claim, { signal });
  }
  const before = (await requestOf(call, signal))?.startTimestamp;
  await ask(call, 'memorydump', claimName === undefined ? {} : { claimName }, signal);
  const { fileName } = await completed(context, call, before);
  print(`${textOf(call.key)}: memory dumped into ${fileName}`);
}

const claimNameOf = (flags: FlagValues): string | undefined =>
  textFlag(flags, 'claim-name') ?? textFlag(flags, 'claim');

/** The memory of the guest, and room for what describes it, as virtctl reckons it. */
function sizeForDump({ key, vmi }: MachineCall): string {
  const { guestAtBoot, guestCurrent } = vmi?.status?.memory ?? {};
  const memory = guestCurrent ?? guestAtBoot ?? vmi?.spec.domain.memory?.guest;
  if (memory === undefined)
    throw new CommandError(`${textOf(key)} does not say how much memory it has: --create-claim SIZE`);
  return String(quantityValue(parseQuantity(String(memory))) + ROOM_FOR_HEADERS);
}

const requestOf = async ({ client, key }: MachineCall, signal: AbortSignal) =>
  (await client.get(VIRTUAL_MACHINES, key, { signal })).status?.memoryDumpRequest;

/** Waits for a dump other than that which began at `before`. Throws CommandError. */
async function completed({ flags, progress, signal }: CommandContext, call: MachineCall, before?: string) {
  const seconds = numberFlag(flags, 'timeout', { min: 1, max: LONGEST_TIMEOUT_S, or: DEFAULT_TIMEOUT_S });
  const begun = systemClock.monotonic();
  for (;;) {
    const request = await requestOf(call, signal);
    const isNew = before === undefined || request?.startTimestamp !== before;
    if (!request) throw new CommandError(`${textOf(call.key)} has no memory dump (coracle memory-dump get)`);
    if (isNew && request.phase === 'Failed') throw new CommandError(request.message ?? 'the memory dump failed');
    if (isNew && request.phase === 'Completed') return request;
    const waited = systemClock.monotonic() - begun;
    if (waited > seconds * 1000) throw new CommandError(`the memory dump is still ${request.phase}`);
    if (waited > 1000) progress(`memory dump: ${request.phase}`);
    await systemClock.sleep(POLL_MS, signal);
  }
}

/** The ELF file itself, out of the directory of its claim. */
async function download(context: CommandContext, call: MachineCall, file: string): Promise<void> {
  const { claimName, fileName } = await completed(context, call);
  const request = {
    namespace: call.key.namespace,
    source: { apiGroup: '', kind: 'PersistentVolumeClaim', name: claimName },
    seconds: DEFAULT_TIMEOUT_S,
  };
  const { bytes } = await downloadExport(context, call.client, request, ([volume]) => {
    const directory = volume?.formats?.find(({ format }) => format === 'dir')?.url;
    if (directory === undefined) throw new CommandError(`claim ${claimName} holds a disk, and no files`);
    return { url: `${directory}${encodeURIComponent(fileName ?? '')}`, isPacked: false, file };
  });
  context.print(`${file} is there, ${sizeText(bytes)}`);
}
