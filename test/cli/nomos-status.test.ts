/** `coracle nomos status`, `migrate` and `bugreport` against a server that syncs a repository, and one that is gone. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inflateRawSync } from 'node:zlib';
import { createRepository } from '../testkit/git-repository.ts';
import { openWorkspace } from './workspace.ts';

/** All that a zip file holds, as one text. */
function textOf(bytes: Buffer): string {
  const texts: string[] = [];
  for (let at = 0; bytes.readUInt32LE(at) === 0x04034b50; ) {
    const packed = bytes.readUInt32LE(at + 18);
    const start = at + 30 + bytes.readUInt16LE(at + 26) + bytes.readUInt16LE(at + 28);
    texts.push(
      bytes.toString('utf8', at + 30, start),
      inflateRawSync(bytes.subarray(start, start + packed)).toString(),
    );
    at = start + packed;
  }
  return texts.join('\n');
}

// S-945: `coracle nomos status --poll` follows a sync; `migrate` says that there is nothing to migrate; `bugreport`
//   holds syncs, inventories and events, and no credential.
test('nomos status follows a sync, migrate finds nothing to do, bugreport holds what there is and no secret', async (t) => {
  const at = openWorkspace(t);
  const repository = await createRepository();
  t.after(() => repository.remove());
  const commit = await repository.commit({
    'a.yaml': JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }),
  });
  assert.equal((await at.up()).code, 0);
  const nomos = (...argv: string[]) => at.run(['nomos', ...argv, '--kubeconfig', at.kubeconfig]);
  const watching = at.start(['nomos', 'status', '--poll', '500ms', '--kubeconfig', at.kubeconfig]);
  await watching.line(/^ {2}UNKNOWN$/m);
  const sync = (name: string, repo: string, auth: object) => ({
    apiVersion: 'configsync.gke.io/v1beta1',
    kind: 'RootSync',
    metadata: { name, namespace: 'config-management-system' },
    spec: { sourceFormat: 'unstructured', git: { repo, branch: 'main', period: '1s', ...auth } },
  });
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'git', namespace: 'config-management-system' },
    stringData: { username: 'u', token: 'hush-hush' },
  };
  const objects = [
    secret,
    sync('root-sync', repository.url, { auth: 'none' }),
    sync('other', 'https://u:hush-hush@127.0.0.1:1/x', { auth: 'token', secretRef: { name: 'git' } }),
  ];
  const made = await at.kubectl(
    ['apply', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
  );
  assert.equal(made.code, 0, made.stderr);
  await watching.line(new RegExp(String.raw`^ {2}SYNCED @ \S+ \S+ \+0000 UTC    ${commit}$`, 'm'));
  watching.child.kill('SIGINT');
  assert.equal((await watching.ended).code, 1);

  const [one, none, json, migrate, all] = await Promise.all([
    nomos('status', '--name', 'root-sync', '--resources=false', '--history'),
    nomos('status', '--namespace', 'default'),
    nomos('status', '--format', 'json'),
    nomos('migrate'),
    nomos('migrate', '--contexts', 'all'),
  ]);
  assert.match(one.stdout, /^Connecting to clusters\.\.\.\n\n\*\S+\n {2}-{20}\n {2}<root>:root-sync {4}file:/);
  assert.ok(!one.stdout.includes('Managed resources') && !one.stdout.includes('other'));
  assert.match(one.stdout, new RegExp(String.raw`\n  Last attempts:\n .*\n .* ${commit} +Synced\n$`));
  assert.match(none.stdout, /no RootSync or RepoSync resources found\n$/);
  const [cluster] = JSON.parse(json.stdout);
  const root = cluster.syncs.find(({ name }: { name: string }) => name === 'root-sync');
  assert.deepEqual([root.status, root.commit, root.resources[0].name], ['SYNCED', commit, 'configmap/a']);
  for (const { code, stdout } of [migrate, all])
    assert.deepEqual([code, /^\S+: nothing to migrate: .*\n$/.test(stdout)], [0, true], stdout);

  const { stdout: metrics } = await at.kubectl(['get', '--raw', '/metrics']);
  assert.match(
    metrics,
    new RegExp(`\nconfig_sync_declared_resources\\{.*name="root-sync".*,commit="${commit}"\\} 1\n`),
  );

  const reports = join(at.dir, 'reports');
  mkdirSync(reports);
  const report = await nomos('bugreport', '--output-dir', reports);
  assert.match(report.stdout, /^wrote \S+\/bug_report_\d+\.zip: \d+ files of 1 contexts\n$/, report.stderr);
  const held = textOf(readFileSync(join(reports, readdirSync(reports)[0]!)));
  for (const part of [
    '/RootSync-root-sync.yaml',
    '/ResourceGroup-root-sync.yaml',
    '/Event-root-sync',
    '/status.txt',
    commit,
  ])
    assert.ok(held.includes(part), part);
  assert.ok(!held.includes('hush-hush') && !held.includes(Buffer.from('hush-hush').toString('base64')));

  assert.equal((await at.run(['down', '--data-dir', at.data])).code, 0);
  const [gone, fails, wrong] = await Promise.all([
    nomos('status', '--timeout', '5s'),
    nomos('migrate'),
    nomos('status', '--format', 'yaml'),
  ]);
  assert.match(gone.stdout, /\n {2}N\/A\n {2}Error: {4}\S/);
  assert.deepEqual([fails.code, /^error: \S+: .*\n$/.test(fails.stderr)], [1, true]);
  assert.deepEqual([wrong.code, wrong.stderr], [1, 'error: --format takes text or json, not "yaml"\n']);
});
