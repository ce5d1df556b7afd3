/** `coracle token` and `coracle node join`: an agent in a process and directory of its own becomes a node. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { NODES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { openWorkspace } from './workspace.ts';

// S-200: An agent joins by a bootstrap token, which it needs no more at the next start; the address it was given to be
//   served on is remembered.
// S-295: A second agent of a node's name neither starts nor writes while the first is Ready.
test('a token lets an agent join, which needs it no more at the next start', { timeout: 600_000 }, async (t) => {
  const at = openWorkspace(t);
  const up = await at.up();
  assert.equal(up.code, 0, up.stderr);
  const made = await at.run(['token', 'create', '--data-dir', at.data, '--ttl', '5m', '--json']);
  assert.equal(made.code, 0, made.stderr);
  const { token, server, caHash, join: printed } = JSON.parse(made.stdout);
  assert.equal(printed, `coracle node join --server ${server} --token ${token} --ca-hash ${caHash}`);

  const dir = join(at.dir, 'edge');
  const place = ['--data-dir', dir, '--name', 'edge'];
  const words = printed.split(' ').slice(1);
  const agent = at.start([...words, ...place, '--address', '127.0.0.2']);
  await agent.line(/^node edge is ready/);
  const admin = adminOf(at.data);
  t.after(() => admin.close());
  const node = () => admin.client.get(NODES, { namespace: '', name: 'edge' });
  const first = await node();
  assert.equal(first.status?.conditions?.find(({ type }) => type === 'Ready')?.status, 'True');
  const servedAt = (found: typeof first) => found.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
  assert.equal(servedAt(first), '127.0.0.2');
  // A second agent of that name would end the guests of the first one: its token gets no certificate of a node that exists.
  const twin = at.start([...words, '--data-dir', join(at.dir, 'twin'), '--name', 'edge']);
  await eventually(async () =>
    /^certificate request csr-\S+ of node edge waits: kubectl certificate approve csr-\S+$/m.test(twin.stderr()),
  );
  twin.child.kill('SIGKILL');
  agent.child.kill('SIGTERM');
  assert.equal((await agent.ended).code, 0);

  const listed = await at.run(['token', 'list', '--data-dir', at.data]);
  assert.match(listed.stdout, new RegExp(`^${token.slice(0, 6)}  20`));
  assert.ok(!listed.stdout.includes(token), 'the secret half is shown once');
  const deleted = await at.run(['token', 'delete', token.slice(0, 6), '--json', '--data-dir', at.data]);
  assert.deepEqual([deleted.code, JSON.parse(deleted.stdout)], [0, { deleted: token.slice(0, 6) }]);
  assert.match((await at.run(['token', 'delete', token.slice(0, 6), '--data-dir', at.data])).stderr, /no token/);

  // The certificate of its own is enough, and both addresses and the CA are written down.
  const again = at.start(['node', 'join', '--data-dir', dir]);
  await again.line(/^node edge is ready/);
  assert.equal((await node()).metadata.uid, first.metadata.uid);
  assert.equal(servedAt(await node()), '127.0.0.2');
  again.child.kill('SIGTERM');
  await again.ended;

  const other = ['node', 'join', '--server', server, '--data-dir', join(at.dir, 'other')];
  const refusals: readonly [readonly string[], number, RegExp][] = [
    [['node', 'join', '--data-dir', join(at.dir, 'other')], 1, /--server URL and --token T/],
    [[...other, '--token', token], 1, /--ca-hash HASH or --ca FILE/],
    [
      [...other, '--token', token, '--ca-hash', `sha256:${'0'.repeat(64)}`],
      1,
      /another cluster, or the connection is intercepted/,
    ],
    [[...other, '--token', 'nonsense', '--ca-hash', caHash], 1, /a token is six and sixteen/],
    [[...other, '--ca-hash', caHash], 1, /needs --token/],
    [[...other, '--token', token, '--ca-hash', caHash], 1, /Unauthorized/],
    [['node', 'leave'], 1, /takes join or nothing/],
    [['token', 'make'], 1, /create \| list \| delete ID/],
    [['token', 'create', '--ttl', 'soon'], 1, /--ttl takes a time/],
  ];
  for (const [argv, code, message] of refusals) {
    const outcome = await at.run(argv);
    assert.equal(outcome.code, code, `${argv.join(' ')}: ${outcome.stderr}`);
    assert.match(outcome.stderr, message);
    assert.equal(outcome.stderr.trim().split('\n').length, 1, outcome.stderr);
  }
});
