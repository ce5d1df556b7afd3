/** `coracle start`, `stop`, `restart`, `pause` and `unpause`: what virtctl's commands of these names ask for. */

import { type CommandContext, CommandError, numberFlag, textFlag, UsageError } from '../command.ts';
import { machineWords } from '../machine-target.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { type MachineCall, needInstance, textOf, withMachine } from './find-machine.ts';
import { awaitGone, followStart } from './follow-start.ts';

const DEFAULT_TIMEOUT_S = 300;
const LONGEST_TIMEOUT_S = 86_400;
/** Names in one call. */
const MOST_MACHINES = 100;

type Action = 'start' | 'stop' | 'restart' | 'pause' | 'unpause';

const DONE: Readonly<Record<Action, { readonly asked: string; readonly reached: string }>> = {
  start: { asked: 'starts', reached: 'runs' },
  stop: { asked: 'stops', reached: 'is stopped' },
  restart: { asked: 'restarts', reached: 'runs' },
  pause: { asked: 'is paused', reached: 'is paused' },
  unpause: { asked: 'goes on', reached: 'goes on' },
};

/** The command of that name. Exit code 0 when every machine was asked, or with `--wait` is there. */
export const power =
  (action: Action) =>
  async (context: CommandContext): Promise<number> => {
    const words = machineWords(context.words);
    if (words.length === 0 || words.length > MOST_MACHINES)
      throw new UsageError(`${action} takes machines (see: coracle ${action} --help)`);
    waitOf(context);
    for (const word of words) await withMachine(context, word, (call) => act(context, call, action));
    return 0;
  };

async function act(context: CommandContext, call: MachineCall, action: Action): Promise<void> {
  const { flags, print, note, progress, signal } = context;
  const { key, client, vmi } = call;
  const body = bodyOf(context, action);
  if (isExplained(context)) {
    equivalent(context, explained(call, action, body));
    return;
  }
  const isInstance = action === 'pause' || action === 'unpause';
  if (isInstance || action === 'restart') needInstance(call);
  const kind = isInstance ? 'virtualmachineinstances' : 'virtualmachines';
  const at = `namespaces/${encodeURIComponent(key.namespace)}/${kind}/${encodeURIComponent(key.name)}/${action}`;
  await client.raw('PUT', `/apis/subresources.kubevirt.io/v1/${at}`, { body, signal }).catch((error: unknown) => {
    const [, why] = /^Operation cannot be fulfilled on \S+ "\S+": (.*)$/.exec((error as Error).message) ?? [];
    throw why === undefined ? error : new CommandError(`${textOf(key)}: ${why}`);
  });
  const wait = flags['wait'] === true && !isInstance;
  if (wait) {
    const seconds = waitOf(context);
    if (action !== 'start') await awaitGone({ client, key, signal, note: progress }, { vmi, seconds, action });
    if (action !== 'stop') await followStart({ client, key, signal, note }, { seconds, onPhase: () => {} });
  }
  if (flags['json'] === true) print(JSON.stringify({ namespace: key.namespace, name: key.name, action }));
  else print(`${textOf(key)} ${wait ? DONE[action].reached : DONE[action].asked}`);
}

/** Seconds that `--wait` may take. Throws UsageError. */
const waitOf = ({ flags }: CommandContext): number =>
  numberFlag(flags, 'timeout', { min: 1, max: LONGEST_TIMEOUT_S, or: DEFAULT_TIMEOUT_S });

/** The options that the subresource takes. Throws UsageError. */
function bodyOf({ flags }: CommandContext, action: Action): Record<string, unknown> {
  const force = flags['force'] === true;
  const grace = textFlag(flags, 'grace-period');
  if (force && grace !== undefined)
    throw new UsageError('--force ends the guest at once: give no --grace-period with it');
  const seconds = force
    ? 0
    : grace === undefined
      ? undefined
      : numberFlag(flags, 'grace-period', { min: 0, max: 86_400, or: 0 });
  if (action === 'start') return flags['paused'] === true ? { paused: true } : {};
  if (action === 'stop') return seconds === undefined ? {} : { gracePeriod: seconds };
  if (action === 'restart') return force ? { gracePeriodSeconds: 0 } : {};
  return {};
}

function explained({ key }: MachineCall, action: Action, body: Record<string, unknown>): string[] {
  const kind = action === 'pause' || action === 'unpause' ? ['vm'] : [];
  const grace = body['gracePeriod'] ?? body['gracePeriodSeconds'];
  const flags = [
    ...(body['paused'] === true ? ['--paused'] : []),
    ...(grace === undefined ? [] : [...(grace === 0 ? ['--force'] : []), `--grace-period=${String(grace)}`]),
  ];
  return ['virtctl', action, ...kind, key.name, '-n', key.namespace, ...flags];
}
