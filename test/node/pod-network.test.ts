// test:full: three guests, one that moves, and what each says to the others before, meanwhile and after
/** Guests talk to each other: by the addresses of their Pods, by names and by Services, on two nodes, and while one moves. */
import assert from 'node:assert/strict';
import { createConnection } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { NODES, SERVICES } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Service, ServiceSpec } from '../../packages/apimachinery/src/types/types.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually as waitFor } from '../testkit/eventually.ts';
import { kernelSpec, NAMESPACE } from './board.ts';
import { type MigrationBoard, startMigrationBoard } from './migration-board.ts';
import { type Shell, shell } from './shell.ts';

const ADDRESSES: Readonly<Record<string, string>> = { one: '127.0.0.1', two: '127.0.0.2' };
const WAIT_MS = 60_000;
const eventually = <T>(what: string, read: () => Promise<T>): Promise<NonNullable<T>> =>
  waitFor(what, read, WAIT_MS) as Promise<NonNullable<T>>;

let board: MigrationBoard;
before(async () => {
  board = await startMigrationBoard({ controller: true, addresses: ADDRESSES });
});
after(() => board?.close());

interface TalkingGuest {
  readonly name: string;
  readonly address: string;
  sh: Shell;
}

const open = (name: string, isNew: boolean): Promise<Shell> =>
  shell({ connect: async () => board.console(await board.vmi(name)) } as never, name, isNew);

/** A guest with all ports, and its shell. */
async function guest(name: string, change: Record<string, unknown> = {}): Promise<TalkingGuest> {
  const spec = kernelSpec({ terminationGracePeriodSeconds: 0, evictionStrategy: 'LiveMigrate', ...change });
  const devices = { interfaces: [{ name: 'default', masquerade: {} }] };
  await board.client.create(VIRTUAL_MACHINE_INSTANCES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, namespace: NAMESPACE, labels: { guest: name, talks: 'yes' } },
    spec: { ...spec, domain: { ...(spec['domain'] as object), devices } },
  } as unknown as VirtualMachineInstance);
  const vmi = await board.until(name, 'running', ({ status }) => status?.phase === 'Running');
  return { name, address: vmi.status?.interfaces?.[0]?.ipAddress ?? '', sh: await open(name, true) };
}

const service = (name: string, spec: ServiceSpec): Promise<Service> =>
  board.client.create(SERVICES, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: NAMESPACE },
    spec,
  } as Service);

const nodeOf = async (name: string): Promise<string> => (await board.vmi(name)).status?.nodeName ?? '';

async function move(name: string): Promise<void> {
  const before = await nodeOf(name);
  const made = await board.client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { generateName: 'move-', namespace: NAMESPACE },
    spec: { vmiName: name },
  } as unknown as VirtualMachineInstanceMigration);
  const key = { namespace: NAMESPACE, name: made.metadata.name ?? '' };
  await eventually('the migration is over', async () => {
    const { status } = await board.client.get(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key);
    if (status?.phase === 'Failed') throw new Error(JSON.stringify(status));
    return status?.phase === 'Succeeded';
  });
  assert.notEqual(await nodeOf(name), before);
}

/** `ping`, and a page: from one guest to the other. */
async function talks(from: TalkingGuest, to: TalkingGuest, clusterIP: string): Promise<void> {
  await eventually('an answer to a ping', async () =>
    / 0% packet loss/.test(await from.sh.run(`ping -c 2 ${to.address}`)),
  );
  // From one port, so that only the switch tells them apart.
  for (const [address, port] of [
    [clusterIP, 80],
    [to.address, 8080],
  ])
    assert.match(
      await from.sh.run(`printf 'GET /heartbeat HTTP/1.0\\r\\n\\r\\n' | nc -p 45184 -w 10 ${address} ${port}`),
      /200 OK[\s\S]*\n\d+/,
      `${from.name} to ${address}:${port}`,
    );
}

const linesOf = async ({ sh }: TalkingGuest, file: string): Promise<number> => Number(await sh.run(`wc -l < ${file}`));

// S-1180: Guests reach each other by the addresses of their Pods, on one node and across two; a guest that moves keeps its
//   address, and between nodes of one host its open connections, those through a Service among them.
// S-1450
// S-1181: Guests resolve Services, headless ones and `hostname.subdomain.namespace.svc`, and reach a ClusterIP; names of the
//   world go to the host's resolver as before.
// S-1400: Pages that guests fetch from each other by names, each over a new connection, all come while one of them moves:
//   to it and from it, by a Service and straight to its Pod.
// S-1185: A node port answers on the address of each node, wherever the Pods are, and a load balancer has an address of the loopback network and
//   answers there: with Pods that are ready.
// S-1671: `internalTrafficPolicy: Local`, `externalTrafficPolicy: Local`, `PreferSameNode` and `PreferSameZone` hold between guests of
//   two nodes, and follow the zones that nodes are given.
// S-1325
// S-1328: In a guest the name of a Service of its namespace is enough (`curl http://web`), as `NAME.NAMESPACE` is for others;
//   a guest with a subdomain finds its neighbours by their host names. Addresses of the cluster lead back to names.
test('two guests ping, resolve and fetch from each other across two nodes before, while and after one moves', async (t) => {
  const a = await guest('a', { hostname: 'ay', subdomain: 'moves' });
  const here = await nodeOf('a');
  const there = board.nodes.find((name) => name !== here);
  const b = await guest('b', {
    hostname: 'bee',
    subdomain: 'headless',
    nodeSelector: { 'kubernetes.io/hostname': there },
  });
  assert.notEqual(await nodeOf('b'), await nodeOf('a'));
  const web = await service('web', { selector: { guest: 'b' }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] });
  const back = await service('back', { selector: { guest: 'a' }, ports: [{ port: 80, targetPort: 8080 }] });
  await service('moves', { clusterIP: 'None', selector: { guest: 'a' }, ports: [{ port: 8080 }] });
  await service('headless', { clusterIP: 'None', selector: { guest: 'b' }, ports: [{ port: 8080 }] });
  await service('stream', { selector: { guest: 'b' }, ports: [{ port: 9000 }] });
  const clusterIP = web.spec?.clusterIP ?? '';

  await eventually('b has its name', async () =>
    (await a.sh.run('nslookup bee.headless.default.svc 10.0.2.3')).includes(b.address),
  );
  await talks(a, b, clusterIP);
  assert.ok((await a.sh.run('nslookup headless.default.svc 10.0.2.3')).includes(b.address));
  assert.ok((await a.sh.run('nslookup web.default.svc.cluster.local 10.0.2.3')).includes(clusterIP));
  assert.match(await b.sh.run(`ping -c 2 ${a.address}`), / 0% packet loss/);
  assert.match(await a.sh.run('nslookup nothing.default.svc 10.0.2.3'), /NXDOMAIN/);
  assert.doesNotMatch(await a.sh.run('nslookup _http._tcp.web.default.svc 10.0.2.3'), /NXDOMAIN/);

  await shortNames(a, b, clusterIP);

  // From this host: a node port, and a load balancer.
  const outer = await service('outer', {
    type: 'LoadBalancer',
    selector: { guest: 'b' },
    ports: [{ name: 'http', port: 8088, targetPort: 8080 }],
  });
  const ingress = await eventually('an address', async () => {
    const { status } = await board.client.get(SERVICES, { namespace: NAMESPACE, name: 'outer' });
    return status?.loadBalancer?.ingress?.[0]?.ip;
  });
  const nodePort = outer.spec?.ports?.[0]?.nodePort;
  for (const host of [`127.0.0.1:${nodePort}`, `127.0.0.2:${nodePort}`, `${ingress}:8088`])
    await eventually(`a page of ${host}`, async () =>
      fetch(`http://${host}/heartbeat`, { signal: AbortSignal.timeout(3000) }).then(
        ({ ok }) => ok,
        () => false,
      ),
    );

  await policies(a, b, { here, there: there ?? '' });

  // Two connections that stay: straight to the Pod, and by a Service.
  const stream = (await board.client.get(SERVICES, { namespace: NAMESPACE, name: 'stream' })).spec?.clusterIP;
  await b.sh.run('tail -f /dev/null | nc -l -p 9001 > /run/straight &');
  await b.sh.run('tail -f /dev/null | nc -l -p 9000 > /run/service &');
  const count = '(i=0; while :; do i=$((i+1)); echo $i; usleep 100000; done)';
  await a.sh.run(`(${count} | nc ${b.address} 9001) > /dev/null 2>&1 &`);
  await a.sh.run(`(${count} | nc ${stream} 9000) > /dev/null 2>&1 &`);
  await eventually(
    'both are open',
    async () => (await linesOf(b, '/run/straight')) > 3 && (await linesOf(b, '/run/service')) > 3,
  );

  const fetching = await Promise.all([fetches(a, 'web', 'bee.headless:8080'), fetches(b, 'back', 'ay.moves:8080')]);
  const moving = move('a');
  let pings = 0;
  while (!(await Promise.race([moving.then(() => true), b.sh.run(`ping -c 1 -W 5 ${a.address}`).then(() => false)])))
    pings++;
  t.diagnostic(`${pings} pings of b while a moved`);
  a.sh = await open('a', false);
  for (const fetched of fetching) t.diagnostic(await fetched());
  for (const file of ['/run/straight', '/run/service']) {
    const before = await linesOf(b, file);
    await eventually(`${file} goes on`, async () => (await linesOf(b, file)) > before + 10);
    assert.match(await b.sh.run(`awk '$1 != NR' ${file} | wc -l`), /^0$/, 'nothing was lost on the way');
  }
  assert.equal((await board.vmi('a')).status?.interfaces?.[0]?.ipAddress, a.address);
  await talks(a, b, clusterIP);
  await talks(b, a, back.spec?.clusterIP ?? '');
});

/** Services that keep connections on a node, or in a zone. Each guest says on which node it began. */
async function policies(
  a: TalkingGuest,
  b: TalkingGuest,
  { here, there }: { readonly here: string; readonly there: string },
): Promise<void> {
  for (const [{ sh }, node] of [
    [a, here],
    [b, there],
  ] as const)
    await sh.run(`(while :; do echo on-${node} | nc -l -p 7000; done) > /dev/null 2>&1 &`);
  const ports = [{ port: 7000 }];
  const near = (name: string, spec: ServiceSpec): Promise<Service> => service(name, { ports, ...spec });
  const both = { talks: 'yes' };
  await near('inner', { selector: { guest: 'b' }, internalTrafficPolicy: 'Local' });
  await near('same-node', { selector: both, trafficDistribution: 'PreferSameNode' });
  await near('same-zone', { selector: both, trafficDistribution: 'PreferSameZone' });
  const outer = await near('outer-local', {
    type: 'NodePort',
    selector: { guest: 'b' },
    externalTrafficPolicy: 'Local',
  });
  /** Where five connections of a guest go, one after the other. */
  const reached = async ({ sh }: TalkingGuest, name: string): Promise<string> => {
    const said = await sh.run(`for n in 1 2 3 4 5; do nc -w 10 ${name} 7000 < /dev/null 2>&1; done`);
    return [...new Set(said.match(/on-\w+|refused/g))].sort().join(' ');
  };
  const reaches = (from: TalkingGuest, name: string, wanted: string): Promise<unknown> =>
    eventually(`${from.name} reaches ${wanted} by ${name}`, async () => (await reached(from, name)) === wanted);
  await reaches(b, 'inner', `on-${there}`);
  await reaches(a, 'inner', 'refused');
  await reaches(a, 'same-node', `on-${here}`);
  await reaches(b, 'same-node', `on-${there}`);
  const zone = (node: string, name: string | null): Promise<unknown> =>
    board.client.patch(
      NODES,
      { namespace: '', name: node },
      {
        type: 'merge',
        body: { metadata: { labels: { 'topology.kubernetes.io/zone': name } } },
      },
    );
  await Promise.all([zone(here, 'north'), zone(there, 'south')]);
  await reaches(a, 'same-zone', `on-${here}`);
  await reaches(b, 'same-zone', `on-${there}`);
  const nodePort = outer.spec?.ports?.[0]?.nodePort ?? 0;
  const at = (node: string) =>
    textOf(createConnection({ host: ADDRESSES[node]!, port: nodePort })).catch(
      ({ code }: NodeJS.ErrnoException) => code,
    );
  await eventually('the node of b answers', async () => (await at(there)) === `on-${there}\n`);
  await eventually('the other node does not', async () => (await at(here)) === 'ECONNRESET');
}

/** A line that fetches; `wget -T` of this busybox ends in a segmentation fault. */
const page = (at: string): string => `timeout 10 wget -q -O - http://${at}/heartbeat`;

/**
 * Fetches pages of these names without end, each over a connection of its own. The function returned asks for more
 * after the move, ends it, and says how many came; not one may have failed.
 */
async function fetches(guest: TalkingGuest, ...names: string[]): Promise<() => Promise<string>> {
  const file = (name: string): string => `/run/${name.replace(':', '-')}`;
  const ok = async (name: string): Promise<number> => Number(await guest.sh.run(`grep -c '^0 .' ${file(name)}`));
  const before = new Map<string, number>();
  for (const name of names) {
    const one = `p=$(timeout 30 wget -q -O - http://${name}/heartbeat 2>&1); echo $? $p`;
    await guest.sh.run(`(while [ ! -e /run/enough ]; do ${one}; usleep 50000; done) > ${file(name)} &`);
    await eventually(`${guest.name} fetches from ${name}`, async () => (await ok(name)) > 2);
  }
  for (const name of names) before.set(name, await ok(name));
  return async () => {
    const counts: string[] = [];
    for (const name of names) {
      const meanwhile = await ok(name);
      await eventually(`${guest.name} goes on with ${name}`, async () => (await ok(name)) > meanwhile + 3);
      assert.ok(meanwhile > before.get(name)!, `${guest.name} fetched nothing from ${name} while a moved`);
      assert.equal(await guest.sh.run(`grep -nv '^0 .' ${file(name)}`), '', `${guest.name} to ${name}`);
      counts.push(`${name} ${meanwhile - before.get(name)!}`);
    }
    await guest.sh.run('touch /run/enough');
    return `pages that ${guest.name} fetched while a moved: ${counts.join(', ')}`;
  };
}

/** Names as people type them. */
async function shortNames(a: TalkingGuest, b: TalkingGuest, clusterIP: string): Promise<void> {
  assert.match(
    await a.sh.run('cat /etc/resolv.conf'),
    /search moves\.default\.svc\.cluster\.local default\.svc\.cluster\.local svc\.cluster\.local cluster\.local/,
  );
  await service('other', { type: 'ExternalName', externalName: 'web.default.svc.cluster.local' });
  for (const at of ['web', 'web.default', 'web.default.svc'])
    assert.match(await a.sh.run(page(at)), /^\d+/m, `${a.name} to ${at}`);
  await eventually('the other name', async () => /^\d+/m.test(await a.sh.run(page('other'))));
  assert.ok((await b.sh.run('nslookup bee')).includes(b.address));
  assert.ok((await a.sh.run(`nslookup ${clusterIP}`)).includes('web.default.svc.cluster.local'));
  assert.ok((await a.sh.run(`nslookup ${b.address}`)).includes('bee.headless.default.svc.cluster.local'));
}

// S-1329: A guest that is not ready gets no connection of a Service; it does from when it is ready until it is not.
test('a Service gives its connections to guests that are ready', async () => {
  const [from, to] = await Promise.all([
    guest('asks'),
    guest('waits', { readinessProbe: { tcpSocket: { port: 9999 }, periodSeconds: 1, failureThreshold: 1 } }),
  ]);
  const { spec } = await service('slow', { selector: { guest: 'waits' }, ports: [{ port: 80, targetPort: 8080 }] });
  const straight = await from.sh.run(page(`${to.address}:8080`));
  assert.match(straight, /^\d+/m, 'it serves');
  await eventually('the name', async () => (await from.sh.run('nslookup slow')).includes(spec?.clusterIP ?? '-'));
  assert.match(await from.sh.run(`${page('slow')} 2>&1`), /refused/, 'it is not ready');
  await to.sh.run('(while :; do nc -l -p 9999 < /dev/null; done) > /dev/null 2>&1 & echo $! > /run/ready');
  await eventually('it is ready', async () => /^\d+/m.test(await from.sh.run(page('slow'))));
  await to.sh.run('kill $(cat /run/ready); killall nc');
  await eventually('it is not', async () => /refused/.test(await from.sh.run(`${page('slow')} 2>&1`)));
});
