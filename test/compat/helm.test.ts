/** The real helm, 4 and 3, against a running server: what people do with a release, and how it must end. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { CONFIG_MAPS, ENDPOINT_SLICES, SECRETS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf, type ControlPlaneProcess, createNamespace, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, whyNoGuests } from '../testkit/tiny-guest.ts';
import { writeCharts } from './helm-charts.ts';
import { findHelms, type Helm } from './helm-programs.ts';
import { type Outcome, runKubectl } from './kubectl.ts';

/** The newest; those before it where `helm-older.test.ts` asks for them. */
const helms = process.env['CORACLE_HELMS'] === 'older' ? findHelms().slice(1) : findHelms().slice(0, 1);
const noGuests = whyNoGuests();

let folder = '';
let controlPlane: ControlPlaneProcess | undefined;
let admin: ReturnType<typeof adminOf>;

before(async () => {
  if (helms.length === 0) return;
  folder = mkdtempSync(join(tmpdir(), 'coracle-helm-'));
  writeCharts(folder);
  const data = join(folder, 'data');
  controlPlane = await startProcess(data, { nodes: noGuests === undefined ? 1 : 0 });
  if (noGuests === undefined) await importTinyGuest(data);
  admin = adminOf(data);
});
after(async () => {
  await admin?.close();
  await controlPlane?.kill('SIGTERM');
  if (folder !== '') rmSync(folder, { recursive: true, force: true });
});

const namespaceOf = (name: string): Promise<string> => createNamespace(admin.client, name);

const skip = helms.length === 0 && 'there is no helm on PATH, and set-up could fetch none';

/** What a run of helm answered; fails the test when it did not end as it must. */
type Run = (line: string, wanted?: { readonly fails?: RegExp; readonly driver?: string }) => Promise<Outcome>;

const runner =
  (helm: Helm, namespace: string): Run =>
  async (line, { fails, driver } = {}) => {
    const env = {
      HOME: join(folder, 'home'),
      PATH: process.env['PATH'] ?? '',
      KUBECONFIG: join(folder, 'data', 'kubeconfig'),
      ...(driver !== undefined && { HELM_DRIVER: driver }),
    };
    const args = [`--namespace=${namespace}`, ...line.split(' ')];
    const outcome = await runKubectl({ path: helm.path, minor: 0 }, args, { env, cwd: folder });
    const shown = `$ helm ${line}\n${outcome.stdout}${outcome.stderr}[exit ${outcome.code}]`;
    if (fails === undefined) assert.equal(outcome.code, 0, shown);
    else {
      assert.equal(outcome.code, 1, shown);
      assert.match(outcome.stderr, fails, shown);
    }
    return outcome;
  };

const namesOf = (items: readonly { readonly metadata: { readonly name?: string } }[]): string[] =>
  items.map(({ metadata }) => metadata.name ?? '').sort();

for (const helm of helms.length === 0 ? [{ path: '', major: 4 }] : helms) {
  suite(`helm ${helm.major}`, { skip }, () => {
    const own = (name: string): Promise<string> => namespaceOf(`helm${helm.major}-${name}`);
    const maps = async (namespace: string): Promise<string[]> =>
      namesOf((await admin.client.list(CONFIG_MAPS, { namespace })).items).filter((name) => !/^kube-root/.test(name));
    const colour = async (namespace: string): Promise<string | undefined> =>
      (await admin.client.get(CONFIG_MAPS, { namespace, name: 's-part' })).data?.['color'];

    // S-317: helm installs, upgrades, tests, rolls back and takes away releases, and waits for a guest.
    // Compat Pods, nodes, drain, P1, yes: helm 4 and 3: install, upgrade, rollback, test, uninstall, hooks, `crds/`,
    //   `lookup`, `--dry-run=server`, conflicts, `--take-ownership`, `--force-conflicts`, `--force-replace`, `--wait`
    //   on a booting VirtualMachine; releases in Secrets and ConfigMaps, over 1 MiB
    test('a release is installed, upgraded, tested, rolled back and taken away', async () => {
      const namespace = await own('settings');
      const run = runner(helm, namespace);
      assert.match((await run('install s settings --wait --timeout 60s')).stdout, /running on v1\./);
      assert.deepEqual(await maps(namespace), ['s-0', 's-before', 's-found', 's-part']);
      const found = await admin.client.get(CONFIG_MAPS, { namespace, name: 's-found' });
      assert.equal(found.data?.['none'], '{}');
      assert.equal(found.data?.['class'], '2000001000');
      assert.match((await run('get manifest s')).stdout, /kind: Flavour/);
      assert.match((await run('upgrade s settings --set part.color=red --dry-run=server')).stdout, /color: "red"/);
      assert.equal(await colour(namespace), 'blue');
      await run('upgrade s settings --set part.color=red --wait --timeout 60s');
      assert.equal(await colour(namespace), 'red');
      assert.match((await run('test s')).stdout, /Phase: +Succeeded/);
      await run('rollback s 1 --wait --timeout 60s');
      assert.equal(await colour(namespace), 'blue');
      const history = JSON.parse((await run('history s -o json')).stdout) as { status: string }[];
      assert.deepEqual(
        history.map(({ status }) => status),
        ['superseded', 'superseded', 'deployed'],
      );
      await run('uninstall s --cascade foreground --wait --timeout 60s');
      assert.deepEqual(await maps(namespace), ['s-before', 's-test']);
      assert.deepEqual(namesOf((await admin.client.list(SECRETS, { namespace })).items), []);
    });

    test('forty objects, and two upgrades at a time', { timeout: 600_000 }, async () => {
      const namespace = await own('many');
      const run = runner(helm, namespace);
      await run('install m settings --set count=40 --wait --timeout 60s');
      assert.equal((await maps(namespace)).length, 43);
      const upgrade = (part: string): Promise<Outcome> =>
        run(`upgrade m settings --set count=35,part.color=${part}`).catch(() => ({ code: 1, stdout: '', stderr: '' }));
      const ends = await Promise.all([upgrade('red'), upgrade('green')]);
      assert.ok(
        ends.some(({ code }) => code === 0),
        'one of them must get through',
      );
      assert.equal((await maps(namespace)).filter((name) => /^m-\d+$/.test(name)).length, 35);
      await run('uninstall m --wait --timeout 60s');
    });

    // S-317
    test('what others made is not taken over unasked', async () => {
      const namespace = await own('adopted');
      const run = runner(helm, namespace);
      const map = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 's-part', namespace },
        data: { color: 'mine' },
      };
      await admin.client.create(CONFIG_MAPS, map);
      await run('install s settings', {
        fails: /ConfigMap "s-part" in namespace "[^"]+" exists and cannot be imported/,
      });
      assert.equal(await colour(namespace), 'mine');
      await run(`install s settings --take-ownership${helm.major > 3 ? ' --force-conflicts' : ''}`);
      assert.equal(await colour(namespace), 'blue');
    });

    test('a field that somebody else changed is a conflict to server-side apply', {
      skip: helm.major < 4 && 'helm 3 applies from the client',
    }, async () => {
      const namespace = await own('conflict');
      const run = runner(helm, namespace);
      await run('install s settings');
      const body = { data: { color: 'green' } };
      await admin.client.patch(CONFIG_MAPS, { namespace, name: 's-part' }, { type: 'merge', body });
      await run('upgrade s settings --set part.color=red', {
        fails: /Apply failed with 1 conflict: conflict with "[^"]+" using v1: \.data\.color/,
      });
      assert.equal(await colour(namespace), 'green');
      await run('upgrade s settings --set part.color=red --force-conflicts');
      assert.equal(await colour(namespace), 'red');
      await run('upgrade s settings --set part.color=black --force-replace --server-side=false');
      assert.equal(await colour(namespace), 'black');
    });

    test('releases are kept in Secrets or ConfigMaps, of no more than those hold', async () => {
      const namespace = await own('drivers');
      const run = runner(helm, namespace);
      await run('install s settings', { driver: 'configmap' });
      assert.ok((await maps(namespace)).includes('sh.helm.release.v1.s.v1'));
      assert.match((await run('list -q', { driver: 'configmap' })).stdout, /^s\n$/);
      assert.equal((await run('list -q')).stdout.trim(), '');
      await run('install b bulky', { fails: /is invalid: data: Too long: may not be more than 1048576 bytes/ });
      await run('install b bulky', { driver: 'configmap', fails: /Too long: may not be more than 1048576 bytes/ });
      await run('uninstall s', { driver: 'configmap' });
    });

    // S-317
    test('a guest is waited for, reached by the name of its port, and gone at the end', {
      skip: noGuests ?? false,
      timeout: 300_000,
    }, async () => {
      const namespace = await own('guest');
      const run = runner(helm, namespace);
      await run('install g guest --wait --timeout 90s');
      const key = { namespace, name: 'g' };
      await eventually('the guest runs', async () =>
        (await admin.client.get(VIRTUAL_MACHINES, key)).status?.ready ? true : undefined,
      );
      const ports = await eventually('its Service finds it', async () => {
        const { items } = await admin.client.list(ENDPOINT_SLICES, { namespace });
        return items.find(({ endpoints }) => (endpoints?.length ?? 0) > 0)?.ports;
      });
      assert.deepEqual(
        ports?.map(({ port }) => port),
        [8080],
      );
      const before = await admin.client.get(VIRTUAL_MACHINE_INSTANCES, key);
      // The status names the generation that the guest was made from, as upstream's: helm 4 would wait for its restart.
      await run(`upgrade g guest --set note=two${helm.major > 3 ? '' : ' --wait --timeout 90s'}`);
      const changed = await admin.client.get(VIRTUAL_MACHINES, key);
      assert.equal(changed.spec.template?.metadata?.annotations?.['note'], 'two');
      // helm 4 knows from the status whether a machine is up; an image that is not there never is.
      if (helm.major > 3) {
        await run('install bad guest --set image=localhost/none --wait --timeout 5s --rollback-on-failure', {
          fails: /resource VirtualMachine\/[^ ]+\/bad not ready\. status: InProgress/,
        });
        await eventually('it is taken back', async () =>
          namesOf((await admin.client.list(VIRTUAL_MACHINES, { namespace })).items).join() === 'g' ? true : undefined,
        );
      }
      await run('uninstall g --cascade orphan --wait --timeout 60s');
      const left = await admin.client.get(VIRTUAL_MACHINE_INSTANCES, key);
      assert.equal(left.metadata.uid, before.metadata.uid);
      await admin.client.delete(VIRTUAL_MACHINE_INSTANCES, key);
    });
  });
}
