/** `coracle identity`: UUIDs of older machines in manifests, the list of a server, and what the doctor says of it. */
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { legacyFirmwareUuid } from '../../packages/kubevirt/src/rules/identity/firmware-identity.ts';
import { openWorkspace } from './workspace.ts';

const vm = (name: string, firmware = ''): string => `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: ${name}}  # kept
spec:
  runStrategy: Halted
  template: {spec: {domain: {${firmware}devices: {}, memory: {guest: 64Mi}}}}
`;

test('identity', { timeout: 600_000 }, async (t) => {
  const at = openWorkspace(t);
  const path = (name: string, text: string): string => {
    writeFileSync(join(at.dir, name), text);
    return join(at.dir, name);
  };

  await t.test('pin prints manifests with the UUID of the name, or writes them in place', async () => {
    const [one, two] = [path('one.yaml', `---\n${vm('web')}---\n${vm('db')}`), path('two.yaml', vm('mail'))];
    chmodSync(two, 0o640);
    const printed = await at.run(['identity', 'pin', one, two]);
    assert.deepEqual([printed.code, printed.stderr.split('\n').length], [0, 3]);
    for (const name of ['web', 'db', 'mail']) assert.ok(printed.stdout.includes(legacyFirmwareUuid(name)), name);
    assert.equal(printed.stdout.match(/# kept/g)?.length, 3);
    assert.equal(printed.stdout.match(/^---$/gm)?.length, 3);
    assert.equal(readFileSync(two, 'utf8'), vm('mail'), 'only printed');

    const written = await at.run(['identity', 'pin', '-i', two]);
    assert.deepEqual([written.code, written.stdout], [0, '']);
    assert.ok(readFileSync(two, 'utf8').includes(legacyFirmwareUuid('mail')));
    assert.equal(statSync(two).mode & 0o777, 0o640);
  });

  // S-618
  await t.test('pin refuses bad input in one line and writes nothing', async () => {
    const good = path('good.yaml', vm('web'));
    for (const [bad, words] of [
      [path('bad.yaml', 'kind: ['), /is not valid YAML/],
      [join(at.dir, 'missing.yaml'), /cannot read/],
      [path('text.yaml', 'hello'), /holds a document that is not an object/],
    ] as const) {
      const outcome = await at.run(['identity', 'pin', '-i', good, bad]);
      assert.equal(outcome.code, 1);
      assert.match(outcome.stderr, /^error: [^\n]+\n$/);
      assert.match(outcome.stderr, words);
      assert.equal(readFileSync(good, 'utf8'), vm('web'));
    }
    assert.equal((await at.run(['identity', 'pin'])).code, 1);
    assert.equal((await at.run(['identity', 'pin', '-i', '-'])).code, 1);
  });

  // S-617
  await t.test('audit lists what a server has, and the doctor who shares a UUID', async () => {
    assert.equal((await at.up()).code, 0);
    const uuid = '5d307ca9-b3ef-428c-8861-06e72d69f223';
    const manifests = ['a', 'b'].map((name) => vm(name, `firmware: {uuid: ${uuid}}, `)).concat(vm('c'));
    const created = await at.kubectl(['create', '-f', '-'], manifests.join('---\n'));
    assert.equal(created.code, 0, created.stderr);
    assert.match(created.stderr, /Warning: .*firmware UUID 5d307ca9-\S+ is also that of VirtualMachine a/);
    // A machine of an older manifest, pinned: its UUID is the one of its name.
    const pinned = await at.run(['identity', 'pin', path('old.yaml', vm('old'))]);
    assert.equal((await at.kubectl(['apply', '-f', '-'], pinned.stdout)).code, 0);

    const audit = async (...more: string[]) => at.run(['identity', 'audit', '--data-dir', at.data, ...more]);
    const { items } = JSON.parse((await audit('-o', 'json')).stdout);
    const of = (name: string) => items.find((item: { name: string }) => item.name === name);
    assert.deepEqual(
      ['a', 'b', 'c', 'old'].map((name) => [of(name).origin, of(name).sharedWith.length]),
      [
        ['Given', 1],
        ['Given', 1],
        ['Generated', 0],
        ['Given', 0],
      ],
    );
    assert.equal(of('old').uuid, legacyFirmwareUuid('old'));
    const table = (await audit()).stdout;
    assert.match(table, /^NAMESPACE +KIND +NAME +UUID +ORIGIN +NOTE\n/);
    assert.match(table, /^default +VirtualMachine +a +5d307ca9-\S+ +Given +shared with VirtualMachine default\/b$/m);
    assert.equal((await audit('-o', 'yaml')).code, 1);

    const backup = join(at.dir, 'backup');
    const made = await at.run(['backup', 'create', backup, '--data-dir', at.data]);
    assert.equal(made.code, 0, made.stderr);
    const kept = await at.run(['identity', 'audit', '--backup', backup, '-o', 'json']);
    assert.deepEqual(JSON.parse(kept.stdout).items, items, 'a backup is listed as its server was');
    assert.equal((await at.run(['backup', 'verify', backup])).code, 0, 'and left as it was');
    const none = await at.run(['identity', 'audit', '--backup', at.dir]);
    assert.deepEqual([none.code, /^error: [^\n]+\n$/.test(none.stderr)], [1, true]);

    const doctor = await at.run(['doctor', '--data-dir', at.data, '--json']);
    const finding = JSON.parse(doctor.stdout).find(({ check }: { check: string }) => check === 'firmware UUIDs');
    assert.equal(finding.verdict, 'WARN');
    assert.match(finding.detail, /^5d307ca9-\S+ is that of VirtualMachine default\/a and VirtualMachine default\/b$/);
    assert.match(finding.remedy, /kubectl patch vm/);
  });
});
