/**
 * `coracle rbac` on a cluster that knows nothing of our agents: what it prints is all that `coracle controllers` and
 * `coracle node` need there, also to move a guest from one agent to another. The cluster is a server of ours without our
 * roles, behind a front that hides its make and has another CA: neither agent has a certificate of it.
 */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  EVENTS,
  LEASES,
  NODES,
  SECRETS,
  SERVICE_ACCOUNTS,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import { createAuthority, openAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { createClient } from '../../packages/client/src/create-client.ts';
import { chooseComponents } from '../../packages/coracle/src/compose/components.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachineInstanceMigration,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { createHttpsTransport } from '../../packages/runtime/src/http/https-transport.ts';
import { startTlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { createLogger } from '../../packages/runtime/src/log/log.ts';
import { openWorkspace, type Workspace } from '../cli/workspace.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';
import { heartbeat } from './migration-board.ts';

const why = whyNoGuests();
const KEY = { namespace: 'default', name: 'external' };
const NODE_NAMES = ['external-1', 'external-2'] as const;

/** Passes everything on but the version and what was refused, which is noted. */
async function foreignFront(t: TestContext, at: Workspace) {
  const file = parse(readFileSync(at.kubeconfig, 'utf8'));
  const behind = createHttpsTransport({
    server: file.clusters[0].cluster.server,
    ca: Buffer.from(file.clusters[0].cluster['certificate-authority-data'], 'base64').toString(),
  });
  const authority = await createAuthority(systemClock);
  const pair = await (await openAuthority(authority, systemClock)).issue({
    commonName: 'kube-apiserver',
    ipAddresses: ['127.0.0.1'],
    usage: 'server',
    days: 1,
  });
  const refused: string[] = [];
  const front = await startTlsServer({
    host: '127.0.0.1',
    port: 0,
    tls: pair,
    log: createLogger(() => {}, 'error'),
    handler: async (request) => {
      if (request.path === '/version')
        return {
          status: 200,
          headers: { 'content-type': 'application/json' },
          body: new TextEncoder().encode(JSON.stringify({ major: '1', minor: '36', gitVersion: 'v1.36.2' })),
        };
      const answer = await behind(request);
      if (answer.status === 401 || answer.status === 403)
        refused.push(`${answer.status} ${request.headers['user-agent']} ${request.method} ${request.path}`);
      return answer;
    },
  });
  t.after(async () => {
    await front.close();
    behind.close();
  });
  return { server: `https://127.0.0.1:${front.port}`, ca: authority.certificate, refused };
}

// S-240: What `coracle rbac` prints is what agents and controllers need on an external cluster, and no more.
// S-283: On an external cluster a guest moves between two agents that hold nothing but the rights that `coracle rbac`
//   prints.
test('what coracle rbac prints is what controllers and agents need on an external cluster', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  const chosen = ['vm', 'vmi', 'evacuation', 'migration', 'scheduler', 'peer-certificates'];
  const names = chosen.join();
  const up = await at.up('--controllers', `*,${chosen.map((name) => `-${name}`).join()}`);
  assert.equal(up.code, 0, up.stderr);
  const { client: admin, close } = adminOf(at.data);
  t.after(close);

  // An external cluster has none of this.
  for (const { account } of chooseComponents(names)) {
    const name = `coracle:${account.replace(/^coracle-/, '')}`;
    await admin.delete(SERVICE_ACCOUNTS, { namespace: 'kubevirt', name: account });
    await admin.delete(CLUSTER_ROLE_BINDINGS, { namespace: '', name });
    await admin.delete(CLUSTER_ROLES, { namespace: '', name });
  }
  await admin.delete(CLUSTER_ROLE_BINDINGS, { namespace: '', name: 'coracle:agent' });
  const front = await foreignFront(t, at);

  const printed = await at.run(['rbac', '--controllers', names]);
  assert.equal(printed.code, 0, printed.stderr);
  const applied = await at.kubectl(['apply', '-f', '-'], printed.stdout);
  assert.equal(applied.code, 0, applied.stderr);
  const applyAgain = async (): Promise<void> => {
    const again = await at.kubectl(['apply', '-f', '-'], printed.stdout);
    assert.ok(
      again.stdout
        .trim()
        .split('\n')
        .every((line) => line.endsWith(' unchanged')),
      again.stdout,
    );
  };

  /** The kubeconfig of exactly that account, from the command that was printed. */
  const kubeconfigOf = async (account: string): Promise<string> => {
    const command = printed.stderr.split('\n').find((line) => line.includes(`create token ${account} `)) ?? '';
    const words = command.slice(command.indexOf('kubectl ')).split(' ').slice(1);
    const made = await at.kubectl(words);
    assert.equal(made.code, 0, made.stderr);
    const path = join(at.dir, `${account}.kubeconfig`);
    const set = async (...argv: string[]): Promise<void> => {
      const outcome = await at.kubectl(['config', `--kubeconfig=${path}`, ...argv]);
      assert.equal(outcome.code, 0, outcome.stderr);
    };
    const caFile = join(at.dir, 'front-ca.crt');
    writeFileSync(caFile, front.ca);
    await set(
      'set-cluster',
      'foreign',
      `--server=${front.server}`,
      `--certificate-authority=${caFile}`,
      '--embed-certs',
    );
    await set('set-credentials', 'me', `--token=${made.stdout.trim()}`);
    await set('set-context', 'foreign', '--cluster=foreign', '--user=me');
    await set('use-context', 'foreign');
    return path;
  };
  const forControllers = await kubeconfigOf('coracle-controllers');
  const forNode = await kubeconfigOf('coracle-agent');

  const nodeDirs = NODE_NAMES.map((name) => join(at.dir, name));
  await Promise.all(nodeDirs.map((dir) => importTinyGuest(dir)));
  const controllers = at.start(['controllers', '--kubeconfig', forControllers, '--controllers', names]);
  await controllers.line(/^running vm, vmi, evacuation, migration, scheduler, peer-certificates against /);
  const agents = NODE_NAMES.map((name, place) =>
    at.start(['node', '--kubeconfig', forNode, '--data-dir', nodeDirs[place]!, '--name', name]),
  );
  await Promise.all(agents.map((agent, place) => agent.line(new RegExp(`^node ${NODE_NAMES[place]} is ready`))));
  for (const name of NODE_NAMES) {
    const { metadata } = await admin.get(NODES, { namespace: '', name });
    assert.equal(metadata.managedFields?.[0]?.manager, 'coracle-agent');
  }

  // S-318
  await t.test('a second process waits: each controller runs in one', async () => {
    const second = at.start(['controllers', '--kubeconfig', forControllers, '--controllers', names]);
    let waits = 0;
    second.child.stderr?.on('data', (text) => (waits += String(text).match(/ waits: /g)?.length ?? 0));
    await second.line(/^running /);
    const { items } = await eventually('the leases', async () => {
      const list = await admin.list(LEASES, { namespace: 'kubevirt' });
      return list.items.length === chosen.length ? list : undefined;
    });
    const holders = new Set(items.map(({ spec }) => spec?.holderIdentity));
    assert.equal(holders.size, 1);
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      chosen.map((name) => `coracle-${name}`).sort(),
    );
    await eventually('the second to see that', async () => (waits >= chosen.length ? true : undefined));
    second.child.kill('SIGTERM');
    assert.equal((await second.ended).code, 0);
    const after = await admin.list(LEASES, { namespace: 'kubevirt' });
    assert.deepEqual(new Set(after.items.map(({ spec }) => spec?.holderIdentity)), holders);
  });

  await admin.create(VIRTUAL_MACHINES, tinyVm(KEY.name));
  const instance = () => admin.get(VIRTUAL_MACHINE_INSTANCES, KEY);
  const before = await eventually('the guest to run, and to be able to move', async () => {
    const vmi = await instance();
    const { phase, conditions = [] } = vmi.status ?? {};
    const canMove = conditions.some(({ type, status }) => type === 'LiveMigratable' && status === 'True');
    return phase === 'Running' && canMove ? vmi : undefined;
  });
  const source = before.status?.nodeName;
  const beats = await heartbeat(before);
  await admin.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { ...KEY },
    spec: { vmiName: KEY.name },
  } as unknown as VirtualMachineInstanceMigration);
  const { status: outcome } = await eventually('the end of the migration', async () => {
    const found = await admin.get(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, KEY);
    return ['Succeeded', 'Failed'].includes(found.status?.phase ?? '') ? found : undefined;
  });
  assert.equal(outcome?.phase, 'Succeeded', JSON.stringify([outcome, (await instance()).status?.migrationState]));
  const moved = await instance();
  assert.deepEqual([source, moved.status?.nodeName].sort(), [...NODE_NAMES], 'it is on the other node');
  assert.ok((await heartbeat(moved)) > beats, 'another boot');
  for (const [place, dir] of nodeDirs.entries()) {
    const name = `node-${NODE_NAMES[place]}-peer`;
    assert.equal(statSync(join(dir, 'pki', `${name}.key`)).mode & 0o777, 0o600);
    const certificate = new X509Certificate(readFileSync(join(dir, 'pki', `${name}.crt`)));
    assert.match(certificate.issuer, /^CN=coracle-peer-ca@/);
  }
  const authority = { namespace: 'kubevirt', name: 'coracle-peer-ca' };
  const filled = await admin.get(SECRETS, authority);
  await applyAgain();
  assert.deepEqual((await admin.get(SECRETS, authority)).data, filled.data, 'what controllers fill stays');
  assert.deepEqual(Object.keys(filled.data ?? {}).sort(), ['tls.crt', 'tls.key']);

  await admin.delete(VIRTUAL_MACHINES, KEY);
  await eventually('the VM to go', async () => {
    const { items } = await admin.list(VIRTUAL_MACHINES, { namespace: 'default' });
    return items.length === 0 ? true : undefined;
  });
  await eventually('the events of all', async () => {
    const { items } = await admin.list(EVENTS, { namespace: 'default' });
    return items.some(({ reason }) => reason === 'Stopped') ? true : undefined;
  });
  assert.deepEqual(front.refused, [], 'nothing was asked for that the printed rights do not give');

  await t.test('the account that starts controllers may ask for their tokens, and nothing else', async () => {
    const { users } = parse(readFileSync(forControllers, 'utf8'));
    const transport = createHttpsTransport({ server: front.server, ca: front.ca });
    const starter = createClient(transport, { token: users[0].user.token });
    for (const path of ['/api/v1/pods', '/api/v1/namespaces/kube-system/secrets'])
      await assert.rejects(starter.raw('GET', path), /forbidden/);
    const ask = (account: string) =>
      starter.raw('POST', `/api/v1/namespaces/kubevirt/serviceaccounts/${account}/token`, {
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
      });
    await ask('coracle-vm');
    await assert.rejects(ask('coracle-agent'), /forbidden/);
    transport.close();
  });

  for (const one of [...agents, controllers]) {
    one.child.kill('SIGTERM');
    assert.equal((await one.ended).code, 0);
  }
});
