/** `coracle drain NODE`: what a drain will do to each machine, or the drain itself, reported until it is done. */

import { namespacedType } from '@coracle/apimachinery/meta/gvk';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Eviction, Pod } from '@coracle/apimachinery/types/types';
import { isApiError, isNotFound, orAbsent, orExpected } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  KUBEVIRTS,
  MIGRATION_POLICIES,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '@coracle/kubevirt/kinds/kinds';
import { type DrainRow, drainPlan } from '@coracle/kubevirt/rules/drain/drain-plan';
import { clusterConfigOf } from '@coracle/kubevirt/rules/machine-defaults/cluster-config';
import { migrationSettings } from '@coracle/kubevirt/rules/migration-policy/migration-settings';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../config/cluster.ts';
import { type CommandContext, CommandError, numberFlag, UsageError } from './command.ts';
import { createDrainDisplay, drainTable, rowJson } from './drain-table.ts';
import { equivalent, isExplained } from './machines/equivalent.ts';

const EVICTIONS = namespacedType<Eviction>('v1', 'pods', 'Eviction');
/** As kubectl drain: a refused eviction is tried again after this long. */
const RETRY_MS = 5_000;
const POLL_MS = 1_000;
const DEFAULT_TIMEOUT_S = 3600;

/** Exit code 0 when the node is empty, or (`--what-if`) would be; 1 when something holds it. */
export async function drain(context: CommandContext): Promise<number> {
  const { flags, words } = context;
  const [word, ...more] = words;
  if (word === undefined || more.length > 0) throw new UsageError('usage: coracle drain NODE');
  const nodeName = nodeNamed(word);
  const timeout = numberFlag(flags, 'timeout', { min: 1, max: 604_800, or: DEFAULT_TIMEOUT_S });
  if (isExplained(context)) {
    const allPods = ['--ignore-daemonsets', '--delete-emptydir-data', '--force'];
    return equivalent(context, ['kubectl', 'drain', nodeName, ...allPods, `--timeout=${timeout}s`]);
  }
  await using cluster = await clusterFrom(context);
  const { client } = cluster;
  if (!(await orAbsent(client.get(NODES, { namespace: '', name: nodeName }))))
    throw new CommandError(`there is no node "${nodeName}" (kubectl get nodes)`);
  return flags['what-if'] === true
    ? await rehearse(context, { client, nodeName })
    : await run(context, { client, nodeName, timeout });
}

/** `NODE`, `node/NODE` or `nodes/NODE`. Throws UsageError for what is no node. */
function nodeNamed(word: string): string {
  const [kind, name, ...more] = word.split('/');
  if (name === undefined) return word;
  if (['node', 'nodes', 'no'].includes(kind!) && name !== '' && more.length === 0) return name;
  if (/^(vm|vmi|virtualmachine|virtualmachineinstance)s?$/.test(kind!))
    throw new UsageError(
      `drain empties a node, and ${word} is a machine; one machine is moved by: virtctl migrate NAME`,
    );
  throw new UsageError(`drain takes NODE or node/NODE, not "${word}"`);
}

/** One row a Pod, from what the API shows now. */
async function planOf(client: Client, nodeName: string): Promise<DrainRow[]> {
  const [nodes, pods, instances, machines, budgets, namespaces, kubevirts, policies] = await Promise.all([
    client.list(NODES),
    client.list(PODS),
    client.list(VIRTUAL_MACHINE_INSTANCES),
    client.list(VIRTUAL_MACHINES),
    client.list(POD_DISRUPTION_BUDGETS),
    client.list(NAMESPACES),
    client.list(KUBEVIRTS),
    // They only make the estimate better: who may drain need not see them.
    orExpected(client.list(MIGRATION_POLICIES), isNotFound, (error) => isApiError(error, 403)),
  ]);
  const labels = new Map(namespaces.items.map(({ metadata }) => [metadata.name, metadata.labels]));
  const kubevirt = kubevirts.items[0];
  return drainPlan({
    nodeName,
    nodes: nodes.items,
    pods: pods.items,
    instances: instances.items,
    machines: machines.items,
    budgets: budgets.items,
    clusterStrategy: clusterConfigOf(kubevirt).evictionStrategy,
    migrations: migrationSettings(kubevirt),
    policies: policies?.items ?? [],
    namespaceLabels: (name) => labels.get(name),
    ...(kubevirt && { nodeSelectors: kubevirt.spec?.configuration?.developerConfiguration?.nodeSelectors ?? {} }),
  });
}

/** What holds a row so that it never leaves by itself. A machine that merely cannot start again yet has left. */
const holdsDrain = ({ outcome, blocker }: DrainRow): boolean =>
  outcome === 'waits' || outcome === 'blocked' || (outcome === 'evicted' && blocker !== undefined);

async function rehearse(
  { flags, print }: CommandContext,
  { client, nodeName }: { readonly client: Client; readonly nodeName: string },
): Promise<number> {
  const planned = (await planOf(client, nodeName)).filter(({ outcome }) => outcome !== 'ignored');
  // The server is asked too, without consequence: other webhooks and budgets may have a say that no rule here knows.
  const rows = await Promise.all(
    planned.map(async (row): Promise<DrainRow> => {
      if (row.blocker !== undefined || !['restarts', 'stops', 'evicted'].includes(row.outcome)) return row;
      const answer = await evict(client, row, { dryRun: true });
      return answer.type === 'refused'
        ? { ...row, outcome: 'blocked', target: undefined, blocker: answer.message }
        : row;
    }),
  );
  const held = rows.filter(holdsDrain);
  if (flags['json'] === true)
    print(JSON.stringify({ node: nodeName, wouldEmpty: held.length === 0, pods: rows.map(rowJson) }));
  else if (rows.length === 0) print(`node ${nodeName} is empty`);
  else {
    print(drainTable(rows.map((row) => ({ row, state: '' }))));
    print(held.length === 0 ? `node ${nodeName} would be emptied` : `${held.length} of ${rows.length} would stay`);
  }
  return held.length === 0 ? 0 : 1;
}

type Answer = { readonly type: 'granted' | 'gone' } | { readonly type: 'refused'; readonly message: string };

async function evict(client: Client, { namespace, pod: name }: DrainRow, { dryRun = false } = {}): Promise<Answer> {
  const body: Eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
  try {
    await client.create(EVICTIONS, body, { subresource: 'eviction', dryRun });
    return { type: 'granted' };
  } catch (error) {
    if (isNotFound(error)) return { type: 'gone' };
    if (!(error instanceof ApiError)) throw error;
    // 429: held. Anything else the server says (a webhook's refusal, more than one budget) is reported in the same place.
    const cause = error.status.details?.causes?.find(({ reason }) => reason === 'DisruptionBudget')?.message;
    return { type: 'refused', message: cause ? `${error.message} ${cause}` : error.message };
  }
}

interface Tracked {
  row: DrainRow;
  state: string;
  /** Monotonic; when the eviction may be tried again. */
  nextTry: number;
  granted: boolean;
  done: boolean;
}

async function run(
  context: CommandContext,
  { client, nodeName, timeout }: { readonly client: Client; readonly nodeName: string; readonly timeout: number },
): Promise<number> {
  const { flags, print, signal } = context;
  const display = createDrainDisplay({
    print,
    asJson: flags['json'] === true,
    isTerminal: process.stdout.isTTY === true,
  });
  const node = { namespace: '', name: nodeName };
  await client.patch(NODES, node, { type: 'merge', body: { spec: { unschedulable: true } } });
  const tracked = new Map<string, Tracked>();
  const deadline = systemClock.monotonic() + timeout * 1000;
  for (;;) {
    // Another eviction would mark again what the uncordon has let go of.
    if (!(await isCordoned(client, nodeName))) {
      display.end(undefined, { node: nodeName, empty: false, uncordoned: true });
      throw new CommandError(`node ${nodeName} was uncordoned: nothing more is evicted`);
    }
    const pods = await podsOn(client, nodeName);
    for (const row of await planOf(client, nodeName)) {
      if (row.outcome === 'ignored') continue;
      const key = `${row.namespace}/${row.pod}`;
      const known = tracked.get(key);
      if (known) known.row = { ...row, seconds: known.row.seconds, budgets: row.budgets };
      else tracked.set(key, { row, state: 'to be evicted', nextTry: 0, granted: false, done: false });
    }
    for (const [key, one] of tracked) await follow(client, one, pods.get(key));
    display.show([...tracked.values()]);
    const open = [...tracked.values()].filter(({ done }) => !done);
    if (open.length === 0) {
      display.end(`node ${nodeName} is empty`, { node: nodeName, empty: true });
      return 0;
    }
    if (systemClock.monotonic() > deadline) {
      const left = open.map(({ row, state }) => `${row.namespace}/${row.instance ?? row.pod}: ${row.blocker ?? state}`);
      display.end(undefined, { node: nodeName, empty: false, left });
      throw new CommandError(
        `node ${nodeName} is not empty after ${timeout} s (it stays cordoned): ${left.slice(0, 3).join('; ')}${left.length > 3 ? `; and ${left.length - 3} more` : ''}`,
      );
    }
    await systemClock.sleep(POLL_MS, signal);
  }
}

/** True also for a node that is gone: what was on it goes as well. */
async function isCordoned(client: Client, name: string): Promise<boolean> {
  const node = await orAbsent(client.get(NODES, { namespace: '', name }));
  return !node || node.spec?.unschedulable === true;
}

async function podsOn(client: Client, nodeName: string): Promise<Map<string, Pod>> {
  const { items } = await client.list(PODS, { fieldSelector: `spec.nodeName=${nodeName}` });
  return new Map(items.map((pod) => [`${pod.metadata.namespace}/${pod.metadata.name}`, pod]));
}

/** Evicts what is due, and says how far it is. */
async function follow(client: Client, one: Tracked, pod: Pod | undefined): Promise<void> {
  const { row } = one;
  if (!pod || hasEnded(pod)) {
    one.done = true;
    one.state = await whereNow(client, row);
    one.row = { ...row, blocker: undefined };
    return;
  }
  if (isDeleting(pod)) {
    one.state = row.instance === undefined ? 'ends' : 'guest shuts down';
    return;
  }
  const now = systemClock.monotonic();
  if (now < one.nextTry || one.granted) {
    one.state = await progressOf(client, one);
    return;
  }
  const answer = await evict(client, row);
  one.nextTry = now + RETRY_MS;
  if (answer.type === 'granted') {
    one.granted = true;
    one.state = 'evicted';
  } else if (answer.type === 'refused') {
    one.state = await progressOf(client, one);
    // For what moves the refusal is the order to move it; for the rest it is what holds it.
    if (row.outcome !== 'migrates') one.row = { ...row, blocker: row.blocker ?? answer.message };
  }
}

async function progressOf(client: Client, { row, state }: Tracked): Promise<string> {
  if (row.outcome === 'waits') return 'marked';
  if (row.outcome !== 'migrates') return row.blocker === undefined ? state : 'held';
  const { items } = await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
    namespace: row.namespace,
    labelSelector: `kubevirt.io/vmi-name=${row.instance}`,
  });
  const last = items
    .sort((a, b) => (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''))
    .at(-1);
  return last ? `migration ${(last.status?.phase ?? 'Pending').toLowerCase()}` : 'marked for migration';
}

/** Where the machine is after its Pod has gone. */
async function whereNow(client: Client, row: DrainRow): Promise<string> {
  if (row.instance === undefined) return 'gone';
  const key = { namespace: row.namespace, name: row.instance };
  const instance = await orAbsent(client.get(VIRTUAL_MACHINE_INSTANCES, key));
  if (!instance) return 'gone';
  const { phase = 'Pending', nodeName } = instance.status ?? {};
  return phase === 'Running' && nodeName ? `runs on ${nodeName}` : `gone (${phase.toLowerCase()})`;
}
