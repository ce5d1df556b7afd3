/**
 * Chaos around stops and starts, on guests that hear no power button: `down` that lapses, is repeated and interrupted,
 * SIGTERM, kills, `--keep-vms`, starts with fewer nodes, and standalone instances that are deleted and applied again. What
 * must hold all the time: of one name one QEMU runs at most; none runs that `status` does not show; no machine is on a node
 * that nobody serves; and `down` says that it has stopped only when no guest runs. The first rounds see to it that each of
 * these happens, however short the run is.
 *
 * CORACLE_SEED makes other choices, CORACLE_CHAOS_SECONDS says how long.
 */
// test:full: random steps for minutes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ApiError } from '../../packages/apimachinery/src/meta/status.ts';
import { NODES } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { findGuestsOnDisk, nameOfGuest } from '../../packages/node-agent/src/agent/launcher/guests-on-disk.ts';
import { identify, isRunning } from '../../packages/runtime/src/process/identity.ts';
import { type Outcome, openWorkspace } from '../cli/workspace.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { seed } from '../testkit/seed.ts';
import { whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const seconds = Number(process.env['CORACLE_CHAOS_SECONDS'] ?? 20);
/** The first is waited for until somebody loses patience; the others end soon. */
const GRACE: Readonly<Record<string, number>> = { patient: 600, swift: 1, swifter: 1 };
const NAMES = Object.keys(GRACE);
/** Nodes of the first starts: fewer than there were while guests run. */
const FIRST_STARTS = [3, 1];
/** The first acts: a start, an instance replaced, a kill, the start with fewer nodes, a `down` that lapses, one by force. */
const FIRST_ACTS = [0, 0, 2, 0, 5, 5];

/** A generator of numbers in [0, 1) that depend on the seed only (mulberry32). */
function randomOf(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A machine without a disk: its firmware hears no power button. */
const deaf = (name: string): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name, namespace: 'default' },
  spec: { terminationGracePeriodSeconds: GRACE[name]!, domain: { memory: { guest: '64Mi' }, devices: {} } },
});

interface Shown {
  readonly running: boolean;
  readonly pid?: number;
  readonly stopping?: object;
  readonly guests?: readonly { readonly pid: number }[];
}

// S-365: Through downs that lapse, are repeated and killed, starts with fewer nodes, and instances deleted and applied
//   again, one QEMU runs of a name at most, `status` shows what runs, and no machine is on a node that nobody serves.
test(`stops and starts under fire, seed ${seed}`, {
  timeout: (seconds + 300) * 1000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  const random = randomOf(seed);
  const below = (bound: number): number => Math.floor(random() * bound);
  const history: string[] = [];
  const wrong: string[] = [];
  const note = (text: string): void => void history.push(`${new Date().toISOString().slice(14, 23)} ${text}`);
  const coracle = async (...argv: string[]): Promise<Outcome> => {
    const outcome = await at.run([argv[0]!, '--data-dir', at.data, ...argv.slice(1)]);
    note(`${argv.join(' ')}: ${outcome.code} ${outcome.stdout.trim()} ${outcome.stderr.trim()}`);
    return outcome;
  };
  const guests = () => findGuestsOnDisk(join(at.data, 'nodes'));
  const shown = async (): Promise<Shown> => JSON.parse((await coracle('status', '--json')).stdout) as Shown;

  let over = false;
  const watching = (async () => {
    while (!over) {
      const names = (await guests()).map(nameOfGuest);
      for (const name of new Set(names))
        if (names.filter((one) => one === name).length > 1) wrong.push(`two QEMUs of ${name} at once`);
      await new Promise((next) => setTimeout(next, 100));
    }
  })();
  t.after(async () => {
    over = true;
    await watching;
  });

  const ask = async <T>(work: (client: Client) => Promise<T>): Promise<T> => {
    const { client, close } = adminOf(at.data);
    try {
      return await work(client);
    } finally {
      await close();
    }
  };
  /** Applies an instance; one that is on its way out is waited for, as a user would. */
  const apply = (name: string): Promise<boolean> =>
    ask((client) =>
      eventually(
        `${name} to be taken`,
        async () => {
          try {
            await client.create(VIRTUAL_MACHINE_INSTANCES, deaf(name));
            return true;
          } catch (error) {
            if (!(error instanceof ApiError) || error.code !== 409) throw error;
            const { metadata } = await client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default', name });
            return metadata.deletionTimestamp === undefined ? true : undefined;
          }
        },
        30_000,
      ),
    );
  const remove = (name: string): Promise<unknown> =>
    ask((client) => client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default', name }).catch(() => {}));
  const served = (): readonly string[] =>
    (JSON.parse(readFileSync(join(at.data, 'running.json'), 'utf8')) as { nodes: string[] }).nodes;

  /** Everything has come to rest: each instance runs where somebody serves, or has ended. */
  const settle = (): Promise<unknown> =>
    ask((client) => {
      let state = '';
      return eventually(
        'rest',
        async () => {
          const nodes = served();
          const { items } = await client.list(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default' });
          state = JSON.stringify(items.map(({ metadata, status }) => [metadata.name, status?.phase, status?.nodeName]));
          const known = (await client.list(NODES)).items.map(({ metadata }) => metadata.name ?? '');
          const lost = known.filter((name) => !nodes.includes(name));
          if (lost.length > 0) wrong.push(`nodes that nobody serves: ${lost.join()}`);
          const live = items.filter(({ status }) => status?.phase !== 'Failed' && status?.phase !== 'Succeeded');
          for (const { metadata, status } of live)
            if (status?.nodeName && !nodes.includes(status.nodeName))
              wrong.push(`${metadata.name} is on ${status.nodeName}, which nobody serves`);
          return live.every(({ status }) => status?.phase === 'Running') && (await guests()).length === live.length
            ? true
            : undefined;
        },
        60_000,
      ).catch((error: Error) => {
        throw new Error(`${error.message}: ${state}`);
      });
    });

  /** How often what matters has happened. */
  const count = { starts: 0, 'with fewer nodes': 0, 'deleted and applied': 0, 'downs that lapsed': 0, killed: 0 };
  let nodesBefore = 0;
  const up = async (): Promise<void> => {
    const nodes = FIRST_STARTS[count.starts++] ?? 1 + below(3);
    if (nodes < nodesBefore) count['with fewer nodes']++;
    nodesBefore = nodes;
    const { code, stderr } = await at.up('--nodes', String(nodes));
    note(`up --nodes ${nodes}: ${code} ${stderr.trim()}`);
    if (code !== 0) wrong.push(`up failed: ${stderr}`);
    for (const name of NAMES) {
      const ended = await ask(async (client) => {
        const vmi = await client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default', name }).catch(() => undefined);
        return vmi?.status?.phase === 'Failed' || vmi?.status?.phase === 'Succeeded';
      });
      if (ended) await remove(name);
      await apply(name);
    }
    await settle();
  };
  const kill = async (pid: number, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    note(`kill ${signal}`);
    count.killed++;
    const identity = await identify(pid);
    process.kill(pid, signal);
    if (signal === 'SIGKILL' && identity)
      await eventually('its end', async () => ((await isRunning(identity)) ? undefined : true));
  };
  /** What `status` shows and what runs are the same; what changes meanwhile is looked at again. */
  const compare = async (): Promise<void> => {
    let last = '';
    await eventually(
      'status to show what runs',
      async () => {
        const status = await shown();
        const found = await guests();
        const pids = found.map(({ process: { pid } }) => pid).sort();
        const reported = (status.guests ?? []).map(({ pid }) => pid).sort();
        last = `${JSON.stringify(status)} against ${pids.join()}`;
        if (!status.running) return String(reported) === String(pids) ? true : undefined;
        return status.stopping || found.every(({ node }) => served().includes(node)) ? true : undefined;
      },
      10_000,
    ).catch((error: Error) => wrong.push(`${error.message}: ${last}`));
  };
  const stopped = async (outcome: Outcome): Promise<void> => {
    if (outcome.code !== 0) count['downs that lapsed']++;
    if (outcome.code === 0 && (await guests()).length > 0) wrong.push(`down said ${outcome.stdout} while guests run`);
  };

  const replace = async (name: string): Promise<void> => {
    note(`delete and apply ${name}`);
    count['deleted and applied']++;
    await remove(name);
    await apply(name);
    await settle();
  };

  const deadline = performance.now() + seconds * 1000;
  for (let round = 0; (round < FIRST_ACTS.length || performance.now() < deadline) && wrong.length === 0; round++) {
    const status = await shown();
    const act = FIRST_ACTS[round] ?? below(6);
    if (!status.running && act < 4) await up();
    else if (!status.running) await stopped(await coracle('down', ...(act === 4 ? ['--force'] : ['--timeout', '1'])));
    else if (status.stopping) {
      if (act < 3) await stopped(await coracle('down', '--timeout', '1'));
      else if (act === 3) await kill(status.pid!, 'SIGTERM');
      else if (act === 4) await kill(status.pid!, 'SIGKILL');
      else await stopped(await coracle('down', '--force'));
    } else if (act < 2) await replace(act === 0 ? 'swift' : 'swifter');
    else if (act === 2) await kill(status.pid!, 'SIGKILL');
    else if (act === 3) assert.equal((await coracle('down', '--keep-vms')).code, 0);
    else await stopped(await coracle('down', '--timeout', '1'));
    await compare();
  }
  const end = await coracle('down', '--force');
  assert.equal(end.code, 0, end.stderr);
  await stopped(end);
  assert.deepEqual(wrong, [], `seed ${seed}\n${history.join('\n')}`);
  for (const [what, times] of Object.entries(count)) assert.ok(times > 0, `${what}: never`);
  t.diagnostic(
    `${history.length} steps: ${Object.entries(count)
      .map(([what, times]) => `${times} ${what}`)
      .join(', ')}`,
  );
});
