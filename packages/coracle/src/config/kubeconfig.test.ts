import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import {
  contextEntries,
  editUserKubeconfig,
  mergeKubeconfig,
  parseRendered,
  renderKubeconfig,
  unmergeKubeconfig,
} from './kubeconfig.ts';

const access = { name: 'coracle', server: 'https://127.0.0.1:16443', ca: 'CA', user: { certificate: 'C', key: 'K' } };
const FOREIGN = `# mine
apiVersion: v1
kind: Config
clusters:
  - {name: work, cluster: {server: "https://work"}}
contexts:
  - {name: work, context: {cluster: work, user: me}}
users:
  - {name: me, user: {exec: {command: login}}}
current-context: work
preferences: {}
`;

test('renderKubeconfig() makes a usable file', () => {
  const config = parse(renderKubeconfig(access));
  assert.equal(config['current-context'], 'coracle');
  assert.equal(config.clusters[0].cluster.server, access.server);
  assert.equal(atob(config.users[0].user['client-key-data']), 'K');
});

// S-871: Commands read the kubeconfig that the control plane wrote without a YAML parser, as a parser would; every
//   other text goes to the parser.
test('parseRendered() reads what renderKubeconfig() made as a YAML parser does, and nothing else', () => {
  const users = [
    access.user,
    { token: 'T' },
    { token: 'a: "b" # c' },
    { token: 'true' },
    { certificate: '', key: '\u00fc\n' },
  ];
  for (const name of ['coracle', 'no', '1', 'a b', 'a"b', 'x:', 'name: y', ''])
    for (const user of users) {
      const text = renderKubeconfig({ ...access, name, user });
      assert.deepEqual(parseRendered(text), parse(text), text);
      const changes = [`${text}# more\n`, text.slice(0, -1), text.replace('server:', 'server: &a'), `---\n${text}`];
      for (const other of [...changes, text.replace('    cluster:\n', '    cluster:\n      proxy-url: x\n')])
        assert.equal(parseRendered(other), undefined, other);
    }
  for (const text of ['', 'x', FOREIGN, mergeKubeconfig(FOREIGN, access), 'server: "\n'])
    assert.equal(parseRendered(text), undefined);
});

test('mergeKubeconfig() adds a context and keeps the current one, comments and foreign entries', () => {
  const merged = mergeKubeconfig(FOREIGN, access);
  const config = parse(merged);
  assert.match(merged, /^# mine/);
  assert.equal(config['current-context'], 'work');
  assert.deepEqual(
    config.contexts.map((c: { name: string }) => c.name),
    ['work', 'coracle'],
  );
  assert.deepEqual(config.users[0].user, { exec: { command: 'login' } });
});

test('mergeKubeconfig() twice is the same as once, and sets the current context of an empty file', () => {
  const once = mergeKubeconfig('', access);
  assert.equal(mergeKubeconfig(once, access), once);
  assert.equal(parse(once)['current-context'], 'coracle');
});

test('unmergeKubeconfig() leaves what it did not bring', () => {
  const left = parse(unmergeKubeconfig(mergeKubeconfig(FOREIGN, access), access));
  assert.deepEqual(left, parse(FOREIGN));
});

test('unmergeKubeconfig() leaves the entries of another control plane that took the name', () => {
  const merged = mergeKubeconfig(FOREIGN, access);
  assert.equal(unmergeKubeconfig(merged, { name: 'coracle', server: 'https://127.0.0.1:1' }), merged);
  assert.equal(unmergeKubeconfig('', access), '');
});

test('unmergeKubeconfig() puts back what it replaced', () => {
  const first = mergeKubeconfig(FOREIGN, { ...access, server: 'https://127.0.0.1:1', user: { token: 'T' } });
  const replaced = contextEntries(first, 'coracle');
  assert.equal(replaced.server, 'https://127.0.0.1:1');
  assert.deepEqual(parse(unmergeKubeconfig(mergeKubeconfig(first, access), access, replaced)), parse(first));
  assert.deepEqual(contextEntries(FOREIGN, 'coracle'), { server: undefined, entries: [] });
});

test('mergeKubeconfig() refuses what is no kubeconfig', () => {
  assert.throws(() => mergeKubeconfig('- a\n- b\n', access), /not a map/);
  assert.throws(() => mergeKubeconfig('a: [', access), /not valid YAML/);
});

// S-091
test('editUserKubeconfig() writes 0600 and leaves the file alone when the edit throws', () => {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-'));
  try {
    const path = join(dir, 'sub', 'config');
    editUserKubeconfig(path, (text) => mergeKubeconfig(text, access));
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const before = readFileSync(path, 'utf8');
    assert.throws(() =>
      editUserKubeconfig(path, () => {
        throw new Error('no');
      }),
    );
    assert.equal(readFileSync(path, 'utf8'), before);
    writeFileSync(`${path}.lock`, '');
    assert.throws(() => editUserKubeconfig(path, (text) => text), /held by another program/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
