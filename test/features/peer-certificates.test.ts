/**
 * Certificates by which agents know each other on an external cluster: the controller that signs them and the
 * agents that ask, each with the rights that `coracle rbac` prints and no other. The API server is in this process.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, before, test } from 'node:test';
import { decodeBase64, encodeBase64 } from '../../packages/apimachinery/src/meta/base64.ts';
import { SECRETS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { createAuthority, createSigningRequest } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { createClient } from '../../packages/client/src/create-client.ts';
import { agentManifests, controllerManifests } from '../../packages/coracle/src/compose/component-policy.ts';
import { AGENT_ACCOUNT, EXTERNAL_COMPONENTS, runComponent } from '../../packages/coracle/src/compose/components.ts';
import { type KeptPeerIdentity, keepPeerIdentity } from '../../packages/coracle/src/compose/peer-identity.ts';
import type { Manifest } from '../../packages/coracle/src/compose/policy-manifest.ts';
import { mintThrough } from '../../packages/coracle/src/compose/remote-components.ts';
import type { KeyPairPem } from '../../packages/coracle/src/config/pki.ts';
import { PEER_AUTHORITY, PEER_SIGNER } from '../../packages/kube-controllers/src/certificates/peer-authority.ts';
import { createFakeClock, type FakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';

const CSR = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const SPACE = '/api/v1/namespaces/kubevirt';
const SECRET = `${SPACE}/secrets/${PEER_AUTHORITY}`;
const LIST = `${SPACE}/configmaps/${PEER_AUTHORITY}`;
const [COMPONENT] = EXTERNAL_COMPONENTS;
const USAGES = ['digital signature', 'client auth'];
const BY_HAND = { status: { conditions: [{ type: 'Approved', status: 'True', reason: 'ByHand' }] } };
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let world: TestPlane;
/** Of controllers and agents: years go by. The API server has the real one. */
let clock: FakeClock;
let agent: Client;
const stop = new AbortController();
const running: Promise<void>[] = [];
const agents: KeptPeerIdentity[] = [];
const files = new Map<string, KeyPairPem>();

before(async () => {
  clock = createFakeClock(Date.now());
  world = await startPlane();
  for (const manifest of [...controllerManifests(EXTERNAL_COMPONENTS), ...agentManifests()]) await apply(manifest);
  for (const name of ['n1', 'n2'])
    await world.admin('POST /api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  agent = world.plane.clientFor(AGENT_ACCOUNT);
});
after(async () => {
  await Promise.all(agents.map((one) => one.close()));
  stop.abort();
  await Promise.all(running);
  await world.stop();
});

async function apply(manifest: Manifest): Promise<void> {
  const { metadata, kind, apiVersion } = manifest as Manifest & { metadata: { namespace?: string } };
  const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
  const place = metadata.namespace === undefined ? root : `${root}/namespaces/${metadata.namespace}`;
  const { status } = await world.ask(`POST ${place}/${kind.toLowerCase().replace(/policy$/, 'policie')}s`, {
    as: ['admin', 'system:masters'],
    body: manifest,
  });
  assert.ok(status === 201 || status === 409, `${kind}: ${status}`);
}
const empty = (kind: string): Manifest =>
  controllerManifests(EXTERNAL_COMPONENTS).find((one) => one.kind === kind) as Manifest;

/** Time goes on until it is so. */
async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  stepMs = 100,
): Promise<T> {
  for (let i = 0; i < 3000; i++) {
    const found = await look();
    if (found !== undefined) return found;
    await clock.advance(stepMs);
    await new Promise((next) => setTimeout(next, 2));
  }
  throw new Error(`looked 3000 times, ${stepMs} ms apart: ${what}`);
}
const run = (client: Client): void =>
  void running.push(
    runComponent({
      component: COMPONENT!,
      client,
      facts: { rootCa: '' },
      clock,
      log: silentLogger,
      signal: stop.signal,
    }),
  );
const text = (base64: string): string => new TextDecoder().decode(decodeBase64(base64));
const published = async (): Promise<string[]> =>
  ((await world.admin(`GET ${LIST}`)).data?.['ca-bundle'] ?? '').match(
    /-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n/g,
  ) ?? [];
const authority = async () => (await world.admin(`GET ${SECRET}`)).data as Record<string, string> | undefined;
const signing = async (): Promise<string> => text((await authority())?.['tls.crt'] ?? '');
const isOf = (certificate: string, ca: string): boolean =>
  new X509Certificate(certificate).verify(new X509Certificate(ca).publicKey);

interface Ask {
  readonly cn?: string;
  readonly organizations?: readonly string[];
  readonly spec?: object;
  readonly token?: string;
  readonly as?: readonly [string, ...string[]];
}
async function post(name: string, { cn = 'system:node:n1', organizations = ['system:nodes'], spec, token, as }: Ask) {
  const { request } = await createSigningRequest({ commonName: cn, organizations });
  const body = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: encodeBase64(new TextEncoder().encode(request)),
      signerName: PEER_SIGNER,
      usages: USAGES,
      ...spec,
    },
  };
  const answer = await world.ask(`POST ${CSR}`, {
    body,
    ...(as && { as }),
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
  });
  assert.equal(answer.status, 201, JSON.stringify(answer.json));
}
const settled = (name: string) =>
  eventually(`${name} is decided`, async () => {
    const { status } = await world.admin(`GET ${CSR}/${name}`);
    const decision = (status?.conditions ?? []).find(({ type }: { type: string }) => type !== 'Approved');
    return status?.certificate || decision ? { certificate: status.certificate, decision } : undefined;
  });
interface Held {
  readonly metadata: { readonly name: string; readonly generateName?: string };
  readonly status?: { readonly certificate?: string; readonly conditions?: readonly { readonly type: string }[] };
}
const isDenial = ({ type }: { readonly type: string }): boolean => type === 'Denied';
const tokenOfNode = async (name: string): Promise<string> => {
  const { metadata } = await world.admin(`GET /api/v1/nodes/${name}`);
  return (await mintThrough(agent, AGENT_ACCOUNT, { bound: { name, uid: metadata.uid } })()).token;
};

/** An agent as `coracle node` runs it, over this server. */
function startAgent(nodeName: string, { bound = true } = {}): KeptPeerIdentity {
  const kept = keepPeerIdentity({
    nodeName,
    client: agent,
    connectBound: async (node, signal) => {
      const { token } = await mintThrough(agent, AGENT_ACCOUNT, { ...(bound && { bound: node }), signal })();
      return { client: createClient(world.plane.handler, { token }), close: async () => {} };
    },
    pairs: { read: (name) => files.get(name), write: (name, pair) => void files.set(name, pair) },
    clock,
    log: silentLogger,
    signal: stop.signal,
  });
  agents.push(kept);
  return kept;
}
const isReady = (kept: KeptPeerIdentity) =>
  eventually('the agent has its certificate', () => (kept.identity.obstacle?.() === undefined ? true : undefined));

// S-286
test('an agent says what it waits for: the node, the authority, the controllers', async () => {
  const early = startAgent('n1');
  await eventually('no authority', () =>
    /names no authority/.test(early.identity.obstacle?.() ?? '') ? true : undefined,
  );
  assert.throws(() => early.identity.pair(), /names no authority/);
  await early.close();
  // For later: what is approved before any controller has seen it.
  await post('by-hand', { as: ['admin', 'system:masters'] });
  await world.admin(`PATCH ${CSR}/by-hand/approval`, BY_HAND);
});

// S-284
test('of two controllers that make the authority at the same moment one does, and the other takes it', async () => {
  const arrived: (() => void)[] = [];
  const outcomes: string[] = [];
  const racing = async (): Promise<Client> => {
    const client = world.plane.clientFor(COMPONENT!.account);
    return new Proxy(client, {
      get(target, property) {
        const value = Reflect.get(target, property) as unknown;
        if (property !== 'update' || outcomes.length >= 2) return value;
        return async (...args: Parameters<Client['update']>) => {
          if (args[0] !== (SECRETS as unknown)) return target.update(...args);
          // Neither writes before both are about to.
          await new Promise<void>((go) => {
            arrived.push(go);
            if (arrived.length === 2) for (const one of arrived) one();
          });
          try {
            const written = await target.update(...args);
            outcomes.push('written');
            return written;
          } catch (error) {
            outcomes.push((error as { reason?: string }).reason ?? String(error));
            throw error;
          }
        };
      },
    });
  };
  run(await racing());
  run(await racing());
  const list = await eventually('the list', async () => ((await published()).length > 0 ? published() : undefined));
  assert.deepEqual(outcomes.sort(), ['Conflict', 'written']);
  assert.deepEqual(list, [await signing()]);
  const { ca, subject, validTo } = new X509Certificate(list[0]!);
  assert.ok(ca);
  assert.match(subject, /^CN=coracle-peer-ca@\d+$/);
  assert.ok(Math.abs(Date.parse(validTo) - clock.now() - 90 * DAY) < HOUR);
});

// S-285
test('an agent gets a certificate of its own node and keeps it; the next start takes it from the file', async () => {
  const kept = startAgent('n1');
  let changes = 0;
  kept.identity.onChange?.(() => changes++);
  await isReady(kept);
  await eventually('it is reported', () => (changes > 0 ? true : undefined));
  const { certificate } = kept.identity.pair();
  const parsed = new X509Certificate(certificate);
  assert.equal(parsed.subject, 'O=system:nodes\nCN=system:node:n1');
  assert.deepEqual(parsed.keyUsage, ['1.3.6.1.5.5.7.3.2']);
  assert.ok(isOf(certificate, await signing()));
  assert.equal(kept.identity.ca, await signing());
  assert.ok(Math.abs(Date.parse(parsed.validTo) - clock.now() - DAY) < HOUR, 'a day');
  const { items } = await world.admin(`GET ${CSR}`);
  const made = items.find(({ metadata }: Held) => metadata.generateName);
  assert.equal(made.spec.username, `system:serviceaccount:kubevirt:${AGENT_ACCOUNT}`);
  assert.deepEqual(made.spec.extra['authentication.kubernetes.io/node-name'], ['n1']);
  assert.ok(!JSON.stringify(items).includes(encodeBase64(new TextEncoder().encode('PRIVATE KEY')).slice(0, 12)));
  await kept.close();
  const again = startAgent('n1');
  await again.looked;
  assert.equal(again.identity.obstacle?.(), undefined, 'at once');
  assert.equal(again.identity.pair().certificate, certificate);
  assert.equal((await world.admin(`GET ${CSR}`)).items.length, items.length, 'nothing was asked for');
  await again.close();
});

// S-285
test('who asks for what is not theirs is denied, with the reason; what was approved by hand fails', async () => {
  const [one, none] = [await tokenOfNode('n1'), (await mintThrough(agent, AGENT_ACCOUNT)()).token];
  for (const [name, ask, reason] of [
    ['other-node', { token: one, cn: 'system:node:n2' }, 'RequesterIsAnotherNode'],
    ['no-claim', { token: none }, 'RequesterNamesNoNode'],
    ['kubelet', { as: ['system:node:n2', 'system:nodes'] }, 'RequesterIsAnotherNode'],
    ['admin', { as: ['admin', 'system:masters'] }, 'RequesterIsNoAgent'],
    ['no-node', { token: one, cn: 'admin' }, 'NotAPeerRequest'],
    ['masters', { token: one, organizations: ['system:masters'] }, 'NotAPeerRequest'],
    ['server', { token: one, spec: { usages: ['digital signature', 'server auth'] } }, 'NotAPeerRequest'],
  ] as const) {
    await post(name, ask as Ask);
    const { certificate, decision } = await settled(name);
    assert.deepEqual([certificate, decision.type, decision.reason], [undefined, 'Denied', reason], name);
    assert.ok(decision.message);
  }
  files.delete('node-n2-peer');
  const unbound = startAgent('n2', { bound: false });
  await eventually('the agent says so', () =>
    /was refused: all agents are system:serviceaccount:kubevirt:coracle-agent: the token must be bound to Node n2/.test(
      unbound.identity.obstacle?.() ?? '',
    )
      ? true
      : undefined,
  );
  await unbound.close();
  await post('self', { as: ['system:node:n2', 'system:nodes'], cn: 'system:node:n2' });
  const own = await settled('self');
  assert.match(new X509Certificate(decodeBase64(own.certificate)).subject, /CN=system:node:n2$/);
  await post('long', { token: one, spec: { expirationSeconds: 30 * 86_400 } });
  const long = new X509Certificate(decodeBase64((await settled('long')).certificate));
  assert.ok(Date.parse(long.validTo) <= clock.now() + DAY, 'no longer than a day');
});

// S-285
test('requests to other signers are not touched; to its own, the rule holds whoever has approved', async () => {
  await post('foreign', { token: await tokenOfNode('n1'), spec: { signerName: 'example.com/other' } });
  await world.admin(`PATCH ${CSR}/foreign/approval`, BY_HAND);
  const { certificate, decision } = await settled('by-hand');
  assert.deepEqual([certificate, decision.type], [undefined, 'Failed']);
  assert.match(decision.message, /^admin is neither a node nor/);
  await clock.advance(HOUR);
  const { status } = await world.admin(`GET ${CSR}/foreign`);
  assert.deepEqual([status.certificate, status.conditions.length], [undefined, 1]);
});

// S-285
test('the component may do this and nothing more', async () => {
  const asked = `POST ${SPACE}/serviceaccounts/${COMPONENT!.account}/token`;
  const { token } = (await world.admin(asked, { spec: {} })).status;
  const ask = async (line: string, body?: unknown): Promise<number> =>
    (await world.ask(line, { headers: { authorization: `Bearer ${token}` }, ...(body !== undefined && { body }) }))
      .status;
  assert.equal(await ask(`GET ${SPACE}/secrets?fieldSelector=metadata.name%3D${PEER_AUTHORITY}`), 200);
  for (const [line, body] of [
    [`GET ${SPACE}/secrets`],
    [`GET ${SPACE}/secrets?fieldSelector=metadata.name%3Dother`],
    [`GET /api/v1/secrets?fieldSelector=metadata.name%3D${PEER_AUTHORITY}`],
    [`GET /api/v1/namespaces/default/secrets/${PEER_AUTHORITY}`],
    [`POST ${SPACE}/secrets`, empty('Secret')],
    [`POST ${SPACE}/configmaps`, empty('ConfigMap')],
    [`DELETE ${SECRET}`],
    [`POST ${CSR}`, {}],
    [`DELETE ${CSR}/foreign`],
    [`GET /api/v1/pods`],
  ] as const)
    assert.equal(await ask(line, body), 403, line);
  const foreign = await world.admin(`GET ${CSR}/foreign`);
  for (const part of ['approval', 'status'] as const) {
    const status = part === 'status' ? { ...foreign.status, certificate: 'eA==' } : { conditions: [] };
    assert.equal(await ask(`PUT ${CSR}/foreign/${part}`, { ...foreign, status }), 403, part);
  }
});

// S-284
test('the authority is replaced before it ends: published first, then signing; nobody is without a certificate', async () => {
  const kept = startAgent('n2');
  await isReady(kept);
  const old = await signing();
  const { validTo } = new X509Certificate(old);
  await clock.advance(Date.parse(validTo) - 30 * DAY - clock.now() - 60_000);
  await eventually('the next one is made', async () => (await authority())?.['next.crt'], 10_000);
  // Time stands still until all have seen it.
  const both = await eventually(
    'two in the list',
    async () => ((await published()).length === 2 ? published() : undefined),
    0,
  );
  assert.deepEqual([both[0], await signing()], [old, old], 'the old one signs on');
  await eventually('the agent has both', () => (kept.identity.ca === both.join('') ? true : undefined), 1000);
  await isReady(kept);
  const before = kept.identity.pair().certificate;
  assert.ok(isOf(before, old));

  await clock.advance(HOUR + 60_000);
  await eventually('the next one signs', async () => ((await signing()) === both[1] ? true : undefined), 60_000);
  assert.deepEqual(Object.keys((await authority()) ?? {}).sort(), ['tls.crt', 'tls.key'], 'the old key is gone');
  assert.deepEqual((await published()).sort(), [...both].sort(), 'who has a certificate of the old one is still known');
  assert.equal(kept.identity.obstacle?.(), undefined);
  await clock.advance(DAY * 0.8);
  await eventually(
    'a certificate of the new one',
    () => (isOf(kept.identity.pair().certificate, both[1]!) ? true : undefined),
    1000,
  );
  await clock.advance(30 * DAY);
  await eventually(
    'the old one is forgotten',
    async () => ((await published()).includes(old) ? undefined : true),
    HOUR,
  );
  await isReady(kept);
  await kept.close();
});

// S-284
test('a Secret that is gone or garbled is filled anew; the certificates of before are good until they end', async (t) => {
  const kept = startAgent('n1');
  await isReady(kept);
  const { certificate } = kept.identity.pair();
  /** The one request of an agent that has not been signed. */
  const waiting = async (): Promise<Held | undefined> => {
    const { items } = await world.admin(`GET ${CSR}`);
    const found = items.filter(
      ({ metadata, status }: Held) =>
        metadata.generateName !== undefined && !status?.certificate && !status?.conditions?.some(isDenial),
    );
    assert.ok(found.length <= 1, `${found.length} requests wait`);
    return found[0];
  };
  await t.test('gone', async () => {
    const lost = await signing();
    await world.admin(`DELETE ${SECRET}`);
    const token = await tokenOfNode('n1');
    await post('waits', { token });
    await eventually('it is approved', async () => (await world.admin(`GET ${CSR}/waits`)).status?.conditions);
    files.delete('node-n2-peer');
    const second = startAgent('n2');
    const { metadata } = await eventually('the request of an agent', async () => waiting());
    for (let minute = 0; minute < 15; minute++) {
      await clock.advance(60_000);
      await new Promise((next) => setTimeout(next, 2));
    }
    assert.match(second.identity.obstacle?.() ?? '', /waits for coracle controllers to sign it/);
    assert.equal((await waiting())?.metadata.name, metadata.name, 'it asks once');
    assert.equal((await world.admin(`GET ${CSR}/waits`)).status.certificate, undefined, 'nothing to sign with');
    await apply(empty('Secret'));
    const { certificate: signed } = await settled('waits');
    const made = await signing();
    assert.notEqual(made, lost);
    assert.ok(isOf(text(signed), made));
    await isReady(second);
    await second.close();
    assert.deepEqual((await published()).slice(0, 2), [made, lost]);
    await eventually('the agent knows both', () => (kept.identity.ca.includes(made) ? true : undefined));
    assert.equal(kept.identity.pair().certificate, certificate, 'the one of before');
  });
  for (const [name, garble] of [
    ['garbled', async () => ({ 'tls.crt': 'eA==' })],
    [
      'with the key of another',
      async () => {
        const { key } = await createAuthority(clock);
        return { 'tls.key': encodeBase64(new TextEncoder().encode(key)) };
      },
    ],
  ] as const)
    await t.test(name, async () => {
      const lost = await signing();
      await world.admin(`PATCH ${SECRET}`, { data: await garble() });
      const made = await eventually('another', async () => {
        const found = await signing();
        return found.startsWith('-----') && found !== lost ? found : undefined;
      });
      await eventually('it is published', async () => ((await published())[0] === made ? true : undefined));
      await post(`after-${name.replaceAll(' ', '-')}`, { token: await tokenOfNode('n1') });
      const { certificate: signed } = await settled(`after-${name.replaceAll(' ', '-')}`);
      assert.ok(isOf(text(signed), made));
    });
  await t.test('and when the list goes as well, nobody of before is believed, and agents ask anew', async () => {
    await world.admin(`DELETE ${SECRET}`);
    await world.admin(`DELETE ${LIST}`);
    await clock.advance(60_000);
    await eventually('an obstacle', () => kept.identity.obstacle?.());
    await apply(empty('Secret'));
    await apply(empty('ConfigMap'));
    await isReady(kept);
    assert.notEqual(kept.identity.pair().certificate, certificate);
    assert.deepEqual(await published(), [await signing()]);
  });
  await kept.close();
});
