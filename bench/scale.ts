/**
 * Many of one thing: 50,000 stored objects (time to ready, memory), 1,000 watchers of one resource, what one evaluation
 * of a ValidatingAdmissionPolicy adds to a write, and the answer to an eviction at a steady rate. One control plane in
 * its own process; its CPU time stands beside the wall time, because other work on the machine moves it least.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { PODS } from '../packages/apimachinery/src/types/resource-types.ts';
import { adminOf } from '../test/testkit/control-plane-process.ts';
import { configMap, configMaps, createObjects, OBJECT_BYTES } from './api/objects.ts';
import { answersByCode, endpointOf, type MeasuredPlane, newDataDir, removeDataDir, startPlane } from './api/plane.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';
import { type Generator, startGenerator } from './load/child.ts';
import type { Protocol, RequestTemplate } from './load/load.ts';
import { cpuMicros } from './process-cpu.ts';
import { residentMib } from './process-memory.ts';

const NAMESPACES = 10;
const PER_NAMESPACE = 5_000;
const RUNS = 3;
/** Ready is not all: the controllers read the state next. */
const SETTLE_MS = 4000;
const WATCHERS = 1000;
const PER_CONNECTION = 100;
const WATCHED = 200;
const PER_SECOND = 200;
const WATCH_SECONDS = 4;
const EVICTED = 20;
const POLICIES = 20;
const POLICY_WRITES = 3000;

export async function benchScale({ say }: BenchContext): Promise<Outcome> {
  const runs = new Runs();
  const generator = startGenerator();
  const dir = newDataDir();
  let plane: MeasuredPlane | undefined;
  try {
    plane = await startPlane(dir);
    await measureEvictions(runs, plane, generator);
    say('evictions done');
    await measurePolicies(runs, plane, generator);
    say('policies done');
    const watches = await measureWatches(runs, plane, generator);
    say('watches done');
    await fill(runs, plane, generator);
    say('objects written');
    const codes = await answersByCode(dir);
    for (let run = 0; run < RUNS; run++) {
      await plane.process.kill('SIGTERM');
      plane = await startPlane(dir);
      await measureStart(runs, plane);
    }
    return {
      state: 'measured',
      figures: runs.figures(),
      notes: {
        objects: NAMESPACES * PER_NAMESPACE,
        objectBytes: OBJECT_BYTES,
        missingWatchEvents: watches.missing,
        answersByCode: Object.fromEntries(codes),
      },
    };
  } finally {
    await generator.stop();
    await plane?.process.kill('SIGKILL');
    removeDataDir(dir);
  }
}

const namespaceOf = (n: number): string => `many-${n}`;

async function post(dir: string, path: string, bodies: readonly unknown[]): Promise<void> {
  const admin = adminOf(dir);
  try {
    for (const body of bodies) await admin.client.raw('POST', path, { body });
  } finally {
    await admin.close();
  }
}

const namespaces = (names: readonly string[]): unknown[] => names.map((name) => ({ metadata: { name } }));

async function create(
  plane: MeasuredPlane,
  generator: Generator,
  { template, count }: { readonly template: RequestTemplate; readonly count: number },
): Promise<void> {
  await generator.run({
    kind: 'requests',
    endpoint: endpointOf(plane.dir, plane.process.port),
    protocol: 'http2',
    inFlight: 32,
    warmUpMs: 0,
    measureMs: 120_000,
    templates: [template],
    count,
    once: true,
  });
}

async function fill(runs: Runs, plane: MeasuredPlane, generator: Generator): Promise<void> {
  const names = Array.from({ length: NAMESPACES }, (_, n) => namespaceOf(n));
  await post(plane.dir, '/api/v1/namespaces', namespaces(names));
  const began = performance.now();
  for (const name of names)
    await create(plane, generator, { template: createObjects(name, 'object'), count: PER_NAMESPACE });
  const seconds = (performance.now() - began) / 1000;
  runs.add('many.writes', '/s', { value: (NAMESPACES * PER_NAMESPACE) / seconds });
  const written = residentMib(plane.process.pid);
  if (written !== undefined) runs.add('many.rss.written', 'MiB', { value: written });
}

/** Time to the ready line, and memory then, when the controllers have read everything, and after a list of all. */
async function measureStart(runs: Runs, plane: MeasuredPlane): Promise<void> {
  const { pid } = plane.process;
  const memory = (name: string): void => {
    const resident = residentMib(pid);
    if (resident !== undefined) runs.add(name, 'MiB', { value: resident });
  };
  const cpu = (name: string): void => {
    const used = cpuMicros(pid);
    if (used !== undefined) runs.add(name, 'ms', { value: used / 1000 });
  };
  runs.add('many.ready', 'ms', { value: plane.readyMs });
  cpu('many.ready.cpu');
  memory('many.rss.ready');
  await sleep(SETTLE_MS);
  cpu('many.settled.cpu');
  memory('many.rss.settled');
  const admin = adminOf(plane.dir);
  try {
    const began = performance.now();
    const list = (await admin.client.raw('GET', '/api/v1/configmaps')) as { items: readonly unknown[] };
    runs.add('many.list', 'ms', { value: performance.now() - began });
    if (list.items.length < NAMESPACES * PER_NAMESPACE) throw new Error(`only ${list.items.length} objects came back`);
  } finally {
    await admin.close();
  }
  memory('many.rss.listed');
}

/** A ConfigMap as small as the ones that are watched by many: leases, counters. */
const smallMap = JSON.stringify({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'object-{i}' },
  data: { seq: '{seq}' },
});

/** Where watches begin: without it they would be sent the whole state first. */
async function revisionOf(dir: string, path: string): Promise<string> {
  const admin = adminOf(dir);
  try {
    const list = (await admin.client.raw('GET', path, { query: 'limit=1' })) as {
      metadata: { resourceVersion: string };
    };
    return list.metadata.resourceVersion;
  } finally {
    await admin.close();
  }
}

async function measureWatches(runs: Runs, plane: MeasuredPlane, generator: Generator): Promise<{ missing: number }> {
  const { pid, port } = plane.process;
  const path = configMaps('watched');
  await post(plane.dir, '/api/v1/namespaces', namespaces(['watched']));
  await create(plane, generator, { template: { method: 'POST', path, body: smallMap }, count: WATCHED });
  let missing = 0;
  const protocols: readonly Protocol[] = ['http2', 'http1'];
  for (let run = 0; run < RUNS; run++) {
    for (const protocol of protocols) {
      const now = await revisionOf(plane.dir, path);
      const result = await generator.run({
        kind: 'watch',
        pid,
        endpoint: endpointOf(plane.dir, port),
        protocol,
        watchers: WATCHERS,
        perConnection: PER_CONNECTION,
        watchPath: `${path}?watch=true&allowWatchBookmarks=true&resourceVersion=${now}`,
        perSecond: PER_SECOND,
        seconds: WATCH_SECONDS,
        write: { method: 'PUT', path: `${path}/object-{i}`, body: smallMap },
        wrap: WATCHED,
      });
      runs.add(`watchers.p50.${protocol}`, 'ms', { value: result.latencyMs.p50 });
      runs.add(`watchers.p99.${protocol}`, 'ms', { value: result.latencyMs.p99 });
      runs.add(`generator.watchers.${protocol}`, 'core', { value: result.generatorBusy });
      if (result.cpuMicros !== undefined) runs.add(`cpu.delivery.${protocol}`, 'µs', { value: result.cpuMicros });
      missing += result.missing;
    }
  }
  return { missing };
}

const POLICY_GROUP = 'admissionregistration.k8s.io/v1';

/** One validation with a variable and one look into labels, as policies of users are. */
const policy = (name: string): unknown => ({
  apiVersion: POLICY_GROUP,
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name },
  spec: {
    matchConstraints: {
      resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['configmaps'] }],
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'policed' } },
    },
    variables: [{ name: 'keys', expression: 'object.data.map(key, key)' }],
    validations: [
      { expression: "variables.keys.all(key, key.endsWith('.conf') || key == 'lap')" },
      { expression: "has(object.metadata.labels) && object.metadata.labels['app'] == 'bench'" },
    ],
  },
});
const binding = (name: string): unknown => ({
  apiVersion: POLICY_GROUP,
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name },
  spec: { policyName: name, validationActions: ['Deny'] },
});

/** CPU time of an update with many policies on it, less that of one without, for each policy. */
async function measurePolicies(runs: Runs, plane: MeasuredPlane, generator: Generator): Promise<void> {
  const names = ['free', 'policed'];
  await post(plane.dir, '/api/v1/namespaces', namespaces(names));
  for (const name of names) await create(plane, generator, { template: createObjects(name, 'object'), count: 500 });
  const policies = Array.from({ length: POLICIES }, (_, i) => `policy-${i}`);
  await post(plane.dir, `/apis/${POLICY_GROUP}/validatingadmissionpolicies`, policies.map(policy));
  await post(plane.dir, `/apis/${POLICY_GROUP}/validatingadmissionpolicybindings`, policies.map(binding));
  await sleep(1000);
  const update = async (namespace: string): Promise<number | undefined> => {
    const before = cpuMicros(plane.process.pid);
    const { sent } = await generator.run({
      kind: 'requests',
      endpoint: endpointOf(plane.dir, plane.process.port),
      protocol: 'http2',
      inFlight: 32,
      warmUpMs: 0,
      measureMs: 60_000,
      templates: [
        { method: 'PUT', path: `${configMaps(namespace)}/object-{i}`, body: configMap('object', { lap: '{v}' }) },
      ],
      count: POLICY_WRITES,
      wrap: 500,
      once: true,
    });
    const after = cpuMicros(plane.process.pid);
    return before === undefined || after === undefined ? undefined : (after - before) / sent;
  };
  for (let run = -1; run < RUNS; run++) {
    const free = await update('free');
    const policed = await update('policed');
    // The first turn warms the compiler up.
    if (run < 0 || free === undefined || policed === undefined) continue;
    runs.add('policy.cpu', 'µs', { value: (policed - free) / POLICIES });
  }
  const admin = adminOf(plane.dir);
  try {
    for (const name of policies)
      await admin.client.raw('DELETE', `/apis/${POLICY_GROUP}/validatingadmissionpolicybindings/${name}`);
  } finally {
    await admin.close();
  }
}

/** Rehearsed evictions of launcher Pods: they ask every question and mark nothing, so they can be asked again. */
async function measureEvictions(runs: Runs, plane: MeasuredPlane, generator: Generator): Promise<void> {
  const admin = adminOf(plane.dir);
  try {
    for (let i = 0; i < EVICTED; i++) {
      await admin.client.raw('POST', '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances', {
        body: {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachineInstance',
          metadata: { name: `guest-${i}` },
          spec: {
            evictionStrategy: 'LiveMigrate',
            domain: { devices: {}, resources: { requests: { memory: '64Mi' } } },
          },
        },
      });
    }
    let pods: string[] = [];
    for (let tries = 0; tries < 100 && pods.length < EVICTED; tries++) {
      await sleep(100);
      pods = (await admin.client.list(PODS, { namespace: 'default' })).items.map(({ metadata }) => metadata.name ?? '');
    }
    if (pods.length < EVICTED) throw new Error(`${pods.length} launcher Pods came, not ${EVICTED}`);
    await sleep(1000);
    for (let run = -1; run < RUNS; run++) {
      const before = cpuMicros(plane.process.pid);
      const result = await generator.run({
        kind: 'paced',
        endpoint: endpointOf(plane.dir, plane.process.port),
        requests: pods.map(
          (name): RequestTemplate => ({
            method: 'POST',
            path: `/api/v1/namespaces/default/pods/${name}/eviction?dryRun=All`,
            body: JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } }),
          }),
        ),
        perSecond: PER_SECOND,
        seconds: 3,
      });
      const after = cpuMicros(plane.process.pid);
      if (result.missing > 0) throw new Error(`${result.missing} evictions were not answered`);
      if (run < 0) continue;
      runs.add('eviction.p50', 'ms', { value: result.latencyMs.p50 });
      runs.add('eviction.p99', 'ms', { value: result.latencyMs.p99 });
      if (before !== undefined && after !== undefined)
        runs.add('cpu.eviction', 'µs', { value: (after - before) / (3 * PER_SECOND) });
    }
  } finally {
    await admin.close();
  }
}
