/**
 * Chaos on a server of three nodes: random moves and drains, uncordons, and kills of the whole process and of QEMUs, among
 * them at each step of a migration's hand-over. What must hold all the time: of one instance one guest runs at most; an
 * instance is replaced only if the QEMU that had its guest was killed by us, or in post-copy one of those that have a part
 * of it or carry it; its counter never goes back; and what was asked for ends: each drain, and each machine runs again.
 *
 * CORACLE_SEED makes other choices, CORACLE_CHAOS_SECONDS says how long, CORACLE_CHAOS_APART=yes|no whether
 * agents have processes of their own (else the seed decides), CORACLE_CHAOS_KEEP=1 keeps the directories and tells each round.
 */
// test:full: random steps for minutes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { NODES, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  MIGRATION_POLICIES,
  type MigrationPolicy,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { hostAddressOf } from '../../packages/kubevirt/src/rules/launcher/pod-address.ts';
import { usualHostPort } from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { eventually } from '../testkit/eventually.ts';
import { seed } from '../testkit/seed.ts';
import { tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';
import { createFleet } from './chaos-fleet.ts';
import { fleetState, guestState } from './fleet-state.ts';
import {
  type Armed,
  armFile,
  POINTS,
  type Point,
  qemusUnder,
  type Strike,
  type Victim,
} from './migration-failpoints.ts';
import { watchRuns } from './run-watch.ts';

const why = whyNoGuests();
const seconds = Number(process.env['CORACLE_CHAOS_SECONDS'] ?? 20);
const DRAIN_MS = 90_000;
const SETTLE_MS = 150_000;
const MOVE_MS = 40_000;
/** How long a guest has for the answer to one question for its counter, and what it has between two. */
const BEAT_MS = 3000;
const BEAT_PAUSE_MS = 150;
/** So slow that it always goes on to post-copy. */
const POST = 'post';
const LIVE = ['live-a', 'live-b', POST];
const FREE = 'free';
/** Shares of what a round does, summed up; the rest is the death of a QEMU that nobody drains. */
const [MOVES, STRIKES, CRASHES, UNCORDONS] = [0.55, 0.8, 0.9, 0.96];
/** The first rounds strike without the pause that a drain makes after a migration that failed. */
const MOVES_FIRST = 3;
const MACHINES = [...LIVE, FREE];

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

const random = randomOf(seed);
const below = (bound: number): number => Math.floor(random() * bound);
const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;
const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms));

interface Card {
  readonly point: Point;
  readonly victim: Victim;
}

const ONLY_POST: readonly Point[] = ['postcopy', 'feeding'];
const VICTIMS = ['process', 'source', 'target'] as const;
/** Every step with every victim, and how often it was struck there. */
const cards = POINTS.flatMap((point) => VICTIMS.map((victim) => ({ point, victim, struck: 0, out: false })));

/** One of those struck least, never two at once: what was dealt in vain comes again. */
function deal(name: string): Card | undefined {
  const fit = cards.filter(({ point, out }) => !out && (name === POST || !ONLY_POST.includes(point)));
  // Two steps there are on the slow machine only: it has the first turn at them.
  const own = name === POST ? fit.filter(({ point }) => ONLY_POST.includes(point)) : [];
  const least = (of: typeof fit) => Math.min(...of.map(({ struck }) => struck));
  const pool = own.length > 0 && least(own) <= least(fit) ? own : fit;
  const card = pool.length > 0 ? pick(pool.filter(({ struck }) => struck === least(pool))) : undefined;
  if (card) card.out = true;
  return card;
}

/** Whether what was killed at this step may have had the guest, or a part of it, so that the instance may end of it. */
const hadGuest = ({ point, delay, victim }: Strike, isPost: boolean): boolean => {
  const place = POINTS.indexOf(point);
  // The last of the memory and the hand-over take a few milliseconds: some way behind these steps all may be over.
  const decidesSoon = delay > 0 && place >= POINTS.indexOf('switchover');
  const decided = place >= POINTS.indexOf('handing-over') || decidesSoon || (isPost && point === 'switchover');
  if (victim === 'source') return isPost || place <= POINTS.indexOf('cont');
  return decided && (victim === 'target' || isPost);
};

// S-238: Whatever is killed in the middle of moves and drains (a process, a QEMU, at any step of a hand-over), of one
//   instance one guest runs at most, every drain ends, and every machine runs again.
test(`drains under fire, seed ${seed}`, { timeout: (seconds + 400) * 1000, ...(why && { skip: why }) }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-chaos-'));
  const history: string[] = [];
  const note = (text: string): void => void history.push(`${new Date().toISOString().slice(14, 23)} ${text}`);
  // Agents all in one process with the server, or two of them in processes and directories of their own.
  const apart = process.env['CORACLE_CHAOS_APART'] ? process.env['CORACLE_CHAOS_APART'] === 'yes' : random() < 0.5;
  note(apart ? 'three processes' : 'one process');
  const fleet = createFleet(dir);
  const { data } = fleet;
  const watch = watchRuns(dir);
  let over = false;
  t.after(async () => {
    over = true;
    watch.stop();
    await fleet.end();
    for (const { pid } of qemusUnder(dir)) process.kill(pid, 'SIGKILL');
    if (process.env['CORACLE_CHAOS_KEEP'] === undefined) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  });
  await fleet.start(apart ? ['edge-1', 'edge-2'] : []);
  const nodes = await eventually('three nodes', async () => {
    const { items } = await fleet.client().list(NODES);
    const ready = items.filter(({ status }) =>
      status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True'),
    );
    return ready.length === 3 ? ready.map(({ metadata }) => metadata.name ?? '').sort() : undefined;
  });
  for (const name of MACHINES)
    await fleet.client().create(
      VIRTUAL_MACHINES,
      tinyVm(name, ({ spec }) => {
        const template = spec.template as { spec: Record<string, unknown> };
        const evictionStrategy = name === FREE ? 'None' : 'LiveMigrate';
        Object.assign(template.spec, { evictionStrategy, terminationGracePeriodSeconds: 0 });
        Object.assign(spec.template as object, { metadata: { labels: { chaos: name } } });
      }),
    );
  await fleet.client().create(MIGRATION_POLICIES, {
    apiVersion: 'migrations.kubevirt.io/v1alpha1',
    kind: 'MigrationPolicy',
    metadata: { name: 'slow' },
    spec: {
      selectors: { virtualMachineInstanceSelector: { chaos: POST } },
      allowPostCopy: true,
      bandwidthPerMigration: '16Mi',
      completionTimeoutPerGiB: 1,
    },
  } as unknown as MigrationPolicy);

  // What is known of each machine: its instance, where it is, how far its guest has counted.
  interface Known {
    uid: string;
    node: string;
    address: string;
    beats: number;
    /** When its counter was last heard, of `performance.now()`. */
    heard?: number;
  }
  const known = new Map<string, Known>();
  const mayEnd = new Set<string>();
  const wrong: string[] = [];
  const instances = async (): Promise<readonly VirtualMachineInstance[]> =>
    (await fleet.client().list(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default' })).items;
  /** Notes what the API says; an instance that was replaced without a cause is wrong. */
  const observe = (vmis: readonly VirtualMachineInstance[]): void => {
    // A strike is recorded before it is done: what has come of it is not seen first.
    strikes();
    for (const { metadata, status } of vmis) {
      const { name = '', uid = '' } = metadata;
      const before = known.get(name);
      const ended = status?.phase === 'Failed' || status?.phase === 'Succeeded';
      if (before && (before.uid !== uid || ended) && name !== FREE && !mayEnd.has(before.uid)) {
        mayEnd.add(before.uid);
        wrong.push(
          `${name}: instance ${before.uid} ended (now ${uid}, ${status?.phase}), and nobody had killed its guest`,
        );
      }
      const address = hostAddressOf(status?.interfaces?.[0]?.ipAddress ?? '');
      if (status?.phase === 'Running' && address !== '') {
        const node = status.nodeName ?? '';
        // The same entry as long as it is the same guest at the same address: a count that is being asked for goes in there.
        if (before?.uid === uid && before.address === address) before.node = node;
        else known.set(name, { uid, node, address, beats: before?.uid === uid ? before.beats : 0 });
      }
    }
  };
  const beat = async (name: string): Promise<void> => {
    const at = known.get(name);
    if (!at) return;
    // What was known when it was asked: of two that ask at a time the older answer may come last.
    const least = at.beats;
    const text = await fetch(`http://${at.address}:${usualHostPort(8080)}/heartbeat`, {
      signal: AbortSignal.timeout(BEAT_MS),
    })
      .then((response) => (response.ok ? response.text() : ''))
      .catch(() => '');
    if (text.trim() === '' || known.get(name) !== at) return;
    const beats = Number(text);
    if (beats >= least) {
      at.beats = Math.max(at.beats, beats);
      at.heard = performance.now();
      return;
    }
    // The address may be another's by now; an instance that was not replaced has one boot.
    const now = (await instances().catch(() => [])).find(({ metadata }) => metadata.name === name);
    if (now?.metadata.uid === at.uid && now.status?.phase === 'Running' && !mayEnd.has(at.uid))
      wrong.push(`${name}: the counter of instance ${at.uid} went from ${least} to ${beats}`);
  };
  const watching = (async () => {
    while (!over) {
      await instances().then(observe, () => {});
      await Promise.all(MACHINES.map(beat));
      await pause(BEAT_PAUSE_MS);
    }
  })();

  /** Memory that is on its way in post-copy goes by way of the agents. */
  const processKilled = (): void => {
    const post = known.get(POST);
    if (post) mayEnd.add(post.uid);
  };
  /** Pids of processes that were struck and have not been started again. */
  const fallen: number[] = [];
  let struck = 0;
  const strikes = (): void => {
    const text = (() => {
      try {
        return readFileSync(join(dir, 'strikes.jsonl'), 'utf8');
      } catch {
        return '';
      }
    })();
    const all = text.split('\n').filter((line) => line !== '');
    const fresh = all.slice(struck).map((line) => JSON.parse(line) as Strike);
    struck = all.length;
    for (const one of fresh) {
      note(`strike ${JSON.stringify(one)}`);
      if (one.pid !== 0) watch.killed(one.pid, one.at);
      const post = known.get(POST);
      if (hadGuest(one, one.uid === post?.uid)) mayEnd.add(one.uid);
      if (one.victim === 'process') {
        processKilled();
        fallen.push(one.agent);
      }
      const card = cards.find(({ point, victim }) => point === one.point && victim === one.victim);
      if (card) card.struck++;
    }
  };
  const check = (): void => {
    const all = [...wrong, ...watch.violations()];
    if (all.length === 0) return;
    const said = fleet.said();
    throw new Error(`seed ${seed}: ${all.join('; ')}\n${history.join('\n')}\n${guestState(dir)}\n${said}`);
  };
  const drain = (node: string) => {
    const argv = ['drain', node, '--delete-emptydir-data', '--ignore-daemonsets', '--force', '--timeout=85s'];
    const child = spawn('kubectl', argv, {
      env: { PATH: process.env['PATH'] ?? '', HOME: dir, KUBECONFIG: join(data, 'kubeconfig') },
      timeout: DRAIN_MS,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    const state = { over: false };
    const done = new Promise<{ code: number | null; output: string }>((finish) =>
      child.once('close', (code) => {
        state.over = true;
        finish({ code, output });
      }),
    );
    return { done, state, end: () => void child.kill('SIGKILL') };
  };
  const cordon = (name: string, unschedulable: boolean) =>
    fleet.client().patch(NODES, { namespace: '', name }, { type: 'merge', body: { spec: { unschedulable } } });
  /** One that nobody disturbs must end. */
  const drainToTheEnd = async (node: string): Promise<void> => {
    const { code, output } = await drain(node).done;
    note(`drain of ${node} ended with ${code}; longest pause so far ${watch.longestPause()} ms`);
    if (code === 0) return;
    wrong.push(`the drain of ${node} did not end: ${output.slice(-2000)}\n${await fleetState(fleet.client())}`);
  };
  /** Starts again what was struck. True when there was something. */
  const raise = async (): Promise<boolean> => {
    for (let raised = false; ; raised = true) {
      strikes();
      const down = fleet.processes.filter(({ pid }) => fallen.includes(pid));
      const one = down.find(({ name }) => name === fleet.server.name) ?? down[0];
      if (!one) return raised;
      try {
        await fleet.crash(one);
      } catch (error) {
        // An agent ends at once where the server falls under it: the server goes first then.
        strikes();
        if (one.name === fleet.server.name || !fallen.includes(fleet.server.pid)) throw error;
        fallen.push(one.pid);
      }
    }
  };
  /** Everything runs, once, and nothing is under way. */
  const settle = async (): Promise<void> => {
    let state = '';
    let restSince: number | undefined;
    await eventually(
      'everything at rest',
      async () => {
        strikes();
        await raise();
        const vmis = await instances();
        observe(vmis);
        const { items: migrations } = await fleet.client().list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
        const { items: pods } = await fleet.client().list(PODS, { namespace: 'default' });
        const qemus = qemusUnder(dir);
        const moving = migrations.filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed');
        const live = pods.filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed');
        const calm = vmis.filter(
          ({ metadata, status }) =>
            status?.phase === 'Running' &&
            metadata.deletionTimestamp === undefined &&
            !status.evacuationNodeName &&
            qemus.filter(({ uid, node }) => uid === metadata.uid && node === status.nodeName).length === 1 &&
            status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') &&
            (metadata.name === FREE ||
              status.conditions.some(({ type, status: is }) => type === 'LiveMigratable' && is === 'True')),
        );
        state = JSON.stringify({
          vmis: vmis.map(({ metadata, status }) => ({
            name: metadata.name,
            uid: metadata.uid,
            marked: status?.evacuationNodeName,
            phase: status?.phase,
            node: status?.nodeName,
            conditions: status?.conditions?.map(({ type, status: is, message }) => `${type}=${is} ${message ?? ''}`),
            migration: status?.migrationState,
          })),
          moving: moving.map(({ metadata, status }) => [metadata.name, status?.phase]),
          pods: live.map(({ metadata, status }) => [metadata.name, status?.phase]),
          qemus,
        });
        const done =
          vmis.length === MACHINES.length &&
          calm.length === vmis.length &&
          moving.length === 0 &&
          live.length === vmis.length &&
          qemus.length === vmis.length;
        if (!done) {
          restSince = undefined;
          return false;
        }
        restSince ??= performance.now();
        const since = restSince;
        // Those that `watching` hears: a guest that is asked ever more often has no time to answer.
        const heard = MACHINES.map((name) => ({ beats: known.get(name)?.beats, at: known.get(name)?.heard ?? 0 }));
        state = `beats ${JSON.stringify(heard)}, at rest since ${since}; ${state}`;
        return heard.every(({ at }) => at > since);
      },
      SETTLE_MS,
    ).catch((error: Error) => void wrong.push(`${error.message}: ${state}`));
    check();
  };

  await settle();
  const began = performance.now();
  let rounds = 0;
  let made = 0;
  /** Asks for a strike at the next migration of each machine that can move; `back` takes the cards again. */
  const arm = (): { readonly text: string; back(): void } => {
    const dealt = LIVE.flatMap((name) => {
      const at = known.get(name);
      const card = at && deal(name);
      if (!at || !card) return [];
      const armed: Armed = {
        point: card.point,
        victim: card.victim,
        when: pick(['before', 'after']),
        delay: pick([0, 0, below(40)]),
        owner: at.node,
      };
      writeFileSync(armFile(dir, at.uid), JSON.stringify(armed));
      return [{ name, card, armed, file: armFile(dir, at.uid) }];
    });
    return {
      text: dealt
        .map(({ name, armed }) => `${name}: ${armed.victim} ${armed.when} ${armed.point} + ${armed.delay} ms`)
        .join(', '),
      back() {
        for (const { card, file } of dealt) {
          rmSync(file, { force: true });
          for (const one of cards) if (one.point === card.point && one.victim === card.victim) one.out = false;
        }
      },
    };
  };
  /** Starts processes again that were struck, until `over`. True when there was one. */
  const followStrikes = async (over_: () => boolean | Promise<boolean>): Promise<boolean> => {
    let crashed = false;
    while (!(await over_())) {
      await pause(20);
      strikes();
      crashed = (await raise()) || crashed;
    }
    return crashed;
  };
  while (performance.now() - began < seconds * 1000) {
    rounds++;
    const node = known.get(pick(LIVE))?.node ?? pick(nodes);
    const dice = random();
    const moves = rounds <= MOVES_FIRST || dice < MOVES;
    if (moves) {
      const armed = arm();
      note(`round ${rounds}: moves; ${armed.text}`);
      for (const name of LIVE)
        await fleet
          .client()
          .create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
            apiVersion: 'kubevirt.io/v1',
            kind: 'VirtualMachineInstanceMigration',
            metadata: { name: `chaos-${++made}`, namespace: 'default' },
            spec: { vmiName: name },
          } as unknown as VirtualMachineInstanceMigration)
          .catch((error: Error) => note(`${name} does not move: ${error.message}`));
      const deadline = performance.now() + MOVE_MS;
      await followStrikes(async () => {
        if (performance.now() > deadline) return true;
        const migrations = await fleet
          .client()
          .list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS)
          .catch(() => undefined);
        return (
          migrations?.items.every(({ status }) => status?.phase === 'Succeeded' || status?.phase === 'Failed') ?? false
        );
      });
      armed.back();
    } else if (dice < STRIKES) {
      const armed = arm();
      note(`round ${rounds}: drain ${node}; ${armed.text}`);
      const draining = drain(node);
      const crashed = await followStrikes(() => draining.state.over);
      armed.back();
      if (!crashed && (await draining.done).code === 0) note('the drain went on by itself');
    } else if (dice < CRASHES) {
      // At no step in particular: the first ones, before there is a target, among them.
      const after = below(3000);
      const victim = pick(fleet.processes);
      note(`round ${rounds}: drain ${node}, ${victim.name} killed after ${after} ms`);
      processKilled();
      const draining = drain(node);
      await pause(after);
      await fleet.crash(victim);
      draining.end();
      await draining.done;
    } else if (dice < UNCORDONS) {
      const after = below(3000);
      note(`round ${rounds}: drain ${node}, uncordoned after ${after} ms`);
      const draining = drain(node);
      await pause(after);
      await cordon(node, false);
      // Who drains goes on evicting: what it marked anew has to go.
      await draining.done;
    } else {
      const owner = watch.owner(known.get(pick(LIVE))?.uid ?? '');
      note(`round ${rounds}: QEMU ${owner?.pid} killed`);
      if (owner) {
        mayEnd.add(owner.uid);
        watch.killed(owner.pid, Date.now());
        process.kill(owner.pid, 'SIGKILL');
      }
    }
    strikes();
    await raise();
    check();
    if (!moves && dice < CRASHES) await drainToTheEnd(node);
    for (const name of nodes) await cordon(name, false);
    await settle();
  }
  over = true;
  await watching;
  const hit = cards.filter(({ struck: times }) => times > 0);
  const sum = hit.reduce((all, { struck: times }) => all + times, 0);
  t.diagnostic(`seed ${seed}: ${rounds} rounds, ${sum} strikes, ${hit.length} of ${cards.length} kinds:`);
  t.diagnostic(hit.map(({ point, victim, struck: times }) => `${point}/${victim} ${times}`).join(', '));
  t.diagnostic(`a guest stood still for ${watch.longestPause()} ms at most`);
  if (process.env['CORACLE_CHAOS_KEEP'] !== undefined) t.diagnostic(history.join('\n'));
  assert.deepEqual([...wrong, ...watch.violations()], []);
});
