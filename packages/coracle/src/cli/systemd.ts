/**
 * `coracle systemd`: a unit that starts with the host and, when the host goes down, gives its guests the time they need.
 * It is printed, not installed: where it goes and as whom it runs is the administrator's choice.
 */
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { nodeNames } from '../compose/agents.ts';
import { defaultDataDir } from '../config/data-dir.ts';
import { LAUNCHER_FILE } from '../config/program-files.ts';
import { type CommandContext, numberFlag, textFlag, UsageError } from './command.ts';

const DEFAULT_BUDGET_S = 240;
/** What is left of the budget for guests that could not be moved, when a drain has used its part. */
const SHUTDOWN_SHARE = 0.5;
/** After the commands have given up, systemd waits this much longer before it kills. */
const MARGIN_S = 10;

/** Prints the unit of `coracle up`, or of `coracle node join`. */
export async function systemd(context: CommandContext): Promise<number> {
  const { flags, environment, words } = context;
  const [what = 'up', ...more] = words;
  if (!['up', 'node'].includes(what) || more.length > 0) throw new UsageError('usage: coracle systemd [up | node]');
  const budget = numberFlag(flags, 'budget', { min: 30, max: 86_400, or: DEFAULT_BUDGET_S });
  const drains = flags['drain'] === true;
  const given = textFlag(flags, 'data-dir');
  const own = what === 'up' ? defaultDataDir(environment) : join(defaultDataDir(environment), 'node');
  const dir = resolve(given ?? own);
  if (what === 'up' && drains)
    throw new UsageError('--drain is for coracle systemd node: no guest migrates once its control plane has stopped');
  const address = readAddress(context, what);
  const call = (...words: readonly string[]): string[] => [LAUNCHER_FILE, ...words];
  const parts =
    what === 'up'
      ? {
          description: 'Coracle: control plane and virtual machines',
          start: call('up', '--data-dir', dir, '--no-merge-kubeconfig', ...address),
          // Guests are shut down, each within its own grace period; after a reboot their run strategies start them again.
          stop: [call('down', '--data-dir', dir, '--timeout', String(budget))],
        }
      : {
          description: 'Coracle: node agent and its virtual machines',
          start: call('node', 'join', '--data-dir', dir, '--stop-vms', ...address),
          stop: drains ? [call(...drainWords(context), '--timeout', String(Math.floor(budget * SHUTDOWN_SHARE)))] : [],
        };
  context.print(unit({ ...parts, budget }));
  return 0;
}

/** The flag by which that command is served elsewhere than on the loopback address, with its value. Throws UsageError. */
function readAddress({ flags }: CommandContext, what: string): readonly string[] {
  const [own, other] = what === 'up' ? ['bind-address', 'address'] : ['address', 'bind-address'];
  if (flags[other!] !== undefined) throw new UsageError(`--${other} is not for coracle systemd ${what}: say --${own}`);
  const value = textFlag(flags, own!);
  if (value === undefined) return [];
  if (isIP(value) === 0) throw new UsageError(`--${own} takes an IP address, not "${value}"`);
  return [`--${own}`, value];
}

/** The drain of the node by the user whom the flags name. Throws UsageError. */
function drainWords({ flags }: CommandContext): readonly string[] {
  const kubeconfig = textFlag(flags, 'kubeconfig');
  if (kubeconfig === undefined)
    throw new UsageError('--drain needs --kubeconfig FILE of a user who may cordon nodes and evict pods');
  return ['drain', textFlag(flags, 'name') ?? nodeNames(1)[0]!, '--kubeconfig', resolve(kubeconfig)];
}

function unit(parts: {
  readonly description: string;
  readonly start: readonly string[];
  readonly stop: readonly (readonly string[])[];
  readonly budget: number;
}): string {
  const command = (argv: readonly string[]): string => argv.map(quoted).join(' ');
  return [
    '[Unit]',
    `Description=${parts.description}`,
    'Wants=network-online.target',
    'After=network-online.target',
    '',
    '[Service]',
    'Type=exec',
    `ExecStart=${command(parts.start)}`,
    // The minus: what could not be moved or ended in time does not keep the rest from stopping.
    ...parts.stop.map((argv) => `ExecStop=-${command(argv)}`),
    `TimeoutStopSec=${parts.budget + MARGIN_S}`,
    '# Guests are processes of their own: only the main process is signalled, and a restart after a crash adopts them.',
    'KillMode=process',
    'Restart=on-failure',
    'RestartSec=2',
    '',
    '[Install]',
    'WantedBy=multi-user.target',
  ].join('\n');
}

/** As systemd reads it: quotes where needed; percent and dollar signs would mean something. */
function quoted(word: string): string {
  const text = word.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /[\s"'\\;]/.test(text) ? `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : text;
}
