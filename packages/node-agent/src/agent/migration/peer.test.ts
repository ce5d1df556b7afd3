import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { duplexPair } from 'node:stream';
import { after, before, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { createAuthority, openAuthority } from '../../../../apiserver/src/auth/certificate-authority.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { NEVER } from '../../../../runtime/src/http/seam.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { createDeferred } from '../../../../runtime/src/signal/deferred.ts';
import { joinStreams } from '../../network/join-streams.ts';
import { connectPeer, type PeerIdentity, peerObstacle, usablePeer } from '../../network/peer.ts';
import { connectUnix } from '../../qmp/unix-socket.ts';
import { controlChannel, readHeader, writeHeader } from './channel.ts';
import { openPeerListener, type PeerListener } from './peer-listener.ts';
import { listenUnix } from './unix-listener.ts';

const clock = systemClock;
let ca: string;
const identities = new Map<string, PeerIdentity>();
const opened: { channel: string; socket: TLSSocket }[] = [];
let listener: PeerListener;

before(async () => {
  const pair = await createAuthority(clock);
  const other = await createAuthority(clock);
  ca = pair.certificate;
  const authority = await openAuthority(pair, clock);
  const otherAuthority = await openAuthority(other, clock);
  const issue = async (name: string, options: { from?: typeof authority; cn?: string; group?: string }) => {
    const made = await (options.from ?? authority).issue({
      commonName: options.cn ?? `system:node:${name}`,
      organizations: [options.group ?? 'system:nodes'],
      usage: 'client',
      days: 1,
    });
    identities.set(name, { pair: () => made, ca });
  };
  await issue('one', {});
  await issue('two', {});
  await issue('three', {});
  await issue('no-node', { cn: 'kubernetes-admin' });
  await issue('no-group', { cn: 'system:node:one', group: 'system:masters' });
  await issue('foreign', { from: otherAuthority, cn: 'system:node:one' });
  listener = await openPeerListener({
    host: '127.0.0.1',
    identity: identities.get('two')!,
    sourceNode: 'one',
    migration: 'm1',
    clock,
    log: silentLogger,
    onChannel: ({ channel }, socket) => void opened.push({ channel, socket }),
  });
});
after(() => listener.close());

const dial = (as: string, nodeName = 'two') =>
  connectPeer(
    { host: '127.0.0.1', port: listener.port, nodeName },
    { identity: identities.get(as)!, clock, signal: NEVER },
  );

// S-190: The ports of a migration are open for its source node only, and a source speaks to nobody but the node it was
//   given.
test('only the source node of the migration gets in, and only with its migration', { timeout: 60_000 }, async (t) => {
  const table: [string, string, boolean][] = [
    ['one', 'm1', true],
    ['one', 'm2', false],
    ['three', 'm1', false],
    ['no-node', 'm1', false],
    ['no-group', 'm1', false],
    ['foreign', 'm1', false],
  ];
  for (const [as, migration, allowed] of table)
    await t.test(`${as}, ${migration}`, async () => {
      const before = opened.length;
      const socket = await dial(as).catch(() => undefined);
      if (socket) {
        writeHeader(socket, { channel: 'memory', migration });
        socket.resume();
        if (allowed) while (opened.length === before) await clock.sleep(5, NEVER);
        else if (!socket.closed) await once(socket, 'close');
        socket.destroy();
      }
      assert.equal(opened.length - before, allowed ? 1 : 0);
      if (allowed) assert.ok(socket, 'connected');
    });
});

test('plain TCP gets nothing, and the listener is gone when it is closed', { timeout: 60_000 }, async () => {
  const socket = connectTcp(listener.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write('{"channel":"control","migration":"m1"}\n');
  socket.resume();
  await once(socket, 'close');
  assert.ok(!opened.some(({ channel }) => channel === 'control'));
});

// S-190
test('a source speaks to nobody but the node it was given', { timeout: 60_000 }, async () => {
  await assert.rejects(dial('one', 'three'), /is not node three: it is "system:node:two"/);
  const foreign: PeerIdentity = { ...identities.get('one')!, ca: (await createAuthority(clock)).certificate };
  await assert.rejects(
    connectPeer(
      { host: '127.0.0.1', port: listener.port, nodeName: 'two' },
      { identity: foreign, clock, signal: NEVER },
    ),
    /not of the CA of this cluster/,
  );
});

// S-284
test('while an authority is replaced, nodes of the old one and of the new one know each other', {
  timeout: 60_000,
}, async () => {
  const pairs = [await createAuthority(clock, 'ca@1'), await createAuthority(clock, 'ca@2')];
  const both = pairs.map(({ certificate }) => certificate).join('');
  const [older, newer] = await Promise.all(
    pairs.map(async (pair, at): Promise<PeerIdentity> => {
      const made = await (await openAuthority(pair, clock)).issue({
        commonName: `system:node:of-${at}`,
        organizations: ['system:nodes'],
        usage: 'client',
        days: 1,
      });
      return { pair: () => made, ca: both };
    }),
  );
  for (const [source, target, [from, to]] of [
    [older!, newer!, [0, 1]],
    [newer!, older!, [1, 0]],
  ] as const) {
    const heard = createDeferred<string>();
    const open = await openPeerListener({
      host: '127.0.0.1',
      identity: target,
      sourceNode: `of-${from}`,
      migration: 'm',
      clock,
      log: silentLogger,
      onChannel: ({ channel }) => heard.resolve(channel),
    });
    const address = { host: '127.0.0.1', port: open.port, nodeName: `of-${to}` };
    const socket = await connectPeer(address, { identity: source, clock, signal: NEVER });
    socket.on('close', () => heard.reject(new Error('the target hung up')));
    writeHeader(socket, { channel: 'memory', migration: 'm' });
    assert.equal(await heard.promise, 'memory');
    socket.destroy();
    const alone = { ...source, ca: pairs[from]!.certificate };
    await assert.rejects(
      connectPeer(address, { identity: alone, clock, signal: NEVER }),
      /not of the CA of this cluster/,
    );
    await open.close();
  }
});

// S-286
test('a node without a certificate, or with none that is good now, says so instead of connecting', () => {
  const identity = identities.get('one')!;
  assert.equal(peerObstacle(identity), undefined);
  assert.equal(usablePeer(identity), identity);
  assert.match(peerObstacle(undefined) ?? '', /has no certificate to prove its name to other nodes with$/);
  assert.throws(
    () => usablePeer({ ...identity, obstacle: () => 'it was refused' }),
    /other nodes with: it was refused$/,
  );
  assert.equal(peerObstacle({ ...identity, obstacle: () => undefined }), undefined);
});

test('readHeader() leaves what follows the first line; garbage and endless lines are refused', async () => {
  const [near, far] = duplexPair();
  near.write('{"channel":"memory","migration":"m1"}\nrest');
  assert.deepEqual(await readHeader(far, { clock }), { channel: 'memory', migration: 'm1' });
  assert.equal(String((await once(far.resume(), 'data'))[0]), 'rest');
  const [garbage, reader] = duplexPair();
  garbage.write('GET / HTTP/1.1\n');
  await assert.rejects(readHeader(reader, { clock }));
  const [endless, patient] = duplexPair();
  endless.write('x'.repeat(5000));
  await assert.rejects(readHeader(patient, { clock }), /too long/);
});

test('a control channel carries messages in order and ends on what is none', async () => {
  const [near, far] = duplexPair();
  const a = controlChannel<{ n: number }, { n: number }>(near);
  const b = controlChannel<{ n: number }, { n: number }>(far);
  a.send({ n: 1 });
  a.send({ n: 2 });
  assert.deepEqual([await b.next(), await b.next()], [{ n: 1 }, { n: 2 }]);
  const last = b.next();
  near.write('no json\n');
  assert.equal(await last, undefined);
  assert.equal(b.open, false);
});

test('joinStreams() holds back a fast writer and passes the end on behind the last byte', {
  timeout: 60_000,
}, async () => {
  const [source, left] = duplexPair();
  const [right, sink] = duplexPair();
  joinStreams(left, right);
  const block = Buffer.alloc(64 * 1024, 1);
  let written = 0;
  while (source.write(block)) written += block.length;
  await clock.sleep(20, NEVER);
  while (source.write(block)) written += block.length;
  assert.ok(written < 4 * 1024 * 1024, `${written} bytes are on their way to nobody`);
  source.end();
  let received = 0;
  for await (const chunk of sink) received += (chunk as Buffer).length;
  assert.ok(received > written);
});

test('listenUnix() works below a path that is longer than the kernel allows', async () => {
  const directory = await mkdtemp(joinPath(tmpdir(), `coracle-${'long-'.repeat(24)}`));
  try {
    const server = await listenUnix(directory, 'a.sock', (socket) => void socket.end('hello'));
    const socket = await connectUnix(joinPath(directory, 'a.sock'), { clock, timeoutMs: 1000, signal: NEVER });
    assert.equal(String((await once(socket, 'data'))[0]), 'hello');
    socket.destroy();
    await server.close();
  } finally {
    await rm(directory, { recursive: true });
  }
});
